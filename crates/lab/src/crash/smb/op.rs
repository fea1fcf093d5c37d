//! The operations of the SMB load: as compounds of requests, and what they change.

use super::super::content::BLOCK;
use super::super::op::{DirEntry, How, Op};
use super::super::tree::{Id, Tree};
use std::collections::BTreeMap;
use weir_load::engine::{SmbReplies, SmbSession};
use weir_load::error::BenchError;
use weir_nfs::v3::wire::StableHow;
use weir_smb::fscc::{Disposition, SetInfo, Target};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::{
    AccessMask, CreateContexts, CreateDisposition, CreateOptions, FileId, LockFlags, LockRange,
};
use weir_smb_client::{Open, Request};

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SmbOp {
    /// Makes a file, which stays open.
    Make {
        at: DirEntry,
        id: Id,
        through: bool,
    },
    /// Opens a file.
    Open {
        file: Id,
        through: bool,
    },
    /// Empties a file by CREATE.
    Overwrite {
        file: Id,
    },
    /// Writes through an open.
    Write {
        file: Id,
        first: u32,
        count: u32,
        number: u32,
        through: bool,
    },
    Flush {
        file: Id,
    },
    /// FLUSH of a directory.
    FlushDirectory {
        dir: Id,
    },
    Size {
        file: Id,
        blocks: u32,
    },
    Rename {
        from: DirEntry,
        to: DirEntry,
    },
    Link {
        file: Id,
        at: DirEntry,
    },
    /// Deletes by a flag of CREATE, or by SET_INFO and CLOSE.
    Delete {
        at: DirEntry,
        on_close: bool,
    },
    Mkdir {
        at: DirEntry,
        id: Id,
    },
    Rmdir {
        at: DirEntry,
    },
    /// Locks blocks through an open.
    Lock {
        file: Id,
        first: u32,
        count: u32,
    },
    /// Gives up that lock.
    Unlock {
        file: Id,
        first: u32,
        count: u32,
    },
    Close {
        file: Id,
    },
}

/// The rights of an open that is for all operations.
const ACCESS: AccessMask = AccessMask::READ_DATA
    .union(AccessMask::WRITE_DATA)
    .union(AccessMask::APPEND_DATA)
    .union(AccessMask::READ_ATTRIBUTES)
    .union(AccessMask::WRITE_ATTRIBUTES)
    .union(AccessMask::DELETE)
    .union(AccessMask::SYNCHRONIZE);
/// The rights of an open for FLUSH of a directory. Nobody may delete the client's top directory.
const FLUSH_ACCESS: AccessMask = ACCESS.difference(AccessMask::DELETE);

/// A file that the client has open.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) id: FileId,
    /// The name by which the server knows the open, as a path.
    pub(super) path: String,
    pub(super) through: bool,
}

/// The parts that requests borrow.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// The path in the share, in UTF-16.
    name: &'a [u8],
    /// An open to use.
    open: Option<FileId>,
    /// A SET_INFO.
    class: u8,
    info: &'a [u8],
    ranges: &'a [LockRange],
}

/// The files that the client has open.
pub(super) type Opens = BTreeMap<Id, Opened>;

impl SmbOp {
    /// The operation in a few words.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Make { through: false, .. } => "smb create",
            Self::Make { through: true, .. } => "smb create through",
            Self::Open { .. } => "smb open",
            Self::Overwrite { .. } => "smb overwrite",
            Self::Write { through: false, .. } => "smb write",
            Self::Write { through: true, .. } => "smb write through",
            Self::Flush { .. } => "smb flush",
            Self::FlushDirectory { .. } => "smb flush directory",
            Self::Size { .. } => "smb truncate",
            Self::Rename { .. } => "smb rename",
            Self::Link { .. } => "smb link",
            Self::Delete { on_close: false, .. } => "smb delete",
            Self::Delete { on_close: true, .. } => "smb delete on close",
            Self::Mkdir { .. } => "smb mkdir",
            Self::Rmdir { .. } => "smb rmdir",
            Self::Lock { .. } => "smb lock",
            Self::Unlock { .. } => "smb unlock",
            Self::Close { .. } => "smb close",
        }
    }

    /// The change that it makes, in the words of the tree.
    pub(super) fn change(&self) -> Option<Op> {
        Some(match self.clone() {
            Self::Make { at, id, .. } => Op::Create { at, how: How::Guarded, id },
            Self::Overwrite { file } => Op::Size { file, blocks: 0 },
            Self::Write { file, first, count, number, through } => {
                let stable = if through { StableHow::FileSync } else { StableHow::Unstable };
                Op::Write { file, first, count, number, stable }
            }
            Self::Size { file, blocks } => Op::Size { file, blocks },
            Self::Rename { from, to } => Op::Rename { from, to },
            Self::Link { file, at } => Op::Link { object: file, at },
            Self::Delete { at, .. } => Op::Remove { at },
            Self::Mkdir { at, id } => Op::Mkdir { at, id },
            Self::Rmdir { at } => Op::Rmdir { at },
            Self::Open { .. }
            | Self::Flush { .. }
            | Self::FlushDirectory { .. }
            | Self::Lock { .. }
            | Self::Unlock { .. }
            | Self::Close { .. } => return None,
        })
    }

    /// The object that the operation is on, if it is there before it.
    fn object(&self, tree: &Tree) -> Option<Id> {
        match self {
            Self::Open { file, .. }
            | Self::Overwrite { file }
            | Self::Flush { file }
            | Self::Size { file, .. }
            | Self::Link { file, .. }
            | Self::Lock { file, .. }
            | Self::Unlock { file, .. }
            | Self::Close { file }
            | Self::Write { file, .. } => Some(*file),
            Self::Rename { from: at, .. } | Self::Delete { at, .. } | Self::Rmdir { at } => {
                tree.find(at)
            }
            Self::FlushDirectory { dir } => Some(*dir),
            Self::Make { .. } | Self::Mkdir { .. } => None,
        }
    }

    /// Sends the operation, if it is no WRITE, and waits for its answers. `top` is the path of the
    /// tree in the share.
    pub(super) fn carry_out(
        &self,
        session: &mut SmbSession,
        (tree, top): (&Tree, &str),
        opens: &Opens,
    ) -> Result<SmbReplies, BenchError> {
        let wire = |path: &str| {
            let path = if path.is_empty() { top.to_owned() } else { format!("{top}/{path}") };
            to_utf16(&path.replace('/', "\\"))
        };
        let object = self.object(tree);
        let path = match self {
            Self::Make { at, .. } | Self::Mkdir { at, .. } => tree.path(at),
            Self::Rename { from: at, .. } | Self::Delete { at, .. } | Self::Rmdir { at } => {
                tree.path(at)
            }
            _ => object.and_then(|id| tree.paths(id).into_iter().next()).unwrap_or_default(),
        };
        let name = wire(&path);
        // A file with several names is renamed by the name that the open has.
        let by_name = |open: &&Opened| !matches!(self, Self::Rename { .. }) || open.path == path;
        let open = object.and_then(|id| opens.get(&id)).filter(by_name).map(|open| open.id);
        let mut info = Vec::new();
        let class = self.info(tree, wire, &mut info);
        let parts = Parts { name: &name, open, class, info: &info, ranges: &self.ranges() };
        session.call(&self.requests(&parts))
    }

    /// The compound.
    fn requests<'a>(&self, parts: &Parts<'a>) -> Vec<Request<'a>> {
        let Parts { name, open, class, info, ranges } = *parts;
        let create = |disposition, options| create(name, disposition, options);
        let existing = create(CreateDisposition::Open, CreateOptions::empty());
        let set = |file| Request::SetInfo { file, class, info };
        let (before, close) = (FileId::PREVIOUS, Request::Close(FileId::PREVIOUS));
        let (directory, delete) = (CreateOptions::DIRECTORY_FILE, CreateOptions::DELETE_ON_CLOSE);
        let file = open.unwrap_or(FileId::PREVIOUS);
        match self {
            Self::Make { through, .. } => {
                vec![create(CreateDisposition::Create, options(*through))]
            }
            Self::Open { through, .. } => vec![create(CreateDisposition::Open, options(*through))],
            Self::Overwrite { .. } => {
                vec![create(CreateDisposition::Overwrite, options(false)), close]
            }
            Self::Mkdir { .. } => vec![create(CreateDisposition::Create, directory), close],
            Self::Rmdir { .. } => vec![create(CreateDisposition::Open, directory | delete), close],
            Self::Delete { on_close: true, .. } => {
                vec![create(CreateDisposition::Open, delete), close]
            }
            Self::Delete { on_close: false, .. } => vec![existing, set(before), close],
            Self::Flush { .. } if open.is_some() => vec![Request::Flush(file)],
            Self::Flush { .. } => vec![existing, Request::Flush(before), close],
            Self::FlushDirectory { .. } => {
                let opened = open_as(FLUSH_ACCESS, name, CreateDisposition::Open, directory);
                vec![opened, Request::Flush(before), close]
            }
            Self::Size { .. } | Self::Rename { .. } | Self::Link { .. } if open.is_some() => {
                vec![set(file)]
            }
            Self::Size { .. } | Self::Rename { .. } | Self::Link { .. } => {
                vec![existing, set(before), close]
            }
            Self::Lock { .. } | Self::Unlock { .. } => vec![Request::Lock { file, ranges }],
            Self::Close { .. } | Self::Write { .. } => vec![Request::Close(file)],
        }
    }

    /// The range of a LOCK.
    fn ranges(&self) -> [LockRange; 1] {
        let exclusive = LockFlags::EXCLUSIVE | LockFlags::FAIL_IMMEDIATELY;
        let (first, count, flags) = match *self {
            Self::Lock { first, count, .. } => (first, count, exclusive),
            Self::Unlock { first, count, .. } => (first, count, LockFlags::UNLOCK),
            _ => (0, 0, exclusive),
        };
        [LockRange { offset: u64::from(first) * BLOCK, length: u64::from(count) * BLOCK, flags }]
    }

    /// Appends what a SET_INFO sets. Gives its class.
    fn info(&self, tree: &Tree, wire: impl Fn(&str) -> Vec<u8>, out: &mut Vec<u8>) -> u8 {
        let name;
        let info = match self {
            Self::Size { blocks, .. } => SetInfo::EndOfFile(u64::from(*blocks) * BLOCK),
            Self::Rename { to, .. } => {
                name = wire(&tree.path(to));
                SetInfo::Rename(Target { replace: true, posix: false, name: &name })
            }
            Self::Link { at, .. } => {
                name = wire(&tree.path(at));
                SetInfo::Link(Target { replace: false, posix: false, name: &name })
            }
            _ => SetInfo::Disposition(Disposition::DELETE),
        };
        info.encode(out);
        info.class()
    }
}

fn options(through: bool) -> CreateOptions {
    let mut options = CreateOptions::NON_DIRECTORY_FILE;
    options.set(CreateOptions::WRITE_THROUGH, through);
    options
}

fn create(name: &[u8], disposition: CreateDisposition, options: CreateOptions) -> Request<'_> {
    open_as(ACCESS, name, disposition, options)
}

fn open_as(
    access: AccessMask,
    name: &[u8],
    disposition: CreateDisposition,
    options: CreateOptions,
) -> Request<'_> {
    let contexts = CreateContexts::default();
    Request::Create(Open { name, access, disposition, options, contexts })
}
