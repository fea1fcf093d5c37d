//! The part of a catalogue that belongs to a cluster and not to its volumes, when catalogues come
//! and go: gateways and addresses. Numbers of either are never used again, whatever is imported.

use crate::addresses;
use crate::cluster;
use crate::error::{CatalogError, ClusterError, Result, Thing};
use crate::members::{self, Address};
use crate::model::Volume;
use crate::rows;
use rusqlite::{Connection, TransactionBehavior, params};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use weir_cluster::GroupId;
use weir_cluster::timing::GROUPS_MAX;
use weir_core::VolumeId;

/// Gives `image`, a catalogue to import, the gateways and addresses of the cluster, whose present
/// catalogue is `db`. Addresses of the import that the cluster lacks get new groups, and volumes
/// without an address get one. A cluster that never had a gateway or an address gets those of the
/// import with their numbers: it is new, or its catalogue was lost. Numbers that the cluster has
/// given are not given again.
///
/// # Errors
/// `TooMany` addresses, `Damaged`, `Database`.
pub(crate) fn keep_cluster(image: &mut Connection, db: &Connection) -> Result<()> {
    let tx = image.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let present = cluster::counters(db)?;
    let members = ["gateways", "addresses"];
    let mut counted = cluster::COUNTED.iter().zip(&present);
    if counted.all(|((name, _), counter)| *counter == 0 || !members.contains(name)) {
        spread(&tx)?;
        return Ok(tx.commit()?);
    }
    let had = homes(&tx)?;
    let imported = members::load_addresses(&tx)?;
    leave_cluster(&tx)?;
    let mut counters = cluster::counters(&tx)?;
    let mut all = members::load_addresses(db)?;
    let mut groups = BTreeMap::new();
    let each = cluster::COUNTED.iter().zip(counters.iter_mut().zip(present));
    for ((name, _), (counter, present)) in each {
        match *name {
            "gateways" => *counter = present,
            "addresses" => *counter = merged(&mut all, &imported, present, &mut groups)?,
            // CephFS still has the trees, by number, of volumes that the catalogue forgets now.
            _ => *counter = present.max(*counter),
        }
    }
    for Address { group, at } in all {
        let sql = "INSERT INTO addresses (id, address, prefix) VALUES (?1, ?2, ?3)";
        tx.execute(sql, params![group.0, at.ip.to_string(), at.prefix])?;
    }
    for (volume, group) in had {
        if let Some(group) = groups.get(&group) {
            set_address(&tx, volume, *group)?;
        }
    }
    for gateway in members::load_gateways(db)? {
        let (links, helper) = (gateway.links.to_string(), gateway.helper.to_string());
        let sql = "INSERT INTO gateways (id, name, links, helper) VALUES (?1, ?2, ?3, ?4)";
        tx.execute(sql, params![gateway.id.0, gateway.name, links, helper])?;
    }
    cluster::set_counters(&tx, &counters)?;
    spread(&tx)?;
    Ok(tx.commit()?)
}

/// Checks that no volume of the import `image` would be served from the tree of another volume of
/// the cluster, whose present catalogue is `db`: one with the same number below the same pool,
/// which is not the volume of an earlier import with the same name.
///
/// # Errors
/// `NumbersTaken`, `Damaged`, `Database`.
pub(crate) fn check_numbers(image: &Connection, db: &Connection) -> Result<()> {
    let mut counted = cluster::COUNTED.iter().zip(cluster::counters(db)?);
    let last = counted.find_map(|((name, _), last)| (*name == "volumes").then_some(last));
    let last = last.unwrap_or(0);
    let (new, present) = (rows::load(image, Path::new("/"))?, rows::load(db, Path::new("/"))?);
    let is_taken = |volume: &&Arc<Volume>| {
        let directory = new.pool(volume.pool).map(|pool| &pool.directory);
        let is_there = present.pools().any(|pool| Some(&pool.directory) == directory);
        let same = present.volume(volume.id).is_some_and(|other| other.name == volume.name);
        is_there && i64::from(volume.id.0) <= last && !same
    };
    let taken: Vec<_> = new.volumes().filter(is_taken).map(|one| one.name.clone()).collect();
    match taken.is_empty() {
        true => Ok(()),
        false => Err(ClusterError::NumbersTaken { volumes: taken }.into()),
    }
}

/// Removes gateways and addresses from `image`.
///
/// # Errors
/// `Database`.
pub(crate) fn leave_cluster(image: &Connection) -> Result<()> {
    Ok(image.execute_batch(
        "UPDATE volumes SET address = NULL;
         UPDATE condemned SET address = NULL;
         DELETE FROM addresses;
         DELETE FROM gateways;",
    )?)
}

/// Adds the `imported` addresses that are not in `all` yet, with numbers above `last`. Notes the
/// group that each of them has now, and returns the last number.
fn merged(
    all: &mut Vec<Address>,
    imported: &[Address],
    mut last: i64,
    groups: &mut BTreeMap<GroupId, GroupId>,
) -> Result<i64> {
    let too_many = || CatalogError::TooMany { thing: Thing::Address, max: GROUPS_MAX };
    for Address { group, at } in imported {
        let same = all.iter().find(|address| address.at.ip == at.ip);
        let new = match same {
            Some(address) => address.group,
            None => {
                last += 1;
                let new = GroupId(u32::try_from(last).map_err(|_| too_many())?);
                all.push(Address { group: new, at: *at });
                new
            }
        };
        groups.insert(*group, new);
    }
    if all.len() > GROUPS_MAX { Err(too_many()) } else { Ok(last) }
}

/// The groups of the volumes that have one.
fn homes(db: &Connection) -> Result<Vec<(VolumeId, GroupId)>> {
    let mut query = db.prepare("SELECT id, address FROM volumes WHERE address IS NOT NULL")?;
    let rows = query.query_map([], |row| Ok((VolumeId(row.get(0)?), GroupId(row.get(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Gives each volume without an address the one with the least weight, the heaviest volume first.
fn spread(db: &Connection) -> Result<()> {
    let now = rows::load(db, Path::new("/"))?;
    let mut weights = now.weights();
    let without = now.weighed().filter(|(volume, _)| volume.address.is_none());
    let mut without: Vec<_> =
        without.map(|(volume, weight)| (Reverse(weight), volume.id)).collect();
    without.sort_unstable();
    for (Reverse(weight), volume) in without {
        let Some(group) = addresses::lightest(&weights) else { return Ok(()) };
        set_address(db, volume, group)?;
        if let Some(sum) = weights.get_mut(&group) {
            *sum = sum.saturating_add(weight);
        }
    }
    Ok(())
}

fn set_address(db: &Connection, volume: VolumeId, group: GroupId) -> Result<()> {
    let sql = "UPDATE volumes SET address = ?2 WHERE id = ?1";
    db.prepare_cached(sql)?.execute([volume.0, group.0])?;
    Ok(())
}
