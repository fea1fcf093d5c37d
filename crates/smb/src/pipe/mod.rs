//! The named pipes of `IPC$`: DCE/RPC with enough of srvsvc and wkssvc to list shares.
//!
//! A [`Pipe`] is the server's end of one open of `\PIPE\srvsvc` or `\PIPE\wkssvc`: the client
//! writes fragments of connection-oriented RPC (C706 §12, MS-RPCE §2.2.2), and reads those of the
//! answers. Numbers are little-endian and the transfer syntax is NDR.
//!
//! Not here: the SMB operations by which they come and go (WRITE, READ,
//! FSCTL_PIPE_TRANSCEIVE), security within RPC (the session signs and seals), and the decision
//! which shares a caller may see.

mod bind;
mod limits;
mod ndr;
mod rpc;
mod srvsvc;
#[cfg(test)]
mod tests;
mod wkssvc;

pub use limits::{
    CALL_BYTES_MAX, CONTEXTS_MAX, FRAGMENT_BYTES_LEAST, FRAGMENT_BYTES_MAX, SHARES_MAX,
    UNREAD_BYTES_MAX,
};

use crate::le::Truncated;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use rpc::{Fault, Flags, Header, Kind};

/// The interface behind a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// The server service (MS-SRVS).
    Srvsvc,
    /// The workstation service (MS-WKST).
    Wkssvc,
}

impl Interface {
    /// The interface of a pipe's name, without regard to case.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        [Self::Srvsvc, Self::Wkssvc]
            .into_iter()
            .find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Srvsvc => "srvsvc",
            Self::Wkssvc => "wkssvc",
        }
    }
}

/// The server, as its answers describe it.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The name of the machine.
    pub name: &'a str,
    /// The workgroup.
    pub group: &'a str,
    /// A comment for people.
    pub comment: &'a str,
    /// Lists the shares that the caller may see, the hidden ones among them, which clients leave
    /// out. There may be many: only calls about shares ask.
    pub shares: &'a dyn Fn() -> Vec<Share<'a>>,
}

/// A share.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// The name.
    pub name: &'a str,
    /// A comment for people.
    pub comment: &'a str,
    /// The kind.
    pub kind: ShareKind,
}

/// The kind of a share (MS-SRVS §2.2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// A directory.
    Disk,
    /// A directory that lists of shares leave out. A client that knows its name gets its details.
    HiddenDisk,
    /// `IPC$`.
    Ipc,
}

/// The client broke a rule, and the pipe with it: no write is taken any more
/// (STATUS_PIPE_DISCONNECTED).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipeError {
    /// A fragment is malformed, or out of place.
    #[error("a fragment breaks the protocol")]
    Protocol,
    /// A fragment or a call is over its bound, or calls follow each other unread.
    #[error("the client sends more than is taken")]
    TooMuch,
}

impl From<Truncated> for PipeError {
    fn from(_: Truncated) -> Self {
        Self::Protocol
    }
}

/// The server's end of a pipe.
#[derive(Debug)]
pub struct Pipe {
    interface: Interface,
    /// The beginning of a fragment that is not whole yet.
    input: Vec<u8>,
    call: Option<Call>,
    /// The contexts accepted; nothing before the bind.
    contexts: Option<Vec<u16>>,
    /// The largest fragment to send.
    fragment: u16,
    /// Fragments to be read, with the bytes of the first that have been.
    output: VecDeque<Vec<u8>>,
    read: usize,
    broken: Option<PipeError>,
}

/// A call of which not all fragments are here.
#[derive(Debug)]
struct Call {
    id: u32,
    context: u16,
    operation: u16,
    input: Vec<u8>,
}

impl Pipe {
    /// The end of a pipe that has just been opened.
    #[must_use]
    pub const fn new(interface: Interface) -> Self {
        Self {
            interface,
            input: Vec::new(),
            call: None,
            contexts: None,
            fragment: FRAGMENT_BYTES_LEAST,
            output: VecDeque::new(),
            read: 0,
            broken: None,
        }
    }

    /// Takes what the client wrote: fragments, or parts of them. What they ask is answered at once,
    /// about `host`, and can be read.
    ///
    /// # Errors
    /// [`PipeError`], now and from then on.
    pub fn write(&mut self, bytes: &[u8], host: &Host<'_>) -> Result<(), PipeError> {
        let mut rest = bytes;
        while self.broken.is_none() && !rest.is_empty() {
            let done = self.take(&mut rest, host);
            self.broken = done.err();
        }
        self.broken.map_or(Ok(()), Err)
    }

    /// Gives at most `max` bytes of the next fragment, and whether there is more of it
    /// (STATUS_BUFFER_OVERFLOW); nothing if there is none to be read.
    pub fn read(&mut self, max: usize) -> Option<(Vec<u8>, bool)> {
        let fragment = self.output.front()?;
        let end = self.read.saturating_add(max).min(fragment.len());
        let part = fragment.get(self.read..end).map(Vec::from)?;
        let more = end < fragment.len();
        self.read = if more { end } else { 0 };
        if !more {
            self.output.pop_front();
        }
        Some((part, more))
    }

    /// The bytes of the next fragment that are not read yet; 0 if there is none.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.output.front().map_or(0, |fragment| fragment.len().saturating_sub(self.read))
    }

    /// Bytes that the pipe holds: of what the client has not written to its end, and of what it has
    /// not read.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |call| call.input.len());
        self.unread_bytes().saturating_add(self.input.len()).saturating_add(call)
    }

    fn unread_bytes(&self) -> usize {
        self.output.iter().map(Vec::len).fold(0, usize::saturating_add)
    }

    /// Takes bytes up to the end of a fragment, and the fragment if it is whole.
    fn take(&mut self, rest: &mut &[u8], host: &Host<'_>) -> Result<(), PipeError> {
        let wanted = match self.input.first_chunk() {
            Some(head) => usize::from(Header::decode(head)?.length),
            None => Header::BYTES,
        };
        let missing = wanted.saturating_sub(self.input.len()).min(rest.len());
        let (taken, after) = rest.split_at_checked(missing).ok_or(PipeError::Protocol)?;
        self.input.extend_from_slice(taken);
        *rest = after;
        let Some((head, body)) = self.input.split_first_chunk() else { return Ok(()) };
        let header = Header::decode(head)?;
        if self.input.len() < usize::from(header.length) {
            return Ok(());
        }
        let body = Vec::from(body);
        self.input.clear();
        self.fragment(&header, &body, host)
    }

    fn fragment(&mut self, header: &Header, body: &[u8], host: &Host<'_>) -> Result<(), PipeError> {
        if self.unread_bytes() > UNREAD_BYTES_MAX {
            return Err(PipeError::TooMuch);
        }
        match header.kind {
            Kind::BIND if self.contexts.is_none() => self.bind(header, body),
            Kind::ALTER_CONTEXT if self.contexts.is_some() => self.bind(header, body),
            Kind::REQUEST if header.security == 0 => self.request(header, body, host),
            // A call is answered before its cancellation can come.
            Kind::CANCEL => Ok(()),
            Kind::ORPHANED => {
                self.call = None;
                Ok(())
            }
            _ => Err(PipeError::Protocol),
        }
    }

    fn bind(&mut self, header: &Header, body: &[u8]) -> Result<(), PipeError> {
        let bind = bind::Bind::decode(body)?;
        let Some(bind) = bind.filter(|_| header.security == 0) else {
            let mut out = Vec::new();
            bind::encode_refusal(header, &mut out);
            self.output.push_back(out);
            return Ok(());
        };
        let mut accepted = self.contexts.take().unwrap_or_default();
        if header.kind == Kind::BIND {
            self.fragment = bind.fragment.clamp(FRAGMENT_BYTES_LEAST, FRAGMENT_BYTES_MAX);
        }
        let mut out = Vec::new();
        bind.encode_answer(header, self.interface, self.fragment, &mut accepted, &mut out);
        self.contexts = Some(accepted);
        self.output.push_back(out);
        Ok(())
    }

    fn request(&mut self, header: &Header, body: &[u8], host: &Host<'_>) -> Result<(), PipeError> {
        let part = rpc::Request::decode(header, body)?;
        let mut call = match self.call.take() {
            None if header.flags.contains(Flags::FIRST) => Call {
                id: header.call,
                context: part.context,
                operation: part.operation,
                input: Vec::new(),
            },
            Some(call) if !header.flags.contains(Flags::FIRST) && call.id == header.call => call,
            _ => return Err(PipeError::Protocol),
        };
        if call.input.len().saturating_add(part.input.len()) > CALL_BYTES_MAX {
            return Err(PipeError::TooMuch);
        }
        call.input.extend_from_slice(part.input);
        if header.flags.contains(Flags::LAST) {
            self.answer(&call, host);
        } else {
            self.call = Some(call);
        }
        Ok(())
    }

    fn answer(&mut self, call: &Call, host: &Host<'_>) {
        let known = self.contexts.as_ref().is_some_and(|known| known.contains(&call.context));
        let done = match self.interface {
            _ if !known => Err(Fault::UNKNOWN_INTERFACE),
            Interface::Srvsvc => srvsvc::call(call.operation, &call.input, host),
            Interface::Wkssvc => wkssvc::call(call.operation, &call.input, host),
        };
        match done {
            Ok(output) => {
                rpc::encode_response(
                    call.id,
                    call.context,
                    &output,
                    self.fragment,
                    &mut self.output,
                );
            }
            Err(fault) => self.output.push_back(fault.encode(call.id, call.context)),
        }
    }
}
