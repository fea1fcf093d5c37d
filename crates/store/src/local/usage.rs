//! How much of its quota a volume uses.
//!
//! A regular file counts for the lesser of its size rounded up to 4 KiB and the blocks it has,
//! so rounded (`st_blocks` alone is no usage figure: XFS preallocates beyond the end); hard links count
//! once, other kinds nothing. The total follows every fresh `fstat`.
//!
//! A volume that was not stopped cleanly is counted in the background while it is served. Files
//! that change meanwhile are noted with what they counted for before, so that they are neither
//! missed nor counted twice. What remains inexact until the next count: a file renamed from where
//! the count has not been to where it has (missed), and one whose change is settled in the very
//! microsecond in which the count looks at it (its growth counts twice).
//!
//! A write that may grow the volume reserves its growth first, so that concurrent writes can't
//! pass the quota together.

use super::attrs::attr_of;
use super::open::without_atime;
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::{AcqRel, Acquire, AtomicBool, AtomicI64, AtomicU64, Mutex, Relaxed, Release};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
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
    /// Is the total complete?
    known: AtomicBool,
    /// Until it is: files that have changed since the volume was opened, and what they counted
    /// for before.
    changed: Mutex<HashMap<u64, u64>>,
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
            changed: Mutex::default(),
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

    /// The part of the object `fileid` went from `before` to `after` bytes.
    pub(super) fn moved(&self, fileid: u64, before: u64, after: u64) {
        if !self.is_known() {
            self.changed.lock().entry(fileid).or_insert(before);
        }
        self.add(signed(after) - signed(before));
    }

    /// Takes the usage that was noted at a clean stop.
    pub(super) fn noted(&self, bytes: u64) {
        self.add(signed(bytes));
        self.known.store(true, Release);
    }

    /// Adds what a count has found, and for files that have changed since the volume was opened
    /// what they counted for then.
    pub(super) fn counted(&self, mut count: Count) {
        let mut changed = self.changed.lock();
        count.visited.sort_unstable();
        let seen = |fileid: &u64| count.visited.binary_search(fileid).is_ok();
        let unseen: i64 =
            changed.iter().filter(|(id, _)| !seen(id)).map(|(_, before)| signed(*before)).sum();
        self.add(signed(count.bytes) + unseen);
        self.known.store(true, Release);
        *changed = HashMap::new();
    }

    fn has_changed(&self, fileid: u64) -> bool {
        self.changed.lock().contains_key(&fileid)
    }

    fn add(&self, bytes: i64) {
        self.used.fetch_add(bytes, AcqRel);
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

/// `bytes` rounded up to whole units.
pub(super) fn units(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(UNIT).unwrap_or(u64::MAX)
}

/// What an object counts for.
pub(super) fn occupied(attr: &Attr) -> u64 {
    if attr.kind != FileKind::Regular || attr.nlink == 0 {
        return 0;
    }
    units(attr.size).min(units(attr.used))
}

/// What a count of a volume has found: 8 bytes of memory for each file, until it is done.
#[derive(Debug, Default)]
pub(super) struct Count {
    bytes: u64,
    /// The files in `bytes`.
    visited: Vec<u64>,
    linked: HashSet<u64>,
}

/// A directory on the way down and what is yet to be visited in it.
struct Level {
    directory: OwnedFd,
    subdirectories: Vec<CString>,
}

impl Count {
    /// Counts all files below `root` that have not changed since `usage` began. Meant for a thread
    /// of its own: it may take long. Directories that can't be read are left out with a warning.
    pub(super) fn below(root: &OwnedFd, usage: &Usage) -> FsResult<Self> {
        let mut count = Self::default();
        let mut levels = vec![count.visit(root, c".", usage)?];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.subdirectories.pop() else {
                levels.pop();
                continue;
            };
            match count.visit(&level.directory, &name, usage) {
                Ok(level) => levels.push(level),
                Err(error) => {
                    tracing::warn!(%error, ?name, "directory left out of the usage count");
                }
            }
        }
        Ok(count)
    }

    fn visit(&mut self, parent: &OwnedFd, name: &CStr, usage: &Usage) -> FsResult<Level> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let open = |flags| openat2(parent, name, flags, Mode::empty(), resolve);
        let directory = as_root(|_| without_atime(flags, open))?.map_err(fs_error)?;
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
                    // Removed since it was listed.
                    let Ok(stat) = stat else { continue };
                    let attr = attr_of(&stat)?;
                    if attr.kind == FileKind::Directory {
                        subdirectories.push(name.to_owned());
                    } else {
                        self.add(&attr, usage);
                    }
                }
                _ => {}
            }
        }
        Ok(Level { directory, subdirectories })
    }

    fn add(&mut self, attr: &Attr, usage: &Usage) {
        let first_name = attr.nlink == 1 || self.linked.insert(attr.fileid);
        if attr.kind == FileKind::Regular && first_name && !usage.has_changed(attr.fileid) {
            self.bytes = self.bytes.saturating_add(occupied(attr));
            self.visited.push(attr.fileid);
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_share_the_quota_and_are_given_back() {
        let usage = Usage::new(100);
        usage.noted(40);
        let first = usage.reserve(30).unwrap();
        assert_eq!(usage.reserve(31).err(), Some(FsError::QuotaExceeded));
        let second = usage.reserve(30).unwrap();
        drop(first);
        assert!(usage.reserve(30).is_ok());
        drop(second);
        usage.set_quota(10);
        assert_eq!(usage.reserve(1).err(), Some(FsError::QuotaExceeded));
    }

    #[test]
    fn files_that_change_during_a_count_count_once() {
        let usage = Usage::new(u64::MAX);
        // Open: files 1 (10), 2 (20), 3 (30). File 1 grows, then is visited; 2 is visited, then
        // grows; 3 is removed before it is visited; 4 is made.
        let mut count = Count::default();
        usage.moved(1, 10, 15);
        assert!(usage.has_changed(1));
        count.bytes = 20;
        count.visited = vec![2];
        usage.moved(2, 20, 22);
        usage.moved(3, 30, 0);
        usage.moved(4, 0, 7);
        assert!(!usage.is_known());
        usage.counted(count);
        assert!(usage.is_known());
        assert_eq!(usage.used(), 15 + 22 + 7);
    }
}
