//! The writes to each block, shared by all workers of all loads of a step.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Set while a write of the block has no answer yet.
const IN_FLIGHT: u32 = 1 << 31;
/// Set when a write of the block was answered with a failure: the old and the new content are both
/// right until the same write is done again.
const UNSURE: u32 = 1 << 30;
/// The rest counts writes.
const GENERATION: u32 = UNSURE - 1;
/// Most blocks that are kept track of in one step: 1 GiB of memory.
pub const BLOCKS_MAX: u64 = 1 << 28;

/// The content of a file's blocks before the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The earlier content.
    Unknown,
    /// Nothing: it is one hole.
    Hole,
    /// The first write of each block, done while laying out.
    Stamped,
}

/// The expected content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nobody wrote it: what was there before.
    Untouched(Base),
    /// The content of its last answered write.
    Generation(u32),
    /// This write of it was never answered, or failed, so old and new content are both right.
    Uncertain(u32),
}

/// For each block of one file how often it was written, and whether a write is under way. There
/// is never more than one write of a block in flight, so that its last content is certain.
pub struct FileLedger {
    /// The file's name in the directory.
    pub name: String,
    /// The file's number in stamps.
    pub id: u64,
    base: Base,
    blocks: Box<[AtomicU32]>,
    checked: AtomicBool,
    /// The order of answered writes, where the server may lose them until a COMMIT.
    order: Option<Order>,
}

/// The order in which the writes of a file were answered, which of them are committed, and which
/// the server may have lost. A file has fewer than 2³² writes in a run.
struct Order {
    answered: AtomicU32,
    /// By block: the number of its last answered write, or of the last part of it.
    last: Box<[AtomicU32]>,
    /// Writes up to this number are committed.
    committed: AtomicU32,
    /// Writes that a restart found uncommitted: behind the first number, up to the second.
    exposed: Mutex<Vec<(u32, u32)>>,
}

impl Order {
    fn last(&self, block: u64) -> Option<&AtomicU32> {
        self.last.get(usize::try_from(block).ok()?)
    }
}

impl FileLedger {
    /// The file `name`, of `blocks` blocks.
    pub fn new(name: String, id: u64, base: Base, blocks: u64) -> Self {
        let first = u32::from(base == Base::Stamped);
        let blocks = (0..blocks).map(|_| AtomicU32::new(first)).collect();
        Self { name, id, base, blocks, checked: AtomicBool::new(false), order: None }
    }

    /// The same, of a file whose writes the server may lose until a COMMIT.
    #[must_use]
    pub fn unstable(mut self) -> Self {
        self.order = Some(Order {
            answered: AtomicU32::new(0),
            last: self.blocks.iter().map(|_| AtomicU32::new(0)).collect(),
            committed: AtomicU32::new(0),
            exposed: Mutex::new(Vec::new()),
        });
        self
    }

    /// The number of answered writes: what a COMMIT that is sent now covers.
    pub fn answered(&self) -> u32 {
        self.order.as_ref().map_or(0, |order| order.answered.load(Ordering::Relaxed))
    }

    /// A COMMIT that covers this many writes was answered.
    pub fn committed(&self, covers: u32) {
        if let Some(order) = &self.order {
            order.committed.fetch_max(covers, Ordering::Relaxed);
        }
    }

    /// The server may have lost every write that is not committed.
    fn expose(&self) {
        let Some(order) = &self.order else { return };
        let answered = order.answered.load(Ordering::Relaxed);
        let committed = order.committed.fetch_max(answered, Ordering::Relaxed);
        if committed < answered {
            let mut exposed = order.exposed.lock().unwrap_or_else(PoisonError::into_inner);
            exposed.push((committed, answered));
        }
    }

    fn is_exposed(&self, block: u64) -> bool {
        let Some(order) = &self.order else { return false };
        let exposed = order.exposed.lock().unwrap_or_else(PoisonError::into_inner);
        let last = order.last(block).map_or(0, |last| last.load(Ordering::Relaxed));
        exposed.iter().any(|(from, to)| (from + 1..=*to).contains(&last))
    }

    /// No write of `block` is in flight any more.
    fn answered_all(&self, block: u64) {
        if let Some(cell) = self.cell(block) {
            cell.fetch_and(GENERATION, Ordering::Relaxed);
        }
    }

    /// Gives the last write of `block` the next number.
    fn number(&self, block: u64) {
        if let Some(order) = &self.order
            && let Some(last) = order.last(block)
        {
            let number = order.answered.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            last.store(number, Ordering::Relaxed);
        }
    }

    /// Takes it over for reading back; `false` if another load of the step has done so.
    pub fn take(&self) -> bool {
        !self.checked.swap(true, Ordering::Relaxed)
    }

    fn cell(&self, block: u64) -> Option<&AtomicU32> {
        self.blocks.get(usize::try_from(block).ok()?)
    }
}

/// The state of a block at one time, kept until a read of it is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockState(u32);

/// The files of one load, by number.
pub struct Ledger {
    files: Vec<Arc<FileLedger>>,
    block_bytes: u32,
}

impl Ledger {
    /// A ledger of these files, in blocks of `block_bytes` bytes.
    pub const fn new(files: Vec<Arc<FileLedger>>, block_bytes: u32) -> Self {
        Self { files, block_bytes }
    }

    /// File `number`.
    pub fn file(&self, number: u32) -> Option<&FileLedger> {
        self.files.get(usize::try_from(number).ok()?).map(AsRef::as_ref)
    }

    /// The name of the file that `id` stands for in stamps, if it is one of these.
    pub fn name_of(&self, id: u64) -> Option<&str> {
        self.files.iter().find(|file| file.id == id).map(|file| file.name.as_str())
    }

    /// Bytes of a block.
    pub const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// The block at `offset`.
    pub fn block(&self, offset: u64) -> u64 {
        offset / u64::from(self.block_bytes.max(1))
    }

    /// Does a block begin at `offset`? A request within a block is for the rest of it: what came
    /// before was done by requests before it.
    pub fn begins(&self, offset: u64) -> bool {
        self.offset(self.block(offset)) == offset
    }

    /// The offset at which `block` begins.
    pub fn offset(&self, block: u64) -> u64 {
        block * u64::from(self.block_bytes)
    }

    /// Claims `block` of `file` for a write, or the next one after it among the `count` blocks
    /// from `first` on that has none in flight. Returns the block and the generation to write.
    /// `None` only if a write of every one of them is in flight.
    pub fn begin(&self, file: u32, block: u64, (first, count): (u64, u64)) -> Option<(u64, u32)> {
        let at = block.saturating_sub(first);
        (0..count).map(|step| first + (at + step) % count).find_map(|candidate| {
            self.begin_this(file, candidate).map(|generation| (candidate, generation))
        })
    }

    /// Claims `block` of `file` for a write and gives the generation to write: the same again if
    /// the last one failed. `None` if one is in flight, or there are no more generations.
    pub fn begin_this(&self, file: u32, block: u64) -> Option<u32> {
        let claim = |state: u32| match state {
            state if state & IN_FLIGHT != 0 => None,
            state if state & UNSURE != 0 => Some(state | IN_FLIGHT),
            GENERATION.. => None,
            generation => Some((generation + 1) | IN_FLIGHT),
        };
        let cell = self.cell(file, block)?;
        let before = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        claim(before).map(|state| state & GENERATION)
    }

    /// The write of `block` was answered with success.
    pub fn done(&self, file: u32, block: u64) {
        if let Some(of) = self.file(file) {
            of.answered_all(block);
            of.number(block);
        }
    }

    /// A request for the front of the write of `block` was answered with success.
    pub fn done_in_part(&self, file: u32, block: u64) {
        if let Some(of) = self.file(file)
            && !of.is_exposed(block)
        {
            of.number(block);
        }
    }

    /// The request for the rest of the write of `block` was answered with success. If a restart
    /// came after the front of it, that may be lost, and no COMMIT brings it back.
    pub fn done_rest(&self, file: u32, block: u64) {
        if let Some(of) = self.file(file) {
            of.answered_all(block);
            if !of.is_exposed(block) {
                of.number(block);
            }
        }
    }

    /// The server restarted: it may have lost every write that is not committed.
    pub fn expose(&self) {
        self.files.iter().for_each(|file| file.expose());
    }

    /// The oldest write that `block` of `file` may hold if the server may have lost its last ones;
    /// `None` if it may not.
    pub fn oldest_exposed(&self, file: u32, block: u64) -> Option<u32> {
        let of = self.file(file).filter(|of| of.is_exposed(block))?;
        Some(u32::from(of.base == Base::Stamped))
    }

    /// The write of `block` was answered with a failure: nobody knows whether it was done.
    pub fn failed(&self, file: u32, block: u64) {
        let fail = |state: u32| (state & IN_FLIGHT != 0).then_some((state & GENERATION) | UNSURE);
        if let Some(cell) = self.cell(file, block) {
            // Without a claim there is nothing that could have failed.
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fail);
        }
    }

    /// The claimed write of `block` was never sent.
    pub fn cancel(&self, file: u32, block: u64) {
        if let Some(cell) = self.cell(file, block) {
            let undo = |state: u32| match state {
                state if state & IN_FLIGHT == 0 => None,
                state if state & UNSURE != 0 => Some(state & !IN_FLIGHT),
                state => Some((state & GENERATION) - 1),
            };
            // Without a claim there is nothing to undo.
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, undo);
        }
    }

    /// The state of `block` of `file` now.
    pub fn look(&self, file: u32, block: u64) -> BlockState {
        BlockState(self.cell(file, block).map_or(0, |cell| cell.load(Ordering::Relaxed)))
    }

    /// The expected content of `block` of `file`.
    pub fn expected(&self, file: u32, block: u64) -> Expected {
        match self.look(file, block).0 {
            0 => Expected::Untouched(self.base(file)),
            state if state & !GENERATION != 0 => Expected::Uncertain(state & GENERATION),
            generation => Expected::Generation(generation),
        }
    }

    /// The earlier content of `file`.
    pub fn base(&self, file: u32) -> Base {
        self.file(file).map_or(Base::Unknown, |file| file.base)
    }

    /// Every block of `file` of which the content is known by a write, in order.
    pub fn written(&self, file: u32) -> impl Iterator<Item = u64> + '_ {
        let cells = self.file(file).map_or(&[][..], |file| &file.blocks);
        let touched = |(_, cell): &(u64, &AtomicU32)| cell.load(Ordering::Relaxed) != 0;
        (0..).zip(cells).filter(touched).map(|(block, _)| block)
    }

    /// The number of files.
    pub fn files(&self) -> u32 {
        u32::try_from(self.files.len()).unwrap_or(u32::MAX)
    }

    fn cell(&self, file: u32, block: u64) -> Option<&AtomicU32> {
        self.file(file)?.cell(block)
    }
}

impl BlockState {
    /// Nothing was looked at.
    pub const NONE: Self = Self(0);

    /// The oldest and the newest write that a read may show that was sent at `self` and answered
    /// at `after`.
    pub const fn until(self, after: Self) -> (u32, u32) {
        let before = self.0 & GENERATION;
        let is_sure = self.0 & !GENERATION == 0;
        let oldest = if is_sure { before } else { before.saturating_sub(1) };
        (oldest, after.0 & GENERATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(files: u32, blocks: u64, base: Base) -> Ledger {
        let file = |number: u32| {
            let name = format!("f{number}");
            Arc::new(FileLedger::new(name, u64::from(number), base, blocks))
        };
        Ledger::new((0..files).map(file).collect(), 4096)
    }

    #[test]
    fn uncommitted_writes_are_exposed_by_a_restart_and_committed_ones_are_not() {
        let file = FileLedger::new("f".into(), 1, Base::Hole, 4).unstable();
        let ledger = Ledger::new(vec![Arc::new(file)], 4096);
        let write = |block| {
            ledger.begin_this(0, block).unwrap();
            ledger.done(0, block);
        };
        let exposed = || [0, 1, 2, 3].map(|block| ledger.oldest_exposed(0, block).is_some());
        write(0);
        let covers = ledger.file(0).unwrap().answered();
        write(1);
        ledger.file(0).unwrap().committed(covers);
        assert_eq!(exposed(), [false; 4]);
        ledger.expose();
        write(2);
        assert_eq!(exposed(), [false, true, false, false]);
        ledger.expose();
        write(1);
        assert_eq!(exposed(), [false, false, true, false], "what is written anew is there again");
        assert_eq!(ledger.oldest_exposed(0, 2), Some(0));
    }

    #[test]
    fn a_write_in_parts_is_exposed_by_a_restart_between_them_and_until_it_is_committed_whole() {
        let file = FileLedger::new("f".into(), 1, Base::Hole, 2).unstable();
        let ledger = Ledger::new(vec![Arc::new(file)], 4096);
        let exposed = || [0, 1].map(|block| ledger.oldest_exposed(0, block).is_some());
        let commit = |covers| ledger.file(0).unwrap().committed(covers);
        let answered = || ledger.file(0).unwrap().answered();
        for block in [0, 1] {
            ledger.begin_this(0, block).unwrap();
            ledger.done_in_part(0, block);
        }
        assert_eq!(ledger.expected(0, 0), Expected::Uncertain(1));
        ledger.done_rest(0, 0);
        ledger.expose();
        ledger.done_rest(0, 1);
        assert_eq!(exposed(), [true, true]);
        commit(answered());
        assert_eq!(exposed(), [true, true], "the front of the second is lost for good");
        for block in [0, 1] {
            ledger.begin_this(0, block).unwrap();
            ledger.done(0, block);
        }
        assert_eq!(exposed(), [false, false]);
        commit(answered());
        ledger.begin_this(0, 0).unwrap();
        ledger.done_in_part(0, 0);
        let between = answered();
        ledger.done_rest(0, 0);
        commit(between);
        ledger.expose();
        assert_eq!(exposed(), [true, false], "the COMMIT covered the front alone");
    }

    #[test]
    fn what_an_exposed_block_holds_stays_open_while_it_is_written_in_parts() {
        let file = FileLedger::new("f".into(), 1, Base::Hole, 1).unstable();
        let ledger = Ledger::new(vec![Arc::new(file)], 4096);
        ledger.begin_this(0, 0).unwrap();
        ledger.done(0, 0);
        ledger.expose();
        ledger.begin_this(0, 0).unwrap();
        ledger.done_in_part(0, 0);
        assert_eq!(ledger.oldest_exposed(0, 0), Some(0), "the rest is the old one");
    }

    #[test]
    fn stable_writes_are_never_exposed() {
        let ledger = ledger(1, 1, Base::Stamped);
        ledger.begin_this(0, 0).unwrap();
        ledger.done(0, 0);
        ledger.expose();
        assert_eq!(ledger.oldest_exposed(0, 0), None);
    }

    #[test]
    fn a_block_in_flight_is_passed_over_and_generations_count_up() {
        let ledger = ledger(2, 4, Base::Hole);
        assert_eq!(ledger.begin(1, 3, (0, 4)), Some((3, 1)));
        assert_eq!(ledger.begin(1, 3, (0, 4)), Some((0, 1)), "it wraps within the file");
        ledger.done(1, 3);
        assert_eq!(ledger.begin(1, 3, (0, 4)), Some((3, 2)));
        assert_eq!(ledger.expected(1, 3), Expected::Uncertain(2));
        ledger.done(1, 3);
        assert_eq!(ledger.expected(1, 3), Expected::Generation(2));
        assert_eq!(ledger.expected(0, 3), Expected::Untouched(Base::Hole));
        assert_eq!(ledger.written(1).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn with_every_block_in_flight_there_is_none_to_claim() {
        let ledger = ledger(1, 4, Base::Hole);
        assert_eq!(ledger.begin(0, 3, (2, 2)), Some((3, 1)));
        assert_eq!(ledger.begin(0, 3, (2, 2)), Some((2, 1)), "it wraps within the region");
        assert_eq!(ledger.begin(0, 3, (2, 2)), None);
    }

    #[test]
    fn what_was_laid_out_is_the_first_write_and_what_was_never_sent_is_none() {
        let ledger = ledger(1, 2, Base::Stamped);
        assert_eq!(ledger.expected(0, 0), Expected::Generation(1));
        assert_eq!(ledger.written(0).count(), 2);
        assert_eq!(ledger.begin_this(0, 0), Some(2));
        assert_eq!(ledger.begin_this(0, 0), None);
        ledger.cancel(0, 0);
        assert_eq!(ledger.expected(0, 0), Expected::Generation(1));
    }

    #[test]
    fn a_write_that_failed_is_uncertain_until_the_same_is_written_again() {
        let ledger = ledger(1, 1, Base::Stamped);
        assert_eq!(ledger.begin_this(0, 0), Some(2));
        ledger.failed(0, 0);
        assert_eq!(ledger.expected(0, 0), Expected::Uncertain(2));
        let unsure = ledger.look(0, 0);
        assert_eq!(unsure.until(unsure), (1, 2));
        assert_eq!(ledger.begin_this(0, 0), Some(2), "the same content once more");
        assert_eq!(ledger.begin_this(0, 0), None);
        ledger.cancel(0, 0);
        assert_eq!(ledger.expected(0, 0), Expected::Uncertain(2));
        assert_eq!(ledger.begin_this(0, 0), Some(2));
        ledger.done(0, 0);
        assert_eq!(ledger.expected(0, 0), Expected::Generation(2));
        ledger.failed(0, 0);
        assert_eq!(ledger.expected(0, 0), Expected::Generation(2), "nothing was under way");
    }

    #[test]
    fn a_block_that_has_used_up_its_generations_is_not_written_any_more() {
        let ledger = ledger(1, 1, Base::Hole);
        ledger.cell(0, 0).unwrap().store(GENERATION - 1, Ordering::Relaxed);
        assert_eq!(ledger.begin_this(0, 0), Some(GENERATION));
        ledger.done(0, 0);
        assert_eq!(ledger.begin_this(0, 0), None);
        assert_eq!(ledger.expected(0, 0), Expected::Generation(GENERATION));
    }

    #[test]
    fn a_read_may_show_what_was_in_flight_at_its_time_and_no_more() {
        let ledger = ledger(1, 1, Base::Stamped);
        let quiet = ledger.look(0, 0);
        assert_eq!(quiet.until(ledger.look(0, 0)), (1, 1));
        ledger.begin_this(0, 0);
        assert_eq!(quiet.until(ledger.look(0, 0)), (1, 2));
        let during = ledger.look(0, 0);
        ledger.done(0, 0);
        assert_eq!(during.until(ledger.look(0, 0)), (1, 2));
        assert_eq!(ledger.look(0, 0).until(ledger.look(0, 0)), (2, 2));
    }
}
