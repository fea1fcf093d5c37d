//! The memory that indexes of directories may take, of all volumes of a process together, and that
//! of indexes that are being built. When all take more, the indexes that were not used for longest
//! are dropped. Not here: the indexes.

use crate::sync::{AcqRel, Acquire, Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Relaxed, Weak};

/// Most bytes of all indexes. A name of 20 bytes takes 44 in an index, and up to 60 while the index
/// is built: an index of more than four million such names is not built.
pub(crate) const INDEX_BYTES_MAX: usize = 256 << 20;
/// Bytes by which a charge may exceed what it is for, so that not each name changes it.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Indexes dropped from the list of all before it is looked through for such that are gone.
const PRUNE_MIN: usize = 64;

/// The memory, and the indexes that take some of it.
#[derive(Debug)]
pub(crate) struct IndexMemory {
    max: usize,
    taken: AtomicUsize,
    /// Counts uses, so that of two the later one is known.
    uses: AtomicU64,
    making_room: AtomicBool,
    holders: Mutex<Holders>,
}

/// Whoever has an index.
pub(crate) trait Holder: Send + Sync {
    /// The number of its last use.
    fn last_use(&self) -> u64;

    /// Drops the index.
    fn release(&self);
}

#[derive(Default)]
struct Holders {
    list: Vec<Weak<dyn Holder>>,
    prune_at: usize,
}

impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} holders", self.list.len())
    }
}

impl IndexMemory {
    /// Memory of `max` bytes.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: AtomicUsize::new(0),
            uses: AtomicU64::new(0),
            making_room: AtomicBool::new(false),
            holders: Mutex::default(),
        })
    }

    /// Most bytes of one index, if there is no other.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Bytes of all indexes now.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Acquire)
    }

    /// Enters one that may have an index from now on.
    pub(crate) fn enter(&self, holder: Weak<dyn Holder>) {
        let mut holders = self.holders.lock();
        if holders.list.len() >= holders.prune_at {
            holders.list.retain(|holder| holder.strong_count() > 0);
            holders.prune_at = 2 * holders.list.len() + PRUNE_MIN;
        }
        holders.list.push(holder);
    }

    /// The number of a use that happens now.
    pub(crate) fn count_use(&self) -> u64 {
        self.uses.fetch_add(1, Relaxed)
    }

    /// An index that took `before` bytes takes `now`. True if the caller is to have
    /// [`Self::make_room`] called where it may take long.
    pub(crate) fn change(&self, before: usize, now: usize) -> bool {
        let taken = if now >= before {
            self.taken.fetch_add(now - before, AcqRel) + (now - before)
        } else {
            self.taken.fetch_sub(before - now, AcqRel) - (before - now)
        };
        taken > self.max && !self.making_room.swap(true, AcqRel)
    }

    /// Has the indexes dropped that were not used for longest, and a little more than must be, so
    /// that it is not soon to be done again.
    pub(crate) fn make_room(&self) {
        self.making_room.store(false, Relaxed);
        self.make_room_for(0);
    }

    /// The same, so that `more` bytes fit in.
    fn make_room_for(&self, more: usize) {
        let takes = || self.taken().saturating_add(more);
        let enough = || takes() <= self.max - self.max / 8;
        if takes() <= self.max {
            return;
        }
        let mut holders: Vec<(u64, Arc<dyn Holder>)> = {
            let list = &self.holders.lock().list;
            let of = |holder: Arc<dyn Holder>| (holder.last_use(), holder);
            list.iter().filter_map(Weak::upgrade).map(of).collect()
        };
        holders.sort_unstable_by_key(|(last_use, _)| *last_use);
        for (_, holder) in &holders {
            if enough() {
                break;
            }
            holder.release();
        }
    }
}

/// Bytes that are accounted for until this is dropped. Nobody is asked to give them back.
#[derive(Debug)]
pub(crate) struct Charge {
    memory: Arc<IndexMemory>,
    bytes: usize,
}

impl Charge {
    /// No bytes of `memory` yet.
    pub(crate) fn new(memory: &Arc<IndexMemory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Accounts for `bytes` at least. False, and nothing changes, if all would take too much.
    pub(crate) fn cover(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let max = self.memory.max;
        let ahead = (bytes / 8).min(AHEAD_BYTES_MAX);
        let more = bytes.saturating_add(ahead).min(max).max(bytes) - self.bytes;
        let fits = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= max);
        let done = self.memory.taken.fetch_update(AcqRel, Acquire, fits).is_ok();
        self.bytes += if done { more } else { 0 };
        done
    }

    /// The same, but has room made first where it is needed, which may take long.
    pub(crate) fn cover_with_room(&mut self, bytes: usize) -> bool {
        if self.cover(bytes) {
            return true;
        }
        self.memory.make_room_for(bytes.saturating_sub(self.bytes));
        self.cover(bytes)
    }

    /// The memory that is charged.
    pub(crate) fn memory(&self) -> Arc<IndexMemory> {
        Arc::clone(&self.memory)
    }

    /// Leaves it to the caller to give the bytes back.
    pub(crate) fn pass_on(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Index {
        memory: Arc<IndexMemory>,
        bytes: AtomicUsize,
        last_use: u64,
    }

    impl Index {
        fn of(memory: &Arc<IndexMemory>, bytes: usize) -> (Arc<Self>, bool) {
            let last_use = memory.count_use();
            let (own, count) = (Arc::clone(memory), AtomicUsize::new(bytes));
            let index = Arc::new(Self { memory: own, bytes: count, last_use });
            let weak = Arc::downgrade(&index);
            memory.enter(weak);
            (index, memory.change(0, bytes))
        }
    }

    impl Holder for Index {
        fn last_use(&self) -> u64 {
            self.last_use
        }

        fn release(&self) {
            self.memory.change(self.bytes.swap(0, Relaxed), 0);
        }
    }

    #[test]
    fn those_that_were_not_used_for_longest_make_room() {
        let memory = IndexMemory::new(1000);
        let of = |bytes| Index::of(&memory, bytes);
        let all = [of(300), of(300), of(400)];
        assert!(all.iter().all(|(_, full)| !full));
        let (last, full) = of(10);
        assert!(full && !memory.change(0, 5), "it is asked for once");
        memory.make_room();
        let left = all.map(|(index, _)| index.bytes.load(Relaxed));
        assert_eq!((left, last.bytes.load(Relaxed)), ([0, 300, 400], 10));
        assert_eq!(memory.taken(), 715);
        assert!(memory.change(0, 400), "it can be asked for again");
    }

    #[test]
    fn a_charge_is_never_beyond_the_maximum_and_makes_room_by_dropping_indexes() {
        let memory = IndexMemory::new(1000);
        let (index, _) = Index::of(&memory, 300);
        let (mut one, mut two) = (Charge::new(&memory), Charge::new(&memory));
        assert!(one.cover(400) && memory.taken() == 300 + 450, "a bit ahead");
        assert!(!two.cover(400) && memory.taken() == 750, "nothing is dropped for it");
        assert!(two.cover_with_room(400) && memory.taken() == 900);
        assert_eq!(index.bytes.load(Relaxed), 0);
        assert!(!one.cover_with_room(600) && memory.taken() == 900, "no index is left to drop");
        drop(two);
        assert!(one.cover_with_room(1000) && !Charge::new(&memory).cover(1));
        assert!(!one.cover_with_room(1001), "alone");
        assert_eq!(one.pass_on(), 1000);
        assert_eq!(memory.taken(), 1000);
    }

    #[test]
    fn holders_that_are_gone_are_forgotten() {
        let memory = IndexMemory::new(1000);
        for _ in 0..1000 {
            drop(Index::of(&memory, 0));
        }
        assert!(memory.holders.lock().list.len() <= 2 * PRUNE_MIN);
    }
}
