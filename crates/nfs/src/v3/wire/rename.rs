//! RENAME (RFC 1813 §3.3.14).

use super::{DirOpArgs3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `RENAME3args`.
    pub struct RenameArgs<'a> {
        /// The present name.
        pub from: DirOpArgs3<'a>,
        /// The name to be.
        pub to: DirOpArgs3<'a>,
    }
}

xdr_struct! {
    /// `RENAME3resok` and `RENAME3resfail`, which are the same.
    pub struct RenameWcc {
        /// The directory of the old name around the operation.
        pub from_dir_wcc: WccData,
        /// The directory of the new name around the operation.
        pub to_dir_wcc: WccData,
    }
}

/// `RENAME3res`: both directories around the operation, either way.
pub type RenameRes = Res<RenameWcc, RenameWcc>;
