//! COMMIT (RFC 1813 §3.3.21).

use super::{FileHandle3, Res, WccData};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `COMMIT3args`.
    pub struct CommitArgs<'a> {
        /// The file.
        pub file: FileHandle3<'a>,
        /// Offset of the data to make safe, in bytes.
        pub offset: u64,
        /// The number of bytes; 0 is all from there on.
        pub count: u32,
    }
}

xdr_struct! {
    /// `COMMIT3resok`.
    pub struct CommitOk {
        /// The file around the operation.
        pub file_wcc: WccData,
        /// The write verifier, to be compared with that of the WRITEs before.
        pub verifier: [u8; 8],
    }
}

/// `COMMIT3res`; a failure gives the file around the operation.
pub type CommitRes = Res<CommitOk, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            CommitArgs { file: fh(), offset: 4096, count: 77 },
            theirs::COMMIT3args { file: other::fh(), offset: 4096, count: 77 },
            [FH, "0000000000001000 0000004d"]
        );
    }

    #[test]
    fn results() {
        check!(
            CommitRes::Ok(CommitOk { file_wcc: wcc(), verifier: VERIFIER }),
            theirs::COMMIT3res::Ok(theirs::COMMIT3resok {
                file_wcc: other::wcc(),
                verf: theirs::writeverf3(VERIFIER)
            }),
            ["00000000", WCC, VERF]
        );
        check!(
            CommitRes::Fail(Status::IO, wcc()),
            theirs::COMMIT3res::Err((
                theirs::nfsstat3::NFS3ERR_IO,
                theirs::COMMIT3resfail { file_wcc: other::wcc() }
            )),
            ["00000005", WCC]
        );
    }
}
