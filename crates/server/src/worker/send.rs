//! The sending side of a connection: replies and other records in the order in which they leave.
//!
//! Not here: the meaning of a reply, and the decision when to send.

use super::buffers::Buffers;
use super::load::OriginLoad;
use super::tally::Counted;
use crate::engine::ServedVolume;
use crate::limits::SEND_SLICES_MAX;
use crate::sync::Arc;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::TcpStream;
use weir_core::Mono;

/// A record that is not sent yet, and the volume whose contract is judged by its operation.
struct Unsent {
    bytes: Vec<u8>,
    judged: Option<Arc<ServedVolume>>,
}

/// The records that a connection has to send.
pub(super) struct SendQueue {
    records: VecDeque<Unsent>,
    /// Bytes of the first record that the socket took.
    offset: usize,
    bytes: usize,
    /// The bytes as they count for the origin, brought up to date once for each batch.
    counted: Counted,
    /// A record was queued since the last flush.
    fresh: bool,
    /// Time since which the socket accepts nothing, after it did not accept all of a flush.
    clogged: Option<Mono>,
    /// The volumes whose replies the socket took and that are not counted yet, with the number of
    /// replies.
    gone: Vec<(Arc<ServedVolume>, u64)>,
}

impl SendQueue {
    /// An empty queue of a connection of this origin.
    pub(super) fn new(origin: &OriginLoad) -> Self {
        Self {
            records: VecDeque::new(),
            offset: 0,
            bytes: 0,
            counted: origin.count_replies(0),
            fresh: false,
            clogged: None,
            gone: Vec::new(),
        }
    }

    /// Is nothing left to send?
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Bytes that are not sent yet.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Was a record queued since the last flush?
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Time since which the socket accepts nothing, if it did not accept all of the last flush.
    pub(super) fn clogged(&self) -> Option<Mono> {
        self.clogged
    }

    /// Queues a whole record: a reply to an operation that no contract is judged by, or a call.
    pub(super) fn push(&mut self, record: Vec<u8>) {
        self.queue(Unsent { bytes: record, judged: None });
    }

    /// Queues a whole reply to an operation by which the contract of `volume` is judged.
    pub(super) fn push_judged(&mut self, reply: Vec<u8>, volume: Arc<ServedVolume>) {
        self.queue(Unsent { bytes: reply, judged: Some(volume) });
    }

    fn queue(&mut self, record: Unsent) {
        self.fresh = true;
        self.bytes += record.bytes.len();
        self.records.push_back(record);
    }

    /// Counts the bytes for the origin.
    pub(super) fn count(&mut self) {
        self.counted.set(self.bytes);
    }

    /// The volumes whose replies left, or never will, since the last call, with their number.
    pub(super) fn take_gone(&mut self) -> std::vec::Drain<'_, (Arc<ServedVolume>, u64)> {
        self.gone.drain(..)
    }

    /// Did replies leave whose volumes are not counted yet?
    pub(super) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Drops all records: the connection is lost.
    pub(super) fn give_up(&mut self) {
        for volume in self.records.drain(..).filter_map(|record| record.judged) {
            note(&mut self.gone, volume);
        }
    }

    /// Sends as much as the socket accepts `now`, many records in one system call.
    ///
    /// # Errors
    /// Any but "would block": the connection is lost.
    pub(super) fn flush(
        &mut self,
        socket: &TcpStream,
        buffers: &mut Buffers,
        now: Mono,
    ) -> Result<(), Errno> {
        self.fresh = false;
        let mut clogged = self.clogged.take();
        while !self.records.is_empty() {
            match self.send_once(socket) {
                Ok(sent) => {
                    clogged = None;
                    self.sent(sent, buffers);
                }
                Err(Errno::AGAIN) => {
                    self.clogged = clogged.or(Some(now));
                    break;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send_once(&self, socket: &TcpStream) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let [only] = self.records.as_slices().0
            && self.records.len() == 1
        {
            let rest = only.bytes.get(self.offset..).unwrap_or(&[]);
            return rustix::net::send(socket, rest, flags);
        }
        let mut slices = [IoSlice::new(&[]); SEND_SLICES_MAX];
        let count = self.records.len().min(SEND_SLICES_MAX);
        let mut skip = self.offset;
        for (slice, record) in slices.iter_mut().zip(&self.records) {
            *slice = IoSlice::new(record.bytes.get(skip..).unwrap_or(&[]));
            skip = 0;
        }
        let slices = slices.get(..count).unwrap_or(&[]);
        rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)
    }

    fn sent(&mut self, mut bytes: usize, buffers: &mut Buffers) {
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes += self.offset;
        while let Some(front) = self.records.front() {
            if bytes < front.bytes.len() {
                break;
            }
            bytes -= front.bytes.len();
            if let Some(record) = self.records.pop_front() {
                buffers.give_reply(record.bytes);
                if let Some(volume) = record.judged {
                    note(&mut self.gone, volume);
                }
            }
        }
        self.offset = bytes;
    }
}

/// Counts one more reply of `volume`: mostly one after another of the same.
fn note(gone: &mut Vec<(Arc<ServedVolume>, u64)>, volume: Arc<ServedVolume>) {
    match gone.last_mut() {
        Some((last, count)) if Arc::ptr_eq(last, &volume) => *count += 1,
        _ => gone.push((volume, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sockets;
    use super::*;
    use std::io::Read;

    #[test]
    fn records_leave_in_order_through_a_small_socket() {
        let (mut client, socket) = sockets();
        let origin = OriginLoad::alone();
        let (mut queue, mut buffers) = (SendQueue::new(&origin), Buffers::default());
        let mut sent = Vec::new();
        for at in 0..600usize {
            let reply = vec![b'x'; 10_000 + at];
            sent.extend_from_slice(&reply);
            queue.push(reply);
        }
        let expected = sent.len();
        queue.count();
        assert_eq!((queue.bytes(), origin.reply_bytes()), (expected, expected));
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; expected];
            client.read_exact(&mut got).unwrap();
            got
        });
        while queue.bytes() > 0 {
            queue.flush(&socket, &mut buffers, Mono::ZERO).unwrap();
            std::thread::yield_now();
        }
        assert!(reader.join().unwrap() == sent);
        drop(queue);
        assert_eq!(origin.reply_bytes(), 0);
    }
}
