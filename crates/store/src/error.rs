//! From the kernel's error numbers to the closed error set of `core`.

use rustix::io::Errno;
use weir_core::FsError;

/// The error that `errno` means to a caller of the store. Numbers that no variant names are `Io`.
pub(crate) fn fs_error(errno: Errno) -> FsError {
    match errno {
        Errno::PERM => FsError::NotPermitted,
        // A running program can't be written.
        Errno::ACCESS | Errno::TXTBSY => FsError::AccessDenied,
        Errno::NOENT => FsError::NotFound,
        Errno::STALE => FsError::Stale,
        Errno::EXIST => FsError::Exists,
        Errno::NOTDIR => FsError::NotDirectory,
        Errno::ISDIR => FsError::IsDirectory,
        Errno::NOTEMPTY => FsError::NotEmpty,
        Errno::INVAL => FsError::Invalid,
        Errno::NAMETOOLONG => FsError::NameTooLong,
        Errno::FBIG | Errno::OVERFLOW => FsError::TooLarge,
        Errno::NOSPC => FsError::NoSpace,
        Errno::DQUOT => FsError::QuotaExceeded,
        Errno::ROFS => FsError::ReadOnly,
        // A mount point inside the volume is another file system: nothing leads there.
        Errno::XDEV => FsError::CrossVolume,
        Errno::MLINK => FsError::TooManyLinks,
        Errno::OPNOTSUPP => FsError::NotSupported,
        // A symbolic link where none may be followed.
        Errno::LOOP => FsError::WrongKind,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::BUSY => FsError::Busy,
        other => {
            tracing::warn!(errno = other.raw_os_error(), "unexpected error from the file system");
            FsError::Io
        }
    }
}
