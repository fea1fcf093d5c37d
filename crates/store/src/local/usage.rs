//! How much of its quota a volume uses.
//!
//! A regular file counts for the lesser of its size rounded up to 4 KiB and the blocks it has
//! (`st_blocks` alone is no usage figure: XFS preallocates beyond the end); hard links count
//! once, other kinds nothing. The total follows every fresh `fstat`. It is exact for what went
//! through Weir since the volume was counted; changes made *while* the count of an uncleanly
//! stopped volume runs may be counted twice, until the next count.
//!
//! A write that may grow the volume reserves its growth first, so that concurrent writes can't
//! pass the quota together.

use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::{AcqRel, Acquire, AtomicBool, AtomicI64, AtomicU64, Relaxed, Release};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use std::collections::HashSet;
use std::ffi::CString;
use std::mem::MaybeUninit;
use weir_core::{Attr, FileKind, FsError, FsResult};

/// The unit in which data is counted.
pub(super) const UNIT: u64 = 4096;

/// One volume's quota and what of it is used.
#[derive(Debug)]
pub(super) struct Usage {
    quota: AtomicU64,
    used: AtomicI64,
    reserved: AtomicU64,
    known: AtomicBool,
}

/// Growth that was promised to a write; given back when dropped, after the write's `fstat` has
/// settled what really grew.
pub(super) struct Reservation<'a> {
    usage: &'a Usage,
    bytes: u64,
}

impl Usage {
    pub(super) fn new(quota: u64) -> Self {
        Self {
            quota: AtomicU64::new(quota),
            used: AtomicI64::new(0),
            reserved: AtomicU64::new(0),
            known: AtomicBool::new(false),
        }
    }

    pub(super) fn quota(&self) -> u64 {
        self.quota.load(Acquire)
    }

    pub(super) fn set_quota(&self, bytes: u64) {
        self.quota.store(bytes, Release);
    }

    /// Bytes in use, never negative.
    pub(super) fn used(&self) -> u64 {
        u64::try_from(self.used.load(Acquire)).unwrap_or(0)
    }

    /// An object's part went from `before` to `after` bytes.
    pub(super) fn moved(&self, before: u64, after: u64) {
        let by =
            i64::try_from(after).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX);
        self.used.fetch_add(by, AcqRel);
    }

    /// Adds what a count of the volume found.
    pub(super) fn counted(&self, bytes: u64) {
        self.moved(0, bytes);
        self.known.store(true, Release);
    }

    /// Has the volume been counted, or did a clean stop tell?
    pub(super) fn is_known(&self) -> bool {
        self.known.load(Acquire)
    }

    /// Promises `bytes` of growth, or says that the quota has no room for them.
    pub(super) fn reserve(&self, bytes: u64) -> FsResult<Reservation<'_>> {
        let reserved = self.reserved.fetch_add(bytes, AcqRel).saturating_add(bytes);
        let reservation = Reservation { usage: self, bytes };
        if self.used().saturating_add(reserved) > self.quota() {
            return Err(FsError::QuotaExceeded);
        }
        Ok(reservation)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.usage.reserved.fetch_sub(self.bytes, Relaxed);
    }
}

/// What an object counts for.
pub(super) fn occupied(attr: &Attr) -> u64 {
    if attr.kind != FileKind::Regular || attr.nlink == 0 {
        return 0;
    }
    attr.size.next_multiple_of(UNIT).min(attr.used)
}

/// Counts all files below `root`. Meant for a thread of its own: it may take long.
///
/// Directories that can't be read are left out with a warning.
pub(super) fn count(root: &OwnedFd) -> FsResult<u64> {
    let mut linked = HashSet::new();
    let mut total = 0u64;
    let mut levels = vec![Level::read(root, c".", &mut linked, &mut total)?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.subdirectories.pop() else {
            levels.pop();
            continue;
        };
        match Level::read(&level.directory, &name, &mut linked, &mut total) {
            Ok(level) => levels.push(level),
            Err(error) => {
                tracing::warn!(%error, ?name, "directory left out of the usage count");
            }
        }
    }
    Ok(total)
}

/// A directory on the way down and what is yet to be visited in it.
struct Level {
    directory: OwnedFd,
    subdirectories: Vec<CString>,
}

impl Level {
    fn read(
        parent: &OwnedFd,
        name: &std::ffi::CStr,
        linked: &mut HashSet<u64>,
        total: &mut u64,
    ) -> FsResult<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let open = || openat2(parent, name, flags, Mode::empty(), resolve);
        let directory = as_root(|_| open())?.map_err(fs_error)?;
        let mut subdirectories = Vec::new();
        let mut buffer = vec![MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(directory.as_fd(), &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(fs_error)?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match entry.file_type() {
                FileType::Directory => subdirectories.push(name.to_owned()),
                FileType::RegularFile | FileType::Unknown => {
                    let stat = as_root(|_| statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW))?;
                    let Ok(stat) = stat else { continue };
                    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                        subdirectories.push(name.to_owned());
                    } else if stat.st_nlink == 1 || linked.insert(stat.st_ino) {
                        *total = total.saturating_add(occupied(&super::attrs::attr_of(&stat)?));
                    }
                }
                _ => {}
            }
        }
        Ok(Self { directory, subdirectories })
    }
}
