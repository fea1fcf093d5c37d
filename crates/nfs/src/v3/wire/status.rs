//! `nfsstat3`.

use crate::xdr::xdr_newtype;

xdr_newtype! {
    /// The outcome of a procedure (RFC 1813 §2.6, `nfsstat3`). Unknown values survive.
    pub struct Status {
        /// The call succeeded.
        OK = 0,
        /// Not the owner, and the operation is the owner's alone.
        PERM = 1,
        /// No such file or directory.
        NOENT = 2,
        /// A hard error of the device.
        IO = 5,
        /// No such device.
        NXIO = 6,
        /// Permission denied.
        ACCES = 13,
        /// The name is taken.
        EXIST = 17,
        /// Hard link or rename between two file systems.
        XDEV = 18,
        /// No such device.
        NODEV = 19,
        /// A directory was needed.
        NOTDIR = 20,
        /// A directory was given where none is allowed.
        ISDIR = 21,
        /// An argument is invalid or not supported for the object.
        INVAL = 22,
        /// The file would become too large.
        FBIG = 27,
        /// No space left.
        NOSPC = 28,
        /// The file system is read-only.
        ROFS = 30,
        /// Too many hard links.
        MLINK = 31,
        /// A name is too long.
        NAMETOOLONG = 63,
        /// The directory is not empty.
        NOTEMPTY = 66,
        /// The quota is used up.
        DQUOT = 69,
        /// The handle names nothing any more.
        STALE = 70,
        /// Too many levels of remote in the path.
        REMOTE = 71,
        /// The handle failed internal consistency checks.
        BADHANDLE = 10_001,
        /// The guard of a SETATTR does not match.
        NOT_SYNC = 10_002,
        /// A directory cookie is stale.
        BAD_COOKIE = 10_003,
        /// The operation is not supported.
        NOTSUPP = 10_004,
        /// The caller's buffer is too small.
        TOOSMALL = 10_005,
        /// An error that maps to no other value.
        SERVERFAULT = 10_006,
        /// The type of object can't be made here.
        BADTYPE = 10_007,
        /// The server is at it but can't answer soon; try again with a new xid.
        JUKEBOX = 10_008,
    }
}

impl Status {
    /// Did the call succeed?
    #[inline]
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == Self::OK.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::nfs3::nfsstat3 as theirs;

    #[test]
    fn numbers_are_those_of_the_standard() {
        for (ours, other) in [
            (Status::OK, theirs::NFS3_OK),
            (Status::PERM, theirs::NFS3ERR_PERM),
            (Status::NOENT, theirs::NFS3ERR_NOENT),
            (Status::IO, theirs::NFS3ERR_IO),
            (Status::NXIO, theirs::NFS3ERR_NXIO),
            (Status::ACCES, theirs::NFS3ERR_ACCES),
            (Status::EXIST, theirs::NFS3ERR_EXIST),
            (Status::XDEV, theirs::NFS3ERR_XDEV),
            (Status::NODEV, theirs::NFS3ERR_NODEV),
            (Status::NOTDIR, theirs::NFS3ERR_NOTDIR),
            (Status::ISDIR, theirs::NFS3ERR_ISDIR),
            (Status::INVAL, theirs::NFS3ERR_INVAL),
            (Status::FBIG, theirs::NFS3ERR_FBIG),
            (Status::NOSPC, theirs::NFS3ERR_NOSPC),
            (Status::ROFS, theirs::NFS3ERR_ROFS),
            (Status::MLINK, theirs::NFS3ERR_MLINK),
            (Status::NAMETOOLONG, theirs::NFS3ERR_NAMETOOLONG),
            (Status::NOTEMPTY, theirs::NFS3ERR_NOTEMPTY),
            (Status::DQUOT, theirs::NFS3ERR_DQUOT),
            (Status::STALE, theirs::NFS3ERR_STALE),
            (Status::REMOTE, theirs::NFS3ERR_REMOTE),
            (Status::BADHANDLE, theirs::NFS3ERR_BADHANDLE),
            (Status::NOT_SYNC, theirs::NFS3ERR_NOT_SYNC),
            (Status::BAD_COOKIE, theirs::NFS3ERR_BAD_COOKIE),
            (Status::NOTSUPP, theirs::NFS3ERR_NOTSUPP),
            (Status::TOOSMALL, theirs::NFS3ERR_TOOSMALL),
            (Status::SERVERFAULT, theirs::NFS3ERR_SERVERFAULT),
            (Status::BADTYPE, theirs::NFS3ERR_BADTYPE),
            (Status::JUKEBOX, theirs::NFS3ERR_JUKEBOX),
        ] {
            assert_eq!(ours.0, other as u32, "{other}");
            assert_eq!(ours.is_ok(), other == theirs::NFS3_OK);
        }
    }

    #[test]
    fn a_number_nobody_knows_survives() {
        let bytes = 123_456u32.to_be_bytes();
        assert_eq!(crate::xdr::decode(&bytes), Ok(Status(123_456)));
    }
}
