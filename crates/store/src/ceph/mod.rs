//! [`CephStore`]: a volume on CephFS, by libcephfs, whose calls are in `weir_ceph`.
//!
//! Every call of the library blocks, so every operation runs in the pool. Nothing about names and
//! attributes is kept here: libcephfs keeps both, for as long as its capabilities allow, and so
//! several gateways agree. An object is named by its inode number and its birth, which mean the
//! same on every gateway; the count of its changes is CephFS's.
//!
//! CephFS has no map of holes, so usage is the size of files. Calls are not put on record: after
//! the end of a gateway that does not hand the volume over a repeated call is carried out again.
//!
//! [`Ceph`] is the way to a cluster.

#[expect(unsafe_code, reason = "an object gives up what it holds when it is dropped")]
mod object;

mod attrs;
mod control;
mod create;
mod data;
mod error;
mod handover;
mod names;
mod operation;
mod places;
mod read_dir;
mod record;
mod remove;
mod replace;
mod rules;
mod set_attr;
mod usage;
mod volume;

use crate::sync::{Acquire, Arc};
use crate::{Durability, Options};
pub use handover::{clear_handover, put_handover, take_handover};
pub use object::CephObject;
pub use places::{Removal, claim_pool, holds_volumes, move_volume, remove_volume};
use read_dir::Part;
use remove::{Conditions, Victim};
pub use volume::CephOpenError;
use volume::Volume;
use weir_ceph::Ceph;
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{
    Allocated, CreateHow, DirPage, Folded, FsStat, Made, MakeKind, ReadDone, Replace, Store, Want,
    WriteDone, WriteHow,
};
use weir_core::{
    Acl, AclKind, Attr, Credentials, Details, FileKind, FsError, FsResult, Name, ObjectKey,
    SetAttr, SetDetails, Shared, Timestamp,
};

/// File slots that are told to clients: CephFS has no bound.
const FILES_TOTAL: u64 = 1 << 32;

/// A volume on CephFS. Cheap to clone; all clones are the same volume, and any number of threads
/// may use it at once.
#[derive(Clone, Debug)]
pub struct CephStore(Arc<Volume>, Durability);

impl CephStore {
    /// Opens the volume in the directory `path` below the one that `ceph` has mounted, and makes it
    /// if there is none. Of `options` the metadata cache and the descriptors mean nothing here.
    /// Blocks.
    ///
    /// # Errors
    /// [`CephOpenError`], with what to do.
    pub fn open(ceph: &Ceph, path: &str, options: &Options) -> Result<Self, CephOpenError> {
        volume::open(ceph, path, options).map(|volume| Self(volume, options.namespace_durability))
    }

    /// Syncs that have failed since the volume was opened.
    #[must_use]
    pub fn sync_failures(&self) -> u64 {
        self.0.losses.failures.load(Acquire)
    }

    /// Syncs of single objects since the volume was opened.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.0.losses.syncs.load(Acquire)
    }

    /// Carries out an operation of a protocol, which may ask the store several times, in one job of
    /// the pool. If the operation waits for anything but the store, the caller of this future polls
    /// the rest of it. A job that is queued is carried out even if the future is dropped, but not
    /// that rest.
    ///
    /// # Errors
    /// `Io` if it panicked.
    pub fn carry_out<F>(&self, operation: F) -> impl Future<Output = FsResult<F::Output>> + use<F>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        operation::carry_out(Arc::clone(&self.0), operation)
    }

    /// Runs `work` in the pool.
    async fn pooled<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Volume>) -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        if operation::may_block() {
            return work(&self.0);
        }
        let volume = Arc::clone(&self.0);
        self.0.lane.run(move || work(&volume)).await
    }

    /// Runs a change of names or attributes in the pool, and makes `objects` stable afterwards if
    /// the volume promises that.
    async fn changing<T: Send + 'static>(
        &self,
        objects: Vec<Arc<CephObject>>,
        change: impl FnOnce(&Arc<Volume>) -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let stable = self.1 == Durability::Power;
        self.pooled(move |volume| {
            let done = change(volume)?;
            if stable {
                objects.iter().try_for_each(|object| object.sync())?;
            }
            Ok(done)
        })
        .await
    }
}

/// A name of its own.
fn own(name: Name<'_>) -> Box<[u8]> {
    name.as_bytes().into()
}

impl Store for CephStore {
    type Object = Arc<CephObject>;

    fn lost_writes(&self) -> u64 {
        self.0.lost()
    }

    fn root(&self) -> Arc<CephObject> {
        Arc::clone(&self.0.root)
    }

    fn key(&self, object: &Arc<CephObject>) -> ObjectKey {
        object.key()
    }

    async fn resolve(&self, key: &ObjectKey) -> FsResult<Arc<CephObject>> {
        if let Some(held) = self.0.table.get(object::ino(key)?) {
            let same = held.key().may_be(key) && !held.is_gone();
            return if same { Ok(held) } else { Err(FsError::Stale) };
        }
        let key = *key;
        self.pooled(move |volume| volume.find(&key)).await
    }

    async fn attr(&self, object: &Arc<CephObject>) -> FsResult<Attr> {
        let object = Arc::clone(object);
        self.pooled(move |volume| volume.attr(&object)).await
    }

    async fn details(&self, object: &Arc<CephObject>) -> FsResult<(Attr, Details)> {
        let object = Arc::clone(object);
        self.pooled(move |volume| volume.details(&object)).await
    }

    async fn set_details(
        &self,
        object: &Arc<CephObject>,
        set: &SetDetails,
        cred: &Credentials,
    ) -> FsResult<(Attr, Details)> {
        let (object, set, cred) = (Arc::clone(object), *set, cred.clone());
        self.changing(vec![Arc::clone(&object)], move |volume| {
            volume.set_details(&object, &set, &cred)
        })
        .await
    }

    async fn lookup(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
    ) -> FsResult<(Arc<CephObject>, Attr)> {
        let (dir, name) = (Arc::clone(dir), own(name));
        self.pooled(move |volume| read_dir::lookup(volume, &dir, Name::new(&name)?)).await
    }

    async fn lookup_folded(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
    ) -> FsResult<Folded<Arc<CephObject>>> {
        let (dir, name) = (Arc::clone(dir), own(name));
        self.pooled(move |volume| read_dir::lookup_folded(volume, &dir, Name::new(&name)?)).await
    }

    async fn read_link(&self, object: &Arc<CephObject>) -> FsResult<Vec<u8>> {
        if object.kind != FileKind::Symlink {
            return Err(FsError::WrongKind);
        }
        let object = Arc::clone(object);
        self.pooled(move |volume| {
            let mut room = vec![0; weir_core::limits::SYMLINK_BYTES_MAX + 1];
            let got = volume.mount().readlink(object.inode(), &mut room);
            room.truncate(got.map_err(error::of_object)?);
            Ok(room)
        })
        .await
    }

    async fn read(
        &self,
        object: &Arc<CephObject>,
        offset: u64,
        count: u32,
        out: Vec<u8>,
    ) -> FsResult<ReadDone> {
        let object = Arc::clone(object);
        self.pooled(move |volume| data::read(volume, &object, offset, count, out)).await
    }

    async fn write(
        &self,
        object: &Arc<CephObject>,
        offset: u64,
        data: Shared,
        how: impl Into<WriteHow>,
    ) -> FsResult<WriteDone> {
        object.need_file()?;
        let length = u64::try_from(data.len()).map_err(|_| FsError::TooLarge)?;
        if offset.checked_add(length).is_none_or(|end| end > FILE_BYTES_MAX) {
            return Err(FsError::TooLarge);
        }
        // It may wait long, and must not pin the buffer it came in for that.
        let (object, data, how) = (Arc::clone(object), data.detach(), how.into());
        self.pooled(move |volume| data::write(volume, &object, (offset, &data), how)).await
    }

    async fn set_size(&self, object: &Arc<CephObject>, size: u64) -> FsResult<Change> {
        let object = Arc::clone(object);
        self.pooled(move |volume| data::set_size(volume, &object, size)).await
    }

    async fn zero_range(&self, object: &Arc<CephObject>, from: u64, to: u64) -> FsResult<Change> {
        let object = Arc::clone(object);
        self.pooled(move |volume| data::zero_range(volume, &object, from, to)).await
    }

    async fn allocated_ranges(
        &self,
        object: &Arc<CephObject>,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> FsResult<Allocated> {
        let object = Arc::clone(object);
        let ranges = move |volume: &Arc<Volume>| {
            data::allocated_ranges(volume, &object, (from, to), ranges_max)
        };
        self.pooled(ranges).await
    }

    async fn commit(&self, object: &Arc<CephObject>) -> FsResult<Change> {
        let object = Arc::clone(object);
        self.pooled(move |volume| data::commit(volume, &object)).await
    }

    async fn stabilize(&self, object: &Arc<CephObject>) -> FsResult<()> {
        let object = Arc::clone(object);
        self.pooled(move |_| object.sync()).await
    }

    async fn set_attr(
        &self,
        object: &Arc<CephObject>,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let (object, set, cred) = (Arc::clone(object), *set, cred.clone());
        self.changing(vec![Arc::clone(&object)], move |volume| {
            volume.set_attr(&object, &set, guard, &cred)
        })
        .await
    }

    async fn acl(&self, object: &Arc<CephObject>, kind: AclKind) -> FsResult<(Attr, Option<Acl>)> {
        let object = Arc::clone(object);
        self.pooled(move |volume| {
            let list = volume.list(&object, kind)?;
            let attr = volume.attr(&object)?;
            // Of the two that were asked for one after the other, the list decides.
            let has_acl = if kind == AclKind::Access { list.is_some() } else { attr.has_acl };
            Ok((Attr { has_acl, ..attr }, list))
        })
        .await
    }

    async fn set_acl(
        &self,
        object: &Arc<CephObject>,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        let (object, acl, cred) = (Arc::clone(object), acl.cloned(), cred.clone());
        self.changing(vec![Arc::clone(&object)], move |volume| {
            volume.set_acl(&object, kind, acl.as_ref(), &cred)
        })
        .await
    }

    async fn create(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> FsResult<Made<Arc<CephObject>>> {
        let (dir, name, how, cred) = (Arc::clone(dir), own(name), *how, cred.clone());
        let stable = self.1 == Durability::Power;
        self.changing(vec![Arc::clone(&dir)], move |volume| {
            let made = create::create(volume, (&dir, Name::new(&name)?), &how, &cred)?;
            if stable {
                made.object.sync()?;
            }
            Ok(made)
        })
        .await
    }

    async fn make(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Made<Arc<CephObject>>> {
        let (dir, name, kind) = (Arc::clone(dir), own(name), kind.clone());
        let (set, cred, stable) = (*set, cred.clone(), self.1 == Durability::Power);
        self.changing(vec![Arc::clone(&dir)], move |volume| {
            let made = create::make(volume, (&dir, Name::new(&name)?), &kind, &set, &cred)?;
            if stable {
                made.object.sync()?;
            }
            Ok(made)
        })
        .await
    }

    async fn remove(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.remove_name(dir, name, Victim::Other, cred).await
    }

    async fn remove_dir(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.remove_name(dir, name, Victim::Directory, cred).await
    }

    async fn remove_this(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        object: &Arc<CephObject>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.remove_name(dir, name, Victim::This(Arc::clone(object)), cred).await
    }

    async fn rename(
        &self,
        from_dir: &Arc<CephObject>,
        from: Name<'_>,
        to_dir: &Arc<CephObject>,
        to: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let conditions = Conditions { this: None, replace: Replace::Yes };
        self.rename_entry((from_dir, from), (to_dir, to), conditions, cred).await
    }

    async fn rename_this(
        &self,
        object: &Arc<CephObject>,
        from: (&Arc<CephObject>, Name<'_>),
        to: (&Arc<CephObject>, Name<'_>),
        replace: Replace,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let conditions = Conditions { this: Some(Arc::clone(object)), replace };
        self.rename_entry(from, to, conditions, cred).await
    }

    async fn link(
        &self,
        object: &Arc<CephObject>,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Attr, Change)> {
        let (object, dir, name) = (Arc::clone(object), Arc::clone(dir), own(name));
        let cred = cred.clone();
        self.changing(vec![Arc::clone(&object), Arc::clone(&dir)], move |volume| {
            create::link(volume, &object, (&dir, Name::new(&name)?), &cred)
        })
        .await
    }

    async fn read_dir(
        &self,
        dir: &Arc<CephObject>,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
        want: Want,
    ) -> FsResult<DirPage> {
        let dir = Arc::clone(dir);
        let part = Part { cookie, entries_max, name_bytes_max, want };
        self.pooled(move |volume| read_dir::list(volume, &dir, part)).await
    }

    async fn fs_stat(&self) -> FsResult<FsStat> {
        self.pooled(|volume| {
            let pool_bytes = volume.mount().available_bytes(volume.root.inode());
            let pool_bytes = pool_bytes.map_err(error::fs_error)?;
            let total = volume.usage.quota();
            let free = total.saturating_sub(volume.usage.used());
            Ok(FsStat {
                total_bytes: total,
                free_bytes: free,
                available_bytes: free.min(pool_bytes),
                total_files: FILES_TOTAL,
                free_files: FILES_TOTAL,
            })
        })
        .await
    }
}

impl CephStore {
    async fn remove_name(
        &self,
        dir: &Arc<CephObject>,
        name: Name<'_>,
        victim: Victim,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let (dir, name, cred) = (Arc::clone(dir), own(name), cred.clone());
        self.changing(vec![Arc::clone(&dir)], move |volume| {
            remove::remove(volume, (&dir, Name::new(&name)?), &victim, &cred)
        })
        .await
    }

    async fn rename_entry(
        &self,
        (from_dir, from): (&Arc<CephObject>, Name<'_>),
        (to_dir, to): (&Arc<CephObject>, Name<'_>),
        conditions: Conditions,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        let (from_dir, to_dir) = (Arc::clone(from_dir), Arc::clone(to_dir));
        let (from, to, cred) = (own(from), own(to), cred.clone());
        // The new name first: with either alone on stable storage nothing is lost.
        self.changing(vec![Arc::clone(&to_dir), Arc::clone(&from_dir)], move |volume| {
            let from = (&from_dir, Name::new(&from)?);
            let to = (&to_dir, Name::new(&to)?);
            remove::rename(volume, from, to, &conditions, &cred)
        })
        .await
    }
}
