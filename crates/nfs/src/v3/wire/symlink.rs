//! SYMLINK (RFC 1813 §3.3.10).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `SYMLINK3args`, with `symlinkdata3` in place.
    pub struct SymlinkArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The new link's attributes.
        pub attributes: Sattr3,
        /// The target.
        pub data: &'a [u8],
    }
}

/// `SYMLINK3res`; a failure gives the directory around the operation.
pub type SymlinkRes<'a> = Res<NewObject<'a>, WccData>;
