//! The one door to locks and shared state in this crate. Nothing else imports `std::sync`. With the
//! feature `schedules`, which only tests set, a scheduler that explores interleavings is behind it
//! for atomics and locks.

#[cfg(feature = "schedules")]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
pub(crate) use std::sync::{Arc, OnceLock, Weak};
#[cfg(not(feature = "schedules"))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
pub(crate) use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc, oneshot};

/// Locks `mutex`, also after a holder panicked: every structure under a lock of this crate is
/// valid between statements, and a panic ends the process anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
