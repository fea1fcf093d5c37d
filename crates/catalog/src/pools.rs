//! Making, changing and deleting capacity pools.

use crate::catalog::{Asked, Catalog, Mode, Outcome};
use crate::error::{CatalogError, Result, Thing};
use crate::limits::{POOLS_MAX, SIZE_BYTES_MAX};
use crate::model::{Level, Pool, Snapshot, Volume};
use crate::{directory, levels, names, places};
use rusqlite::{Connection, Transaction, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::PoolId;
use weir_qos::contract::{self, Bought, Floors, Qos, Terms};
use weir_qos::rate::{BytesPerSecond, Iops};

/// A pool to be made.
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
    /// The rate that it buys apart from its size, in models that do; the least there is if not
    /// said.
    pub throughput: Option<BytesPerSecond>,
    /// The operations a second that it buys, in models that do; 16 for each MiB/s if not said.
    pub iops: Option<Iops>,
    /// An absolute path for its volumes; none for a place under the data directory.
    pub directory: Option<PathBuf>,
}

/// The fields of a pool to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// The name of the service level.
    pub level: Option<String>,
    /// The size, bytes.
    pub size_bytes: Option<u64>,
    /// The contract model. Going to one that gives rates, each volume keeps the one it has; going
    /// auto, each gets what its quota buys.
    pub qos: Option<Qos>,
    /// The rate that it buys apart from its size, in models that do. Operations that were as many
    /// as come with the rate before follow it, unless others are asked for.
    pub throughput: Option<BytesPerSecond>,
    /// The operations a second that it buys, in models that do.
    pub iops: Option<Iops>,
}

impl Catalog {
    /// Makes a pool and its directory.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `NoSuchLevel`, `Size`, `TooMany`, `NotBought`, `Infeasible` where it
    /// buys more or less than its model allows, `BeyondHardware`, `BadPath`, `PoolBusy`, `Io`.
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
            if let Some(path) = &new.directory {
                let others = now.pools().map(|pool| (pool.name.as_str(), pool.directory.as_path()));
                directory::check_pool_path(path, others)?;
            }
            let (throughput, iops) =
                self.bought(&new.name, new.qos, (new.throughput, new.iops), (None, None))?;
            contract(level, new.qos, new.size_bytes, (throughput, iops))
                .check_bought(self.minimums().custom)
                .map_err(|rule| CatalogError::Infeasible { pool: new.name.clone(), rule })?;
            let path = new.directory.as_ref().map(|path| path.to_string_lossy().into_owned());
            tx.execute(
                "INSERT INTO pools (name, level, size_bytes, qos, directory, throughput, iops)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    new.name,
                    level.name,
                    new.size_bytes,
                    new.qos.name(),
                    path,
                    throughput.map(|rate| rate.0),
                    iops.map(|iops| iops.0)
                ],
            )?;
            let id = u32::try_from(tx.last_insert_rowid())
                .map_err(|_| CatalogError::TooMany { thing: Thing::Pool, max: POOLS_MAX })?;
            let default = || self.directory().join("pools").join(id.to_string());
            let path = new.directory.clone().unwrap_or_else(default);
            let is_live = |id| now.pool(PoolId(id)).is_some();
            directory::check_vacant(&path, self.instance(), is_live)?;
            self.devices().expect_pool(&path);
            expected = Some(path.clone());
            Ok((path, id))
        };
        let made = self.mutate_and(asked, decide, |(path, id), _| self.claim_pool(&path, id));
        if let Some(path) = expected
            && (made.is_err() || !asked.mode.commits())
        {
            self.devices().forget_pool(&path);
        }
        made
    }

    /// Marks `path` as the directory of a new pool. The mark of a pool that was deleted may be
    /// there, which a copy of this data directory may still have.
    fn claim_pool(&self, path: &Path, pool: u32) -> Result<()> {
        if directory::is_marked_by(path, self.instance()) {
            self.claims().hold(path)?;
        }
        directory::claim_pool(path, self.instance(), pool)?;
        self.claims().hold(path)
    }

    /// Changes a pool's size, level, model or what it buys, all at once.
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
            let qos = change.qos.unwrap_or(pool.qos);
            let asked = (change.throughput, change.iops);
            let (throughput, iops) =
                self.bought(&pool.name, qos, asked, (pool.throughput, pool.iops))?;
            let next = Pool {
                level: Arc::clone(level),
                size_bytes: change.size_bytes.unwrap_or(pool.size_bytes),
                qos,
                throughput,
                iops,
                ..Pool::clone(pool)
            };
            if next.size_bytes != pool.size_bytes {
                self.check_pool_size(next.size_bytes)?;
            }
            next.contract()
                .check_bought(self.floors(pool, &next))
                .and_then(|()| {
                    let kept = |volume: &Arc<Volume>| kept(volume, pool, &next);
                    next.contract().check(now.volumes_of(pool.id).map(kept))
                })
                .map_err(|rule| CatalogError::Infeasible { pool: pool.name.clone(), rule })?;
            tx.execute(
                "UPDATE pools SET level = ?2, size_bytes = ?3, qos = ?4, throughput = ?5, iops = ?6
                 WHERE id = ?1",
                params![
                    pool.id.0,
                    next.level.name,
                    next.size_bytes,
                    next.qos.name(),
                    next.throughput.map(|rate| rate.0),
                    next.iops.map(|iops| iops.0)
                ],
            )?;
            let mut store = tx.prepare(
                "UPDATE volumes SET throughput = ?2, iops = ?3, weight = iif(?4, weight, NULL) WHERE id = ?1",
            )?;
            for volume in now.volumes_of(pool.id) {
                let terms = kept(volume, pool, &next);
                let rate = given(next.qos, terms).map(|rate| rate.0);
                let iops = terms.manual_iops.map(|iops| iops.0);
                store.execute(params![volume.id.0, rate, iops, next.qos.shares()])?;
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
            // Also trees that are here against the catalogue's word: nobody would look for them
            // here.
            let strays = now.volumes().filter(|volume| places::is_stray_in(now, volume, pool));
            let volumes = now.volumes_of(pool.id).count() + strays.count();
            if volumes > 0 {
                return Err(CatalogError::PoolNotEmpty { pool: name.to_owned(), volumes });
            }
            tx.execute("DELETE FROM pools WHERE id = ?1", [pool.id.0])?;
            gone = Some(Arc::clone(pool));
            Ok(())
        })?;
        if let (true, Some(pool)) = (mode.commits(), gone) {
            let is_default = pool.directory.starts_with(self.directory());
            self.devices().forget_pool(&pool.directory);
            // Not where it isn't mounted, or another server works in it.
            if self.claims().hold(&pool.directory).is_ok() {
                directory::release_pool(&pool.directory, self.instance(), is_default);
            }
            self.claims().release(&pool.directory);
        }
        Ok(outcome)
    }

    /// Gives back the directory of a pool that was deleted while trees of its volumes were still
    /// being removed, once `tree`, the last of them, is gone. Does nothing where a pool lives
    /// there.
    pub fn release_emptied(&self, tree: &Path) {
        let Some(path) = tree.parent().and_then(Path::parent) else { return };
        let release = |_: &Connection| {
            // Pools are made under the same lock, so none comes in between.
            let lives = self.snapshot().pools().any(|pool| pool.directory == path);
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

    /// The figures that a pool of the model `qos` buys: those asked for, or else those it `has`, or
    /// else the least rate and the operations that come with it.
    fn bought(&self, pool: &str, qos: Qos, asked: Buys, has: Buys) -> Result<Buys> {
        let refused = |what| CatalogError::NotBought { pool: pool.to_owned(), qos, what };
        if asked.0.is_some() && !qos.buys_rate() {
            return Err(refused("throughput"));
        }
        if asked.1.is_some() && !qos.buys_iops() {
            return Err(refused("IOPS"));
        }
        let floors = self.minimums().custom;
        let least = match qos {
            Qos::Custom => floors.rate,
            _ => Bought::FLEXIBLE_RATE_MIN,
        };
        let rate = asked.0.or(has.0).unwrap_or(least);
        let default = |rate| Bought::iops_with(rate).max(floors.iops);
        let comes_with = |iops: &Iops| {
            has.0.is_some_and(|rate| [default(rate), Bought::iops_with(rate)].contains(iops))
        };
        let own = has.1.filter(|iops| asked.0.is_none() || !comes_with(iops));
        let iops = asked.1.or(own).unwrap_or_else(|| default(rate));
        Ok((qos.buys_rate().then_some(rate), qos.buys_iops().then_some(iops)))
    }

    /// The least that `next` has to buy: what it keeps of `pool` was enough when it was bought.
    fn floors(&self, pool: &Pool, next: &Pool) -> Floors {
        let mut floors = self.minimums().custom;
        if next.throughput == pool.throughput {
            floors.rate = pool.throughput.map_or(floors.rate, |rate| rate.min(floors.rate));
        }
        if next.iops == pool.iops {
            floors.iops = pool.iops.map_or(floors.iops, |iops| iops.min(floors.iops));
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

/// A rate and operations that a pool buys apart from its size.
type Buys = (Option<BytesPerSecond>, Option<Iops>);

fn contract(level: &Level, qos: Qos, size_bytes: u64, bought: Buys) -> contract::Pool {
    let (rate, iops) = (bought.0.unwrap_or_default(), bought.1.unwrap_or_default());
    contract::Pool { level: level.contract, qos, size_bytes, bought: Bought { rate, iops } }
}

/// The terms of a volume of `old` as its pool becomes `next`: in a model that gives rates it keeps
/// the rate that it has, and its operations where both give those.
pub(crate) fn kept(volume: &Volume, old: &Pool, next: &Pool) -> Terms {
    let quota_bytes = volume.quota_bytes;
    if next.qos.provisions() {
        // The limits that it provisions itself, or those recommended for its size.
        return match old.qos.provisions() {
            true => volume.terms(),
            false => Terms { quota_bytes, manual_rate: BytesPerSecond::ZERO, manual_iops: None },
        };
    }
    let stays = old.qos.buys_iops() && next.qos.buys_iops();
    let manual_rate = old.contract().given(volume.terms()).rate;
    Terms { quota_bytes, manual_rate, manual_iops: volume.iops.filter(|_| stays) }
}

/// The rate of such terms that is the volume's own under the model `qos`.
pub(crate) fn given(qos: Qos, terms: Terms) -> Option<BytesPerSecond> {
    let chooses = qos.provisions() || qos.shares();
    let chosen = chooses && terms.manual_rate > BytesPerSecond::ZERO;
    (qos.gives_rates() || chosen).then_some(terms.manual_rate)
}

/// The pool of this name.
pub(crate) fn find<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Pool>> {
    now.pool_named(name)
        .ok_or_else(|| CatalogError::NoSuch { thing: Thing::Pool, name: names::printable(name) })
}
