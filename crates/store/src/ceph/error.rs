//! From the error numbers of libcephfs to the closed error set of `core`.

use rustix::io::Errno;
use weir_core::FsError;

/// The error that `errno` means to a caller of the store. The numbers are Linux's.
pub(super) fn fs_error(errno: Errno) -> FsError {
    match errno {
        // The session has ended, which was logged once.
        Errno::SHUTDOWN | Errno::NOTCONN => FsError::Io,
        // An operation waited for the cluster for as long as it was told to.
        Errno::TIMEDOUT => FsError::Io,
        other => crate::error::fs_error(other),
    }
}

/// The error of an operation on an object that was found before: without it there is `Stale`.
pub(super) fn of_object(errno: Errno) -> FsError {
    match errno {
        Errno::NOENT => FsError::Stale,
        other => fs_error(other),
    }
}
