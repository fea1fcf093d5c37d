//! Making, changing and deleting volumes. Of their trees only the empty top is made here: a deleted
//! volume's is *condemned*, and whoever removes it says so when it is done.

use crate::catalog::{Asked, Catalog, Mode, Outcome};
use crate::error::{
    CEILING_IOPS, CEILING_RATE, CatalogError, FILE_CEILING_IOPS, FILE_CEILING_RATE, Result, Thing,
};
use crate::limits::{
    FILE_IOPS_MIN, FILE_RATE_MIN, IOPS_MAX, RATE_MAX, SIZE_BYTES_MAX, VOLUMES_MAX,
};
use crate::model::{ExportRule, Pool, Snapshot, Volume};
use crate::rows;
use crate::{directory, names, places, pools};
use rusqlite::{Transaction, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::VolumeId;
use weir_qos::Ceiling;
use weir_qos::burst;
use weir_qos::contract::{Infeasible, Terms};
use weir_qos::rate::{BytesPerSecond, Iops};
use weir_qos::shares::Share;

/// A volume to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewVolume {
    /// The volume's name.
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    /// The provisioned size, in bytes.
    pub quota_bytes: u64,
    /// The volume's rate; in pools that give rates, and only there. In a shared pool the part that
    /// is certain, or zero.
    pub throughput: Option<BytesPerSecond>,
    /// The volume's operations a second; in a custom pool only, and there by its part of the pool's
    /// rate if not given.
    pub iops: Option<Iops>,
    /// The most that it may use, whatever its contract comes to.
    pub ceiling: Ceiling,
    /// The most that each of its files may use.
    pub file_ceiling: Ceiling,
    /// The volume's weight beside the others, in a shared pool and only there; 100 if not given.
    pub weight: Option<u32>,
}

/// The fields of a volume to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeChange {
    /// The name of the pool to move to. In an auto pool its limit is what its quota buys there; in
    /// one that gives rates it keeps the rate it has, and between custom pools its operations,
    /// unless it is given others.
    pub pool: Option<String>,
    /// The provisioned size, bytes.
    pub quota_bytes: Option<u64>,
    /// The rate; in pools that give rates only. In a shared pool what it has for certain, or zero.
    pub throughput: Option<BytesPerSecond>,
    /// The operations a second; in a custom pool only. `Some(None)` takes them away again, so that
    /// it has its part of the pool's.
    pub iops: Option<Option<Iops>>,
    /// The rate it may use at most, whatever its contract comes to; `Some(None)` takes the ceiling
    /// away.
    pub ceiling_rate: Option<Option<BytesPerSecond>>,
    /// The operations a second it may use at most; `Some(None)` takes the ceiling away.
    pub ceiling_iops: Option<Option<Iops>>,
    /// The rate that each of its files may use at most; `Some(None)` takes the ceiling away.
    pub file_rate: Option<Option<BytesPerSecond>>,
    /// The operations a second that each of its files may use at most; `Some(None)` takes the
    /// ceiling away.
    pub file_iops: Option<Option<Iops>>,
    /// The volume's weight beside the others; in a shared pool only.
    pub weight: Option<u32>,
}

/// The tree of a deleted volume, which is still to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condemned {
    /// The volume that was.
    pub volume: VolumeId,
    /// The tree's directory.
    pub directory: PathBuf,
}

impl Catalog {
    /// Makes a volume with the default export rules, and its directory.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `NoSuch` (pool), `Size`, `TooMany`, `ThroughputInAuto`,
    /// `ThroughputMissing`, `IopsNotGiven`, `CeilingBounds`, `Infeasible`, `BeyondHardware`,
    /// `PoolAway`, `PoolForeign`, `PoolBusy`, `BadPath`, `Io`.
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
            check_contract(now, pool, None, new.quota_bytes, (new.throughput, new.iops))?;
            check_ceilings(new.ceiling, new.file_ceiling)?;
            check_weight(pool, new.weight)?;
            tx.execute(
                "INSERT INTO volumes (name, pool, quota_bytes, throughput, ceiling_throughput, ceiling_iops, iops,
                 weight, file_throughput, file_iops) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    new.name,
                    pool.id.0,
                    new.quota_bytes,
                    new.throughput.filter(|&rate| rate > BytesPerSecond::ZERO).map(|rate| rate.0),
                    new.ceiling.rate.map(|rate| rate.0),
                    new.ceiling.iops.map(|iops| iops.0),
                    new.iops.map(|iops| iops.0),
                    new.weight,
                    new.file_ceiling.rate.map(|rate| rate.0),
                    new.file_ceiling.iops.map(|iops| iops.0)
                ],
            )?;
            let id = u32::try_from(tx.last_insert_rowid())
                .map_err(|_| CatalogError::TooMany { thing: Thing::Volume, max: VOLUMES_MAX })?;
            rows::store_exports(tx, VolumeId(id), &ExportRule::defaults())?;
            now.check_pool(pool)?;
            Ok((Arc::clone(pool), VolumeId(id)))
        };
        self.mutate_and(asked, decide, |(pool, id), _| {
            self.claims().hold(&pool.directory)?;
            directory::make_volume(&rows::place(&pool, id))
        })
    }

    /// Changes a volume's quota, rate, ceilings or pool, all at once. `used_bytes` is what it
    /// holds, if that is known. A volume that moves keeps its files, its clients and its id; its
    /// tree is renamed into the directory of its new pool.
    ///
    /// # Errors
    /// `NoSuch`, `Size`, `QuotaBelowUsed`, `UsageUnknown`, `ThroughputInAuto`, `IopsNotGiven`,
    /// `CeilingBounds`, `Infeasible`, `BeyondHardware`; for a move also `OtherFileSystem`,
    /// `PoolAway`, `PoolForeign`, `PoolBusy`, `VolumeAway`, `BadPath`, `Io`.
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
            if change.iops.is_some() && !pool.qos.buys_iops() && !pool.qos.provisions() {
                return Err(CatalogError::IopsNotGiven { pool: pool.name.clone(), qos: pool.qos });
            }
            let moves = pool.id != old_pool.id;
            let quota_bytes = change.quota_bytes.unwrap_or(volume.quota_bytes);
            let kept = pools::kept(volume, old_pool, pool);
            let throughput = change.throughput.or(pools::given(pool.qos, kept));
            let iops = change.iops.unwrap_or(kept.manual_iops);
            let ceiling = Ceiling {
                rate: change.ceiling_rate.unwrap_or(volume.ceiling.rate),
                iops: change.ceiling_iops.unwrap_or(volume.ceiling.iops),
            };
            let file_ceiling = Ceiling {
                rate: change.file_rate.unwrap_or(volume.file_ceiling.rate),
                iops: change.file_iops.unwrap_or(volume.file_ceiling.iops),
            };
            if quota_bytes != volume.quota_bytes {
                self.check_volume_size(quota_bytes)?;
            }
            if quota_bytes < volume.quota_bytes {
                check_usage(&volume.name, quota_bytes, used_bytes)?;
            }
            check_contract(now, pool, Some(volume.id), quota_bytes, (throughput, iops))?;
            check_ceilings(ceiling, file_ceiling)?;
            check_weight(pool, change.weight)?;
            let kept_weight = volume.share.filter(|_| pool.qos.shares()).map(|share| share.weight);
            tx.execute(
                "UPDATE volumes SET quota_bytes = ?2, throughput = ?3, pool = ?4,
                 ceiling_throughput = ?5, ceiling_iops = ?6, iops = ?7, weight = ?8,
                 file_throughput = ?9, file_iops = ?10 WHERE id = ?1",
                params![
                    volume.id.0,
                    quota_bytes,
                    throughput.filter(|&rate| rate > BytesPerSecond::ZERO).map(|rate| rate.0),
                    pool.id.0,
                    ceiling.rate.map(|rate| rate.0),
                    ceiling.iops.map(|iops| iops.0),
                    iops.map(|iops| iops.0),
                    change.weight.or(kept_weight),
                    file_ceiling.rate.map(|rate| rate.0),
                    file_ceiling.iops.map(|iops| iops.0)
                ],
            )?;
            if !moves {
                return Ok(None);
            }
            places::check(now, volume, old_pool, pool)?;
            Ok(Some((Arc::clone(volume), Arc::clone(old_pool), Arc::clone(pool))))
        };
        let outcome = self.mutate_and(asked, decide, |move_of, now| {
            let Some((volume, old_pool, pool)) = move_of else { return Ok(()) };
            let target = rows::place(&pool, volume.id);
            places::carry_out(now, &volume, &old_pool, &pool)?;
            moved = Some((target.clone(), volume.directory.clone()));
            places::sync(&volume.directory, &target)
        });
        if let (Err(_), Some((now, before))) = (&outcome, moved) {
            // The change isn't on disk. Where this fails too, the next start puts it back.
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
            tx.execute("DELETE FROM volumes WHERE id = ?1", [volume.id.0])?;
            tx.execute(
                "INSERT INTO condemned VALUES (?1, ?2)",
                params![volume.id.0, tree.to_string_lossy()],
            )?;
            Ok(())
        })
    }

    /// The trees that are still to be removed.
    ///
    /// # Errors
    /// `Database`.
    pub fn condemned(&self) -> Result<Vec<Condemned>> {
        self.read(|db| {
            let mut query =
                db.prepare("SELECT volume, directory FROM condemned ORDER BY volume")?;
            let rows = query.query_map([], |row| {
                let directory: String = row.get(1)?;
                Ok(Condemned { volume: VolumeId(row.get(0)?), directory: directory.into() })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Is the directory of a condemned tree still that of a pool of ours, and nobody else's? Not
    /// where its file system isn't mounted, somebody else's is, or another server works in it: then
    /// nothing there may be removed.
    #[must_use]
    pub fn may_remove(&self, condemned: &Condemned) -> bool {
        let pool = condemned.directory.parent().and_then(Path::parent);
        pool.is_some_and(|pool| {
            directory::is_marked_by(pool, self.instance()) && self.claims().hold(pool).is_ok()
        })
    }

    /// Forgets a condemned tree that has been removed.
    ///
    /// # Errors
    /// `Database`.
    pub fn forget_condemned(&self, volume: VolumeId) -> Result<()> {
        self.read(|db| {
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

/// The rate and the operations that a volume is given.
type Given = (Option<BytesPerSecond>, Option<Iops>);

fn check_ceilings(volume: Ceiling, file: Ceiling) -> Result<()> {
    let rate = |field, of: Ceiling, least| (field, of.rate.map(|rate| rate.0), least, RATE_MAX.0);
    let iops = |field, of: Ceiling, least| (field, of.iops.map(|iops| iops.0), least, IOPS_MAX.0);
    for (field, asked, least, max) in [
        rate(CEILING_RATE, volume, 1),
        iops(CEILING_IOPS, volume, 1),
        rate(FILE_CEILING_RATE, file, FILE_RATE_MIN.0),
        iops(FILE_CEILING_IOPS, file, FILE_IOPS_MIN.0),
    ] {
        if let Some(asked) = asked.filter(|asked| !(least..=max).contains(asked)) {
            return Err(CatalogError::CeilingBounds { field, asked, least, max });
        }
    }
    Ok(())
}

fn check_weight(pool: &Pool, weight: Option<u32>) -> Result<()> {
    match weight {
        Some(_) if !pool.qos.shares() => {
            Err(CatalogError::NotShared { pool: pool.name.clone(), qos: pool.qos })
        }
        Some(asked) if !(1..=Share::WEIGHT_MAX).contains(&asked) => {
            Err(CatalogError::Weight { asked, max: Share::WEIGHT_MAX })
        }
        _ => Ok(()),
    }
}

/// Does `pool` carry a volume of these terms beside its others? `this` is the volume itself, if
/// it exists already.
fn check_contract(
    now: &Snapshot,
    pool: &Pool,
    this: Option<VolumeId>,
    quota_bytes: u64,
    (throughput, iops): Given,
) -> Result<()> {
    let others = now.volumes_of(pool.id).filter(|other| Some(other.id) != this);
    let others = others.map(|other| other.terms());
    let contract = pool.contract();
    let infeasible = |rule| CatalogError::Infeasible { pool: pool.name.clone(), rule };
    if iops.is_some() && !pool.qos.buys_iops() && !pool.qos.provisions() {
        return Err(CatalogError::IopsNotGiven { pool: pool.name.clone(), qos: pool.qos });
    }
    if pool.qos.provisions() && throughput == Some(BytesPerSecond::ZERO) {
        let (least, most) = burst::V2_RATE.into_inner();
        return Err(infeasible(Infeasible::ProvisionedRate {
            asked: BytesPerSecond::ZERO,
            least,
            most,
        }));
    }
    match (contract.budget().filter(|_| pool.qos.gives_rates()), throughput) {
        (None, Some(_)) if !pool.qos.provisions() && !pool.qos.shares() => {
            Err(CatalogError::ThroughputInAuto { pool: pool.name.clone(), qos: pool.qos })
        }
        (Some(budget), None) => {
            let manual_rate = budget.rate;
            let most = Terms { quota_bytes, manual_rate, manual_iops: iops };
            let missing = |free: BytesPerSecond| CatalogError::ThroughputMissing {
                pool: pool.name.clone(),
                free: free.0,
            };
            match contract.check_volume(others, most) {
                Err(rule @ Infeasible::Quota { .. }) => Err(infeasible(rule)),
                Err(Infeasible::Throughput { free, .. }) => Err(missing(free)),
                _ => Err(missing(manual_rate)),
            }
        }
        _ => {
            let manual_rate = throughput.unwrap_or_default();
            let asked = Terms { quota_bytes, manual_rate, manual_iops: iops };
            contract.check_volume(others, asked).map_err(infeasible)
        }
    }
}
