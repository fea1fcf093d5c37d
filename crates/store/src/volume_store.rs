//! [`VolumeStore`]: the store of a volume, whichever kind it is of.
//!
//! The kinds are a closed set with static dispatch. With one kind the enums have the layout of what
//! they contain, and a match on them is no instruction.

use crate::control::{StoreControl, Usage};
use crate::local::{Inode, LocalStore, OpenError, Options};
use crate::sync::Arc;
use std::path::Path;
use weir_core::attr::Change;
use weir_core::store::{
    Allocated, CreateHow, DirPage, Folded, FsStat, Made, MakeKind, ReadDone, Replace, Want,
    WriteDone, WriteHow,
};
use weir_core::{
    Acl, AclKind, Attr, CallId, Credentials, Details, FsResult, Name, ObjectKey, Remembered,
    SetAttr, SetDetails, Shared, Store, Timestamp,
};

/// The store of one volume. Cheap to clone; all clones are the same volume.
#[derive(Clone, Debug)]
pub enum VolumeStore {
    /// A directory tree on a local file system.
    Local(LocalStore),
}

/// An object of a [`VolumeStore`], held open.
#[derive(Clone, Debug)]
pub enum VolumeObject {
    /// An object of a local file system.
    Local(Arc<Inode>),
}

impl VolumeStore {
    /// Opens the volume in `directory` of a local file system, and makes it if there is none.
    ///
    /// # Errors
    /// As [`LocalStore::open`].
    pub fn open_local(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        LocalStore::open(directory, options).map(Self::Local)
    }
}

fn made(made: Made<Arc<Inode>>) -> Made<VolumeObject> {
    let Made { object, attr, dir } = made;
    Made { object: VolumeObject::Local(object), attr, dir }
}

impl Store for VolumeStore {
    type Object = VolumeObject;

    #[inline]
    fn lost_writes(&self) -> u64 {
        match self {
            Self::Local(store) => store.lost_writes(),
        }
    }

    #[inline]
    fn root(&self) -> VolumeObject {
        match self {
            Self::Local(store) => VolumeObject::Local(store.root()),
        }
    }

    #[inline]
    fn key(&self, object: &VolumeObject) -> ObjectKey {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.key(object),
        }
    }

    #[inline]
    async fn resolve(&self, key: &ObjectKey) -> FsResult<VolumeObject> {
        match self {
            Self::Local(store) => store.resolve(key).await.map(VolumeObject::Local),
        }
    }

    #[inline]
    fn attr(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Attr>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.attr(object),
        }
    }

    #[inline]
    async fn lookup(&self, dir: &VolumeObject, name: Name<'_>) -> FsResult<(VolumeObject, Attr)> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                let (object, attr) = store.lookup(dir, name).await?;
                Ok((VolumeObject::Local(object), attr))
            }
        }
    }

    #[inline]
    fn details(&self, object: &VolumeObject) -> impl Future<Output = FsResult<(Attr, Details)>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.details(object),
        }
    }

    fn set_details(
        &self,
        object: &VolumeObject,
        set: &SetDetails,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Details)>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.set_details(object, set, cred)
            }
        }
    }

    #[inline]
    async fn lookup_folded(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
    ) -> FsResult<Folded<VolumeObject>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                let Folded { name, object, attr } = store.lookup_folded(dir, name).await?;
                Ok(Folded { name, object: VolumeObject::Local(object), attr })
            }
        }
    }

    #[inline]
    fn read_link(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Vec<u8>>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.read_link(object),
        }
    }

    #[inline]
    fn read(
        &self,
        object: &VolumeObject,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> impl Future<Output = FsResult<ReadDone>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.read(object, offset, count, out)
            }
        }
    }

    #[inline]
    fn write(
        &self,
        object: &VolumeObject,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> impl Future<Output = FsResult<WriteDone>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.write(object, offset, data, how.into())
            }
        }
    }

    fn set_size(&self, object: &VolumeObject, size: u64) -> impl Future<Output = FsResult<Change>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.set_size(object, size),
        }
    }

    fn zero_range(
        &self,
        object: &VolumeObject,
        from: u64,
        to: u64,
    ) -> impl Future<Output = FsResult<Change>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.zero_range(object, from, to),
        }
    }

    fn allocated_ranges(
        &self,
        object: &VolumeObject,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> impl Future<Output = FsResult<Allocated>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.allocated_ranges(object, from, to, ranges_max)
            }
        }
    }

    #[inline]
    fn commit(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Change>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.commit(object),
        }
    }

    fn stabilize(&self, object: &VolumeObject) -> impl Future<Output = FsResult<()>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.stabilize(object),
        }
    }

    fn set_attr(
        &self,
        object: &VolumeObject,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.set_attr(object, set, guard, cred)
            }
        }
    }

    #[inline]
    fn acl(
        &self,
        object: &VolumeObject,
        kind: AclKind,
    ) -> impl Future<Output = FsResult<(Attr, Option<Acl>)>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.acl(object, kind),
        }
    }

    fn set_acl(
        &self,
        object: &VolumeObject,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Attr>> {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => {
                store.set_acl(object, kind, acl, cred)
            }
        }
    }

    async fn create(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> FsResult<Made<VolumeObject>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                store.create(dir, name, how, cred).await.map(made)
            }
        }
    }

    async fn make(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Made<VolumeObject>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                store.make(dir, name, kind, set, cred).await.map(made)
            }
        }
    }

    fn remove(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => store.remove(dir, name, cred),
        }
    }

    fn remove_dir(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => store.remove_dir(dir, name, cred),
        }
    }

    fn rename(
        &self,
        from_dir: &VolumeObject,
        from: Name<'_>,
        to_dir: &VolumeObject,
        to: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>> {
        match (self, from_dir, to_dir) {
            (Self::Local(store), VolumeObject::Local(from_dir), VolumeObject::Local(to_dir)) => {
                store.rename(from_dir, from, to_dir, to, cred)
            }
        }
    }

    fn remove_this(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        object: &VolumeObject,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        match (self, dir, object) {
            (Self::Local(store), VolumeObject::Local(dir), VolumeObject::Local(object)) => {
                store.remove_this(dir, name, object, cred)
            }
        }
    }

    async fn rename_this(
        &self,
        object: &VolumeObject,
        (from_dir, from): (&VolumeObject, Name<'_>),
        (to_dir, to): (&VolumeObject, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let (VolumeObject::Local(object), VolumeObject::Local(from_dir)) = (object, from_dir);
        let VolumeObject::Local(to_dir) = to_dir;
        match self {
            Self::Local(store) => {
                store.rename_this(object, (from_dir, from), (to_dir, to), replace, cred).await
            }
        }
    }

    fn link(
        &self,
        object: &VolumeObject,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Change)>> {
        match (self, object, dir) {
            (Self::Local(store), VolumeObject::Local(object), VolumeObject::Local(dir)) => {
                store.link(object, dir, name, cred)
            }
        }
    }

    fn read_dir(
        &self,
        dir: &VolumeObject,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> impl Future<Output = FsResult<DirPage>> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                store.read_dir(dir, cookie, entries_max, name_bytes_max, want)
            }
        }
    }

    fn fs_stat(&self) -> impl Future<Output = FsResult<FsStat>> {
        match self {
            Self::Local(store) => store.fs_stat(),
        }
    }
}

impl StoreControl for VolumeStore {
    fn handles_persist(&self) -> bool {
        match self {
            Self::Local(store) => store.handles_persist(),
        }
    }

    fn set_quota_bytes(&self, bytes: u64) {
        match self {
            Self::Local(store) => store.set_quota_bytes(bytes),
        }
    }

    fn set_metadata_cache(&self, on: bool) {
        match self {
            Self::Local(store) => store.set_metadata_cache(on),
        }
    }

    fn usage(&self) -> Usage {
        match self {
            Self::Local(store) => store.usage(),
        }
    }

    fn rescan(&self) -> bool {
        match self {
            Self::Local(store) => store.rescan(),
        }
    }

    fn root_attr(&self) -> FsResult<Attr> {
        match self {
            Self::Local(store) => store.root_attr(),
        }
    }

    fn release_idle(&self) {
        match self {
            Self::Local(store) => store.release_idle(),
        }
    }

    fn objects_open(&self) -> usize {
        match self {
            Self::Local(store) => store.objects_open(),
        }
    }

    fn for_call(&self, call: CallId) -> Self {
        match self {
            Self::Local(store) => Self::Local(store.for_call(call)),
        }
    }

    fn unsynced(&self) -> Self {
        match self {
            Self::Local(store) => Self::Local(store.unsynced()),
        }
    }

    fn remembered(&self) -> Vec<Remembered> {
        match self {
            Self::Local(store) => store.remembered(),
        }
    }

    fn forget_calls(&self, calls: &[CallId]) {
        match self {
            Self::Local(store) => store.forget_calls(calls),
        }
    }

    fn close_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        LocalStore::close_all(&locals(stores))
    }

    fn sync_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        LocalStore::sync_all(&locals(stores))
    }
}

fn locals<'a>(stores: &[&'a VolumeStore]) -> Vec<&'a LocalStore> {
    let local = |store: &&'a VolumeStore| match store {
        VolumeStore::Local(store) => store,
    };
    stores.iter().map(local).collect()
}
