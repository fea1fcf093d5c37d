//! A store's knowledge about an object, in the terms of POSIX, and the changes to it.

use crate::time::Timestamp;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device node.
    BlockDevice,
    /// A character device node.
    CharDevice,
    /// A named pipe.
    Fifo,
    /// A local socket.
    Socket,
}

/// Device numbers of a special file; zero for all other kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// The attributes of an object at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The kind; it never changes.
    pub kind: FileKind,
    /// Permission bits, setuid, setgid and sticky: the low 12 bits of `st_mode`.
    pub mode: u32,
    /// The mode alone does not decide: an access control list may say more
    /// ([`Store::acl`](crate::Store::acl)). Never set where there certainly is none.
    pub has_acl: bool,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Space allocated, in bytes.
    pub used: u64,
    /// Device numbers of a special file.
    pub rdev: DeviceNumber,
    /// Unique within the volume for the life of the object (the inode number).
    pub fileid: u64,
    /// Last access. Reads through Weir do not move it, except that of a symbolic link where the
    /// file system is mounted so that it moves.
    pub atime: Timestamp,
    /// Last change of the data.
    pub mtime: Timestamp,
    /// Last change of data or attributes.
    pub ctime: Timestamp,
}

/// The way in which a time is to be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetTime {
    /// Leave it.
    #[default]
    Keep,
    /// The server's present time.
    ServerNow,
    /// Sets this time.
    To(Timestamp),
}

/// Attributes to set; `None` and [`SetTime::Keep`] leave things as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// The low 12 bits of the mode.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes: truncates, or grows with a hole.
    pub size: Option<u64>,
    /// Last access.
    pub atime: SetTime,
    /// Last change of the data.
    pub mtime: SetTime,
}

/// An object's attributes around an operation, for weak cache consistency (RFC 1813 §2.6).
///
/// `before` is given only where no other change can have come between it and `after`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The attributes just before the change.
    pub before: Option<Attr>,
    /// The attributes just after the change.
    pub after: Option<Attr>,
}
