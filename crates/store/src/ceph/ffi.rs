//! Our declarations of libcephfs, for the binary interface of Ceph 16.2 (`cephfs/libcephfs.h` and
//! `cephfs/ceph_ll_client.h` of Debian's `libcephfs-dev` 16.2.15). Functions and structures only
//! that this crate uses. Not here: calls.

use super::LibraryError;
use super::library::functions;
use crate::sync::OnceLock;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `struct ceph_mount_info`, of which only the library knows more.
pub(super) type RawMount = c_void;
/// `struct Inode`.
pub(super) type RawInode = c_void;
/// `struct Fh`.
pub(super) type RawFile = c_void;
/// `struct ceph_dir_result`.
pub(super) type RawDirectory = c_void;
/// `struct UserPerm`.
pub(super) type RawPerm = c_void;

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) secs: i64,
    pub(super) nanos: i64,
}

/// `struct ceph_statx`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Statx {
    pub(super) mask: u32,
    pub(super) block_bytes: u32,
    pub(super) nlink: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u16,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) blocks: u64,
    pub(super) dev: u64,
    pub(super) rdev: u64,
    pub(super) atime: Time,
    pub(super) ctime: Time,
    pub(super) mtime: Time,
    pub(super) btime: Time,
    pub(super) version: u64,
}

const _: () = assert!(size_of::<usize>() == 8, "the structures are those of 64-bit Linux");
const _: () = assert!(size_of::<Statx>() == 136 && std::mem::offset_of!(Statx, ino) == 24);
const _: () = assert!(std::mem::offset_of!(Statx, version) == 128);

/// `vinodeno_t`: an inode, and the snapshot it is seen through.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapInode {
    pub(super) ino: u64,
    pub(super) snapshot: u64,
}

/// `CEPH_NOSNAP`: the live file system.
pub(super) const NO_SNAPSHOT: u64 = u64::MAX - 1;

/// `CEPH_STATX_ALL_STATS`.
pub(super) const STATX_ALL: u32 = 0x1fff;

/// `CEPH_SETATTR_MODE` and the others.
pub(super) const SET_MODE: c_int = 1 << 0;
pub(super) const SET_UID: c_int = 1 << 1;
pub(super) const SET_GID: c_int = 1 << 2;
pub(super) const SET_MTIME: c_int = 1 << 3;
pub(super) const SET_ATIME: c_int = 1 << 4;
pub(super) const SET_SIZE: c_int = 1 << 5;
pub(super) const SET_MTIME_NOW: c_int = 1 << 7;
pub(super) const SET_ATIME_NOW: c_int = 1 << 8;

functions! {
    /// The functions of libcephfs.
    CephFs in "libcephfs.so.2" {
        fn ceph_version(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        fn ceph_create(*mut *mut RawMount, *const c_char) -> c_int;
        fn ceph_conf_read_file(*mut RawMount, *const c_char) -> c_int;
        fn ceph_conf_set(*mut RawMount, *const c_char, *const c_char) -> c_int;
        fn ceph_init(*mut RawMount) -> c_int;
        fn ceph_select_filesystem(*mut RawMount, *const c_char) -> c_int;
        fn ceph_set_session_timeout(*mut RawMount, c_uint);
        fn ceph_mount(*mut RawMount, *const c_char) -> c_int;
        fn ceph_umask(*mut RawMount, u32) -> u32;
        fn ceph_unmount(*mut RawMount) -> c_int;
        fn ceph_abort_conn(*mut RawMount) -> c_int;
        fn ceph_release(*mut RawMount) -> c_int;
        fn ceph_get_instance_id(*mut RawMount) -> u64;
        fn ceph_getaddrs(*mut RawMount, *mut *mut c_char) -> c_int;
        fn ceph_sync_fs(*mut RawMount) -> c_int;
        fn ceph_userperm_new(u32, u32, c_int, *mut u32) -> *mut RawPerm;
        fn ceph_userperm_destroy(*mut RawPerm);
        fn ceph_ll_lookup_root(*mut RawMount, *mut *mut RawInode) -> c_int;
        fn ceph_ll_lookup_vino(*mut RawMount, SnapInode, *mut *mut RawInode) -> c_int;
        fn ceph_ll_lookup(
            *mut RawMount, *mut RawInode, *const c_char, *mut *mut RawInode, *mut Statx, c_uint,
            c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_put(*mut RawMount, *mut RawInode) -> c_int;
        fn ceph_ll_getattr(
            *mut RawMount, *mut RawInode, *mut Statx, c_uint, c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_setattr(
            *mut RawMount, *mut RawInode, *mut Statx, c_int, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_open(
            *mut RawMount, *mut RawInode, c_int, *mut *mut RawFile, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_read(*mut RawMount, *mut RawFile, i64, u64, *mut c_char) -> c_int;
        fn ceph_ll_write(*mut RawMount, *mut RawFile, i64, u64, *const c_char) -> c_int;
        fn ceph_ll_fsync(*mut RawMount, *mut RawFile, c_int) -> c_int;
        fn ceph_ll_sync_inode(*mut RawMount, *mut RawInode, c_int) -> c_int;
        fn ceph_ll_fallocate(*mut RawMount, *mut RawFile, c_int, i64, i64) -> c_int;
        fn ceph_ll_close(*mut RawMount, *mut RawFile) -> c_int;
        fn ceph_ll_getxattr(
            *mut RawMount, *mut RawInode, *const c_char, *mut c_void, usize, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_setxattr(
            *mut RawMount, *mut RawInode, *const c_char, *const c_void, usize, c_int,
            *const RawPerm,
        ) -> c_int;
        fn ceph_ll_removexattr(
            *mut RawMount, *mut RawInode, *const c_char, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_create(
            *mut RawMount, *mut RawInode, *const c_char, u32, c_int, *mut *mut RawInode,
            *mut *mut RawFile, *mut Statx, c_uint, c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_mknod(
            *mut RawMount, *mut RawInode, *const c_char, u32, u64, *mut *mut RawInode, *mut Statx,
            c_uint, c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_mkdir(
            *mut RawMount, *mut RawInode, *const c_char, u32, *mut *mut RawInode, *mut Statx,
            c_uint, c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_symlink(
            *mut RawMount, *mut RawInode, *const c_char, *const c_char, *mut *mut RawInode,
            *mut Statx, c_uint, c_uint, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_link(
            *mut RawMount, *mut RawInode, *mut RawInode, *const c_char, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_rename(
            *mut RawMount, *mut RawInode, *const c_char, *mut RawInode, *const c_char,
            *const RawPerm,
        ) -> c_int;
        fn ceph_ll_unlink(*mut RawMount, *mut RawInode, *const c_char, *const RawPerm) -> c_int;
        fn ceph_ll_rmdir(*mut RawMount, *mut RawInode, *const c_char, *const RawPerm) -> c_int;
        fn ceph_ll_readlink(
            *mut RawMount, *mut RawInode, *mut c_char, usize, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_statfs(*mut RawMount, *mut RawInode, *mut libc::statvfs) -> c_int;
        fn ceph_ll_opendir(
            *mut RawMount, *mut RawInode, *mut *mut RawDirectory, *const RawPerm,
        ) -> c_int;
        fn ceph_ll_releasedir(*mut RawMount, *mut RawDirectory) -> c_int;
        fn ceph_seekdir(*mut RawMount, *mut RawDirectory, i64);
        fn ceph_readdirplus_r(
            *mut RawMount, *mut RawDirectory, *mut libc::dirent64, *mut Statx, c_uint, c_uint,
            *mut *mut RawInode,
        ) -> c_int;
    }
}

impl CephFs {
    /// The library, loaded at the first call for the rest of the process. A process that gives up
    /// its right to open files calls this before.
    ///
    /// # Errors
    /// If it is missing, lacks a function, or is of another version than 16.2.
    pub(super) fn get() -> Result<&'static Self, LibraryError> {
        static LOADED: OnceLock<Result<CephFs, LibraryError>> = OnceLock::new();
        let load = || {
            let functions = Self::load()?;
            let (mut major, mut minor, mut patch) = (0, 0, 0);
            // SAFETY: the arguments are three valid integers; the function has had this form in
            // all versions, and gives a constant string.
            let words = unsafe {
                CStr::from_ptr((functions.ceph_version)(
                    &raw mut major,
                    &raw mut minor,
                    &raw mut patch,
                ))
            };
            if (major, minor) != (16, 2) {
                let found = words.to_string_lossy().into_owned();
                return Err(LibraryError::Version { name: Self::FILE, found });
            }
            Ok(functions)
        };
        LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}
