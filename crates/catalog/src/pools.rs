//! Making, changing and deleting capacity pools.

use crate::catalog::{Catalog, Mode, Outcome};
use crate::error::{CatalogError, Result, Thing};
use crate::limits::{POOLS_MAX, SIZE_BYTES_MAX};
use crate::model::{Pool, Snapshot};
use crate::rows::{capacity, terms};
use crate::{directory, levels, names, places};
use rusqlite::params;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::PoolId;
use weir_qos::contract::Qos;

/// A pool to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPool {
    /// Its name.
    pub name: String,
    /// The name of its service level.
    pub level: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its contract model.
    pub qos: Qos,
    /// An absolute path for its volumes; none for a place under the data directory.
    pub directory: Option<PathBuf>,
}

/// What is to change about a pool; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// The name of the service level.
    pub level: Option<String>,
    /// The size, bytes.
    pub size_bytes: Option<u64>,
    /// The contract model. Going manual, each volume keeps the limit it has; going auto, each
    /// gets what its quota buys.
    pub qos: Option<Qos>,
}

impl Catalog {
    /// Makes a pool and its directory.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `NoSuchLevel`, `Size`, `TooMany`, `BadPath`, `PoolBusy`, `Io`.
    pub fn create_pool(&self, new: &NewPool, mode: Mode) -> Result<Outcome> {
        names::check(Thing::Pool, &new.name)?;
        self.check_pool_size(new.size_bytes)?;
        self.mutate(mode, |tx, now| {
            if now.pool_named(&new.name).is_some() {
                return Err(CatalogError::NameTaken { thing: Thing::Pool, name: new.name.clone() });
            }
            if now.pools().count() >= POOLS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Pool, max: POOLS_MAX });
            }
            let level = levels::find(now, &new.level)?;
            if let Some(path) = &new.directory {
                let others = now.pools().map(|pool| (pool.name.as_str(), pool.directory.as_path()));
                directory::check_pool_path(path, others)?;
            }
            let path = new.directory.as_ref().map(|path| path.to_string_lossy().into_owned());
            tx.execute(
                "INSERT INTO pools (name, level, size_bytes, qos, directory) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![new.name, level.name, new.size_bytes, new.qos.name(), path],
            )?;
            let id = u32::try_from(tx.last_insert_rowid())
                .map_err(|_| CatalogError::TooMany { thing: Thing::Pool, max: POOLS_MAX })?;
            let default = || self.directory().join("pools").join(id.to_string());
            let path = new.directory.clone().unwrap_or_else(default);
            let is_live = |id| now.pool(PoolId(id)).is_some();
            directory::check_vacant(&path, self.instance(), is_live)?;
            match mode {
                Mode::Preview => Ok(()),
                Mode::Commit => self.claim_pool(&path, id),
            }
        })
    }

    /// Marks `path` as the directory of a new pool. The mark of a pool that was deleted may be there,
    /// which a copy of this data directory may still have.
    fn claim_pool(&self, path: &Path, pool: u32) -> Result<()> {
        if directory::is_marked_by(path, self.instance()) {
            self.claims().hold(path)?;
        }
        directory::claim_pool(path, self.instance(), pool)?;
        self.claims().hold(path)
    }

    /// Changes a pool's size, level or model, all at once.
    ///
    /// # Errors
    /// `NoSuch`, `NoSuchLevel`, `Size`, `Infeasible` where the pool as it is to be can't carry its volumes.
    pub fn change_pool(&self, name: &str, change: &PoolChange, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let pool = find(now, name)?;
            let level = match &change.level {
                Some(name) => levels::find(now, name)?,
                None => &pool.level,
            };
            let next = Pool {
                level: Arc::clone(level),
                size_bytes: change.size_bytes.unwrap_or(pool.size_bytes),
                qos: change.qos.unwrap_or(pool.qos),
                ..Pool::clone(pool)
            };
            if next.size_bytes != pool.size_bytes {
                self.check_pool_size(next.size_bytes)?;
            }
            // A volume's present limit is its rate if the pool goes manual, and is what it has
            // anyway if the pool stays so.
            let kept = |quota, limit| terms(quota, Some(limit));
            let volumes = now.volumes_of(pool.id);
            capacity(&next)
                .check(volumes.map(|volume| kept(volume.quota_bytes, volume.limit)))
                .map_err(|rule| CatalogError::Infeasible { pool: pool.name.clone(), rule })?;
            tx.execute(
                "UPDATE pools SET level = ?2, size_bytes = ?3, qos = ?4 WHERE id = ?1",
                params![pool.id.0, next.level.name, next.size_bytes, next.qos.name()],
            )?;
            let mut store = tx.prepare("UPDATE volumes SET throughput = ?2 WHERE id = ?1")?;
            for volume in now.volumes_of(pool.id) {
                let rate = (next.qos == Qos::Manual).then_some(volume.limit.0);
                store.execute(params![volume.id.0, rate])?;
            }
            Ok(())
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
            // Also trees that are here against the catalogue's word: nobody would look for them here.
            let strays = now.volumes().filter(|volume| places::is_stray_in(now, volume, pool));
            let volumes = now.volumes_of(pool.id).count() + strays.count();
            if volumes > 0 {
                return Err(CatalogError::PoolNotEmpty { pool: name.to_owned(), volumes });
            }
            tx.execute("DELETE FROM pools WHERE id = ?1", [pool.id.0])?;
            gone = Some(Arc::clone(pool));
            Ok(())
        })?;
        if let (Mode::Commit, Some(pool)) = (mode, gone) {
            let is_default = pool.directory.starts_with(self.directory());
            // Not where it isn't mounted, or another server works in it.
            if self.claims().hold(&pool.directory).is_ok() {
                directory::release_pool(&pool.directory, self.instance(), is_default);
            }
            self.claims().release(&pool.directory);
        }
        Ok(outcome)
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
