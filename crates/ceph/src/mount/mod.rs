//! A mount of CephFS: a client of the cluster with its session, cache and threads, and calls of
//! libcephfs in safe form. All calls block, and the library has one lock for a mount.
//!
//! Inodes and open files are owned values, which are given back when they are dropped; that blocks,
//! too. Each knows its mount, and no other takes it. Not here: which mount is used for what
//! ([`crate::session`]), and any rule.

mod files;
mod held;
mod inodes;
mod listing;
mod names;

use crate::ffi::{CephFs, RawFile, RawInode, RawMount, RawPerm, STATX_ALL, Statx};
use crate::sync::{Arc, AtomicBool, Relaxed};
pub use held::{FileRef, InodeRef, Perm};
pub use listing::{Entry, Listing};
pub use names::New;
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_int};
use std::ptr::{NonNull, null_mut};
use weir_core::Credentials;

/// Result of a call: an error number of Linux. `XDEV` is the one for an inode or file of another
/// mount.
pub type Called<T> = Result<T, Errno>;

/// The settings of a mount, in the order in which they are made.
pub(crate) type Settings<'a> = &'a [(&'a CStr, CString)];

/// A client of one CephFS with a directory of it mounted. Unmounted when dropped, which blocks. Any
/// number of threads may use it at once.
///
/// Calls without an identity, or with `None` for it, are the superuser's. The errors are those of
/// the library, and `SHUTDOWN` or `NOTCONN` when the cluster has ended the session.
#[derive(Debug)]
pub struct Mount {
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
    pub(crate) fn new(
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
        /// The top directory, before anybody can share the mount.
        struct Top<'a>(&'a Mount, NonNull<RawInode>);
        impl Drop for Top<'_> {
            fn drop(&mut self) {
                let Self(mount, raw) = self;
                // SAFETY: mount and inode are valid, and the inode is not used again.
                unsafe { (mount.functions.ceph_ll_put)(mount.raw.as_ptr(), raw.as_ptr()) };
            }
        }
        #[repr(C)]
        struct Room {
            found: Statx,
            behind: [u8; 128],
        }
        const UNTOUCHED: u64 = 0xa5a5_a5a5_a5a5_a5a5;
        let inode = Top(self, self.raw_top()?);
        let ask = |into: *mut Statx| {
            // SAFETY: the mount and the inode are valid, and there is room for the structure that
            // is declared, and in the first call for a larger one.
            let asked = unsafe {
                (self.functions.ceph_ll_getattr)(
                    self.raw.as_ptr(),
                    inode.1.as_ptr(),
                    into,
                    STATX_ALL,
                    0,
                    self.perm(None),
                )
            };
            self.done(asked)
        };
        let found = Statx { version: UNTOUCHED, ino: UNTOUCHED, ..Statx::default() };
        let mut room = Room { found, behind: [0xa5; 128] };
        ask((&raw mut room).cast())?;
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
        let mut again = Statx::default();
        ask(&raw mut again)?;
        let same = (again.ino, again.btime, again.mode) == (found.ino, found.btime, found.mode);
        if sane && same { Ok(()) } else { Err(Errno::PROTO) }
    }

    /// The number by which the cluster knows this client, and which no other client has while this
    /// one lives.
    #[must_use]
    pub fn client_id(&self) -> u64 {
        // SAFETY: the mount is valid.
        unsafe { (self.functions.ceph_get_instance_id)(self.raw.as_ptr()) }
    }

    /// The addresses of this client, in the form that `osd blocklist` takes.
    ///
    /// # Errors
    /// The library's.
    pub fn addresses(&self) -> Called<String> {
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
    #[must_use]
    pub fn is_lost(&self) -> bool {
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
    ///
    /// # Errors
    /// `ACCESS` for a user or group with the highest number, which the library takes for whoever
    /// runs the process; `NOMEM`.
    pub fn identity(&self, cred: &Credentials) -> Called<Perm> {
        Perm::new(self.functions, cred)
    }

    /// Makes everything that was done through this mount stable.
    ///
    /// # Errors
    /// The library's.
    pub fn sync(&self) -> Called<()> {
        // SAFETY: the mount is valid.
        let synced = unsafe { (self.functions.ceph_sync_fs)(self.raw.as_ptr()) };
        self.done(synced).map(drop)
    }

    fn inode(self: &Arc<Self>, raw: *mut RawInode) -> Called<InodeRef> {
        let raw = NonNull::new(raw).ok_or(Errno::IO)?;
        Ok(InodeRef { mount: Arc::clone(self), raw })
    }

    /// The library's inode, if it is one of this mount: the library cannot tell.
    fn own(&self, inode: &InodeRef) -> Called<*mut RawInode> {
        if std::ptr::eq(Arc::as_ptr(&inode.mount), self) {
            Ok(inode.raw.as_ptr())
        } else {
            Err(Errno::XDEV)
        }
    }

    /// The top directory, which is the caller's to give back.
    fn raw_top(&self) -> Called<NonNull<RawInode>> {
        let mut raw = null_mut();
        // SAFETY: the mount is valid, and `raw` is valid to write to.
        let found =
            unsafe { (self.functions.ceph_ll_lookup_root)(self.raw.as_ptr(), &raw mut raw) };
        self.done(found)?;
        NonNull::new(raw).ok_or(Errno::IO)
    }

    fn file(self: &Arc<Self>, raw: *mut RawFile) -> Called<FileRef> {
        let raw = NonNull::new(raw).ok_or(Errno::IO)?;
        Ok(FileRef { mount: Arc::clone(self), raw })
    }

    /// The library's file, if it is one of this mount: the library cannot tell.
    fn own_file(&self, file: &FileRef) -> Called<*mut RawFile> {
        if std::ptr::eq(Arc::as_ptr(&file.mount), self) {
            Ok(file.raw.as_ptr())
        } else {
            Err(Errno::XDEV)
        }
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
pub(crate) fn value(returned: c_int) -> Called<c_int> {
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
