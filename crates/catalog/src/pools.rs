//! Creating, changing and deleting capacity pools.

use crate::catalog::{Asked, Catalog, Mode, Outcome, Touched};
use crate::ceph;
use crate::cephfs::Ceph;
use crate::error::{CatalogError, ClusterError, Result, Thing};
use crate::limits::{POOLS_MAX, SIZE_BYTES_MAX};
use crate::model::Pool;
use crate::snapshot::Snapshot;
use crate::{directory, levels, names, places, rows};
use rusqlite::{Connection, Transaction, params};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::PoolId;
use weir_qos::contract::{self, Bought, Floors, Model, Qos};
use weir_qos::rate::{BytesPerSecond, Iops};

/// A pool to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewPool {
    /// The pool's name.
    pub name: String,
    /// The name of its service level.
    pub level: String,
    /// The pool's size, in bytes.
    pub size_bytes: u64,
    /// The pool's contract model.
    pub qos: Qos,
    /// The rate that it purchases, in flexible and custom pools; the minimum by default.
    pub throughput: Option<BytesPerSecond>,
    /// The operations a second that it purchases, in custom pools; 16 for each MiB/s by default.
    pub iops: Option<Iops>,
    /// An absolute path for its volumes; by default a directory in the data directory.
    pub directory: Option<PathBuf>,
    /// The CephFS that the directory is in, which a pool of a cluster needs.
    pub ceph: Option<Ceph>,
}

/// The fields of a pool to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// The name of the service level.
    pub level: Option<String>,
    /// The size, bytes.
    pub size_bytes: Option<u64>,
    /// The contract model. In a model that assigns rates, each volume keeps its rate; in an auto
    /// pool, the limit follows from the quota.
    pub qos: Option<Qos>,
    /// The rate that it purchases, in flexible and custom pools. Operations that were the default
    /// of the old rate become the default of the new one, unless `iops` is given.
    pub throughput: Option<BytesPerSecond>,
    /// The operations a second that it purchases, in custom pools.
    pub iops: Option<Iops>,
}

impl Catalog {
    /// Creates a pool and its directory.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `NoSuchLevel`, `Size`, `TooMany`, `NotBought`, `Infeasible` where it
    /// purchases more or less than its model allows, `BeyondHardware`, `BadPath`, `PoolBusy`, `Io`;
    /// `LocalPool` in a cluster, and on CephFS `NotGateway`, `BadCephUser`, `OtherCeph`.
    pub fn create_pool(&self, new: &NewPool, asked: impl Into<Asked>) -> Result<Outcome> {
        names::check(Thing::Pool, &new.name)?;
        self.check_pool_size(new.size_bytes)?;
        let asked = asked.into();
        let mut expected = None;
        let decide = |tx: &Transaction<'_>, now: &Snapshot| {
            if now.pool_named(&new.name).is_some() {
                return Err(CatalogError::NameTaken { thing: Thing::Pool, name: new.name.clone() });
            }
            if now.pools().count() >= POOLS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Pool, max: POOLS_MAX });
            }
            let level = levels::find(now, &new.level)?;
            self.check_pool_place(now, new)?;
            let asked = Bought { rate: new.throughput, iops: new.iops };
            let bought = self.bought(&new.name, new.qos, asked, Bought::default())?;
            let model = Model::new(new.qos, level.contract, bought);
            contract::Pool { size_bytes: new.size_bytes, model }
                .check_bought(self.minimums().custom)
                .map_err(|rule| CatalogError::Infeasible { pool: new.name.clone(), rule })?;
            let Bought { rate, iops } = model.bought();
            let path = new.directory.as_ref().map(|path| path.to_string_lossy().into_owned());
            let (local, in_ceph) = if new.ceph.is_some() { (None, path) } else { (path, None) };
            let ceph = new.ceph.as_ref();
            tx.execute(
                "INSERT INTO pools (name, level, size_bytes, qos, directory, throughput, iops,
                    ceph_conf, ceph_user, ceph_path)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    new.name,
                    level.name,
                    new.size_bytes,
                    new.qos.name(),
                    local,
                    rate.map(|rate| rate.0),
                    iops.map(|iops| iops.0),
                    ceph.map(|ceph| ceph.conf.to_string_lossy()),
                    ceph.map(|ceph| &ceph.user),
                    in_ceph
                ],
            )?;
            let id = u32::try_from(tx.last_insert_rowid())
                .map_err(|_| CatalogError::TooMany { thing: Thing::Pool, max: POOLS_MAX })?;
            let default = || self.directory().join("pools").join(id.to_string());
            let path = new.directory.clone().unwrap_or_else(default);
            let is_live = |id| now.pool(PoolId(id)).is_some();
            if self.has_trees() {
                directory::check_vacant(&path, self.instance(), is_live)?;
                self.devices().expect_pool(&path);
                expected = Some(path.clone());
            }
            Ok((Touched::Everything, (path, id)))
        };
        let made = self.mutate_and(asked, decide, |(path, id), _| self.claim_pool(&path, id));
        if let Some(path) = expected
            && (made.is_err() || !asked.mode.commits())
        {
            self.devices().forget_pool(&path);
        }
        made
    }

    /// Checks the directory that a pool asks for: in CephFS on a gateway, on this machine
    /// elsewhere.
    fn check_pool_place(&self, now: &Snapshot, new: &NewPool) -> Result<()> {
        match (&new.ceph, &new.directory) {
            (None, _) if !self.has_trees() => {
                Err(ClusterError::LocalPool { pool: new.name.clone() }.into())
            }
            (None, None) => Ok(()),
            (None, Some(path)) => {
                let others = now.pools().filter(|pool| pool.ceph.is_none());
                let others = others.map(|pool| (pool.name.as_str(), pool.directory.as_path()));
                directory::check_pool_path(path, others)
            }
            (Some(ceph), path) => {
                self.check_gateway("pools on CephFS")?;
                let Some(path) = path else {
                    return Err(ClusterError::LocalPool { pool: new.name.clone() }.into());
                };
                self.check_ceph(ceph)?;
                ceph::check_pool(ceph, path, now.pools().map(Deref::deref))
            }
        }
    }

    /// Marks `path` as the directory of a new pool. It may have the mark of a deleted pool, which a
    /// copy of this data directory may still contain.
    fn claim_pool(&self, path: &Path, pool: u32) -> Result<()> {
        if directory::is_marked_by(path, self.instance()) {
            self.claims().hold(path)?;
        }
        directory::claim_pool(path, self.instance(), pool)?;
        self.claims().hold(path)
    }

    /// Changes a pool's size, level, model or purchased figures, all at once.
    ///
    /// # Errors
    /// `NoSuch`, `NoSuchLevel`, `Size`, `NotBought`, `Infeasible` where the pool as it is to be
    /// can't carry its volumes, `BeyondHardware`.
    pub fn change_pool(
        &self,
        name: &str,
        change: &PoolChange,
        asked: impl Into<Asked>,
    ) -> Result<Outcome> {
        self.mutate(asked, |tx, now| {
            let pool = find(now, name)?;
            let level = match &change.level {
                Some(name) => levels::find(now, name)?,
                None => &pool.level,
            };
            let qos = change.qos.unwrap_or_else(|| pool.model.qos());
            let asked = Bought { rate: change.throughput, iops: change.iops };
            let bought = self.bought(&pool.name, qos, asked, pool.model.bought())?;
            let next = Pool {
                level: Arc::clone(level),
                size_bytes: change.size_bytes.unwrap_or(pool.size_bytes),
                model: Model::new(qos, level.contract, bought),
                ..Pool::clone(pool)
            };
            if next.size_bytes != pool.size_bytes {
                self.check_pool_size(next.size_bytes)?;
            }
            let carried = || {
                let volumes = now.volumes_of(pool.id);
                volumes.map(|volume| (volume, volume.carried(pool, &next)))
            };
            let demands = carried().map(|(volume, terms)| terms.demand(volume.quota_bytes));
            let contract = next.contract();
            contract
                .check_bought(self.floors(pool, &next))
                .and_then(|()| contract.check(demands))
                .map_err(|rule| CatalogError::Infeasible { pool: pool.name.clone(), rule })?;
            let Bought { rate, iops } = next.model.bought();
            tx.execute(
                "UPDATE pools SET level = ?2, size_bytes = ?3, qos = ?4, throughput = ?5, iops = ?6
                 WHERE id = ?1",
                params![
                    pool.id.0,
                    next.level.name,
                    next.size_bytes,
                    qos.name(),
                    rate.map(|rate| rate.0),
                    iops.map(|iops| iops.0)
                ],
            )?;
            for (volume, terms) in carried() {
                rows::store_terms(tx, volume.id, &terms)?;
            }
            Ok(Touched::Everything)
        })
    }

    /// Deletes a pool that has no volumes, and its directory where Weir made it and nothing else
    /// is in it.
    ///
    /// # Errors
    /// `NoSuch`, `PoolNotEmpty`.
    pub fn delete_pool(&self, name: &str, mode: Mode) -> Result<Outcome> {
        let mut gone = None;
        let outcome = self.mutate(mode, |tx, now| {
            let pool = find(now, name)?;
            // Trees of volumes that belong to another pool count too: they would be lost here.
            let strays = now.volumes().filter(|volume| places::is_stray_in(now, volume, pool));
            let volumes = now.volumes_of(pool.id).count() + strays.count();
            if volumes > 0 {
                return Err(CatalogError::PoolNotEmpty { pool: name.to_owned(), volumes });
            }
            tx.execute("DELETE FROM pools WHERE id = ?1", [pool.id.0])?;
            gone = Some(Arc::clone(pool));
            Ok(Touched::Everything)
        })?;
        if let (true, Some(pool)) = (mode.commits(), gone.filter(|pool| pool.ceph.is_none())) {
            let is_default = pool.directory.starts_with(self.directory());
            self.devices().forget_pool(&pool.directory);
            // Not if it is not mounted, or another server uses it.
            if self.claims().hold(&pool.directory).is_ok() {
                directory::release_pool(&pool.directory, self.instance(), is_default);
            }
            self.claims().release(&pool.directory);
        }
        Ok(outcome)
    }

    /// Releases the directory of a pool that was deleted while trees of its volumes were still
    /// being removed, once `tree`, the last of them, is removed. Does nothing if a pool uses the
    /// directory.
    pub fn release_emptied(&self, tree: &Path) {
        let Some(path) = tree.parent().and_then(Path::parent) else { return };
        let release = |_: &Connection| {
            // Pools are created under the same lock, so none can be created in between.
            let is_here = |pool: &Arc<Pool>| pool.ceph.is_none() && pool.directory == path;
            let lives = self.snapshot().pools().any(is_here);
            if !lives && directory::is_marked_by(path, self.instance()) {
                if self.claims().hold(path).is_ok() {
                    let is_default = path.starts_with(self.directory());
                    directory::release_pool(path, self.instance(), is_default);
                }
                self.claims().release(path);
            }
            Ok(())
        };
        // The call only fails where `release` does.
        let _never = self.read(release);
    }

    /// The figures that a pool of the model `qos` purchases: those `asked` for, or those it `has`,
    /// or the minimum rate and the operations that are the default of the rate.
    fn bought(&self, pool: &str, qos: Qos, asked: Bought, has: Bought) -> Result<Bought> {
        let refused = |what| CatalogError::NotBought { pool: pool.to_owned(), qos, what };
        let floors = self.minimums().custom;
        let least = match qos {
            Qos::Flexible => Model::FLEXIBLE_RATE_MIN,
            Qos::Custom => floors.rate,
            _ if asked.rate.is_some() => return Err(refused("throughput")),
            _ if asked.iops.is_some() => return Err(refused("IOPS")),
            _ => return Ok(Bought::default()),
        };
        if qos == Qos::Flexible && asked.iops.is_some() {
            return Err(refused("IOPS"));
        }
        let rate = asked.rate.or(has.rate).unwrap_or(least);
        let default = |rate| Model::iops_with(rate).max(floors.iops);
        let was_default = |iops: &Iops| {
            has.rate.is_some_and(|rate| [default(rate), Model::iops_with(rate)].contains(iops))
        };
        let own = has.iops.filter(|iops| asked.rate.is_none() || !was_default(iops));
        let iops = asked.iops.or(own).unwrap_or_else(|| default(rate));
        Ok(Bought { rate: Some(rate), iops: Some(iops) })
    }

    /// The minimums for `next`: figures that it keeps of `pool` were above the minimum when they
    /// were purchased.
    fn floors(&self, pool: &Pool, next: &Pool) -> Floors {
        let mut floors = self.minimums().custom;
        let (had, has) = (pool.model.bought(), next.model.bought());
        if has.rate == had.rate {
            floors.rate = had.rate.map_or(floors.rate, |rate| rate.min(floors.rate));
        }
        if has.iops == had.iops {
            floors.iops = had.iops.map_or(floors.iops, |iops| iops.min(floors.iops));
        }
        floors
    }

    fn check_pool_size(&self, asked: u64) -> Result<()> {
        let (min, max) = (self.minimums().pool_bytes, SIZE_BYTES_MAX);
        if (min..=max).contains(&asked) {
            return Ok(());
        }
        Err(CatalogError::Size { thing: Thing::Pool, asked, min, max })
    }
}

/// The pool of this name.
pub(crate) fn find<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Pool>> {
    now.pool_named(name)
        .ok_or_else(|| CatalogError::NoSuch { thing: Thing::Pool, name: names::printable(name) })
}
