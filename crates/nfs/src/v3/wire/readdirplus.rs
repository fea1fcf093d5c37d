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
        /// The entry's name.
        pub name: &'a [u8],
        /// Continues after this entry.
        pub cookie: u64,
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// The entry's handle.
        pub handle: Option<FileHandle3<'a>>,
    }
}

xdr_struct! {
    /// `READDIRPLUS3resok`, with `dirlistplus3` in place. A server writes it by
    /// [`ListWriter`](super::ListWriter).
    pub struct ReaddirplusOk<'a> {
        /// The directory's attributes.
        pub dir_attributes: Option<Fattr3>,
        /// The verifier to send with the cookies of this result.
        pub cookie_verifier: [u8; 8],
        /// The entries.
        pub entries: List<'a, EntryPlus3<'a>>,
        /// Was the last entry the directory's last?
        pub eof: bool,
    }
}

/// `READDIRPLUS3res`; a failure gives the directory's attributes.
pub type ReaddirplusRes<'a> = Res<ReaddirplusOk<'a>, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            ReaddirplusArgs {
                dir: fh(),
                cookie: 9,
                cookie_verifier: VERIFIER,
                dir_count: 512,
                max_count: 4096
            },
            theirs::READDIRPLUS3args {
                dir: other::fh(),
                cookie: 9,
                cookieverf: theirs::cookieverf3(VERIFIER),
                dircount: 512,
                maxcount: 4096
            },
            [FH, "0000000000000009", VERF, "00000200 00001000"]
        );
    }

    #[test]
    fn results() {
        let parts = [
            "00000001 0000000000000007 00000001 61 000000 0000000000000008",
            SOME,
            FATTR,
            SOME,
            FH,
            "00000001 0000000000000009 00000002 6262 0000 000000000000000a",
            NONE,
            NONE,
            "00000000",
        ];
        let list = hex(&parts);
        let entries = crate::xdr::decode::<List<'_, EntryPlus3<'_>>>(&list).unwrap();
        let full = EntryPlus3 {
            fileid: 7,
            name: b"a",
            cookie: 8,
            attributes: Some(fattr()),
            handle: Some(fh()),
        };
        let bare =
            EntryPlus3 { fileid: 9, name: b"bb", cookie: 10, attributes: None, handle: None };
        assert!(entries.iter().eq([full, bare]));
        let other = [
            theirs::entryplus3 {
                fileid: 7,
                name: (&b"a"[..]).into(),
                cookie: 8,
                name_attributes: other::post_op(),
                name_handle: theirs::Nfs3Option::Some(other::fh()),
            },
            theirs::entryplus3 {
                fileid: 9,
                name: (&b"bb"[..]).into(),
                cookie: 10,
                name_attributes: theirs::Nfs3Option::None,
                name_handle: theirs::Nfs3Option::None,
            },
        ];
        let (dir_attributes, cookie_verifier) = (None, VERIFIER);
        check!(
            ReaddirplusRes::Ok(ReaddirplusOk {
                dir_attributes,
                cookie_verifier,
                entries,
                eof: false
            }),
            theirs::READDIRPLUS3res::Ok(theirs::READDIRPLUS3resok {
                dir_attributes: theirs::Nfs3Option::None,
                cookieverf: theirs::cookieverf3(VERIFIER),
                reply: theirs::dirlistplus3 {
                    entries: nfs3_types::xdr_codec::List(other.into()),
                    eof: false
                },
            }),
            [&["00000000", NONE, VERF], &parts[..], &["00000000"]].concat()
        );
        check!(
            ReaddirplusRes::Fail(Status::TOOSMALL, Some(fattr())),
            theirs::READDIRPLUS3res::Err((
                theirs::nfsstat3::NFS3ERR_TOOSMALL,
                theirs::READDIRPLUS3resfail { dir_attributes: other::post_op() }
            )),
            ["00002715", SOME, FATTR]
        );
    }
}
