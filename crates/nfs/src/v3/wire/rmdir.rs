//! RMDIR (RFC 1813 §3.3.13).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `RMDIR3args`.
    pub struct RmdirArgs<'a> {
        /// The name to remove.
        pub object: DirOpArgs3<'a>,
    }
}

/// `RMDIR3res`: the directory around the operation, either way.
pub type RmdirRes = Res<WccData, WccData>;
