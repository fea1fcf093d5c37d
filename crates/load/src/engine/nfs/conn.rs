//! One connection of the load: its socket, its requests in flight, and the two directions of its
//! byte stream.

use super::inbox::{Event, Inbox};
use super::outbox::Outbox;
use super::reply::{self, ReplyOutcome};
use crate::engine::job::Op;
use crate::payload::Payload;
use crate::verify::BlockState;
use crate::workload::Stability;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use weir_nfs::rpc::FrameError;
use weir_nfs::xdr::XdrError;

/// Bits of an xid that number the slot; the others count.
const SLOT_BITS: u32 = 12;
/// From this many bytes on, data nobody looks at is dropped in the kernel.
const DROP_BYTES_MIN: usize = 8 * 1024;

/// A place for one request in flight.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The job it works for, by its place in the worker.
    pub(super) job: usize,
    /// The request in flight.
    pub(super) request: Option<InFlight>,
    /// The work that leaves later; a timer brings the loop back to it.
    pub(super) waiting: Option<Work>,
}

/// A request, and what is known of the operation that it is part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) op: Op,
    /// Due time of the operation, from which its latency counts.
    pub(super) queued_ns: u64,
    /// Bytes that earlier requests of it moved.
    pub(super) moved: u64,
    /// The state of the block when a read of it was sent.
    pub(super) seen: BlockState,
}

/// A request without an answer yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) work: Work,
    xid: u32,
}

/// Why a connection can't be used any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Xdr(#[from] XdrError),
    #[error("a reply without a request (xid {0:#010x})")]
    Unasked(u32),
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The properties that a successful reply must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) stability: Stability,
    /// The data of reads is wanted.
    pub(super) data: bool,
    /// Most bytes to take at once where they are looked at; the whole buffer where they are
    /// dropped.
    pub(super) take_bytes: usize,
}

/// One connection.
pub(super) struct Conn {
    stream: TcpStream,
    pub(super) address: SocketAddr,
    /// The added network distance of its client.
    pub(super) delay_ns: u64,
    inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) slots: Vec<Slot>,
    /// Requests answered by the present receive; kept for its memory.
    pub(super) finished: Vec<(usize, InFlight, ReplyOutcome)>,
    sequence: u32,
    /// The slot whose reply is coming in, and what the reply says.
    pending: Option<(usize, ReplyOutcome)>,
    writable: bool,
    /// The peer has closed it, or it broke: no event announces what is still to be received.
    closing: bool,
    pub(super) alive: bool,
}

impl Conn {
    /// A connection over `stream` to `address`, not blocking any more, with a slot for each of
    /// `jobs`. Records are given whole, up to this length, if there is one.
    pub(super) fn new(
        (stream, address): (TcpStream, SocketAddr),
        jobs: impl Iterator<Item = usize>,
        sequence: u32,
        whole: Option<usize>,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            address,
            delay_ns: 0,
            inbox: whole.map_or_else(Inbox::default, Inbox::whole),
            outbox: Outbox::default(),
            slots: jobs.map(|job| Slot { job, request: None, waiting: None }).collect(),
            finished: Vec::new(),
            sequence,
            pending: None,
            writable: true,
            closing: false,
            alive: true,
        })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Puts `work` into slot `index` and gives the xid to send it under.
    #[inline]
    pub(super) fn occupy(&mut self, index: usize, work: Work) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let number = u32::try_from(index).unwrap_or(0);
        let xid = (self.sequence << SLOT_BITS) | number;
        if let Some(slot) = self.slots.get_mut(index) {
            slot.request = Some(InFlight { work, xid });
        }
        xid
    }

    /// The request that a reply with this xid answers, and its slot.
    #[inline]
    fn answered(&self, xid: u32) -> Result<(usize, InFlight), Fault> {
        let index = usize::try_from(xid & ((1 << SLOT_BITS) - 1)).unwrap_or(usize::MAX);
        match self.slots.get(index) {
            Some(Slot { request: Some(sent), .. }) if sent.xid == xid => Ok((index, *sent)),
            _ => Err(Fault::Unasked(xid)),
        }
    }

    /// Requests without an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.request.is_some()).count()
    }

    /// Sends what waits, as far as the socket takes it.
    #[inline]
    pub(super) fn flush(&mut self, payload: &Payload) -> Result<(), Fault> {
        if self.writable {
            self.writable = self.outbox.flush(self.stream.as_fd(), payload)?;
        }
        Ok(())
    }

    /// The socket takes more.
    pub(super) const fn set_writable(&mut self) {
        self.writable = true;
    }

    /// The peer has closed it, or it broke: what was received before is still to be taken.
    pub(super) const fn set_closing(&mut self) {
        self.closing = true;
    }

    /// Receives until the socket is empty, or to the end if it is closing. `done` gets each request
    /// whose reply is there in
    /// full, with its slot, which is free again, and what the reply says; `look` gets the data of
    /// reads, if it is expected.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        expected: &Expected,
        mut look: impl FnMut(&Work, &[u8]),
        mut done: impl FnMut(usize, &InFlight, ReplyOutcome),
    ) -> Result<(), Fault> {
        loop {
            let dropping = self.inbox.skip() >= DROP_BYTES_MIN;
            let kept = if dropping { 0 } else { self.inbox.restore(buffer) };
            let most = if dropping { self.inbox.skip() } else { expected.take_bytes };
            let end = kept.saturating_add(most).min(buffer.len());
            let space = buffer.get_mut(kept..end).unwrap_or(&mut []);
            let wanted = space.len();
            // On TCP this flag drops the bytes instead of copying them (tcp(7)).
            let flags = if dropping { RecvFlags::TRUNC } else { RecvFlags::empty() };
            let (count, empty) = match recv(&self.stream, space, flags) {
                Ok((0, _)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok((count, _)) => (count, count < wanted && !self.closing),
                Err(Errno::AGAIN | Errno::INTR) => (0, true),
                Err(error) => return Err(error.into()),
            };
            if !dropping {
                let bytes = buffer.get(..kept + count).unwrap_or(&[]);
                self.take(bytes, expected, &mut look, &mut done)?;
            } else if count > 0 && self.inbox.dropped(count) {
                self.end(&mut done);
            }
            // Less than asked for: the socket was empty for a moment, and what comes from now on
            // raises a new event. Only an end that was announced with the last data does not.
            if empty {
                return Ok(());
            }
        }
    }

    fn take(
        &mut self,
        bytes: &[u8],
        expected: &Expected,
        look: &mut impl FnMut(&Work, &[u8]),
        done: &mut impl FnMut(usize, &InFlight, ReplyOutcome),
    ) -> Result<(), Fault> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let result = inbox.feed(bytes, |event| {
            match event {
                Event::Head(head, bytes) => {
                    let xid = reply::xid(head).ok_or(Fault::Unasked(0))?;
                    let (slot, sent) = self.answered(xid)?;
                    let request = &sent.work.op.request;
                    let outcome = reply::outcome((head, bytes), request, expected.stability)?;
                    if expected.data
                        && let Some(data) = reply::read_data(head, request)?
                    {
                        look(&sent.work, data);
                    }
                    self.pending = Some((slot, outcome));
                }
                Event::End => self.end(done),
            }
            Ok(())
        });
        self.inbox = inbox;
        result
    }

    #[inline]
    fn end(&mut self, done: &mut impl FnMut(usize, &InFlight, ReplyOutcome)) {
        let Some((index, outcome)) = self.pending.take() else { return };
        let sent = self.slots.get_mut(index).and_then(|slot| slot.request.take());
        if let Some(sent) = sent {
            done(index, &sent, outcome);
        }
    }
}
