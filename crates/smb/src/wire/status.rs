//! `NTSTATUS`.

use super::WireError;
use super::codec::{Cursor, Field};
use alloc::vec::Vec;
use core::fmt;

/// Declares the values with their names.
macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        impl Status {
            $( $(#[$doc])* pub const $name: Self = Self($value); )*

            /// The name, without the prefix `STATUS_`, if it is one of those above.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some(stringify!($name)), )*
                    _ => None,
                }
            }
        }
    };
}

/// The outcome of an operation (MS-ERREF §2.3.1). Unknown values survive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

statuses! {
    /// The operation succeeded.
    SUCCESS = 0x0000_0000,
    /// The operation goes on; its final reply follows.
    PENDING = 0x0000_0103,
    /// The directory that was watched has been closed.
    NOTIFY_CLEANUP = 0x0000_010b,
    /// More changed than fits: the client lists the directory again.
    NOTIFY_ENUM_DIR = 0x0000_010c,
    /// The data did not fit whole; its beginning is there.
    BUFFER_OVERFLOW = 0x8000_0005,
    /// A listing has ended.
    NO_MORE_FILES = 0x8000_0006,
    /// The path leads through a symbolic link.
    STOPPED_ON_SYMLINK = 0x8000_002d,
    /// An error without a value of its own.
    UNSUCCESSFUL = 0xc000_0001,
    /// The operation is not implemented.
    NOT_IMPLEMENTED = 0xc000_0002,
    /// The information class does not exist, or not for this object.
    INVALID_INFO_CLASS = 0xc000_0003,
    /// The buffer has no length that the information class can have.
    INFO_LENGTH_MISMATCH = 0xc000_0004,
    /// The open is not of the kind that the operation needs.
    INVALID_HANDLE = 0xc000_0008,
    /// A parameter is invalid.
    INVALID_PARAMETER = 0xc000_000d,
    /// No name matches.
    NO_SUCH_FILE = 0xc000_000f,
    /// The object does not know the operation.
    INVALID_DEVICE_REQUEST = 0xc000_0010,
    /// The range begins at or after the end of the file.
    END_OF_FILE = 0xc000_0011,
    /// Authentication goes on with another message.
    MORE_PROCESSING_REQUIRED = 0xc000_0016,
    /// No memory is left.
    NO_MEMORY = 0xc000_0017,
    /// A chunk of a copy is outside of its file.
    INVALID_VIEW_SIZE = 0xc000_001f,
    /// Access is not granted.
    ACCESS_DENIED = 0xc000_0022,
    /// The caller's buffer is too small.
    BUFFER_TOO_SMALL = 0xc000_0023,
    /// The object is of another type.
    OBJECT_TYPE_MISMATCH = 0xc000_0024,
    /// The name is invalid.
    OBJECT_NAME_INVALID = 0xc000_0033,
    /// The name does not exist.
    OBJECT_NAME_NOT_FOUND = 0xc000_0034,
    /// The name is taken.
    OBJECT_NAME_COLLISION = 0xc000_0035,
    /// The path is invalid.
    OBJECT_PATH_INVALID = 0xc000_0039,
    /// A directory of the path does not exist.
    OBJECT_PATH_NOT_FOUND = 0xc000_003a,
    /// The path is malformed.
    OBJECT_PATH_SYNTAX_BAD = 0xc000_003b,
    /// Another open does not share this access.
    SHARING_VIOLATION = 0xc000_0043,
    /// A quota is used up.
    QUOTA_EXCEEDED = 0xc000_0044,
    /// The file system has no extended attributes.
    EAS_NOT_SUPPORTED = 0xc000_004f,
    /// The extended attributes are too large.
    EA_TOO_LARGE = 0xc000_0050,
    /// The extended attribute does not exist.
    NONEXISTENT_EA_ENTRY = 0xc000_0051,
    /// The file has no extended attributes.
    NO_EAS_ON_FILE = 0xc000_0052,
    /// A lock is in the way of reading or writing.
    FILE_LOCK_CONFLICT = 0xc000_0054,
    /// Another lock is in the way of the lock.
    LOCK_NOT_GRANTED = 0xc000_0055,
    /// The object is removed when its last open closes.
    DELETE_PENDING = 0xc000_0056,
    /// The identity cannot own an object.
    INVALID_OWNER = 0xc000_005a,
    /// A privilege is needed.
    PRIVILEGE_NOT_HELD = 0xc000_0061,
    /// The user is not known or the proof is wrong.
    LOGON_FAILURE = 0xc000_006d,
    /// A restriction of the account forbids the login.
    ACCOUNT_RESTRICTION = 0xc000_006e,
    /// The password has expired.
    PASSWORD_EXPIRED = 0xc000_0071,
    /// The account is disabled.
    ACCOUNT_DISABLED = 0xc000_0072,
    /// The server has no value to return.
    NONE_MAPPED = 0xc000_0073,
    /// The access control list is malformed.
    INVALID_ACL = 0xc000_0077,
    /// The security identifier is malformed.
    INVALID_SID = 0xc000_0078,
    /// The security descriptor is malformed.
    INVALID_SECURITY_DESCR = 0xc000_0079,
    /// The range to unlock is not locked.
    RANGE_NOT_LOCKED = 0xc000_007e,
    /// No space is left.
    DISK_FULL = 0xc000_007f,
    /// The open's file is no longer valid.
    FILE_INVALID = 0xc000_0098,
    /// A resource is used up.
    INSUFFICIENT_RESOURCES = 0xc000_009a,
    /// The file system is read-only.
    MEDIA_WRITE_PROTECTED = 0xc000_00a2,
    /// The impersonation level does not exist.
    BAD_IMPERSONATION_LEVEL = 0xc000_00a5,
    /// No instance of the pipe is free.
    PIPE_NOT_AVAILABLE = 0xc000_00ac,
    /// The pipe is not in the state that the operation needs.
    INVALID_PIPE_STATE = 0xc000_00ad,
    /// The pipe is in use.
    PIPE_BUSY = 0xc000_00ae,
    /// The pipe is disconnected.
    PIPE_DISCONNECTED = 0xc000_00b0,
    /// The operation took too long.
    IO_TIMEOUT = 0xc000_00b5,
    /// A directory is where a file is needed.
    FILE_IS_A_DIRECTORY = 0xc000_00ba,
    /// The operation is not supported.
    NOT_SUPPORTED = 0xc000_00bb,
    /// The tree connect has ended or never was.
    NETWORK_NAME_DELETED = 0xc000_00c9,
    /// The request is not allowed on this connection.
    NETWORK_ACCESS_DENIED = 0xc000_00ca,
    /// The share is of another type.
    BAD_DEVICE_TYPE = 0xc000_00cb,
    /// The share does not exist.
    BAD_NETWORK_NAME = 0xc000_00cc,
    /// The server takes no more of these.
    REQUEST_NOT_ACCEPTED = 0xc000_00d0,
    /// Two names are on different file systems.
    NOT_SAME_DEVICE = 0xc000_00d4,
    /// The file has been renamed.
    FILE_RENAMED = 0xc000_00d5,
    /// The pipe has no data.
    PIPE_EMPTY = 0xc000_00d9,
    /// The acknowledgement answers no break.
    INVALID_OPLOCK_PROTOCOL = 0xc000_00e3,
    /// The server failed.
    INTERNAL_ERROR = 0xc000_00e5,
    /// Storage failed in an unexpected way.
    UNEXPECTED_IO_ERROR = 0xc000_00e9,
    /// The directory is not empty.
    DIRECTORY_NOT_EMPTY = 0xc000_0101,
    /// A file is where a directory is needed.
    NOT_A_DIRECTORY = 0xc000_0103,
    /// The name is too long.
    NAME_TOO_LONG = 0xc000_0106,
    /// No more opens are possible.
    TOO_MANY_OPENED_FILES = 0xc000_011f,
    /// The operation was cancelled.
    CANCELLED = 0xc000_0120,
    /// The object cannot be removed.
    CANNOT_DELETE = 0xc000_0121,
    /// The file has been removed.
    FILE_DELETED = 0xc000_0123,
    /// The open does not exist.
    FILE_CLOSED = 0xc000_0128,
    /// The level does not exist.
    INVALID_LEVEL = 0xc000_0148,
    /// The other end of the pipe has closed.
    PIPE_BROKEN = 0xc000_014b,
    /// The object is not in the state that the operation needs.
    INVALID_DEVICE_STATE = 0xc000_0184,
    /// Storage failed.
    IO_DEVICE_ERROR = 0xc000_0185,
    /// The path needs another server (DFS).
    FS_DRIVER_REQUIRED = 0xc000_019c,
    /// The session has ended or never was.
    USER_SESSION_DELETED = 0xc000_0203,
    /// The server has no room for the operation.
    INSUFF_SERVER_RESOURCES = 0xc000_0205,
    /// The buffer has no length that the operation can have.
    INVALID_BUFFER_SIZE = 0xc000_0206,
    /// The range to lock reaches beyond the last offset.
    INVALID_LOCK_RANGE = 0xc000_01a1,
    /// The object does not exist.
    NOT_FOUND = 0xc000_0225,
    /// The account is locked.
    ACCOUNT_LOCKED_OUT = 0xc000_0234,
    /// The server does not have the path (DFS).
    PATH_NOT_COVERED = 0xc000_0257,
    /// The file has too many links.
    TOO_MANY_LINKS = 0xc000_0265,
    /// The file is no reparse point.
    NOT_A_REPARSE_POINT = 0xc000_0275,
    /// The reparse point has another tag.
    IO_REPARSE_TAG_MISMATCH = 0xc000_0277,
    /// The data of a reparse point is malformed.
    IO_REPARSE_DATA_INVALID = 0xc000_0278,
    /// The reparse point's tag is not handled here.
    IO_REPARSE_TAG_NOT_HANDLED = 0xc000_0279,
    /// The session has expired; it authenticates again.
    NETWORK_SESSION_EXPIRED = 0xc000_035c,
    /// The quota of the file system is used up.
    DISK_QUOTA_EXCEEDED = 0xc000_0802,
    /// The file would become too large.
    FILE_TOO_LARGE = 0xc000_0904,
    /// No pre-authentication hash is common to both sides.
    SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xc05d_0000,
}

impl Status {
    /// Is it an error, by its highest two bits (MS-ERREF §2.3)? Success, information and warnings
    /// such as [`Status::BUFFER_OVERFLOW`] are not.
    #[inline]
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}

/// Name and value, or the value alone.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "STATUS_{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Field for Status {
    #[inline]
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        from.get().map(Self)
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_status_says_its_name_and_value() {
        assert_eq!(format!("{}", Status::ACCESS_DENIED), "STATUS_ACCESS_DENIED (0xc0000022)");
        assert_eq!(format!("{:?}", Status::SUCCESS), "STATUS_SUCCESS (0x00000000)");
        assert_eq!(format!("{:?}", Status(0xc000_ffff)), "0xc000ffff");
    }

    #[test]
    fn warnings_and_information_are_no_errors() {
        for status in [Status::SUCCESS, Status::PENDING, Status::BUFFER_OVERFLOW] {
            assert!(!status.is_error(), "{status}");
        }
        assert!(Status::MORE_PROCESSING_REQUIRED.is_error());
    }
}
