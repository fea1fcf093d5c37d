//! Renames that replace an object which keeps other names.
//!
//! When such a rename is in the journal of the metadata server, libcephfs 16 makes a negative
//! dentry of every cached name of the object (`Client::put_request`, `_try_to_trim_inode`), and
//! answers from it that there is no such name. Another session carries out the rename, because its
//! cache does not have these names. The volume's own session learns of it from the metadata server.

use super::create::Place;
use super::volume::{Volume, c_name};
use super::{attrs, error::fs_error};
use rustix::io::Errno;
use weir_core::attr::SetTime;
use weir_core::{Attr, Credentials, FileKind, FsResult, SetAttr};

/// Does an object with these attributes keep names when it loses one?
pub(super) fn keeps_names(attr: &Attr) -> bool {
    attr.kind != FileKind::Directory && attr.nlink > 1
}

/// Renames in the other session. Afterwards the rename is stable.
pub(super) fn rename(
    volume: &Volume,
    (from, to): (Place<'_>, Place<'_>),
    cred: &Credentials,
) -> FsResult<()> {
    let (own, other) = (volume.mount(), volume.other_mount());
    // Until they are stable, changes of one session delay those of another for seconds.
    for (dir, _) in [from, to] {
        own.sync_inode(dir.inode()).map_err(fs_error)?;
    }
    let from_dir = other.by_number(from.0.ino).map_err(fs_error)?;
    let to_dir = other.by_number(to.0.ino).map_err(fs_error)?;
    let (old, new) = (c_name(from.1.as_bytes())?, c_name(to.1.as_bytes())?);
    let perm = other.identity(cred).map_err(fs_error)?;
    let rename = || other.rename((&from_dir, &old), (&to_dir, &new), &perm);
    let renamed = match rename() {
        // An earlier rename may have left a negative dentry in this session. A change of the
        // directory by another session removes it; the rename changes the same time.
        Err(Errno::NOENT) => {
            let now = SetAttr { mtime: SetTime::ServerNow, ..SetAttr::default() };
            let (values, mask) = attrs::to_set(&now);
            own.setattr(from.0.inode(), values, mask, None).map_err(fs_error)?;
            rename()
        }
        renamed => renamed,
    };
    renamed.map_err(fs_error)?;
    for dir in [&from_dir, &to_dir] {
        other.sync_inode(dir).map_err(fs_error)?;
    }
    Ok(())
}
