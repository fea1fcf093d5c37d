//! The procedures of NFSACL, one file each.

mod getacl;
mod setacl;

pub(super) use getacl::getacl;
pub(super) use setacl::setacl;
