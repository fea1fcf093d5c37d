//! MKDIR (RFC 1813 §3.3.9).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `MKDIR3args`.
    pub struct MkdirArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The new directory's attributes.
        pub attributes: Sattr3,
    }
}

/// `MKDIR3res`; a failure gives the directory around the operation.
pub type MkdirRes<'a> = Res<NewObject<'a>, WccData>;
