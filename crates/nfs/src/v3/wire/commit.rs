//! COMMIT (RFC 1813 §3.3.21).

use super::{FileHandle3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `COMMIT3args`.
    pub struct CommitArgs<'a> {
        /// The file.
        pub file: FileHandle3<'a>,
        /// Where the data to make safe starts, in bytes.
        pub offset: u64,
        /// How many bytes; 0 is all from there on.
        pub count: u32,
    }
}

xdr_struct! {
    /// `COMMIT3resok`.
    pub struct CommitOk {
        /// The file around the operation.
        pub file_wcc: WccData,
        /// To be compared with that of the WRITEs before.
        pub verifier: [u8; 8],
    }
}

/// `COMMIT3res`; a failure gives the file around the operation.
pub type CommitRes = Res<CommitOk, WccData>;
