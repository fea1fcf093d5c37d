//! Objects of a volume on CephFS that are held open: the library's inode, the files opened on it,
//! and the locks under which it is changed. Nothing that the library tells of an object is kept,
//! but for what never changes.

use super::volume::Losses;
use crate::pool::Lane;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Relaxed, RwLock, Weak};
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use weir_ceph::{Called, FileRef, InodeRef, Mount};
use weir_core::attr::Change;
use weir_core::{Attr, FileKind, FsError, FsResult, ObjectKey, Timestamp};

/// The first byte of keys of objects on CephFS; the kernel's handles begin with others.
const KEY_TAG: u8 = 0xce;

/// An object on CephFS, held open.
#[derive(Debug)]
pub struct CephObject {
    key: ObjectKey,
    pub(super) ino: u64,
    pub(super) kind: FileKind,
    /// The time at which it was made.
    pub(super) birth: Timestamp,
    held: ManuallyDrop<Held>,
    gone: AtomicBool,
    /// Shared by changes of single names in this directory, and held alone by renames.
    pub(super) names: RwLock<()>,
    /// Held alone while the size may change or a name is removed or replaced; shared by writes
    /// within the size and by new links.
    pub(super) sizes: RwLock<()>,
    /// Held while the details change.
    pub(super) details: Mutex<()>,
    changes: Mutex<Changes>,
    table: Weak<Table>,
    lane: Arc<Lane>,
}

/// The part of an object that a thread of the pool gives back to the library when it is dropped.
#[derive(Debug)]
struct Held {
    mount: Arc<Mount>,
    files: Mutex<Files>,
    /// There may be data that is not stable.
    unstable: AtomicBool,
    losses: Arc<Losses>,
    inode: InodeRef,
}

/// The files open on an object. A file that is open for writing keeps other clients from caching,
/// so reading has one of its own.
#[derive(Debug, Default)]
struct Files {
    reader: Option<Arc<FileRef>>,
    writer: Option<Arc<FileRef>>,
}

#[derive(Debug, Default)]
struct Changes {
    under_way: u32,
    begun: u64,
}

/// A change of an object that is under way.
#[derive(Debug)]
pub(super) struct Changing<'a> {
    object: &'a CephObject,
    number: u64,
    alone: bool,
}

/// The key of the object with this inode number and birth.
pub(super) fn key(ino: u64, birth: Timestamp) -> FsResult<ObjectKey> {
    let mut bytes = [KEY_TAG; 9];
    for (to, from) in bytes.iter_mut().skip(1).zip(ino.to_be_bytes()) {
        *to = from;
    }
    Ok(ObjectKey::new(&bytes)?.born(digest(birth)))
}

/// The inode number in a key.
pub(super) fn ino(key: &ObjectKey) -> FsResult<u64> {
    match key.as_bytes().split_first() {
        Some((&KEY_TAG, rest)) => {
            rest.try_into().map(u64::from_be_bytes).map_err(|_| FsError::BadHandle)
        }
        _ => Err(FsError::BadHandle),
    }
}

/// The birth as a key carries it.
fn digest(birth: Timestamp) -> u32 {
    #[expect(clippy::cast_sign_loss, reason = "a digest")]
    let seconds = birth.secs as u64;
    let nanos = seconds.wrapping_mul(1_000_000_000).wrapping_add(birth.nanos.into());
    #[expect(clippy::cast_possible_truncation, reason = "a digest")]
    let digest = (nanos ^ (nanos >> 32)) as u32;
    digest.max(1)
}

impl CephObject {
    /// The object's key: inode number and birth, the same on every gateway.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        self.key
    }

    pub(super) fn inode(&self) -> &InodeRef {
        &self.held.inode
    }

    /// Has it lost its last name, as far as this gateway knows?
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Its last name is gone.
    pub(super) fn bury(&self) {
        self.gone.store(true, Relaxed);
        if let Some(table) = self.table.upgrade() {
            table.kept.remove(&self.ino);
        }
    }

    /// # Errors
    /// `IsDirectory` or `WrongKind` for what is no regular file.
    pub(super) fn need_file(&self) -> FsResult<()> {
        match self.kind {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(FsError::IsDirectory),
            _ => Err(FsError::WrongKind),
        }
    }

    /// # Errors
    /// `NotDirectory`.
    pub(super) fn need_directory(&self) -> FsResult<()> {
        if self.kind == FileKind::Directory { Ok(()) } else { Err(FsError::NotDirectory) }
    }

    /// The file, open for reading.
    pub(super) fn reader(&self) -> Called<Arc<FileRef>> {
        let mut files = self.held.files.lock();
        if let Some(open) = files.reader.as_ref().or(files.writer.as_ref()) {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(self.held.mount.open(self.inode(), false)?);
        files.reader = Some(Arc::clone(&open));
        Ok(open)
    }

    /// The file, open for writing.
    pub(super) fn writer(&self) -> Called<Arc<FileRef>> {
        let mut files = self.held.files.lock();
        if let Some(open) = &files.writer {
            return Ok(Arc::clone(open));
        }
        let open = Arc::new(self.held.mount.open(self.inode(), true)?);
        files.writer = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Keeps a file that was opened when the object was made.
    pub(super) fn keep_writer(&self, open: FileRef) {
        self.held.files.lock().writer.get_or_insert_with(|| Arc::new(open));
    }

    /// Data was written that is not stable.
    pub(super) fn note_unstable(&self) {
        self.held.unstable.store(true, Relaxed);
    }

    /// Makes everything that was done to the object stable, and looks at it afterwards; a failure
    /// is counted. See [`Held::sync`].
    pub(super) fn sync(&self) -> FsResult<()> {
        self.held.sync()
    }

    /// Begins a change.
    pub(super) fn begin(&self) -> Changing<'_> {
        let mut changes = self.changes.lock();
        changes.begun += 1;
        changes.under_way += 1;
        Changing { object: self, number: changes.begun, alone: changes.under_way == 1 }
    }
}

impl Changing<'_> {
    /// The attributes around the change: those before it only if no other change of this gateway
    /// came between.
    pub(super) fn end(self, before: Attr, after: Attr) -> Change {
        let alone = self.alone && self.object.changes.lock().begun == self.number;
        Change { before: alone.then_some(before), after: Some(after) }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.object.changes.lock().under_way -= 1;
    }
}

impl Held {
    /// Makes data and attributes stable, and asks for the attributes afterwards: a client whose
    /// session was ended reports the success of a sync although it has thrown the data away, but
    /// has no attributes to tell.
    fn sync(&self) -> FsResult<()> {
        let was_unstable = self.unstable.swap(false, Relaxed);
        let writer = self.files.lock().writer.clone();
        self.losses.syncs.fetch_add(1, Relaxed);
        let synced = match &writer {
            Some(file) => self.mount.fsync(file),
            None => self.mount.sync_inode(&self.inode),
        };
        let checked = synced.and_then(|()| match self.mount.getattr(&self.inode) {
            // Removed by another gateway: nobody will read the data.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::STALE) => Ok(()),
            found => found.map(drop),
        });
        match checked {
            Ok(()) if !self.mount.is_lost() => Ok(()),
            failed => {
                let error = failed.err().unwrap_or(rustix::io::Errno::SHUTDOWN);
                tracing::error!(%error, was_unstable, "a sync on CephFS failed");
                self.losses.failures.fetch_add(1, Relaxed);
                Err(super::error::fs_error(error))
            }
        }
    }
}

impl Drop for CephObject {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.forget(self.ino);
        }
        // SAFETY: this is the only place that takes it, and nothing uses the object afterwards.
        let mut held = Some(unsafe { ManuallyDrop::take(&mut self.held) });
        // Giving inodes and files back blocks. The queue is bounded by the objects that there were.
        // The job keeps its lane, which would throw it away with itself.
        let lane = Arc::clone(&self.lane);
        self.lane.run_rounds(move || {
            let _lane = &lane;
            if let Some(held) = held.take() {
                // A failure is counted, and told to clients by the write verifier.
                let _counted = if held.unstable.load(Relaxed) { held.sync() } else { Ok(()) };
            }
            false
        });
    }
}

/// The objects of a volume that are held open, by inode number. Of each there is one.
pub(super) struct Table {
    live: Mutex<HashMap<u64, Weak<CephObject>>>,
    /// Objects that stay although nobody uses them: their number is bounded, and those that were
    /// not used for longest go.
    kept: Cache<u64, Arc<CephObject>>,
    lane: Arc<Lane>,
    mount: Arc<Mount>,
    losses: Arc<Losses>,
    held: AtomicU64,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} objects", self.len())
    }
}

/// Fewest objects that are kept.
const OBJECTS_MIN: usize = 16;

impl Table {
    pub(super) fn new(
        mount: Arc<Mount>,
        lane: Arc<Lane>,
        losses: Arc<Losses>,
        objects_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            kept: Cache::new(objects_max.max(OBJECTS_MIN)),
            lane,
            mount,
            losses,
            held: AtomicU64::new(0),
        })
    }

    /// Objects that are held.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.held.load(Relaxed)).unwrap_or(usize::MAX)
    }

    /// The object with this inode number, if it is held.
    pub(super) fn get(&self, ino: u64) -> Option<Arc<CephObject>> {
        if let Some(kept) = self.kept.get(&ino) {
            return Some(kept);
        }
        self.live.lock().get(&ino).and_then(Weak::upgrade)
    }

    /// Holds an object, unless it is already: then the other inode is given back.
    pub(super) fn hold(
        self: &Arc<Self>,
        inode: InodeRef,
        (attr, birth): (&Attr, Timestamp),
    ) -> FsResult<Arc<CephObject>> {
        let ino = attr.fileid;
        let key = key(ino, birth)?;
        let mut live = self.live.lock();
        let object = match live.get(&ino).and_then(Weak::upgrade) {
            Some(found) => found,
            None => {
                let held = Held {
                    mount: Arc::clone(&self.mount),
                    files: Mutex::default(),
                    unstable: AtomicBool::new(false),
                    losses: Arc::clone(&self.losses),
                    inode,
                };
                let new = Arc::new(CephObject {
                    key,
                    ino,
                    kind: attr.kind,
                    birth,
                    held: ManuallyDrop::new(held),
                    gone: AtomicBool::new(false),
                    names: RwLock::new(()),
                    sizes: RwLock::new(()),
                    details: Mutex::new(()),
                    changes: Mutex::default(),
                    table: Arc::downgrade(self),
                    lane: Arc::clone(&self.lane),
                });
                live.insert(ino, Arc::downgrade(&new));
                self.held.fetch_add(1, Relaxed);
                new
            }
        };
        drop(live);
        if !object.is_gone() && self.kept.get(&ino).is_none() {
            self.kept.insert(ino, Arc::clone(&object));
        }
        Ok(object)
    }

    /// Lets go of all that nobody uses.
    pub(super) fn release_idle(&self) {
        self.kept.clear();
    }

    fn forget(&self, ino: u64) {
        self.held.fetch_sub(1, Relaxed);
        let mut live = self.live.lock();
        // It may have come back meanwhile.
        if live.get(&ino).is_some_and(|object| object.strong_count() == 0) {
            live.remove(&ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_inode_number_and_the_birth() {
        let born = Timestamp { secs: 1_700_000_000, nanos: 5 };
        let of = |number, birth| key(number, birth).unwrap();
        assert_eq!(ino(&of(0x100_0000_0001, born)), Ok(0x100_0000_0001));
        let later = Timestamp { nanos: 6, ..born };
        assert!(of(7, born).may_be(&of(7, born)));
        assert!(!of(7, born).may_be(&of(7, later)) && !of(7, born).may_be(&of(8, born)));
        for bad in [&b""[..], &[KEY_TAG], &[1, 0, 0, 0, 0, 0, 0, 0, 7], &[KEY_TAG; 10]] {
            assert_eq!(ino(&ObjectKey::new(bad).unwrap()), Err(FsError::BadHandle), "{bad:?}");
        }
    }
}
