//! [`LocalStore`]: one volume as a directory tree.
//!
//! On disk a volume is `root` (what clients see), `snap` (for snapshots) and `meta` (the format's
//! version, the record of its usage and the log of calls), below a directory that is Weir's alone
//! while it serves: the caches rest on that.

mod acl;
mod attrs;
mod calls;
mod close;
mod commit;
mod control;
mod create;
mod details;
mod folded;
mod fs_stat;
mod growth;
mod inode;
mod kept;
mod link;
mod lookup;
mod make;
mod mend;
mod meta;
mod names;
mod open;
mod read;
mod read_dir;
mod record;
mod recount;
mod remove;
mod rename;
mod set_attr;
mod shape;
mod sparse;
mod switch;
mod table;
mod turns;
mod uncommitted;
mod units;
mod usage;
mod volume;
mod walk;
mod write;
mod write_back;

use crate::creds::as_root;
use crate::descriptors::Descriptors;
use crate::error::fs_error;
use crate::pool::Pool;
use crate::sync::{Acquire, Arc};
use commit::Extent;
pub use inode::Inode;
pub use meta::{OpenError, volume_format};
use remove::Victim;
use rename::Conditions;
use rustix::fs::{readlinkat, syncfs};
use weir_core::attr::Change;
use weir_core::store::{
    Allocated, CreateHow, DirPage, Folded, FsStat, Made, MakeKind, ReadDone, Replace, Store, Want,
    WriteDone, WriteHow,
};
use weir_core::{
    Acl, AclKind, Attr, CallId, Credentials, Details, FileKind, FsError, FsResult, Name, ObjectKey,
    SetAttr, SetDetails, Shared, Timestamp,
};

/// When a change of names or attributes is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it would survive a power cut (RFC 1813 §4.8), by syncs that concurrent changes share.
    Power,
    /// When it would survive the end of this process.
    Process,
}

/// The options with which a volume is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that clients may store.
    pub quota_bytes: u64,
    /// When changes of names and attributes are answered.
    pub namespace_durability: Durability,
    /// Keep names and attributes in memory, until
    /// [switched](crate::StoreControl::set_metadata_cache). Off, every question goes to the kernel.
    pub metadata_cache: bool,
    /// Objects that are held open beyond those in use; at least 16.
    pub cached_objects_max: usize,
    /// The descriptors that this volume and others may hold together.
    pub descriptors: Arc<Descriptors>,
    /// The threads that may block.
    pub pool: Arc<Pool>,
}

/// A volume on a local file system. Cheap to clone; all clones are the same volume, and any number
/// of threads may use it at once.
///
/// Its futures may be polled on any thread, and leave that thread with the file system identity of
/// the last caller: see [`reset_identity`](crate::reset_identity).
///
/// A store that was made [for a call](crate::StoreControl::for_call) keeps the call on record with
/// the names that it changes. One that was made
/// [for changes that are not synced](crate::StoreControl::unsynced) answers them at once, whatever
/// the volume was opened with.
#[derive(Clone, Debug)]
pub struct LocalStore(Arc<volume::Volume>, Option<CallId>, Durability);

impl LocalStore {
    /// Syncs that have failed since the volume was opened. When this moves, data that clients
    /// wrote and have not committed may be lost: a server changes its write verifier, so that they
    /// send it again (RFC 1813 §4.8).
    #[must_use]
    pub fn sync_failures(&self) -> u64 {
        self.0.sync_failures.load(Acquire)
    }

    /// Syncs of single objects since the volume was opened, however many operations shared each.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.0.syncs.load(Acquire)
    }

    /// Makes everything on the volume's file system stable. Blocks.
    ///
    /// # Errors
    /// `Io` if the device failed.
    pub fn sync(&self) -> FsResult<()> {
        syncfs(&self.0.root.fd).map_err(fs_error)
    }

    async fn read_link(&self, inode: &Arc<Inode>) -> FsResult<Vec<u8>> {
        if inode.kind != FileKind::Symlink {
            return Err(FsError::WrongKind);
        }
        let inode = Arc::clone(inode);
        self.pooled(move |_| {
            let target = as_root(|_| readlinkat(&inode.fd, c"", Vec::new()))?;
            // Unlike READ, this moves the access time.
            inode.attrs.invalidate();
            Ok(target.map_err(fs_error)?.into_bytes())
        })
        .await
    }
}

impl Store for LocalStore {
    type Object = Arc<Inode>;

    fn lost_writes(&self) -> u64 {
        self.sync_failures()
    }

    fn root(&self) -> Arc<Inode> {
        Arc::clone(&self.0.root)
    }

    fn key(&self, object: &Arc<Inode>) -> ObjectKey {
        object.key
    }

    fn resolve(&self, key: &ObjectKey) -> impl Future<Output = FsResult<Arc<Inode>>> {
        self.resolve(key)
    }

    async fn attr(&self, object: &Arc<Inode>) -> FsResult<Attr> {
        object.attr()
    }

    fn lookup(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> impl Future<Output = FsResult<(Arc<Inode>, Attr)>> {
        self.lookup(dir, name)
    }

    fn details(&self, object: &Arc<Inode>) -> impl Future<Output = FsResult<(Attr, Details)>> {
        self.details(object)
    }

    fn set_details(
        &self,
        object: &Arc<Inode>,
        set: &SetDetails,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Details)>> {
        self.set_details(object, set, cred)
    }

    fn lookup_folded(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
    ) -> impl Future<Output = FsResult<Folded<Arc<Inode>>>> {
        self.lookup_folded(dir, name)
    }

    fn read_link(&self, object: &Arc<Inode>) -> impl Future<Output = FsResult<Vec<u8>>> {
        self.read_link(object)
    }

    fn read(
        &self,
        object: &Arc<Inode>,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> impl Future<Output = FsResult<ReadDone>> {
        self.read(object, offset, count, out)
    }

    fn write(
        &self,
        object: &Arc<Inode>,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> impl Future<Output = FsResult<WriteDone>> {
        self.write(object, offset, data, how.into())
    }

    fn set_size(&self, object: &Arc<Inode>, size: u64) -> impl Future<Output = FsResult<Change>> {
        self.set_size(object, size)
    }

    fn zero_range(
        &self,
        object: &Arc<Inode>,
        from: u64,
        to: u64,
    ) -> impl Future<Output = FsResult<Change>> {
        self.zero_range(object, from, to)
    }

    fn allocated_ranges(
        &self,
        object: &Arc<Inode>,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> impl Future<Output = FsResult<Allocated>> {
        self.allocated_ranges(object, from, to, ranges_max)
    }

    fn commit(&self, object: &Arc<Inode>) -> impl Future<Output = FsResult<Change>> {
        self.commit(object)
    }

    fn stabilize(&self, object: &Arc<Inode>) -> impl Future<Output = FsResult<()>> {
        self.settle(object, Extent::All)
    }

    fn set_attr(
        &self,
        object: &Arc<Inode>,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        self.set_attr(object, set, guard, cred)
    }

    fn acl(
        &self,
        object: &Arc<Inode>,
        kind: AclKind,
    ) -> impl Future<Output = FsResult<(Attr, Option<Acl>)>> {
        self.acl(object, kind)
    }

    fn set_acl(
        &self,
        object: &Arc<Inode>,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Attr>> {
        self.set_acl(object, kind, acl, cred)
    }

    fn create(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Made<Arc<Inode>>>> {
        self.create(dir, name, how, cred)
    }

    fn make(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Made<Arc<Inode>>>> {
        self.make(dir, name, kind, set, cred)
    }

    fn remove(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        self.remove(dir, name, Victim::Other, cred)
    }

    fn remove_dir(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        self.remove(dir, name, Victim::Directory, cred)
    }

    fn rename(
        &self,
        from_dir: &Arc<Inode>,
        from: Name<'_>,
        to_dir: &Arc<Inode>,
        to: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>> {
        self.rename((from_dir, from), (to_dir, to), Conditions::NONE, cred)
    }

    fn remove_this(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        object: &Arc<Inode>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        self.remove(dir, name, Victim::This(Arc::clone(object)), cred)
    }

    fn rename_this(
        &self,
        object: &Arc<Inode>,
        from: (&Arc<Inode>, Name<'_>),
        to: (&Arc<Inode>, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>> {
        self.rename(from, to, Conditions::this(object, replace), cred)
    }

    fn link(
        &self,
        object: &Arc<Inode>,
        dir: &Arc<Inode>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Change)>> {
        self.link(object, dir, name, cred)
    }

    fn read_dir(
        &self,
        dir: &Arc<Inode>,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> impl Future<Output = FsResult<DirPage>> {
        self.read_dir(dir, read_dir::Part { cookie, entries_max, name_bytes_max, want })
    }

    fn fs_stat(&self) -> impl Future<Output = FsResult<FsStat>> {
        self.fs_stat()
    }
}
