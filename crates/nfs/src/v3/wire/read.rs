//! READ (RFC 1813 §3.3.6).

use super::{Fattr3, FileHandle3, Res, Status};
use crate::xdr::{Writer, xdr_struct};

xdr_struct! {
    /// `READ3args`.
    pub struct ReadArgs<'a> {
        /// The file.
        pub file: FileHandle3<'a>,
        /// The offset, in bytes.
        pub offset: u64,
        /// The most bytes to read.
        pub count: u32,
    }
}

xdr_struct! {
    /// `READ3resok`.
    pub struct ReadOk<'a> {
        /// The file's attributes.
        pub attributes: Option<Fattr3>,
        /// The number of bytes read.
        pub count: u32,
        /// Does the data end at or after the end of the file?
        pub eof: bool,
        /// The data.
        pub data: &'a [u8],
    }
}

/// `READ3res`; a failure gives the file's attributes.
pub type ReadRes<'a> = Res<ReadOk<'a>, Option<Fattr3>>;

/// Status, attributes with their flag, count, end-of-file flag, length of the data.
const HEAD_BYTES: usize = 4 + 4 + Fattr3::BYTES + 4 + 4 + 4;
const ATTRIBUTES_AT: usize = 8;
const COUNT_AT: usize = ATTRIBUTES_AT + Fattr3::BYTES;

/// A successful READ result whose data the store appends to the reply itself: room for the head
/// is made first and filled in when the store has said how much there was.
#[derive(Clone, Copy, Debug)]
#[must_use = "the head is blank until `finish`"]
pub struct ReadReply {
    head: usize,
}

impl ReadReply {
    /// Makes room for the head. Data belongs right after it.
    #[inline]
    pub fn begin(out: &mut Writer) -> Self {
        let head = out.position();
        out.bytes(&[0; HEAD_BYTES]);
        Self { head }
    }

    /// Fills the head in and pads the data: everything that was appended since
    /// [`ReadReply::begin`]. Gives the number of bytes of it.
    #[inline]
    pub fn finish(self, out: &mut Writer, attributes: &Fattr3, eof: bool) -> u32 {
        let data = out.position().saturating_sub(self.head).saturating_sub(HEAD_BYTES);
        let count = u32::try_from(data).unwrap_or(u32::MAX);
        let mut head = [0; HEAD_BYTES];
        head[0..4].copy_from_slice(&Status::OK.0.to_be_bytes());
        head[4..ATTRIBUTES_AT].copy_from_slice(&1u32.to_be_bytes());
        head[ATTRIBUTES_AT..COUNT_AT].copy_from_slice(&attributes.to_block());
        head[COUNT_AT..COUNT_AT + 4].copy_from_slice(&count.to_be_bytes());
        head[COUNT_AT + 4..COUNT_AT + 8].copy_from_slice(&u32::from(eof).to_be_bytes());
        head[COUNT_AT + 8..HEAD_BYTES].copy_from_slice(&count.to_be_bytes());
        out.patch(self.head, &head);
        out.pad(data);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            ReadArgs { file: fh(), offset: 0x1_0000_0002, count: 8192 },
            theirs::READ3args { file: other::fh(), offset: 0x1_0000_0002, count: 8192 },
            [FH, "0000000100000002 00002000"]
        );
    }

    #[test]
    fn results() {
        check!(
            ReadRes::Ok(ReadOk { attributes: Some(fattr()), count: 5, eof: true, data: b"hello" }),
            theirs::READ3res::Ok(theirs::READ3resok {
                file_attributes: other::post_op(),
                count: 5,
                eof: true,
                data: nfs3_types::xdr_codec::Opaque::borrowed(b"hello")
            }),
            ["00000000", SOME, FATTR, "00000005 00000001 00000005 68656c6c6f 000000"]
        );
        check!(
            ReadRes::Fail(Status::IO, Some(fattr())),
            theirs::READ3res::Err((
                theirs::nfsstat3::NFS3ERR_IO,
                theirs::READ3resfail { file_attributes: other::post_op() }
            )),
            ["00000005", SOME, FATTR]
        );
    }

    #[test]
    fn a_reply_around_data_is_the_same_as_one_encoded_whole() {
        for len in 0..9u8 {
            let data: Vec<u8> = (0..len).collect();
            let mut out = Writer::new(alloc::vec![7; 3]);
            let reply = ReadReply::begin(&mut out);
            let mut vec = out.into_vec();
            vec.extend_from_slice(&data);
            let mut out = Writer::new(vec);
            assert_eq!(reply.finish(&mut out, &fattr(), len == 3), u32::from(len));
            let whole = ReadRes::Ok(ReadOk {
                attributes: Some(fattr()),
                count: len.into(),
                eof: len == 3,
                data: &data,
            });
            assert_eq!(out.into_vec(), [alloc::vec![7; 3], encoded(&whole)].concat());
        }
    }
}
