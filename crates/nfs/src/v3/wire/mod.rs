//! The NFSv3 protocol as types: arguments and results of every procedure, both directions.
//!
//! A file per procedure, named as RFC 1813 names it; basic types (RFC 1813 §2) in files of their
//! own. Nothing here decides anything. Names, paths and data borrow from the input.

mod attributes;
mod dir_list;
mod handle;
mod result;
mod set_attributes;
mod status;
mod time;

mod access;
mod commit;
mod create;
mod fsinfo;
mod fsstat;
mod getattr;
mod link;
mod lookup;
mod mkdir;
mod mknod;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod remove;
mod rename;
mod rmdir;
mod setattr;
mod symlink;
mod write;

#[cfg(test)]
mod properties;
#[cfg(test)]
pub(crate) mod samples;

pub use access::{AccessArgs, AccessBits, AccessOk, AccessRes};
pub use attributes::{Fattr3, FileType, SpecData3, WccAttr, WccData};
pub use commit::{CommitArgs, CommitOk, CommitRes};
pub use create::{CreateArgs, CreateHow3, CreateRes};
pub use dir_list::ListWriter;
pub use fsinfo::{FsInfoArgs, FsInfoOk, FsInfoRes, FsProperties};
pub use fsstat::{FsStatArgs, FsStatOk, FsStatRes};
pub use getattr::{GetattrArgs, GetattrOk, GetattrRes};
pub use handle::{DirOpArgs3, FileHandle3, NewObject};
pub use link::{LinkArgs, LinkAttributes, LinkRes};
pub use lookup::{LookupArgs, LookupOk, LookupRes};
pub use mkdir::{MkdirArgs, MkdirRes};
pub use mknod::{DeviceData3, MknodArgs, MknodData3, MknodRes};
pub use pathconf::{PathconfArgs, PathconfOk, PathconfRes};
pub use read::{ReadArgs, ReadOk, ReadReply, ReadRes};
pub use readdir::{Entry3, ReaddirArgs, ReaddirOk, ReaddirRes};
pub use readdirplus::{EntryPlus3, ReaddirplusArgs, ReaddirplusOk, ReaddirplusRes};
pub use readlink::{ReadlinkArgs, ReadlinkOk, ReadlinkRes};
pub use remove::{RemoveArgs, RemoveRes};
pub use rename::{RenameArgs, RenameRes, RenameWcc};
pub use result::Res;
pub use rmdir::{RmdirArgs, RmdirRes};
pub use set_attributes::{Sattr3, SetTime3};
pub use setattr::{SetattrArgs, SetattrRes};
pub use status::Status;
pub use symlink::{SymlinkArgs, SymlinkRes};
pub use time::NfsTime3;
pub use write::{StableHow, WriteArgs, WriteHead, WriteOk, WriteRes};

/// The procedures of NFSv3 by their numbers (RFC 1813 §3.3). NULL has neither arguments nor
/// results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1813 §3.3.0 to §3.3.21")]
pub enum Procedure {
    Null = 0,
    Getattr = 1,
    Setattr = 2,
    Lookup = 3,
    Access = 4,
    Readlink = 5,
    Read = 6,
    Write = 7,
    Create = 8,
    Mkdir = 9,
    Symlink = 10,
    Mknod = 11,
    Remove = 12,
    Rmdir = 13,
    Rename = 14,
    Link = 15,
    Readdir = 16,
    Readdirplus = 17,
    Fsstat = 18,
    Fsinfo = 19,
    Pathconf = 20,
    Commit = 21,
}

impl Procedure {
    /// Every procedure, at the index that is its number.
    pub const ALL: [Self; 22] = [
        Self::Null,
        Self::Getattr,
        Self::Setattr,
        Self::Lookup,
        Self::Access,
        Self::Readlink,
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Mkdir,
        Self::Symlink,
        Self::Mknod,
        Self::Remove,
        Self::Rmdir,
        Self::Rename,
        Self::Link,
        Self::Readdir,
        Self::Readdirplus,
        Self::Fsstat,
        Self::Fsinfo,
        Self::Pathconf,
        Self::Commit,
    ];

    /// The procedure with this number, if there is one.
    #[inline]
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs3_types::nfs3::NFS_PROGRAM;

    #[test]
    fn procedures_have_the_numbers_and_names_of_the_standard() {
        for number in 0..22 {
            let ours = Procedure::of(number).unwrap();
            assert_eq!(ours as u32, number);
            let name = NFS_PROGRAM::try_from(number).unwrap().to_string();
            assert_eq!(alloc::format!("NFSPROC3_{ours:?}").to_uppercase(), name);
        }
        assert_eq!(Procedure::of(22), None);
        assert_eq!(Procedure::of(u32::MAX), None);
    }
}
