//! READDIRPLUS (RFC 1813 §3.3.17).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::{List, xdr_struct};

xdr_struct! {
    /// `READDIRPLUS3args`.
    pub struct ReaddirplusArgs<'a> {
        /// The directory.
        pub dir: FileHandle3<'a>,
        /// Continue after the entry with this cookie; 0 is the start.
        pub cookie: u64,
        /// The verifier that came with the cookie; zeros at the start.
        pub cookie_verifier: [u8; 8],
        /// Size of the file ids, names and cookies at most, in bytes; a hint.
        pub dir_count: u32,
        /// Size of the whole `READDIRPLUS3resok` at most, in bytes.
        pub max_count: u32,
    }
}

xdr_struct! {
    /// One entry (`entryplus3`).
    pub struct EntryPlus3<'a> {
        /// The object's file id.
        pub fileid: u64,
        /// Its name.
        pub name: &'a [u8],
        /// Continues after this entry.
        pub cookie: u64,
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// Its handle.
        pub handle: Option<FileHandle3<'a>>,
    }
}

xdr_struct! {
    /// `READDIRPLUS3resok`, with `dirlistplus3` in place. A server writes it by
    /// [`ListWriter`](super::ListWriter).
    pub struct ReaddirplusOk<'a> {
        /// The directory's attributes.
        pub dir_attributes: Option<Fattr3>,
        /// To be sent with the cookies of this result.
        pub cookie_verifier: [u8; 8],
        /// The entries.
        pub entries: List<'a, EntryPlus3<'a>>,
        /// Was the last entry the directory's last?
        pub eof: bool,
    }
}

/// `READDIRPLUS3res`; a failure gives the directory's attributes.
pub type ReaddirplusRes<'a> = Res<ReaddirplusOk<'a>, Option<Fattr3>>;
