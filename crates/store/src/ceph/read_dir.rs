//! READDIR, and looking a name up without regard to case. Cookies are libcephfs's places, which
//! follow the hash of the name and hold for every gateway.

use super::attrs;
use super::error::{fs_error, of_object};
use super::object::{self, CephObject};
use super::volume::Volume;
use crate::sync::Arc;
use rustix::io::Errno;
use weir_ceph::Statx;
use weir_ceph::{Entry, InodeRef, Listing};
use weir_core::store::{DirEntry, DirPage, Folded, Want};
use weir_core::{Attr, Details, FsError, FsResult, Name, ObjectKey, fold};

/// The requested part of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) cookie: u64,
    pub(super) entries_max: usize,
    pub(super) name_bytes_max: usize,
    pub(super) want: Want,
}

/// An object of a listing.
type Told = (ObjectKey, Attr, Option<Details>);

fn position(volume: &Volume, dir: &CephObject, cookie: u64) -> FsResult<Listing> {
    Listing::open(volume.mount(), dir.inode(), cookie).map_err(|errno| match errno {
        Errno::INVAL => FsError::BadCookie,
        other => of_object(other),
    })
}

pub(super) fn list(volume: &Volume, dir: &Arc<CephObject>, part: Part) -> FsResult<DirPage> {
    dir.need_directory()?;
    if dir.is_gone() {
        return Err(FsError::Stale);
    }
    let objects = part.want >= Want::Attributes;
    let mut listing = position(volume, dir, part.cookie)?;
    let (mut entries, mut name_bytes, mut eof) = (Vec::new(), 0, true);
    while let Some(entry) = listing.next(objects).map_err(of_object)? {
        name_bytes += entry.name.len();
        let enough = name_bytes > part.name_bytes_max && !entries.is_empty();
        if enough || entries.len() >= part.entries_max {
            eof = false;
            break;
        }
        entries.push(told(volume, dir, entry, part.want));
    }
    let attr = volume.attr(dir)?;
    if dir.is_gone() { Err(FsError::Stale) } else { Ok(DirPage { entries, eof, attr }) }
}

fn told(volume: &Volume, dir: &Arc<CephObject>, entry: Entry, want: Want) -> DirEntry {
    let Entry { name, ino, cookie, object } = entry;
    let own = Name::new(&name).ok().filter(|name| name.is_special());
    let mut out = DirEntry { name: name.clone(), fileid: ino, cookie, object: None, details: None };
    let found = match own {
        // The library knows the parent of a directory only where it came by that; and the parent
        // of the volume's root is not visible to clients.
        Some(special) => volume.child(dir, special).ok().flatten().and_then(|(found, attr)| {
            out.fileid = found.ino;
            let details = match want {
                Want::Details => Some(volume.details(&found).ok()?.1),
                _ => None,
            };
            Some((found.key(), attr, details))
        }),
        None => object.and_then(|(inode, found)| object_told(volume, &inode, &found, want)),
    };
    if want >= Want::Attributes
        && let Some((key, attr, details)) = found
    {
        (out.object, out.details) = (Some((key, attr)), details);
    }
    out
}

/// Key, attributes and details of an entry's object. It is not held: a long listing must not empty
/// the table.
fn object_told(volume: &Volume, inode: &InodeRef, found: &Statx, want: Want) -> Option<Told> {
    let attr = volume.told(inode, found).ok()?;
    let birth = attrs::timestamp(found.btime);
    let key = object::key(attr.fileid, birth).ok()?;
    let details = match want {
        Want::Details => Some(volume.details_of(inode, (&attr, birth, found.version)).ok()?),
        _ => None,
    };
    Some((key, attr, details))
}

pub(super) fn lookup(
    volume: &Volume,
    dir: &Arc<CephObject>,
    name: Name<'_>,
) -> FsResult<(Arc<CephObject>, Attr)> {
    match volume.child(dir, name)? {
        Some(found) => Ok(found),
        None => {
            // Of a directory that is gone everything is.
            volume.attr(dir)?;
            Err(if dir.is_gone() { FsError::Stale } else { FsError::NotFound })
        }
    }
}

/// The name itself, or the first in the order of bytes that differs from it in case alone. The
/// whole directory is read for that: there is no index of names.
pub(super) fn lookup_folded(
    volume: &Volume,
    dir: &Arc<CephObject>,
    name: Name<'_>,
) -> FsResult<Folded<Arc<CephObject>>> {
    if let Some((object, attr)) = volume.child(dir, name)? {
        return Ok(Folded { name: name.as_bytes().into(), object, attr });
    }
    volume.attr(dir)?;
    let mut listing = position(volume, dir, 0)?;
    let mut best: Option<Box<[u8]>> = None;
    while let Some(entry) = listing.next(false).map_err(fs_error)? {
        let folded = fold::eq_folded(&entry.name, name.as_bytes());
        if folded && best.as_ref().is_none_or(|best| entry.name < *best) {
            best = Some(entry.name);
        }
    }
    let found = best.ok_or(FsError::NotFound)?;
    let (object, attr) = lookup(volume, dir, Name::new(&found)?)?;
    Ok(Folded { name: found, object, attr })
}
