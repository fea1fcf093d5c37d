//! The one door to locks and shared state in this crate. Nothing else imports `std::sync`.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
#[cfg(test)]
pub(crate) use tokio::sync::mpsc;
pub(crate) use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedSemaphorePermit, Semaphore, watch};

/// Locks `mutex`, also after a holder panicked: every structure under a lock of this crate is
/// valid between statements, and a panic ends the process anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Releases the lock, sleeps until `changed` is notified, for at most `patience`, and takes the
/// lock again.
pub(crate) fn wait_for<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    patience: std::time::Duration,
) -> MutexGuard<'a, T> {
    let woken = changed.wait_timeout(guard, patience);
    woken.unwrap_or_else(std::sync::PoisonError::into_inner).0
}
