//! Names from the wire (RFC 1813 §3.2, general comments on filenames).

use crate::v3::wire::Status;
use weir_core::Name;

/// A name to look for. An empty one is NFS3ERR_ACCES, as the RFC says; one with `/` or NUL, which
/// no object here can have, NFS3ERR_INVAL.
#[inline]
pub(super) fn existing(wire: &[u8]) -> Result<Name<'_>, Status> {
    if wire.is_empty() {
        return Err(Status::ACCES);
    }
    Ok(Name::new(wire)?)
}

/// A name to make: `.` and `..` are taken everywhere.
pub(super) fn new(wire: &[u8]) -> Result<Name<'_>, Status> {
    let name = existing(wire)?;
    if name.is_special() { Err(Status::EXIST) } else { Ok(name) }
}
