//! Counting a volume's data anew while it is served: after an unclean stop, and when somebody asks
//! because files were changed behind the server's back.
//!
//! A walk (see [`super::walk`]) looks at each file once; changes go on meanwhile. Exact all the
//! same, because a file is *visited* once, by whoever comes first: by the walk, with what it holds,
//! or by a change that is about to be made, with what it held before; and every change after that
//! is added. So that the walk misses nothing that moves, a file is visited before it is renamed or
//! gets another name, and a directory that is renamed is put on the walk's list again.
//!
//! Memory: a bit or so for each inode of the volume, and a key for each directory that moved.

use super::usage::signed;
use crate::control::{Counted, Counting};
use crate::sync::{AtomicU64, Mutex, Relaxed};
use std::collections::HashMap;
use weir_core::{FsError, ObjectKey};

/// A recount under way.
#[derive(Debug, Default)]
pub(super) struct Recount {
    state: Mutex<State>,
    left_out: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    visited: InodeSet,
    files: u64,
    bytes: i64,
    /// Directories that were moved, by their inode numbers.
    moved: HashMap<u64, ObjectKey>,
}

impl Recount {
    /// Counts the object `fileid` for `bytes`, unless it was visited before: false then.
    pub(super) fn visit(&self, fileid: u64, bytes: u64) -> bool {
        let mut state = self.state.lock();
        let first = state.visited.insert(fileid);
        if first && bytes > 0 {
            state.files += 1;
            state.bytes += signed(bytes);
        }
        first
    }

    /// Was the object `fileid` visited?
    pub(super) fn has_visited(&self, fileid: u64) -> bool {
        self.state.lock().visited.contains(fileid)
    }

    /// A visited file has changed by `bytes`.
    pub(super) fn add(&self, bytes: i64) {
        if bytes != 0 {
            self.state.lock().bytes += bytes;
        }
    }

    /// A directory is about to move: it may come to lie where the walk has been.
    pub(super) fn moves(&self, fileid: u64, key: ObjectKey) {
        let mut state = self.state.lock();
        if !state.visited.contains(fileid) {
            state.moved.insert(fileid, key);
        }
    }

    /// One of the directories that have moved and are yet to be walked.
    pub(super) fn next_moved(&self) -> Option<ObjectKey> {
        let mut state = self.state.lock();
        let fileid = *state.moved.keys().next()?;
        state.moved.remove(&fileid)
    }

    pub(super) fn leave_out(&self, what: &'static str, error: FsError) {
        self.left_out.fetch_add(1, Relaxed);
        tracing::warn!(%error, what, "skipped in the usage count");
    }

    pub(super) fn progress(&self) -> Counting {
        let state = self.state.lock();
        Counting { files: state.files, bytes: u64::try_from(state.bytes).unwrap_or(0) }
    }

    /// The outcome, if nothing is left to be walked. No change may be under way.
    pub(super) fn finish(&self, before_bytes: u64) -> Option<Counted> {
        let Counting { files, bytes } = self.progress();
        let left_out = self.left_out.load(Relaxed);
        let complete = self.state.lock().moved.is_empty();
        complete.then_some(Counted { before_bytes, after_bytes: bytes, files, left_out, number: 1 })
    }
}

/// Inode numbers, which lie close together: 512 of them in 64 bytes.
#[derive(Debug, Default)]
struct InodeSet(HashMap<u64, [u64; 8]>);

impl InodeSet {
    /// Adds a number; false if it was there.
    fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        let Some(word) = self.0.entry(number >> 9).or_default().get_mut(word) else { return false };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn contains(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.0.get(&(number >> 9)).and_then(|words| words.get(word)).is_some_and(|w| w & bit != 0)
    }
}

fn place(number: u64) -> (usize, u64) {
    (usize::try_from((number >> 6) & 7).unwrap_or(0), 1 << (number & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_visits_first_tells_what_the_file_held() {
        let recount = Recount::default();
        // Found by the walk with 10, then grown by 5; changed from 20 to 22 before the walk came;
        // removed before the walk came; made meanwhile.
        assert!(recount.visit(1, 10) && !recount.visit(1, 10));
        recount.add(5);
        assert!(recount.visit(2, 20));
        recount.add(2);
        assert!(!recount.visit(2, 22), "the walk");
        assert!(recount.visit(3, 30));
        recount.add(-30);
        assert!(recount.visit(4, 0));
        recount.add(7);
        let counted = recount.finish(1).unwrap();
        assert_eq!((counted.before_bytes, counted.after_bytes), (1, 15 + 22 + 7));
    }

    #[test]
    fn a_directory_that_moves_is_walked_once_more_unless_it_was() {
        let recount = Recount::default();
        let key = ObjectKey::new(b"key").unwrap();
        recount.moves(1, key);
        recount.moves(1, key);
        assert_eq!(recount.finish(0), None);
        assert_eq!(recount.next_moved(), Some(key));
        assert_eq!(recount.next_moved(), None);
        recount.visit(1, 0);
        recount.moves(1, key);
        assert!(recount.finish(0).is_some());
    }

    #[test]
    fn inode_numbers_far_apart_and_side_by_side_are_told_apart() {
        let mut set = InodeSet::default();
        let numbers = [0, 1, 63, 64, 511, 512, 1 << 40, u64::MAX];
        assert!(numbers.iter().all(|&number| !set.contains(number) && set.insert(number)));
        assert!(numbers.iter().all(|&number| set.contains(number) && !set.insert(number)));
        assert!(!set.contains(2) && !set.contains(510));
    }
}
