//! Handles without privilege. The kernel lets only `CAP_DAC_READ_SEARCH` open by handle, so a
//! server without it keeps objects open by path and finds them again by key for as long as it
//! runs. Bounded: beyond the bound the oldest is forgotten and its handle becomes stale. So it is
//! when the descriptors of all volumes are used up and no volume has an idle object.

use crate::descriptors::{Account, Share};
use crate::error::fs_error;
use crate::sync::{Arc, Mutex};
use rustix::fd::OwnedFd;
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::{HashMap, VecDeque};
use weir_core::{FsError, FsResult, ObjectKey};

/// Objects kept open by path.
#[derive(Debug)]
pub(super) struct Kept {
    state: Mutex<State>,
    objects_max: usize,
    descriptors: Arc<Account>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ObjectKey, (OwnedFd, Share)>,
    /// In the order of coming; may name keys that are gone.
    order: VecDeque<ObjectKey>,
}

impl State {
    fn forget_oldest(&mut self, wanted: usize) {
        let left = self.objects.len().saturating_sub(wanted);
        while self.objects.len() > left
            && let Some(oldest) = self.order.pop_front()
        {
            self.objects.remove(&oldest);
        }
    }
}

impl Kept {
    pub(super) fn new(objects_max: usize, descriptors: &Arc<Account>) -> Self {
        let (state, descriptors) = (Mutex::default(), Arc::clone(descriptors));
        Self { state, objects_max: objects_max.max(1), descriptors }
    }

    /// Keeps an object that is open by path.
    pub(super) fn keep(&self, key: ObjectKey, path: &OwnedFd) -> FsResult<()> {
        if self.state.lock().objects.contains_key(&key) {
            return Ok(());
        }
        // Without the lock, because the oldest may have to be forgotten for it.
        let share = self.descriptors.take().ok_or(FsError::Busy)?;
        let own = fcntl_dupfd_cloexec(path, 0).map_err(fs_error)?;
        let mut state = self.state.lock();
        if state.objects.insert(key, (own, share)).is_some() {
            return Ok(());
        }
        state.order.push_back(key);
        let State { objects, order } = &mut *state;
        if order.len() > 2 * self.objects_max {
            order.retain(|key| objects.contains_key(key));
        }
        let surplus = state.objects.len().saturating_sub(self.objects_max);
        state.forget_oldest(surplus);
        Ok(())
    }

    /// Forgets so many objects, the oldest first.
    pub(super) fn forget_oldest(&self, wanted: usize) {
        self.state.lock().forget_oldest(wanted);
    }

    /// The object by path once more.
    pub(super) fn open(&self, key: &ObjectKey) -> FsResult<OwnedFd> {
        let state = self.state.lock();
        let (kept, _) = state.objects.get(key).ok_or(FsError::Stale)?;
        fcntl_dupfd_cloexec(kept, 0).map_err(fs_error)
    }

    /// Forgets an object whose last name is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.state.lock().objects.remove(key);
    }
}
