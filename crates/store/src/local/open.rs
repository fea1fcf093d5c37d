//! Opening objects: by key, by name, and the store itself.

use super::acl::Lists;
use super::attrs::{Attrs, attr_of_status};
use super::commit::SyncGroup;
use super::inode::{Inode, Reach};
use super::shape::Shape;
use super::switch::{Epoch, KnownIn};
use super::turns::Turns;
use super::uncommitted::{Crowd, Uncommitted};
use super::volume::Volume;
use crate::creds::as_root;
use crate::descriptors::Share;
use crate::error::fs_error;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, OnceLock, Relaxed, RwLock};
use crate::sys::{self, birth, handle_without_birth, open_handle};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, makedev, openat, openat2, readlinkat};
use rustix::io::Errno;
use std::time::Duration;
use weir_core::{AclKind, Attr, FileKind, FsError, FsResult, Name, ObjectKey};

/// Pause between attempts to open a handle while its inode number is assigned to a new object.
const MAKING_PAUSE: Duration = Duration::from_millis(1);
/// Most such attempts.
const MAKING_PAUSES_MAX: u32 = 20;
/// The number of times that the path of a directory is read before it is taken to be outside the
/// volume.
const PATH_LOOKS: u32 = 16;

/// An object opened by path only, and what the kernel says of it.
pub(super) struct Found {
    pub(super) fd: OwnedFd,
    pub(super) attr: Attr,
    pub(super) key: ObjectKey,
    /// Taken from the table before `attr` was read.
    pub(super) mark: u64,
    /// The epoch of the metadata cache before `attr` was read.
    pub(super) epoch: Epoch,
}

impl Volume {
    /// The object called `name` in `dir`, asked from the kernel.
    pub(super) fn open_name(&self, dir: &Inode, name: Name<'_>) -> FsResult<Arc<Inode>> {
        let found = self.find_name(dir.fd(), name.as_bytes())?;
        self.adopt(found)
    }

    /// As [`Volume::open_name`], without holding the object open.
    pub(super) fn find_name(&self, dir: BorrowedFd<'_>, name: &[u8]) -> FsResult<Found> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let fd = self.with_descriptors(|| openat2(dir, name, flags, Mode::empty(), resolve))?;
        self.identify(fd)
    }

    /// The key of the object called `name` in `dir`, if the kernel has the name in memory and
    /// needs no disk for it.
    pub(super) fn key_in_memory(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
    ) -> Option<FsResult<ObjectKey>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fenced = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let resolve = fenced | ResolveFlags::CACHED;
        // The caller of the request before may have left its identity on this thread.
        let opened = as_root(|_| openat2(dir, name, flags, Mode::empty(), resolve));
        match opened.unwrap_or(Err(Errno::IO)) {
            Ok(fd) => Some(self.identify(fd).map(|found| found.key)),
            Err(Errno::NOENT) => Some(Err(FsError::NotFound)),
            // Not in memory (EAGAIN), a kernel before 5.12 (EINVAL), or what the other way tells.
            Err(_) => None,
        }
    }

    /// The directory above `dir`, which is not the volume's root.
    pub(super) fn open_parent(&self, dir: &Inode) -> FsResult<Arc<Inode>> {
        if dir.is_gone() {
            return Err(FsError::Stale);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = self.with_descriptors(|| openat(dir.fd(), c"..", flags, Mode::empty()))?;
        let found = self.identify(fd)?;
        self.within(&found)?;
        self.adopt(found)
    }

    /// The object with this key, asked from the kernel.
    pub(super) fn open_key(&self, key: &ObjectKey) -> FsResult<Arc<Inode>> {
        let fd = match &self.kept {
            Some(kept) => kept.open(key)?,
            None => self.open_handle(key).map_err(|errno| match errno {
                // The kernel's words for a handle whose object is gone.
                Errno::STALE | Errno::NOENT | Errno::INVAL => FsError::Stale,
                other => fs_error(other),
            })?,
        };
        let found = self.identify(fd)?;
        if !found.key.may_be(key) {
            return Err(FsError::Stale);
        }
        self.within(&found)?;
        self.adopt(found)
    }

    /// Reads attributes and key of an object, and refuses what is not of this volume's mount.
    fn identify(&self, fd: OwnedFd) -> FsResult<Found> {
        let (key, mount) = handle_without_birth(&fd).map_err(fs_error)?;
        let (mark, epoch) = (self.table.mark(&key), self.switch.epoch());
        let status = sys::status(&fd).map_err(fs_error)?;
        let device = makedev(status.stx_dev_major, status.stx_dev_minor);
        if device != self.device || mount != self.mount {
            return Err(FsError::CrossVolume);
        }
        let (key, attr) = (key.born(birth(&status)), attr_of_status(&status)?);
        if attr.nlink == 0 {
            return Err(FsError::Stale);
        }
        Ok(Found { fd, attr, key, mark, epoch })
    }

    /// Refuses a directory that is not below the volume's root.
    ///
    /// Keys come to us under a MAC that covers the volume, and only keys of objects that were
    /// reached from the root are ever made; so this is a second fence. A directory's path is
    /// known to the kernel, a file's is not, so files stand behind the MAC alone.
    fn within(&self, found: &Found) -> FsResult<()> {
        if found.attr.kind != FileKind::Directory || found.key == self.root.key {
            return Ok(());
        }
        // Not at the first look: the volume may move to another pool between the two readings.
        for _ in 0..PATH_LOOKS {
            let (root, path) = (self.path_of(&self.root.fd)?, self.path_of(&found.fd)?);
            let below = path.strip_prefix(root.as_slice());
            if below.is_some_and(|rest| rest.first() == Some(&b'/') || root == b"/") {
                return Ok(());
            }
        }
        tracing::warn!(fileid = found.attr.fileid, "refused a directory outside the volume");
        Err(FsError::Stale)
    }

    fn path_of(&self, fd: &OwnedFd) -> FsResult<Vec<u8>> {
        let number = fd.as_raw_fd().to_string();
        let path = readlinkat(sys::own_descriptors()?, number, Vec::new()).map_err(fs_error)?;
        Ok(path.into_bytes())
    }

    /// Holds an object open, or gives the one that is held open already.
    pub(super) fn adopt(&self, found: Found) -> FsResult<Arc<Inode>> {
        if let Some(present) = self.table.get(&found.key) {
            return Ok(present);
        }
        let Found { fd, attr, key, mark, epoch } = found;
        if let Some(kept) = &self.kept {
            kept.keep(key, &fd)?;
        }
        let share = self.share()?;
        let (fd, reach) = self.reopen(fd, attr.kind)?;
        let lists = Lists::of(attr.kind, reach);
        let first = (attr, lists.read(&fd, AclKind::Access)?);
        let attrs = Attrs::new(first, lists, &self.switch, epoch);
        let inode = new_inode((fd, share), reach, key, &attr, attrs, Shape::UNKNOWN, &self.crowd);
        Ok(self.hold(inode, mark))
    }

    /// While an object gets the inode number of one that is gone, the kernel has ENOMEM for the
    /// handle of the latter (`find_inode_fast` refuses what is still being made, and ext4 takes
    /// that for a lack of memory). A moment later it says that the handle is stale; the client
    /// would wait for seconds.
    fn open_handle(&self, key: &ObjectKey) -> Result<OwnedFd, Errno> {
        let open = || as_root(|root| open_handle(root, &self.root.fd, key, OFlags::PATH));
        let open = || self.retry_short(|| open().unwrap_or(Err(Errno::IO)));
        for _ in 0..MAKING_PAUSES_MAX {
            match open() {
                Err(Errno::NOMEM) => std::thread::sleep(MAKING_PAUSE),
                done => return done,
            }
        }
        open()
    }

    /// Opens for use what is open by path only: files for reading and writing, directories for
    /// listing. Nothing else is ever opened, because opening a pipe or a device has effects.
    fn reopen(&self, path: OwnedFd, kind: FileKind) -> FsResult<(OwnedFd, Reach)> {
        if kind == FileKind::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let open = |flags| openat(&path, c".", flags, Mode::empty());
            return match self.with_descriptors(|| without_atime(flags, open)) {
                Ok(fd) => Ok((fd, Reach::Full)),
                Err(FsError::AccessDenied) => Ok((path, Reach::Path)),
                Err(other) => Err(other),
            };
        }
        if kind != FileKind::Regular {
            return Ok((path, Reach::Path));
        }
        let descriptors = sys::own_descriptors()?;
        let number = path.as_raw_fd().to_string();
        let open = |flags| openat(descriptors, number.as_str(), flags, Mode::empty());
        let both = OFlags::RDWR | OFlags::CLOEXEC;
        match self.with_descriptors(|| without_atime(both, open)) {
            Ok(fd) => return Ok((fd, Reach::Full)),
            // Read-only file system, immutable file, running program, or not ours to write.
            Err(FsError::ReadOnly | FsError::NotPermitted | FsError::AccessDenied) => {}
            // Anything else may pass, and the file is held open for long.
            Err(other) => return Err(other),
        }
        let reading = OFlags::RDONLY | OFlags::CLOEXEC;
        match self.with_descriptors(|| without_atime(reading, open)) {
            Ok(fd) => Ok((fd, Reach::ReadOnly)),
            Err(FsError::AccessDenied | FsError::NotPermitted) => Ok((path, Reach::Path)),
            Err(other) => Err(other),
        }
    }

    /// A share of the descriptors for one more object.
    pub(super) fn share(&self) -> FsResult<Share> {
        self.descriptors.take().ok_or(FsError::Busy)
    }

    /// Runs an open call as root; when descriptors are short, closes idle objects and tries once
    /// more.
    pub(super) fn with_descriptors(
        &self,
        open: impl Fn() -> Result<OwnedFd, Errno>,
    ) -> FsResult<OwnedFd> {
        as_root(|_| self.retry_short(open))?.map_err(fs_error)
    }

    pub(super) fn retry_short<T>(&self, open: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match open() {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.settle_aside(self.table.shed());
                self.descriptors.budget().reclaim();
                open()
            }
            done => done,
        }
    }
}

pub(super) fn new_inode(
    (fd, share): (OwnedFd, Share),
    reach: Reach,
    key: ObjectKey,
    attr: &Attr,
    attrs: Attrs,
    shape: Shape,
    crowd: &Arc<Crowd>,
) -> Inode {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    Inode {
        serial: SERIAL.fetch_add(1, Relaxed),
        key,
        kind: attr.kind,
        fileid: attr.fileid,
        fd,
        _share: share,
        reach,
        attrs,
        shape: RwLock::new(shape),
        names: Mutex::default(),
        writing: Mutex::default(),
        syncs: SyncGroup::default(),
        uncommitted: Uncommitted::none(crowd),
        dirty: AtomicBool::new(false),
        turns: Turns::default(),
        extras: OnceLock::new(),
        plain: KnownIn::default(),
        gone: AtomicBool::new(false),
    }
}

/// Opens so that reading leaves the access time alone, where the kernel lets us: that is for the
/// owner and root.
pub(super) fn without_atime<T>(
    flags: OFlags,
    open: impl Fn(OFlags) -> Result<T, Errno>,
) -> Result<T, Errno> {
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        done => done,
    }
}
