//! FSINFO (RFC 1813 §3.3.19).

use super::{Fattr3, FileHandle3, NfsTime3, Res};
use crate::xdr::{xdr_bits, xdr_struct};

bitflags::bitflags! {
    /// The properties of a file system, as a bit mask. Unknown bits survive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct FsProperties: u32 {
        /// FSF3_LINK: hard links.
        const LINK = 0x01;
        /// FSF3_SYMLINK: symbolic links.
        const SYMLINK = 0x02;
        /// FSF3_HOMOGENEOUS: PATHCONF says the same for every object.
        const HOMOGENEOUS = 0x08;
        /// FSF3_CANSETTIME: times can be set.
        const CANSETTIME = 0x10;
    }
}
xdr_bits!(FsProperties);

xdr_struct! {
    /// `FSINFO3args`.
    pub struct FsInfoArgs<'a> {
        /// An object in the file system.
        pub root: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `FSINFO3resok`. All sizes are in bytes.
    pub struct FsInfoOk {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// Largest READ.
        pub rtmax: u32,
        /// Preferred READ.
        pub rtpref: u32,
        /// READ sizes should be a multiple of this.
        pub rtmult: u32,
        /// Largest WRITE.
        pub wtmax: u32,
        /// Preferred WRITE.
        pub wtpref: u32,
        /// WRITE sizes should be a multiple of this.
        pub wtmult: u32,
        /// Preferred READDIR.
        pub dtpref: u32,
        /// Largest file.
        pub maxfilesize: u64,
        /// Granularity of times.
        pub time_delta: NfsTime3,
        /// The properties of the file system.
        pub properties: FsProperties,
    }
}

/// `FSINFO3res`; a failure gives the object's attributes.
pub type FsInfoRes = Res<FsInfoOk, Option<Fattr3>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(FsInfoArgs { root: fh() }, theirs::FSINFO3args { fsroot: other::fh() }, [FH]);
    }

    #[test]
    fn results() {
        check!(
            FsInfoRes::Ok(FsInfoOk {
                attributes: None,
                rtmax: 1,
                rtpref: 2,
                rtmult: 3,
                wtmax: 4,
                wtpref: 5,
                wtmult: 6,
                dtpref: 7,
                maxfilesize: 8,
                time_delta: NfsTime3 { seconds: 9, nseconds: 10 },
                properties: FsProperties::all()
            }),
            theirs::FSINFO3res::Ok(theirs::FSINFO3resok {
                obj_attributes: theirs::Nfs3Option::None,
                rtmax: 1,
                rtpref: 2,
                rtmult: 3,
                wtmax: 4,
                wtpref: 5,
                wtmult: 6,
                dtpref: 7,
                maxfilesize: 8,
                time_delta: theirs::nfstime3 { seconds: 9, nseconds: 10 },
                properties: theirs::FSF3_LINK
                    | theirs::FSF3_SYMLINK
                    | theirs::FSF3_HOMOGENEOUS
                    | theirs::FSF3_CANSETTIME
            }),
            [
                "00000000",
                NONE,
                "00000001 00000002 00000003 00000004 00000005 00000006 00000007 0000000000000008 00000009 0000000a 0000001b"
            ]
        );
        check!(
            FsInfoRes::Fail(Status::STALE, Some(fattr())),
            theirs::FSINFO3res::Err((
                theirs::nfsstat3::NFS3ERR_STALE,
                theirs::FSINFO3resfail { obj_attributes: other::post_op() }
            )),
            ["00000046", SOME, FATTR]
        );
    }
}
