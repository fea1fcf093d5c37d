//! The files that loads use: how much they hold, and which of them are laid out already.

use std::collections::{BTreeMap, BTreeSet};
use weir_load::workload::{Layout, Location, Operation, Workload};

/// The known properties of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    bytes: u64,
    /// The size of its stamped blocks, if it holds such: what verification wants to find.
    stamp: Option<u32>,
}

/// The files that exist, by directory and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Laid {
    directories: BTreeMap<Location, BTreeMap<String, Extent>>,
}

impl Laid {
    /// Are all files of `load` there, with what it needs in them?
    pub(super) fn covers(&self, load: &Workload) -> bool {
        if !load.needs_files() {
            return true;
        }
        let Some(files) = self.directories.get(&load.location()) else { return false };
        let (wanted, stamp) = (load.size_needed(), stamp(load));
        (0..load.files).all(|number| {
            files.get(&load.file_name(number)).is_some_and(|found| {
                found.bytes >= wanted && (stamp.is_none() || stamp == found.stamp)
            })
        })
    }

    /// `loads` were applied: their files exist now, but for those that they removed.
    pub(super) fn applied(&mut self, loads: &[Workload]) {
        self.add(loads);
        for load in loads.iter().filter(|load| load.operation == Operation::Remove) {
            let Some(files) = self.directories.get_mut(&load.location()) else { continue };
            for number in 0..load.files {
                files.remove(&load.file_name(number));
            }
        }
    }

    /// The files of `loads` are laid out.
    pub(super) fn add(&mut self, loads: &[Workload]) {
        for load in loads.iter().filter(|load| load.needs_files()) {
            let files = self.directories.entry(load.location()).or_default();
            let stamp = stamp(load);
            let plain = load.writes() && stamp.is_none();
            for number in 0..load.files {
                let new = Extent { bytes: load.size_needed(), stamp };
                let slot = files.entry(load.file_name(number)).or_insert(new);
                // Laying files out anew replaces what was smaller; writes without stamps spoil
                // them.
                slot.bytes = slot.bytes.max(new.bytes);
                slot.stamp = if plain { None } else { stamp.or(slot.stamp) };
            }
        }
    }

    /// All files of `directory` are gone.
    pub(super) fn forget(&mut self, directory: &Location) {
        self.directories.remove(directory);
    }

    /// The bytes that the files hold.
    pub(super) fn bytes(&self) -> u64 {
        self.by_target().values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// The bytes that the files on each target hold.
    pub(super) fn by_target(&self) -> BTreeMap<&str, u64> {
        let mut targets: BTreeMap<&str, u64> = BTreeMap::new();
        for (location, files) in &self.directories {
            let sum = targets.entry(&location.target).or_default();
            *sum = files.values().fold(*sum, |sum, file| sum.saturating_add(file.bytes));
        }
        targets
    }
}

fn stamp(load: &Workload) -> Option<u32> {
    load.verifies().then_some(load.block_bytes)
}

/// Bytes of the files of `loads`, each counted once.
pub(super) fn bytes(loads: &[Workload]) -> u64 {
    let mut laid = Laid::default();
    laid.add(loads);
    laid.bytes()
}

/// The directories of the loads.
pub(super) fn directories(loads: &[Workload]) -> BTreeSet<Location> {
    loads.iter().map(Workload::location).collect()
}

/// The targets of the loads.
pub(super) fn targets(loads: &[Workload]) -> BTreeSet<String> {
    loads.iter().map(|load| load.target.clone()).collect()
}

/// The loads as they are applied by the suite, which removes files itself: nothing is laid out
/// twice, and everything is kept.
pub(super) fn with_files(loads: &[Workload], laid: &Laid, reuse: bool) -> Vec<Workload> {
    let mut known = laid.clone();
    let mut all = Vec::with_capacity(loads.len());
    for load in loads {
        let mut load = load.clone();
        load.keep = true;
        if load.needs_files() && (reuse || known.covers(&load)) {
            load.layout = Layout::Existing;
        }
        known.add(std::slice::from_ref(&load));
        all.push(load);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::workload::Pattern;

    fn load(directory: &str, files: u32, file_bytes: u64) -> Workload {
        Workload { directory: directory.to_owned(), files, file_bytes, ..Workload::default() }
    }

    #[test]
    fn files_that_several_loads_use_count_once() {
        let loads = [load("a", 4, 100), load("a", 2, 100), load("b", 1, 7)];
        assert_eq!(bytes(&loads), 407);
        let elsewhere = Workload { target: "t".to_owned(), ..load("a", 2, 100) };
        let mut laid = Laid::default();
        laid.add(&[load("a", 4, 100), elsewhere]);
        assert_eq!(laid.by_target(), BTreeMap::from([("", 400), ("t", 200)]));
        let null = Workload { operation: Operation::Null, ..load("c", 9, 9) };
        assert_eq!(bytes(&[null]), 0);
        let stat = Workload { operation: Operation::Getattr, ..load("c", 9, 9) };
        assert_eq!(bytes(&[stat]), 0);
    }

    #[test]
    fn nothing_is_laid_out_twice_and_everything_is_kept() {
        let loads = [load("a", 4, 100), load("a", 4, 100), load("a", 5, 100)];
        let layouts = |laid: &Laid, reuse| -> Vec<bool> {
            let all = with_files(&loads, laid, reuse);
            assert!(all.iter().all(|load| load.keep));
            all.iter().map(|load| load.layout == Layout::Existing).collect()
        };
        let mut laid = Laid::default();
        assert_eq!(layouts(&laid, false), [false, true, false]);
        assert_eq!(layouts(&laid, true), [true, true, true]);
        laid.add(&loads[..1]);
        assert_eq!(layouts(&laid, false), [true, true, false]);
        laid.forget(&loads[0].location());
        assert_eq!(layouts(&laid, false), [false, true, false]);
    }

    #[test]
    fn files_that_were_removed_are_not_there() {
        let mut laid = Laid::default();
        let remove = Workload { operation: Operation::Remove, ..load("a", 4, 100) };
        laid.applied(&[load("a", 5, 100), remove.clone()]);
        assert!(!laid.covers(&remove) && !laid.covers(&load("a", 1, 100)));
        assert_eq!(laid.bytes(), 100, "the fifth stays");
    }

    #[test]
    fn larger_files_are_not_there_because_smaller_ones_are() {
        let mut laid = Laid::default();
        laid.add(&[load("a", 4, 100)]);
        assert!(laid.covers(&load("a", 3, 99)));
        assert!(!laid.covers(&load("a", 4, 101)));
        let mut named = load("a", 1, 1);
        named.names = vec!["x".to_owned()];
        assert!(!laid.covers(&named));
        laid.add(&[Workload { names: vec!["x".into(), "y".into()], files: 2, ..named.clone() }]);
        assert!(laid.covers(&named), "some of the files are there if all are");
    }

    #[test]
    fn files_are_verified_only_if_stamps_of_that_size_are_in_them() {
        let verified =
            |block_bytes| Workload { verify_reads: true, block_bytes, ..load("a", 1, 1 << 20) };
        let mut laid = Laid::default();
        laid.add(&[load("a", 1, 1 << 20)]);
        assert!(!laid.covers(&verified(4096)), "plain content has none");
        laid.add(&[verified(4096)]);
        assert!(laid.covers(&verified(4096)) && !laid.covers(&verified(8192)));
        laid.add(&[load("a", 1, 1 << 20)]);
        assert!(laid.covers(&verified(4096)), "reading spoils nothing");
        let operation = Operation::Data { pattern: Pattern::Random, read_percent: 50 };
        laid.add(&[Workload { operation, ..load("a", 1, 1 << 20) }]);
        assert!(!laid.covers(&verified(4096)), "writes without stamps do");
    }
}
