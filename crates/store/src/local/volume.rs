//! The state that all operations of one volume share, and where they run: on the worker or in the
//! pool.

use super::LocalStore;
use super::calls::Calls;
use super::inode::Inode;
use super::kept::Kept;
use super::names::Names;
use super::switch::CacheSwitch;
use super::table::Table;
use super::uncommitted::Crowd;
use super::units::Unit;
use super::usage::Usage;
use crate::descriptors::{Account, Reclaim};
use crate::index_memory::IndexMemory;
use crate::pace::Pace;
use crate::pool::Lane;
use crate::sync::{Arc, AtomicBool, AtomicU64, Weak, now};
use crate::sys::sleeps;
use crate::writeback::Writeback;
use weir_core::{FsError, FsResult, Mono};

/// One volume.
#[derive(Debug)]
pub(super) struct Volume {
    /// Itself, for work that outlives an operation.
    pub(super) this: Weak<Self>,
    pub(super) root: Arc<Inode>,
    /// The device number and mount id that every object of the volume shares with its root.
    pub(super) device: u64,
    pub(super) mount: i32,
    pub(super) table: Table,
    /// The descriptors that it holds open.
    pub(super) descriptors: Arc<Account>,
    pub(super) names: Names,
    /// The memory for indexes of folded names.
    pub(super) index_memory: Arc<IndexMemory>,
    /// Where the kernel doesn't let us open by handle: objects kept open by path.
    pub(super) kept: Option<Box<Kept>>,
    /// Whether names and attributes are kept in memory.
    pub(super) switch: Arc<CacheSwitch>,
    pub(super) usage: Arc<Usage>,
    pub(super) crowd: Arc<Crowd>,
    pub(super) lane: Arc<Lane>,
    pub(super) pace: Arc<Pace>,
    pub(super) writeback: Writeback,
    pub(super) syncs: AtomicU64,
    pub(super) sync_failures: AtomicU64,
    pub(super) calls: Calls,
    /// The unit in which data is counted.
    pub(super) unit: Unit,
    /// The volume's directory, for messages.
    pub(super) label: String,
    /// It is being closed: what runs on its own ends.
    pub(super) closing: AtomicBool,
}

/// Why an operation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It would have to wait, and may not: it has done nothing and is to be run in the pool.
    WouldWait,
    /// It failed.
    Failed(FsError),
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// For whoever has no other place to run it in.
    pub(super) fn error(self) -> FsError {
        match self {
            Self::WouldWait => FsError::Busy,
            Self::Failed(error) => error,
        }
    }
}

/// The result of an operation that may run on a worker.
pub(super) type Step<T> = Result<T, Stop>;

/// May an operation wait for locks and the disk?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// No: it runs on a worker.
    Never,
    /// Yes: it runs in the pool.
    Allowed,
}

impl Waiting {
    pub(super) fn or_stop(self) -> Step<()> {
        if self == Self::Allowed { Ok(()) } else { Err(Stop::WouldWait) }
    }
}

impl Volume {
    /// Holds an object open; see [`Table::insert`].
    pub(super) fn hold(&self, inode: Inode, mark: u64) -> Arc<Inode> {
        let (inode, uncommitted) = self.table.insert(inode, mark);
        self.settle_aside(uncommitted);
        inode
    }

    /// Does `change`, which begins now, and lets the pace learn from how long it took.
    fn paced<T>(&self, began: Mono, change: impl FnOnce() -> T) -> T {
        let before = self.pace.watches(began).then(sleeps);
        let done = change();
        self.pace.wrote(began, now(), || before.map(|before| sleeps() > before));
        done
    }

    /// Does `change` in the pool, where it may wait.
    pub(super) fn changed<T>(&self, change: impl FnOnce(&Self, Waiting) -> Step<T>) -> FsResult<T> {
        self.paced(now(), || change(self, Waiting::Allowed)).map_err(Stop::error)
    }
}

impl Reclaim for Volume {
    fn close_idle(&self, wanted: usize) {
        self.settle_aside(self.table.close_idle(wanted));
    }

    fn forget_handles(&self, wanted: usize) {
        if let Some(kept) = &self.kept {
            kept.forget_oldest(wanted);
        }
    }
}

impl LocalStore {
    /// Runs a change on the worker if the volume's pace allows it. `None`: run it in the pool.
    #[inline]
    pub(super) fn inline<T>(
        &self,
        change: impl FnOnce(&Volume, Waiting) -> Step<T>,
    ) -> Option<FsResult<T>> {
        let volume = &*self.0;
        let began = now();
        if !volume.pace.inline(began) {
            return None;
        }
        match volume.paced(began, || change(volume, Waiting::Never)) {
            Err(Stop::WouldWait) => None,
            Err(Stop::Failed(error)) => Some(Err(error)),
            Ok(done) => Some(Ok(done)),
        }
    }

    /// Runs a change in the pool, and lets the pace learn from how long it took.
    pub(super) async fn pooled_change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Volume, Waiting) -> Step<T> + Send + 'static,
    ) -> FsResult<T> {
        self.pooled(move |volume| volume.changed(change)).await
    }

    /// Runs a change of an object on the worker, as [`LocalStore::inline`], unless other changes of
    /// it wait for their turn. `None`: run it in turn in the pool.
    pub(super) fn inline_in_turn<T>(
        &self,
        inode: &Inode,
        change: impl FnOnce(&Volume, Waiting) -> Step<T>,
    ) -> Option<FsResult<T>> {
        if inode.turns.are_taken() { None } else { self.inline(change) }
    }

    /// Runs a change in the pool after the other changes of this object that wait there, and lets
    /// the pace learn from how long it took; see [`super::turns`].
    pub(super) async fn pooled_change_in_turn<T: Send + 'static>(
        &self,
        inode: &Arc<Inode>,
        change: impl FnOnce(&Volume, Waiting) -> Step<T> + Send + 'static,
    ) -> FsResult<T> {
        self.in_turn(inode, move |volume| volume.changed(change)).await
    }

    /// Runs anything that may block in the pool.
    pub(super) async fn pooled<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Volume) -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let volume = Arc::clone(&self.0);
        self.0.lane.run(move || work(&volume)).await
    }
}
