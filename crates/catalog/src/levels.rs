//! Custom service levels, beside the published ones that every catalogue has.

use crate::catalog::{Asked, Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, CeilingOf, Result, Thing};
use crate::limits::{LEVEL_RATE_MAX, LEVELS_MAX, RATE_MAX};
use crate::model::Level;
use crate::names;
use crate::snapshot::Snapshot;
use rusqlite::params;
use std::sync::Arc;
use weir_qos::contract;
use weir_qos::rate::BytesPerSecond;

/// The figures of a level to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLevel {
    /// The rate for each TiB.
    pub rate_per_tib: BytesPerSecond,
    /// The most that one volume has; `None` if its quota alone decides.
    pub volume_ceiling: Option<BytesPerSecond>,
}

impl From<BytesPerSecond> for NewLevel {
    /// A level of this rate for each TiB, without a ceiling.
    fn from(rate_per_tib: BytesPerSecond) -> Self {
        Self { rate_per_tib, volume_ceiling: None }
    }
}

/// The figures of a level to change; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelChange {
    /// The rate for each TiB.
    pub rate_per_tib: Option<BytesPerSecond>,
    /// The most that one volume has; `Some(None)` removes it.
    pub volume_ceiling: Option<Option<BytesPerSecond>>,
}

impl From<BytesPerSecond> for LevelChange {
    /// Another rate for each TiB.
    fn from(rate_per_tib: BytesPerSecond) -> Self {
        Self { rate_per_tib: Some(rate_per_tib), volume_ceiling: None }
    }
}

impl Catalog {
    /// Creates a level.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `LevelRate`, `CeilingBounds`, `TooMany`.
    pub fn create_level(
        &self,
        name: &str,
        new: impl Into<NewLevel>,
        mode: Mode,
    ) -> Result<Outcome> {
        names::check(Thing::Level, name)?;
        let NewLevel { rate_per_tib, volume_ceiling } = new.into();
        check_figures(rate_per_tib, volume_ceiling)?;
        self.mutate(mode, |tx, now| {
            if now.level_named(name).is_some() {
                let name = name.to_owned();
                return Err(CatalogError::NameTaken { thing: Thing::Level, name });
            }
            if now.levels().filter(|level| !level.published).count() >= LEVELS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Level, max: LEVELS_MAX });
            }
            tx.execute(
                "INSERT INTO levels VALUES (?1, ?2, ?3)",
                params![name, rate_per_tib.0, volume_ceiling.map(|most| most.0)],
            )?;
            Ok(Touched::Everything)
        })
    }

    /// Changes the figures of a level, in all its pools at once.
    ///
    /// # Errors
    /// `NoSuch`, `LevelPublished`, `LevelRate`, `CeilingBounds`; `LevelTooSlow` where one of its
    /// pools would not carry its volumes, `BeyondHardware`.
    pub fn change_level(
        &self,
        name: &str,
        change: impl Into<LevelChange>,
        asked: impl Into<Asked>,
    ) -> Result<Outcome> {
        let change = change.into();
        self.mutate(asked, |tx, now| {
            let level = find_own(now, name)?;
            let rate_per_tib = change.rate_per_tib.unwrap_or(level.contract.rate_per_tib());
            let old = level.contract.ceiling().rate;
            let volume_ceiling = change.volume_ceiling.unwrap_or(old);
            let next = check_figures(rate_per_tib, volume_ceiling)?;
            check_pools(now, level, next)?;
            tx.execute(
                "UPDATE levels SET rate_per_tib = ?2, volume_ceiling = ?3 WHERE name = ?1",
                params![level.name, rate_per_tib.0, volume_ceiling.map(|most| most.0)],
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

fn check_figures(
    asked: BytesPerSecond,
    ceiling: Option<BytesPerSecond>,
) -> Result<contract::Level> {
    let level = contract::Level::new(asked).filter(|_| asked <= LEVEL_RATE_MAX);
    let level = level.ok_or(CatalogError::LevelRate { asked: asked.0, max: LEVEL_RATE_MAX.0 })?;
    let (of, least, max) = (CeilingOf::Level, 1, RATE_MAX.0);
    match ceiling {
        Some(asked) if !(least..=max).contains(&asked.0) => {
            Err(CatalogError::CeilingBounds { of, asked: asked.0, least, max })
        }
        _ => Ok(level.with_volume_ceiling(ceiling)),
    }
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
