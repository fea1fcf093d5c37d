//! A local volume as the server manages it.

use super::{Durability, LocalStore, close, walk};
use crate::control::{StoreControl, Usage};
use crate::sync::Arc;
use weir_core::{Attr, CallId, FsResult, Remembered};

impl StoreControl for LocalStore {
    /// Not without `CAP_DAC_READ_SEARCH`.
    fn handles_persist(&self) -> bool {
        self.0.kept.is_none()
    }

    fn set_quota_bytes(&self, bytes: u64) {
        self.0.usage.set_quota(bytes);
    }

    fn set_metadata_cache(&self, on: bool) {
        if self.0.switch.set(on) {
            self.0.names.release_all();
        }
    }

    fn usage(&self) -> Usage {
        let usage = &self.0.usage;
        Usage {
            bytes: usage.used(),
            exact: usage.is_known(),
            counting: usage.counting(),
            counted: usage.last_count(),
        }
    }

    fn rescan(&self) -> bool {
        walk::start(&self.0)
    }

    fn root_attr(&self) -> FsResult<Attr> {
        self.0.root.attr()
    }

    /// Nothing but the log of calls is released where handles end with the process: a closed object
    /// could not be opened again by its handle.
    fn release_idle(&self) {
        self.0.calls.release_idle();
        if self.0.kept.is_some() {
            return;
        }
        // Names hold the memory of objects, though not the objects.
        self.0.names.release_all();
        if let Some(folded) = self.0.root.folded() {
            folded.invalidate();
        }
        self.0.settle_aside(self.0.table.release_idle());
    }

    fn objects_open(&self) -> usize {
        self.0.table.len()
    }

    fn for_call(&self, call: CallId) -> Self {
        Self(Arc::clone(&self.0), Some(call), self.2)
    }

    fn unsynced(&self) -> Self {
        Self(Arc::clone(&self.0), self.1, Durability::Process)
    }

    fn remembered(&self) -> Vec<Remembered> {
        self.0.calls.remembered()
    }

    fn forget_calls(&self, calls: &[CallId]) {
        self.0.calls.forget(calls);
    }

    fn close_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        close::close_all(stores)
    }

    fn sync_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        close::sync_all(stores)
    }
}
