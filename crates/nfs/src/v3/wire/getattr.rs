//! GETATTR (RFC 1813 §3.3.1).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `GETATTR3args`.
    pub struct GetattrArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `GETATTR3resok`.
    pub struct GetattrOk {
        /// The object's attributes.
        pub attributes: Fattr3,
    }
}

/// `GETATTR3res`.
pub type GetattrRes = Res<GetattrOk, ()>;
