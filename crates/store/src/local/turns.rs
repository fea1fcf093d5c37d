//! Writes to one file that wait for the disk, one after the other.
//!
//! The kernel lets one buffered write into a file at a time (`i_rwsem`, on ext4 and XFS alike).
//! Threads of the pool that write to the same file would only wait for each other in it: they spin
//! and sleep, at up to four times the processor time of the write, and look as slow as a disk
//! that can't follow. So whoever comes while a write to the file is in the pool leaves its own
//! with the thread that does it.
//!
//! What waits here is bounded by the requests that connections may have in flight.

use super::LocalStore;
use super::inode::Inode;
use super::volume::Volume;
use crate::sync::{Arc, Mutex, promise};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_core::{FsError, FsResult};

/// Writes that a thread does before other work of the volume gets its turn: few, for it waits
/// behind that many of 1 MiB for each of eight files.
const ROUND: usize = 8;

type Turn = Box<dyn FnOnce(&Volume) + Send>;

/// What is to be done with one file.
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

    fn next(&self) -> Option<Turn> {
        let mut state = self.0.lock();
        let turn = state.waiting.pop_front();
        state.served = turn.is_some();
        turn
    }

    /// Takes turns; true if there may be more.
    fn serve(&self, volume: &Volume) -> bool {
        for _ in 0..ROUND {
            let Some(turn) = self.next() else { return false };
            // A turn that panics breaks its promise; the others must come all the same.
            if catch_unwind(AssertUnwindSafe(|| turn(volume))).is_err() {
                tracing::error!("a write panicked");
            }
        }
        true
    }
}

impl LocalStore {
    /// Runs `work` in the pool after everything that was to be done with this file before. Once
    /// begun it is done even if the future is dropped.
    ///
    /// # Errors
    /// Those of `work`; `Io` if it panicked.
    pub(super) async fn in_turn<T: Send + 'static>(
        &self,
        inode: &Arc<Inode>,
        work: impl FnOnce(&Volume) -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let (promise, answer) = promise();
        if inode.turns.push(Box::new(move |volume| promise.give(work(volume)))) {
            send(&self.0, Arc::clone(inode));
        }
        answer.await.unwrap_or(Err(FsError::Io))
    }
}

/// Sends a job to the pool that takes turns; at most one for a file.
fn send(volume: &Arc<Volume>, inode: Arc<Inode>) {
    let own = Arc::clone(volume);
    volume.lane.run_bounded_elsewhere(move || {
        if inode.turns.serve(&own) {
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
    use weir_core::Store;
    use weir_core::testing::block_on;

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
