//! MKDIR, SYMLINK and MKNOD.

use super::calls::{NameChange, Place};
use super::commit::Extent;
use super::inode::Inode;
use super::lookup::OwnName;
use super::names::Changes;
use super::remove::take_back;
use super::set_attr::set_made;
use super::volume::{Step, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::creds::{as_caller, as_root};
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{Dev, FileType, Mode, fchmod, makedev, mkdirat, mknodat, symlinkat};
use rustix::io::Errno;
use weir_core::limits::SYMLINK_BYTES_MAX;
use weir_core::store::{Made, MakeKind};
use weir_core::{CallId, Credentials, DeviceNumber, FileKind, FsError, FsResult, Name, SetAttr};

/// The mode of an object whose maker gave none.
const MODE_UNSET: u32 = 0;
/// The bits that `mkdir` ignores.
const SET_IDS: u32 = 0o6000;

impl LocalStore {
    pub(super) async fn make(
        &self,
        dir: &Arc<Inode>,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Made<Arc<Inode>>> {
        self.foresee_made(dir, name, is_whole(set)).await?;
        let call = self.1;
        let by = (cred, call.as_ref());
        let made = match self
            .inline_in_turn(dir, |volume, w| make(volume, (dir, name), kind, set, by, w))
        {
            Some(done) => done,
            None => {
                let (own, name) = (Arc::clone(dir), OwnName::from(name));
                let (kind, set, cred) = (kind.clone(), *set, cred.clone());
                self.pooled_change_in_turn(dir, move |volume, waiting| {
                    let by = (&cred, call.as_ref());
                    make(volume, (&own, name.get()?), &kind, &set, by, waiting)
                })
                .await
            }
        };
        let made = self.ended(made)?;
        if self.2 == Durability::Power {
            self.settle(&made.object, Extent::All).await?;
            self.settle(dir, Extent::All).await?;
            self.settled();
        }
        Ok(made)
    }

    /// Foresees that an object is made, unless its name is known to be taken.
    pub(super) async fn foresee_made(
        &self,
        dir: &Inode,
        name: Name<'_>,
        whole: bool,
    ) -> FsResult<()> {
        let taken = name.is_special() || self.0.names.get(dir, name).is_some();
        let at = Place { dir: dir.key, name: name.as_bytes() };
        self.foresee((!taken).then_some(NameChange::Make { at, whole })).await
    }
}

/// Has an object all of its attributes once it is made?
fn is_whole(set: &SetAttr) -> bool {
    let with_ids = set.mode.is_some_and(|mode| mode & SET_IDS != 0);
    !with_ids && SetAttr { mode: None, size: None, ..*set } == SetAttr::default()
}

fn make(
    volume: &Volume,
    (dir, name): (&Inode, Name<'_>),
    kind: &MakeKind,
    set: &SetAttr,
    (cred, call): (&Credentials, Option<&CallId>),
    waiting: Waiting,
) -> Step<Made<Arc<Inode>>> {
    let mut lock = volume.lock_names(dir, waiting)?;
    if name.is_special() {
        return Err(FsError::Exists.into());
    }
    let at = Place { dir: dir.key, name: name.as_bytes() };
    volume.intend(call, &NameChange::Make { at, whole: is_whole(set) }, waiting)?;
    let mutation = dir.begin();
    let object = make_object(volume, (dir, name), kind, set, cred, &mut lock)
        .inspect_err(|_| volume.calls.void(call))?;
    volume.calls.acted(call, Some(object.key));
    let attr = object.attr()?;
    Ok(Made { object, attr, dir: dir.end(mutation)? })
}

/// Makes an object with all of its attributes, or none.
fn make_object(
    volume: &Volume,
    (dir, name): (&Inode, Name<'_>),
    kind: &MakeKind,
    set: &SetAttr,
    cred: &Credentials,
    lock: &mut Changes,
) -> FsResult<Arc<Inode>> {
    as_caller(cred, |_| make_name(dir, name, kind, set))??;
    let object = volume.open_name(dir, name).inspect_err(|_| {
        take_back(dir, name, *kind == MakeKind::Directory);
    })?;
    volume.names.replace(dir, name, &object, lock);
    let rest = SetAttr { mode: None, size: None, ..*set };
    if let Err(error) = set_ids(&object, set).and_then(|()| set_made(volume, &object, &rest, cred))
    {
        volume.unmake(dir, name, &object, lock);
        return Err(error);
    }
    Ok(object)
}

/// Gives a directory the set-id bits asked for, which `mkdir` ignores, beside the one it has
/// inherited. As root, because the kernel lets only members of the group keep that one; its maker
/// may have both, being the owner and, where nothing was inherited, of its group.
fn set_ids(object: &Inode, set: &SetAttr) -> FsResult<()> {
    let Some(mode) = set.mode.filter(|mode| mode & SET_IDS != 0) else { return Ok(()) };
    let inherited = object.attr()?.mode & SET_IDS;
    if object.kind != FileKind::Directory || mode & SET_IDS & !inherited == 0 {
        return Ok(());
    }
    let mut mutation = object.begin();
    let found = mutation.found(&object.fd)?;
    // The permission bits stay: they may be less than was asked for, by a default list.
    let mode = Mode::from_raw_mode(found.mode | mode & SET_IDS);
    as_root(|_| fchmod(&object.fd, mode))?.map_err(fs_error)?;
    object.end(mutation).map(drop)
}

fn make_name(dir: &Inode, name: Name<'_>, kind: &MakeKind, set: &SetAttr) -> FsResult<()> {
    let mode = Mode::from_raw_mode(set.mode.unwrap_or(MODE_UNSET) & 0o7777);
    let node = |kind, device: Dev| mknodat(&dir.fd, name.as_bytes(), kind, mode, device);
    let device = |number: &DeviceNumber| makedev(number.major, number.minor);
    let done = match kind {
        MakeKind::Directory => mkdirat(&dir.fd, name.as_bytes(), mode),
        MakeKind::Symlink(target) => {
            if target.len() > SYMLINK_BYTES_MAX {
                return Err(FsError::NameTooLong);
            }
            if target.is_empty() || target.contains(&0) {
                return Err(FsError::Invalid);
            }
            symlinkat(target.as_slice(), &dir.fd, name.as_bytes())
        }
        MakeKind::Fifo => node(FileType::Fifo, 0),
        MakeKind::Socket => node(FileType::Socket, 0),
        MakeKind::BlockDevice(number) => node(FileType::BlockDevice, device(number)),
        MakeKind::CharDevice(number) => node(FileType::CharacterDevice, device(number)),
    };
    done.map_err(|errno| match errno {
        // The directory itself is gone.
        Errno::NOENT => FsError::Stale,
        other => fs_error(other),
    })
}
