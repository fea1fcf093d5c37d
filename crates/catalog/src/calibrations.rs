//! The measured capacity of file systems, with date and conditions. Kept as it was reported;
//! [`crate::admission`] decides which part of it may be promised.

use crate::calibration::{self, Calibration, Load, Measured};
use crate::catalog::{Asked, Catalog, Outcome, Touched};
use crate::error::{CatalogError, Result, Thing};
use crate::limits::{CALIBRATIONS_MAX, CELLS_MAX, CONDITION_CHARS_MAX, PATH_BYTES_MAX};
use crate::snapshot::Snapshot;
use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::sync::Arc;
use weir_qos::admission::Cell;
use weir_qos::rate::{BytesPerSecond, Iops};

impl Catalog {
    /// Keeps a calibration in the place of the one in its directory, and of those that are
    /// certainly of the same file system.
    ///
    /// # Errors
    /// `BadPlace`, `BadCalibration`, `TooMany`.
    pub fn keep_calibration(&self, new: &Calibration, asked: impl Into<Asked>) -> Result<Outcome> {
        check(new)?;
        let (asked, directory) = (asked.into(), &new.directory);
        // Disks are asked before anything is locked: one that hangs must not hold up other changes.
        let (now, devices) = (self.snapshot(), self.devices());
        let place = devices.measured(&now, directory).ok_or_else(|| {
            bad_place(
                directory,
                "a pool in this directory is not available: mount its file system first",
            )
        })?;
        let same = devices.of_same(&now, place);
        let replaced =
            |old: &&Arc<Calibration>| old.directory == *directory || same.contains(&old.directory);
        let mut had = None;
        let kept = self.mutate(asked, |tx, now| {
            for old in now.calibrations().filter(replaced) {
                calibration::remove(tx, &old.directory)?;
            }
            let others = now.calibrations().filter(|old| !replaced(old)).count();
            if others >= CALIBRATIONS_MAX {
                let (thing, max) = (Thing::Calibration, CALIBRATIONS_MAX);
                return Err(CatalogError::TooMany { thing, max });
            }
            had = Some(devices.set_measured(directory, Some(place)));
            calibration::store(tx, new)?;
            Ok(Touched::Everything)
        });
        if let Some(had) = had
            && (kept.is_err() || !asked.mode.commits())
        {
            devices.set_measured(directory, had);
        }
        kept
    }

    /// Forgets the calibration that was made in `directory`.
    ///
    /// # Errors
    /// `NoSuch`.
    pub fn forget_calibration(&self, directory: &str, asked: impl Into<Asked>) -> Result<Outcome> {
        self.mutate(asked, |tx, now| {
            let found = find(now, directory)?;
            calibration::remove(tx, &found.directory)?;
            Ok(Touched::Everything)
        })
    }
}

/// The calibration that was made in `directory`.
pub(crate) fn find<'a>(now: &'a Snapshot, directory: &str) -> Result<&'a Arc<Calibration>> {
    now.calibration_of(directory).ok_or_else(|| CatalogError::NoSuch {
        thing: Thing::Calibration,
        name: directory.chars().take(CONDITION_CHARS_MAX).collect(),
    })
}

fn bad_place(path: &Path, reason: &str) -> CatalogError {
    CatalogError::BadPlace { path: path.to_owned(), reason: reason.to_owned() }
}

fn check(new: &Calibration) -> Result<()> {
    let path = &new.directory;
    let bad_path = |reason: &str| bad_place(path, reason);
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(bad_path("the path must be absolute and without \"..\""));
    }
    if path.as_os_str().len() > PATH_BYTES_MAX
        || path.to_str().is_none_or(|text| text.contains('\0'))
    {
        return Err(bad_path("the path is too long, or not valid UTF-8"));
    }
    if !path.is_dir() {
        return Err(bad_path("it is not a directory"));
    }
    let bad = |reason: String| Err(CatalogError::BadCalibration(reason));
    if new.cells.is_empty() || new.cells.len() > CELLS_MAX {
        return bad(format!("it must have 1 to {CELLS_MAX} measurements"));
    }
    let mut seen = BTreeSet::new();
    for Measured { cell, mean_nanos, p99_nanos, server_cpu_nanos, .. } in &new.cells {
        let Cell { read_percent: mix, block_bytes: block, rate, iops } = *cell;
        if mix > 100 || block == 0 {
            return bad(format!("{mix} % reads with blocks of {block} bytes are not possible"));
        }
        if rate == BytesPerSecond::ZERO || iops == Iops(0) {
            return bad(format!(
                "the result for {mix} % reads with blocks of {block} bytes is zero"
            ));
        }
        let numbers = [rate.0, iops.0, *mean_nanos, *p99_nanos, server_cpu_nanos.unwrap_or(0)];
        if numbers.iter().any(|number| i64::try_from(*number).is_err()) {
            return bad("a value exceeds 2^63".to_owned());
        }
        if !seen.insert((mix, block)) {
            return bad(format!("{mix} % reads with blocks of {block} bytes appear twice"));
        }
    }
    let Load { millis, data_bytes, others_rate, others_iops, .. } = new.load;
    let numbers = [millis, data_bytes, others_rate.0, others_iops.0, new.machine.memory_bytes];
    if numbers.iter().any(|number| i64::try_from(*number).is_err()) {
        return bad("a value exceeds 2^63".to_owned());
    }
    Ok(())
}
