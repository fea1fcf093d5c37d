//! The way to the locks from any thread. A call takes its place when it arrives, waits for its
//! turn, and then tries the mutex.

use super::aside::Aside;
use super::calls::{Calls, Line};
use super::filter::{Filters, VolumeFilters};
use crate::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering, fence, lock, try_lock};
use std::future::poll_fn;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::task::{Poll, Waker};
use weir_core::VolumeId;
use weir_state::{File, Limits, Tables};

/// The locks as threads see them. `W` is a request that waits for a lock.
pub struct LockDoor<W> {
    tables: Mutex<Tables<W>>,
    /// The workers' requests that found the tables in use.
    turned_away: TurnedAway,
    filters: Filters,
    calls: Mutex<Calls>,
    pub(crate) aside: Aside,
}

/// The tables, locked.
pub struct LockedTables<'a, W> {
    // The order of the fields counts: the tables are unlocked before the requests are woken.
    tables: MutexGuard<'a, Tables<W>>,
    _wake: Wake<'a>,
}

/// Requests that found the tables in use, and try again when they are free.
#[derive(Default)]
struct TurnedAway {
    any: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

/// Wakes the requests that were turned away when this is dropped.
struct Wake<'a>(&'a TurnedAway);

/// A call under way, which has its place among the others until this value is dropped.
pub struct LockCall<W> {
    door: Arc<LockDoor<W>>,
    address: IpAddr,
    line: Option<Line>,
    number: u64,
}

impl<W> LockDoor<W> {
    /// No locks: no volume is open yet.
    pub fn new(limits: Limits) -> Self {
        let filters = Filters::default();
        let tables = Mutex::new(Tables::new(limits).watched_by(Box::new(filters.clone())));
        let (turned_away, calls) = (TurnedAway::default(), Mutex::default());
        Self { tables, turned_away, filters, calls, aside: Aside::default() }
    }

    /// Begins a call from `address`, about `file` if it is about one, after the calls from there
    /// about the same file that came before. `None` if too many calls are under way.
    pub fn begin(self: &Arc<Self>, address: IpAddr, file: Option<File>) -> Option<LockCall<W>> {
        let line = file.map(|file| (address, file));
        let number = lock(&self.calls).begin(address, line)?;
        Some(LockCall { door: Arc::clone(self), address, line, number })
    }

    /// The tables, after other threads. Not for workers.
    pub fn tables(&self) -> LockedTables<'_, W> {
        self.locked(lock(&self.tables))
    }

    /// The tables, unless another thread has them.
    pub fn try_tables(&self) -> Option<LockedTables<'_, W>> {
        Some(self.locked(try_lock(&self.tables)?))
    }

    /// The tables, once they are free, for an operation. They must not be held across an await.
    pub async fn tables_when_free(&self) -> LockedTables<'_, W> {
        poll_fn(|cx| match self.try_tables() {
            Some(tables) => Poll::Ready(tables),
            None => {
                self.turned_away.add(cx.waker());
                // The holder may have looked for requests to wake just before.
                self.try_tables().map_or(Poll::Pending, Poll::Ready)
            }
        })
        .await
    }

    fn locked<'a>(&'a self, tables: MutexGuard<'a, Tables<W>>) -> LockedTables<'a, W> {
        LockedTables { tables, _wake: Wake(&self.turned_away) }
    }

    /// A volume is served from now on. Gives its filters.
    pub fn volume_opened(&self, volume: VolumeId) -> Arc<VolumeFilters> {
        self.tables().open(volume);
        self.filters.open(volume)
    }

    /// A volume is gone, and all locks in it.
    pub fn volume_gone(&self, volume: VolumeId) {
        self.tables().close(volume);
        self.filters.close(volume);
    }
}

impl TurnedAway {
    fn add(&self, waker: &Waker) {
        let mut wakers = lock(&self.wakers);
        wakers.push(waker.clone());
        self.any.store(true, Ordering::Relaxed);
        // Either the next look at the tables finds them free, or their holder sees the flag.
        fence(Ordering::SeqCst);
    }
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        fence(Ordering::SeqCst);
        if self.0.any.load(Ordering::Relaxed) {
            let mut wakers = lock(&self.0.wakers);
            self.0.any.store(false, Ordering::Relaxed);
            std::mem::take(&mut *wakers).into_iter().for_each(Waker::wake);
        }
    }
}

impl<W> Deref for LockedTables<'_, W> {
    type Target = Tables<W>;
    fn deref(&self) -> &Tables<W> {
        &self.tables
    }
}

impl<W> DerefMut for LockedTables<'_, W> {
    fn deref_mut(&mut self) -> &mut Tables<W> {
        &mut self.tables
    }
}

impl<W> LockCall<W> {
    /// Waits until all calls in front are done.
    pub async fn turn(&self) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::Context;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_request_that_found_the_tables_in_use_is_woken_when_they_are_free() {
        let door = LockDoor::<()>::new(Limits::SERVER);
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut request = pin!(door.tables_when_free());
        let holder = door.tables();
        assert!(request.as_mut().poll(&mut cx).is_pending());
        assert!(door.try_tables().is_none());
        drop(holder);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(request.as_mut().poll(&mut cx).is_ready());
        drop(door.tables());
        assert_eq!(woken.0.load(Ordering::SeqCst), 1, "nobody waits any more");
    }
}
