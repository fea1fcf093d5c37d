//! The file system of each directory. Pools on one file system share what its disks hold,
//! wherever their directories are. Looked at once for each directory and remembered from then on:
//! what is mounted changes only with a restart.
//!
//! The mount point of a file system that isn't mounted is an empty directory of another one. So a
//! pool is placed only where its mark is, and a calibration not where a pool that belongs to its
//! directory is away. Nothing here keeps a lock while a disk is asked: a disk that hangs delays
//! only its caller.

use crate::model::Pool;
use crate::snapshot::Snapshot;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A directory as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    device: u64,
    inode: u64,
    /// Was it found at a measurement there?
    measured: bool,
}

/// The places that were looked up and are to be remembered.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pools: Vec<(PathBuf, u64)>,
    calibrated: Vec<(PathBuf, Place)>,
}

impl Seen {
    /// Is there nothing new?
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.calibrated.is_empty()
    }
}

#[derive(Debug, Default)]
struct Known {
    pools: HashMap<PathBuf, u64>,
    calibrated: HashMap<PathBuf, Place>,
    #[cfg(test)]
    pretended: HashMap<PathBuf, u64>,
}

/// The devices of the directories of pools and calibrations, as far as they are there.
#[derive(Debug)]
pub(crate) struct Devices {
    /// The data directory, which is there for certain.
    home: (PathBuf, Option<u64>),
    known: Mutex<Known>,
}

impl Devices {
    /// The devices for the pools of this data directory; nothing is known yet.
    pub(crate) fn new(home: &Path) -> Self {
        let device = home.metadata().ok().map(|meta| meta.dev());
        Self { home: (home.to_owned(), device), known: Mutex::default() }
    }

    /// The device of the pool in `directory`, unless the pool is away.
    pub(crate) fn of_pool(&self, directory: &Path) -> Option<u64> {
        self.known().pools.get(directory).copied()
    }

    /// The device that was measured in `directory`, unless that is away.
    pub(crate) fn of_calibration(&self, directory: &Path) -> Option<u64> {
        self.known().calibrated.get(directory).map(|place| place.device)
    }

    /// Looks for what isn't known of the pools and calibrations of `snapshot`.
    pub(crate) fn look(&self, snapshot: &Snapshot) -> Seen {
        let mut seen = Seen::default();
        for pool in local(snapshot).filter(|pool| self.of_pool(&pool.directory).is_none()) {
            if snapshot.check_pool(pool).is_ok()
                && let Some(place) = self.find(&pool.directory)
            {
                seen.pools.push((pool.directory.clone(), place.device));
            }
        }
        for one in snapshot.calibrations() {
            let directory = &one.directory;
            if self.of_calibration(directory).is_none()
                && let Some(place) = self.find(directory)
                && !self.is_doubtful(snapshot, directory, place, &seen)
            {
                seen.calibrated.push((directory.clone(), place));
            }
        }
        seen
    }

    /// Remembers what was seen.
    pub(crate) fn remember(&self, seen: Seen) {
        let mut known = self.known();
        known.pools.extend(seen.pools);
        known.calibrated.extend(seen.calibrated);
    }

    /// Notes the device of the directory of a pool that is about to be created.
    pub(crate) fn expect_pool(&self, directory: &Path) {
        if let Some(place) = directory.ancestors().find_map(|at| self.find(at)) {
            self.known().pools.insert(directory.to_owned(), place.device);
        }
    }

    /// Forgets a pool that was deleted, or not made.
    pub(crate) fn forget_pool(&self, directory: &Path) {
        self.known().pools.remove(directory);
    }

    /// The place that was measured in `directory`; nothing where there is no directory, or where a
    /// pool lies that is away, so that it was most likely not its file system that was measured.
    pub(crate) fn measured(&self, snapshot: &Snapshot, directory: &Path) -> Option<Place> {
        let place = self.find(directory)?;
        let doubt = self.is_doubtful(snapshot, directory, place, &self.look(snapshot));
        (!doubt).then_some(Place { measured: true, ..place })
    }

    /// Remembers, or forgets, the place that was measured in `directory`. Gives what was known
    /// before.
    pub(crate) fn set_measured(&self, directory: &Path, place: Option<Place>) -> Option<Place> {
        let calibrated = &mut self.known().calibrated;
        match place {
            Some(place) => calibrated.insert(directory.to_owned(), place),
            None => calibrated.remove(directory),
        }
    }

    /// The directories of those calibrations of `snapshot` that are certainly of the file system of
    /// `new`: they are there, the same as when they were measured or with a pool beside that is
    /// there as well.
    pub(crate) fn of_same(&self, snapshot: &Snapshot, new: Place) -> BTreeSet<PathBuf> {
        let same = |directory: &&PathBuf| {
            let known = self.known().calibrated.get(*directory).copied();
            // Only then is the disk asked: another one may hang.
            known.is_some_and(|known| {
                known.device == new.device
                    && self.is_certain(snapshot, directory)
                    && self
                        .find(directory)
                        .is_some_and(|now| (now.device, now.inode) == (known.device, known.inode))
            })
        };
        snapshot.calibrations().map(|one| &one.directory).filter(same).cloned().collect()
    }

    /// Is it beyond doubt that the calibration in `directory` is of the file system that it is
    /// placed on?
    pub(crate) fn is_certain(&self, snapshot: &Snapshot, directory: &Path) -> bool {
        let known = self.known().calibrated.get(directory).copied();
        known.is_some_and(|place| self.is_proved(snapshot, directory, place, &Seen::default()))
    }

    /// Is `directory` perhaps only the mount point of what was measured there?
    fn is_doubtful(&self, now: &Snapshot, directory: &Path, place: Place, seen: &Seen) -> bool {
        let away = |pool: &Path| self.device(pool, seen).is_none();
        !self.is_proved(now, directory, place, seen)
            && local(now).any(|pool| beside(directory, &pool.directory) && away(&pool.directory))
    }

    /// Was it measured by this process, or is something that is certainly there on the same device,
    /// above or below?
    fn is_proved(&self, now: &Snapshot, directory: &Path, place: Place, seen: &Seen) -> bool {
        let there = |at: &Path, device| beside(directory, at) && device == Some(place.device);
        place.measured
            || there(&self.home.0, self.home.1)
            || local(now).any(|pool| there(&pool.directory, self.device(&pool.directory, seen)))
    }

    fn device(&self, pool: &Path, seen: &Seen) -> Option<u64> {
        let new = || seen.pools.iter().find(|(at, _)| at == pool).map(|(_, device)| *device);
        self.of_pool(pool).or_else(new)
    }

    fn find(&self, directory: &Path) -> Option<Place> {
        let meta = directory.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        let place = Place { device: meta.dev(), inode: meta.ino(), measured: false };
        #[cfg(test)]
        if let Some(device) = self.known().pretended.get(directory) {
            return Some(Place { device: *device, ..place });
        }
        Some(place)
    }

    /// Pretends that `directory` is on `device`, if the directory is there.
    #[cfg(test)]
    pub(crate) fn pretend(&self, directory: &Path, device: u64) {
        let mut known = self.known();
        known.pretended.insert(directory.to_owned(), device);
        if let Some(pool) = known.pools.get_mut(directory) {
            *pool = device;
        }
        if let Some(place) = known.calibrated.get_mut(directory) {
            place.device = device;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pools that are on this machine.
fn local(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<Pool>> {
    snapshot.pools().filter(|pool| pool.ceph.is_none())
}

/// Is one of both in the other?
fn beside(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_still_to_be_made_is_where_it_will_be() {
        let base = tempfile::tempdir().unwrap();
        let devices = Devices::new(base.path());
        let here = base.path().metadata().unwrap().dev();
        let (new, elsewhere) = (base.path().join("a/b"), Path::new("/proc/self/nowhere"));
        assert_eq!(devices.of_pool(&new), None);
        devices.expect_pool(&new);
        devices.expect_pool(elsewhere);
        assert_eq!(devices.of_pool(&new), Some(here));
        assert_ne!(devices.of_pool(elsewhere), Some(here));
        devices.forget_pool(&new);
        assert_eq!(devices.of_pool(&new), None);
    }
}
