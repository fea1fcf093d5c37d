//! Which procedure each NFSv3 argument belongs to, and what it answers (RFC 1813 §3.3).

use super::call::RemoteCall;
use crate::v3::wire::{
    AccessArgs, AccessRes, CommitArgs, CommitRes, CreateArgs, CreateRes, FsInfoArgs, FsInfoRes,
    FsStatArgs, FsStatRes, GetattrArgs, GetattrRes, LinkArgs, LinkRes, LookupArgs, LookupRes,
    MkdirArgs, MkdirRes, MknodArgs, MknodRes, PathconfArgs, PathconfRes, Procedure, ReadArgs,
    ReadRes, ReaddirArgs, ReaddirRes, ReaddirplusArgs, ReaddirplusRes, ReadlinkArgs, ReadlinkRes,
    RemoveArgs, RemoveRes, RenameArgs, RenameRes, RmdirArgs, RmdirRes, SetattrArgs, SetattrRes,
    SymlinkArgs, SymlinkRes, WriteArgs, WriteRes,
};
use crate::xdr::{Encode, Writer};
use crate::{PROGRAM_NFS, v3};

/// NULL of NFSv3: does nothing (RFC 1813 §3.3.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Null;

impl Encode for Null {
    #[inline]
    fn encode(&self, _: &mut Writer) {}
}

macro_rules! procedures {
    ($($args:ty => $procedure:ident, $results:ty;)*) => {
        $(
            impl RemoteCall for $args {
                const PROGRAM: u32 = PROGRAM_NFS;
                const VERSION: u32 = v3::VERSION;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

procedures! {
    Null => Null, ();
    GetattrArgs<'_> => Getattr, GetattrRes;
    SetattrArgs<'_> => Setattr, SetattrRes;
    LookupArgs<'_> => Lookup, LookupRes<'r>;
    AccessArgs<'_> => Access, AccessRes;
    ReadlinkArgs<'_> => Readlink, ReadlinkRes<'r>;
    ReadArgs<'_> => Read, ReadRes<'r>;
    WriteArgs<'_> => Write, WriteRes;
    CreateArgs<'_> => Create, CreateRes<'r>;
    MkdirArgs<'_> => Mkdir, MkdirRes<'r>;
    SymlinkArgs<'_> => Symlink, SymlinkRes<'r>;
    MknodArgs<'_> => Mknod, MknodRes<'r>;
    RemoveArgs<'_> => Remove, RemoveRes;
    RmdirArgs<'_> => Rmdir, RmdirRes;
    RenameArgs<'_> => Rename, RenameRes;
    LinkArgs<'_> => Link, LinkRes;
    ReaddirArgs<'_> => Readdir, ReaddirRes<'r>;
    ReaddirplusArgs<'_> => Readdirplus, ReaddirplusRes<'r>;
    FsStatArgs<'_> => Fsstat, FsStatRes;
    FsInfoArgs<'_> => Fsinfo, FsInfoRes;
    PathconfArgs<'_> => Pathconf, PathconfRes;
    CommitArgs<'_> => Commit, CommitRes;
}
