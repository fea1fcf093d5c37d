//! Our declarations of libcephfs, for the binary interface of Ceph 16.2 (`cephfs/libcephfs.h` and
//! `cephfs/ceph_ll_client.h` of Debian's `libcephfs-dev` 16.2.15). Functions and structures only
//! that this crate uses. Not here: calls.

use crate::LibraryError;
use crate::library::functions;
use crate::sync::OnceLock;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// `struct ceph_mount_info`, of which only the library knows more.
pub(crate) type RawMount = c_void;
/// `struct Inode`.
pub(crate) type RawInode = c_void;
/// `struct Fh`.
pub(crate) type RawFile = c_void;
/// `struct ceph_dir_result`.
pub(crate) type RawDirectory = c_void;
/// `struct UserPerm`.
pub(crate) type RawPerm = c_void;

/// A time as the library has it (`struct timespec`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds after that, below 1,000,000,000.
    pub nanos: i64,
}

/// Attributes of an object as the library has them (`struct ceph_statx`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statx {
    /// The attributes that are there; all of them are [`STATX_ALL`].
    pub mask: u32,
    /// Unit in which the object is best read and written, bytes.
    pub block_bytes: u32,
    /// Names.
    pub nlink: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Kind and permission bits.
    pub mode: u16,
    /// The inode number.
    pub ino: u64,
    /// Size, bytes.
    pub size: u64,
    /// Units of 512 bytes that the object takes up.
    pub blocks: u64,
    /// Number of the file system, or of the snapshot.
    pub dev: u64,
    /// Number of the device that a device file stands for, as the library was given it.
    pub rdev: u64,
    /// Time of the last access.
    pub atime: Time,
    /// Time of the last change.
    pub ctime: Time,
    /// Time of the last change of data.
    pub mtime: Time,
    /// Time at which it was made.
    pub btime: Time,
    /// The count of changes.
    pub version: u64,
}

const _: () = assert!(size_of::<usize>() == 8, "the structures are those of 64-bit Linux");
const _: () = assert!(size_of::<Statx>() == 136 && std::mem::offset_of!(Statx, ino) == 24);
const _: () = assert!(std::mem::offset_of!(Statx, version) == 128);

/// `vinodeno_t`: an inode, and the snapshot it is seen through.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapInode {
    pub(crate) ino: u64,
    pub(crate) snapshot: u64,
}

/// `CEPH_NOSNAP`: the live file system.
pub(crate) const NO_SNAPSHOT: u64 = u64::MAX - 1;

/// The mask of attributes that are whole (`CEPH_STATX_ALL_STATS`).
pub const STATX_ALL: u32 = 0x1fff;

/// Attributes that [`Mount::setattr`](crate::Mount::setattr) sets: bits of its mask
/// (`CEPH_SETATTR_MODE` and the others).
pub mod set {
    /// The permission bits.
    pub const MODE: i32 = 1 << 0;
    /// The owner.
    pub const UID: i32 = 1 << 1;
    /// The group.
    pub const GID: i32 = 1 << 2;
    /// The time of the last change of data.
    pub const MTIME: i32 = 1 << 3;
    /// The time of the last access.
    pub const ATIME: i32 = 1 << 4;
    /// The size.
    pub const SIZE: i32 = 1 << 5;
    /// Beside [`MTIME`]: it is the present.
    pub const MTIME_NOW: i32 = 1 << 7;
    /// Beside [`ATIME`]: it is the present.
    pub const ATIME_NOW: i32 = 1 << 8;
}

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
    pub(crate) fn get() -> Result<&'static Self, LibraryError> {
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
