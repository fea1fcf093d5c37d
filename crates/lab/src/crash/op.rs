//! The operations of the load: as calls, and what their answers say.

use super::content::{self, BLOCK, Verifier};
use super::tree::{Handle, Id, Tree};
use weir_load::payload::Payload;
use weir_nfs::client::{CallError, Caller, RemoteCall, Reply};
use weir_nfs::v3::wire::{
    CommitArgs, CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, LinkArgs, MkdirArgs, NewObject,
    RemoveArgs, RenameArgs, Res, RmdirArgs, Sattr3, SetattrArgs, StableHow, Status, SymlinkArgs,
    WriteArgs,
};

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirEntry {
    pub(super) dir: Id,
    pub(super) name: String,
}

/// The mode of creating a file (RFC 1813 §3.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Unchecked,
    Guarded,
    Exclusive([u8; 8]),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Write { file: Id, first: u32, count: u32, number: u32, stable: StableHow },
    Commit { file: Id },
    Size { file: Id, blocks: u32 },
    Mode { object: Id, mode: u32 },
    Create { at: DirEntry, how: How, id: Id },
    Mkdir { at: DirEntry, id: Id },
    Symlink { at: DirEntry, id: Id, target: String },
    Link { object: Id, at: DirEntry },
    Rename { from: DirEntry, to: DirEntry },
    Remove { at: DirEntry },
    Rmdir { at: DirEntry },
}

/// The content of a successful reply that is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpReply {
    /// The handle of a new object.
    pub(super) handle: Option<Handle>,
    /// Of a WRITE or COMMIT.
    pub(super) verifier: Verifier,
    /// Of a WRITE: how stable, and how many bytes.
    pub(super) committed: Option<(StableHow, u32)>,
}

/// The source of payloads: the number of the run, and the buffer.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) run: u64,
    pub(super) payload: &'a Payload,
    /// Added to a client's number of an object, so that no two files of a run have the same.
    pub(super) file_base: u32,
}

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

impl Op {
    /// The operation in a word.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Write { stable: StableHow::Unstable, .. } => "write unstable",
            Self::Write { stable: StableHow::DataSync, .. } => "write data-sync",
            Self::Write { stable: StableHow::FileSync, .. } => "write file-sync",
            Self::Commit { .. } => "commit",
            Self::Size { .. } => "truncate",
            Self::Mode { .. } => "chmod",
            Self::Create { how: How::Exclusive(_), .. } => "create exclusive",
            Self::Create { .. } => "create",
            Self::Mkdir { .. } => "mkdir",
            Self::Symlink { .. } => "symlink",
            Self::Link { .. } => "link",
            Self::Rename { .. } => "rename",
            Self::Remove { .. } => "remove",
            Self::Rmdir { .. } => "rmdir",
        }
    }

    /// The mode of the new object, if that is determined.
    pub(super) const fn mode(&self) -> Option<u32> {
        match self {
            Self::Create { how: How::Unchecked | How::Guarded, .. } => Some(FILE_MODE),
            Self::Mkdir { .. } => Some(DIRECTORY_MODE),
            _ => None,
        }
    }

    /// Appends the call.
    pub(super) fn encode(
        &self,
        tree: &Tree,
        source: Source<'_>,
        caller: &Caller,
        out: &mut Vec<u8>,
        xid: u32,
    ) {
        let object = |id: &Id| FileHandle3(tree.handle(*id));
        let place = |at| -> DirOpArgs3<'_> { location(tree, at) };
        let with_mode = Sattr3 { mode: self.mode(), ..Sattr3::NONE };
        match self {
            Self::Write { file, first, count, number, stable } => {
                let name = source.file_base + file;
                let from = (source.run, source.payload);
                let data = content::bytes(from, name, (*first, *count), *number);
                let count = u32::try_from(data.len()).unwrap_or(0);
                let offset = u64::from(*first) * BLOCK;
                let (file, stable) = (object(file), *stable);
                caller.call(out, xid, &WriteArgs { file, offset, count, stable, data: &data });
            }
            Self::Commit { file } => {
                caller.call(out, xid, &CommitArgs { file: object(file), offset: 0, count: 0 });
            }
            Self::Size { file, blocks } => {
                let size = Some(u64::from(*blocks) * BLOCK);
                set(caller, out, xid, object(file), Sattr3 { size, ..Sattr3::NONE });
            }
            Self::Mode { object: id, mode } => {
                set(caller, out, xid, object(id), Sattr3 { mode: Some(*mode), ..Sattr3::NONE });
            }
            Self::Create { at, how, .. } => {
                let how = match how {
                    How::Unchecked => CreateHow3::Unchecked(with_mode),
                    How::Guarded => CreateHow3::Guarded(with_mode),
                    How::Exclusive(verifier) => CreateHow3::Exclusive(*verifier),
                };
                caller.call(out, xid, &CreateArgs { location: place(at), how });
            }
            Self::Mkdir { at, .. } => {
                caller.call(out, xid, &MkdirArgs { location: place(at), attributes: with_mode });
            }
            Self::Symlink { at, target, .. } => {
                let (location, data) = (place(at), target.as_bytes());
                caller.call(out, xid, &SymlinkArgs { location, attributes: Sattr3::NONE, data });
            }
            Self::Link { object: id, at } => {
                caller.call(out, xid, &LinkArgs { file: object(id), link: place(at) });
            }
            Self::Rename { from, to } => {
                caller.call(out, xid, &RenameArgs { from: place(from), to: place(to) });
            }
            Self::Remove { at } => caller.call(out, xid, &RemoveArgs { object: place(at) }),
            Self::Rmdir { at } => caller.call(out, xid, &RmdirArgs { object: place(at) }),
        }
    }

    /// Parses the reply: its content, or the status of the failure.
    pub(super) fn answer(&self, reply: &Reply<'_>) -> Result<Result<OpReply, Status>, CallError> {
        match self {
            Self::Write { .. } => read::<WriteArgs<'_>, _, _>(reply, |ok| OpReply {
                verifier: ok.verifier,
                committed: Some((ok.committed, ok.count)),
                ..OpReply::default()
            }),
            Self::Commit { .. } => read::<CommitArgs<'_>, _, _>(reply, |ok| OpReply {
                verifier: ok.verifier,
                ..OpReply::default()
            }),
            Self::Size { .. } | Self::Mode { .. } => read::<SetattrArgs<'_>, _, _>(reply, nothing),
            Self::Create { .. } => read::<CreateArgs<'_>, _, _>(reply, made),
            Self::Mkdir { .. } => read::<MkdirArgs<'_>, _, _>(reply, made),
            Self::Symlink { .. } => read::<SymlinkArgs<'_>, _, _>(reply, made),
            Self::Link { .. } => read::<LinkArgs<'_>, _, _>(reply, nothing),
            Self::Rename { .. } => read::<RenameArgs<'_>, _, _>(reply, nothing),
            Self::Remove { .. } => read::<RemoveArgs<'_>, _, _>(reply, nothing),
            Self::Rmdir { .. } => read::<RmdirArgs<'_>, _, _>(reply, nothing),
        }
    }

    /// Does the operation change names? Such a call is not carried out a second time.
    pub(super) const fn changes_names(&self) -> bool {
        !matches!(
            self,
            Self::Write { .. } | Self::Commit { .. } | Self::Size { .. } | Self::Mode { .. }
        )
    }

    /// The place at which the operation makes an object.
    pub(super) const fn makes(&self) -> Option<&DirEntry> {
        match self {
            Self::Create { at, .. } | Self::Mkdir { at, .. } | Self::Symlink { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// The place as the wire has it.
pub(super) fn location<'a>(tree: &'a Tree, at: &'a DirEntry) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(tree.handle(at.dir)), name: at.name.as_bytes() }
}

fn set(
    caller: &Caller,
    out: &mut Vec<u8>,
    xid: u32,
    object: FileHandle3<'_>,
    new_attributes: Sattr3,
) {
    caller.call(out, xid, &SetattrArgs { object, new_attributes, guard: None });
}

fn read<'r, A, O, F>(
    reply: &Reply<'r>,
    done: impl FnOnce(O) -> OpReply,
) -> Result<Result<OpReply, Status>, CallError>
where
    A: RemoteCall<Results<'r> = Res<O, F>>,
{
    Ok(match reply.results::<A>()? {
        Res::Ok(ok) => Ok(done(ok)),
        Res::Fail(status, _) => Err(status),
    })
}

fn made(ok: NewObject<'_>) -> OpReply {
    OpReply { handle: ok.object.map(|handle| handle.0.into()), ..OpReply::default() }
}

fn nothing<T>(_: T) -> OpReply {
    OpReply::default()
}
