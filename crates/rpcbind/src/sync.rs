//! The one door to locks in this crate. Nothing else imports `std::sync`.

pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks `mutex`, also after a holder panicked: the state under it is valid between statements, and
/// a panic ends the process anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
