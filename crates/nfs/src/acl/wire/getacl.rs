//! GETACL: an object's lists.

use super::list::{AclMask, SecAcl};
use crate::v3::wire::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `GETACL3args`.
    pub struct GetaclArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
        /// The parts asked for.
        pub mask: AclMask,
    }
}

xdr_struct! {
    /// `GETACL3resok`.
    pub struct GetaclOk<'a> {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// The parts given.
        pub mask: AclMask,
        /// The access list.
        pub access: SecAcl<'a>,
        /// The default list.
        pub default: SecAcl<'a>,
    }
}

/// `GETACL3res`; a failure gives the object's attributes.
pub type GetaclRes<'a> = Res<GetaclOk<'a>, Option<Fattr3>>;
