//! `MemStore`: the reference [`Store`], one tree behind one mutex, right by inspection.
//!
//! The store enforces the kernel's rules for the caller's identity: the mode bits and access
//! control lists, owners, the sticky bit, setgid directories, link counts and the rename rules. It
//! is no model of durability (every write counts as FILE_SYNC), of concurrency or of speed.

mod details;
mod names;
mod node;
mod rules;
mod sparse;
#[cfg(test)]
mod tests;
mod tree;

use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, Change, SetAttr};
use crate::buf::Shared;
use crate::cred::Credentials;
use crate::details::{Details, SetDetails};
use crate::error::{FsError, FsResult};
use crate::handle::ObjectKey;
use crate::name::Name;
use crate::store::{
    Allocated, CreateHow, DirPage, Folded, FsStat, Made, MakeKind, ReadDone, Replace, Stability,
    Store, Want, WriteDone, WriteHow,
};
use crate::testing::interrupt::interrupt;
use crate::time::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;
use tree::{ROOT, Tree};

/// An object of a [`MemStore`]: its inode number. It becomes stale with the object's last name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemObject(u64);

/// A volume in memory.
#[derive(Debug)]
pub struct MemStore {
    tree: Mutex<Tree>,
}

impl MemStore {
    /// An empty volume with a quota of 1 TiB, whose root belongs to the superuser, mode 0777.
    #[must_use]
    pub fn new() -> Self {
        Self::with_quota(1 << 40)
    }

    /// A store with a quota of `bytes`, counted in units of 4 KiB of file data.
    #[must_use]
    pub fn with_quota(bytes: u64) -> Self {
        Self { tree: Mutex::new(Tree::new(bytes)) }
    }

    /// Lets `operations` more operations through and makes the one after them fail with `error`,
    /// before it does anything.
    pub fn fail_after(&self, operations: u32, error: FsError) {
        self.tree().failure = Some((operations, error));
    }

    /// The objects that [`Store::stabilize`] made stable since the last call of this, in order.
    #[must_use]
    pub fn take_stabilized(&self) -> Vec<MemObject> {
        core::mem::take(&mut self.tree().stabilized).into_iter().map(MemObject).collect()
    }

    /// The stability that the last WRITE asked for.
    #[must_use]
    pub fn asked_stability(&self) -> Option<Stability> {
        self.tree().asked
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> FsResult<MutexGuard<'_, Tree>> {
        interrupt();
        let mut tree = self.tree();
        match tree.failure.take() {
            None => Ok(tree),
            Some((0, error)) => Err(error),
            Some((operations, error)) => {
                tree.failure = Some((operations - 1, error));
                Ok(tree)
            }
        }
    }
}

impl Default for MemStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemStore {
    type Object = MemObject;

    fn root(&self) -> MemObject {
        MemObject(ROOT)
    }

    fn key(&self, object: &MemObject) -> ObjectKey {
        // Eight bytes always fit a key, so the fallback is never taken.
        ObjectKey::new(&object.0.to_be_bytes()).unwrap_or_else(|_| unreachable!())
    }

    async fn resolve(&self, key: &ObjectKey) -> FsResult<MemObject> {
        let ino = key.as_bytes().try_into().map_err(|_| FsError::BadHandle)?;
        let ino = u64::from_be_bytes(ino);
        self.begin()?.node(ino)?;
        Ok(MemObject(ino))
    }

    async fn attr(&self, object: &MemObject) -> FsResult<Attr> {
        self.begin()?.attr(object.0)
    }

    async fn lookup(&self, dir: &MemObject, name: Name<'_>) -> FsResult<(MemObject, Attr)> {
        let tree = self.begin()?;
        let ino = tree.entry(dir.0, name)?.ok_or(FsError::NotFound)?;
        Ok((MemObject(ino), tree.attr(ino)?))
    }

    async fn details(&self, object: &MemObject) -> FsResult<(Attr, Details)> {
        self.begin()?.details(object.0)
    }

    async fn set_details(
        &self,
        object: &MemObject,
        set: &SetDetails,
        cred: &Credentials,
    ) -> FsResult<(Attr, Details)> {
        self.begin()?.set_details(object.0, set, cred)
    }

    async fn lookup_folded(&self, dir: &MemObject, name: Name<'_>) -> FsResult<Folded<MemObject>> {
        self.begin()?.lookup_folded(dir.0, name)
    }

    async fn set_size(&self, object: &MemObject, size: u64) -> FsResult<Change> {
        self.begin()?.set_size(object.0, size)
    }

    async fn zero_range(&self, object: &MemObject, from: u64, to: u64) -> FsResult<Change> {
        self.begin()?.zero_range(object.0, from, to)
    }

    async fn allocated_ranges(
        &self,
        object: &MemObject,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> FsResult<Allocated> {
        self.begin()?.allocated_ranges(object.0, (from, to), ranges_max)
    }

    async fn read_link(&self, object: &MemObject) -> FsResult<Vec<u8>> {
        self.begin()?.read_link(object.0)
    }

    async fn read(
        &self,
        object: &MemObject,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> FsResult<ReadDone> {
        self.begin()?.read(object.0, offset, count, out)
    }

    async fn write(
        &self,
        object: &MemObject,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> FsResult<WriteDone> {
        let (how, mut tree) = (how.into(), self.begin()?);
        tree.asked = Some(how.stability);
        let done = tree.write(object.0, offset, &data)?;
        let change = if how.gives_change { done.change } else { Change::default() };
        Ok(WriteDone { change, ..done })
    }

    async fn commit(&self, object: &MemObject) -> FsResult<Change> {
        let tree = self.begin()?;
        tree.file(object.0)?;
        let attr = Some(tree.attr(object.0)?);
        Ok(Change { before: attr, after: attr })
    }

    async fn stabilize(&self, object: &MemObject) -> FsResult<()> {
        let mut tree = self.begin()?;
        tree.attr(object.0)?;
        tree.stabilized.push(object.0);
        Ok(())
    }

    async fn set_attr(
        &self,
        object: &MemObject,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.begin()?.set_attr(object.0, set, guard, cred)
    }

    async fn acl(&self, object: &MemObject, kind: AclKind) -> FsResult<(Attr, Option<Acl>)> {
        self.begin()?.acl(object.0, kind)
    }

    async fn set_acl(
        &self,
        object: &MemObject,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        self.begin()?.set_acl(object.0, kind, acl, cred)
    }

    async fn create(
        &self,
        dir: &MemObject,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> FsResult<Made<MemObject>> {
        self.begin()?.create(dir.0, name, how, cred)
    }

    async fn make(
        &self,
        dir: &MemObject,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Made<MemObject>> {
        self.begin()?.make(dir.0, name, kind, set, cred)
    }

    async fn remove(
        &self,
        dir: &MemObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.begin()?.remove(dir.0, name, cred)
    }

    async fn remove_dir(
        &self,
        dir: &MemObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.begin()?.remove_dir(dir.0, name, cred)
    }

    async fn rename(
        &self,
        from_dir: &MemObject,
        from: Name<'_>,
        to_dir: &MemObject,
        to: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        self.begin()?.rename((from_dir.0, from), (to_dir.0, to), cred)
    }

    async fn remove_this(
        &self,
        dir: &MemObject,
        name: Name<'_>,
        object: &MemObject,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.begin()?.remove_this(dir.0, name, object.0, cred)
    }

    async fn rename_this(
        &self,
        object: &MemObject,
        from: (&MemObject, Name<'_>),
        to: (&MemObject, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let (from, to) = ((from.0.0, from.1), (to.0.0, to.1));
        self.begin()?.rename_this(object.0, from, to, replace, cred)
    }

    async fn link(
        &self,
        object: &MemObject,
        dir: &MemObject,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Attr, Change)> {
        self.begin()?.link(object.0, dir.0, name, cred)
    }

    async fn read_dir(
        &self,
        dir: &MemObject,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> FsResult<DirPage> {
        let page = self.begin()?.read_dir(dir.0, cookie, entries_max, name_bytes_max)?;
        Ok(if want == Want::Names { page } else { self.with_objects(page, want) })
    }

    async fn fs_stat(&self) -> FsResult<FsStat> {
        Ok(self.begin()?.fs_stat())
    }
}

impl MemStore {
    fn with_objects(&self, mut page: DirPage, want: Want) -> DirPage {
        let tree = self.tree();
        for entry in &mut page.entries {
            let Ok((attr, details)) = tree.details(entry.fileid) else { continue };
            entry.object = Some((self.key(&MemObject(entry.fileid)), attr));
            entry.details = (want == Want::Details).then_some(details);
        }
        page
    }
}
