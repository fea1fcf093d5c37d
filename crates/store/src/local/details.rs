//! Birth and DOS attributes: from memory where somebody has asked before, otherwise from the
//! kernel, in the pool. An object of which nobody asks, as all that only NFS uses, keeps nothing.
//!
//! That a client has set them is in an extended attribute ([`crate::details_format`]). Its kernel
//! rules are those of the caller's identity too; the right was decided here, so root does it.

use super::Durability;
use super::LocalStore;
use super::acl::own_path;
use super::commit::Extent;
use super::folded::Folded;
use super::inode::{Inode, Reach};
use super::switch::Epoch;
use super::volume::{Step, Stop, Volume, Waiting};
use crate::creds::as_root;
use crate::details_format::{BYTES_MAX, Kept, NAME};
use crate::error::fs_error;
use crate::sync::{Arc, Guard, Mutex, OnceLock};
use crate::sys::born_at;
use rustix::fd::BorrowedFd;
use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr, getxattr, removexattr, setxattr};
use rustix::io::Errno;
use weir_core::{
    Attr, Credentials, Details, DosAttributes, FileKind, FsError, FsResult, SetDetails, Timestamp,
};

/// Properties of an object that most objects need not, for as long as it is held open.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// The details. Locked while they are read from the kernel or changed there.
    own: Mutex<Option<Known>>,
    /// A directory's names without regard to case.
    pub(super) folded: OnceLock<Arc<Folded>>,
}

/// Details that are kept in memory.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The epoch of the cache in which they were read or set.
    epoch: Epoch,
    own: Own,
}

/// The details that the attributes and the count of changes don't tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Own {
    birth: Timestamp,
    dos: DosAttributes,
}

impl Own {
    /// The details of an object of which no client has set any.
    fn natural(fd: BorrowedFd<'_>, attr: &Attr) -> FsResult<Self> {
        // A file system without births: not after anything else that happened to it.
        let earliest = attr.atime.min(attr.mtime).min(attr.ctime);
        let birth = born_at(fd).map_err(fs_error)?.unwrap_or(earliest);
        Ok(Self { birth, dos: DosAttributes::of_new(attr.kind) })
    }

    fn with(self, kept: Kept) -> Self {
        Self { birth: kept.birth.unwrap_or(self.birth), dos: kept.dos.unwrap_or(self.dos) }
    }

    /// The part that differs from `natural`.
    fn beside(self, natural: Self) -> Kept {
        Kept {
            birth: (self.birth != natural.birth).then_some(self.birth),
            dos: (self.dos != natural.dos).then_some(self.dos),
        }
    }
}

/// Can objects of this kind have extended attributes of users?
fn has_attributes(kind: FileKind) -> bool {
    matches!(kind, FileKind::Regular | FileKind::Directory)
}

/// Asks the kernel for the details that a client has set for the object of this inode number.
fn read(fd: BorrowedFd<'_>, reach: Reach, fileid: u64) -> FsResult<Kept> {
    let mut room = [0; BYTES_MAX];
    let got = as_root(|_| match reach {
        Reach::Path => getxattr(own_path(fd), NAME, &mut room),
        Reach::Full | Reach::ReadOnly => fgetxattr(fd, NAME, &mut room),
    })?;
    let kept = match got {
        Ok(length) => room.get(..length).and_then(Kept::read),
        Err(Errno::RANGE) => None,
        // None, a file system without them, or a server that may not read the file.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::ACCESS | Errno::PERM) => {
            return Ok(Kept::default());
        }
        Err(errno) => return Err(fs_error(errno)),
    };
    // They decide nothing, so a file is not to be lost for them.
    Ok(kept.unwrap_or_else(|| {
        tracing::warn!(fileid, attribute = ?NAME, "the DOS attributes of an object are damaged");
        Kept::default()
    }))
}

/// Has the kernel keep them.
fn write(inode: &Inode, kept: Kept) -> FsResult<()> {
    let (fd, flags, path) = (inode.fd(), XattrFlags::empty(), inode.reach == Reach::Path);
    let done = as_root(|_| match (kept.is_empty(), path) {
        (true, true) => removexattr(own_path(fd), NAME),
        (true, false) => fremovexattr(fd, NAME),
        (false, true) => setxattr(own_path(fd), NAME, &kept.write(), flags),
        (false, false) => fsetxattr(fd, NAME, &kept.write(), flags),
    })?;
    match done {
        Err(Errno::NODATA) if kept.is_empty() => Ok(()),
        done => done.map_err(fs_error),
    }
}

impl Inode {
    pub(super) fn extras(&self) -> &Extras {
        self.extras.get_or_init(Box::default)
    }

    /// The attributes, the count of changes, and the rest that is in `own`.
    fn detailed(&self, own: Own) -> FsResult<(Attr, Details)> {
        let (attr, change) = self.attrs.counted(&self.fd)?;
        Ok((attr, Details { birth: own.birth, dos: own.dos, change }))
    }
}

/// The details of an object whose lock the caller holds.
fn own(volume: &Volume, inode: &Inode, lock: &mut Guard<'_, Option<Known>>) -> FsResult<Own> {
    if let Some(known) = **lock {
        return Ok(known.own);
    }
    let epoch = volume.switch.epoch();
    let natural = Own::natural(inode.fd(), &inode.attr()?)?;
    let plain = !has_attributes(inode.kind) || inode.plain.holds_in(epoch);
    let own =
        if plain { natural } else { natural.with(read(inode.fd(), inode.reach, inode.fileid)?) };
    **lock = epoch.is_on().then_some(Known { epoch, own });
    Ok(own)
}

/// Takes the lock of an object's details. What belongs to an earlier epoch of the cache is
/// forgotten.
fn lock<'a>(volume: &Volume, inode: &'a Inode, waiting: Waiting) -> Step<Guard<'a, Option<Known>>> {
    let extras = inode.extras();
    let mut lock = match extras.own.try_lock() {
        Some(lock) => lock,
        None => {
            waiting.or_stop()?;
            extras.own.lock()
        }
    };
    let epoch = volume.switch.epoch();
    *lock = lock.filter(|known| known.epoch == epoch);
    Ok(lock)
}

impl Volume {
    /// Attributes and details of an object. May wait for the disk where nobody has asked before and
    /// the object was not made just now.
    pub(super) fn details_of(&self, inode: &Inode, waiting: Waiting) -> Step<(Attr, Details)> {
        let mut lock = lock(self, inode, waiting)?;
        let plain = || inode.plain.holds_in(self.switch.epoch());
        if lock.is_none() && has_attributes(inode.kind) && !plain() {
            waiting.or_stop()?;
        }
        let own = own(self, inode, &mut lock)?;
        drop(lock);
        Ok(inode.detailed(own)?)
    }

    /// The details of an object that is open by path only, and held by nobody.
    pub(super) fn details_of_found(&self, fd: BorrowedFd<'_>, attr: &Attr) -> FsResult<Details> {
        let natural = Own::natural(fd, attr)?;
        let set = has_attributes(attr.kind);
        let own = if set { natural.with(read(fd, Reach::Path, attr.fileid)?) } else { natural };
        let change = self.table.count_of(attr);
        Ok(Details { birth: own.birth, dos: own.dos, change })
    }
}

impl LocalStore {
    pub(super) async fn details(&self, inode: &Arc<Inode>) -> FsResult<(Attr, Details)> {
        match self.0.details_of(inode, Waiting::Never) {
            Ok(details) => Ok(details),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::WouldWait) => {
                let own = Arc::clone(inode);
                let ask = move |volume: &Volume| volume.details_of(&own, Waiting::Allowed);
                self.pooled(move |volume| ask(volume).map_err(Stop::error)).await
            }
        }
    }

    pub(super) async fn set_details(
        &self,
        inode: &Arc<Inode>,
        set: &SetDetails,
        cred: &Credentials,
    ) -> FsResult<(Attr, Details)> {
        let done = match self.inline(|v, w| set_details(v, inode, set, cred, w)) {
            Some(done) => done?,
            None => {
                let (own, set, cred) = (Arc::clone(inode), *set, cred.clone());
                self.pooled_change(move |v, w| set_details(v, &own, &set, &cred, w)).await?
            }
        };
        if self.2 == Durability::Power {
            self.settle(inode, Extent::All).await?;
        }
        Ok(done)
    }
}

fn set_details(
    volume: &Volume,
    inode: &Inode,
    set: &SetDetails,
    cred: &Credentials,
    waiting: Waiting,
) -> Step<(Attr, Details)> {
    if !has_attributes(inode.kind) {
        return Err(FsError::NotSupported.into());
    }
    let attr = inode.attr()?;
    if !inode.may_change(&attr, cred)? {
        return Err(FsError::AccessDenied.into());
    }
    let epoch = volume.switch.epoch();
    let mut lock = lock(volume, inode, waiting)?;
    if lock.is_none() && !inode.plain.holds_in(epoch) {
        waiting.or_stop()?;
    }
    let before = own(volume, inode, &mut lock)?;
    let (birth, dos) = (set.birth.unwrap_or(before.birth), set.dos.unwrap_or(before.dos));
    let wanted = Own { birth, dos };
    if wanted != before {
        let natural = Own::natural(inode.fd(), &attr)?;
        let mutation = inode.begin();
        inode.plain.forget();
        // Whatever comes of it, the kernel is asked next time.
        *lock = None;
        write(inode, wanted.beside(natural))?;
        *lock = epoch.is_on().then_some(Known { epoch, own: wanted });
        inode.end(mutation)?;
    }
    drop(lock);
    Ok(inode.detailed(wanted)?)
}
