//! The steps that can be taken on a volume, in words that mean the same to every side.
//!
//! Objects are named by slots: numbered places in which each side keeps what it found or made, in
//! its own terms (a store's key, a handle). So a step needs nothing that an earlier one answered,
//! and steps can be left out one by one to find out which of them matter. Slots keep objects that
//! are gone, as clients do.

use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, Credentials, SetAttr};

/// The first slots hold directories, and slot 0 the root for ever.
pub(crate) const DIRECTORIES: usize = 8;
/// Slots behind the directories' that hold files, as soon as there are some.
pub(crate) const FILES: usize = 24;
/// All slots that steps choose among; the last hold anything.
pub(crate) const SLOTS: usize = 48;

/// One call and what surrounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Which of [`callers`] calls.
    pub(crate) by: usize,
    /// Over the wire, the call is sent once more after its answer.
    pub(crate) again: Again,
    pub(crate) op: Op,
}

/// Whether a client sends a call a second time, as if it had lost the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    SameConnection,
    OtherConnection,
}

/// A name in a directory, by its slot.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) dir: usize,
    pub(crate) name: Bytes,
}

/// A name or the target of a link; a long one is shown in part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.get(..40) {
            Some(front) => write!(f, "\"{}…\" ({} bytes)", front.escape_ascii(), self.0.len()),
            None => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

impl std::fmt::Debug for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in {}", self.name, self.dir)
    }
}

/// A call. `into` is the slot for the object that it finds or makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Getattr {
        object: usize,
    },
    Setattr {
        object: usize,
        set: SetAttr,
        guard: Guard,
    },
    Lookup {
        at: At,
        into: usize,
    },
    Access {
        object: usize,
    },
    Readlink {
        object: usize,
    },
    Read {
        object: usize,
        offset: u64,
        count: u32,
    },
    Write {
        object: usize,
        offset: u64,
        length: usize,
        fill: u8,
        how: Stable,
    },
    Create {
        at: At,
        how: How,
        into: usize,
    },
    Make {
        at: At,
        kind: Kind,
        set: SetAttr,
        into: usize,
    },
    Remove {
        at: At,
    },
    Rmdir {
        at: At,
    },
    Rename {
        from: At,
        to: At,
    },
    Link {
        object: usize,
        at: At,
    },
    List {
        dir: usize,
        with: With,
        bytes: u32,
    },
    /// One more page of a listing that the steps between may disturb, or its first.
    Page {
        begin: Option<usize>,
    },
    Fsstat {
        object: usize,
    },
    Commit {
        object: usize,
    },
    Getacl {
        object: usize,
    },
    Setacl {
        object: usize,
        access: Option<usize>,
        default: Option<usize>,
    },
    /// Everything that is only in a server's memory is lost.
    Restart,
}

impl Op {
    /// The number of different [`name`](Self::name)s.
    pub(crate) const KINDS: usize = 23;

    /// The procedure that it is, in the words of RFC 1813.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Getattr { .. } => "GETATTR",
            Self::Setattr { .. } => "SETATTR",
            Self::Lookup { .. } => "LOOKUP",
            Self::Access { .. } => "ACCESS",
            Self::Readlink { .. } => "READLINK",
            Self::Read { .. } => "READ",
            Self::Write { .. } => "WRITE",
            Self::Create { .. } => "CREATE",
            Self::Make { kind: Kind::Directory, .. } => "MKDIR",
            Self::Make { kind: Kind::Symlink(_), .. } => "SYMLINK",
            Self::Make { .. } => "MKNOD",
            Self::Remove { .. } => "REMOVE",
            Self::Rmdir { .. } => "RMDIR",
            Self::Rename { .. } => "RENAME",
            Self::Link { .. } => "LINK",
            Self::List { with: With::Names, .. } => "READDIR",
            Self::List { .. } => "READDIRPLUS",
            Self::Page { .. } => "a page",
            Self::Fsstat { .. } => "FSSTAT",
            Self::Commit { .. } => "COMMIT",
            Self::Getacl { .. } => "GETACL",
            Self::Setacl { .. } => "SETACL",
            Self::Restart => "restart",
        }
    }
}

impl Op {
    /// The names that may come or go by it.
    pub(crate) fn changed_names(&self) -> impl Iterator<Item = &[u8]> {
        let (first, second) = match self {
            Self::Create { at, .. }
            | Self::Make { at, .. }
            | Self::Remove { at }
            | Self::Rmdir { at }
            | Self::Link { at, .. } => (Some(at), None),
            Self::Rename { from, to } => (Some(from), Some(to)),
            _ => (None, None),
        };
        first.into_iter().chain(second).map(|at| at.name.0.as_slice())
    }
}

/// The guard of a SETATTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    None,
    Right,
    Wrong,
}

/// `stable_how` of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Stable {
    Unstable,
    DataSync,
    FileSync,
}

/// `createhow3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Unchecked(SetAttr),
    Guarded(SetAttr),
    Exclusive([u8; 8]),
}

/// The kinds of objects that MKDIR, SYMLINK and MKNOD make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Symlink(Bytes),
    Fifo,
    Socket,
    CharDevice(u32, u32),
}

/// READDIR, or READDIRPLUS with its `dircount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    Names,
    Objects { dir_count: u32 },
}

/// The callers: root, and users of whom some share groups.
pub(crate) fn callers() -> [Credentials; 4] {
    let many: Vec<u32> = (3000..3015).chain([2002]).collect();
    [
        Credentials::ROOT,
        Credentials::new(1001, 2001),
        Credentials::new(1002, 2002).with_groups(&[2001, 2003]),
        Credentials::new(1003, 2003).with_groups(&many),
    ]
}

/// Access control lists to set: none, a mere mode, and some with names.
pub(crate) fn lists() -> [Option<Acl>; 5] {
    let all = Access::all();
    let named = |mode: u32, named: &[(Who, Access)], mask: Access| {
        let mut entries = Acl::from_mode(mode).entries().to_vec();
        entries.extend(named.iter().map(|&(who, rights)| Entry { who, rights }));
        entries.push(Entry { who: Who::Mask, rights: mask });
        Some(Acl::new(entries).unwrap())
    };
    [
        None,
        Some(Acl::from_mode(0o751)),
        named(0o700, &[(Who::User(1001), all)], Access::READ | Access::EXECUTE),
        named(0o751, &[(Who::Group(2003), Access::READ | Access::WRITE)], all),
        named(0o777, &[(Who::User(1002), Access::empty()), (Who::Group(2002), all)], all),
    ]
}

/// The data of a WRITE: different in every place, so that misplaced bytes are seen.
pub(crate) fn data(fill: u8, offset: u64, length: usize) -> Vec<u8> {
    let start = offset.to_le_bytes()[0];
    let byte = |n: usize| fill ^ start.wrapping_add(n.to_le_bytes()[0]).wrapping_mul(31) | 1;
    (0..length).map(byte).collect()
}
