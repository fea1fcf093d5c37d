//! Admission of changes by the capacity of the hardware. The arithmetic is in
//! [`weir_qos::admission`], the commitment of each file system in `placement`.

use crate::catalog::{Asked, Catalog};
use crate::error::{CatalogError, Result};
use crate::overcommitment::Overcommitment;
use crate::snapshot::Snapshot;
use weir_qos::admission::{Committed, Policy};

impl Catalog {
    /// The overcommitment of a change from `before` to `after`.
    ///
    /// # Errors
    /// `BeyondHardware` where that is refused.
    pub(crate) fn admit(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        asked: Asked,
    ) -> Result<Vec<Overcommitment>> {
        let admission = self.admission();
        if admission.policy == Policy::Off {
            return Ok(Vec::new());
        }
        let judged = after.filesystems().iter().map(|there| {
            let was = before.filesystems().iter().find(|was| was.place == there.place);
            let was = was.map_or_else(Committed::default, |was| was.committed);
            let excess = admission.judge(was, there.committed, there.holds);
            Overcommitment { directory: there.directory.clone(), excess, admission }
        });
        let mut beyond: Vec<_> = judged.filter(|one| !one.excess.is_none()).collect();
        if admission.policy == Policy::Refuse && !asked.overcommit && !beyond.is_empty() {
            return Err(CatalogError::BeyondHardware(Box::new(beyond.swap_remove(0))));
        }
        Ok(beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::{CALIBRATION_POOL, Calibration, Load, Machine, Measured};
    use crate::{Mode, NewPool, NewVolume, Plan, Qos, VolumeChange};
    use std::path::Path;
    use weir_qos::admission::{Admission, Beyond, Cell, Excess, Holds};
    use weir_qos::rate::{BytesPerSecond, Iops};

    const TIB: u64 = 1 << 40;

    fn calibration(directory: &Path, mib: u64) -> Calibration {
        let rate = BytesPerSecond::from_mib(mib);
        let cell = Cell { read_percent: 0, block_bytes: 65_536, rate, iops: Iops(mib * 16) };
        let (mean_nanos, p99_nanos, server_cpu_nanos) = (1000, 2000, Some(3));
        let cells =
            vec![Measured { cell, mean_nanos, p99_nanos, server_cpu_nanos, saturated: false }];
        let (load, machine) = (Load::default(), Machine::default());
        Calibration { directory: directory.to_owned(), at: 7, cells, load, machine }
    }

    /// Two pools at 16 MiB/s for each TiB, on two file systems.
    fn two_disks(base: &Path) -> Catalog {
        let catalog = Catalog::open(&base.join("data")).unwrap();
        for (place, name) in ["a", "b"].into_iter().enumerate() {
            let pool = NewPool {
                name: name.into(),
                level: "standard".into(),
                size_bytes: 100 * TIB,
                directory: Some(base.join(name)),
                ..NewPool::default()
            };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            catalog.devices().pretend(&base.join(name), 1000 + place as u64);
        }
        catalog.admitting(Admission::default())
    }

    fn volume(name: &str, pool: &str, tebibytes: u64) -> NewVolume {
        let (name, pool) = (name.to_owned(), pool.to_owned());
        NewVolume { name, pool, quota_bytes: tebibytes * TIB, ..NewVolume::default() }
    }

    #[test]
    fn each_file_system_is_held_to_what_it_holds_and_to_no_other() {
        let base = tempfile::tempdir().unwrap();
        let catalog = two_disks(base.path());
        // Of a directory on the second disk that is no pool's.
        let aside = base.path().join("aside");
        std::fs::create_dir(&aside).unwrap();
        catalog.keep_calibration(&calibration(&aside, 48), Mode::Commit).unwrap();
        catalog.devices().pretend(&aside, 1001);
        let catalog = catalog.admitting(Admission::default());
        let snapshot = catalog.snapshot();
        let [plain, calibrated] = snapshot.filesystems() else { panic!("{snapshot:?}") };
        assert_eq!((&calibrated.directory, calibrated.pools.len()), (&aside, 1));
        assert_eq!((&plain.directory, plain.holds), (&base.path().join("a"), Holds::default()));
        // The first disk was not measured, so nothing is refused there.
        catalog.create_volume(&volume("v", "a", 50), Mode::Commit).unwrap();
        catalog.create_volume(&volume("w", "b", 3), Mode::Commit).unwrap();
        let refused = catalog.create_volume(&volume("x", "b", 1), Mode::Commit).unwrap_err();
        assert_eq!(refused.code(), "hardware_exceeded");
        let message = refused.to_string();
        for part in ["64 MiB/s (now 48 MiB/s)", "capacity is 48 MiB/s", "64 KiB", "--overcommit"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(message.contains(&aside.display().to_string()), "{message}");
        assert!(!base.path().join("b/volumes/3").exists(), "nothing was made");
        // Moving from one pool to another on the same disk commits nothing more.
        let pool = NewPool {
            name: "c".into(),
            level: "standard".into(),
            size_bytes: 100 * TIB,
            directory: Some(base.path().join("c")),
            ..NewPool::default()
        };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        catalog.devices().pretend(&base.path().join("c"), 1001);
        let catalog = catalog.admitting(Admission::default());
        std::fs::create_dir(base.path().join("b/volumes/2/root")).unwrap();
        let to = |pool: &str| VolumeChange { pool: Some(pool.into()), ..VolumeChange::default() };
        catalog.change_volume("w", &to("c"), None, Mode::Commit).unwrap();
        assert!(base.path().join("c/volumes/2/root").is_dir());
        // And to a disk that holds less than both have, it is refused before anything is moved.
        std::fs::create_dir(base.path().join("a/volumes/1/root")).unwrap();
        let refused = catalog.change_volume("v", &to("c"), None, Mode::Commit).unwrap_err();
        assert_eq!(refused.code(), "hardware_exceeded");
        assert!(base.path().join("a/volumes/1/root").is_dir());
    }

    #[test]
    fn one_file_system_has_one_calibration_the_last() {
        let base = tempfile::tempdir().unwrap();
        let catalog = two_disks(base.path());
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        let aside = base.path().join("aside");
        std::fs::create_dir(&aside).unwrap();
        catalog.devices().pretend(&aside, 1000);
        let kept = || {
            let snapshot = catalog.snapshot();
            snapshot.calibrations().map(|one| one.directory.clone()).collect::<Vec<_>>()
        };
        catalog.keep_calibration(&calibration(&aside, 48), Mode::Commit).unwrap();
        // A change that is only shown, or refused, changes nothing.
        catalog.keep_calibration(&calibration(&a, 50), Mode::Preview).unwrap();
        catalog.devices().pretend(&b, 1000);
        catalog.keep_calibration(&calibration(&b, 50), Mode::Preview).unwrap();
        assert_eq!(kept(), std::slice::from_ref(&aside));
        catalog.devices().pretend(&b, 1001);
        catalog.keep_calibration(&calibration(&a, 50), Mode::Commit).unwrap();
        assert_eq!(kept(), std::slice::from_ref(&a), "it took the place of the other");
        catalog.keep_calibration(&calibration(&b, 60), Mode::Commit).unwrap();
        assert_eq!(kept(), [a, b]);
    }

    #[test]
    fn what_is_no_longer_what_was_measured_keeps_its_calibration() {
        let base = tempfile::tempdir().unwrap();
        let catalog = two_disks(base.path());
        let (a, aside) = (base.path().join("a"), base.path().join("aside"));
        std::fs::create_dir(&aside).unwrap();
        catalog.devices().pretend(&aside, 1000);
        catalog.keep_calibration(&calibration(&aside, 48), Mode::Commit).unwrap();
        // Another directory of this name, and then none at all.
        std::fs::rename(&aside, base.path().join("before")).unwrap();
        std::fs::create_dir(&aside).unwrap();
        catalog.keep_calibration(&calibration(&a, 50), Mode::Commit).unwrap();
        assert_eq!(catalog.snapshot().calibrations().count(), 2);
        std::fs::remove_dir(&aside).unwrap();
        catalog.keep_calibration(&calibration(&a, 51), Mode::Commit).unwrap();
        assert_eq!(catalog.snapshot().calibrations().count(), 2);
        // After a restart nobody knows whether it is the same, so that it isn't replaced, and what
        // certainly is of the file system counts, although it is no newer.
        drop(catalog);
        std::fs::create_dir(&aside).unwrap();
        let catalog = Catalog::open(&base.path().join("data")).unwrap();
        for name in ["a", "b", "aside"] {
            catalog.devices().pretend(&base.path().join(name), 1000);
        }
        let catalog = catalog.admitting(Admission::default());
        let snapshot = catalog.snapshot();
        let [there] = snapshot.filesystems() else { panic!("{snapshot:?}") };
        assert_eq!(there.holds.rate, Some(BytesPerSecond::from_mib(51)));
        catalog.keep_calibration(&calibration(&a, 52), Mode::Commit).unwrap();
        assert_eq!(catalog.snapshot().calibrations().count(), 2);
    }

    #[test]
    fn a_disk_that_is_away_counts_nowhere_else_and_keeps_its_calibration() {
        let base = tempfile::tempdir().unwrap();
        let catalog = two_disks(base.path());
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        catalog.keep_calibration(&calibration(&a, 700), Mode::Commit).unwrap();
        catalog.keep_calibration(&calibration(&b, 48), Mode::Commit).unwrap();
        let meant = Asked { mode: Mode::Commit, overcommit: true };
        catalog.create_volume(&volume("v", "a", 50), meant).unwrap();
        catalog.create_volume(&volume("w", "b", 2), Mode::Commit).unwrap();
        // While the process runs it is remembered where the pool was.
        let away = base.path().join("elsewhere");
        std::fs::rename(&a, &away).unwrap();
        std::fs::create_dir(&a).unwrap();
        let to = |tebibytes| VolumeChange {
            quota_bytes: Some(tebibytes * TIB),
            ..VolumeChange::default()
        };
        let grow = |catalog: &Catalog, name, tebibytes| {
            catalog
                .change_volume(name, &to(tebibytes), Some(0), Mode::Commit)
                .map(|done| done.changes)
        };
        assert_eq!(grow(&catalog, "v", 51).unwrap_err().code(), "hardware_exceeded");
        drop(catalog);
        // The mount point is a directory of the other disk.
        let catalog = Catalog::open(&base.path().join("data")).unwrap();
        catalog.devices().pretend(&a, 1001);
        catalog.devices().pretend(&b, 1001);
        let catalog = catalog.admitting(Admission::default());
        let snapshot = catalog.snapshot();
        let [alone, there] = snapshot.filesystems() else { panic!("{snapshot:?}") };
        assert_eq!((&alone.directory, alone.pools.len(), alone.holds), (&a, 1, Holds::default()));
        assert_eq!((&there.directory, there.pools.len()), (&b, 1));
        assert_eq!(there.committed.rate(), BytesPerSecond::from_mib(32));
        grow(&catalog, "w", 3).unwrap();
        assert_eq!(grow(&catalog, "w", 4).unwrap_err().code(), "hardware_exceeded");
        // Neither is its calibration lost to the other's, nor measured in its place.
        catalog.keep_calibration(&calibration(&b, 49), Mode::Commit).unwrap();
        let refused = catalog.keep_calibration(&calibration(&a, 49), Mode::Commit).unwrap_err();
        assert_eq!(refused.code(), "bad_path");
        let kept = catalog.snapshot();
        let kept = kept.calibration_of(a.to_str().unwrap()).unwrap();
        assert_eq!(kept.cells[0].cell.rate, BytesPerSecond::from_mib(700));
        // The file system comes back. That is no growth for which another change is refused, and
        // from then on it counts.
        std::fs::remove_dir(&a).unwrap();
        std::fs::rename(&away, &a).unwrap();
        catalog.devices().pretend(&a, 1000);
        grow(&catalog, "w", 2).unwrap();
        let snapshot = catalog.snapshot();
        let [back, there] = snapshot.filesystems() else { panic!("{snapshot:?}") };
        assert_eq!(
            (back.holds.rate, back.is_overcommitted()),
            (Some(BytesPerSecond::from_mib(700)), true)
        );
        assert_eq!(there.holds.rate, Some(BytesPerSecond::from_mib(49)));
        assert_eq!(grow(&catalog, "v", 51).unwrap_err().code(), "hardware_exceeded");
        grow(&catalog, "v", 49).unwrap();
    }

    #[test]
    fn the_pool_of_a_calibration_promises_nothing() {
        let base = tempfile::tempdir().unwrap();
        let catalog = two_disks(base.path());
        catalog.keep_calibration(&calibration(&base.path().join("a"), 48), Mode::Commit).unwrap();
        for (name, qos) in [(CALIBRATION_POOL, Qos::Auto), ("other", Qos::Manual)] {
            let directory = Some(base.path().join(name));
            let (name, level, size_bytes) = (name.into(), "standard".into(), 100 * TIB);
            let pool = NewPool { name, level, size_bytes, qos, directory, ..NewPool::default() };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            catalog.devices().pretend(pool.directory.as_ref().unwrap(), 1000);
        }
        let catalog = catalog.admitting(Admission::default());
        let measured = volume(CALIBRATION_POOL, CALIBRATION_POOL, 90);
        assert!(catalog.create_volume(&measured, Mode::Commit).unwrap().overcommitted.is_empty());
        let snapshot = catalog.snapshot();
        let there = &snapshot.filesystems()[0];
        assert_eq!((there.pools.len(), there.committed), (3, Committed::default()));
        let refused = catalog.create_volume(&volume("v", "a", 4), Mode::Commit).unwrap_err();
        assert!(refused.to_string().contains("64 MiB/s (now 0 B/s)"), "{refused}");
        catalog.create_volume(&volume("v", "a", 3), Mode::Commit).unwrap();
    }

    #[test]
    fn block_sizes_are_told_as_they_are() {
        let plan = Plan { block_bytes: 512, iops_block_bytes: 1 << 20, ..Plan::default() };
        let told = Beyond { before: Iops(1), after: Iops(3), holds: Iops(2), allowed: Iops(2) };
        let [before, after, holds, allowed] = [1, 3, 2, 2].map(BytesPerSecond);
        let excess =
            Excess { rate: Some(Beyond { before, after, holds, allowed }), iops: Some(told) };
        let admission = Admission { plan, ..Admission::default() };
        let told = Overcommitment { directory: "/srv".into(), excess, admission }.to_string();
        assert!(told.contains("with blocks of 512 B at") && told.contains("of 1 MiB at"), "{told}");
    }

    #[test]
    fn a_shared_pool_counts_once_with_its_budget() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&base.path().join("data")).unwrap();
        let pool = NewPool {
            name: "all".into(),
            level: "standard".into(),
            size_bytes: 4 * TIB,
            qos: Qos::Shared,
            ..NewPool::default()
        };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        for name in ["v", "w"] {
            catalog.create_volume(&volume(name, "all", 1), Mode::Commit).unwrap();
        }
        let snapshot = catalog.snapshot();
        let [there] = snapshot.filesystems() else { panic!("{snapshot:?}") };
        assert_eq!(there.committed.rate(), BytesPerSecond::from_mib(64));
        let pool = snapshot.pool_named("all").unwrap();
        assert_eq!(snapshot.filesystem_of(pool), Some(there));
    }
}
