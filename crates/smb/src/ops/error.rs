//! Why an operation failed, as a status and the data that some statuses carry.

use crate::names::NameError;
use crate::wire::{Status, WireError};
use alloc::vec::Vec;
use weir_core::FsError;
use weir_state::Refused;

/// The failure of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status of the response.
    pub status: Status,
    /// The data of the error response (MS-SMB2 §2.2.2); empty for nearly all.
    pub data: Vec<u8>,
    /// Payload that a READ read from the store although it fails, in bytes. It is charged.
    pub moved: u64,
}

impl Failure {
    /// The same with payload moved.
    #[must_use]
    pub(super) fn moved(self, moved: u64) -> Self {
        Self { moved, ..self }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, data: Vec::new(), moved: 0 }
    }
}

impl From<WireError> for Failure {
    fn from(_: WireError) -> Self {
        Status::INVALID_PARAMETER.into()
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        match error {
            NameError::LeadingSeparator => Status::INVALID_PARAMETER,
            NameError::Dots => Status::OBJECT_PATH_SYNTAX_BAD,
            NameError::NotUtf16
            | NameError::Empty
            | NameError::Forbidden
            | NameError::Stream
            | NameError::TooLong => Status::OBJECT_NAME_INVALID,
        }
        .into()
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        status(error).into()
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        refusal(&refused).into()
    }
}

/// The status of an error of the store.
#[must_use]
pub(super) fn status(error: FsError) -> Status {
    match error {
        FsError::NotPermitted | FsError::AccessDenied => Status::ACCESS_DENIED,
        FsError::NotFound => Status::OBJECT_NAME_NOT_FOUND,
        // The object is gone although the client has it open: another protocol removed it.
        FsError::Stale => Status::FILE_DELETED,
        FsError::BadHandle => Status::INVALID_HANDLE,
        FsError::Exists => Status::OBJECT_NAME_COLLISION,
        FsError::NotDirectory => Status::NOT_A_DIRECTORY,
        FsError::IsDirectory => Status::FILE_IS_A_DIRECTORY,
        FsError::NotEmpty => Status::DIRECTORY_NOT_EMPTY,
        FsError::WrongKind => Status::INVALID_DEVICE_REQUEST,
        FsError::Invalid | FsError::NotSync | FsError::BadCookie => Status::INVALID_PARAMETER,
        FsError::NameTooLong => Status::OBJECT_NAME_INVALID,
        FsError::TooLarge | FsError::NoSpace | FsError::QuotaExceeded => Status::DISK_FULL,
        FsError::ReadOnly => Status::MEDIA_WRITE_PROTECTED,
        FsError::CrossVolume => Status::NOT_SAME_DEVICE,
        FsError::TooManyLinks => Status::TOO_MANY_LINKS,
        FsError::NotSupported => Status::NOT_SUPPORTED,
        FsError::TooSmall => Status::BUFFER_TOO_SMALL,
        FsError::Busy => Status::INSUFFICIENT_RESOURCES,
        FsError::Io => Status::UNEXPECTED_IO_ERROR,
    }
}

/// The status of a refusal by the state that all protocols share.
#[must_use]
pub fn refusal(refused: &Refused) -> Status {
    match refused {
        Refused::Held(_) | Refused::Deadlock | Refused::Grace | Refused::NoReclaim => {
            Status::LOCK_NOT_GRANTED
        }
        Refused::Shared | Refused::Sharing => Status::SHARING_VIOLATION,
        Refused::DeletePending => Status::DELETE_PENDING,
        Refused::Closed => Status::FILE_CLOSED,
        Refused::NoVolume => Status::NETWORK_NAME_DELETED,
        Refused::Full(_) => Status::INSUFFICIENT_RESOURCES,
    }
}
