//! LOOKUP (RFC 1813 §3.3.3).

use super::{DirOpArgs3, Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `LOOKUP3args`.
    pub struct LookupArgs<'a> {
        /// The name to look up.
        pub what: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `LOOKUP3resok`.
    pub struct LookupOk<'a> {
        /// The object found.
        pub object: FileHandle3<'a>,
        /// Its attributes.
        pub attributes: Option<Fattr3>,
        /// The directory's attributes.
        pub dir_attributes: Option<Fattr3>,
    }
}

/// `LOOKUP3res`; a failure gives the directory's attributes.
pub type LookupRes<'a> = Res<LookupOk<'a>, Option<Fattr3>>;
