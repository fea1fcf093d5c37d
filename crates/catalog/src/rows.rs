//! Conversion between rows and values. Only this module knows the columns of the tables; those of a
//! volume's terms are in `terms`.

use crate::cephfs::Ceph;
use crate::error::{CatalogError, Result};
use crate::model::{
    ExportRule, Level, Pool, Principal, Protocols, ShareRule, ShareSettings, Volume,
};
use crate::snapshot::Snapshot;
use crate::terms::Terms;
use crate::{calibration, identity, members};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params, params_from_iter};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use weir_cluster::GroupId;
use weir_core::{PoolId, VolumeId};
use weir_qos::contract::{self, Bought, Model, Qos};
use weir_qos::rate::{BytesPerSecond, Iops};
use weir_qos::shares::Share;

/// Reads the whole catalogue. Pools without a path of their own live under `data_dir`.
pub(crate) fn load(db: &Connection, data_dir: &Path) -> Result<Snapshot> {
    let generation = generation(db)?;
    let levels = levels(db)?;
    let pools = pools(db, data_dir, &levels)?;
    let volumes = volumes(db, |id| pools.get(&id), Which::All)?;
    let pools = pools.into_values().collect();
    Ok(Snapshot::new(generation, instance(db)?, levels, pools, volumes)
        .calibrated(calibration::load(db)?)
        .clustered(members::load_addresses(db)?, members::load_gateways(db)?)
        .identified(generation, identity::load(db)?))
}

/// The snapshot `before`, with users and groups read again.
pub(crate) fn load_identities(db: &Connection, before: &Snapshot) -> Result<Snapshot> {
    Ok(before.clone().identified(generation(db)?, identity::load(db)?))
}

/// The snapshot `before`, with one volume read again.
pub(crate) fn load_volume(db: &Connection, before: &Snapshot, id: VolumeId) -> Result<Snapshot> {
    let pool = |id| before.pool(id).map(AsRef::as_ref);
    let found = volumes(db, pool, Which::One(id))?.pop();
    Ok(before.with_volume(generation(db)?, id, found))
}

fn generation(db: &Connection) -> Result<u64> {
    Ok(db.query_row("SELECT generation FROM meta", [], |row| row.get(0))?)
}

/// Volumes that are read.
#[derive(Clone, Copy)]
enum Which {
    All,
    One(VolumeId),
}

impl Which {
    /// A query for these volumes in a table whose `column` has the volume's id.
    fn rows(self, select: &str, column: &str) -> String {
        match self {
            Self::All => select.to_owned(),
            Self::One(id) => format!("{select} WHERE {column} = {}", id.0),
        }
    }
}

/// The random name of this data directory, which marks the pools that are its own.
pub(crate) fn instance(db: &Connection) -> Result<String> {
    Ok(db.query_row("SELECT instance FROM meta", [], |row| row.get(0))?)
}

/// The published levels and the operator's own.
fn levels(db: &Connection) -> Result<Vec<Arc<Level>>> {
    let published = contract::Level::PUBLISHED.into_iter().map(|(name, contract)| {
        Arc::new(Level { name: name.to_owned(), contract, published: true })
    });
    let mut levels: Vec<_> = published.collect();
    let mut query =
        db.prepare("SELECT name, rate_per_tib, volume_ceiling FROM levels ORDER BY name")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (name, rate): (String, u64) = (row.get(0)?, row.get(1)?);
        let no_rate = || CatalogError::Damaged(format!("level {name:?} has no throughput"));
        let ceiling: Option<u64> = row.get(2)?;
        let contract = contract::Level::new(BytesPerSecond(rate)).ok_or_else(no_rate)?;
        let contract = contract.with_volume_ceiling(ceiling.map(BytesPerSecond));
        levels.push(Arc::new(Level { name, contract, published: false }));
    }
    Ok(levels)
}

fn pools(
    db: &Connection,
    data_dir: &Path,
    levels: &[Arc<Level>],
) -> Result<BTreeMap<PoolId, Pool>> {
    let mut query = db.prepare(
        "SELECT id, name, level, size_bytes, qos, directory, throughput, iops, ceph_conf, ceph_user,
            ceph_path FROM pools",
    )?;
    let mut rows = query.query([])?;
    let mut pools = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let id = PoolId(row.get(0)?);
        let own: Option<String> = row.get(5)?;
        let texts: [Option<String>; 3] = [row.get(8)?, row.get(9)?, row.get(10)?];
        let (directory, ceph) = match (own, texts) {
            (own, [None, None, None]) => {
                let default = || data_dir.join("pools").join(id.to_string());
                (own.map_or_else(default, PathBuf::from), None)
            }
            (None, [Some(conf), Some(user), Some(path)]) => {
                (path.into(), Some(Ceph { conf: conf.into(), user }))
            }
            _ => return Err(CatalogError::Damaged(format!("pool {id} is in two places"))),
        };
        let level: String = row.get(2)?;
        let no_level = || CatalogError::Damaged(format!("pool {id} has no level {level:?}"));
        let found = levels.iter().find(|one| one.name == level).ok_or_else(no_level)?;
        let bought = Bought {
            rate: row.get::<_, Option<u64>>(6)?.map(BytesPerSecond),
            iops: row.get::<_, Option<u64>>(7)?.map(Iops),
        };
        let pool = Pool {
            id,
            name: row.get(1)?,
            level: Arc::clone(found),
            size_bytes: row.get(3)?,
            model: Model::new(word(row, 4)?, found.contract, bought),
            directory,
            ceph,
        };
        pools.insert(id, pool);
    }
    Ok(pools)
}

fn volumes<'a>(
    db: &Connection,
    pool: impl Fn(PoolId) -> Option<&'a Pool>,
    which: Which,
) -> Result<Vec<Volume>> {
    let (mut exports, mut shares) = (exports(db, which)?, share_rules(db, which)?);
    let terms = Terms::default().columns().map(|(name, _)| name).join(", ");
    let select = format!(
        "SELECT id, name, pool, quota_bytes, nfs, smb, smb_encrypt, smb_hidden, smb_abe, address, {terms}
         FROM volumes"
    );
    let mut query = db.prepare(&which.rows(&select, "id"))?;
    let mut rows = query.query([])?;
    let mut volumes = Vec::new();
    while let Some(row) = rows.next()? {
        let id = VolumeId(row.get(0)?);
        let no_pool = || CatalogError::Damaged(format!("volume {id} has no pool"));
        let pool = pool(PoolId(row.get(2)?)).ok_or_else(no_pool)?;
        let terms = Terms::read(row)?;
        let share = match pool.model.qos() {
            Qos::Shared => Some(Share {
                weight: terms.weight.unwrap_or(Share::WEIGHT),
                floor: terms.throughput.unwrap_or_default(),
            }),
            _ => None,
        };
        let quota_bytes = row.get(3)?;
        let no_protocol = || CatalogError::Damaged(format!("volume {id} has no protocol"));
        let protocols = Protocols::new(row.get(4)?, row.get(5)?).ok_or_else(no_protocol)?;
        let smb = ShareSettings {
            encrypt: row.get(6)?,
            hidden: row.get(7)?,
            abe: row.get(8)?,
            rules: shares.remove(&id).unwrap_or_default(),
        };
        volumes.push(Volume {
            id,
            name: row.get(1)?,
            pool: pool.id,
            directory: pool.place_of(id),
            address: row.get::<_, Option<u32>>(9)?.map(GroupId),
            quota_bytes,
            terms,
            share,
            limits: terms.limits(&pool.contract(), quota_bytes),
            exports: exports.remove(&id).unwrap_or_default(),
            protocols,
            smb,
        });
    }
    Ok(volumes)
}

/// Replaces the terms of a volume.
pub(crate) fn store_terms(db: &Connection, volume: VolumeId, terms: &Terms) -> Result<()> {
    let columns = terms.columns();
    let set = columns.map(|(name, _)| format!("{name} = ?")).join(", ");
    let values = columns.into_iter().map(|(_, value)| value).chain([Some(volume.0.into())]);
    db.prepare_cached(&format!("UPDATE volumes SET {set} WHERE id = ?"))?
        .execute(params_from_iter(values))?;
    Ok(())
}

fn exports(db: &Connection, which: Which) -> Result<BTreeMap<VolumeId, Vec<ExportRule>>> {
    let mut query = db.prepare(&which.rows(
        "SELECT volume, network, access, squash, anon_uid, anon_gid FROM export_rules",
        "volume",
    ))?;
    let mut rows = query.query([])?;
    let mut exports: BTreeMap<VolumeId, Vec<ExportRule>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let rule = ExportRule {
            network: word(row, 1)?,
            access: word(row, 2)?,
            squash: word(row, 3)?,
            anon_uid: row.get(4)?,
            anon_gid: row.get(5)?,
        };
        exports.entry(VolumeId(row.get(0)?)).or_default().push(rule);
    }
    for rules in exports.values_mut() {
        sort_rules(rules);
    }
    Ok(exports)
}

/// Most specific network first, so that the first match is the one meant.
fn sort_rules(rules: &mut [ExportRule]) {
    rules.sort_by_key(|rule| (std::cmp::Reverse(rule.network.prefix()), rule.network.addr()));
}

/// Replaces the rules of a volume.
pub(crate) fn store_exports(db: &Connection, volume: VolumeId, rules: &[ExportRule]) -> Result<()> {
    db.execute("DELETE FROM export_rules WHERE volume = ?1", [volume.0])?;
    let mut insert = db.prepare("INSERT INTO export_rules VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for rule in rules {
        insert.execute(params![
            volume.0,
            rule.network.to_string(),
            rule.access.to_string(),
            rule.squash.to_string(),
            rule.anon_uid,
            rule.anon_gid
        ])?;
    }
    Ok(())
}

fn share_rules(db: &Connection, which: Which) -> Result<BTreeMap<VolumeId, Vec<ShareRule>>> {
    let mut query = db.prepare(&which.rows(
        "SELECT volume, network, account, uid IS NOT NULL, access FROM share_rules
         LEFT JOIN accounts ON rid = account",
        "volume",
    ))?;
    let mut rows = query.query([])?;
    let mut shares: BTreeMap<VolumeId, Vec<ShareRule>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let has_network = row.get_ref(1)? != ValueRef::Null;
        let rule = ShareRule {
            network: has_network.then(|| word(row, 1)).transpose()?,
            principal: match (row.get(2)?, row.get(3)?) {
                (None, _) => Principal::Anyone,
                (Some(rid), true) => Principal::User(rid),
                (Some(rid), false) => Principal::Group(rid),
            },
            access: word(row, 4)?,
        };
        shares.entry(VolumeId(row.get(0)?)).or_default().push(rule);
    }
    shares.values_mut().for_each(|rules| ShareRule::sort(rules));
    Ok(shares)
}

/// Replaces the share rules of a volume.
pub(crate) fn store_share_rules(
    db: &Connection,
    volume: VolumeId,
    rules: &[ShareRule],
) -> Result<()> {
    db.execute("DELETE FROM share_rules WHERE volume = ?1", [volume.0])?;
    let mut insert = db.prepare("INSERT INTO share_rules VALUES (?1, ?2, ?3, ?4)")?;
    for rule in rules {
        let network = rule.network.map(|network| network.to_string());
        let account = match rule.principal {
            Principal::Anyone => None,
            Principal::User(rid) | Principal::Group(rid) => Some(rid),
        };
        insert.execute(params![volume.0, network, account, rule.access.to_string()])?;
    }
    Ok(())
}

fn word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error| CatalogError::Damaged(format!("{text:?}: {error}")))
}
