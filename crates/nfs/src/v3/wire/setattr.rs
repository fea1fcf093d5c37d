//! SETATTR (RFC 1813 §3.3.2).

use super::{FileHandle3, NfsTime3, Res, Sattr3, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `SETATTR3args`.
    pub struct SetattrArgs<'a> {
        /// The object.
        pub object: FileHandle3<'a>,
        /// What to set.
        pub new_attributes: Sattr3,
        /// `sattrguard3`: set only if the object's ctime is this.
        pub guard: Option<NfsTime3>,
    }
}

/// `SETATTR3res`: the object around the operation, either way.
pub type SetattrRes = Res<WccData, WccData>;
