//! READLINK (RFC 1813 §3.3.5).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `READLINK3args`.
    pub struct ReadlinkArgs<'a> {
        /// The symbolic link.
        pub symlink: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `READLINK3resok`.
    pub struct ReadlinkOk<'a> {
        /// The link's attributes.
        pub attributes: Option<Fattr3>,
        /// Its target.
        pub data: &'a [u8],
    }
}

/// `READLINK3res`; a failure gives the object's attributes.
pub type ReadlinkRes<'a> = Res<ReadlinkOk<'a>, Option<Fattr3>>;
