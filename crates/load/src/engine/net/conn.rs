//! One connection of the load: its socket, its requests in flight, and the two directions of its
//! byte stream. The protocol of the bytes is a [`Channel`].

use super::inbox::{Event, Records};
use super::outbox::Outbox;
use super::{Channel, Data, Fault, Outcome, Record};
use crate::engine::job::Op;
use crate::payload::Payload;
use crate::verify::BlockState;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::AsFd;

/// From this many bytes on, data nobody looks at is dropped in the kernel.
const DROP_BYTES_MIN: usize = 8 * 1024;

/// A place for one request in flight.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Slot {
    /// The job it works for, by its place in the worker.
    pub(in crate::engine) job: usize,
    /// The request in flight.
    pub(in crate::engine) request: Option<InFlight>,
    /// The work that leaves later; a timer, or the next answer, brings the loop back to it.
    pub(in crate::engine) waiting: Option<Work>,
}

/// The slots of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// The job of each, by its place in the worker.
    pub(super) jobs: Vec<usize>,
    /// The slots that have work from the start.
    pub(super) first: Range<usize>,
    /// The connection on which each goes on after an operation.
    pub(super) next: usize,
}

/// A request, and what is known of the operation that it is part of.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Work {
    pub(in crate::engine) op: Op,
    /// Due time of the operation, from which its latency counts.
    pub(in crate::engine) queued_ns: u64,
    /// Bytes that earlier requests of it moved.
    pub(in crate::engine) moved: u64,
    /// The server has moved less than a request of it asked for.
    pub(in crate::engine) continued: bool,
    /// The state of the block when a read of it was sent.
    pub(in crate::engine) seen: BlockState,
}

/// A request without an answer yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct InFlight {
    pub(in crate::engine) work: Work,
    /// The channel's own mark of it.
    pub(in crate::engine) mark: u32,
}

/// One connection.
pub(in crate::engine) struct Conn<C: Channel> {
    stream: TcpStream,
    pub(super) address: SocketAddr,
    /// The added network distance of its client.
    pub(super) delay_ns: u64,
    pub(super) channel: C,
    inbox: C::Records,
    pub(super) outbox: Outbox,
    pub(super) slots: Vec<Slot>,
    /// The slots that have work from the start.
    pub(super) first: Range<usize>,
    /// The connection on which a slot goes on after an operation, by its place in the worker; the
    /// slot has the same number there.
    pub(super) next: usize,
    /// Slots whose work waits until the channel can take more requests.
    pub(super) held: VecDeque<usize>,
    /// Requests answered by the present receive; kept for its memory.
    pub(super) finished: Vec<(usize, InFlight, Outcome)>,
    /// The slots that the record answers which is coming in, and the outcomes.
    pending: Vec<(usize, Outcome)>,
    writable: bool,
    /// The peer has closed it, or it broke: no event announces what is still to be received.
    closing: bool,
    /// A request could not be encoded; told by the next flush.
    fault: Option<Fault>,
    pub(super) alive: bool,
}

impl<C: Channel> Conn<C> {
    /// A connection over `stream` to `address`, not blocking any more, with these slots.
    pub(super) fn new(
        (stream, address): (TcpStream, SocketAddr),
        (channel, inbox): (C, C::Records),
        slots: Slots,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let Slots { jobs, first, next } = slots;
        Ok(Self {
            stream,
            address,
            delay_ns: 0,
            channel,
            inbox,
            outbox: Outbox::default(),
            slots: jobs.into_iter().map(|job| Slot { job, request: None, waiting: None }).collect(),
            first,
            next,
            held: VecDeque::new(),
            finished: Vec::new(),
            pending: Vec::new(),
            writable: true,
            closing: false,
            fault: None,
            alive: true,
        })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Encodes the request of `work`, of job `job`, for slot `index`. `false`: the channel can't
    /// take it before it has got another answer; the slot keeps the work until then.
    #[inline]
    pub(super) fn request(&mut self, index: usize, job: u32, work: Work) -> bool {
        let mark = self.channel.send(&mut self.outbox, (index, job), &work.op);
        match (mark, self.slots.get_mut(index)) {
            (Ok(Some(mark)), Some(slot)) => {
                slot.request = Some(InFlight { work, mark });
                return true;
            }
            (Ok(None), Some(slot)) => {
                slot.waiting = Some(work);
                self.held.push_back(index);
                if self.in_flight() == 0 {
                    let what = "the server permits no further request".to_owned();
                    self.fault = Some(Fault::Protocol(what));
                }
            }
            (Err(fault), _) => self.fault = Some(fault),
            (Ok(_), None) => {}
        }
        false
    }

    /// Requests without an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.request.is_some()).count()
    }

    /// Sends what waits, as far as the socket takes it.
    #[inline]
    pub(super) fn flush(&mut self, payload: &Payload) -> Result<(), Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
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

    /// Receives until the socket is empty, or to the end if it is closing; at most `take_bytes` at
    /// once where they are looked at, the whole buffer where they are dropped. `done` gets each
    /// request whose reply is there in full, with its slot, which is free again, and what the reply
    /// says; `look` gets the data of reads with their slots, if it is gathered.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        take_bytes: usize,
        mut look: impl FnMut(usize, &Work, Data<'_>),
        mut done: impl FnMut(usize, &InFlight, Outcome),
    ) -> Result<(), Fault> {
        loop {
            let dropping = self.inbox.skip() >= DROP_BYTES_MIN;
            let kept = if dropping { 0 } else { self.inbox.restore(buffer) };
            let most = if dropping { self.inbox.skip() } else { take_bytes };
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
                let bytes = buffer.get_mut(..kept + count).unwrap_or(&mut []);
                self.take(bytes, &mut look, &mut done)?;
            } else if count > 0 && self.inbox.dropped(count) {
                end_record(&mut self.pending, &mut self.slots, &mut done);
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
        bytes: &mut [u8],
        look: &mut impl FnMut(usize, &Work, Data<'_>),
        done: &mut impl FnMut(usize, &InFlight, Outcome),
    ) -> Result<(), Fault> {
        let Self { inbox, channel, slots, pending, .. } = self;
        inbox.feed(bytes, |event| {
            match event {
                Event::Head(head, bytes) => {
                    let answered = |slot, outcome| pending.push((slot, outcome));
                    channel.answer(Record { head, bytes }, slots, look, answered)?;
                }
                Event::End => end_record(pending, slots, done),
            }
            Ok(())
        })
    }
}

#[inline]
fn end_record(
    pending: &mut Vec<(usize, Outcome)>,
    slots: &mut [Slot],
    done: &mut impl FnMut(usize, &InFlight, Outcome),
) {
    for (index, outcome) in pending.drain(..) {
        let sent = slots.get_mut(index).and_then(|slot| slot.request.take());
        if let Some(sent) = sent {
            done(index, &sent, outcome);
        }
    }
}
