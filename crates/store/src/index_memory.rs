//! The memory that indexes of directories may take, of all volumes of a process together. When they
//! take more, those that were not used for longest are dropped. Not here: the indexes.

use crate::sync::{AcqRel, Acquire, Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Relaxed, Weak};

/// Most bytes of all indexes: some six million names of 20 bytes.
pub(crate) const INDEX_BYTES_MAX: usize = 256 << 20;
/// Indexes dropped from the list of all before it is looked through for such that are gone.
const PRUNE_MIN: usize = 64;

/// The memory, and who has some of it.
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
        let enough = || self.taken() <= self.max - self.max / 8;
        if self.taken() <= self.max {
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
    fn holders_that_are_gone_are_forgotten() {
        let memory = IndexMemory::new(1000);
        for _ in 0..1000 {
            drop(Index::of(&memory, 0));
        }
        assert!(memory.holders.lock().list.len() <= 2 * PRUNE_MIN);
    }
}
