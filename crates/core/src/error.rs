//! The one closed set of errors a store can give. Each protocol maps it exhaustively to its own
//! status codes; nothing here knows those codes.

/// The errors of a [`Store`](crate::Store) operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FsError {
    /// The caller is not the owner, and the operation is the owner's alone (`EPERM`).
    #[error("operation not permitted")]
    NotPermitted,
    /// The mode or the export rule denies it (`EACCES`).
    #[error("permission denied")]
    AccessDenied,
    /// No such name (`ENOENT`).
    #[error("no such file or directory")]
    NotFound,
    /// The handle is well formed, but what it named is gone (`ESTALE`).
    #[error("stale file handle")]
    Stale,
    /// The handle was not made by this server, or was altered.
    #[error("bad file handle")]
    BadHandle,
    /// The name is taken (`EEXIST`).
    #[error("file exists")]
    Exists,
    /// A directory was needed (`ENOTDIR`).
    #[error("not a directory")]
    NotDirectory,
    /// A directory was given where none is allowed (`EISDIR`).
    #[error("is a directory")]
    IsDirectory,
    /// The directory still has entries (`ENOTEMPTY`).
    #[error("directory not empty")]
    NotEmpty,
    /// Not a symbolic link, or another wrong kind of object for the operation.
    #[error("wrong kind of object")]
    WrongKind,
    /// An argument makes no sense (`EINVAL`).
    #[error("invalid argument")]
    Invalid,
    /// The name is over 255 bytes or the link target over 4,095 (`ENAMETOOLONG`).
    #[error("name too long")]
    NameTooLong,
    /// The file would grow beyond what the store can hold (`EFBIG`).
    #[error("file too large")]
    TooLarge,
    /// The file system under the volume is full (`ENOSPC`).
    #[error("no space left on device")]
    NoSpace,
    /// The volume's quota is used up (`EDQUOT`).
    #[error("quota exceeded")]
    QuotaExceeded,
    /// The volume or the export is read-only (`EROFS`).
    #[error("read-only volume")]
    ReadOnly,
    /// Rename or link between two volumes (`EXDEV`).
    #[error("cross-volume link or rename")]
    CrossVolume,
    /// Too many hard links (`EMLINK`).
    #[error("too many links")]
    TooManyLinks,
    /// A directory cookie that this directory never gave, or gives no more.
    #[error("bad directory cookie")]
    BadCookie,
    /// The object changed since the caller looked (NFSv3 SETATTR guard: `NFS3ERR_NOT_SYNC`).
    #[error("attributes changed meanwhile")]
    NotSync,
    /// The store can't do this at all (`EOPNOTSUPP`).
    #[error("operation not supported")]
    NotSupported,
    /// The caller's buffer can't hold even one entry.
    #[error("buffer too small")]
    TooSmall,
    /// Try again later: a bound of the server is reached for now (memory, descriptors).
    #[error("temporarily out of resources")]
    Busy,
    /// The device failed, or an error no other variant names (`EIO`).
    #[error("input/output error")]
    Io,
}

/// The result of a store operation.
pub type FsResult<T> = Result<T, FsError>;
