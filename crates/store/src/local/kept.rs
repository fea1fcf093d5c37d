//! Handles without privilege. The kernel lets only `CAP_DAC_READ_SEARCH` open by handle, so a
//! server without it keeps objects open by path and finds them again by key for as long as it
//! runs. Bounded: beyond the bound the oldest is forgotten and its handle becomes stale.

use crate::error::fs_error;
use crate::sync::Mutex;
use rustix::fd::OwnedFd;
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::{HashMap, VecDeque};
use weir_core::{FsError, FsResult, ObjectKey};

/// Objects kept open by path.
#[derive(Debug)]
pub(super) struct Kept {
    state: Mutex<State>,
    objects_max: usize,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ObjectKey, OwnedFd>,
    /// In the order of coming; may name keys that are gone.
    order: VecDeque<ObjectKey>,
}

impl Kept {
    pub(super) fn new(objects_max: usize) -> Self {
        Self { state: Mutex::default(), objects_max: objects_max.max(1) }
    }

    /// Keeps an object that is open by path.
    pub(super) fn keep(&self, key: ObjectKey, path: &OwnedFd) -> FsResult<()> {
        let mut state = self.state.lock();
        if state.objects.contains_key(&key) {
            return Ok(());
        }
        let own = fcntl_dupfd_cloexec(path, 0).map_err(fs_error)?;
        state.objects.insert(key, own);
        state.order.push_back(key);
        let State { objects, order } = &mut *state;
        if order.len() > 2 * self.objects_max {
            order.retain(|key| objects.contains_key(key));
        }
        while state.objects.len() > self.objects_max
            && let Some(oldest) = state.order.pop_front()
        {
            state.objects.remove(&oldest);
        }
        Ok(())
    }

    /// The object by path once more.
    pub(super) fn open(&self, key: &ObjectKey) -> FsResult<OwnedFd> {
        let state = self.state.lock();
        let kept = state.objects.get(key).ok_or(FsError::Stale)?;
        fcntl_dupfd_cloexec(kept, 0).map_err(fs_error)
    }

    /// Forgets an object whose last name is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.state.lock().objects.remove(key);
    }
}
