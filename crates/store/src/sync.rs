//! The only door to locks, threads and the clock, so that one file says how this crate waits.
//!
//! Locks ignore poisoning: what they guard is always left consistent before anything that can
//! panic.

use rustix::time::{ClockId, clock_gettime};
use std::future::Future;
use std::pin::Pin;
pub(crate) use std::sync::OnceLock;
use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weir_core::{Mono, Timestamp};

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};
pub(crate) use std::sync::{Arc, Condvar, Weak};
pub(crate) use std::thread::{Builder, scope};
use std::thread::{Thread, current, park};

/// A mutual exclusion lock that ignores poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

/// Access to what a [`Mutex`] guards.
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A lock for many readers or one writer that ignores poisoning.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

/// Shared access to what an [`RwLock`] guards.
pub(crate) type ReadGuard<'a, T> = RwLockReadGuard<'a, T>;
/// Sole access to what an [`RwLock`] guards.
pub(crate) type WriteGuard<'a, T> = RwLockWriteGuard<'a, T>;

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    #[inline]
    pub(crate) fn read(&self) -> ReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn write(&self) -> WriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shared access if that can be had at once.
    pub(crate) fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sole access if that can be had at once.
    pub(crate) fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Waits on `condvar`, for `time` at most, giving `guard` up meanwhile.
pub(crate) fn wait_at_most<'a, T>(
    condvar: &Condvar,
    guard: Guard<'a, T>,
    time: Duration,
) -> Guard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Waits on `condvar`, giving `guard` up meanwhile.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: Guard<'a, T>) -> Guard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The present moment, counted from the first call in this process.
#[inline]
pub(crate) fn now() -> Mono {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let passed = ORIGIN.get_or_init(Instant::now).elapsed();
    Mono::ZERO + passed
}

/// The time of day by which the kernel dates what is made from now on: no such date is earlier,
/// unless the clock is set back.
pub(crate) fn time_of_day() -> Timestamp {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    Timestamp { secs: time.tv_sec, nanos: u32::try_from(time.tv_nsec).unwrap_or(0) }
}

/// A thread that sleeps until it is woken.
#[derive(Debug)]
pub(crate) struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl Sleeper {
    /// For the thread that calls this, which alone may [`sleep`](Self::sleep).
    pub(crate) fn of_this_thread() -> Arc<Self> {
        Arc::new(Self { thread: current(), woken: AtomicBool::new(false) })
    }

    /// Sleeps until [`wake`](Self::wake) is called; not at all if that happened since the last
    /// sleep.
    pub(crate) fn sleep(&self) {
        while !self.woken.swap(false, Acquire) {
            park();
        }
    }

    /// Wakes the thread.
    pub(crate) fn wake(&self) {
        self.woken.store(true, Release);
        self.thread.unpark();
    }
}

/// Starts a thread of this crate. It ends by itself; nobody joins it.
pub(crate) fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    Builder::new().name(name).spawn(run).map(drop)
}

/// The side of [`promise`] that gives the value. Dropped without giving, it breaks the promise.
pub(crate) struct Promise<T>(Arc<Mutex<Slot<T>>>);

/// The side of [`promise`] that waits: `None` means that the promise was broken.
pub(crate) struct Answer<T>(Arc<Mutex<Slot<T>>>);

enum Slot<T> {
    Waiting(Option<Waker>),
    Given(Option<T>),
}

/// A value that one thread will give and one future waits for.
pub(crate) fn promise<T>() -> (Promise<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Slot::Waiting(None)));
    (Promise(Arc::clone(&slot)), Answer(slot))
}

impl<T> Promise<T> {
    pub(crate) fn give(self, value: T) {
        self.settle(Some(value));
    }

    fn settle(&self, value: Option<T>) {
        let mut slot = self.0.lock();
        if let Slot::Waiting(waker) = &mut *slot {
            let waker = waker.take();
            *slot = Slot::Given(value);
            drop(slot);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.settle(None);
    }
}

impl<T> Future for Answer<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match &mut *self.0.lock() {
            Slot::Given(value) => Poll::Ready(value.take()),
            Slot::Waiting(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
