//! READDIR and READDIRPLUS, in the pool. Cookies are the kernel's `d_off`, which ext4, XFS and
//! btrfs keep stable for the life of a directory.

use super::LocalStore;
use super::inode::{Inode, Reach};
use super::open::without_atime;
use super::volume::{Volume, Waiting};
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, openat, seek};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use weir_core::store::{DirEntry, DirPage, Want};
use weir_core::{Attr, Details, FsError, FsResult, Name, ObjectKey};

/// The kernel's entries are read in pieces of this size; it holds at least 100 of them.
const BUFFER_BYTES: usize = 32 << 10;

/// The requested part of a directory.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) cookie: u64,
    pub(super) entries_max: usize,
    pub(super) name_bytes_max: usize,
    pub(super) want: Want,
}

impl LocalStore {
    pub(super) async fn read_dir(&self, dir: &Arc<Inode>, part: Part) -> FsResult<DirPage> {
        dir.need_directory()?;
        let dir = Arc::clone(dir);
        self.pooled(move |volume| list(volume, &dir, part)).await
    }
}

fn list(volume: &Volume, dir: &Inode, part: Part) -> FsResult<DirPage> {
    if dir.is_gone() {
        return Err(FsError::Stale);
    }
    let (mut entries, eof) = names(volume, dir, part)?;
    if part.want >= Want::Attributes {
        for entry in &mut entries {
            if let Some((key, attr, details)) = object(volume, dir, &entry.name, part.want) {
                (entry.object, entry.details) = (Some((key, attr)), details);
            }
        }
    }
    Ok(DirPage { entries, eof, attr: dir.attr()? })
}

/// Reads entries until a bound is reached or the directory ends, which is told too.
fn names(volume: &Volume, dir: &Inode, part: Part) -> FsResult<(Vec<DirEntry>, bool)> {
    let listing = position(volume, dir, part.cookie)?;
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut raw = RawDir::new(listing.as_fd(), &mut buffer);
    let mut entries = Vec::new();
    let mut name_bytes = 0;
    while let Some(entry) = raw.next() {
        let entry = entry.map_err(|errno| match errno {
            Errno::NOENT => FsError::Stale,
            other => fs_error(other),
        })?;
        let name = entry.file_name().to_bytes();
        name_bytes += name.len();
        if entries.len() >= part.entries_max
            || (name_bytes > part.name_bytes_max && !entries.is_empty())
        {
            return Ok((entries, false));
        }
        // The parent of the volume's root is not visible to clients.
        let above_root = name == b".." && dir.key == volume.root.key;
        entries.push(DirEntry {
            name: name.into(),
            fileid: if above_root { dir.fileid } else { entry.ino() },
            cookie: entry.next_entry_cookie(),
            object: None,
            details: None,
        });
    }
    Ok((entries, true))
}

/// Opens the directory for one listing, because a position belongs to an open file, and goes to
/// the cookie.
pub(super) fn position(volume: &Volume, dir: &Inode, cookie: u64) -> FsResult<OwnedFd> {
    if dir.reach == Reach::Path {
        return Err(FsError::AccessDenied);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |flags| openat(&dir.fd, c".", flags, Mode::empty());
    let listing = volume
        .with_descriptors(|| without_atime(flags, open))
        .map_err(|error| if error == FsError::NotFound { FsError::Stale } else { error })?;
    if cookie != 0 {
        let at = i64::try_from(cookie).map_err(|_| FsError::BadCookie)?;
        let at = u64::try_from(at).map_err(|_| FsError::BadCookie)?;
        seek(&listing, SeekFrom::Start(at)).map_err(|errno| match errno {
            Errno::INVAL => FsError::BadCookie,
            other => fs_error(other),
        })?;
    }
    Ok(listing)
}

/// Key, attributes and details of an entry, if it is still there. Objects are held open as long as
/// that closes no others: a long listing must not empty the table.
fn object(
    volume: &Volume,
    dir: &Inode,
    name: &[u8],
    want: Want,
) -> Option<(ObjectKey, Attr, Option<Details>)> {
    let name = Name::new(name).ok()?;
    let told = |inode: &Inode| {
        if want < Want::Details {
            return Some((inode.key, inode.attr().ok()?, None));
        }
        let (attr, details) = volume.details_of(inode, Waiting::Allowed).ok()?;
        Some((inode.key, attr, Some(details)))
    };
    if name.is_dot() || (name.is_dot_dot() && dir.key == volume.root.key) {
        return told(dir);
    }
    if name.is_dot_dot() {
        return told(&*volume.open_parent(dir).ok()?);
    }
    if let Some(inode) = volume.names.get(dir, name) {
        return told(&inode);
    }
    let began = volume.names.count(dir);
    let found = volume.find_name(dir.fd(), name.as_bytes()).ok()?;
    let has_room = || volume.table.has_room(&found.key) && volume.descriptors.budget().has_room();
    if volume.table.get(&found.key).is_none() && !has_room() {
        if let Some(kept) = &volume.kept {
            kept.keep(found.key, &found.fd).ok()?;
        }
        let details = || volume.details_of_found(found.fd.as_fd(), &found.attr).ok();
        return Some((found.key, found.attr, (want == Want::Details).then(details).flatten()));
    }
    let inode = volume.adopt(found).ok()?;
    volume.names.found(dir, name, &inode, began);
    told(&inode)
}
