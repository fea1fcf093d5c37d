//! The part of a store that the server uses beside [`Store`]: quota, usage, the top directory, the
//! memory of an idle volume, the log of calls, and the end.
//!
//! It is here and not in `weir-core` because no protocol operation needs it: its callers are the
//! server's engine and control plane, and its terms (recounts, records on disk) are those of
//! stores.

use weir_core::{Attr, CallId, Credentials, FsResult, Remembered, SetAttr, Store};

/// The usage of a volume.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Bytes that count against the quota.
    pub bytes: u64,
    /// Are the bytes exact? Not between an unclean stop and the end of the recount that follows.
    pub exact: bool,
    /// The progress of a running recount.
    pub counting: Option<Counting>,
    /// The result of the last recount since the volume was opened.
    pub counted: Option<Counted>,
}

/// The result of a recount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The usage as it was kept up to the end of the recount, bytes.
    pub before_bytes: u64,
    /// The usage as it was counted, bytes: what holds from then on.
    pub after_bytes: u64,
    /// Files with data.
    pub files: u64,
    /// Directories and files that could not be read, and were left out.
    pub left_out: u64,
    /// The number of recounts completed since the volume was opened, including this one.
    pub number: u64,
}

/// The progress of a recount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Files with data counted so far.
    pub files: u64,
    /// Their data, bytes.
    pub bytes: u64,
}

/// A [`Store`] as the server manages it.
pub trait StoreControl: Store + Sized {
    /// Do handles outlive this process?
    fn handles_persist(&self) -> bool;

    /// Changes the quota, in force for the next write.
    fn set_quota_bytes(&self, bytes: u64);

    /// Keeps names and attributes in memory from now on, or asks the kernel for each: in force for
    /// the next operation.
    fn set_metadata_cache(&self, on: bool);

    /// The usage at this moment.
    fn usage(&self) -> Usage;

    /// Begins to count the usage anew in the background, while the volume is served. False if a
    /// recount is running already.
    fn rescan(&self) -> bool;

    /// The attributes of the top directory. Waits for nothing.
    ///
    /// # Errors
    /// `Io` if the device failed.
    fn root_attr(&self) -> FsResult<Attr>;

    /// Sets attributes of the top directory as root, as [`Store::set_attr`] does, and makes them
    /// stable, whatever the volume was opened with.
    ///
    /// # Errors
    /// `NotPermitted` if this process may not change owners, and the errors of the device.
    fn set_root_attr(&self, set: &SetAttr) -> impl Future<Output = FsResult<()>> {
        async move {
            let (root, store) = (self.root(), self.unsynced());
            store.set_attr(&root, set, None, &Credentials::ROOT).await?;
            store.stabilize(&root).await
        }
    }

    /// Closes the objects that are held open, and frees the memory for objects and names, of a
    /// volume that is idle: the next requests open them again. An object with uncommitted data is
    /// synced first, some of them in each call, and closed by a later call. Blocks.
    fn release_idle(&self);

    /// Objects that are held open, the root not counted.
    fn objects_open(&self) -> usize;

    /// The same volume for one call: the store keeps the call on record with the names that it
    /// changes.
    #[must_use]
    fn for_call(&self, call: CallId) -> Self;

    /// The same volume for changes of names and attributes that are answered when they would
    /// survive the end of this process. After a power cut only those last that a client has made
    /// stable ([`weir_core::Store::stabilize`]).
    #[must_use]
    fn unsynced(&self) -> Self;

    /// The calls that changed names and succeeded, of earlier processes: some for each client.
    fn remembered(&self) -> Vec<Remembered>;

    /// Forgets calls: their clients have the replies, and may use their numbers for other calls.
    fn forget_calls(&self, calls: &[CallId]);

    /// Makes `stores` stable and records that their usage is exact, so that nothing is counted at
    /// the next start: one sync for each file system, and a record for each store that has changed.
    /// Gives their results, in the same order. After a failure the next start counts. Blocks.
    /// Nothing may use the stores afterwards.
    fn close_all(stores: &[&Self]) -> Vec<FsResult<()>>;

    /// Closes this store alone, as [`close_all`](Self::close_all) does.
    ///
    /// # Errors
    /// If the device failed or the record cannot be written.
    fn close(&self) -> FsResult<()> {
        Self::close_all(&[self]).into_iter().collect()
    }

    /// Makes everything on the file systems of `stores` stable, with one sync for each. Gives their
    /// results, in the same order. Blocks.
    fn sync_all(stores: &[&Self]) -> Vec<FsResult<()>>;
}
