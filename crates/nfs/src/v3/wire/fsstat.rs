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
        /// Seconds for which the figures are not expected to change; 0 if unknown.
        pub invarsec: u32,
    }
}

/// `FSSTAT3res`; a failure gives the object's attributes.
pub type FsStatRes = Res<FsStatOk, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(FsStatArgs { root: fh() }, theirs::FSSTAT3args { fsroot: other::fh() }, [FH]);
    }

    #[test]
    fn results() {
        check!(
            FsStatRes::Ok(FsStatOk {
                attributes: None,
                total_bytes: 1,
                free_bytes: 2,
                available_bytes: 3,
                total_files: 4,
                free_files: 5,
                available_files: 6,
                invarsec: 7
            }),
            theirs::FSSTAT3res::Ok(theirs::FSSTAT3resok {
                obj_attributes: theirs::Nfs3Option::None,
                tbytes: 1,
                fbytes: 2,
                abytes: 3,
                tfiles: 4,
                ffiles: 5,
                afiles: 6,
                invarsec: 7
            }),
            [
                "00000000",
                NONE,
                "0000000000000001 0000000000000002 0000000000000003 0000000000000004 0000000000000005 0000000000000006 00000007"
            ]
        );
        check!(
            FsStatRes::Fail(Status::SERVERFAULT, Some(fattr())),
            theirs::FSSTAT3res::Err((
                theirs::nfsstat3::NFS3ERR_SERVERFAULT,
                theirs::FSSTAT3resfail { obj_attributes: other::post_op() }
            )),
            ["00002716", SOME, FATTR]
        );
    }
}
