//! The walk of a recount: over every directory of the volume, to what each file holds. It holds no
//! directory open but the one it reads, however deep the tree is.

use super::attrs::attr_of;
use super::inode::Inode;
use super::recount::Recount;
use super::shape::{Shape, estimate};
use super::usage::signed;
use super::volume::{Stop, Volume, Waiting};
use crate::control::Counted;
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::{Arc, Relaxed, Weak, now};
use crate::sys::{handle_of, open_handle};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat, openat2, statat, syncfs,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::time::Duration;
use weir_core::{Attr, FileKind, FsError, FsResult, ObjectKey};

/// The interval at which a recount logs its progress.
const REPORT_EVERY: Duration = Duration::from_secs(30);
const LISTING_BYTES: usize = 32 << 10;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Begins to count the volume's data anew in the background, while it is served. False if a recount
/// is running already.
pub(super) fn start(volume: &Arc<Volume>) -> bool {
    let Some(recount) = volume.usage.begin_recount() else { return false };
    let weak = Arc::downgrade(volume);
    volume.lane.run_long(move || run(&weak, &recount));
    true
}

fn run(volume: &Weak<Volume>, recount: &Arc<Recount>) {
    let began = now();
    let done = walk(volume, recount);
    let Some(volume) = volume.upgrade() else { return };
    let label = volume.label.as_str();
    match done {
        Ok(Some(Counted { before_bytes, after_bytes, files, left_out, .. })) => {
            let seconds = now().since(began).as_secs_f64();
            tracing::info!(
                volume = label,
                before_bytes,
                after_bytes,
                files,
                left_out,
                seconds,
                "usage counted"
            );
        }
        Ok(None) => volume.usage.abandon_recount(),
        Err(error) => {
            volume.usage.abandon_recount();
            tracing::error!(volume = label, %error, "cannot count the usage; try a rescan");
        }
    }
}

/// A directory yet to be walked; held open only where it couldn't be opened by its key.
struct Pending {
    key: ObjectKey,
    fd: Option<OwnedFd>,
}

/// Nothing if the volume is closed meanwhile.
fn walk(volume: &Weak<Volume>, recount: &Recount) -> FsResult<Option<Counted>> {
    let mut reported = now();
    let mut pending = Vec::new();
    let mut at_root = true;
    loop {
        let Some(volume) = volume.upgrade().filter(|v| !v.closing.load(Relaxed)) else {
            return Ok(None);
        };
        if at_root {
            pending.push(Pending { key: volume.root.key, fd: None });
        }
        let moved = || recount.next_moved().map(|key| Pending { key, fd: None });
        let Some(directory) = pending.pop().or_else(moved) else {
            if let Some(counted) = volume.usage.finish_recount() {
                let sync = || syncfs(&volume.root.fd).map_err(fs_error);
                volume.usage.record_counted(counted.after_bytes, sync);
                return Ok(Some(counted));
            }
            continue;
        };
        let mut walker = Walker { volume: &volume, recount, pending: &mut pending };
        match walker.directory(directory) {
            // Removed since it was found.
            Ok(()) | Err(FsError::Stale | FsError::NotFound) => {}
            Err(error) if at_root => return Err(error),
            Err(error) => recount.leave_out("a directory", error),
        }
        at_root = false;
        if now().since(reported) >= REPORT_EVERY {
            reported = now();
            let so_far = recount.progress();
            let (files, bytes) = (so_far.files, so_far.bytes);
            tracing::info!(volume = volume.label.as_str(), files, bytes, "counting the usage");
        }
    }
}

struct Walker<'a> {
    volume: &'a Volume,
    recount: &'a Recount,
    pending: &'a mut Vec<Pending>,
}

impl Walker<'_> {
    fn directory(&mut self, Pending { key, fd }: Pending) -> FsResult<()> {
        let directory = fd.map_or_else(|| self.open_directory(&key), Ok)?;
        let attr = super::attrs::stat(&directory)?;
        if !self.recount.visit(attr.fileid, 0) {
            return Ok(());
        }
        let mut buffer = vec![MaybeUninit::uninit(); LISTING_BYTES];
        let mut entries = RawDir::new(directory.as_fd(), &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(fs_error)?;
            let name = entry.file_name();
            let listed = matches!(
                entry.file_type(),
                FileType::Directory | FileType::RegularFile | FileType::Unknown
            );
            if !listed || name == c"." || name == c".." {
                continue;
            }
            match self.entry(&directory, name) {
                // Removed or renamed since it was listed; what was renamed was visited before.
                Ok(()) | Err(FsError::NotFound | FsError::Stale) => {}
                Err(error) => self.recount.leave_out("an entry", error),
            }
        }
        Ok(())
    }

    fn open_directory(&self, key: &ObjectKey) -> FsResult<OwnedFd> {
        let volume = self.volume;
        let by_key = |flags| match &volume.kept {
            None => as_root(|root| open_handle(root, &volume.root.fd, key, flags))
                .unwrap_or(Err(Errno::IO)),
            Some(_) if *key == volume.root.key => {
                openat(&volume.root.fd, c".", flags, Mode::empty())
            }
            Some(kept) => {
                let path = kept.open(key).map_err(|_| Errno::STALE)?;
                openat(path, c".", flags, Mode::empty())
            }
        };
        volume.retry_short(|| super::open::without_atime(DIRECTORY, by_key)).map_err(fs_error)
    }

    fn entry(&mut self, directory: &OwnedFd, name: &CStr) -> FsResult<()> {
        let look = || statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let attr = attr_of(&as_root(|_| look())?.map_err(fs_error)?)?;
        match attr.kind {
            FileKind::Directory => self.subdirectory(directory, name),
            // A file without data can get some only by a change, which visits it.
            FileKind::Regular if attr.size > 0 => self.file(directory, name, &attr),
            _ => Ok(()),
        }
    }

    fn open(&self, directory: &OwnedFd, name: &CStr, flags: OFlags) -> FsResult<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let open = |flags| openat2(directory, name, flags, Mode::empty(), resolve);
        self.volume.with_descriptors(|| super::open::without_atime(flags, open))
    }

    fn subdirectory(&mut self, directory: &OwnedFd, name: &CStr) -> FsResult<()> {
        let fd = match self.open(directory, name, DIRECTORY) {
            // Another file system is mounted there.
            Err(FsError::CrossVolume) => return Ok(()),
            opened => opened?,
        };
        let (key, _) = handle_of(&fd).map_err(fs_error)?;
        let fd = self.volume.kept.is_some().then_some(fd);
        self.pending.push(Pending { key, fd });
        Ok(())
    }

    fn file(&self, directory: &OwnedFd, name: &CStr, attr: &Attr) -> FsResult<()> {
        let unit = self.volume.unit;
        let fd = match self.open(directory, name, OFlags::RDONLY) {
            Err(FsError::CrossVolume) => return Ok(()),
            Err(FsError::AccessDenied) => {
                self.recount.visit(attr.fileid, estimate(unit, attr.size, attr.used));
                return Ok(());
            }
            opened => opened?,
        };
        let (key, _) = handle_of(&fd).map_err(fs_error)?;
        let failed = |stop: Stop| stop.error();
        let held = match self.volume.table.get(&key) {
            None if self.volume.must_mend(fd.as_fd(), attr.size) => {
                match self.hold(directory, name, &key) {
                    Ok(held) => Some(held),
                    Err(error @ (FsError::NotFound | FsError::Stale)) => return Err(error),
                    // It counts as it is.
                    Err(_) => None,
                }
            }
            held => held,
        };
        let Some(inode) = held else {
            let mut shape = Shape::UNKNOWN;
            shape.load(fd.as_fd(), unit, Waiting::Allowed).map_err(failed)?;
            self.recount.visit(attr.fileid, shape.counts());
            return Ok(());
        };
        self.volume.mend(&inode, Waiting::Allowed).map_err(failed)?;
        // Held open: what is known of it is looked at anew too.
        let mut shape = inode.shape.write();
        let before = *shape;
        shape.load(inode.fd(), unit, Waiting::Allowed).map_err(failed)?;
        if !self.recount.visit(inode.fileid, shape.counts()) && before.known {
            self.recount.add(signed(shape.counts()) - signed(before.counts()));
        }
        Ok(())
    }

    /// Holds a file open, so that its changes wait while it is mended.
    fn hold(&self, directory: &OwnedFd, name: &CStr, key: &ObjectKey) -> FsResult<Arc<Inode>> {
        let found = self.volume.find_name(directory.as_fd(), name.to_bytes())?;
        // Another file has the name now; what was renamed was visited before.
        if found.key != *key {
            return Err(FsError::NotFound);
        }
        self.volume.adopt(found)
    }
}
