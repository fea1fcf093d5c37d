//! Changes of one file's data or of one directory's names, one after the other.
//!
//! The kernel lets one buffered write into a file and one change into a directory at a time
//! (`i_rwsem`, on ext4 and XFS alike), and a directory's names have a lock of ours. Threads that
//! meet on such a lock spin and sleep, at up to four times the processor time of the change, and
//! look as slow as a disk that can't follow. So a change that finds another one at work leaves
//! itself with the thread that does that one: a thread of the pool, or a worker, which carries out
//! a few changes of other workers after its own and sends the rest to the pool.
//!
//! The queue is bounded by the requests that connections may have in flight.

use super::LocalStore;
use super::inode::Inode;
use super::volume::{Step, Stop, Volume, Waiting};
use crate::sync::{Arc, Mutex, now, promise};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_core::{FsError, FsResult};

/// Changes that a thread carries out before other work of the volume gets its turn: few, for it
/// waits behind that many of 1 MiB for each of eight files.
const ROUND: usize = 8;

/// A change that waits for its turn. False: it would have to wait for a lock or the disk, and has
/// done nothing.
type Turn = Box<dyn FnMut(&Volume, Waiting) -> bool + Send>;

/// The changes of one file's data or of one directory's names.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Turn>,
    /// A thread takes turns from here, or a job in the pool is about to.
    served: bool,
}

/// A worker's own turn. Dropped, the next ones are taken.
pub(super) struct Serving<'a> {
    store: &'a LocalStore,
    inode: &'a Arc<Inode>,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} waiting", self.0.lock().waiting.len())
    }
}

impl Turns {
    /// Adds a turn; true if a job has to be sent to the pool for it.
    fn push(&self, turn: Turn) -> bool {
        let mut state = self.0.lock();
        state.waiting.push_back(turn);
        !std::mem::replace(&mut state.served, true)
    }

    /// Puts back a turn that was taken and not carried out.
    fn put_back(&self, turn: Turn) {
        self.0.lock().waiting.push_front(turn);
    }

    /// Makes the calling thread the one that takes turns, unless there is one.
    fn enter(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().served, true)
    }

    fn next(&self) -> Option<Turn> {
        let mut state = self.0.lock();
        let turn = state.waiting.pop_front();
        state.served = turn.is_some();
        turn
    }

    /// Takes turns as long as `goes_on` says so; true if there may be more.
    fn serve(&self, volume: &Volume, waiting: Waiting, goes_on: impl Fn() -> bool) -> bool {
        for _ in 0..ROUND {
            if !goes_on() {
                return true;
            }
            let Some(mut turn) = self.next() else { return false };
            // A turn that panics breaks its promise; the others must come all the same.
            match catch_unwind(AssertUnwindSafe(|| turn(volume, waiting))) {
                Ok(true) => {}
                Ok(false) => {
                    self.put_back(turn);
                    return true;
                }
                Err(_) => tracing::error!("a change panicked"),
            }
        }
        true
    }
}

impl LocalStore {
    /// Makes the calling worker carry out its own change of this object at once. `None` while
    /// another change is at work or waits: then this one is to wait for its turn.
    pub(super) fn enter<'a>(&'a self, inode: &'a Arc<Inode>) -> Option<Serving<'a>> {
        // Made only by the thread that entered: dropping it takes turns.
        inode.turns.enter().then(|| Serving { store: self, inode })
    }

    /// Carries out `work` after all changes of this object that came before, in the pool or on the
    /// worker that is at work on it. Once begun it is done even if the future is dropped. It is run
    /// again, with [`Waiting::Allowed`], if it would have had to wait.
    ///
    /// # Errors
    /// Those of `work`; `Io` if it panicked.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        inode: &Arc<Inode>,
        mut work: impl FnMut(&Volume, Waiting) -> Step<T> + Send + 'static,
    ) -> FsResult<T> {
        let (promise, answer) = promise();
        let mut promise = Some(promise);
        let turn = move |volume: &Volume, waiting| {
            let done = work(volume, waiting);
            if waiting == Waiting::Never && matches!(done, Err(Stop::WouldWait)) {
                return false;
            }
            if let Some(promise) = promise.take() {
                promise.give(done.map_err(Stop::error));
            }
            true
        };
        if inode.turns.push(Box::new(turn)) {
            send(&self.0, Arc::clone(inode));
        }
        answer.await.unwrap_or(Err(FsError::Io))
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let volume = &self.store.0;
        let quick = || volume.pace.inline(now());
        if self.inode.turns.serve(volume, Waiting::Never, quick) {
            send(volume, Arc::clone(self.inode));
        }
    }
}

/// Sends a job to the pool that takes turns; at most one for an object.
fn send(volume: &Arc<Volume>, inode: Arc<Inode>) {
    let own = Arc::clone(volume);
    volume.lane.run_bounded_elsewhere(move || {
        if inode.turns.serve(&own, Waiting::Allowed, || true) {
            send(&own, inode);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, Relaxed};
    use crate::{Durability, Options, Pool};
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};
    use weir_core::store::CreateHow;
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Name, ObjectKey, SetAttr, Store};

    fn store(directory: &tempfile::TempDir) -> LocalStore {
        let options = Options {
            quota_bytes: 1 << 30,
            namespace_durability: Durability::Process,
            metadata_cache: true,
            cached_objects_max: 100,
            pool: Pool::new(16).unwrap(),
        };
        LocalStore::open(&directory.path().join("volume"), &options).unwrap()
    }

    /// Polls once.
    fn begin(future: Pin<&mut impl Future>) {
        let _ready = future.poll(&mut Context::from_waker(Waker::noop())).is_ready();
    }

    #[test]
    fn what_is_done_with_one_file_comes_one_by_one_in_order_even_if_nobody_waits_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let file = store.root();
        let (begun, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let turn = |number: u64| {
            let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
            store.in_turn(&file, move |_, _| {
                assert_eq!(begun.fetch_add(1, Relaxed), number, "out of turn");
                std::thread::yield_now();
                assert_eq!(done.fetch_add(1, Relaxed), number, "two at once");
                Ok(number)
            })
        };
        let most = 10 * ROUND as u64;
        for number in 0..most {
            // Dropped after it has begun.
            begin(pin!(turn(number)));
        }
        assert_eq!(block_on(turn(most)), Ok(most));
    }

    #[test]
    fn a_worker_carries_out_the_changes_that_came_during_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let dir = store.root();
        let worker = std::thread::current().id();
        let here = || store.in_turn(&dir, move |_, _| Ok(std::thread::current().id() == worker));
        let own = store.enter(&dir).unwrap();
        for _ in 0..2 {
            assert!(store.enter(&dir).is_none(), "one at a time");
        }
        let mut changes: Vec<_> = (0..ROUND + 1).map(|_| Box::pin(here())).collect();
        for change in &mut changes {
            begin(change.as_mut());
        }
        drop(own);
        let last = changes.pop().unwrap();
        for change in changes {
            assert_eq!(block_on(change), Ok(true));
        }
        assert_eq!(block_on(last), Ok(false), "more than a few are left to the pool");
        assert!(store.enter(&dir).is_some());
    }

    #[test]
    fn what_would_wait_is_sent_to_the_pool_with_all_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let dir = store.root();
        let own = store.enter(&dir).unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let (one, other) = (Arc::clone(&count), count);
        let mut first = pin!(store.in_turn(&dir, move |_, waiting| {
            waiting.or_stop()?;
            Ok(one.fetch_add(1, Relaxed))
        }));
        begin(first.as_mut());
        let mut second = pin!(store.in_turn(&dir, move |_, _| Ok(other.fetch_add(1, Relaxed))));
        begin(second.as_mut());
        drop(own);
        assert_eq!(block_on(first), Ok(0));
        assert_eq!(block_on(second), Ok(1), "in the order in which they came");
    }

    /// A volume has eight threads of the pool at most. A directory that many clients change must
    /// not take them all.
    #[test]
    fn changes_of_a_busy_directory_leave_the_volume_its_threads() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let dir = store.root();
        let names: Vec<_> = (0..20).map(|number| format!("f{number}")).collect();
        let (how, cred) = (CreateHow::Guarded(SetAttr::default()), Credentials::ROOT);
        let create = |name| store.create(&dir, Name::new(name).unwrap(), &how, &cred);
        let busy = dir.names.lock();
        let mut made: Vec<_> = names.iter().map(|name| Box::pin(create(name.as_bytes()))).collect();
        for made in &mut made {
            begin(made.as_mut());
        }
        let (done, answered) = std::sync::mpsc::channel();
        let (other, unknown) = (store.clone(), ObjectKey::new(&[1; 9]).unwrap());
        std::thread::spawn(move || done.send(block_on(other.resolve(&unknown)).map(drop)));
        let answer = answered.recv_timeout(std::time::Duration::from_secs(60));
        drop(busy);
        assert!(answer.expect("all threads wait for the directory").is_err());
        for made in made {
            assert!(block_on(made).is_ok());
        }
    }

    #[test]
    fn a_turn_that_panics_or_fails_is_no_reason_not_to_take_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let file = store.root();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let mut first =
            pin!(store.in_turn(&file, move |_, _| Ok(gate.recv().map_err(|_| FsError::Io)?)));
        begin(first.as_mut());
        let mut second =
            pin!(store.in_turn(&file, |_, _| -> Step<()> { panic!("on purpose, for a test") }));
        begin(second.as_mut());
        let mut third =
            pin!(store.in_turn(&file, |_, _| -> Step<()> { Err(FsError::NoSpace.into()) }));
        begin(third.as_mut());
        open.send(()).unwrap();
        assert_eq!(block_on(first), Ok(()));
        assert_eq!(block_on(second), Err(FsError::Io));
        assert_eq!(block_on(third), Err(FsError::NoSpace));
        assert_eq!(block_on(store.in_turn(&file, |_, _| Ok(4))), Ok(4));
    }
}
