//! Load over connections, whatever the protocol: threads with their connections, requests in
//! flight, added distances, and the dealing of connections. A protocol is a [`Channel`].

mod conn;
mod deal;
mod dial;
mod inbox;
mod outbox;
mod timers;
mod worker;

pub(super) use conn::{Slot, Work};
pub(super) use deal::{Opened, Seat, check, counts, names, sources, workers};
pub(super) use dial::connect;
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
    /// It succeeded and moved so many bytes.
    Done(u64),
    /// It did not succeed, because there is no such name; the status in words.
    Absent(&'static str),
    /// It failed, for the reason in words.
    Failed(String),
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
    /// outcomes; `look` gets the data of a successful read if records are gathered for it.
    ///
    /// # Errors
    /// If it is no reply to what was asked.
    fn answer(
        &mut self,
        record: Record<'_>,
        slots: &[Slot],
        look: &mut impl FnMut(&Work, &[u8]),
        each: impl FnMut(usize, Outcome),
    ) -> Result<(), Fault>;
}
