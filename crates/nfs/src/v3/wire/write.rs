//! WRITE (RFC 1813 §3.3.7).

use super::{FileHandle3, Res, WccData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};
use weir_core::store::Stability;

/// The stability that data needs, or has (`stable_how`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum StableHow {
    /// UNSTABLE: the server need not have it on stable storage.
    Unstable = 0,
    /// DATA_SYNC: the data, and the metadata needed to find it.
    DataSync = 1,
    /// FILE_SYNC: data and metadata.
    FileSync = 2,
}

impl Decode<'_> for StableHow {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self::Unstable),
            1 => Ok(Self::DataSync),
            2 => Ok(Self::FileSync),
            value => Err(XdrError::BadDiscriminant { what: "stable_how", value }),
        }
    }
}

impl Encode for StableHow {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.u32(*self as u32);
    }
}

impl From<StableHow> for Stability {
    #[inline]
    fn from(stable: StableHow) -> Self {
        match stable {
            StableHow::Unstable => Self::Unstable,
            StableHow::DataSync => Self::DataSync,
            StableHow::FileSync => Self::FileSync,
        }
    }
}

impl From<Stability> for StableHow {
    #[inline]
    fn from(stability: Stability) -> Self {
        match stability {
            Stability::Unstable => Self::Unstable,
            Stability::DataSync => Self::DataSync,
            Stability::FileSync => Self::FileSync,
        }
    }
}

xdr_struct! {
    /// `WRITE3args`.
    pub struct WriteArgs<'a> {
        /// The file.
        pub file: FileHandle3<'a>,
        /// The offset, in bytes.
        pub offset: u64,
        /// The number of bytes to write; a server checks that they are there.
        pub count: u32,
        /// The stability that the data needs when the call is answered.
        pub stable: StableHow,
        /// The data.
        pub data: &'a [u8],
    }
}

xdr_struct! {
    /// `WRITE3args` up to and with the length of the data: what a sender puts in front of data
    /// (and its padding) that it gathers from elsewhere.
    pub struct WriteHead<'a> {
        /// The file.
        pub file: FileHandle3<'a>,
        /// The offset, in bytes.
        pub offset: u64,
        /// The number of bytes to write.
        pub count: u32,
        /// The stability that the data needs when the call is answered.
        pub stable: StableHow,
        /// Length of the data that follows, in bytes, without padding.
        pub data_len: u32,
    }
}

xdr_struct! {
    /// `WRITE3resok`.
    pub struct WriteOk {
        /// The file around the operation.
        pub file_wcc: WccData,
        /// The number of bytes written.
        pub count: u32,
        /// The stability of these bytes.
        pub committed: StableHow,
        /// Changes whenever data that was not committed may have been lost.
        pub verifier: [u8; 8],
    }
}

/// `WRITE3res`; a failure gives the file around the operation.
pub type WriteRes = Res<WriteOk, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            WriteArgs {
                file: fh(),
                offset: 4096,
                count: 3,
                stable: StableHow::DataSync,
                data: b"abc"
            },
            theirs::WRITE3args {
                file: other::fh(),
                offset: 4096,
                count: 3,
                stable: theirs::stable_how::DATA_SYNC,
                data: nfs3_types::xdr_codec::Opaque::borrowed(b"abc")
            },
            [FH, "0000000000001000 00000003 00000001 00000003 616263 00"]
        );
    }

    #[test]
    fn results() {
        check!(
            WriteRes::Ok(WriteOk {
                file_wcc: wcc(),
                count: 3,
                committed: StableHow::FileSync,
                verifier: VERIFIER
            }),
            theirs::WRITE3res::Ok(theirs::WRITE3resok {
                file_wcc: other::wcc(),
                count: 3,
                committed: theirs::stable_how::FILE_SYNC,
                verf: theirs::writeverf3(VERIFIER)
            }),
            ["00000000", WCC, "00000003 00000002", VERF]
        );
        check!(
            WriteRes::Fail(Status::DQUOT, wcc()),
            theirs::WRITE3res::Err((
                theirs::nfsstat3::NFS3ERR_DQUOT,
                theirs::WRITE3resfail { file_wcc: other::wcc() }
            )),
            ["00000045", WCC]
        );
    }

    #[test]
    fn the_head_is_the_front_of_the_whole() {
        let (file, offset, stable) = (fh(), 9, StableHow::Unstable);
        let whole = WriteArgs { file, offset, count: 4, stable, data: b"data" };
        let head = WriteHead { file, offset, count: 4, stable, data_len: 4 };
        assert_eq!([encoded(&head), b"data".to_vec()].concat(), encoded(&whole));
    }

    #[test]
    fn an_unknown_stability_is_named() {
        let bytes = hex(&[FH, "0000000000000000 00000000 00000003 00000000"]);
        let error = XdrError::BadDiscriminant { what: "stable_how", value: 3 };
        assert_eq!(crate::xdr::decode::<WriteArgs<'_>>(&bytes), Err(error));
    }
}
