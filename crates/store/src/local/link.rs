//! LINK.

use super::calls::{NameChange, Place};
use super::commit::Extent;
use super::inode::Inode;
use super::lookup::OwnName;
use super::volume::{Step, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::creds::as_caller;
use crate::error::fs_error;
use crate::sync::Arc;
use crate::sys::own_descriptors;
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, linkat, statat};
use rustix::io::Errno;
use weir_core::attr::Change;
use weir_core::{Attr, CallId, Credentials, FileKind, FsError, FsResult, Name};

impl LocalStore {
    pub(super) async fn link(
        &self,
        object: &Arc<Inode>,
        dir: &Arc<Inode>,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Attr, Change)> {
        let at = Place { dir: dir.key, name: name.as_bytes() };
        let taken = self.0.names.get(dir, name).is_some();
        let change = NameChange::Link { at, object: object.key };
        self.foresee((!taken).then_some(change)).await?;
        let call = self.1;
        let by = (cred, call.as_ref());
        let done =
            match self.inline_in_turn(dir, |volume, w| link(volume, object, (dir, name), by, w)) {
                Some(done) => done,
                None => {
                    let (object, own) = (Arc::clone(object), Arc::clone(dir));
                    let (name, cred) = (OwnName::from(name), cred.clone());
                    self.pooled_change_in_turn(dir, move |volume, waiting| {
                        link(volume, &object, (&own, name.get()?), (&cred, call.as_ref()), waiting)
                    })
                    .await
                }
            };
        let done = self.ended(done)?;
        if self.2 == Durability::Power {
            self.settle(dir, Extent::All).await?;
            self.settled();
        }
        Ok(done)
    }
}

fn link(
    volume: &Volume,
    object: &Arc<Inode>,
    (dir, name): (&Inode, Name<'_>),
    (cred, call): (&Credentials, Option<&CallId>),
    waiting: Waiting,
) -> Step<(Attr, Change)> {
    if object.kind == FileKind::Directory {
        return Err(FsError::IsDirectory.into());
    }
    let mut lock = volume.lock_names(dir, waiting)?;
    if name.is_special() {
        return Err(FsError::Exists.into());
    }
    volume.mend(object, waiting)?;
    let books = volume.usage.books();
    volume.moving(&books, object, waiting)?;
    // A name that leads to the object already would be taken for one that this call has made.
    let free = || statat(&dir.fd, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).is_err();
    let call = if call.is_some() && as_caller(cred, |_| free())? { call } else { None };
    let at = Place { dir: dir.key, name: name.as_bytes() };
    volume.intend(call, &NameChange::Link { at, object: object.key }, waiting)?;
    let (dir_mutation, mutation) = (dir.begin(), object.begin());
    // AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH, which the caller's identity doesn't have; the
    // process's own descriptors can be followed by any of its threads.
    let (descriptors, number) = (own_descriptors()?, object.fd.as_raw_fd().to_string());
    let flags = AtFlags::SYMLINK_FOLLOW;
    as_caller(cred, |_| linkat(descriptors, number, &dir.fd, name.as_bytes(), flags))?
        .map_err(|errno| match errno {
            // The object's last name, or the directory, is gone.
            Errno::NOENT => FsError::Stale,
            other => fs_error(other),
        })
        .inspect_err(|_| volume.calls.void(call))?;
    volume.calls.acted(call, None);
    volume.names.replace(dir, name, object, &mut lock);
    let attr = object.end(mutation)?.after.ok_or(FsError::Io)?;
    Ok((attr, dir.end(dir_mutation)?))
}
