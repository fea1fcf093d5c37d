//! The files that loads use: how much they hold, and which of them are laid out already.

use crate::workload::{Layout, Operation, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Files that belong together: their directory and, where they have names of their own, these.
type Key = (String, Vec<String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    files: u32,
    file_bytes: u64,
}

impl Extent {
    fn of(load: &Workload) -> Self {
        let holds = load.operation.moves_data() || load.operation == Operation::Mix;
        Self { files: load.files, file_bytes: if holds { load.file_bytes } else { 0 } }
    }

    const fn bytes(self) -> u64 {
        self.file_bytes.saturating_mul(self.files as u64)
    }

    const fn covers(self, other: Self) -> bool {
        self.files >= other.files && self.file_bytes >= other.file_bytes
    }

    fn joined(self, other: Self) -> Self {
        Self {
            files: self.files.max(other.files),
            file_bytes: self.file_bytes.max(other.file_bytes),
        }
    }
}

fn key(load: &Workload) -> Key {
    (load.directory.clone(), load.names.clone())
}

/// The files that exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Laid {
    sets: BTreeMap<Key, Extent>,
}

impl Laid {
    /// Are all files of `load` there?
    pub(super) fn covers(&self, load: &Workload) -> bool {
        !load.needs_files()
            || self.sets.get(&key(load)).is_some_and(|extent| extent.covers(Extent::of(load)))
    }

    /// The files of `loads` exist now.
    pub(super) fn add(&mut self, loads: &[Workload]) {
        for load in loads.iter().filter(|load| load.needs_files()) {
            let extent = Extent::of(load);
            let slot = self.sets.entry(key(load)).or_insert(extent);
            // Laying files out anew replaces what was smaller.
            *slot = slot.joined(extent);
        }
    }

    /// All files of `directory` are gone.
    pub(super) fn forget(&mut self, directory: &str) {
        self.sets.retain(|(inside, _), _| inside != directory);
    }

    /// How much they hold.
    pub(super) fn bytes(&self) -> u64 {
        self.sets.values().fold(0, |sum, extent| sum.saturating_add(extent.bytes()))
    }
}

/// Bytes of the files of `loads`, each counted once.
pub(super) fn bytes(loads: &[Workload]) -> u64 {
    let mut laid = Laid::default();
    laid.add(loads);
    laid.bytes()
}

/// Their directories.
pub(super) fn directories(loads: &[Workload]) -> BTreeSet<String> {
    loads.iter().map(|load| load.directory.clone()).collect()
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

    fn load(directory: &str, files: u32, file_bytes: u64) -> Workload {
        Workload { directory: directory.to_owned(), files, file_bytes, ..Workload::default() }
    }

    #[test]
    fn files_that_several_loads_use_count_once() {
        let loads = [load("a", 4, 100), load("a", 2, 100), load("b", 1, 7)];
        assert_eq!(bytes(&loads), 407);
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
        laid.forget("a");
        assert_eq!(layouts(&laid, false), [false, true, false]);
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
    }
}
