//! Changes of one file's data or of one directory's names that run in the pool, one after another.
//!
//! The kernel lets one buffered write into a file and one change into a directory at a time
//! (`i_rwsem`, on ext4 and XFS alike), and the names of a directory have a lock of ours. Threads of
//! the pool that change the same object would only wait for each other: they spin and sleep, at up
//! to four times the processor time of the change. A change that slept for the lock also looks like
//! one that waited for the disk, so the pace would keep all changes in the pool. So a change that
//! comes while another one of the object is in the pool is left to the thread that does that one.
//!
//! While changes of a directory wait here, workers add theirs instead of competing for its lock.
//!
//! The queue is bounded by the requests that connections may have in flight.

use super::LocalStore;
use super::inode::Inode;
use super::volume::Volume;
use crate::sync::{Arc, Mutex, now, promise};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use weir_core::{FsError, FsResult};

/// Changes that a thread carries out before other work of the volume gets its turn: few, for it
/// waits behind that many of 1 MiB for each of eight files.
const ROUND: usize = 8;

/// The time for which the reply of a change is held back for the next ones, while changes are
/// quick: replies that are given together wake a worker once, which sends them together.
const ANSWERS_KEPT: Duration = Duration::from_micros(200);

/// Carries a change out.
type Turn = Box<dyn FnOnce(&Volume) -> Answer + Send>;
/// Gives the answer of a change to the operation that waits for it.
type Answer = Box<dyn FnOnce() + Send>;

/// The changes of one file's data or of one directory's names.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Turn>,
    /// A job in the pool takes turns from here, or is about to.
    served: bool,
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

    /// Is a job in the pool at work on turns, or about to be?
    pub(super) fn are_taken(&self) -> bool {
        self.0.lock().served
    }

    fn next(&self) -> Option<Turn> {
        let mut state = self.0.lock();
        let turn = state.waiting.pop_front();
        state.served = turn.is_some();
        turn
    }

    /// Takes turns; true if there may be more.
    fn serve(&self, volume: &Volume) -> bool {
        let mut answers: Vec<Answer> = Vec::new();
        let mut kept_since = now();
        let more = (0..ROUND).all(|_| {
            let Some(turn) = self.next() else { return false };
            // A turn that panics breaks its promise; the others must come all the same.
            match catch_unwind(AssertUnwindSafe(|| turn(volume))) {
                Ok(answer) => answers.push(answer),
                Err(_) => tracing::error!("a change panicked"),
            }
            let now = now();
            if now.since(kept_since) > ANSWERS_KEPT || !volume.pace.inline(now) {
                answers.drain(..).for_each(|answer| answer());
                kept_since = now;
            }
            true
        });
        answers.drain(..).for_each(|answer| answer());
        more
    }
}

impl LocalStore {
    /// Runs `work` in the pool after all changes of this object that came before. Once
    /// begun it is done even if the future is dropped.
    ///
    /// # Errors
    /// The errors of `work`; `Io` if it panicked.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        inode: &Arc<Inode>,
        work: impl FnOnce(&Volume) -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let (promise, answer) = promise();
        let turn = move |volume: &Volume| -> Answer {
            let done = work(volume);
            Box::new(move || promise.give(done))
        };
        if inode.turns.push(Box::new(turn)) {
            send(&self.0, Arc::clone(inode));
        }
        answer.await.unwrap_or(Err(FsError::Io))
    }
}

/// Sends a job to the pool that takes turns; at most one for an object.
fn send(volume: &Arc<Volume>, inode: Arc<Inode>) {
    let own = Arc::clone(volume);
    volume.lane.run_rounds(move || inode.turns.serve(&own));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, Relaxed};
    use crate::{Descriptors, Durability, Options, Pool};
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
            descriptors: Descriptors::new(1024),
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
            store.in_turn(&file, move |_| {
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
    fn a_change_of_names_waits_for_its_turn_behind_those_in_the_pool() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory);
        let dir = store.root();
        let (name, cred) = (Name::new(b"file").unwrap(), Credentials::ROOT);
        let how = CreateHow::Guarded(SetAttr::default());
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let own = Arc::clone(&dir);
        let mut first = pin!(store.in_turn(&dir, move |volume| {
            gate.recv().map_err(|_| FsError::Io)?;
            Ok(volume.find_name(own.fd(), b"file").err())
        }));
        begin(first.as_mut());
        let mut made = pin!(store.create(&dir, name, &how, &cred));
        begin(made.as_mut());
        open.send(()).unwrap();
        assert_eq!(block_on(first), Ok(Some(FsError::NotFound)));
        assert!(block_on(made).is_ok());
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
        let answer = answered.recv_timeout(Duration::from_secs(60));
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
        let mut first = pin!(store.in_turn(&file, move |_| gate.recv().map_err(|_| FsError::Io)));
        begin(first.as_mut());
        let mut second =
            pin!(store.in_turn(&file, |_| -> FsResult<()> { panic!("on purpose, for a test") }));
        begin(second.as_mut());
        let mut third = pin!(store.in_turn(&file, |_| -> FsResult<()> { Err(FsError::NoSpace) }));
        begin(third.as_mut());
        open.send(()).unwrap();
        assert_eq!(block_on(first), Ok(()));
        assert_eq!(block_on(second), Err(FsError::Io));
        assert_eq!(block_on(third), Err(FsError::NoSpace));
        assert_eq!(block_on(store.in_turn(&file, |_| Ok(4))), Ok(4));
    }
}
