//! The sending side of a connection: replies and other records in the order in which they leave.
//!
//! Not here: the meaning of a reply, and the decision when to send.

use super::buffers::{Buffers, JOINED, REPLY_SMALL};
use super::load::OriginLoad;
use super::tally::Counted;
use crate::engine::ServedVolume;
use crate::limits::SEND_SLICES_MAX;
use crate::right::ReplyRight;
use crate::sync::Arc;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::TcpStream;
use weir_core::Mono;

/// The end of a reply to an operation by which the contract of `volume` is judged: its place among
/// all bytes that were ever queued.
struct Judged {
    end: u64,
    volume: Arc<ServedVolume>,
}

/// The records that a connection has to send.
pub(super) struct SendQueue {
    /// Records in the order in which they leave, short ones joined in one buffer.
    records: VecDeque<Vec<u8>>,
    /// Bytes of the first buffer that the socket took.
    offset: usize,
    bytes: usize,
    /// Bytes that were ever queued.
    queued: u64,
    judged: VecDeque<Judged>,
    /// The bytes as they count for the origin, brought up to date once for each batch.
    counted: Counted,
    /// A record was queued since the last flush.
    fresh: bool,
    /// Time since which the socket accepts nothing, after it did not accept all of a flush.
    clogged: Option<Mono>,
    /// The last flush stopped because the server had no right to reply.
    held: bool,
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
            queued: 0,
            judged: VecDeque::new(),
            counted: origin.count_replies(0),
            fresh: false,
            clogged: None,
            held: false,
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

    /// Did the last flush stop because the server had no right to reply?
    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Queues a whole record: a reply to an operation that no contract is judged by, or a call. A
    /// short one joins those before it: the kernel takes one buffer in less time than many.
    pub(super) fn push(&mut self, record: Vec<u8>, buffers: &mut Buffers) {
        self.fresh = true;
        self.bytes += record.len();
        self.queued += record.len() as u64;
        let short = record.len() <= REPLY_SMALL;
        match self.records.back_mut() {
            Some(last) if short && last.capacity() - last.len() >= record.len() => {
                last.extend_from_slice(&record);
                buffers.give_reply(record);
            }
            Some(last) if short && last.capacity() <= JOINED => {
                let mut joined = buffers.joined();
                joined.extend_from_slice(&record);
                self.records.push_back(joined);
                buffers.give_reply(record);
            }
            _ => self.records.push_back(record),
        }
    }

    /// Queues a whole reply to an operation by which the contract of `volume` is judged.
    pub(super) fn push_judged(
        &mut self,
        reply: Vec<u8>,
        volume: Arc<ServedVolume>,
        buffers: &mut Buffers,
    ) {
        self.push(reply, buffers);
        self.judged.push_back(Judged { end: self.queued, volume });
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
        self.records.clear();
        for Judged { volume, .. } in self.judged.drain(..) {
            note(&mut self.gone, volume);
        }
    }

    /// Sends as much as the socket accepts `now`, many records in one system call, as long as
    /// `right` allows.
    ///
    /// # Errors
    /// Any but "would block": the connection is lost.
    pub(super) fn flush(
        &mut self,
        socket: &TcpStream,
        buffers: &mut Buffers,
        now: Mono,
        right: &ReplyRight,
    ) -> Result<(), Errno> {
        self.fresh = false;
        self.held = false;
        let mut clogged = self.clogged.take();
        while !self.records.is_empty() {
            if !right.allows() {
                self.held = true;
                break;
            }
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
            let rest = only.get(self.offset..).unwrap_or(&[]);
            return rustix::net::send(socket, rest, flags);
        }
        let mut slices = [IoSlice::new(&[]); SEND_SLICES_MAX];
        let count = self.records.len().min(SEND_SLICES_MAX);
        let mut skip = self.offset;
        for (slice, record) in slices.iter_mut().zip(&self.records) {
            *slice = IoSlice::new(record.get(skip..).unwrap_or(&[]));
            skip = 0;
        }
        let slices = slices.get(..count).unwrap_or(&[]);
        rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags)
    }

    fn sent(&mut self, mut bytes: usize, buffers: &mut Buffers) {
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes += self.offset;
        while let Some(buffer) = self.records.pop_front_if(|buffer| buffer.len() <= bytes) {
            bytes -= buffer.len();
            buffers.give_reply(buffer);
        }
        self.offset = bytes;
        let left = self.queued - self.bytes as u64;
        while let Some(judged) = self.judged.pop_front_if(|judged| judged.end <= left) {
            note(&mut self.gone, judged.volume);
        }
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
    use crate::engine::testing::served;
    use std::io::{ErrorKind, Read};
    use weir_cluster::{Right, SharedRight};
    use weir_core::VolumeId;
    use weir_gate::{Gate, ParkedTotal};
    use weir_qos::{BytesPerSecond, Limits};

    #[test]
    fn records_leave_in_order_through_a_small_socket() {
        let (mut client, socket) = sockets();
        let origin = OriginLoad::alone();
        let (mut queue, mut buffers) = (SendQueue::new(&origin), Buffers::default());
        let mut sent = Vec::new();
        for at in 0..600usize {
            let reply = vec![b'x'; 10_000 + at];
            sent.extend_from_slice(&reply);
            queue.push(reply, &mut buffers);
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
            queue.flush(&socket, &mut buffers, Mono::ZERO, &ReplyRight::Always).unwrap();
            std::thread::yield_now();
        }
        assert!(reader.join().unwrap() == sent);
        drop(queue);
        assert_eq!(origin.reply_bytes(), 0);
    }

    #[test]
    fn short_records_are_joined_and_judged_ones_counted_as_they_leave() {
        let (mut client, socket) = sockets();
        let origin = OriginLoad::alone();
        let (mut queue, mut buffers) = (SendQueue::new(&origin), Buffers::default());
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits::of(BytesPerSecond(1));
        let gate = Gate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(0)));
        let volume = Arc::new(served(&directory.path().join("volume"), gate));
        let mut sent = Vec::new();
        for at in 0..200usize {
            let mut reply = buffers.reply(1);
            reply.resize(if at == 100 { 5000 } else { 1 + at * 2 }, at.to_le_bytes()[0]);
            sent.extend_from_slice(&reply);
            if at % 2 == 0 {
                queue.push(reply, &mut buffers);
            } else {
                queue.push_judged(reply, Arc::clone(&volume), &mut buffers);
            }
        }
        assert!(queue.records.len() < 20, "{} buffers", queue.records.len());
        assert_eq!(queue.bytes(), sent.len());
        queue.sent(3, &mut buffers);
        assert!(!queue.has_gone());
        queue.sent(1, &mut buffers);
        assert!(queue.has_gone());
        while queue.bytes() > 0 {
            queue.flush(&socket, &mut buffers, Mono::ZERO, &ReplyRight::Always).unwrap();
        }
        assert_eq!(queue.take_gone().map(|(_, count)| count).collect::<Vec<_>>(), [100]);
        assert!(queue.judged.is_empty() && queue.is_empty());
        let mut got = vec![0; sent.len() - 4];
        client.read_exact(&mut got).unwrap();
        assert!(got == sent[4..]);
    }
    #[test]
    fn nothing_leaves_without_the_right_to_reply() {
        let (mut client, socket) = sockets();
        let (mut queue, mut buffers) = (SendQueue::new(&OriginLoad::alone()), Buffers::default());
        queue.push(b"reply".to_vec(), &mut buffers);
        let shared = Arc::new(SharedRight::default());
        let right = ReplyRight::Until(Arc::clone(&shared));
        queue.flush(&socket, &mut buffers, Mono::ZERO, &right).unwrap();
        assert!(queue.is_held() && queue.bytes() == 5 && queue.clogged().is_none());
        client.set_nonblocking(true).unwrap();
        let mut got = [0; 8];
        assert_eq!(client.read(&mut got).unwrap_err().kind(), ErrorKind::WouldBlock);
        shared.set(Right::until(Mono(u64::MAX)));
        queue.flush(&socket, &mut buffers, Mono::ZERO, &right).unwrap();
        assert!(!queue.is_held() && queue.is_empty());
        client.set_nonblocking(false).unwrap();
        assert_eq!(client.read(&mut got).unwrap(), 5);
    }
}
