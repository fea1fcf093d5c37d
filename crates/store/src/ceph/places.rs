//! Pools and the trees of volumes on CephFS, while nobody serves them: whose a pool is, moving a
//! tree from one pool to another, and removing it.
//!
//! Any gateway may do this, and several at once. Calls block. Clients shape the trees, so nothing
//! recurses: directories found inside are moved up one by one, and no tree is ever more than two
//! levels deep below its top. Not here: which volume is where.

use super::error::{fs_error, of_object};
use super::handover::HANDOVER;
use super::record;
use super::volume::{CephOpenError, names_in, walk};
use crate::sync::Arc;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use weir_ceph::{Called, Ceph, Entry, InodeRef, Listing, Mount, Perm};
use weir_core::{Credentials, FsError};

/// The attribute of a pool's directory with the name of the catalogue that it belongs to.
const POOL: &CStr = c"user.weir.pool";
/// The tree below a volume's directory.
const ROOT: &CStr = c"root";
/// Entries of a directory that are removed before it is listed again.
const ENTRIES_MAX: usize = 1000;

/// The progress of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing is left.
    Done,
    /// It was told to stop in the middle; the next call goes on.
    CutShort,
}

/// Makes sure that the directory `path` is there and a pool of the catalogue `mark`. One that has
/// no mark gets this one.
///
/// # Errors
/// `ForeignPool` if it has another; `Path`, `Call`.
pub fn claim_pool(ceph: &Ceph, path: &str, mark: &str) -> Result<(), CephOpenError> {
    let failed = |what| failed(what, path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(failed("choose a mount"))?;
    let mount = dealt.mount();
    let pool = walk(mount, path)?;
    match record::read(mount, &pool, POOL).map_err(failed("read the mark"))? {
        Some(found) if found == mark => Ok(()),
        Some(found) => Err(CephOpenError::ForeignPool { path: path.to_owned(), found }),
        None => {
            let set = mount.setxattr(&pool, POOL, Some(mark.as_bytes()), None);
            let set = set.and_then(|()| mount.sync_inode(&pool));
            set.map_err(of_object).map_err(failed("mark the pool"))
        }
    }
}

/// Moves the volume in the directory `from` to `to`, unless something is there. Tells whether it
/// did; it does nothing if there is no volume in `from`. Who has it open does not notice.
///
/// # Errors
/// `Path`, `Call`.
pub fn move_volume(ceph: &Ceph, from: &str, to: &str) -> Result<bool, CephOpenError> {
    let failed = |what| failed(what, to);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(failed("choose a mount"))?;
    let mount = dealt.mount();
    if find(mount, to)?.is_some() {
        return Ok(false);
    }
    let found = find(mount, from)?;
    let Some((from_dir, from_name, volume)) = found else { return Ok(false) };
    let format = record::read(mount, &volume, record::FORMAT).map_err(failed("read the format"))?;
    if format.is_none() {
        return Ok(false);
    }
    let (above, name) = split(to)?;
    let to_dir = match above {
        Some(above) => walk(mount, above)?,
        None => mount.top().map_err(fs_error).map_err(failed("find the top"))?,
    };
    let moved = mount.identity(&Credentials::ROOT).and_then(|root| {
        mount.rename((&from_dir, &from_name), (&to_dir, &name), &root)?;
        // The new name first: with either alone on stable storage nothing is lost.
        mount.sync_inode(&to_dir)?;
        mount.sync_inode(&from_dir)
    });
    match moved {
        Ok(()) => Ok(true),
        // Another gateway was first.
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(failed("move the tree")(fs_error(error))),
    }
}

/// Removes the volume in the directory `path`, which is in `pool`, with all its files, until
/// `leaving` says that the process ends. Nothing that is not there is missed.
///
/// # Errors
/// `ForeignPool` if the pool is not one of the catalogue `mark`, and then nothing is removed;
/// `Path`, `Call`, and then what is left can be removed later.
pub fn remove_volume(
    ceph: &Ceph,
    (pool, mark): (&str, &str),
    path: &str,
    leaving: &dyn Fn() -> bool,
) -> Result<Removal, CephOpenError> {
    let failed = |what| failed(what, path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(failed("choose a mount"))?;
    let mount = dealt.mount();
    let Some((above, name, volume)) = find(mount, path)? else { return Ok(Removal::Done) };
    let Some((.., directory)) = find(mount, pool)? else { return Ok(Removal::Done) };
    let found = record::read(mount, &directory, POOL).map_err(failed("read the mark"))?;
    if found.as_deref() != Some(mark) {
        let (path, found) = (pool.to_owned(), found.unwrap_or_default());
        return Err(CephOpenError::ForeignPool { path, found });
    }
    let remove = || {
        let root = mount.identity(&Credentials::ROOT)?;
        let work = Work { mount, root, leaving };
        work.remove(&above, &name, &volume)
    };
    remove().map_err(fs_error).map_err(failed("remove the files"))
}

/// Are there trees of volumes in the pool at `path`? Those of deleted volumes count until they are
/// removed.
///
/// # Errors
/// `Path`, `Call`.
pub fn holds_volumes(ceph: &Ceph, path: &str) -> Result<bool, CephOpenError> {
    let failed = |what| failed(what, path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(failed("choose a mount"))?;
    let mount = dealt.mount();
    let Some((.., volumes)) = find(mount, &format!("{path}/volumes"))? else { return Ok(false) };
    let look = || {
        let mut listing = match Listing::open(mount, &volumes, 0) {
            Err(Errno::NOENT | Errno::STALE) => return Ok(false),
            opened => opened?,
        };
        while let Some(Entry { name, .. }) = listing.next(false)? {
            if !matches!(&*name, b"." | b"..") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    look().map_err(fs_error).map_err(failed("list the volumes"))
}

/// The parts of a path: those above the last name, if there are any, and the last name.
fn split(path: &str) -> Result<(Option<&str>, CString), CephOpenError> {
    let name = names_in(path)?.pop();
    let name = name.ok_or_else(|| CephOpenError::Path { path: path.to_owned() })?;
    let above = path.trim_end_matches('/').rsplit_once('/').map(|(above, _)| above);
    Ok((above.filter(|above| above.split('/').any(|part| !part.is_empty())), name))
}

/// The directory at `path`, its name, and the directory above, if all that is there.
pub(super) fn find(
    mount: &Arc<Mount>,
    path: &str,
) -> Result<Option<(InodeRef, CString, InodeRef)>, CephOpenError> {
    let failed = |error| failed("find the directory", path)(fs_error(error));
    let mut above = mount.top().map_err(failed)?;
    let mut names = names_in(path)?.into_iter().peekable();
    while let Some(name) = names.next() {
        match mount.lookup(&above, &name) {
            Ok((found, _)) if names.peek().is_none() => return Ok(Some((above, name, found))),
            Ok((found, _)) => above = found,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

fn failed(what: &'static str, path: &str) -> impl FnOnce(FsError) -> CephOpenError + use<> {
    let path = path.to_owned();
    move |error| CephOpenError::Call { what, path, error }
}

/// A removal.
struct Work<'a> {
    mount: &'a Arc<Mount>,
    root: Perm,
    leaving: &'a dyn Fn() -> bool,
}

impl Work<'_> {
    /// Removes the directory `volume`, which has this name in `above`.
    fn remove(&self, above: &InodeRef, name: &CStr, volume: &InodeRef) -> Called<Removal> {
        // Directories move up below `root`: from there to elsewhere CephFS's quota lets nothing go.
        match self.mount.lookup(volume, ROOT) {
            Ok((root, _)) => {
                if self.empty(&root)? == Removal::CutShort {
                    return Ok(Removal::CutShort);
                }
                unless_missing(self.mount.remove(volume, ROOT, true, &self.root))?;
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        unless_missing(self.mount.remove(volume, HANDOVER, false, &self.root))?;
        unless_missing(self.mount.remove(above, name, true, &self.root))?;
        Ok(Removal::Done)
    }

    /// Removes everything in `top`.
    fn empty(&self, top: &InodeRef) -> Called<Removal> {
        let mut moved = 0;
        loop {
            let part = self.part(top)?;
            if part.is_empty() {
                return Ok(Removal::Done);
            }
            for (name, directory) in part {
                let whole = match &directory {
                    Some(directory) => self.flatten(directory, top, &mut moved)?,
                    None => Removal::Done,
                };
                if whole == Removal::CutShort || (self.leaving)() {
                    return Ok(Removal::CutShort);
                }
                match self.mount.remove(top, &name, directory.is_some(), &self.root) {
                    // Another gateway is at it too.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Empties one directory: files are removed, directories moved up into `top`.
    fn flatten(&self, directory: &InodeRef, top: &InodeRef, moved: &mut u64) -> Called<Removal> {
        loop {
            let part = self.part(directory)?;
            if part.is_empty() {
                return Ok(Removal::Done);
            }
            for (name, inner) in part {
                if (self.leaving)() {
                    return Ok(Removal::CutShort);
                }
                unless_missing(match inner {
                    None => self.mount.remove(directory, &name, false, &self.root),
                    Some(_) => self.move_up((directory, &name), top, moved),
                })?;
            }
        }
    }

    /// Moves a directory into `top`, under a name that nothing has, nor another gateway chooses: a
    /// metadata server that is to rename a directory to the name of one above it never answers.
    fn move_up(&self, from: (&InodeRef, &CStr), top: &InodeRef, moved: &mut u64) -> Called<()> {
        let client = self.mount.client_id();
        loop {
            *moved += 1;
            let name = CString::new(format!(".weir-{client}-{moved}")).map_err(|_| Errno::INVAL)?;
            match self.mount.lookup(top, &name) {
                Ok(_) => {}
                Err(Errno::NOENT) => return self.mount.rename(from, (top, &name), &self.root),
                Err(error) => return Err(error),
            }
        }
    }

    /// Some entries of a directory: their names, and the objects of those that are directories.
    /// None if it is empty, or gone.
    fn part(&self, directory: &InodeRef) -> Called<Vec<(CString, Option<InodeRef>)>> {
        let mut part = Vec::new();
        let mut listing = match Listing::open(self.mount, directory, 0) {
            Err(Errno::NOENT | Errno::STALE) => return Ok(part),
            opened => opened?,
        };
        while part.len() < ENTRIES_MAX {
            let Some(Entry { name, object, .. }) = listing.next(true)? else { break };
            if matches!(&*name, b"." | b"..") {
                continue;
            }
            let name = CString::new(&*name).map_err(|_| Errno::IO)?;
            let is_directory = |mode: u16| u32::from(mode) & libc::S_IFMT == libc::S_IFDIR;
            let directory = object.filter(|(_, found)| is_directory(found.mode));
            part.push((name, directory.map(|(inode, _)| inode)));
        }
        Ok(part)
    }
}

/// Another gateway was first where something is missing.
pub(super) fn unless_missing(done: Called<()>) -> Called<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}
