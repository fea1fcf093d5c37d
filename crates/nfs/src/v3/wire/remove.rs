//! REMOVE (RFC 1813 §3.3.12).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `REMOVE3args`.
    pub struct RemoveArgs<'a> {
        /// The name to remove.
        pub object: DirOpArgs3<'a>,
    }
}

/// `REMOVE3res`: the directory around the operation, either way.
pub type RemoveRes = Res<WccData, WccData>;
