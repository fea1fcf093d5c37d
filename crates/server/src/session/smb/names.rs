//! The names of the files of one volume, as far as requests over SMB change them: locks that put
//! renames and deletions of one file in an order.
//!
//! A rename holds the lock of its file until it is applied to the opens of the file, and the last
//! close of a file that is to be deleted holds it until the name is removed. Requests about other
//! files, and opens and closes that delete nothing, do not come here.

use crate::sync::{Arc, AsyncMutex, Mutex, OwnedMutexGuard, lock};
use std::collections::BTreeMap;
use weir_core::ObjectKey;

/// The locks of the files of a volume whose names requests are about to change: no more than there
/// are such requests.
#[derive(Default)]
pub(crate) struct NameLocks(Mutex<BTreeMap<ObjectKey, FileLock>>);

#[derive(Default)]
struct FileLock {
    lock: Arc<AsyncMutex<()>>,
    /// Requests that hold it or wait for it.
    users: usize,
}

/// The lock of the names of a file, or a place among the requests that wait for it.
pub(crate) struct NamesLock<'a> {
    locks: &'a NameLocks,
    file: ObjectKey,
    held: Option<OwnedMutexGuard<()>>,
}

impl NameLocks {
    /// Locks the names of `file`, in the order of the requests. A request that holds one lock must
    /// not wait for another.
    pub(super) async fn lock(&self, file: &ObjectKey) -> NamesLock<'_> {
        let shared = {
            let mut of = lock(&self.0);
            let entry = of.entry(*file).or_default();
            entry.users = entry.users.saturating_add(1);
            Arc::clone(&entry.lock)
        };
        // A request that is given up while it waits leaves its place.
        let mut names = NamesLock { locks: self, file: *file, held: None };
        names.held = Some(shared.lock_owned().await);
        names
    }
}

impl Drop for NamesLock<'_> {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut of = lock(&self.locks.0);
        if let Some(entry) = of.get_mut(&self.file) {
            entry.users = entry.users.saturating_sub(1);
            if entry.users == 0 {
                of.remove(&self.file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_names_of_a_file_are_locked_by_one_request_at_a_time() {
        let locks = NameLocks::default();
        let [one, other] = [1, 2].map(|byte| ObjectKey::new(&[byte]).unwrap());
        let first = poll(pin!(locks.lock(&one))).unwrap();
        let _other = poll(pin!(locks.lock(&other))).unwrap();
        let mut third = pin!(locks.lock(&one));
        {
            let mut given_up = pin!(Box::pin(locks.lock(&one)));
            assert!(poll(given_up.as_mut()).is_none() && poll(third.as_mut()).is_none());
            given_up.set(Box::pin(locks.lock(&other)));
        }
        drop(first);
        let third = poll(third.as_mut()).unwrap();
        assert_eq!(lock(&locks.0).len(), 2);
        drop(third);
        assert!(lock(&locks.0).keys().eq([&other]));
    }
}
