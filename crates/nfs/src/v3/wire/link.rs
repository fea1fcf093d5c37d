//! LINK (RFC 1813 §3.3.15).

use super::{DirOpArgs3, Fattr3, FileHandle3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `LINK3args`.
    pub struct LinkArgs<'a> {
        /// The object.
        pub file: FileHandle3<'a>,
        /// Its additional name.
        pub link: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `LINK3resok` and `LINK3resfail`, which are the same.
    pub struct LinkAttributes {
        /// The object's attributes.
        pub file_attributes: Option<Fattr3>,
        /// The directory around the operation.
        pub link_dir_wcc: WccData,
    }
}

/// `LINK3res`: the object and the directory around the operation, either way.
pub type LinkRes = Res<LinkAttributes, LinkAttributes>;
