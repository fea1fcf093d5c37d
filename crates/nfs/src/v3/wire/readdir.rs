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
        /// The entry's name.
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
        /// The verifier to send with the cookies of this result.
        pub cookie_verifier: [u8; 8],
        /// The entries.
        pub entries: List<'a, Entry3<'a>>,
        /// Was the last entry the directory's last?
        pub eof: bool,
    }
}

/// `READDIR3res`; a failure gives the directory's attributes.
pub type ReaddirRes<'a> = Res<ReaddirOk<'a>, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::*;
    use crate::v3::wire::{ListWriter, Status};
    use crate::xdr::Writer;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            ReaddirArgs { dir: fh(), cookie: 9, cookie_verifier: VERIFIER, count: 4096 },
            theirs::READDIR3args {
                dir: other::fh(),
                cookie: 9,
                cookieverf: theirs::cookieverf3(VERIFIER),
                count: 4096
            },
            [FH, "0000000000000009", VERF, "00001000"]
        );
    }

    const LIST: &str = "00000001 0000000000000007 00000001 61 000000 0000000000000008
        00000001 0000000000000009 00000002 6262 0000 000000000000000a 00000000";

    fn entries() -> [Entry3<'static>; 2] {
        [Entry3 { fileid: 7, name: b"a", cookie: 8 }, Entry3 { fileid: 9, name: b"bb", cookie: 10 }]
    }

    #[test]
    fn results() {
        let list = hex(&[LIST]);
        let entries = crate::xdr::decode::<List<'_, Entry3<'_>>>(&list).unwrap();
        assert!(entries.iter().eq(self::entries()));
        let other = self::entries().map(|entry| theirs::entry3 {
            fileid: entry.fileid,
            name: entry.name.into(),
            cookie: entry.cookie,
        });
        let dir_attributes = Some(fattr());
        check!(
            ReaddirRes::Ok(ReaddirOk {
                dir_attributes,
                cookie_verifier: VERIFIER,
                entries,
                eof: true
            }),
            theirs::READDIR3res::Ok(theirs::READDIR3resok {
                dir_attributes: other::post_op(),
                cookieverf: theirs::cookieverf3(VERIFIER),
                reply: theirs::dirlist3 {
                    entries: nfs3_types::xdr_codec::List(other.into()),
                    eof: true
                },
            }),
            ["00000000", SOME, FATTR, VERF, LIST, "00000001"]
        );
        check!(
            ReaddirRes::Fail(Status::BAD_COOKIE, Some(fattr())),
            theirs::READDIR3res::Err((
                theirs::nfsstat3::NFS3ERR_BAD_COOKIE,
                theirs::READDIR3resfail { dir_attributes: other::post_op() }
            )),
            ["00002713", SOME, FATTR]
        );
    }

    #[test]
    fn the_writer_keeps_to_the_size_and_leaves_no_entry_half() {
        let whole = hex(&["00000000", SOME, FATTR, VERF, LIST, "00000001"]);
        for bytes_max in 0..whole.len() {
            let mut out = Writer::default();
            let mut list = ListWriter::begin(&mut out, Some(fattr()), VERIFIER, bytes_max);
            let pushed = entries().iter().take_while(|entry| list.push(*entry)).count();
            list.finish(pushed == 2);
            let bytes = out.into_vec();
            // The status is not part of READDIR3resok.
            assert_eq!(pushed == 2, bytes_max >= whole.len() - 4, "{bytes_max}");
            assert!(pushed == 0 || bytes.len() - 4 <= bytes_max, "{bytes_max}");
            let ReaddirRes::Ok(ok) = crate::xdr::decode(&bytes).unwrap() else {
                panic!("not a success")
            };
            assert!(ok.entries.iter().eq(entries().into_iter().take(pushed)));
            assert_eq!(ok.eof, pushed == 2);
        }
    }
}
