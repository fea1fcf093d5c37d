//! The file beside a volume's files on CephFS by which its home hands it over to the next one. It
//! lies in the volume's directory, above the top, where no client comes, and goes with the tree
//! into another pool.
//!
//! Calls block. Not here: its content, and when it may be used.

use super::error::fs_error;
use super::places::{find, unless_missing};
use super::volume::CephOpenError;
use rustix::io::Errno;
use std::ffi::CStr;
use weir_ceph::{Called, Ceph};
use weir_core::{Credentials, FsError};

/// The name of the file.
pub(super) const HANDOVER: &CStr = c"handover";
/// Its mode: nobody but the gateways reads it.
const MODE: u32 = 0o600;

/// Removes what an earlier handover has left in the volume's directory `path`. Nothing that is not
/// there is missed.
///
/// # Errors
/// `Path`, `Call`, and then it may be there still.
pub fn clear_handover(ceph: &Ceph, path: &str) -> Result<(), CephOpenError> {
    let failed = failed("remove the file of an earlier move", path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(&failed)?;
    let mount = dealt.mount();
    let Some((.., directory)) = find(mount, path)? else { return Ok(()) };
    let remove = || {
        let root = mount.identity(&Credentials::ROOT)?;
        unless_missing(mount.remove(&directory, HANDOVER, false, &root))
    };
    remove().map_err(fs_error).map_err(failed)
}

/// Writes `content` for the next home of the volume in the directory `path`, from which what an
/// earlier handover has left was removed. It is on stable storage when this returns.
///
/// # Errors
/// `Path`, `Call`, and then a part of it may be there.
pub fn put_handover(ceph: &Ceph, path: &str, content: &[u8]) -> Result<(), CephOpenError> {
    let failed = failed("write the file for the next home", path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(&failed)?;
    let mount = dealt.mount();
    let (.., directory) = find(mount, path)?.ok_or(FsError::NotFound).map_err(&failed)?;
    let write = || {
        let root = mount.identity(&Credentials::ROOT)?;
        let (_inode, file) = mount.create(&directory, HANDOVER, MODE, &root)?;
        let mut rest = content;
        let mut offset = 0;
        while !rest.is_empty() {
            let written = mount.write(&file, offset, rest)?;
            rest = rest.get(written..).filter(|_| written > 0).ok_or(Errno::IO)?;
            offset += written as u64;
        }
        mount.fsync(&file)
    };
    write().map_err(fs_error).map_err(failed)
}

/// Takes the content of the file that the last home of the volume in the directory `path` has
/// written, at most `most` bytes of it. None if there is no file. It is there no more when this
/// returns `Ok`.
///
/// # Errors
/// `Path`, `Call`, and then it may be there still.
pub fn take_handover(
    ceph: &Ceph,
    path: &str,
    most: usize,
) -> Result<Option<Vec<u8>>, CephOpenError> {
    let failed = failed("take the file of the last home", path);
    let dealt = ceph.deal().ok_or(FsError::Busy).map_err(&failed)?;
    let mount = dealt.mount();
    let Some((.., directory)) = find(mount, path)? else { return Ok(None) };
    let take = || -> Called<Option<Vec<u8>>> {
        let inode = match mount.lookup(&directory, HANDOVER) {
            Ok((inode, _)) => inode,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        let file = mount.open(&inode, false)?;
        let mut content = Vec::new();
        while content.len() < most {
            let offset = content.len() as u64;
            if mount.read(&file, offset, most - content.len(), &mut content)? == 0 {
                break;
            }
        }
        drop(file);
        let root = mount.identity(&Credentials::ROOT)?;
        unless_missing(mount.remove(&directory, HANDOVER, false, &root))?;
        Ok(Some(content))
    };
    take().map_err(fs_error).map_err(failed)
}

fn failed(what: &'static str, path: &str) -> impl Fn(FsError) -> CephOpenError + use<> {
    let path = path.to_owned();
    move |error| CephOpenError::Call { what, path: path.clone(), error }
}
