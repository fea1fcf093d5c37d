//! Locks for the names of a volume, so that looking at a name and changing it are one step on this
//! gateway. Changes of different names in one directory run at once; a rename runs alone in both of
//! its directories. Not here: the changes.
//!
//! The order of locks: directories by their inode numbers, then a name, then the size of an object.

use super::object::CephObject;
use crate::sync::{Arc, Guard, Mutex, ReadGuard, WriteGuard};
use std::hash::{BuildHasher, RandomState};
use weir_core::Name;

/// Eight times the changes of one volume that run at once: two of different names seldom have one
/// lock.
const PARTS: usize = 256;

/// Locks for parts of all names.
#[derive(Debug)]
pub(super) struct Names {
    parts: Box<[Mutex<()>]>,
    hasher: RandomState,
}

/// One name that is looked at and changed.
pub(super) struct NameLock<'a> {
    _name: Guard<'a, ()>,
    _directory: ReadGuard<'a, ()>,
}

/// All names in one directory or two.
pub(super) struct DirectoryLocks<'a> {
    _first: WriteGuard<'a, ()>,
    _second: Option<WriteGuard<'a, ()>>,
}

impl Default for Names {
    fn default() -> Self {
        let parts = (0..PARTS).map(|_| Mutex::new(())).collect();
        Self { parts, hasher: RandomState::new() }
    }
}

impl Names {
    /// Locks `name` in `dir`.
    pub(super) fn lock<'a>(&'a self, dir: &'a CephObject, name: Name<'_>) -> NameLock<'a> {
        let directory = dir.names.read();
        #[expect(clippy::cast_possible_truncation, reason = "one of a few parts")]
        let part = self.hasher.hash_one((dir.ino, name.as_bytes())) as usize % PARTS;
        #[expect(clippy::indexing_slicing, reason = "a remainder")]
        NameLock { _name: self.parts[part].lock(), _directory: directory }
    }
}

/// Locks all names in two directories, which may be one, in the order of their inode numbers, so
/// that opposite renames can't wait for each other.
pub(super) fn lock_both<'a>(
    from: &'a Arc<CephObject>,
    to: &'a Arc<CephObject>,
) -> DirectoryLocks<'a> {
    let (first, second) = if from.ino <= to.ino { (from, to) } else { (to, from) };
    let another = first.ino != second.ino;
    DirectoryLocks { _first: first.names.write(), _second: another.then(|| second.names.write()) }
}
