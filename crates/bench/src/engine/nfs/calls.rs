//! Encoding a request into a connection's outbox.

use super::outbox::Outbox;
use crate::engine::Plan;
use crate::engine::job::{Request, created_name, file_name};
use crate::payload::{BlockName, Payload};
use crate::verify::{STAMP_BYTES, stamp};
use crate::workload::Stability;
use weir_nfs::client::{Caller, Null, padding};
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, CommitArgs, CreateArgs, CreateHow3, DirOpArgs3, FileHandle3,
    GetattrArgs, LookupArgs, ReadArgs, RemoveArgs, Sattr3, StableHow, WriteHead,
};

/// The handles of a run.
#[derive(Debug)]
pub(super) struct Handles {
    pub(super) directory: Box<[u8]>,
    /// By file number.
    pub(super) files: Vec<Box<[u8]>>,
    /// Names of the files, by number; only for LOOKUP.
    pub(super) names: Vec<String>,
}

impl Handles {
    /// No files yet.
    pub(super) const fn new(directory: Box<[u8]>) -> Self {
        Self { directory, files: Vec::new(), names: Vec::new() }
    }

    /// The next file.
    pub(super) fn push(&mut self, handle: Box<[u8]>) {
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.names.push(file_name(number));
        self.files.push(handle);
    }

    pub(super) fn file(&self, number: u32) -> FileHandle3<'_> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        FileHandle3(self.files.get(index).map_or(&[], AsRef::as_ref))
    }

    fn name(&self, number: u32) -> &[u8] {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.names.get(index).map_or(&[], String::as_bytes)
    }

    pub(super) fn entry<'a>(&'a self, name: &'a [u8]) -> DirOpArgs3<'a> {
        DirOpArgs3 { dir: FileHandle3(&self.directory), name }
    }
}

/// Encodes requests under one identity.
pub(super) struct Encoder<'a> {
    pub(super) plan: &'a Plan,
    pub(super) caller: &'a Caller,
    pub(super) handles: &'a Handles,
    /// Varies plain payload.
    pub(super) turn: u64,
}

impl Encoder<'_> {
    /// Appends the call for `request` of `job` to `out`.
    pub(super) fn encode(&mut self, out: &mut Outbox, xid: u32, job: u32, request: &Request) {
        let (caller, handles) = (self.caller, self.handles);
        let count = self.plan.workload.block_bytes;
        match *request {
            Request::Read { file, block } => {
                let offset = block * u64::from(count);
                let args = ReadArgs { file: handles.file(file), offset, count };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Write { file, block, generation } => {
                self.write(out, xid, file, block, generation);
            }
            Request::Commit { file } => {
                let args = CommitArgs { file: handles.file(file), offset: 0, count: 0 };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Null => out.head(|out| caller.call(out, xid, &Null)),
            Request::Getattr { file } => {
                let args = GetattrArgs { object: handles.file(file) };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Access { file } => {
                let access = AccessBits::READ | AccessBits::MODIFY | AccessBits::EXECUTE;
                let args = AccessArgs { object: handles.file(file), access };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Lookup { file } => {
                let args = LookupArgs { what: handles.entry(handles.name(file)) };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Create { serial } => {
                let name = created_name(job, serial);
                let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
                let args = CreateArgs { location: handles.entry(name.as_bytes()), how };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Remove { serial } => {
                let name = created_name(job, serial);
                let args = RemoveArgs { object: handles.entry(name.as_bytes()) };
                out.head(|out| caller.call(out, xid, &args));
            }
        }
    }

    fn write(&mut self, out: &mut Outbox, xid: u32, file: u32, block: u64, generation: u32) {
        let workload = &self.plan.workload;
        let count = workload.block_bytes;
        let len = usize::try_from(count).unwrap_or(0);
        let offset = block * u64::from(count);
        let head = WriteHead {
            file: self.handles.file(file),
            offset,
            count,
            stable: stable_how(workload.stability),
            data_len: count,
        };
        out.head(|out| self.caller.write_head(out, xid, &head));
        if generation > 0 {
            let name = BlockName { run: self.plan.run, file, offset, generation };
            out.head(|out| out.extend_from_slice(&stamp(name)));
            out.payload(Payload::body_start(name), len - STAMP_BYTES);
        } else {
            self.turn = self.turn.wrapping_add(1);
            out.payload(Payload::plain_start(self.turn), len);
        }
        let pad = padding(count);
        if !pad.is_empty() {
            out.head(|out| out.extend_from_slice(pad));
        }
    }
}

/// The same in the terms of the protocol.
pub(super) const fn stable_how(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::DataSync => StableHow::DataSync,
        Stability::FileSync => StableHow::FileSync,
    }
}
