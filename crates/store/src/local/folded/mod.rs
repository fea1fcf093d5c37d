//! Looking names up without regard to case: by an index of the directory's names, which is built in
//! the pool when a name is first missed, and from then on follows every change of names.
//!
//! All changes go through [`super::names`], under the directory's lock, with the directory's count
//! of them; an index that misses a count is dropped. Changes that come while an index is being
//! built are kept in a journal and carried out after what the listing has found, in their order. So
//! a name that came or went meanwhile is right whether the listing had it or not.
//!
//! Of a name in the index the kernel has the last word. That a name is missing is the index's to
//! say: it saves the kernel the question.
//!
//! The indexes of all volumes are bounded together ([`crate::index_memory`]). A directory that is
//! too large for an index is listed for each name that is missed.

mod arena;
mod index;
mod journal;
mod scan;

use super::LocalStore;
use super::inode::Inode;
use super::switch::{Epoch, KnownIn};
use crate::index_memory::{Holder, IndexMemory};
use crate::pool::Lane;
use crate::sync::{Arc, AtomicU64, Mutex, Promise, Relaxed, promise};
use index::{Index, Matches};
use journal::{Journal, Unusable};
use scan::Listed;
use weir_core::store::Folded as Found;
use weir_core::{FsError, FsResult, Name};

/// Names of a group that a worker compares, and names that are compared without releasing the lock.
/// A group has several names if they differ in case alone.
const LOOKS_INLINE: usize = 64;
const LOOKS_AT_ONCE: usize = 4096;
/// The number of times that a lookup searches the index because names change meanwhile. Only the
/// first few of them build an index that is missing.
const ROUNDS_MAX: usize = 8;
const BUILDS_MAX: usize = 2;
/// Changes of a journal that are applied to a new index while the directory's index is locked.
const LAST_CHANGES_MAX: usize = 256;
/// An index of more bytes than this is dropped in the pool.
const DROPPED_INLINE_MAX: usize = 64 << 10;
/// Bytes by which an index may grow before the growth is accounted for, and bytes of an index
/// without names.
const STEP_BYTES: usize = 4096;
const BASE_BYTES: usize = 512;
/// Names that must be removed from a directory that was too large before an index is built again.
const TRIED_AGAIN_AFTER: usize = 1 << 20;

/// A directory's names without regard to case.
#[derive(Debug)]
pub(super) struct Folded {
    state: Mutex<State>,
    last_use: AtomicU64,
    /// The index is of this epoch of the metadata cache.
    current: KnownIn,
    memory: Arc<IndexMemory>,
    lane: Arc<Lane>,
}

#[derive(Debug)]
enum State {
    /// No index.
    None,
    /// The directory had more names than an index may have, of which so many have gone since.
    TooLarge { gone: usize },
    /// An index is being built.
    Building(Building),
    /// An index that has all names.
    Ready(Box<Ready>),
}

struct Building {
    journal: Journal,
    waiting: Vec<Promise<FsResult<()>>>,
}

impl std::fmt::Debug for Building {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "for {}", self.waiting.len())
    }
}

#[derive(Debug)]
struct Ready {
    index: Index,
    /// The directory's count of changes; unknown until there is one.
    count: Option<u64>,
    /// Moves with each change.
    version: u64,
    /// The bytes that it was accounted for with.
    accounted: usize,
}

/// The answer of an index.
enum Answer {
    /// The names that a name may mean, in the index of this version.
    Names(Matches, u64),
    /// There are too many to be looked at here.
    WouldWait,
    /// There is no index.
    Unknown { too_large: bool },
}

impl Folded {
    fn new(memory: Arc<IndexMemory>, lane: Arc<Lane>) -> Arc<Self> {
        let state = Mutex::new(State::None);
        let (last_use, current) = (AtomicU64::new(0), KnownIn::default());
        let folded = Arc::new(Self { state, last_use, current, memory, lane });
        let holder = Arc::downgrade(&folded);
        folded.memory.enter(holder);
        folded
    }

    /// Takes over a change of the directory's names, the one that moved its count to `count`: is
    /// `name` there now? The directory is locked.
    pub(super) fn note(&self, name: &[u8], there: bool, count: u64) {
        let mut state = self.state.lock();
        let kept = match &mut *state {
            State::None => return,
            State::TooLarge { gone } => {
                *gone += usize::from(!there);
                if *gone > TRIED_AGAIN_AFTER {
                    *state = State::None;
                }
                return;
            }
            State::Building(building) => {
                building.journal.push(name, there, count);
                return;
            }
            State::Ready(ready) => ready.note(name, there, count),
        };
        if !kept {
            self.discard(&mut state);
        } else if let State::Ready(ready) = &mut *state
            && ready.bytes().abs_diff(ready.accounted) >= STEP_BYTES
        {
            self.account(ready);
        }
    }

    /// Drops an index of another epoch of the metadata cache, and any while it is off: others may
    /// have changed the directory.
    fn use_in(&self, epoch: Epoch) {
        if !self.current.hold_in(epoch) || !epoch.is_on() {
            self.invalidate();
        }
    }

    /// Drops the index: it may be wrong.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        match &mut *state {
            State::None | State::TooLarge { .. } => {}
            State::Building(building) => building.journal.give_up(),
            State::Ready(_) => self.discard(&mut state),
        }
    }

    fn account(&self, ready: &mut Ready) {
        let now = ready.bytes();
        if self.memory.change(ready.accounted, now) {
            let (memory, lane) = (Arc::clone(&self.memory), Arc::clone(&self.lane));
            self.lane.run_rounds(move || {
                let _until_done = &lane;
                memory.make_room();
                false
            });
        }
        ready.accounted = now;
    }

    fn discard(&self, state: &mut State) {
        let State::Ready(ready) = std::mem::replace(state, State::None) else { return };
        self.memory.change(ready.accounted, 0);
        if ready.accounted > DROPPED_INLINE_MAX {
            let (mut ready, lane) = (Some(ready), Arc::clone(&self.lane));
            self.lane.run_rounds(move || {
                let _until_done = &lane;
                drop(ready.take());
                false
            });
        }
    }

    /// The names that `wanted` may mean, if no more than a few are to be looked at.
    fn matches(&self, wanted: &[u8]) -> Answer {
        let state = self.state.lock();
        let State::Ready(ready) = &*state else {
            return Answer::Unknown { too_large: matches!(*state, State::TooLarge { .. }) };
        };
        let mut found = Matches::default();
        match ready.index.gather(wanted, None, LOOKS_INLINE, &mut found) {
            None => {
                self.last_use.store(self.memory.count_use(), Relaxed);
                Answer::Names(found, ready.version)
            }
            Some(_) => Answer::WouldWait,
        }
    }

    /// The same among any number, in the pool. Names that come or go meanwhile may be missed, which
    /// the version tells.
    fn all_matches(&self, wanted: &[u8]) -> Answer {
        let (mut found, mut begin, mut version) = (Matches::default(), None, None);
        loop {
            let state = self.state.lock();
            let State::Ready(ready) = &*state else {
                return Answer::Unknown { too_large: matches!(*state, State::TooLarge { .. }) };
            };
            let version = *version.get_or_insert(ready.version);
            begin = ready.index.gather(wanted, begin, LOOKS_AT_ONCE, &mut found);
            if begin.is_none() {
                return Answer::Names(found, version);
            }
        }
    }

    /// Has the index changed since it was of this version?
    fn has_changed(&self, version: u64) -> bool {
        !matches!(&*self.state.lock(), State::Ready(ready) if ready.version == version)
    }

    /// Adds somebody who waits for an index to be built. True if nobody is building it yet.
    fn join(&self, waiter: Promise<FsResult<()>>) -> bool {
        let mut state = self.state.lock();
        match &mut *state {
            State::Building(building) => {
                building.waiting.push(waiter);
                false
            }
            State::Ready(_) | State::TooLarge { .. } => {
                drop(state);
                waiter.give(Ok(()));
                false
            }
            State::None => {
                let (journal, waiting) = (Journal::new(&self.memory), vec![waiter]);
                *state = State::Building(Building { journal, waiting });
                true
            }
        }
    }

    /// Applies the changes that came while the index was built, and puts it into use.
    fn put_into_use(&self, listed: Listed) -> Result<(), Unusable> {
        let Listed { mut index, charge } = listed;
        let mut count = None;
        loop {
            let mut state = self.state.lock();
            let State::Building(building) = &mut *state else { return Ok(()) };
            let journal = building.journal.take();
            if journal.len() > LAST_CHANGES_MAX {
                drop(state);
                count = journal.play(&mut index, count)?;
                continue;
            }
            let count = journal.play(&mut index, count)?;
            let used = self.memory.count_use();
            self.last_use.store(used, Relaxed);
            // Never one of an earlier index.
            let version = used << u32::BITS;
            let accounted = charge.pass_on();
            let mut ready = Box::new(Ready { index, count, version, accounted });
            self.account(&mut ready);
            let State::Building(building) = std::mem::replace(&mut *state, State::Ready(ready))
            else {
                return Ok(());
            };
            drop(state);
            building.waiting.into_iter().for_each(|waiter| waiter.give(Ok(())));
            return Ok(());
        }
    }

    /// Ends the building without an index.
    fn end_building(&self, state: State, result: FsResult<()>) {
        let mut now = self.state.lock();
        if !matches!(*now, State::Building(_)) {
            return;
        }
        let State::Building(building) = std::mem::replace(&mut *now, state) else { return };
        drop(now);
        building.waiting.into_iter().for_each(|waiter| waiter.give(result));
    }
}

impl Ready {
    fn bytes(&self) -> usize {
        BASE_BYTES + self.index.bytes()
    }

    /// Is the index right afterwards, and worth its memory?
    fn note(&mut self, name: &[u8], there: bool, count: u64) -> bool {
        if self.count.is_some_and(|last| last + 1 != count) {
            return false;
        }
        self.count = Some(count);
        self.version += 1;
        if there {
            return self.index.insert(name).is_ok();
        }
        self.index.remove(name);
        !self.index.is_wasteful()
    }
}

impl Holder for Folded {
    fn last_use(&self) -> u64 {
        self.last_use.load(Relaxed)
    }

    fn release(&self) {
        let mut state = self.state.lock();
        if let State::Ready(ready) = &mut *state {
            self.memory.change(ready.accounted, 0);
            let dropped = std::mem::replace(&mut *state, State::None);
            drop(state);
            drop(dropped);
        }
    }
}

impl Drop for Folded {
    /// The directory is closed, perhaps on a worker.
    fn drop(&mut self) {
        self.invalidate();
    }
}

impl Inode {
    /// Tells a directory's index, if it has one, of a change of names.
    #[inline]
    pub(super) fn note_folded(&self, name: Name<'_>, there: bool, count: u64) {
        if let Some(folded) = self.folded() {
            folded.note(name.as_bytes(), there, count);
        }
    }

    #[inline]
    pub(super) fn folded(&self) -> Option<&Arc<Folded>> {
        self.extras.get()?.folded.get()
    }
}

impl LocalStore {
    pub(super) async fn lookup_folded(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> FsResult<Found<Arc<Inode>>> {
        dir.need_directory()?;
        if let Some(object) = self.0.names.get(dir, name) {
            let attr = object.attr()?;
            return told(name, Ok((object, attr)));
        }
        if name.is_special() {
            return told(name, self.lookup(dir, name).await);
        }
        Box::pin(self.lookup_by_index(dir, name)).await
    }

    async fn lookup_by_index(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> FsResult<Found<Arc<Inode>>> {
        let (memory, lane) = (&self.0.index_memory, &self.0.lane);
        let new = || Folded::new(Arc::clone(memory), Arc::clone(lane));
        let folded = dir.extras().folded.get_or_init(new);
        folded.use_in(self.0.switch.epoch());
        for round in 0..ROUNDS_MAX {
            let answer = match folded.matches(name.as_bytes()) {
                Answer::WouldWait => {
                    let (folded, wanted) = (Arc::clone(folded), Box::from(name.as_bytes()));
                    self.pooled(move |_| Ok(folded.all_matches(&wanted))).await?
                }
                answer => answer,
            };
            let Answer::Names(matches, version) = answer else {
                // Most names that are asked for are right, and a directory may never need an index.
                match self.lookup(dir, name).await {
                    Err(FsError::NotFound) => {}
                    found => return told(name, found),
                }
                let too_large = matches!(answer, Answer::Unknown { too_large: true });
                if too_large || round >= BUILDS_MAX || !self.0.switch.is_on() {
                    break;
                }
                self.build(dir, folded).await?;
                continue;
            };
            // Keeps the directory open, and with it the index.
            self.0.table.get(&dir.key);
            if let Some(found) = self.first_of(dir, name, &matches).await? {
                return Ok(found);
            }
            if !folded.has_changed(version) {
                return Err(FsError::NotFound);
            }
        }
        self.lookup_by_listing(dir, name).await
    }

    /// The first of the names that is there.
    async fn first_of(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        matches: &Matches,
    ) -> FsResult<Option<Found<Arc<Inode>>>> {
        let exact = matches.exact.then_some(name.as_bytes());
        for other in exact.into_iter().chain(matches.others.iter().map(AsRef::as_ref)) {
            let other = Name::new(other)?;
            match self.lookup(dir, other).await {
                Err(FsError::NotFound) => {}
                found => return told(other, found).map(Some),
            }
        }
        Ok(None)
    }

    /// Without an index, by reading the whole directory.
    async fn lookup_by_listing(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> FsResult<Found<Arc<Inode>>> {
        let (own, wanted) = (Arc::clone(dir), Box::<[u8]>::from(name.as_bytes()));
        let matches = self.pooled(move |volume| scan::matches(volume, &own, &wanted)).await?;
        self.first_of(dir, name, &matches).await?.ok_or(FsError::NotFound)
    }

    /// Has an index built, or waits until somebody else has.
    async fn build(&self, dir: &Arc<Inode>, folded: &Arc<Folded>) -> FsResult<()> {
        let (waiter, answer) = promise();
        if folded.join(waiter) {
            let (volume, dir, folded) = (Arc::clone(&self.0), Arc::clone(dir), Arc::clone(folded));
            // At most one for each directory that is held open.
            self.0.lane.run_rounds(move || {
                scan::build(&volume, &dir, &folded);
                false
            });
        }
        answer.await.unwrap_or(Err(FsError::Io))
    }
}

fn told(
    name: Name<'_>,
    found: FsResult<(Arc<Inode>, weir_core::Attr)>,
) -> FsResult<Found<Arc<Inode>>> {
    found.map(|(object, attr)| Found { name: name.as_bytes().into(), object, attr })
}

#[cfg(test)]
mod tests;
