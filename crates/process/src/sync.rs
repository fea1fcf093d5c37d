//! The one door to locks and shared state in this crate. Nothing else imports `std::sync`.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks `mutex`, also after a holder panicked: the state under it is valid between statements, and
/// a panic ends the process anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Unlocks `guard`, sleeps until `changed` is notified, and locks it again.
pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
}
