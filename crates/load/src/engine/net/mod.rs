//! Load over connections, whatever the protocol: threads with their connections, requests in
//! flight, added distances, and the dealing of connections. A protocol is a [`Channel`].

mod blocking;
mod conn;
mod deal;
mod dial;
mod inbox;
mod outbox;
mod passing;
mod timers;
mod worker;

pub(super) use blocking::Blocking;
pub use blocking::Waits;
pub(super) use conn::{Slot, Work};
pub(super) use deal::{Opened, Pair, Seat, check, counts, names, pairs, sources, workers};
pub(super) use dial::{PRIVILEGED, Ports, check_privileged, connect};
pub(super) use inbox::{Event, Inbox, MARK_BYTES, Mark, Records};
pub(super) use outbox::Outbox;

use super::job::Op;
use rustix::io::Errno;
use std::io;

/// Why a connection can't be used any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer sent something else than replies to what was asked.
    #[error("{0}")]
    Protocol(String),
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It succeeded and moved so many bytes: all that it was to move.
    Done(u64),
    /// It moved the first of its bytes, at least one, and not all of them. The rest is for a
    /// further request.
    Short(u32),
    /// It did not succeed, because there is no such name; the status in words.
    Absent(&'static str),
    /// It failed, for the reason in words.
    Failed(String),
}

impl Outcome {
    /// The outcome of a read or write (`what`) that was to move `wanted` bytes, and moved `count`.
    /// A server may move fewer (RFC 1813 §3.3.6 and §3.3.7), but neither none nor more.
    #[inline]
    pub(super) fn moved(what: &str, count: u32, wanted: u32) -> Self {
        if count == wanted {
            return Self::Done(u64::from(count));
        }
        Self::not_all(what, count, wanted)
    }

    /// The outcome if that was not all, which is rare: apart, it does not slow the others down.
    #[cold]
    fn not_all(what: &str, count: u32, wanted: u32) -> Self {
        if (1..wanted).contains(&count) {
            return Self::Short(count);
        }
        Self::Failed(format!("{what} of {wanted} bytes that moved {count}"))
    }

    /// The outcome of a read of `wanted` bytes if the file ends after `count` of them.
    #[cold]
    pub(super) fn ended(count: u32, wanted: u32) -> Self {
        Self::Failed(format!("short read: the file ends after {count} of {wanted} bytes"))
    }
}

/// The data of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data<'a> {
    /// Some of it: the rest is for a further request.
    Part(&'a [u8]),
    /// The last of it: up to the end of the read, or of the file.
    Last(&'a [u8]),
}

/// A record that came in.
pub(super) struct Record<'a> {
    /// Its front, or all of it.
    pub(super) head: &'a mut [u8],
    /// The length of all of it.
    pub(super) bytes: usize,
}

/// A connection's protocol: requests to bytes, and replies to outcomes. The slot of a request is
/// its place in the connection.
pub(super) trait Channel: Send + Sized + 'static {
    /// The form of its byte stream.
    type Records: Records;

    /// The longest record, if records are gathered whole, in bytes.
    fn whole_bytes(&self) -> Option<usize>;

    /// Appends the request of `op`, for a slot and a job. Gives a mark that comes back in
    /// [`Channel::answer`]; `None` if it can be sent after another answer only.
    ///
    /// # Errors
    /// If the connection can't be used any more.
    fn send(
        &mut self,
        out: &mut Outbox,
        place: (usize, u32),
        op: &Op,
    ) -> Result<Option<u32>, Fault>;

    /// Understands a record. `each` gets the slots whose requests it answers to the end, and the
    /// outcomes; `look` gets the slot and the data of a successful read if records are gathered for
    /// it.
    ///
    /// # Errors
    /// If it is no reply to what was asked.
    fn answer(
        &mut self,
        record: Record<'_>,
        slots: &[Slot],
        look: &mut impl FnMut(usize, &Work, Data<'_>),
        each: impl FnMut(usize, Outcome),
    ) -> Result<(), Fault>;
}
