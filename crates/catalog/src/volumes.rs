//! Creating, changing and deleting volumes. Only the empty top of a volume's tree is created here.
//! The tree of a deleted volume is *condemned*: it stays recorded until another part has removed
//! it.

use crate::catalog::{Asked, Catalog, Mode, Outcome, Touched};
use crate::cephfs::Ceph;
use crate::error::{CatalogError, Result, Thing};
use crate::limits::{SIZE_BYTES_MAX, VOLUMES_MAX};
use crate::model::{ExportRule, Pool, Protocols, ShareSettings, Volume};
use crate::sharing::{self, SharingChange};
use crate::snapshot::Snapshot;
use crate::terms::{Terms, TermsChange};
use crate::{directory, names, places, pools, rows};
use rusqlite::{Transaction, params};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_cluster::GroupId;
use weir_core::VolumeId;
use weir_qos::contract::{Demand, Infeasible, Model};
use weir_qos::rate::BytesPerSecond;

/// A volume to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewVolume {
    /// The volume's name.
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    /// The provisioned size, in bytes.
    pub quota_bytes: u64,
    /// Its terms.
    pub terms: Terms,
    /// Its protocols and its share, where they are not the default.
    pub sharing: SharingChange,
    /// Its address, in a cluster; by default the one with the least weight.
    pub address: Option<IpAddr>,
}

/// The fields of a volume to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeChange {
    /// The name of the pool to move to. In an auto pool the limit follows from the quota. In a pool
    /// that assigns rates the volume keeps its rate, and between custom pools its operations,
    /// unless `terms` has others.
    pub pool: Option<String>,
    /// The provisioned size, bytes.
    pub quota_bytes: Option<u64>,
    /// The terms to change.
    pub terms: TermsChange,
    /// The protocols and the settings of the share to change.
    pub sharing: SharingChange,
    /// The address, in a cluster, of a volume that has none yet.
    pub address: Option<IpAddr>,
}

/// The tree of a deleted volume that is not removed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condemned {
    /// The deleted volume.
    pub volume: VolumeId,
    /// The tree's directory.
    pub directory: PathBuf,
    /// The CephFS that the directory is in; none if it is on this machine.
    pub ceph: Option<Ceph>,
    /// The group that the volume was in, in a cluster. It may have been removed since.
    pub address: Option<GroupId>,
}

impl Catalog {
    /// Creates a volume with the default export rules, and its directory.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `NoSuch` (pool), `Size`, `TooMany`, `ThroughputInAuto`,
    /// `ThroughputMissing`, `IopsNotGiven`, `CeilingBounds`, `Infeasible`, `BeyondHardware`,
    /// `ShareNameTaken`, `ShareNameReserved`, `PoolAway`, `PoolForeign`, `PoolBusy`, `BadPath`,
    /// `Io`; with an address `NotGateway`, `NoSuch`; in a cluster `NoAddress`.
    pub fn create_volume(&self, new: &NewVolume, asked: impl Into<Asked>) -> Result<Outcome> {
        names::check(Thing::Volume, &new.name)?;
        let decide = |tx: &Transaction<'_>, now: &Snapshot| {
            let pool = pools::find(now, &new.pool)?;
            if now.volume_named(&new.name).is_some() {
                let name = new.name.clone();
                return Err(CatalogError::NameTaken { thing: Thing::Volume, name });
            }
            if now.volumes().count() >= VOLUMES_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Volume, max: VOLUMES_MAX });
            }
            self.check_volume_size(new.quota_bytes)?;
            check_contract(now, pool, None, new.quota_bytes, &new.terms)?;
            new.terms.check(&pool.name, &pool.model)?;
            let address = self.group_for(now, new.address)?;
            tx.execute(
                "INSERT INTO volumes (name, pool, quota_bytes, address) VALUES (?1, ?2, ?3, ?4)",
                params![new.name, pool.id.0, new.quota_bytes, address.map(|group| group.0)],
            )?;
            let id = u32::try_from(tx.last_insert_rowid())
                .map_err(|_| CatalogError::TooMany { thing: Thing::Volume, max: VOLUMES_MAX })?;
            rows::store_terms(tx, VolumeId(id), &new.terms)?;
            rows::store_exports(tx, VolumeId(id), &ExportRule::defaults())?;
            let (this, none) = ((VolumeId(id), new.name.as_str()), ShareSettings::default());
            sharing::store(tx, now, this, (Protocols::NFS, &none), &new.sharing)?;
            if self.has_trees() {
                now.check_pool(pool)?;
            }
            Ok((Touched::Volume(VolumeId(id)), (Arc::clone(pool), VolumeId(id))))
        };
        self.mutate_and(asked, decide, |(pool, id), _| {
            self.claims().hold(&pool.directory)?;
            directory::make_volume(&pool.place_of(id))
        })
    }

    /// Changes a volume's quota, terms, protocols, share or pool, all at once. `used_bytes` is its
    /// used space, if that is known. A volume that moves keeps its files, clients and id; its tree
    /// is renamed into the directory of its new pool.
    ///
    /// # Errors
    /// `NoSuch`, `Size`, `QuotaBelowUsed`, `UsageUnknown`, `ThroughputInAuto`, `IopsNotGiven`,
    /// `CeilingBounds`, `Infeasible`, `BeyondHardware`, `ShareNameTaken`, `ShareNameReserved`; for
    /// a move also `OtherFileSystem`, `PoolAway`, `PoolForeign`, `PoolBusy`, `VolumeAway`,
    /// `BadPath`, `Io`; for an address `NotGateway`, `NoSuch`, `AddressKept`.
    pub fn change_volume(
        &self,
        name: &str,
        change: &VolumeChange,
        used_bytes: Option<u64>,
        asked: impl Into<Asked>,
    ) -> Result<Outcome> {
        let mut moved = None;
        let decide = |tx: &Transaction<'_>, now: &Snapshot| {
            let volume = find(now, name)?;
            let old_pool = pool_of(now, volume)?;
            let pool = match &change.pool {
                Some(name) => pools::find(now, name)?,
                None => old_pool,
            };
            if change.terms.iops.is_some() {
                check_has_iops(pool)?;
            }
            let moves = pool.id != old_pool.id;
            let quota_bytes = change.quota_bytes.unwrap_or(volume.quota_bytes);
            let terms = volume.carried(old_pool, pool).with(&change.terms);
            if quota_bytes != volume.quota_bytes {
                self.check_volume_size(quota_bytes)?;
            }
            if quota_bytes < volume.quota_bytes {
                check_usage(&volume.name, quota_bytes, used_bytes)?;
            }
            check_contract(now, pool, Some(volume), quota_bytes, &terms)?;
            terms.check(&pool.name, &pool.model)?;
            let address = self.group_of(now, volume, change.address)?;
            tx.execute(
                "UPDATE volumes SET quota_bytes = ?2, pool = ?3, address = ?4 WHERE id = ?1",
                params![volume.id.0, quota_bytes, pool.id.0, address.map(|group| group.0)],
            )?;
            rows::store_terms(tx, volume.id, &terms)?;
            let (this, had) = ((volume.id, name), (volume.protocols, &volume.smb));
            sharing::store(tx, now, this, had, &change.sharing)?;
            let touched = Touched::Volume(volume.id);
            if !moves {
                return Ok((touched, None));
            }
            if self.has_trees() {
                places::check(now, volume, old_pool, pool)?;
            } else {
                places::check_ceph(volume, old_pool, pool)?;
            }
            let move_of = (Arc::clone(volume), Arc::clone(old_pool), Arc::clone(pool));
            Ok((touched, Some(move_of)))
        };
        let outcome = self.mutate_and(asked, decide, |move_of, now| {
            let Some((volume, old_pool, pool)) = move_of else { return Ok(()) };
            let target = pool.place_of(volume.id);
            places::carry_out(now, &volume, &old_pool, &pool)?;
            moved = Some((target.clone(), volume.directory.clone()));
            places::sync(&volume.directory, &target)
        });
        if let (Err(_), Some((now, before))) = (&outcome, moved) {
            // The change is not on disk. If this fails too, the next start moves the tree back.
            let _put_back_later = places::rename(&now, &before);
        }
        outcome
    }

    /// Deletes a volume and condemns its tree.
    ///
    /// # Errors
    /// `NoSuch`.
    pub fn delete_volume(&self, name: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let volume = find(now, name)?;
            let tree = places::stray(now, volume).unwrap_or_else(|| volume.directory.clone());
            let ceph = pool_of(now, volume)?.ceph.as_ref();
            tx.execute("DELETE FROM volumes WHERE id = ?1", [volume.id.0])?;
            tx.execute(
                "INSERT INTO condemned (volume, directory, ceph_conf, ceph_user, address)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    volume.id.0,
                    tree.to_string_lossy(),
                    ceph.map(|ceph| ceph.conf.to_string_lossy()),
                    ceph.map(|ceph| &ceph.user),
                    volume.address.map(|group| group.0)
                ],
            )?;
            Ok(Touched::Volume(volume.id))
        })
    }

    /// The trees that are not removed yet.
    ///
    /// # Errors
    /// `Database`.
    pub fn condemned(&self) -> Result<Vec<Condemned>> {
        self.read(|db| {
            let mut query = db.prepare(
                "SELECT volume, directory, ceph_conf, ceph_user, address FROM condemned
                 ORDER BY volume",
            )?;
            let rows = query.query_map([], |row| {
                let (directory, conf): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                let ceph =
                    conf.zip(row.get(3)?).map(|(conf, user)| Ceph { conf: conf.into(), user });
                Ok(Condemned {
                    volume: VolumeId(row.get(0)?),
                    directory: directory.into(),
                    ceph,
                    address: row.get::<_, Option<u32>>(4)?.map(GroupId),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Whether a condemned tree is still in a pool of this catalogue on this machine. It is not if
    /// its file system is not mounted, another one is mounted there, or another server uses the
    /// pool: then nothing there may be removed.
    #[must_use]
    pub fn may_remove(&self, condemned: &Condemned) -> bool {
        let pool = condemned.directory.parent().and_then(Path::parent);
        let pool = pool.filter(|_| condemned.ceph.is_none());
        pool.is_some_and(|pool| {
            directory::is_marked_by(pool, self.instance()) && self.claims().hold(pool).is_ok()
        })
    }

    /// Forgets a condemned tree that has been removed.
    ///
    /// # Errors
    /// `Database`.
    pub fn forget_condemned(&self, volume: VolumeId) -> Result<()> {
        self.write(|db| {
            db.execute("DELETE FROM condemned WHERE volume = ?1", [volume.0])?;
            Ok(())
        })
    }

    fn check_volume_size(&self, asked: u64) -> Result<()> {
        let (min, max) = (self.minimums().volume_bytes, SIZE_BYTES_MAX);
        if (min..=max).contains(&asked) {
            return Ok(());
        }
        Err(CatalogError::Size { thing: Thing::Volume, asked, min, max })
    }
}

/// The volume of this name.
pub(crate) fn find<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Volume>> {
    now.volume_named(name)
        .ok_or_else(|| CatalogError::NoSuch { thing: Thing::Volume, name: names::printable(name) })
}

fn pool_of<'a>(now: &'a Snapshot, volume: &Volume) -> Result<&'a Arc<Pool>> {
    let no_pool = || CatalogError::Damaged(format!("volume {} has no pool", volume.id));
    now.pool(volume.pool).ok_or_else(no_pool)
}

fn check_usage(volume: &str, quota_bytes: u64, used_bytes: Option<u64>) -> Result<()> {
    match used_bytes {
        None => Err(CatalogError::UsageUnknown { volume: volume.to_owned() }),
        Some(used) if quota_bytes < used => {
            Err(CatalogError::QuotaBelowUsed { volume: volume.to_owned(), used })
        }
        Some(_) => Ok(()),
    }
}

/// Refuses operations of a volume where the model of `pool` has none.
fn check_has_iops(pool: &Pool) -> Result<()> {
    match pool.model {
        Model::Custom { .. } | Model::ProvisionedV2 => Ok(()),
        Model::Auto(_)
        | Model::Manual(_)
        | Model::Shared(_)
        | Model::Flexible { .. }
        | Model::ProvisionedV1 => {
            Err(CatalogError::IopsNotGiven { pool: pool.name.clone(), qos: pool.model.qos() })
        }
    }
}

/// Checks whether `pool` carries a volume of these terms beside its others. `this` is the volume
/// itself, if it exists already.
fn check_contract(
    now: &Snapshot,
    pool: &Pool,
    this: Option<&Volume>,
    quota_bytes: u64,
    terms: &Terms,
) -> Result<()> {
    let others = || {
        let others = now.volumes_of(pool.id).filter(|other| Some(other.id) != this.map(|v| v.id));
        others.map(|other| other.demand())
    };
    let infeasible = |rule| CatalogError::Infeasible { pool: pool.name.clone(), rule };
    let (contract, demand) = (pool.contract(), terms.demand(quota_bytes));
    if terms.iops.is_some() {
        check_has_iops(pool)?;
    }
    let missing = |budget: BytesPerSecond| {
        // The whole budget is too much beside other volumes, and the refusal has what is left.
        let all = Demand { rate: Some(budget), ..demand };
        let free = match contract.check_volume(others(), all) {
            Err(rule @ Infeasible::Quota { .. }) => return infeasible(rule),
            Err(Infeasible::Throughput { free, .. }) => free,
            _ => budget,
        };
        let most = contract.model.volume_ceiling().rate.unwrap_or(free);
        CatalogError::ThroughputMissing { pool: pool.name.clone(), free: free.min(most).0 }
    };
    match (pool.model, terms.throughput) {
        (Model::Auto(_) | Model::ProvisionedV1, Some(_)) => {
            return Err(CatalogError::ThroughputInAuto {
                pool: pool.name.clone(),
                qos: pool.model.qos(),
            });
        }
        (Model::Manual(level), None) => return Err(missing(level.rate_for(pool.size_bytes))),
        (Model::Flexible { rate } | Model::Custom { rate, .. }, None) => return Err(missing(rate)),
        _ => {}
    }
    let keeps = |this: &Volume| this.pool == pool.id && this.terms.throughput == terms.throughput;
    if !this.is_some_and(keeps) {
        contract.check_ceiling(demand).map_err(infeasible)?;
    }
    contract.check_volume(others(), demand).map_err(infeasible)
}
