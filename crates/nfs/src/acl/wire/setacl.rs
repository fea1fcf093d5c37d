//! SETACL: sets an object's lists.

use super::list::{AclMask, SecAcl};
use crate::v3::wire::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `SETACL3args`.
    pub struct SetaclArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
        /// The lists that are set.
        pub mask: AclMask,
        /// The access list; without entries it is removed.
        pub access: SecAcl<'a>,
        /// The default list; without entries it is removed.
        pub default: SecAcl<'a>,
    }
}

/// `SETACL3res`: the object's attributes in any case.
pub type SetaclRes = Res<Option<Fattr3>, Option<Fattr3>>;
