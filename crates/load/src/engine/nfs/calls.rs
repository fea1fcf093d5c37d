//! Encoding a request into a connection's outbox.

use crate::engine::Plan;
use crate::engine::job::{Request, created_name, directory_name};
use crate::engine::net::Outbox;
use crate::payload::Payload;
use crate::workload::Stability;
use std::collections::HashMap;
use std::sync::Arc;
use weir_nfs::client::{Caller, Null, padding};
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, CommitArgs, CreateArgs, CreateHow3, DirOpArgs3, FileHandle3,
    GetattrArgs, LookupArgs, MkdirArgs, ReadArgs, RemoveArgs, RmdirArgs, Sattr3, SetattrArgs,
    StableHow, WriteHead,
};

/// Modes that SETATTR sets in turn, so that each changes something.
const MODES: [u32; 2] = [0o600, 0o644];

/// The handles of a run.
#[derive(Clone, Debug)]
pub(super) struct Handles {
    pub(super) directory: Box<[u8]>,
    /// By file number; empty where this process has no use for the file.
    files: Vec<Box<[u8]>>,
}

impl Handles {
    /// Of `count` files, none of which is known yet.
    pub(super) fn new(directory: Box<[u8]>, count: usize) -> Self {
        Self { directory, files: vec![Box::default(); count] }
    }

    /// File `index` is there.
    pub(super) fn set(&mut self, index: usize, handle: Box<[u8]>) {
        if let Some(place) = self.files.get_mut(index) {
            *place = handle;
        }
    }

    /// Is file `index` known?
    pub(super) fn has(&self, index: usize) -> bool {
        self.files.get(index).is_some_and(|handle| !handle.is_empty())
    }

    pub(super) fn file(&self, number: u32) -> FileHandle3<'_> {
        self.at(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The file at this place in the list.
    pub(super) fn at(&self, index: usize) -> FileHandle3<'_> {
        FileHandle3(self.files.get(index).map_or(&[], AsRef::as_ref))
    }

    pub(super) fn entry<'a>(&'a self, name: &'a [u8]) -> DirOpArgs3<'a> {
        DirOpArgs3 { dir: FileHandle3(&self.directory), name }
    }
}

/// Encodes the requests of one connection.
pub(super) struct Encoder {
    pub(super) plan: Plan,
    pub(super) caller: Caller,
    pub(super) handles: Arc<Handles>,
    /// Handles of what jobs created and will fill, by slot: a file is filled in the slot in which
    /// it was created.
    pub(super) made: HashMap<usize, Box<[u8]>>,
    /// Varies plain payload.
    pub(super) turn: u64,
}

impl Encoder {
    /// Appends the call for `request` of a slot and a job to `out`.
    pub(super) fn encode(
        &mut self,
        out: &mut Outbox,
        xid: u32,
        (slot, job): (usize, u32),
        request: &Request,
    ) {
        if changes(request) {
            self.turn = self.turn.wrapping_add(1);
        }
        let Self { caller, handles, .. } = &*self;
        match *request {
            Request::Read { file, offset, bytes } => {
                let args = ReadArgs { file: handles.file(file), offset, count: bytes };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Write { file, offset, bytes, generation: 0 } => {
                self.write_plain(out, xid, handles.file(file), offset, bytes);
            }
            Request::Write { file, offset, bytes, generation } => {
                let content = self.plan.stretch(file, offset, bytes, generation);
                self.write_head(out, xid, handles.file(file), offset, bytes);
                out.head(|out| out.extend_from_slice(content.front()));
                out.payload(content.start, content.len);
                pad(out, bytes);
            }
            Request::Fill { offset, bytes, .. } => {
                let handle = self.made.get(&slot).map_or(&[][..], AsRef::as_ref);
                self.write_plain(out, xid, FileHandle3(handle), offset, bytes);
            }
            Request::Commit { file, .. } => {
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
            Request::Lookup { .. }
            | Request::Setattr { .. }
            | Request::Create { .. }
            | Request::Remove { .. }
            | Request::Unlink { .. }
            | Request::Mkdir { .. }
            | Request::Rmdir { .. } => self.names(out, xid, job, request),
        }
    }

    /// Calls about names, and about attributes.
    fn names(&self, out: &mut Outbox, xid: u32, job: u32, request: &Request) {
        let Self { caller, handles, plan, turn, .. } = self;
        match *request {
            Request::Unlink { file } => {
                let args = RemoveArgs { object: handles.entry(name_of(plan, file)) };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Lookup { file } => {
                let name = name_of(plan, file);
                let args = LookupArgs { what: handles.entry(name) };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Setattr { file } => {
                let [odd, even] = MODES;
                let mode = if turn.is_multiple_of(2) { even } else { odd };
                let new_attributes = Sattr3 { mode: Some(mode), ..Sattr3::NONE };
                let args = SetattrArgs { object: handles.file(file), new_attributes, guard: None };
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
            Request::Mkdir { serial } => {
                let name = directory_name(job, serial);
                let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
                let args = MkdirArgs { location: handles.entry(name.as_bytes()), attributes };
                out.head(|out| caller.call(out, xid, &args));
            }
            Request::Rmdir { serial } => {
                let name = directory_name(job, serial);
                let args = RmdirArgs { object: handles.entry(name.as_bytes()) };
                out.head(|out| caller.call(out, xid, &args));
            }
            _ => {}
        }
    }

    fn write_plain(
        &self,
        out: &mut Outbox,
        xid: u32,
        file: FileHandle3<'_>,
        offset: u64,
        bytes: u32,
    ) {
        self.write_head(out, xid, file, offset, bytes);
        out.payload(Payload::plain_start(self.turn), usize::try_from(bytes).unwrap_or(0));
        pad(out, bytes);
    }

    fn write_head(
        &self,
        out: &mut Outbox,
        xid: u32,
        file: FileHandle3<'_>,
        offset: u64,
        bytes: u32,
    ) {
        let head = WriteHead {
            file,
            offset,
            count: bytes,
            stable: stable_how(self.plan.workload.stability),
            data_len: bytes,
        };
        out.head(|out| self.caller.write_head(out, xid, &head));
    }
}

/// The name of a laid-out file.
fn name_of(plan: &Plan, file: u32) -> &[u8] {
    let spec = usize::try_from(file).ok().and_then(|index| plan.files.get(index));
    spec.map_or(&[][..], |spec| spec.name.as_bytes())
}

/// Does the request write something that is to differ from the last time?
const fn changes(request: &Request) -> bool {
    matches!(
        request,
        Request::Write { generation: 0, .. } | Request::Fill { .. } | Request::Setattr { .. }
    )
}

fn pad(out: &mut Outbox, bytes: u32) {
    let pad = padding(bytes);
    if !pad.is_empty() {
        out.head(|out| out.extend_from_slice(pad));
    }
}

/// The stability in the terms of the protocol.
pub(super) const fn stable_how(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::DataSync => StableHow::DataSync,
        Stability::FileSync => StableHow::FileSync,
    }
}
