//! The NLM status codes of failures of the store and of the tables of locks (RFC 1813 §6.1.4). A
//! new error does not compile until it is given a code here.

use super::wire::Status;
use weir_core::FsError;
use weir_state::Refused;

impl From<FsError> for Status {
    fn from(error: FsError) -> Self {
        match error {
            FsError::Stale | FsError::BadHandle | FsError::NotFound => Self::STALE_FH,
            FsError::ReadOnly => Self::ROFS,
            FsError::TooLarge => Self::FBIG,
            FsError::Busy | FsError::NoSpace | FsError::QuotaExceeded => Self::DENIED_NOLOCKS,
            // DENIED would be taken for a conflict, and be tried again.
            FsError::NotPermitted
            | FsError::AccessDenied
            | FsError::Exists
            | FsError::NotDirectory
            | FsError::IsDirectory
            | FsError::NotEmpty
            | FsError::WrongKind
            | FsError::Invalid
            | FsError::NameTooLong
            | FsError::CrossVolume
            | FsError::TooManyLinks
            | FsError::BadCookie
            | FsError::NotSync
            | FsError::NotSupported
            | FsError::TooSmall
            | FsError::Io => Self::FAILED,
        }
    }
}

impl From<&Refused> for Status {
    fn from(refused: &Refused) -> Self {
        match refused {
            Refused::Held(_) | Refused::Shared | Refused::Sharing => Self::DENIED,
            // A reclaim that comes too late is answered like this by the servers in the field.
            Refused::Grace | Refused::NoReclaim => Self::DENIED_GRACE_PERIOD,
            Refused::Deadlock => Self::DEADLCK,
            Refused::NoVolume => Self::STALE_FH,
            Refused::Full(_) => Self::DENIED_NOLOCKS,
            // No request of NLM is about an open.
            Refused::DeletePending | Refused::Closed => Self::FAILED,
        }
    }
}
