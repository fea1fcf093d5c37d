//! READDIR (RFC 1813 §3.3.16).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::{List, xdr_struct};

xdr_struct! {
    /// `READDIR3args`.
    pub struct ReaddirArgs<'a> {
        /// The directory.
        pub dir: FileHandle3<'a>,
        /// Continue after the entry with this cookie; 0 is the start.
        pub cookie: u64,
        /// The verifier that came with the cookie; zeros at the start.
        pub cookie_verifier: [u8; 8],
        /// Size of the whole `READDIR3resok` at most, in bytes.
        pub count: u32,
    }
}

xdr_struct! {
    /// One entry (`entry3`).
    pub struct Entry3<'a> {
        /// The object's file id.
        pub fileid: u64,
        /// Its name.
        pub name: &'a [u8],
        /// Continues after this entry.
        pub cookie: u64,
    }
}

xdr_struct! {
    /// `READDIR3resok`, with `dirlist3` in place. A server writes it by
    /// [`ListWriter`](super::ListWriter).
    pub struct ReaddirOk<'a> {
        /// The directory's attributes.
        pub dir_attributes: Option<Fattr3>,
        /// To be sent with the cookies of this result.
        pub cookie_verifier: [u8; 8],
        /// The entries.
        pub entries: List<'a, Entry3<'a>>,
        /// Was the last entry the directory's last?
        pub eof: bool,
    }
}

/// `READDIR3res`; a failure gives the directory's attributes.
pub type ReaddirRes<'a> = Res<ReaddirOk<'a>, Option<Fattr3>>;
