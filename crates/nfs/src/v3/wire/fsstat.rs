//! FSSTAT (RFC 1813 §3.3.18).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `FSSTAT3args`.
    pub struct FsStatArgs<'a> {
        /// An object in the file system.
        pub root: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `FSSTAT3resok`.
    pub struct FsStatOk {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// Size of the file system, in bytes.
        pub total_bytes: u64,
        /// Bytes not in use.
        pub free_bytes: u64,
        /// Bytes not in use that the caller may have.
        pub available_bytes: u64,
        /// File slots in all.
        pub total_files: u64,
        /// File slots not in use.
        pub free_files: u64,
        /// File slots not in use that the caller may have.
        pub available_files: u64,
        /// For how many seconds the figures are not expected to change; 0 if unknown.
        pub invarsec: u32,
    }
}

/// `FSSTAT3res`; a failure gives the object's attributes.
pub type FsStatRes = Res<FsStatOk, Option<Fattr3>>;
