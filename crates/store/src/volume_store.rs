//! [`VolumeStore`]: the store of a volume, whichever kind it is of.
//!
//! The kinds are a closed set with static dispatch. With one kind, as without the feature `ceph`,
//! the enums have the layout of what they contain, and a match on them is no instruction. With two,
//! no future is boxed.

#[cfg(feature = "ceph")]
use crate::ceph::{CephObject, CephOpenError, CephStore};
use crate::control::{StoreControl, Usage};
#[cfg(feature = "ceph")]
use crate::either::Either;
use crate::local::{Inode, LocalStore, OpenError, Options};
use crate::sync::Arc;
use std::path::Path;
use std::pin::Pin;
#[cfg(feature = "ceph")]
use weir_ceph::Ceph;
#[cfg(feature = "ceph")]
use weir_core::FsError;
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
    /// A directory tree on CephFS.
    #[cfg(feature = "ceph")]
    Ceph(CephStore),
}

/// An object of a [`VolumeStore`], held open.
#[derive(Clone, Debug)]
pub enum VolumeObject {
    /// An object of a local file system.
    Local(Arc<Inode>),
    /// An object on CephFS.
    #[cfg(feature = "ceph")]
    Ceph(Arc<CephObject>),
}

/// Hands an operation on to the store of its kind, whose future is the answer.
#[cfg(not(feature = "ceph"))]
macro_rules! hand_on {
    ($this:ident, ($($object:ident),+), $store:ident => $call:expr) => {
        match ($this, $($object),+) {
            (Self::Local($store), $(VolumeObject::Local($object)),+) => $call,
        }
    };
}

/// Hands an operation on to the store of its kind. An object of a store of another kind is one of
/// another volume.
#[cfg(feature = "ceph")]
macro_rules! hand_on {
    ($this:ident, ($($object:ident),+), $store:ident => $call:expr) => {
        match ($this, $($object),+) {
            (Self::Local($store), $(VolumeObject::Local($object)),+) => Either::First($call),
            (Self::Ceph($store), $(VolumeObject::Ceph($object)),+) => Either::Second($call),
            _ => Either::Neither(FsError::CrossVolume),
        }
    };
}

/// Does something with the store, of whichever kind it is.
macro_rules! with_store {
    ($this:ident, $store:ident => $call:expr) => {
        match $this {
            Self::Local($store) => $call,
            #[cfg(feature = "ceph")]
            Self::Ceph($store) => $call,
        }
    };
}

impl VolumeStore {
    /// Opens the volume in `directory` of a local file system, and makes it if there is none.
    ///
    /// # Errors
    /// As [`LocalStore::open`].
    pub fn open_local(directory: &Path, options: &Options) -> Result<Self, OpenError> {
        LocalStore::open(directory, options).map(Self::Local)
    }

    /// Opens the volume in the directory `path` of a CephFS, and makes it if there is none.
    ///
    /// # Errors
    /// As [`CephStore::open`].
    #[cfg(feature = "ceph")]
    pub fn open_ceph(ceph: &Ceph, path: &str, options: &Options) -> Result<Self, CephOpenError> {
        CephStore::open(ceph, path, options).map(Self::Ceph)
    }

    /// The future of an operation of a protocol on this volume, which may ask the store several
    /// times. On CephFS, where every question blocks, it is one job of the pool
    /// (`CephStore::carry_out`), and `panicked` gives the result of one that panicked there.
    pub fn carry_out<F>(
        &self,
        operation: F,
        #[cfg_attr(
            not(feature = "ceph"),
            expect(unused_variables, reason = "the caller polls an operation on a local volume")
        )]
        panicked: impl FnOnce() -> F::Output + 'static,
    ) -> Pin<Box<dyn Future<Output = F::Output>>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match self {
            Self::Local(_) => Box::pin(operation),
            #[cfg(feature = "ceph")]
            Self::Ceph(store) => {
                let done = store.carry_out(operation);
                Box::pin(async move { done.await.unwrap_or_else(|_| panicked()) })
            }
        }
    }
}

fn made<O>(made: Made<O>, of: impl FnOnce(O) -> VolumeObject) -> Made<VolumeObject> {
    let Made { object, attr, dir } = made;
    Made { object: of(object), attr, dir }
}

impl Store for VolumeStore {
    type Object = VolumeObject;

    #[inline]
    fn lost_writes(&self) -> u64 {
        with_store!(self, store => store.lost_writes())
    }

    #[inline]
    fn root(&self) -> VolumeObject {
        match self {
            Self::Local(store) => VolumeObject::Local(store.root()),
            #[cfg(feature = "ceph")]
            Self::Ceph(store) => VolumeObject::Ceph(store.root()),
        }
    }

    #[inline]
    fn key(&self, object: &VolumeObject) -> ObjectKey {
        match (self, object) {
            (Self::Local(store), VolumeObject::Local(object)) => store.key(object),
            #[cfg(feature = "ceph")]
            (_, VolumeObject::Ceph(object)) => object.key(),
            #[cfg(feature = "ceph")]
            (Self::Ceph(_), VolumeObject::Local(object)) => object.key(),
        }
    }

    #[inline]
    async fn resolve(&self, key: &ObjectKey) -> FsResult<VolumeObject> {
        match self {
            Self::Local(store) => store.resolve(key).await.map(VolumeObject::Local),
            #[cfg(feature = "ceph")]
            Self::Ceph(store) => store.resolve(key).await.map(VolumeObject::Ceph),
        }
    }

    #[inline]
    fn attr(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Attr>> {
        hand_on!(self, (object), store => store.attr(object))
    }

    #[inline]
    async fn lookup(&self, dir: &VolumeObject, name: Name<'_>) -> FsResult<(VolumeObject, Attr)> {
        match (self, dir) {
            (Self::Local(store), VolumeObject::Local(dir)) => {
                let (object, attr) = store.lookup(dir, name).await?;
                Ok((VolumeObject::Local(object), attr))
            }
            #[cfg(feature = "ceph")]
            (Self::Ceph(store), VolumeObject::Ceph(dir)) => {
                let (object, attr) = store.lookup(dir, name).await?;
                Ok((VolumeObject::Ceph(object), attr))
            }
            #[cfg(feature = "ceph")]
            _ => Err(FsError::CrossVolume),
        }
    }

    #[inline]
    fn details(&self, object: &VolumeObject) -> impl Future<Output = FsResult<(Attr, Details)>> {
        hand_on!(self, (object), store => store.details(object))
    }

    fn set_details(
        &self,
        object: &VolumeObject,
        set: &SetDetails,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Details)>> {
        hand_on!(self, (object), store => store.set_details(object, set, cred))
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
            #[cfg(feature = "ceph")]
            (Self::Ceph(store), VolumeObject::Ceph(dir)) => {
                let Folded { name, object, attr } = store.lookup_folded(dir, name).await?;
                Ok(Folded { name, object: VolumeObject::Ceph(object), attr })
            }
            #[cfg(feature = "ceph")]
            _ => Err(FsError::CrossVolume),
        }
    }

    #[inline]
    fn read_link(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Vec<u8>>> {
        hand_on!(self, (object), store => store.read_link(object))
    }

    #[inline]
    fn read(
        &self,
        object: &VolumeObject,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> impl Future<Output = FsResult<ReadDone>> {
        hand_on!(self, (object), store => store.read(object, offset, count, out))
    }

    #[inline]
    fn write(
        &self,
        object: &VolumeObject,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> impl Future<Output = FsResult<WriteDone>> {
        hand_on!(self, (object), store => store.write(object, offset, data, how.into()))
    }

    fn set_size(&self, object: &VolumeObject, size: u64) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (object), store => store.set_size(object, size))
    }

    fn zero_range(
        &self,
        object: &VolumeObject,
        from: u64,
        to: u64,
    ) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (object), store => store.zero_range(object, from, to))
    }

    fn allocated_ranges(
        &self,
        object: &VolumeObject,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> impl Future<Output = FsResult<Allocated>> {
        hand_on!(self, (object), store => store.allocated_ranges(object, from, to, ranges_max))
    }

    #[inline]
    fn commit(&self, object: &VolumeObject) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (object), store => store.commit(object))
    }

    fn stabilize(&self, object: &VolumeObject) -> impl Future<Output = FsResult<()>> {
        hand_on!(self, (object), store => store.stabilize(object))
    }

    fn set_attr(
        &self,
        object: &VolumeObject,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (object), store => store.set_attr(object, set, guard, cred))
    }

    #[inline]
    fn acl(
        &self,
        object: &VolumeObject,
        kind: AclKind,
    ) -> impl Future<Output = FsResult<(Attr, Option<Acl>)>> {
        hand_on!(self, (object), store => store.acl(object, kind))
    }

    fn set_acl(
        &self,
        object: &VolumeObject,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Attr>> {
        hand_on!(self, (object), store => store.set_acl(object, kind, acl, cred))
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
                store.create(dir, name, how, cred).await.map(|new| made(new, VolumeObject::Local))
            }
            #[cfg(feature = "ceph")]
            (Self::Ceph(store), VolumeObject::Ceph(dir)) => {
                store.create(dir, name, how, cred).await.map(|new| made(new, VolumeObject::Ceph))
            }
            #[cfg(feature = "ceph")]
            _ => Err(FsError::CrossVolume),
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
            (Self::Local(store), VolumeObject::Local(dir)) => store
                .make(dir, name, kind, set, cred)
                .await
                .map(|new| made(new, VolumeObject::Local)),
            #[cfg(feature = "ceph")]
            (Self::Ceph(store), VolumeObject::Ceph(dir)) => store
                .make(dir, name, kind, set, cred)
                .await
                .map(|new| made(new, VolumeObject::Ceph)),
            #[cfg(feature = "ceph")]
            _ => Err(FsError::CrossVolume),
        }
    }

    fn remove(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (dir), store => store.remove(dir, name, cred))
    }

    fn remove_dir(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (dir), store => store.remove_dir(dir, name, cred))
    }

    fn rename(
        &self,
        from_dir: &VolumeObject,
        from: Name<'_>,
        to_dir: &VolumeObject,
        to: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Change, Change)>> {
        hand_on!(self, (from_dir, to_dir), store => store.rename(from_dir, from, to_dir, to, cred))
    }

    fn remove_this(
        &self,
        dir: &VolumeObject,
        name: Name<'_>,
        object: &VolumeObject,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<Change>> {
        hand_on!(self, (dir, object), store => store.remove_this(dir, name, object, cred))
    }

    async fn rename_this(
        &self,
        object: &VolumeObject,
        (from_dir, from): (&VolumeObject, Name<'_>),
        (to_dir, to): (&VolumeObject, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        match (self, object, from_dir, to_dir) {
            (
                Self::Local(store),
                VolumeObject::Local(object),
                VolumeObject::Local(from_dir),
                VolumeObject::Local(to_dir),
            ) => store.rename_this(object, (from_dir, from), (to_dir, to), replace, cred).await,
            #[cfg(feature = "ceph")]
            (
                Self::Ceph(store),
                VolumeObject::Ceph(object),
                VolumeObject::Ceph(from_dir),
                VolumeObject::Ceph(to_dir),
            ) => store.rename_this(object, (from_dir, from), (to_dir, to), replace, cred).await,
            #[cfg(feature = "ceph")]
            _ => Err(FsError::CrossVolume),
        }
    }

    fn link(
        &self,
        object: &VolumeObject,
        dir: &VolumeObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> impl Future<Output = FsResult<(Attr, Change)>> {
        hand_on!(self, (object, dir), store => store.link(object, dir, name, cred))
    }

    fn read_dir(
        &self,
        dir: &VolumeObject,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> impl Future<Output = FsResult<DirPage>> {
        hand_on!(self, (dir), store => {
            store.read_dir(dir, cookie, entries_max, name_bytes_max, want)
        })
    }

    async fn fs_stat(&self) -> FsResult<FsStat> {
        with_store!(self, store => store.fs_stat().await)
    }
}

impl StoreControl for VolumeStore {
    fn handles_persist(&self) -> bool {
        with_store!(self, store => store.handles_persist())
    }

    fn set_quota_bytes(&self, bytes: u64) {
        with_store!(self, store => store.set_quota_bytes(bytes));
    }

    fn set_metadata_cache(&self, on: bool) {
        with_store!(self, store => store.set_metadata_cache(on));
    }

    fn usage(&self) -> Usage {
        with_store!(self, store => store.usage())
    }

    fn rescan(&self) -> bool {
        with_store!(self, store => store.rescan())
    }

    fn root_attr(&self) -> FsResult<Attr> {
        with_store!(self, store => store.root_attr())
    }

    fn release_idle(&self) {
        with_store!(self, store => store.release_idle());
    }

    fn objects_open(&self) -> usize {
        with_store!(self, store => store.objects_open())
    }

    fn for_call(&self, call: CallId) -> Self {
        match self {
            Self::Local(store) => Self::Local(store.for_call(call)),
            #[cfg(feature = "ceph")]
            Self::Ceph(store) => Self::Ceph(store.for_call(call)),
        }
    }

    fn unsynced(&self) -> Self {
        match self {
            Self::Local(store) => Self::Local(store.unsynced()),
            #[cfg(feature = "ceph")]
            Self::Ceph(store) => Self::Ceph(store.unsynced()),
        }
    }

    fn remembered(&self) -> Vec<Remembered> {
        with_store!(self, store => store.remembered())
    }

    fn forget_calls(&self, calls: &[CallId]) {
        with_store!(self, store => store.forget_calls(calls));
    }

    fn close_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        #[cfg(feature = "ceph")]
        return by_kind(stores, LocalStore::close_all, CephStore::close_all);
        #[cfg(not(feature = "ceph"))]
        LocalStore::close_all(&locals(stores))
    }

    fn sync_all(stores: &[&Self]) -> Vec<FsResult<()>> {
        #[cfg(feature = "ceph")]
        return by_kind(stores, LocalStore::sync_all, CephStore::sync_all);
        #[cfg(not(feature = "ceph"))]
        LocalStore::sync_all(&locals(stores))
    }
}

#[cfg(not(feature = "ceph"))]
fn locals<'a>(stores: &[&'a VolumeStore]) -> Vec<&'a LocalStore> {
    let local = |store: &&'a VolumeStore| match store {
        VolumeStore::Local(store) => store,
    };
    stores.iter().map(local).collect()
}

/// Ends or syncs the stores of each kind together, and gives the results in the order of all.
#[cfg(feature = "ceph")]
fn by_kind(
    stores: &[&VolumeStore],
    local: impl Fn(&[&LocalStore]) -> Vec<FsResult<()>>,
    ceph: impl Fn(&[&CephStore]) -> Vec<FsResult<()>>,
) -> Vec<FsResult<()>> {
    let (mut locals, mut cephs) = (Vec::new(), Vec::new());
    for store in stores {
        match store {
            VolumeStore::Local(store) => locals.push(store),
            VolumeStore::Ceph(store) => cephs.push(store),
        }
    }
    let (mut locals, mut cephs) = (local(&locals).into_iter(), ceph(&cephs).into_iter());
    let result = |store: &&VolumeStore| match store {
        VolumeStore::Local(_) => locals.next(),
        VolumeStore::Ceph(_) => cephs.next(),
    };
    stores.iter().map(result).map(|result| result.unwrap_or(Err(FsError::Io))).collect()
}
