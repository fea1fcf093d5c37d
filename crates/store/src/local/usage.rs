//! The used space of a volume: the units of data in its regular files, each file once however many
//! names it has.
//!
//! Every change of a file's data (see [`crate::local::shape`]) opens the *books*, announces what
//! it may add, does its system calls, and settles what it did add or free. What was announced is
//! taken from the quota at once, so that concurrent writes can't pass it together, and exactly, so
//! that none is refused that fits.
//!
//! The usage survives the server in a record (see [`super::record`]): exact after a clean stop.
//! While the volume changes, the record says what the usage is at most: before growth passes that,
//! a new one is written. After an unclean stop that most is held against the quota until a recount
//! (see [`super::recount`]) is done. A volume that has not changed since it was opened keeps its
//! clean record.

use super::record::{Record, Root, State};
use super::recount::Recount;
use super::volume::{Step, Waiting};
use crate::control::{Counted, Counting};
use crate::pool::Lane;
use crate::sync::{
    Acquire, Arc, AtomicBool, AtomicI64, AtomicU64, Mutex, ReadGuard, Relaxed, Release, RwLock,
    SeqCst, Weak,
};
use weir_core::{FsError, FsResult, ObjectKey};

/// A sixteenth of the quota, within these bounds, is how far the usage may grow before the record
/// is written anew: few syncs, and little to hold back after an unclean stop.
const STEP_PART: u64 = 16;
const STEP_MIN: u64 = 1 << 20;
const STEP_MAX: u64 = 1 << 30;
/// No usage at all is covered by the record: the next change must write one.
const NOTHING: i64 = i64::MIN;

/// One volume's quota and what of it is used.
#[derive(Debug)]
pub(super) struct Usage {
    quota: AtomicU64,
    /// The data in files, and what changes under way may add.
    taken: AtomicI64,
    /// The most by which `taken` may be below the true usage, until a recount.
    margin: AtomicU64,
    known: AtomicBool,
    /// The most that the record allows `taken` to be.
    covered: AtomicI64,
    /// The value of `taken` when the record was written.
    recorded: AtomicI64,
    /// A record is being written or about to be.
    writing: AtomicBool,
    closed: AtomicBool,
    record: Mutex<Record>,
    /// Held for reading by every change, so that a recount begins and ends between changes.
    recount: RwLock<Option<Arc<Recount>>>,
    last_count: Mutex<Option<Counted>>,
    lane: Arc<Lane>,
    own: Weak<Self>,
}

/// Access to the usage for one change. Opened before the locks of the files concerned.
pub(super) struct Books<'a> {
    usage: &'a Usage,
    recount: ReadGuard<'a, Option<Arc<Recount>>>,
}

/// A change that was announced. Dropped without [`Change::settle`], nothing has changed.
pub(super) struct Change<'a> {
    books: &'a Books<'a>,
    announced: i64,
}

impl Usage {
    pub(super) fn new(
        quota: u64,
        root: impl Root + 'static,
        found: State,
        lane: Arc<Lane>,
    ) -> Arc<Self> {
        let (taken, margin, known) = match found {
            State::Clean { used } => (used, 0, true),
            State::Open { used, most } => (used, most.saturating_sub(used), false),
            State::Missing => (0, 0, false),
        };
        Arc::new_cyclic(|own| Self {
            quota: AtomicU64::new(quota),
            taken: AtomicI64::new(signed(taken)),
            margin: AtomicU64::new(margin),
            known: AtomicBool::new(known),
            covered: AtomicI64::new(NOTHING),
            recorded: AtomicI64::new(signed(taken)),
            writing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            record: Mutex::new(Record::new(root, found)),
            recount: RwLock::default(),
            last_count: Mutex::default(),
            lane,
            own: Weak::clone(own),
        })
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota.load(Acquire)
    }

    pub(super) fn set_quota(&self, bytes: u64) {
        self.quota.store(bytes, Release);
    }

    /// Bytes in use, never negative.
    pub(super) fn used(&self) -> u64 {
        u64::try_from(self.taken.load(Acquire)).unwrap_or(0)
    }

    /// Bytes that may still be written: the quota less what is used at most.
    pub(super) fn free(&self) -> u64 {
        self.quota().saturating_sub(self.used().saturating_add(self.margin.load(Acquire)))
    }

    /// Is the usage exact? Not between an unclean stop and the end of the recount.
    pub(super) fn is_known(&self) -> bool {
        self.known.load(Acquire)
    }

    /// Opens the books for a change.
    pub(super) fn books(&self) -> Books<'_> {
        Books { usage: self, recount: self.recount.read() }
    }

    /// Takes `bytes` from the quota if it has them, and the record covers them.
    fn take(&self, bytes: u64, waiting: Waiting) -> Step<()> {
        loop {
            let room = signed(self.quota()) - signed(self.margin.load(Acquire)) - signed(bytes);
            let fits = |taken: i64| (bytes == 0 || taken <= room).then_some(taken + signed(bytes));
            let before = self
                .taken
                .fetch_update(SeqCst, SeqCst, fits)
                .map_err(|_| FsError::QuotaExceeded)?;
            let taken = before + signed(bytes);
            let covered = self.covered.load(SeqCst);
            if taken <= covered {
                if taken > covered - self.step() / 2 {
                    self.record_soon();
                }
                return Ok(());
            }
            self.taken.fetch_sub(signed(bytes), SeqCst);
            waiting.or_stop()?;
            self.record(Some(bytes))?;
        }
    }

    fn settle(&self, bytes: i64) {
        let taken = self.taken.fetch_add(bytes, SeqCst) + bytes;
        if bytes < 0 && taken < self.recorded.load(Relaxed) - self.step() {
            self.record_soon();
        }
    }

    fn step(&self) -> i64 {
        signed((self.quota() / STEP_PART).clamp(STEP_MIN, STEP_MAX))
    }

    fn record_soon(&self) {
        if self.writing.swap(true, SeqCst) {
            return;
        }
        if let Some(own) = self.own.upgrade() {
            self.lane.run_rounds(move || {
                // A change that needs the record will try again, and report the error.
                own.record(None).unwrap_or_default();
                false
            });
        }
    }

    /// Writes a record that covers growth by `bytes` and a step more, if it must for a change that
    /// waits; without one, unless the volume was closed.
    fn record(&self, bytes: Option<u64>) -> FsResult<()> {
        let mut record = self.record.lock();
        let growth = signed(bytes.unwrap_or(0));
        let done = match bytes {
            Some(_) => self.taken.load(SeqCst) + growth <= self.covered.load(SeqCst),
            None => self.covered.load(SeqCst) == NOTHING && self.is_known(),
        };
        if done {
            self.writing.store(false, SeqCst);
            return Ok(());
        }
        let (used, most) = loop {
            let used = self.taken.load(SeqCst);
            let most = used + growth + self.step();
            self.covered.fetch_min(most, SeqCst);
            // Whoever has taken more before it could see that is seen here.
            if self.taken.load(SeqCst) <= most {
                break (used, most);
            }
        };
        let bytes = |signed: i64| u64::try_from(signed).unwrap_or(0);
        let most_used = bytes(most).saturating_add(self.margin.load(Acquire));
        let written = record.write(State::Open { used: bytes(used), most: most_used });
        if written.is_ok() {
            self.recorded.store(used, Relaxed);
            self.covered.store(most, SeqCst);
        }
        self.writing.store(false, SeqCst);
        written
    }

    /// Writes that the usage is exact, if it is and that isn't on record, once `sync` has made
    /// stable what it counts. Nothing may change afterwards without [`Usage::record`], which is
    /// what `covered` sees to.
    pub(super) fn close(&self, sync: impl FnOnce() -> FsResult<()>) -> FsResult<()> {
        let mut record = self.record.lock();
        self.closed.store(true, SeqCst);
        if !self.is_known() {
            return Ok(());
        }
        self.covered.store(NOTHING, SeqCst);
        let clean = State::Clean { used: self.used() };
        if record.says(clean) {
            return Ok(());
        }
        sync()?;
        record.write(clean)
    }

    /// Puts on record what a recount found, once `sync` has made stable what it counted. While
    /// nothing has changed since the volume was opened, that is exactly its usage, and the record
    /// would go on saying what was thought before.
    pub(super) fn record_counted(&self, used: u64, sync: impl FnOnce() -> FsResult<()>) {
        if self.covered.load(SeqCst) != NOTHING {
            return self.record_soon();
        }
        if let Err(error) = sync() {
            tracing::warn!(%error, "cannot store the recounted usage: it will be recounted at the next start");
            return;
        }
        let mut record = self.record.lock();
        let clean = State::Clean { used };
        // A change in the meantime has written a record, and so has a stop.
        if self.covered.load(SeqCst) == NOTHING && !self.closed.load(SeqCst) && !record.says(clean)
        {
            // It warns by itself, and leaves no record that is wrong.
            record.write(clean).unwrap_or_default();
        }
    }

    /// Begins a recount, unless one is under way.
    pub(super) fn begin_recount(&self) -> Option<Arc<Recount>> {
        let mut recount = self.recount.write();
        if recount.is_some() {
            return None;
        }
        let begun = Arc::new(Recount::default());
        *recount = Some(Arc::clone(&begun));
        Some(begun)
    }

    /// Ends the recount, if nothing is left to be walked: what it found is the usage from now on,
    /// to be put [on record](Self::record_counted).
    pub(super) fn finish_recount(&self) -> Option<Counted> {
        let mut recount = self.recount.write();
        // No change is under way here, so nothing is announced that is not settled.
        let mut counted = recount.as_ref()?.finish(self.used())?;
        counted.number += self.last_count().map_or(0, |last| last.number);
        *recount = None;
        self.taken.store(signed(counted.after_bytes), SeqCst);
        self.margin.store(0, Release);
        self.known.store(true, Release);
        *self.last_count.lock() = Some(counted);
        Some(counted)
    }

    /// Ends the recount without a result.
    pub(super) fn abandon_recount(&self) {
        *self.recount.write() = None;
    }

    /// Has a recount under way been told of this file? To be asked without its shape.
    pub(super) fn has_counted(&self, fileid: u64) -> bool {
        self.recount.read().as_ref().is_some_and(|recount| recount.has_visited(fileid))
    }

    /// The progress of the running recount.
    pub(super) fn counting(&self) -> Option<Counting> {
        self.recount.read().as_ref().map(|recount| recount.progress())
    }

    /// The result of the last recount since the volume was opened.
    pub(super) fn last_count(&self) -> Option<Counted> {
        *self.last_count.lock()
    }
}

impl Books<'_> {
    /// Announces a change of the file `fileid`, which counts for `counts` now and may grow by
    /// `growth`. `WouldWait` where a record must be written first.
    pub(super) fn announce(
        &self,
        fileid: u64,
        counts: u64,
        growth: u64,
        waiting: Waiting,
    ) -> Step<Change<'_>> {
        self.visit(fileid, counts);
        if counts > 0 || growth > 0 {
            self.usage.take(growth, waiting)?;
        }
        let announced = signed(growth);
        self.mirror(announced);
        Ok(Change { books: self, announced })
    }

    /// Tells a recount under way of a file before it is changed or moved.
    pub(super) fn visit(&self, fileid: u64, counts: u64) {
        if let Some(recount) = &*self.recount {
            recount.visit(fileid, counts);
        }
    }

    fn add(&self, bytes: i64) {
        self.mirror(bytes);
        self.usage.settle(bytes);
    }

    /// Is a recount under way, to be told of what moves?
    pub(super) fn recounting(&self) -> bool {
        self.recount.is_some()
    }

    /// Tells a recount under way of a directory before it is moved.
    pub(super) fn moves(&self, fileid: u64, key: ObjectKey) {
        if let Some(recount) = &*self.recount {
            recount.moves(fileid, key);
        }
    }

    fn mirror(&self, bytes: i64) {
        if let Some(recount) = &*self.recount {
            recount.add(bytes);
        }
    }
}

impl Change<'_> {
    /// The change has added `bytes` of data, or freed them.
    pub(super) fn settle(mut self, bytes: i64) {
        let announced = std::mem::take(&mut self.announced);
        self.books.add(bytes - announced);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if self.announced != 0 {
            self.books.add(-self.announced);
        }
    }
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{LaneBounds, Pool};
    use std::sync::Barrier;

    const UNIT: u64 = 4096;
    const MIB: u64 = 1 << 20;

    struct Bed {
        usage: Arc<Usage>,
        volume: tempfile::TempDir,
    }

    fn bed(quota: u64, state: State) -> Bed {
        let volume = tempfile::tempdir().unwrap();
        let [root, _] = ["root", "meta"].map(|name| {
            let path = volume.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::File::open(path).unwrap()
        });
        let bounds = LaneBounds { running_max: 2, queued_max: 10 };
        let lane = Arc::new(Pool::new(16).unwrap().lane(bounds));
        Bed { usage: Usage::new(quota, root, state, lane), volume }
    }

    fn on_record(bed: &Bed) -> State {
        Record::read(&std::fs::File::open(bed.volume.path().join("meta")).unwrap().into())
    }

    fn grow(usage: &Usage, bytes: u64) -> Step<()> {
        let books = usage.books();
        books.announce(1, 0, bytes, Waiting::Allowed).map(|change| change.settle(signed(bytes)))
    }

    #[test]
    fn of_two_writes_at_once_that_do_not_both_fit_exactly_one_is_let_through() {
        let bed = bed(100 * UNIT, State::Clean { used: 0 });
        let (usage, barrier) = (&bed.usage, &Barrier::new(2));
        let attempt = move || {
            let mut passed = 0;
            for _ in 0..2000 {
                barrier.wait();
                let books = usage.books();
                let change = books.announce(1, 0, 60 * UNIT, Waiting::Allowed);
                passed += u32::from(change.is_ok());
                barrier.wait();
                drop(change);
                barrier.wait();
            }
            passed
        };
        let passed = std::thread::scope(|scope| {
            let other = scope.spawn(attempt);
            attempt() + other.join().unwrap()
        });
        assert_eq!(passed, 2000);
        assert_eq!(usage.used(), 0, "what was announced and not done was given back");
        grow(usage, 100 * UNIT).unwrap();
        assert_eq!(grow(usage, UNIT), Err(FsError::QuotaExceeded.into()));
    }

    #[test]
    fn the_record_covers_growth_before_it_happens() {
        let bed = bed(64 * MIB, State::Clean { used: 5 * UNIT });
        let books = bed.usage.books();
        let inline = books.announce(1, 0, UNIT, Waiting::Never).map(drop);
        assert_eq!(inline, Err(super::super::volume::Stop::WouldWait));
        let inline = books.announce(1, UNIT, 0, Waiting::Never).map(drop);
        assert_eq!(inline, Err(super::super::volume::Stop::WouldWait), "freeing too");
        drop(books);
        for _ in 0..60 {
            grow(&bed.usage, MIB).unwrap();
            let State::Open { most, .. } = on_record(&bed) else { panic!("no open record") };
            assert!(most >= bed.usage.used(), "{most} < {}", bed.usage.used());
            assert!(most <= bed.usage.used() + 64 * MIB / 16 + MIB);
        }
        bed.usage.close(|| Ok(())).unwrap();
        assert_eq!(on_record(&bed), State::Clean { used: 60 * MIB + 5 * UNIT });
    }

    #[test]
    fn until_a_recount_the_most_that_may_be_used_is_held_against_the_quota() {
        let bed = bed(100 * MIB, State::Open { used: 50 * MIB, most: 60 * MIB });
        let usage = &bed.usage;
        assert!(!usage.is_known());
        assert_eq!((usage.used(), usage.free()), (50 * MIB, 40 * MIB));
        assert_eq!(grow(usage, 41 * MIB), Err(FsError::QuotaExceeded.into()));
        grow(usage, 10 * MIB).unwrap();
        let State::Open { most, .. } = on_record(&bed) else { panic!("no open record") };
        assert!(most >= 70 * MIB, "a second crash must not forget the first");
        usage.close(|| Ok(())).unwrap();
        assert!(matches!(on_record(&bed), State::Open { .. }), "it isn't exact");

        let recount = usage.begin_recount().unwrap();
        assert!(usage.begin_recount().is_none());
        recount.visit(7, 55 * MIB);
        let counted = usage.finish_recount().unwrap();
        assert_eq!((counted.before_bytes, counted.after_bytes), (60 * MIB, 55 * MIB));
        assert!(usage.is_known());
        assert_eq!((usage.used(), usage.free()), (55 * MIB, 45 * MIB));
    }

    #[test]
    fn a_change_that_is_announced_during_a_recount_and_not_done_counts_nothing() {
        let bed = bed(100 * MIB, State::Clean { used: 0 });
        let recount = bed.usage.begin_recount().unwrap();
        let books = bed.usage.books();
        let change = books.announce(3, 2 * UNIT, 5 * UNIT, Waiting::Allowed).unwrap();
        assert_eq!(recount.progress().bytes, 7 * UNIT);
        drop(change);
        books.announce(3, 2 * UNIT, 5 * UNIT, Waiting::Allowed).unwrap().settle(signed(UNIT));
        drop(books);
        assert_eq!(bed.usage.finish_recount().unwrap().after_bytes, 3 * UNIT);
    }
}
