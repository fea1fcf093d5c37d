//! Thin wrappers of the system calls that rustix lacks, and the setup of the process. No policy.

use crate::creds::{AsRoot, as_root};
use crate::error::fs_error;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ops::Range;
use std::sync::OnceLock;
use weir_core::limits::OBJECT_KEY_BYTES_MAX;
use weir_core::{FsResult, ObjectKey, Timestamp};

const HANDLE_BYTES: usize = OBJECT_KEY_BYTES_MAX - 1;

/// `struct file_handle` of the kernel with room for every handle that fits an [`ObjectKey`].
#[repr(C)]
struct KernelHandle {
    bytes: u32,
    kind: i32,
    data: [u8; HANDLE_BYTES],
}

/// Sets the process up to serve: created modes are the client's alone (umask 0), memory comes in
/// small pages, and there are as many descriptors as the hard limit allows. Gives the number of
/// descriptors.
///
/// # Errors
/// If the limit can't be read or raised; the process works with the old one.
pub fn prepare_process() -> std::io::Result<u64> {
    rustix::process::umask(rustix::fs::Mode::empty());
    small_pages();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Has the kernel give this process memory by pages of 4 KiB. By huge ones of 2 MiB, for which the
/// allocator asks, what lies scattered over its areas takes about half as much again.
fn small_pages() {
    // SAFETY: changes how the kernel backs memory of this process, and touches none. A kernel that
    // refuses leaves things as they were.
    let _refused = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// The directory in which the process finds its own descriptors: the way to reopen one, or to
/// act on the object of one that is open by path only. Opened once, so that it works under every
/// identity.
pub(crate) fn own_descriptors() -> FsResult<BorrowedFd<'static>> {
    static DIRECTORY: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(directory.as_fd());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || rustix::fs::open("/proc/self/fd", flags, rustix::fs::Mode::empty());
    // A failure for lack of descriptors must not be remembered.
    let opened = as_root(|_| open())?.map_err(fs_error)?;
    Ok(DIRECTORY.get_or_init(|| opened).as_fd())
}

/// The kernel's handle of an open object as a key (type, then bytes) with the object's birth, and
/// the id of its mount.
pub(crate) fn handle_of(fd: impl AsFd) -> Result<(ObjectKey, i32), Errno> {
    let (key, mount) = handle_without_birth(&fd)?;
    Ok((key.born(birth(&status(fd)?)), mount))
}

/// The kernel's handle like [`handle_of`] without the birth, for a caller that reads the object's
/// [`status`] too.
pub(crate) fn handle_without_birth(fd: impl AsFd) -> Result<(ObjectKey, i32), Errno> {
    #[expect(clippy::cast_possible_truncation, reason = "45")]
    let mut handle = KernelHandle { bytes: HANDLE_BYTES as u32, kind: 0, data: [0; HANDLE_BYTES] };
    let mut mount = 0i32;
    // SAFETY: `handle` is a valid `file_handle` whose `bytes` says how much room follows, the path
    // is a NUL-terminated constant, and `mount` is a valid int; the kernel writes only into those.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            fd.as_fd().as_raw_fd(),
            c"".as_ptr(),
            &raw mut handle,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    check(done)?;
    let mut key = [0; OBJECT_KEY_BYTES_MAX];
    // The kernel's types are below 256 unless asked for connectable handles, and we don't.
    key[0] = u8::try_from(handle.kind).map_err(|_| Errno::OPNOTSUPP)?;
    let len = handle.bytes as usize;
    let data = handle.data.get(..len).ok_or(Errno::OVERFLOW)?;
    key[1..=len].copy_from_slice(data);
    let key = key.get(..=len).unwrap_or(&[]);
    Ok((ObjectKey::new(key).map_err(|_| Errno::OVERFLOW)?, mount))
}

/// The attributes (`fstat`) and the birth of an open object, in one system call.
pub(crate) fn status(fd: impl AsFd) -> Result<Statx, Errno> {
    statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME)
}

/// A digest of the time at which an object was made; 0 where the file system keeps none.
///
/// The kernel's handle has a generation for the same purpose, but XFS counts it on from what is on
/// the disk, so after a power cut it gives a number that it has given before.
pub(crate) fn birth(found: &Statx) -> u32 {
    if found.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return 0;
    }
    #[expect(clippy::cast_sign_loss, reason = "a digest")]
    let seconds = found.stx_btime.tv_sec as u64;
    let nanos = seconds.wrapping_mul(1_000_000_000).wrapping_add(found.stx_btime.tv_nsec.into());
    #[expect(clippy::cast_possible_truncation, reason = "a digest")]
    let digest = (nanos ^ (nanos >> 32)) as u32;
    digest.max(1)
}

/// Time at which an open object was made, if the file system keeps that.
pub(crate) fn born_at(fd: impl AsFd) -> Result<Option<Timestamp>, Errno> {
    let found = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME)?;
    let kept = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = Timestamp { secs: found.stx_btime.tv_sec, nanos: found.stx_btime.tv_nsec };
    Ok(kept.then_some(born))
}

/// Opens the object with this key on the file system that `mount` is on. Needs
/// `CAP_DAC_READ_SEARCH` in effect, hence the proof.
pub(crate) fn open_handle(
    _: &AsRoot,
    mount: impl AsFd,
    key: &ObjectKey,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let (&kind, bytes) = key.as_bytes().split_first().ok_or(Errno::STALE)?;
    let mut handle = KernelHandle { bytes: 0, kind: i32::from(kind), data: [0; HANDLE_BYTES] };
    handle.data.get_mut(..bytes.len()).ok_or(Errno::STALE)?.copy_from_slice(bytes);
    handle.bytes = u32::try_from(bytes.len()).map_err(|_| Errno::STALE)?;
    // SAFETY: `handle` is a valid `file_handle` with `bytes` bytes of data; the kernel only reads.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_fd().as_raw_fd(),
            &raw mut handle,
            (flags | OFlags::CLOEXEC).bits(),
        )
    };
    let fd = i32::try_from(check(fd)?).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel just gave us this descriptor; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Appends to `out` up to `want` bytes from `offset` on that are in the page cache, without ever
/// waiting for the disk. Gives how many. `EAGAIN` when none can be had without waiting.
#[inline]
pub(crate) fn read_cached(
    fd: BorrowedFd<'_>,
    out: &mut Vec<u8>,
    want: usize,
    offset: u64,
) -> Result<usize, Errno> {
    out.reserve(want);
    let start = out.len();
    let offset = i64::try_from(offset).map_err(|_| Errno::INVAL)?;
    let spare = out.spare_capacity_mut();
    let part = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: want.min(spare.len()) };
    // SAFETY: `part` covers memory that `out` owns and that nothing else refers to; the kernel
    // writes at most `iov_len` bytes there.
    let got =
        unsafe { libc::preadv2(fd.as_raw_fd(), &raw const part, 1, offset, libc::RWF_NOWAIT) };
    let Ok(got) = usize::try_from(got) else { return Err(last_error()) };
    // SAFETY: the kernel has initialised `got` bytes after `start`, within the capacity.
    unsafe { out.set_len(start + got) };
    Ok(got)
}

/// Starts writing back what is dirty of `length` bytes from `offset` on, without waiting for the
/// disk to have it. A failure of the disk is reported by the next sync, as without this call.
pub(crate) fn start_writeback(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<(), Errno> {
    let part = |bytes| i64::try_from(bytes).map_err(|_| Errno::INVAL);
    let (offset, length) = (part(offset)?, part(length)?);
    // SAFETY: the call takes no pointers.
    let done = unsafe {
        libc::sync_file_range(fd.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
    check(done.into()).map(drop)
}

/// The request by which a file system is asked for the map of a file (`FS_IOC_FIEMAP` of
/// `linux/fs.h`). It changes nothing.
pub const FILE_MAP_REQUEST: u32 = 0xc020_660b;
/// Extents that are asked for at once.
const EXTENTS: usize = 64;
/// `FIEMAP_EXTENT_LAST`: the file has no other extent behind this one.
const EXTENT_LAST: u32 = 0x1;
/// `FIEMAP_EXTENT_UNWRITTEN`: allocated and never written.
const EXTENT_UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of the kernel with room for extents.
#[repr(C)]
struct KernelMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [KernelExtent; EXTENTS],
}

/// The parts of a file that the file system has allocated and never written.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// The ranges, in whole blocks; the last one may reach behind the part that was asked for.
    pub(crate) ranges: Vec<Range<u64>>,
    /// The offset to ask from next.
    pub(crate) next: Option<u64>,
}

/// The part of `start..end` that the file system has allocated and never written, as far as a few
/// extents reach. The extents tell what is on the disk or on its way there: data in memory may lie
/// over them.
///
/// # Errors
/// `EOPNOTSUPP` where the file system has no such map.
pub(crate) fn unwritten(fd: BorrowedFd<'_>, start: u64, end: u64) -> Result<Unwritten, Errno> {
    #[expect(clippy::cast_possible_truncation, reason = "64")]
    let mut map = KernelMap {
        start,
        length: end.saturating_sub(start),
        flags: 0,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [KernelExtent::default(); EXTENTS],
    };
    if map.length == 0 {
        return Ok(Unwritten::default());
    }
    // SAFETY: `map` is a valid `fiemap` whose `extent_count` says how many extents follow; the
    // kernel writes only into those and the head.
    let done =
        unsafe { libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), FILE_MAP_REQUEST, &raw mut map) };
    check(done)?;
    let found = map.extents.get(..map.mapped_extents as usize).ok_or(Errno::OVERFLOW)?;
    let end_of = |extent: &KernelExtent| extent.logical.saturating_add(extent.length);
    let mut out = Unwritten::default();
    for extent in found.iter().filter(|extent| extent.flags & EXTENT_UNWRITTEN != 0) {
        let range = extent.logical.max(start)..end_of(extent);
        if !range.is_empty() && range.start < end {
            out.ranges.push(range);
        }
    }
    if found.len() == EXTENTS {
        let last = found.last().filter(|extent| extent.flags & EXTENT_LAST == 0);
        out.next = last.map(end_of).filter(|next| (start + 1..end).contains(next));
    }
    Ok(out)
}

/// The number of times that the calling thread has gone to sleep of its own accord, in all its
/// life: for a lock, the disk or the kernel's throttle, and not because its processor was taken
/// away.
pub(crate) fn sleeps() -> i64 {
    // SAFETY: all of `rusage` is integers, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid `rusage` for the kernel to write to. It fails for a bad address
    // or a bad first argument only.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nvcsw
}

/// `F_GET_RW_HINT` and `F_SET_RW_HINT` of `linux/fcntl.h`.
const GET_HINT: libc::c_int = 1024 + 11;
const SET_HINT: libc::c_int = 1024 + 12;
/// `RWH_WRITE_LIFE_LONG`.
const HINT: u64 = 4;

/// Has [`witness`] been called for this file since the kernel has had it in memory? The hint is
/// kept there alone: it goes with the power, with the file system's mount, and where the kernel
/// wants the memory of a file that nobody has open.
pub(crate) fn is_witnessed(file: impl AsFd) -> bool {
    let mut hint = 0u64;
    // SAFETY: the kernel writes 8 bytes, which `hint` has.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), GET_HINT, &raw mut hint) };
    done == 0 && hint == HINT
}

/// Marks a file, in the kernel's memory alone, as one that data is written to which stays for
/// long, or takes the mark away.
pub(crate) fn witness(file: impl AsFd, marked: bool) -> Result<(), Errno> {
    let hint = if marked { HINT } else { 0 };
    // SAFETY: the kernel reads 8 bytes, which `hint` has.
    let done = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), SET_HINT, &raw const hint) };
    check(done.into()).map(drop)
}

/// Sets the thread's file system user and gives the former one.
pub(crate) fn set_fs_uid(uid: u32) -> u32 {
    // SAFETY: changes the calling thread's credentials only and touches no memory.
    id(unsafe { libc::syscall(libc::SYS_setfsuid, uid) })
}

/// Sets the thread's file system group and gives the former one.
pub(crate) fn set_fs_gid(gid: u32) -> u32 {
    // SAFETY: changes the calling thread's credentials only and touches no memory.
    id(unsafe { libc::syscall(libc::SYS_setfsgid, gid) })
}

/// Sets the supplementary groups of the calling thread alone.
pub(crate) fn set_thread_groups(groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the kernel reads `len` ids from a slice of that length.
    check(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) }).map(drop)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel returns a 32-bit id in a register"
)]
const fn id(returned: libc::c_long) -> u32 {
    returned as u32
}

fn check(returned: libc::c_long) -> Result<libc::c_long, Errno> {
    if returned < 0 { Err(last_error()) } else { Ok(returned) }
}

pub(crate) fn last_error() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
