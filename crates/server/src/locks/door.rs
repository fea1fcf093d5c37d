//! The way to the locks from any thread. A call takes its place when it arrives, waits for its
//! turn, and then tries the mutex.

use super::calls::{Calls, Line};
use crate::sync::{Arc, Mutex, MutexGuard, lock, try_lock};
use std::future::poll_fn;
use std::net::IpAddr;
use std::task::Poll;
use weir_core::VolumeId;
use weir_state::{File, Limits, Tables};

/// The locks as threads see them. `W` is a request that waits for a lock.
pub(crate) struct LockDoor<W> {
    tables: Mutex<Tables<W>>,
    calls: Mutex<Calls>,
}

/// A call under way, which has its place among the others until this value is dropped.
pub(crate) struct LockCall<W> {
    door: Arc<LockDoor<W>>,
    address: IpAddr,
    line: Option<Line>,
    number: u64,
}

impl<W> LockDoor<W> {
    /// No locks: no volume is open yet.
    pub(crate) fn new(limits: Limits) -> Self {
        Self { tables: Mutex::new(Tables::new(limits)), calls: Mutex::default() }
    }

    /// Begins a call from `address`, about `file` if it is about one, after the calls from there
    /// about the same file that came before. `None` if too many calls are under way.
    pub(crate) fn begin(
        self: &Arc<Self>,
        address: IpAddr,
        file: Option<File>,
    ) -> Option<LockCall<W>> {
        let line = file.map(|file| (address, file));
        let number = lock(&self.calls).begin(address, line)?;
        Some(LockCall { door: Arc::clone(self), address, line, number })
    }

    /// The tables, after other threads. Not for workers.
    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables<W>> {
        lock(&self.tables)
    }

    /// The tables, unless another thread has them.
    pub(crate) fn try_tables(&self) -> Option<MutexGuard<'_, Tables<W>>> {
        try_lock(&self.tables)
    }

    /// A volume is served from now on.
    pub(crate) fn volume_opened(&self, volume: VolumeId) {
        self.tables().open(volume);
    }

    /// A volume is gone, and all locks in it.
    pub(crate) fn volume_gone(&self, volume: VolumeId) {
        self.tables().close(volume);
    }
}

impl<W> LockCall<W> {
    /// Waits until all calls in front are done.
    pub(crate) async fn turn(&self) {
        let Some(line) = &self.line else { return };
        poll_fn(|cx| match lock(&self.door.calls).is_first(line, self.number, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl<W> Drop for LockCall<W> {
    fn drop(&mut self) {
        let next = lock(&self.door.calls).end(self.address, self.line.as_ref(), self.number);
        if let Some(next) = next {
            next.wake();
        }
    }
}
