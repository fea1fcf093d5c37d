//! A side's answer, in terms in which all sides must agree.
//!
//! Left out, because right answers may differ:
//! - sizes of directories and `used`: file systems choose them (RFC 1813 §2.3.5, `fattr3`);
//! - times that a clock gave. Times that a client gave are compared to the nanosecond; they are
//!   told apart by being long past;
//! - the atime of symbolic links, which READLINK moves as the file system is mounted to;
//! - the size before a COMMIT, which changes none and so need not be known before;
//! - the order of a directory's entries, and how they are spread over pages;
//! - file ids and handles, of which is compared whether they name the same object as before;
//! - whether a RENAME onto a directory with entries is NFS3ERR_EXIST, as RFC 1813 §3.3.14 and XFS
//!   have it, or NFS3ERR_NOTEMPTY, as ext4 has it;
//! - file slots of FSSTAT, which the file system has and no quota speaks of.

use crate::step::Bytes;
use std::collections::BTreeMap;
use weir_core::{Acl, Attr, DeviceNumber, FileKind, Timestamp};
use weir_nfs::v3::wire::{Fattr3, FileType, NfsTime3, Status};

/// Times before this (in 2001) are a client's, those after it a clock's.
pub(crate) const CLIENT_TIMES_END: i64 = 1_000_000_000;

/// The answer to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    /// The attributes told, in their order in the reply.
    pub(crate) told: Vec<Option<Seen>>,
    pub(crate) body: Body,
    /// Contradictions in the answer itself or with the protocol, whatever the others say.
    pub(crate) complaints: Vec<String>,
}

/// The result beside attributes, if the step succeeded.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Body {
    Nothing,
    /// An object was found or made: the first slot that holds it already.
    Object(Option<usize>),
    /// The size before a change of attributes or data.
    Changed {
        before: Option<u64>,
    },
    Written {
        count: u32,
        before: Option<u64>,
    },
    Data(Vec<u8>, bool),
    Target(Bytes),
    Access(u32),
    Names(BTreeMap<Bytes, Option<Listed>>),
    Space {
        total: u64,
        free: u64,
        available: u64,
    },
    Lists(Acl, Option<Acl>),
}

/// An entry of a directory with its object: attributes, and the first slot that holds it.
pub(crate) type Listed = (Option<Seen>, Option<usize>);

/// Attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Of files and links.
    pub(crate) size: Option<u64>,
    pub(crate) rdev: DeviceNumber,
    /// If a client gave it; not of links.
    pub(crate) atime: Option<Timestamp>,
    /// If a client gave it.
    pub(crate) mtime: Option<Timestamp>,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Object(slot) => write!(f, "Object(as slot {slot:?})"),
            Self::Changed { before } => write!(f, "Changed(from size {before:?})"),
            Self::Written { count, before } => write!(f, "Written({count}, from {before:?})"),
            Self::Data(data, eof) => write_data(f, data, *eof),
            Self::Target(target) => write!(f, "Target({target:?})"),
            Self::Access(bits) => write!(f, "Access({bits:#x})"),
            Self::Names(names) => f.debug_map().entries(names).finish(),
            Self::Space { total, free, available } => {
                write!(f, "Space({total} total, {free} free, {available} available)")
            }
            Self::Lists(access, default) => write!(f, "Lists({access:?}, {default:?})"),
        }
    }
}

/// Data as runs of equal parts would be too long: its length and a sum say enough, and where it
/// differs the shrunk steps show.
fn write_data(f: &mut std::fmt::Formatter<'_>, data: &[u8], eof: bool) -> std::fmt::Result {
    let sum = data.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let zeros = data.iter().filter(|&&byte| byte == 0).count();
    let head = &data[..data.len().min(16)];
    write!(f, "Data({} bytes, {zeros} zeros, sum {sum:x}, {head:x?}…, eof {eof})", data.len())
}

impl Seen {
    pub(crate) fn of(attr: &Attr) -> Self {
        let sized = matches!(attr.kind, FileKind::Regular | FileKind::Symlink);
        Self {
            kind: attr.kind,
            mode: attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: sized.then_some(attr.size),
            rdev: attr.rdev,
            atime: client_time(attr.atime).filter(|_| attr.kind != FileKind::Symlink),
            mtime: client_time(attr.mtime),
        }
    }

    /// The attributes that came over the wire.
    pub(crate) fn of_wire(attr: &Fattr3) -> Self {
        let kind = match attr.file_type {
            FileType::REG => FileKind::Regular,
            FileType::DIR => FileKind::Directory,
            FileType::BLK => FileKind::BlockDevice,
            FileType::CHR => FileKind::CharDevice,
            FileType::LNK => FileKind::Symlink,
            FileType::SOCK => FileKind::Socket,
            FileType::FIFO => FileKind::Fifo,
            other => panic!("no type of file: {other:?}"),
        };
        let sized = matches!(kind, FileKind::Regular | FileKind::Symlink);
        let time = |time: NfsTime3| client_time(time.to_timestamp().unwrap());
        Self {
            kind,
            mode: attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: sized.then_some(attr.size),
            rdev: attr.rdev.into(),
            atime: time(attr.atime).filter(|_| kind != FileKind::Symlink),
            mtime: time(attr.mtime),
        }
    }
}

fn client_time(time: Timestamp) -> Option<Timestamp> {
    (time.secs < CLIENT_TIMES_END).then_some(time)
}

impl Answer {
    /// The answer to a RENAME, with one status where there may be either of two.
    pub(crate) fn of_rename(self) -> Self {
        let status = if self.status == Status::EXIST { Status::NOTEMPTY } else { self.status };
        Self { status, ..self }
    }

    pub(crate) fn ok(told: Vec<Option<Seen>>, body: Body) -> Self {
        Self { status: Status::OK, told, body, complaints: Vec::new() }
    }

    pub(crate) fn failed(status: Status, told: Vec<Option<Seen>>) -> Self {
        Self { status, told, body: Body::Nothing, complaints: Vec::new() }
    }
}
