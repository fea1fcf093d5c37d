//! Locks for the names of a volume, so that looking at a name and changing it are one step on this
//! gateway. Changes of different names in one directory run at once; a rename runs alone in both of
//! its directories. Not here: the changes.
//!
//! The order of locks: directories by their inode numbers, then a name, then the size of an object.

use super::object::CephObject;
use super::volume::LANE;
use crate::sync::{Guard, Mutex, ReadGuard, WriteGuard};
use std::hash::{BuildHasher, RandomState};
use weir_core::Name;

/// Locks that all names of a volume share: so many that few of the changes that run at once wait
/// for a change of another name.
const STRIPES: usize = 8 * LANE.running_max;

/// The locks of all names. Which names share a lock is random, so that no client can choose names
/// that wait for each other.
#[derive(Debug)]
pub(super) struct Names {
    stripes: Box<[Mutex<()>]>,
    hasher: RandomState,
}

/// The lock of one name.
pub(super) struct NameLock<'a> {
    _name: Guard<'a, ()>,
    _directory: ReadGuard<'a, ()>,
}

/// The locks of all names in one directory or two.
pub(super) struct DirectoryLocks<'a> {
    _first: WriteGuard<'a, ()>,
    _second: Option<WriteGuard<'a, ()>>,
}

impl Default for Names {
    fn default() -> Self {
        let stripes = (0..STRIPES).map(|_| Mutex::new(())).collect();
        Self { stripes, hasher: RandomState::new() }
    }
}

impl Names {
    /// Locks `name` in `dir`.
    pub(super) fn lock<'a>(&'a self, dir: &'a CephObject, name: Name<'_>) -> NameLock<'a> {
        let directory = dir.names.read();
        #[expect(clippy::cast_possible_truncation, reason = "a hash")]
        let stripe = self.hasher.hash_one((dir.ino, name.as_bytes())) as usize % STRIPES;
        #[expect(clippy::indexing_slicing, reason = "a remainder")]
        NameLock { _name: self.stripes[stripe].lock(), _directory: directory }
    }
}

/// Locks all names in two directories, which may be one, in the order of their inode numbers, so
/// that opposite renames can't wait for each other.
pub(super) fn lock_both<'a>(from: &'a CephObject, to: &'a CephObject) -> DirectoryLocks<'a> {
    let (first, second) = if from.ino <= to.ino { (from, to) } else { (to, from) };
    let another = first.ino != second.ino;
    DirectoryLocks { _first: first.names.write(), _second: another.then(|| second.names.write()) }
}
