//! The objects that a job makes while it runs and removes, and those left at the end.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Empty files, and directories, that a job keeps at most.
pub(super) const KEPT_MAX: usize = 64;
/// Names kept track of at most: those of which nobody knows whether they are there.
const NAMES_MAX: usize = 65_536;

/// A file or directory that a job made, or may have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Made {
    pub job: u32,
    pub serial: u64,
    pub directory: bool,
}

impl Made {
    /// The object's name.
    pub(crate) fn name(&self) -> String {
        let Self { job, serial, directory } = self;
        let kind = if *directory { "dir" } else { "new" };
        format!("{kind}.{job}.{serial:x}")
    }
}

/// The name of the file that `job` creates under `serial`.
pub(crate) fn created_name(job: u32, serial: u64) -> String {
    Made { job, serial, directory: false }.name()
}

/// The name of the directory that `job` makes under `serial`.
pub(crate) fn directory_name(job: u32, serial: u64) -> String {
    Made { job, serial, directory: true }.name()
}

/// The objects that the jobs of a load left behind when they ended, for the clean-up.
#[derive(Clone, Default)]
pub(crate) struct Leftovers(Arc<Mutex<Vec<Made>>>);

impl Leftovers {
    /// Everything that was left until now.
    pub(crate) fn take(&self) -> Vec<Made> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, left: impl Iterator<Item = Made>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
    }
}

/// The list of one job.
pub(super) struct Makings {
    job: u32,
    serial: u64,
    /// Empty files, oldest first.
    files: VecDeque<u64>,
    directories: VecDeque<u64>,
    /// Everything that is there or may be.
    names: BTreeSet<(u64, bool)>,
    leftovers: Leftovers,
}

impl Makings {
    /// Nothing yet; serial numbers follow `serial`.
    pub(super) const fn new(job: u32, serial: u64, leftovers: Leftovers) -> Self {
        Self {
            job,
            serial,
            files: VecDeque::new(),
            directories: VecDeque::new(),
            names: BTreeSet::new(),
            leftovers,
        }
    }

    /// A new serial number, for what is about to be made.
    pub(super) fn begin(&mut self, directory: bool) -> u64 {
        self.serial = self.serial.wrapping_add(1);
        if self.names.len() < NAMES_MAX {
            self.names.insert((self.serial, directory));
        }
        self.serial
    }

    /// Notes an object that is there, for later use.
    pub(super) fn keep(&mut self, serial: u64, directory: bool) {
        if directory {
            self.directories.push_back(serial);
        } else {
            self.files.push_back(serial);
        }
    }

    /// Notes an object that is not there, or not any more.
    pub(super) fn gone(&mut self, serial: u64, directory: bool) {
        self.names.remove(&(serial, directory));
    }

    /// The oldest one, to be removed.
    pub(super) fn oldest(&mut self, directory: bool) -> Option<u64> {
        if directory { self.directories.pop_front() } else { self.files.pop_front() }
    }

    /// Are there as many as a job may keep?
    pub(super) fn is_full(&self, directory: bool) -> bool {
        let kept = if directory { &self.directories } else { &self.files };
        kept.len() >= KEPT_MAX
    }
}

impl Drop for Makings {
    /// However a job ends, what it leaves is known.
    fn drop(&mut self) {
        let job = self.job;
        let left = std::mem::take(&mut self.names);
        self.leftovers.add(left.into_iter().map(|(serial, directory)| Made {
            job,
            serial,
            directory,
        }));
    }
}
