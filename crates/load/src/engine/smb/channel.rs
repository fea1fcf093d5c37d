//! A connection of the load as SMB: operations to compounds of requests, and the responses to them.

use super::requests::{self, Names};
use crate::engine::Plan;
use crate::engine::content::Stretch;
use crate::engine::job::{Op, Request as Asked};
use crate::engine::net::{
    Channel, Data as ReadData, Event, Fault, Inbox, MARK_BYTES, Mark, Outbox, Outcome, Record,
    Records, Slot, Work,
};
use crate::payload::Payload;
use crate::workload::Stability;
use std::sync::Arc;
use weir_crypto::Provider;
use weir_smb::limits::FRAME_BYTES_MAX;
use weir_smb::wire::{FileId, Status};
use weir_smb_client::{Answer, ClientError, Data, Request, Write};

/// Bytes of a frame that are enough to understand any response but the data of a READ: compounds
/// of a CREATE with a context and a CLOSE are the longest.
const HEAD_BYTES: usize = 1024;

/// Frames of SMB out of the byte stream of a connection.
pub(super) struct SmbRecords(Inbox);

impl SmbRecords {
    /// Gives frames whole, which are at most `most` bytes long, or the front of each.
    pub(super) fn new(whole: Option<usize>) -> Self {
        Self(whole.map_or_else(|| Inbox::heads(HEAD_BYTES), Inbox::whole))
    }
}

/// The longest response to a request of `bytes` bytes.
pub(super) const fn frame_bytes_max(bytes: usize) -> usize {
    HEAD_BYTES + bytes
}

/// A zero byte and a length of 24 bits (MS-SMB2 §2.1).
fn mark(mark: [u8; MARK_BYTES]) -> Result<Mark, Fault> {
    let len = u32::from_be_bytes(mark) as usize;
    if len > FRAME_BYTES_MAX {
        return Err(Fault::Protocol(format!("a frame of {len} bytes, or no frame at all")));
    }
    Ok(Mark::Record(len))
}

impl Records for SmbRecords {
    #[inline]
    fn skip(&self) -> usize {
        self.0.skip()
    }

    #[inline]
    fn dropped(&mut self, count: usize) -> bool {
        self.0.dropped(count)
    }

    #[inline]
    fn restore(&mut self, buffer: &mut [u8]) -> usize {
        self.0.restore(buffer)
    }

    #[inline]
    fn feed(
        &mut self,
        bytes: &mut [u8],
        each: impl FnMut(Event<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.0.feed(bytes, mark, each).map(|_| ())
    }
}

/// A compound of which responses are still to come.
#[derive(Debug)]
struct Part {
    left: usize,
    /// The outcome as far as it is known: the first failure, or what the request for data moved.
    outcome: Outcome,
}

impl Default for Part {
    fn default() -> Self {
        Self { left: 0, outcome: Outcome::Done(0) }
    }
}

/// The protocol of one connection.
pub(super) struct SmbChannel {
    plan: Plan,
    channel: weir_smb_client::Channel<Provider>,
    /// The opens, by ascending number of the file.
    files: Vec<(u32, FileId)>,
    names: Names,
    /// Contexts of a CREATE; kept for its memory.
    buffer: Vec<u8>,
    /// By slot.
    parts: Vec<Part>,
    whole_bytes: Option<usize>,
    /// Varies plain payload and attributes.
    turn: u64,
}

impl SmbChannel {
    /// Over a connection that has `files` open.
    pub(super) fn new(
        plan: Plan,
        channel: weir_smb_client::Channel<Provider>,
        files: Vec<(u32, FileId)>,
        names: Names,
        whole_bytes: Option<usize>,
    ) -> Self {
        let (buffer, parts) = (Vec::new(), Vec::new());
        Self { plan, channel, files, names, buffer, parts, whole_bytes, turn: 0 }
    }

    /// The open of a file; one that no server has if it is not open here.
    fn file(&self, number: u32) -> FileId {
        let found = self.files.binary_search_by_key(&number, |(number, _)| *number);
        found.ok().and_then(|at| self.files.get(at)).map_or(FileId::PREVIOUS, |(_, file)| *file)
    }

    /// A WRITE of a block of the load. Where messages are plain its payload stays where it is.
    fn write(
        &mut self,
        out: &mut Outbox,
        token: u32,
        (file, offset): (FileId, u64),
        body: &Body,
    ) -> Result<Option<usize>, Fault> {
        let through = !matches!(self.plan.workload.stability, Stability::Unstable);
        let payload = Arc::clone(&self.plan.payload);
        let (front, start, rest) = match body {
            Body::Plain(bytes) => (&[][..], Payload::plain_start(self.turn), *bytes),
            Body::Stamped(content) => (content.front(), content.start, content.len),
        };
        let is_behind = self.channel.takes_data_behind();
        let here = if is_behind { &[][..] } else { payload.slice(start, rest) };
        let behind = u32::try_from(rest - here.len()).unwrap_or(u32::MAX);
        let data = Data { here: [front, here], behind };
        let write = Request::Write(Write { file, offset, through, data });
        let queued = queue(&mut self.channel, out, token, &[write])?;
        if queued.is_some() && behind > 0 {
            out.payload(start, rest);
        }
        Ok(queued)
    }

    fn encode(
        &mut self,
        out: &mut Outbox,
        (token, job): (u32, u32),
        request: &Asked,
    ) -> Result<Option<usize>, Fault> {
        match *request {
            Asked::Read { file, offset, bytes } => {
                let read = Request::Read { file: self.file(file), offset, length: bytes };
                queue(&mut self.channel, out, token, &[read])
            }
            Asked::Write { file, offset, bytes, generation } => {
                let body = match generation {
                    0 => Body::Plain(usize::try_from(bytes).unwrap_or(0)),
                    _ => Body::Stamped(self.plan.stretch(file, offset, bytes, generation)),
                };
                self.write(out, token, (self.file(file), offset), &body)
            }
            Asked::Commit { file, .. } => {
                let flush = Request::Flush(self.file(file));
                queue(&mut self.channel, out, token, &[flush])
            }
            Asked::Null => queue(&mut self.channel, out, token, &[Request::Echo]),
            Asked::Getattr { file } => {
                let request = requests::attributes(self.file(file));
                queue(&mut self.channel, out, token, &[request])
            }
            Asked::Setattr { file } => {
                let info = requests::changed_attributes(self.turn);
                let request = requests::set_attributes(self.file(file), &info);
                queue(&mut self.channel, out, token, &[request])
            }
            Asked::Fill { serial, offset, bytes } => {
                let data = self.plan.payload.plain(self.turn, usize::try_from(bytes).unwrap_or(0));
                let name = self.names.created(job, serial);
                let through = !matches!(self.plan.workload.stability, Stability::Unstable);
                let compound = requests::fill(name, (offset, data), through);
                queue(&mut self.channel, out, token, &compound)
            }
            Asked::Access { .. }
            | Asked::Lookup { .. }
            | Asked::Create { .. }
            | Asked::Remove { .. }
            | Asked::Unlink { .. }
            | Asked::Mkdir { .. }
            | Asked::Rmdir { .. } => self.names(out, (token, job), request),
        }
    }

    /// Compounds that open a name and close it.
    fn names(
        &mut self,
        out: &mut Outbox,
        (token, job): (u32, u32),
        request: &Asked,
    ) -> Result<Option<usize>, Fault> {
        let Self { names, plan, channel, buffer, .. } = self;
        let file = |number: u32| {
            let spec = plan.files.get(usize::try_from(number).unwrap_or(usize::MAX));
            spec.map_or("", |spec| spec.name.as_str())
        };
        let compound = match *request {
            Asked::Access { file: number } => requests::access(names.of(file(number)), buffer),
            Asked::Lookup { file: number } => requests::look_up(names.of(file(number))),
            Asked::Create { serial } => requests::create(names.created(job, serial)),
            Asked::Remove { serial } => requests::remove(names.created(job, serial), false),
            Asked::Unlink { file: number } => requests::remove(names.of(file(number)), false),
            Asked::Mkdir { serial } => requests::make_directory(names.directory(job, serial)),
            Asked::Rmdir { serial } => requests::remove(names.directory(job, serial), true),
            _ => return Ok(None),
        };
        queue(channel, out, token, &compound)
    }
}

/// Appends a compound. Gives the number of its requests, or none if it can't be sent yet.
#[inline]
fn queue(
    channel: &mut weir_smb_client::Channel<Provider>,
    out: &mut Outbox,
    token: u32,
    requests: &[Request<'_>],
) -> Result<Option<usize>, Fault> {
    let mut queued = Ok(false);
    out.head(|out| queued = channel.queue(out, token, requests));
    Ok(queued?.then_some(requests.len()))
}

/// The content of a WRITE.
enum Body {
    /// So many bytes that need not be told apart.
    Plain(usize),
    /// A block with a stamp, or the rest of one.
    Stamped(Stretch),
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<weir_smb::wire::WireError> for Fault {
    fn from(error: weir_smb::wire::WireError) -> Self {
        ClientError::from(error).into()
    }
}

impl Channel for SmbChannel {
    type Records = SmbRecords;

    fn whole_bytes(&self) -> Option<usize> {
        self.whole_bytes
    }

    #[inline]
    fn send(
        &mut self,
        out: &mut Outbox,
        (slot, job): (usize, u32),
        op: &Op,
    ) -> Result<Option<u32>, Fault> {
        self.turn = self.turn.wrapping_add(1);
        let token = u32::try_from(slot).unwrap_or(u32::MAX);
        let Some(requests) = self.encode(out, (token, job), &op.request)? else { return Ok(None) };
        if self.parts.len() <= slot {
            self.parts.resize_with(slot + 1, Part::default);
        }
        if let Some(part) = self.parts.get_mut(slot) {
            *part = Part { left: requests, ..Part::default() };
        }
        Ok(Some(token))
    }

    #[inline]
    fn answer(
        &mut self,
        record: Record<'_>,
        slots: &[Slot],
        look: &mut impl FnMut(usize, &Work, ReadData<'_>),
        mut each: impl FnMut(usize, Outcome),
    ) -> Result<(), Fault> {
        let Self { channel, parts, whole_bytes, plan, .. } = self;
        let looks = whole_bytes.is_some() && plan.workload.verify_reads;
        channel.take(record.head, record.bytes, |answer| {
            let slot = usize::try_from(answer.token).unwrap_or(usize::MAX);
            let (Some(part), Some(Slot { request: Some(sent), .. })) =
                (parts.get_mut(slot), slots.get(slot))
            else {
                return Err(Fault::Protocol("a response to a free slot".to_owned()));
            };
            part.take(&answer, &sent.work, |data| {
                if looks {
                    look(slot, &sent.work, data);
                }
            })?;
            if part.left == 0 {
                each(slot, std::mem::take(part).outcome);
            }
            Ok(())
        })
    }
}

impl Part {
    /// Takes one response.
    #[inline]
    fn take(
        &mut self,
        answer: &Answer<'_>,
        work: &Work,
        mut look: impl FnMut(ReadData<'_>),
    ) -> Result<(), Fault> {
        self.left = self.left.saturating_sub(1);
        let is_data = answer.element == requests::data_at(&work.op.request);
        let outcome = match (answer.status, &work.op.request) {
            (Status::SUCCESS, Asked::Read { bytes, .. }) => {
                let read = answer.data()?;
                let is_short = read.length < *bytes;
                look(if is_short { ReadData::Part(read.data) } else { ReadData::Last(read.data) });
                Outcome::moved("read", read.length, *bytes)
            }
            (Status::SUCCESS, Asked::Write { bytes, .. } | Asked::Fill { bytes, .. })
                if is_data =>
            {
                Outcome::moved("write", answer.written()?, *bytes)
            }
            (Status::SUCCESS, _) => return Ok(()),
            // There is nothing at the place of the read.
            (Status::END_OF_FILE, Asked::Read { bytes, .. }) => {
                look(ReadData::Last(&[]));
                Outcome::ended(0, *bytes)
            }
            (Status::OBJECT_NAME_NOT_FOUND, _) => Outcome::Absent("STATUS_OBJECT_NAME_NOT_FOUND"),
            (status, _) => Outcome::Failed(status.to_string()),
        };
        if !matches!(self.outcome, Outcome::Absent(_) | Outcome::Failed(_)) {
            self.outcome = outcome;
        }
        Ok(())
    }
}
