//! The only door to locks and waiting, so that one file says how this crate waits.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
pub(crate) use std::sync::{Arc, OnceLock};

/// A mutual exclusion lock that ignores poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks this thread for `time`.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
