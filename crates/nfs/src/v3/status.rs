//! The NFSv3 status codes of the closed set of store errors (RFC 1813 §2.6). A new error does not
//! compile until it is given a code here.

use super::wire::Status;
use weir_core::FsError;

impl From<FsError> for Status {
    fn from(error: FsError) -> Self {
        match error {
            FsError::NotPermitted => Self::PERM,
            FsError::AccessDenied => Self::ACCES,
            FsError::NotFound => Self::NOENT,
            FsError::Stale => Self::STALE,
            FsError::BadHandle => Self::BADHANDLE,
            FsError::Exists => Self::EXIST,
            FsError::NotDirectory => Self::NOTDIR,
            FsError::IsDirectory => Self::ISDIR,
            FsError::NotEmpty => Self::NOTEMPTY,
            FsError::WrongKind | FsError::Invalid => Self::INVAL,
            FsError::NameTooLong => Self::NAMETOOLONG,
            FsError::TooLarge => Self::FBIG,
            FsError::NoSpace => Self::NOSPC,
            FsError::QuotaExceeded => Self::DQUOT,
            FsError::ReadOnly => Self::ROFS,
            FsError::CrossVolume => Self::XDEV,
            FsError::TooManyLinks => Self::MLINK,
            FsError::BadCookie => Self::BAD_COOKIE,
            FsError::NotSync => Self::NOT_SYNC,
            FsError::NotSupported => Self::NOTSUPP,
            FsError::TooSmall => Self::TOOSMALL,
            // The client tries again after a while, without an error to the application.
            FsError::Busy => Self::JUKEBOX,
            FsError::Io => Self::IO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_rfc() {
        let codes = [
            (FsError::NotPermitted, 1),
            (FsError::NotFound, 2),
            (FsError::Io, 5),
            (FsError::AccessDenied, 13),
            (FsError::Exists, 17),
            (FsError::CrossVolume, 18),
            (FsError::NotDirectory, 20),
            (FsError::IsDirectory, 21),
            (FsError::Invalid, 22),
            (FsError::WrongKind, 22),
            (FsError::TooLarge, 27),
            (FsError::NoSpace, 28),
            (FsError::ReadOnly, 30),
            (FsError::TooManyLinks, 31),
            (FsError::NameTooLong, 63),
            (FsError::NotEmpty, 66),
            (FsError::QuotaExceeded, 69),
            (FsError::Stale, 70),
            (FsError::BadHandle, 10001),
            (FsError::NotSync, 10002),
            (FsError::BadCookie, 10003),
            (FsError::NotSupported, 10004),
            (FsError::TooSmall, 10005),
            (FsError::Busy, 10008),
        ];
        for (error, code) in codes {
            assert_eq!(Status::from(error).0, code, "{error:?}");
        }
    }
}
