//! The use of a volume as one worker counts it: the connections with their operations, and the file
//! that most READs and WRITEs are for.
//!
//! Only the worker writes, without a locked instruction; anyone reads. The memory is bounded: of
//! more connections than [`FEW`] and [`MANY`], the rest is not told apart, and of fewer than these
//! some where their set is full. A closed connection keeps its place until another one needs it, so
//! a reader must know which are open.
//!
//! Not here: the addresses of clients, and what the counts say about a load, which is
//! [`weir_qos::load`].

use crate::sync::{AtomicU64, OnceLock, Ordering, fence};
use std::num::NonZeroU64;
use weir_core::{Mono, ObjectKey};
use weir_qos::load::FileShare;

/// Connections that each worker counts without further memory.
const FEW: usize = 8;

/// Connections that it counts beyond these, in sets of [`FEW`]. The memory for them is allocated
/// when they are needed.
const MANY: usize = 256;
const SETS: u64 = (MANY / FEW) as u64;
const _: () = assert!(FEW.is_power_of_two() && SETS.is_power_of_two());

/// Stretches of time by which files are compared and connections forgotten, in nanoseconds as an
/// exponent of two: about 8.6 s.
const STRETCH_SHIFT: u32 = 33;

/// A digest of a file's key, which is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark(NonZeroU64);

impl FileMark {
    /// The mark of the file with this key.
    #[must_use]
    pub fn of(key: &ObjectKey) -> Self {
        let mix = |mark: u64, part: &[u8]| {
            let mut word = [0; 8];
            word.iter_mut().zip(part).for_each(|(byte, from)| *byte = *from);
            (mark ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        };
        let mark = key.as_bytes().chunks(8).fold(u64::from(key.birth()), mix);
        Self(NonZeroU64::MIN | mark)
    }
}

/// A connection's requests on a volume since it was counted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The connection's token.
    pub token: u64,
    /// Operations answered.
    pub operations: u64,
    /// Bytes moved by READs and WRITEs.
    pub bytes: u64,
}

/// The uses of a volume as one worker sees them.
#[derive(Default)]
pub struct Uses {
    few: [Slot; FEW],
    many: OnceLock<Box<[Slot; MANY]>>,
    /// The connections for which there is no place.
    others: Slot,
    file: FileVote,
}

/// The place of a connection.
#[derive(Default)]
struct Slot {
    /// The connection's token and 1; 0 where there is none.
    holder: AtomicU64,
    operations: AtomicU64,
    bytes: AtomicU64,
    /// The stretch of time of its last request.
    seen: AtomicU64,
}

impl Slot {
    fn add(&self, operations: u64, bytes: u64, stretch: u64) {
        bump(&self.operations, operations);
        bump(&self.bytes, bytes);
        self.seen.store(stretch, Ordering::Relaxed);
    }

    /// Did its connection ask for nothing in this stretch and the one before?
    fn is_stale(&self, stretch: u64) -> bool {
        get(&self.seen) + 1 < stretch
    }

    fn take(&self, holder: u64) {
        self.holder.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.operations.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.holder.store(holder, Ordering::Release);
    }

    /// The use that it holds; `None` if it is free, or just changes.
    fn read(&self) -> Option<Use> {
        let holder = self.holder.load(Ordering::Acquire);
        let (operations, bytes) = (get(&self.operations), get(&self.bytes));
        fence(Ordering::Acquire);
        let token = holder.checked_sub(1).filter(|_| holder == get(&self.holder))?;
        Some(Use { token, operations, bytes })
    }
}

impl Uses {
    /// Counts so many operations that were answered at about `now` to the connection with this
    /// `token`, and moved so many `bytes` together.
    pub fn count(&self, token: u64, operations: u64, bytes: u64, now: Mono) {
        let (holder, stretch) = (token.wrapping_add(1), now.0 >> STRETCH_SHIFT);
        self.slot(holder, stretch).add(operations, bytes, stretch);
    }

    /// The place of a connection, which gets one if it has none and there is one.
    #[inline]
    fn slot(&self, holder: u64, stretch: u64) -> &Slot {
        let mixed = mixed(holder);
        let held = |slot: &&Slot| get(&slot.holder) == holder;
        let first = upper(mixed, FEW as u64);
        if let Some(slot) = self.few.get(first).filter(held) {
            return slot;
        }
        let set = self.many.get().and_then(|many| set_of(many, mixed));
        let known = self.few.iter().chain(set.unwrap_or(&[])).find(held);
        known.unwrap_or_else(|| self.place(holder, mixed, first, stretch))
    }

    #[cold]
    fn place(&self, holder: u64, mixed: u64, first: usize, stretch: u64) -> &Slot {
        let may_take = |slot: &&Slot| get(&slot.holder) == 0 || slot.is_stale(stretch);
        let few = || self.few.iter().cycle().skip(first).take(FEW);
        let free = few().find(|slot| get(&slot.holder) == 0).or_else(|| few().find(may_take));
        let found = free.or_else(|| {
            let many = self.many.get_or_init(|| Box::new(std::array::from_fn(|_| Slot::default())));
            set_of(many, mixed)?.iter().find(may_take)
        });
        let Some(slot) = found else { return &self.others };
        slot.take(holder);
        slot
    }

    /// Counts a READ or WRITE of a file.
    pub fn vote(&self, file: FileMark, now: Mono) {
        self.file.vote(file, now.0 >> STRETCH_SHIFT);
    }

    /// The connections that were counted one by one. A place that changes meanwhile is left out.
    pub fn each(&self) -> impl Iterator<Item = Use> {
        let many = self.many.get().map(|many| many.as_slice()).unwrap_or_default();
        self.few.iter().chain(many).filter_map(Slot::read)
    }

    /// The file that most READs and WRITEs of the last 9 to 17 s are for.
    #[must_use]
    pub fn file(&self, now: Mono) -> FileShare {
        self.file.read(now.0 >> STRETCH_SHIFT)
    }
}

fn set_of(many: &[Slot; MANY], mixed: u64) -> Option<&[Slot]> {
    many.chunks(FEW).nth(upper(mixed, SETS))
}

/// The connection's number, which is the upper half of its token, with its upper bits mixed.
/// Numbers are the server's, and workers and volumes take connections in turn: the numbers that one
/// worker counts have a stride. A product alone would map some strides to few places, hence the
/// shifts before it.
const fn mixed(holder: u64) -> u64 {
    let number = holder >> 32;
    (number ^ number >> 5 ^ number >> 10).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The upper bits of a mixed number, for so many places: a power of two.
fn upper(mixed: u64, places: u64) -> usize {
    usize::try_from(mixed >> (u64::BITS - places.ilog2())).unwrap_or(0)
}

/// The majority vote of Boyer and Moore on the file of READs and WRITEs: one candidate, which gains
/// a vote by each request for it and loses one by each for another file. It is changed and read
/// with the counters that belong together.
#[derive(Default)]
struct FileVote {
    stretch: AtomicU64,
    now: Tally,
    before: Tally,
}

#[derive(Default)]
struct Tally {
    candidate: AtomicU64,
    votes: AtomicU64,
    requests: AtomicU64,
}

impl Tally {
    fn read(&self) -> FileShare {
        let (file, votes) = (get(&self.candidate), get(&self.votes));
        FileShare { file, at_least: votes, of: get(&self.requests) }
    }

    fn set(&self, FileShare { file, at_least, of }: FileShare) {
        self.candidate.store(file, Ordering::Relaxed);
        self.votes.store(at_least, Ordering::Relaxed);
        self.requests.store(of, Ordering::Relaxed);
    }
}

impl FileVote {
    fn vote(&self, FileMark(file): FileMark, stretch: u64) {
        let file = file.get();
        let last = get(&self.stretch);
        // A request that another clock reading places earlier belongs to the stretch under way.
        if stretch > last {
            let before = if last + 1 == stretch { self.now.read() } else { FileShare::default() };
            self.before.set(before);
            self.now.set(FileShare::default());
            self.stretch.store(stretch, Ordering::Relaxed);
        }
        let Tally { candidate, votes, requests } = &self.now;
        bump(requests, 1);
        match (get(candidate) == file, get(votes)) {
            (true, _) => bump(votes, 1),
            (false, 0) => {
                candidate.store(file, Ordering::Relaxed);
                votes.store(1, Ordering::Relaxed);
            }
            (false, some) => votes.store(some - 1, Ordering::Relaxed),
        }
    }

    fn read(&self, stretch: u64) -> FileShare {
        match stretch.saturating_sub(get(&self.stretch)) {
            0 => self.before.read() + self.now.read(),
            1 => self.now.read(),
            _ => FileShare::default(),
        }
    }
}

fn get(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Relaxed)
}

/// Adds without a locked instruction: there is one writer.
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(get(cell).wrapping_add(by), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const STRETCH: u64 = 1 << STRETCH_SHIFT;

    fn token(serial: u64) -> u64 {
        serial << 32 | 5
    }

    fn counted(uses: &Uses) -> BTreeMap<u64, (u64, u64)> {
        uses.each().map(|one| (one.token, (one.operations, one.bytes))).collect()
    }

    #[test]
    fn each_connection_has_its_own_counts() {
        let uses = Uses::default();
        for (serial, bytes) in [(0, 10), (8, 7), (16, 1), (0, 5)] {
            uses.count(token(serial), 1, bytes, Mono(1));
        }
        let expected = [(token(0), (2, 15)), (token(8), (1, 7)), (token(16), (1, 1))];
        assert_eq!(counted(&uses), expected.into());
        assert!(uses.many.get().is_none(), "few connections take no further memory");
    }

    /// Counts an operation of 3 bytes twice for each connection of a worker that gets each
    /// `stride`th of all; gives the number of connections that are told apart.
    fn told_apart(stride: u64, connections: u64) -> u64 {
        let uses = Uses::default();
        let serials = (0..connections).map(|turn| 1 + turn * stride);
        for serial in serials.clone().chain(serials) {
            uses.count(token(serial), 1, 3, Mono(1));
        }
        let counted = counted(&uses);
        assert!(counted.values().all(|counts| *counts == (2, 6)), "nothing is counted twice");
        let apart = counted.len() as u64;
        let others = 2 * (connections - apart);
        assert_eq!((get(&uses.others.operations), get(&uses.others.bytes)), (others, 3 * others));
        apart
    }

    #[test]
    fn the_connections_of_each_worker_are_told_apart_whatever_its_turns() {
        const PLACES: u64 = (FEW + MANY) as u64;
        for stride in 1..=32 {
            assert_eq!(told_apart(stride, FEW as u64), FEW as u64, "{stride}");
            // Of half as many as there are places, nearly all; of as many, three quarters.
            let half = told_apart(stride, PLACES / 2);
            assert!(half >= PLACES / 2 * 9 / 10, "{half} at stride {stride}");
            let full = told_apart(stride, PLACES);
            assert!(full >= PLACES * 3 / 4, "{full} at stride {stride}");
            let more = told_apart(stride, PLACES * 4);
            assert!((full..=PLACES).contains(&more), "{more} at stride {stride}");
        }
    }

    #[test]
    fn a_place_is_given_to_another_only_after_two_stretches_without_a_request() {
        let uses = Uses::default();
        (0..FEW as u64).for_each(|serial| uses.count(token(serial), 1, 1, Mono(0)));
        uses.count(token(3), 1, 1, Mono(2 * STRETCH));
        uses.count(token(100), 1, 1, Mono(2 * STRETCH));
        let now = counted(&uses);
        assert_eq!(
            (now.len(), now.get(&token(3)), now.get(&token(100))),
            (FEW, Some(&(2, 2)), Some(&(1, 1)))
        );
        let fresh = Uses::default();
        (0..FEW as u64).for_each(|serial| fresh.count(token(serial), 1, 1, Mono(0)));
        fresh.count(token(100), 1, 1, Mono(STRETCH));
        assert_eq!(counted(&fresh).len(), FEW + 1, "all others may still be in use");
    }

    #[test]
    fn the_file_with_the_majority_is_found_and_forgotten() {
        let (uses, [a, b]) = (Uses::default(), [b"a", b"b"].map(|key| mark(key)));
        for turn in 0..100 {
            uses.vote(if turn % 10 == 0 { b } else { a }, Mono(5));
        }
        let share = uses.file(Mono(5));
        assert_eq!((share.file, share.of), (a.0.get(), 100));
        assert!((80..=90).contains(&share.at_least), "{share:?}");
        uses.vote(b, Mono(STRETCH));
        assert_eq!(uses.file(Mono(STRETCH)).of, 101, "the stretch before counts too");
        assert_eq!(uses.file(Mono(2 * STRETCH)), FileShare { file: b.0.get(), at_least: 1, of: 1 });
        assert_eq!(uses.file(Mono(3 * STRETCH)), FileShare::default());
    }

    #[test]
    fn a_request_of_an_earlier_moment_changes_no_stretch() {
        let (uses, file) = (Uses::default(), mark(b"a"));
        uses.vote(file, Mono(2 * STRETCH));
        uses.vote(file, Mono(2 * STRETCH - 1));
        let expected = FileShare { file: file.0.get(), at_least: 2, of: 2 };
        assert_eq!(uses.file(Mono(2 * STRETCH)), expected);
    }

    fn mark(key: &[u8]) -> FileMark {
        FileMark::of(&ObjectKey::new(key).unwrap())
    }

    #[test]
    fn files_have_marks_of_their_own() {
        let marks: std::collections::BTreeSet<_> =
            (0..10_000_u64).map(|inode| mark(&inode.to_le_bytes()).0).collect();
        assert_eq!(marks.len(), 10_000);
        let key = ObjectKey::new(b"a").unwrap();
        assert_ne!(FileMark::of(&key.born(1)), FileMark::of(&key.born(2)));
    }
}
