//! Custom service levels, beside the published ones that every catalogue has.

use crate::catalog::{Asked, Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, Result, Thing};
use crate::limits::{LEVEL_RATE_MAX, LEVELS_MAX};
use crate::model::Level;
use crate::names;
use crate::snapshot::Snapshot;
use rusqlite::params;
use std::sync::Arc;
use weir_qos::contract;
use weir_qos::rate::BytesPerSecond;

impl Catalog {
    /// Creates a level of `rate_per_tib`.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `LevelRate`, `TooMany`.
    pub fn create_level(
        &self,
        name: &str,
        rate_per_tib: BytesPerSecond,
        mode: Mode,
    ) -> Result<Outcome> {
        names::check(Thing::Level, name)?;
        check_rate(rate_per_tib)?;
        self.mutate(mode, |tx, now| {
            if now.level_named(name).is_some() {
                let name = name.to_owned();
                return Err(CatalogError::NameTaken { thing: Thing::Level, name });
            }
            if now.levels().filter(|level| !level.published).count() >= LEVELS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Level, max: LEVELS_MAX });
            }
            tx.execute("INSERT INTO levels VALUES (?1, ?2)", params![name, rate_per_tib.0])?;
            Ok(Touched::Everything)
        })
    }

    /// Changes the rate of a level, in all its pools at once.
    ///
    /// # Errors
    /// `NoSuch`, `LevelPublished`, `LevelRate`; `LevelTooSlow` where one of its pools would not
    /// carry its volumes, `BeyondHardware`.
    pub fn change_level(
        &self,
        name: &str,
        rate_per_tib: BytesPerSecond,
        asked: impl Into<Asked>,
    ) -> Result<Outcome> {
        let next = check_rate(rate_per_tib)?;
        self.mutate(asked, |tx, now| {
            let level = find_own(now, name)?;
            check_pools(now, level, next)?;
            tx.execute(
                "UPDATE levels SET rate_per_tib = ?2 WHERE name = ?1",
                params![level.name, rate_per_tib.0],
            )?;
            Ok(Touched::Everything)
        })
    }

    /// Deletes a level that no pool has.
    ///
    /// # Errors
    /// `NoSuch`, `LevelPublished`, `LevelInUse`.
    pub fn delete_level(&self, name: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let level = find_own(now, name)?;
            let pools = now.pools_of(level).count();
            if pools > 0 {
                return Err(CatalogError::LevelInUse { level: level.name.clone(), pools });
            }
            tx.execute("DELETE FROM levels WHERE name = ?1", [&level.name])?;
            Ok(Touched::Everything)
        })
    }
}

/// The level of this name.
pub(crate) fn find<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Level>> {
    now.level_named(name).ok_or_else(|| CatalogError::NoSuchLevel {
        name: names::printable(name),
        known: now.levels().map(|level| level.name.clone()).collect(),
    })
}

/// The custom level of this name, for a change.
fn find_own<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Level>> {
    let level = find(now, name)?;
    match level.published {
        true => Err(CatalogError::LevelPublished { level: level.name.clone() }),
        false => Ok(level),
    }
}

fn check_rate(asked: BytesPerSecond) -> Result<contract::Level> {
    let level = contract::Level::new(asked).filter(|_| asked <= LEVEL_RATE_MAX);
    level.ok_or(CatalogError::LevelRate { asked: asked.0, max: LEVEL_RATE_MAX.0 })
}

/// Checks whether the pools of `level` carry their volumes at the rate of `next`. The refusal names
/// the most demanding pool, so that the rate in the message is enough for all.
fn check_pools(now: &Snapshot, level: &Level, next: contract::Level) -> Result<()> {
    let refused = now.pools_of(level).filter_map(|pool| {
        let volumes = || now.volumes_of(pool.id).map(|volume| volume.demand());
        let then = contract::Pool { model: pool.model.at(next), ..pool.contract() };
        then.check(volumes()).is_err().then(|| (then.least_level(volumes()), pool))
    });
    match refused.max_by_key(|(least, _)| least.rate_per_tib()) {
        None => Ok(()),
        Some((least, pool)) => Err(CatalogError::LevelTooSlow {
            level: level.name.clone(),
            pool: pool.name.clone(),
            least: least.rate_per_tib().0,
        }),
    }
}
