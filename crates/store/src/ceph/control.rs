//! A volume on CephFS as the server manages it.

use super::record;
use super::{CephStore, volume::Volume};
use crate::Durability;
use crate::control::{StoreControl, Usage};
use crate::sync::{Arc, AtomicBool, Relaxed, SeqCst};
use weir_core::{Attr, CallId, FsError, FsResult, Remembered};

impl StoreControl for CephStore {
    fn handles_persist(&self) -> bool {
        true
    }

    /// CephFS's own quota, the backstop, follows a moment later.
    fn set_quota_bytes(&self, bytes: u64) {
        self.0.usage.set_quota(bytes);
        let set = |volume: &Volume| {
            let bytes = volume.usage.quota();
            let set = record::set_backstop(volume.mount(), volume.root.inode(), bytes);
            if let Err(error) = set {
                tracing::warn!(%error, "the quota of CephFS was not changed");
            }
        };
        aside(&self.0, |volume| &volume.sets_quota, set);
    }

    /// Names and attributes are kept by libcephfs alone, as its capabilities allow.
    fn set_metadata_cache(&self, _on: bool) {}

    fn usage(&self) -> Usage {
        let usage = &self.0.usage;
        Usage {
            bytes: usage.used(),
            exact: usage.is_exact(),
            counting: usage.counting(),
            counted: usage.counted(),
        }
    }

    fn rescan(&self) -> bool {
        record::start_count(&self.0)
    }

    /// The attributes as an operation on the directory has found them last. They are asked for
    /// anew in the background.
    fn root_attr(&self) -> FsResult<Attr> {
        let seen = *self.0.root_seen.lock();
        let ask = |volume: &Volume| {
            // The attributes are noted there.
            let _noted = volume.attr(&volume.root);
        };
        aside(&self.0, |volume| &volume.asks_root, ask);
        Ok(seen)
    }

    /// Data that is not stable is synced as its objects are closed.
    fn release_idle(&self) {
        self.0.table.release_idle();
    }

    fn objects_open(&self) -> usize {
        self.0.table.len().saturating_sub(1)
    }

    /// Calls are not put on record: one that is repeated to the next gateway is carried out again.
    fn for_call(&self, _call: CallId) -> Self {
        self.clone()
    }

    fn unsynced(&self) -> Self {
        Self(Arc::clone(&self.0), Durability::Process)
    }

    fn remembered(&self) -> Vec<Remembered> {
        Vec::new()
    }

    fn forget_calls(&self, _calls: &[CallId]) {}

    fn close_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        for store in stores {
            store.0.closing.store(true, Relaxed);
        }
        let synced = Self::sync_all(stores);
        let closed =
            |(store, synced): (&&Self, FsResult<()>)| synced.and_then(|()| close(&store.0));
        stores.iter().zip(synced).map(closed).collect()
    }

    fn sync_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        stores.iter().map(|store| sync(&store.0)).collect()
    }
}

/// Does `work` in the pool, unless `under_way` says that it is queued already.
fn aside(
    volume: &Arc<Volume>,
    under_way: fn(&Volume) -> &AtomicBool,
    work: impl Fn(&Volume) + Send + 'static,
) {
    if under_way(volume).swap(true, SeqCst) {
        return;
    }
    let own = Arc::clone(volume);
    volume.lane.run_rounds(move || {
        // A caller that comes from here on queues it once more.
        under_way(&own).store(false, SeqCst);
        work(&own);
        false
    });
}

/// Makes everything on the volume's mount stable.
fn sync(volume: &Volume) -> FsResult<()> {
    let mount = volume.mount();
    let synced = mount.sync().map_err(super::error::fs_error);
    // See [`CephObject::sync`](super::CephObject): a session that was ended tells no failure.
    let checked = synced.and_then(|()| volume.attr(&volume.root).map(drop));
    match checked {
        Ok(()) if !mount.is_lost() => Ok(()),
        failed => {
            volume.losses.failures.fetch_add(1, Relaxed);
            Err(failed.err().unwrap_or(FsError::Io))
        }
    }
}

/// Records the usage, if it is exact and nothing was lost.
fn close(volume: &Volume) -> FsResult<()> {
    if !volume.usage.is_exact() || volume.lost() > 0 {
        tracing::warn!("the usage of a volume on CephFS is taken anew at the next start");
        return Ok(());
    }
    record::set_usage(volume.mount(), &volume.directory, Some(volume.usage.used()))
}
