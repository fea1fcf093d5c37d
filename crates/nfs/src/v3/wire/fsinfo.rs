//! FSINFO (RFC 1813 §3.3.19).

use super::{Fattr3, FileHandle3, NfsTime3, Res};
use crate::xdr::{xdr_bits, xdr_struct};

bitflags::bitflags! {
    /// What a file system can do, as a bit mask. Unknown bits survive.
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
        /// What the file system can do.
        pub properties: FsProperties,
    }
}

/// `FSINFO3res`; a failure gives the object's attributes.
pub type FsInfoRes = Res<FsInfoOk, Option<Fattr3>>;
