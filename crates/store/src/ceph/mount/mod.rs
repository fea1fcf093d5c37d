//! A mount of CephFS: a client of the cluster with its session, cache and threads, and calls of
//! libcephfs in safe form. All calls block, and the library has one lock for a mount.
//!
//! Inodes and open files are owned values, which are given back when they are dropped; that blocks,
//! too. Not here: which mount a volume is on ([`super::session`]), and any rule.

mod held;
mod listing;

use super::ffi::{
    CephFs, NO_SNAPSHOT, RawFile, RawInode, RawMount, RawPerm, STATX_ALL, SnapInode, Statx,
};
use crate::sync::{Arc, AtomicBool, Relaxed};
use held::{AsInode, Borrowed};
pub(super) use held::{FileRef, InodeRef, Perm};
pub(super) use listing::{Entry, Listing};
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_int};
use std::ptr::{NonNull, null_mut};
use weir_core::Credentials;

/// Result of a call: an error number of Linux.
pub(super) type Called<T> = Result<T, Errno>;

/// The settings of a mount, in the order in which they are made.
pub(super) type Settings<'a> = &'a [(&'a CStr, CString)];

/// A mount. Unmounted when dropped, which blocks.
#[derive(Debug)]
pub(super) struct Mount {
    functions: &'static CephFs,
    raw: NonNull<RawMount>,
    /// The superuser, for calls that were decided before.
    root: Perm,
    /// The cluster has ended the session: every call fails from then on.
    lost: AtomicBool,
    mounted: bool,
}

// SAFETY: libcephfs may be called from any thread, and takes a lock of the mount in each call.
unsafe impl Send for Mount {}
// SAFETY: as above.
unsafe impl Sync for Mount {}

impl std::fmt::Debug for CephFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(Self::FILE)
    }
}

impl Mount {
    /// Makes a client with the configuration `conf` and `settings` on top of it, and mounts.
    ///
    /// # Errors
    /// The step that failed, and the library's error number.
    pub(super) fn new(
        functions: &'static CephFs,
        (conf, user): (&CStr, &CStr),
        settings: Settings<'_>,
        session_seconds: u32,
        (file_system, top): (Option<&CStr>, &CStr),
    ) -> Result<Self, (&'static str, Errno)> {
        let step = |what, returned| value(returned).map(drop).map_err(|errno| (what, errno));
        let mut raw = null_mut();
        // SAFETY: `raw` is valid to write to, and `user` is a C string.
        let made = unsafe { (functions.ceph_create)(&raw mut raw, user.as_ptr()) };
        step("make a client", made)?;
        let raw = NonNull::new(raw).ok_or(("make a client", Errno::NOMEM))?;
        let root = Perm::new(functions, &Credentials::ROOT).map_err(|errno| ("start", errno))?;
        // From here on the drop releases what was made.
        let mut mount = Self { functions, raw, root, lost: AtomicBool::new(false), mounted: false };
        let raw = mount.raw.as_ptr();
        // SAFETY: the mount is valid and not mounted yet, and the strings are C strings, in this
        // call and those that follow.
        let read = unsafe { (functions.ceph_conf_read_file)(raw, conf.as_ptr()) };
        step("read the configuration", read)?;
        for (name, value) in settings {
            // SAFETY: as above.
            let set = unsafe { (functions.ceph_conf_set)(raw, name.as_ptr(), value.as_ptr()) };
            step("change its configuration", set)?;
        }
        // SAFETY: as above.
        step("start", unsafe { (functions.ceph_init)(raw) })?;
        if let Some(name) = file_system {
            // SAFETY: as above.
            let chosen = unsafe { (functions.ceph_select_filesystem)(raw, name.as_ptr()) };
            step("choose the file system", chosen)?;
        }
        // SAFETY: as above.
        unsafe { (functions.ceph_set_session_timeout)(raw, session_seconds) };
        // SAFETY: as above.
        step("mount", unsafe { (functions.ceph_mount)(raw, top.as_ptr()) })?;
        mount.mounted = true;
        // A mode is the client's alone; the library would take 0o002 away.
        // SAFETY: the mount is valid.
        unsafe { (functions.ceph_umask)(raw, 0) };
        mount.check_layout().map_err(|errno| ("check the form of attributes", errno))?;
        Ok(mount)
    }

    /// Asks for the attributes of the top directory, and checks that the structure is the one that
    /// is declared here: no byte behind it is written, the last one of it is, and values that are
    /// known are in their places.
    fn check_layout(&self) -> Called<()> {
        #[repr(C)]
        struct Room {
            found: Statx,
            behind: [u8; 128],
        }
        const UNTOUCHED: u64 = 0xa5a5_a5a5_a5a5_a5a5;
        let inode = self.lookup_root()?;
        let found = Statx { version: UNTOUCHED, ino: UNTOUCHED, ..Statx::default() };
        let mut room = Room { found, behind: [0xa5; 128] };
        // SAFETY: the mount and the inode are valid, and there is room for a larger structure than
        // the one that is declared.
        let asked = unsafe {
            (self.functions.ceph_ll_getattr)(
                self.raw.as_ptr(),
                inode.raw.as_ptr(),
                (&raw mut room).cast(),
                STATX_ALL,
                0,
                self.root.raw.as_ptr(),
            )
        };
        self.done(asked)?;
        let Room { found, behind } = room;
        let sane = behind == [0xa5; 128]
            && found.mask == STATX_ALL
            && u32::from(found.mode) & libc::S_IFMT == libc::S_IFDIR
            && found.nlink > 0
            && found.ino != UNTOUCHED
            && found.version != UNTOUCHED
            && [found.atime, found.mtime, found.ctime, found.btime]
                .iter()
                .all(|time| (0..1_000_000_000).contains(&time.nanos));
        let again = self.getattr(&inode)?;
        let same = (again.ino, again.btime, again.mode) == (found.ino, found.btime, found.mode);
        if sane && same { Ok(()) } else { Err(Errno::PROTO) }
    }

    /// The number by which the cluster knows this client, and which no other client has while this
    /// one lives.
    pub(super) fn client_id(&self) -> u64 {
        // SAFETY: the mount is valid.
        unsafe { (self.functions.ceph_get_instance_id)(self.raw.as_ptr()) }
    }

    /// The addresses of this client, in the form that `osd blocklist` takes.
    pub(super) fn addresses(&self) -> Called<String> {
        let mut words = null_mut();
        // SAFETY: the mount is valid, and `words` is valid to write to.
        let got = unsafe { (self.functions.ceph_getaddrs)(self.raw.as_ptr(), &raw mut words) };
        self.done(got)?;
        if words.is_null() {
            return Err(Errno::IO);
        }
        // SAFETY: the library gives a C string.
        let text = unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned();
        // SAFETY: the string was allocated by `malloc`, and is the caller's to free.
        unsafe { libc::free(words.cast()) };
        Ok(text)
    }

    /// Has the cluster ended this session (it is blocklisted), so that all is over?
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// The result of a call, where the end of the session is noted.
    fn done(&self, returned: c_int) -> Called<c_int> {
        let done = value(returned);
        if matches!(done, Err(Errno::SHUTDOWN | Errno::NOTCONN)) && !self.lost.swap(true, Relaxed) {
            tracing::error!(client = self.client_id(), "Ceph has ended a session of this gateway");
        }
        done
    }

    fn perm<'a>(&'a self, perm: Option<&'a Perm>) -> *const RawPerm {
        perm.unwrap_or(&self.root).raw.as_ptr()
    }

    /// A caller's identity.
    pub(super) fn identity(&self, cred: &Credentials) -> Called<Perm> {
        Perm::new(self.functions, cred)
    }

    /// Makes everything that was done through this mount stable.
    pub(super) fn sync(&self) -> Called<()> {
        // SAFETY: the mount is valid.
        let synced = unsafe { (self.functions.ceph_sync_fs)(self.raw.as_ptr()) };
        self.done(synced).map(drop)
    }
}

/// Calls on inodes.
impl Mount {
    fn inode(self: &Arc<Self>, raw: *mut RawInode) -> Called<InodeRef> {
        let raw = NonNull::new(raw).ok_or(Errno::IO)?;
        Ok(InodeRef { mount: Arc::clone(self), raw })
    }

    fn lookup_root(&self) -> Called<Borrowed<'_>> {
        let mut raw = null_mut();
        // SAFETY: the mount is valid, and `raw` is valid to write to.
        let found =
            unsafe { (self.functions.ceph_ll_lookup_root)(self.raw.as_ptr(), &raw mut raw) };
        self.done(found)?;
        Ok(Borrowed { mount: self, raw: NonNull::new(raw).ok_or(Errno::IO)? })
    }

    /// The directory that is mounted.
    pub(super) fn top(self: &Arc<Self>) -> Called<InodeRef> {
        let mut raw = null_mut();
        // SAFETY: the mount is valid, and `raw` is valid to write to.
        let found =
            unsafe { (self.functions.ceph_ll_lookup_root)(self.raw.as_ptr(), &raw mut raw) };
        self.done(found)?;
        self.inode(raw)
    }

    /// The object with this inode number.
    pub(super) fn by_number(self: &Arc<Self>, ino: u64) -> Called<InodeRef> {
        let (mut raw, live) = (null_mut(), SnapInode { ino, snapshot: NO_SNAPSHOT });
        // SAFETY: the mount is valid, and `raw` is valid to write to.
        let found =
            unsafe { (self.functions.ceph_ll_lookup_vino)(self.raw.as_ptr(), live, &raw mut raw) };
        self.done(found)?;
        self.inode(raw)
    }

    /// The object of this name, and its attributes.
    pub(super) fn lookup(
        self: &Arc<Self>,
        dir: &InodeRef,
        name: &CStr,
    ) -> Called<(InodeRef, Statx)> {
        let (mut raw, mut found) = (null_mut(), Statx::default());
        // SAFETY: mount, directory and identity are valid, the name is a C string, and the rest is
        // valid to write to.
        let done = unsafe {
            (self.functions.ceph_ll_lookup)(
                self.raw.as_ptr(),
                dir.raw.as_ptr(),
                name.as_ptr(),
                &raw mut raw,
                &raw mut found,
                STATX_ALL,
                0,
                self.perm(None),
            )
        };
        self.done(done)?;
        Ok((self.inode(raw)?, found))
    }

    /// The attributes.
    pub(super) fn getattr(&self, inode: &impl AsInode) -> Called<Statx> {
        let mut found = Statx::default();
        // SAFETY: mount, inode and identity are valid, and `found` has the form that was checked.
        let done = unsafe {
            (self.functions.ceph_ll_getattr)(
                self.raw.as_ptr(),
                inode.raw(),
                &raw mut found,
                STATX_ALL,
                0,
                self.perm(None),
            )
        };
        self.done(done)?;
        Ok(found)
    }

    /// Sets the attributes that `mask` names.
    pub(super) fn setattr(
        &self,
        inode: &InodeRef,
        mut set: Statx,
        mask: c_int,
        perm: Option<&Perm>,
    ) -> Called<()> {
        // SAFETY: mount, inode and identity are valid, and so is `set`.
        let done = unsafe {
            (self.functions.ceph_ll_setattr)(
                self.raw.as_ptr(),
                inode.raw.as_ptr(),
                &raw mut set,
                mask,
                self.perm(perm),
            )
        };
        self.done(done).map(drop)
    }

    /// Waits until data and attributes of an object, and the names in a directory, are stable.
    pub(super) fn sync_inode(&self, inode: &InodeRef) -> Called<()> {
        // SAFETY: mount and inode are valid.
        let synced = unsafe {
            (self.functions.ceph_ll_sync_inode)(self.raw.as_ptr(), inode.raw.as_ptr(), 0)
        };
        self.done(synced).map(drop)
    }

    /// Reads an extended attribute into `room`. Gives its length, also where `room` is empty.
    pub(super) fn getxattr(&self, inode: &InodeRef, name: &CStr, room: &mut [u8]) -> Called<usize> {
        // SAFETY: mount, inode and identity are valid, the name is a C string, and the library
        // writes at most as many bytes as `room` has.
        let got = unsafe {
            (self.functions.ceph_ll_getxattr)(
                self.raw.as_ptr(),
                inode.raw.as_ptr(),
                name.as_ptr(),
                room.as_mut_ptr().cast(),
                room.len(),
                self.perm(None),
            )
        };
        usize::try_from(self.done(got)?).map_err(|_| Errno::IO)
    }

    /// Sets an extended attribute, or removes it.
    pub(super) fn setxattr(
        &self,
        inode: &InodeRef,
        name: &CStr,
        value: Option<&[u8]>,
        perm: Option<&Perm>,
    ) -> Called<()> {
        let (mount, inode, perm) = (self.raw.as_ptr(), inode.raw.as_ptr(), self.perm(perm));
        let done = match value {
            // SAFETY: mount, inode and identity are valid, the name is a C string, and the library
            // reads as many bytes as `value` has.
            Some(value) => unsafe {
                (self.functions.ceph_ll_setxattr)(
                    mount,
                    inode,
                    name.as_ptr(),
                    value.as_ptr().cast(),
                    value.len(),
                    0,
                    perm,
                )
            },
            // SAFETY: as above.
            None => unsafe {
                (self.functions.ceph_ll_removexattr)(mount, inode, name.as_ptr(), perm)
            },
        };
        match self.done(done) {
            Err(Errno::NODATA) if value.is_none() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Space of the cluster, as far as the data pool of this directory reaches.
    pub(super) fn statfs(&self, inode: &InodeRef) -> Called<libc::statvfs> {
        // SAFETY: all of `statvfs` is integers, for which zeroes are valid.
        let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: mount and inode are valid, and `found` is valid to write to.
        let done = unsafe {
            (self.functions.ceph_ll_statfs)(self.raw.as_ptr(), inode.raw.as_ptr(), &raw mut found)
        };
        self.done(done)?;
        Ok(found)
    }

    /// The target of a symbolic link, cut to the length of `room`.
    pub(super) fn readlink(&self, inode: &InodeRef, room: &mut [u8]) -> Called<usize> {
        // SAFETY: mount, inode and identity are valid, and the library writes at most as many bytes
        // as `room` has.
        let got = unsafe {
            (self.functions.ceph_ll_readlink)(
                self.raw.as_ptr(),
                inode.raw.as_ptr(),
                room.as_mut_ptr().cast(),
                room.len(),
                self.perm(None),
            )
        };
        usize::try_from(self.done(got)?).map_err(|_| Errno::IO)
    }
}

/// The objects that [`Mount::make`] makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum New<'a> {
    Directory,
    Symlink(&'a CStr),
    /// Kind and permission bits of the mode are given apart; the number as kernels encode it.
    Special(u32, u64),
}

/// Calls that change names.
impl Mount {
    /// Makes a file that is not there, and opens it for reading and writing.
    pub(super) fn create(
        self: &Arc<Self>,
        dir: &InodeRef,
        name: &CStr,
        mode: u32,
        perm: &Perm,
    ) -> Called<(InodeRef, FileRef)> {
        let (mut raw, mut file, mut found) = (null_mut(), null_mut(), Statx::default());
        // SAFETY: mount, directory and identity are valid, the name is a C string, and the rest is
        // valid to write to.
        let done = unsafe {
            (self.functions.ceph_ll_create)(
                self.raw.as_ptr(),
                dir.raw.as_ptr(),
                name.as_ptr(),
                mode,
                libc::O_CREAT | libc::O_EXCL | libc::O_RDWR,
                &raw mut raw,
                &raw mut file,
                &raw mut found,
                0,
                0,
                self.perm(Some(perm)),
            )
        };
        self.done(done)?;
        Ok((self.inode(raw)?, self.file(file)?))
    }

    /// Makes another object.
    pub(super) fn make(
        self: &Arc<Self>,
        dir: &InodeRef,
        name: &CStr,
        (new, mode): (New<'_>, u32),
        perm: &Perm,
    ) -> Called<InodeRef> {
        let (mut raw, mut found) = (null_mut(), Statx::default());
        let (out, attr) = (&raw mut raw, &raw mut found);
        let (mount, dir, perm) = (self.raw.as_ptr(), dir.raw.as_ptr(), self.perm(Some(perm)));
        let (name, functions) = (name.as_ptr(), self.functions);
        // SAFETY: mount, directory and identity are valid, the strings are C strings, and the rest
        // is valid to write to.
        let done = unsafe {
            match new {
                New::Directory => {
                    (functions.ceph_ll_mkdir)(mount, dir, name, mode, out, attr, 0, 0, perm)
                }
                New::Symlink(target) => {
                    let target = target.as_ptr();
                    (functions.ceph_ll_symlink)(mount, dir, name, target, out, attr, 0, 0, perm)
                }
                New::Special(kind, number) => {
                    let mode = kind | mode;
                    (functions.ceph_ll_mknod)(mount, dir, name, mode, number, out, attr, 0, 0, perm)
                }
            }
        };
        self.done(done)?;
        self.inode(raw)
    }

    /// Gives an object one more name.
    pub(super) fn link(
        &self,
        inode: &InodeRef,
        dir: &InodeRef,
        name: &CStr,
        perm: &Perm,
    ) -> Called<()> {
        let (inode, dir) = (inode.raw.as_ptr(), dir.raw.as_ptr());
        // SAFETY: mount, inodes and identity are valid, and the name is a C string.
        let done = unsafe {
            (self.functions.ceph_ll_link)(
                self.raw.as_ptr(),
                inode,
                dir,
                name.as_ptr(),
                self.perm(Some(perm)),
            )
        };
        self.done(done).map(drop)
    }

    /// Renames, and replaces what has the new name.
    pub(super) fn rename(
        &self,
        (from_dir, from): (&InodeRef, &CStr),
        (to_dir, to): (&InodeRef, &CStr),
        perm: &Perm,
    ) -> Called<()> {
        // SAFETY: mount, directories and identity are valid, and the names are C strings.
        let done = unsafe {
            (self.functions.ceph_ll_rename)(
                self.raw.as_ptr(),
                from_dir.raw.as_ptr(),
                from.as_ptr(),
                to_dir.raw.as_ptr(),
                to.as_ptr(),
                self.perm(Some(perm)),
            )
        };
        self.done(done).map(drop)
    }

    /// Removes a name: that of an empty directory, or of anything else.
    pub(super) fn remove(
        &self,
        dir: &InodeRef,
        name: &CStr,
        directory: bool,
        perm: &Perm,
    ) -> Called<()> {
        let functions = self.functions;
        let remove = if directory { functions.ceph_ll_rmdir } else { functions.ceph_ll_unlink };
        // SAFETY: mount, directory and identity are valid, and the name is a C string.
        let done = unsafe {
            remove(self.raw.as_ptr(), dir.raw.as_ptr(), name.as_ptr(), self.perm(Some(perm)))
        };
        self.done(done).map(drop)
    }
}

/// Calls on open files.
impl Mount {
    fn file(self: &Arc<Self>, raw: *mut RawFile) -> Called<FileRef> {
        let raw = NonNull::new(raw).ok_or(Errno::IO)?;
        Ok(FileRef { mount: Arc::clone(self), raw })
    }

    /// Opens a regular file, as the superuser: the right to was decided before.
    pub(super) fn open(self: &Arc<Self>, inode: &InodeRef, writes: bool) -> Called<FileRef> {
        let flags = if writes { libc::O_RDWR } else { libc::O_RDONLY };
        let mut raw = null_mut();
        // SAFETY: mount, inode and identity are valid, and `raw` is valid to write to.
        let opened = unsafe {
            (self.functions.ceph_ll_open)(
                self.raw.as_ptr(),
                inode.raw.as_ptr(),
                flags,
                &raw mut raw,
                self.perm(None),
            )
        };
        self.done(opened)?;
        self.file(raw)
    }

    /// Appends up to `count` bytes from `offset` on to `out`. Gives how many; 0 at the end.
    pub(super) fn read(
        &self,
        file: &FileRef,
        offset: u64,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Called<usize> {
        let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
        out.reserve(count);
        let start = out.len();
        let spare = out.spare_capacity_mut();
        let room = count.min(spare.len());
        // SAFETY: mount and file are valid, and the library writes at most `room` bytes to memory
        // that `out` owns and that nothing else refers to.
        let got = unsafe {
            (self.functions.ceph_ll_read)(
                self.raw.as_ptr(),
                file.raw.as_ptr(),
                offset,
                room as u64,
                spare.as_mut_ptr().cast(),
            )
        };
        let got = usize::try_from(self.done(got)?).map_err(|_| Errno::IO)?.min(room);
        // SAFETY: the library has initialised `got` bytes after `start`, within the capacity.
        unsafe { out.set_len(start + got) };
        Ok(got)
    }

    /// Writes from the front of `data`. Gives how many bytes were.
    pub(super) fn write(&self, file: &FileRef, offset: u64, data: &[u8]) -> Called<usize> {
        let offset = i64::try_from(offset).map_err(|_| Errno::FBIG)?;
        // SAFETY: mount and file are valid, and the library reads as many bytes as `data` has.
        let put = unsafe {
            (self.functions.ceph_ll_write)(
                self.raw.as_ptr(),
                file.raw.as_ptr(),
                offset,
                data.len() as u64,
                data.as_ptr().cast(),
            )
        };
        usize::try_from(self.done(put)?).map_err(|_| Errno::IO)
    }

    /// Waits until what was written to a file is stable, and tells an earlier failure of that.
    pub(super) fn fsync(&self, file: &FileRef) -> Called<()> {
        // SAFETY: mount and file are valid.
        let synced =
            unsafe { (self.functions.ceph_ll_fsync)(self.raw.as_ptr(), file.raw.as_ptr(), 0) };
        self.done(synced).map(drop)
    }

    /// Makes a hole, and keeps the size.
    pub(super) fn punch(&self, file: &FileRef, offset: u64, length: u64) -> Called<()> {
        let number = |number| i64::try_from(number).map_err(|_| Errno::FBIG);
        let (offset, length) = (number(offset)?, number(length)?);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: mount and file are valid.
        let done = unsafe {
            (self.functions.ceph_ll_fallocate)(
                self.raw.as_ptr(),
                file.raw.as_ptr(),
                mode,
                offset,
                length,
            )
        };
        self.done(done).map(drop)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        if self.mounted {
            // A session that has ended can sync nothing, and would be waited for.
            let end = if self.is_lost() {
                self.functions.ceph_abort_conn
            } else {
                self.functions.ceph_unmount
            };
            // SAFETY: the mount is mounted, and nothing refers to it: whatever does holds it.
            let ended = unsafe { end(raw) };
            if let Err(error) = value(ended) {
                tracing::warn!(%error, "a session with Ceph did not end well");
            }
        }
        // SAFETY: the mount is valid, not mounted any more, and not used again.
        let released = unsafe { (self.functions.ceph_release)(raw) };
        if let Err(error) = value(released) {
            tracing::warn!(%error, "a client of Ceph could not be released");
        }
    }
}

/// A returned number as a result: libcephfs gives an error as its negative number.
pub(super) fn value(returned: c_int) -> Called<c_int> {
    match returned {
        0.. => Ok(returned),
        // Linux has no others.
        -4095..0 => Err(Errno::from_raw_os_error(-returned)),
        _ => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_negative_number() {
        assert_eq!(value(7), Ok(7));
        assert_eq!(value(0), Ok(0));
        assert_eq!(value(-2), Err(Errno::NOENT));
        assert_eq!(value(-108), Err(Errno::SHUTDOWN));
        assert_eq!(value(c_int::MIN), Err(Errno::IO));
    }
}
