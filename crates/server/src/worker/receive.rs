//! The receiving side of a connection: a window of received bytes, from which a session cuts
//! records. Without traffic it holds no buffer.
//!
//! Not here: what a record is, which is the session's, and whether more may be taken.

use super::buffers::Buffers;
use super::lent::Lent;
use super::load::OriginLoad;
use super::tally::Counted;
use crate::limits::{
    PARTIAL_COPY_MAX, RECORD_PROGRESS_BYTES, RECV_BYTES, RECV_CALM, RECV_SMALL_BYTES,
};
use crate::session::{Frame, ProtocolError, Session};
use crate::sync::Arc;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::net::TcpStream;
use std::rc::Rc;
use weir_core::{Mono, Shared};

/// The result of a round of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// There may be more in the socket.
    More,
    /// The socket was emptied.
    Drained,
    /// The peer is gone.
    Closed,
}

/// Whether records are taken from the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// All whole records were taken.
    All,
    /// Whole records may be left, because a bound was reached.
    AtBound,
    /// Whole records may be left, because the turn of the connection or of its origin is over.
    TurnOver,
    /// All whole records were taken, and the next one waits for memory to be received.
    NoMemory,
}

/// Bytes received and not consumed: `start..end` of `buffer`.
struct Window {
    buffer: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

/// A partial record, of which more is awaited.
struct Partial {
    /// The bytes that hold it, as they count for the origin.
    counted: Counted,
    /// Time at which the record began to arrive, or last grew by a good part.
    since: Option<Mono>,
    /// Its length at that time.
    length: usize,
}

/// The received bytes of a connection, and how more are received.
pub(super) struct Receiver {
    pub(super) taking: Taking,
    /// Receive buffers that requests of the connection hold.
    pub(super) lent: Lent,
    window: Option<Window>,
    /// A short partial record, copied so that it holds no buffer.
    copied: Vec<u8>,
    partial: Partial,
    /// All bytes that hold received data, as they count for the origin.
    held: Counted,
    /// Length of the record that is being received, where it is known.
    wanted: usize,
    /// The least size of the next buffer, by the traffic until now.
    usual: usize,
    /// The number of times in a row that a small buffer would have been half empty.
    calm: u8,
    /// Bytes that may still be received: without end until the server stops.
    left: usize,
    /// The peer closed its side.
    ended: bool,
}

impl Receiver {
    /// The receiver of a new connection of this origin.
    pub(super) fn new(origin: &Rc<OriginLoad>) -> Self {
        Self {
            taking: Taking::All,
            lent: Lent::new(Rc::clone(origin)),
            window: None,
            copied: Vec::new(),
            partial: Partial { counted: origin.count_partial(0), since: None, length: 0 },
            held: origin.count_received(0),
            wanted: 0,
            usual: RECV_SMALL_BYTES,
            calm: 0,
            left: usize::MAX,
            ended: false,
        }
    }

    /// Is nothing more to be received?
    pub(super) fn has_all(&self) -> bool {
        self.left == 0
    }

    /// Did the peer close its side?
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// From now on only what the kernel has received already is taken.
    pub(super) fn take_no_more(&mut self, socket: &TcpStream) {
        let unread = rustix::io::ioctl_fionread(socket).unwrap_or(0);
        self.left = usize::try_from(unread).unwrap_or(usize::MAX);
    }

    /// Time since which the partial record does not grow, if one is here.
    pub(super) fn stalled_since(&self) -> Option<Mono> {
        self.partial.since
    }

    /// Begins the time of the partial record anew, because the server itself does not read.
    pub(super) fn excuse(&mut self, now: Mono) {
        self.partial.since = self.partial.since.map(|_| now);
    }

    /// Bytes that the next receive takes beyond the memory held now. A small buffer for the start
    /// of a record does not count.
    pub(super) fn growth(&self) -> usize {
        match &self.window {
            None if self.wanted <= RECV_SMALL_BYTES => 0,
            // The new buffer takes in what was copied.
            None => Buffers::size_for(self.wanted).saturating_sub(self.copied.len()),
            Some(window) => {
                let needs = self.wanted.max(window.end - window.start + 1);
                match window.buffer.len() {
                    size if size >= needs => 0,
                    size => Buffers::size_for(needs).saturating_sub(size),
                }
            }
        }
    }

    /// Counts the bytes that hold a partial record, and notes its progress. A record `ended` since
    /// the last call, or did not.
    pub(super) fn count_partial(&mut self, session: &Session, ended: bool, now: Mono) {
        let window = self.window.as_ref();
        let held = window.map_or(0, |window| window.buffer.len());
        let held = held + self.copied.len() + session.held();
        self.held.set(held);
        let bytes = match self.taking {
            Taking::All | Taking::NoMemory => held,
            // The rest of the bytes is here and not awaited.
            Taking::AtBound | Taking::TurnOver => 0,
        };
        let partial = &mut self.partial;
        if bytes == 0 && partial.since.is_none() {
            return;
        }
        partial.counted.set(bytes);
        let received = window.map_or(0, |window| window.end - window.start);
        let received = received + self.copied.len() + session.held();
        let grown = received >= partial.length.saturating_add(RECORD_PROGRESS_BYTES);
        partial.since = match partial.since {
            _ if bytes == 0 => None,
            Some(since) if !ended && !grown => Some(since),
            _ => {
                partial.length = received;
                Some(now)
            }
        };
    }

    /// Receives once and drops it: closing a socket that has unread bytes would reset it, and a
    /// reset can destroy replies that the peer has not read yet.
    pub(super) fn discard(&mut self, socket: &TcpStream, buffers: &mut Buffers) -> Received {
        let mut buffer = buffers.recv(RECV_BYTES);
        let room = Arc::get_mut(&mut buffer).map(Vec::as_mut_slice);
        let (received, _) = self.receive_into(socket, room);
        buffers.give_recv(buffer);
        received
    }

    /// Receives once into what room there is, making some first: of the usual size only where the
    /// origin may hold that much.
    pub(super) fn receive(&mut self, socket: &TcpStream, buffers: &mut Buffers) -> Received {
        let mut window = self.make_room(buffers);
        // Owned by this window alone: `make_room` sees to it.
        let room = Arc::get_mut(&mut window.buffer).and_then(|bytes| {
            let end = bytes.len().min(window.end.saturating_add(self.left));
            bytes.get_mut(window.end..end)
        });
        let (received, count) = self.receive_into(socket, room);
        window.end += count;
        self.left -= count;
        self.note(received, count);
        self.window = Some(window);
        received
    }

    /// Chooses the size of the next buffer by what came.
    fn note(&mut self, received: Received, count: usize) {
        self.calm = if count <= RECV_SMALL_BYTES / 2 { self.calm.saturating_add(1) } else { 0 };
        if received == Received::More {
            self.usual = RECV_BYTES;
        } else if self.calm >= RECV_CALM {
            self.usual = RECV_SMALL_BYTES;
        }
    }

    fn receive_into(&mut self, socket: &TcpStream, room: Option<&mut [u8]>) -> (Received, usize) {
        let Some(room) = room else { return (Received::Closed, 0) };
        let space = room.len();
        match rustix::net::recv(socket, room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.ended = true;
                (Received::Closed, 0)
            }
            Ok((count, _)) if count == space => (Received::More, count),
            Ok((count, _)) => (Received::Drained, count),
            Err(Errno::AGAIN | Errno::INTR) => (Received::Drained, 0),
            Err(_) => (Received::Closed, 0),
        }
    }

    /// The next whole record that `session` cuts from the bytes, if there is one.
    ///
    /// # Errors
    /// [`ProtocolError`] if the peer broke a bound; close the connection.
    pub(super) fn next_record(
        &mut self,
        session: &mut Session,
    ) -> Result<Option<Shared>, ProtocolError> {
        let Some(window) = &mut self.window else { return Ok(None) };
        loop {
            let bytes = window.buffer.get(window.start..window.end).unwrap_or(&[]);
            match session.next(bytes)? {
                Frame::NeedMore { total } => {
                    self.wanted = total.unwrap_or(0);
                    if self.wanted > RECV_SMALL_BYTES {
                        (self.usual, self.calm) = (RECV_BYTES, 0);
                    }
                    return Ok(None);
                }
                Frame::Part { consumed } => window.start += consumed,
                Frame::Assembled { record, consumed } => {
                    window.start += consumed;
                    return Ok(Some(Shared::from(record)));
                }
                Frame::Whole { at, consumed } => {
                    let range = window.start + at.start..window.start + at.end;
                    window.start += consumed;
                    return Ok(Some(Shared::new(Arc::clone(&window.buffer), range)));
                }
            }
        }
    }

    /// Puts away the rest after records were taken: returns the buffer where nothing or little is
    /// left in it. A connection whose records were not all taken keeps its window.
    pub(super) fn settle(&mut self, buffers: &mut Buffers) {
        if self.taking != Taking::All {
            return;
        }
        let Some(window) = self.window.take() else { return };
        let left = window.buffer.get(window.start..window.end).unwrap_or(&[]);
        if left.len() <= PARTIAL_COPY_MAX {
            self.copied.extend_from_slice(left);
            self.lent.put(window.buffer, buffers);
        } else {
            self.window = Some(window);
        }
    }

    /// A window with room, all of the old bytes in front, whose buffer nobody else holds.
    fn make_room(&mut self, buffers: &mut Buffers) -> Window {
        let Some(mut window) = self.window.take() else {
            let usual = match self.lent.origin().may_receive(self.usual) {
                true => self.usual,
                false => RECV_SMALL_BYTES,
            };
            let mut buffer = buffers.recv(self.wanted.max(usual));
            let end = self.copied.len();
            copy_to_front(&mut buffer, &self.copied);
            self.copied = Vec::new();
            return Window { buffer, start: 0, end };
        };
        let left = window.end - window.start;
        let needs = self.wanted.max(left + 1);
        let size = window.buffer.len();
        match Arc::get_mut(&mut window.buffer) {
            // Room enough behind what is there.
            Some(_) if size - window.start >= needs && window.end < size => window,
            Some(bytes) if size >= needs => {
                bytes.copy_within(window.start..window.end, 0);
                Window { start: 0, end: left, ..window }
            }
            _ => {
                let mut buffer = buffers.recv(needs);
                let old = window.buffer.get(window.start..window.end).unwrap_or(&[]);
                copy_to_front(&mut buffer, old);
                self.lent.put(window.buffer, buffers);
                Window { buffer, start: 0, end: left }
            }
        }
    }
}

/// Copies `bytes` to the beginning of a buffer that nobody else holds.
fn copy_to_front(buffer: &mut Arc<Vec<u8>>, bytes: &[u8]) {
    if let Some(front) = Arc::get_mut(buffer).and_then(|buffer| buffer.get_mut(..bytes.len())) {
        front.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sockets;
    use super::*;
    use std::io::Write;

    /// A connection that receives, and its peer.
    struct Pair {
        client: TcpStream,
        socket: TcpStream,
        session: Session,
        receiver: Receiver,
        buffers: Buffers,
    }

    impl Pair {
        fn new() -> Self {
            let (client, socket) = sockets();
            let session = Session::for_test([127, 0, 0, 1].into());
            let receiver = Receiver::new(&OriginLoad::alone());
            Self { client, socket, session, receiver, buffers: Buffers::default() }
        }

        fn receive(&mut self) -> Received {
            self.receiver.receive(&self.socket, &mut self.buffers)
        }

        /// Receives until `count` records came, holding on to every other one.
        fn drain(&mut self, count: usize) -> Vec<Vec<u8>> {
            let (mut got, mut pinned) = (Vec::new(), Vec::new());
            while got.len() < count {
                assert_ne!(self.receive(), Received::Closed);
                while let Some(record) = self.receiver.next_record(&mut self.session).unwrap() {
                    got.push(record.to_vec());
                    if got.len() % 2 == 0 {
                        pinned.push(record);
                    }
                }
                self.receiver.settle(&mut self.buffers);
            }
            got
        }
    }

    fn record(bytes: &[u8]) -> Vec<u8> {
        let mark = u32::try_from(bytes.len()).unwrap() | 1 << 31;
        [&mark.to_be_bytes(), bytes].concat()
    }

    #[test]
    fn records_of_all_sizes_come_whole_and_in_order() {
        let mut pair = Pair::new();
        let sizes = [0, 1, 40, 5_000, 300_000, 1_000_000, 7, 262_300, 262_300, 262_300, 12];
        let sent: Vec<Vec<u8>> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| (0..*size).map(|i| (i * 7 + at).to_le_bytes()[0]).collect())
            .collect();
        let bytes: Vec<u8> = sent.iter().flat_map(|r| record(r)).collect();
        let mut client = pair.client.try_clone().unwrap();
        let sender = std::thread::spawn(move || {
            for part in bytes.chunks(100_003) {
                client.write_all(part).unwrap();
            }
        });
        assert!(pair.drain(sizes.len()) == sent);
        sender.join().unwrap();
    }

    #[test]
    fn a_quiet_connection_holds_no_buffer() {
        let mut pair = Pair::new();
        pair.client.write_all(&record(b"abc")).unwrap();
        pair.client.write_all(&[0x80, 0]).unwrap();
        pair.drain(1);
        while pair.receiver.copied.len() < 2 {
            pair.receive();
            assert!(pair.receiver.next_record(&mut pair.session).unwrap().is_none());
            pair.receiver.settle(&mut pair.buffers);
        }
        assert!(pair.receiver.window.is_none());
        pair.client.write_all(&[0, 1, 9]).unwrap();
        assert_eq!(pair.drain(1), [[9]]);
    }

    #[test]
    fn a_partial_record_counts_until_it_is_whole_and_its_time_begins_anew_as_it_grows() {
        let mut pair = Pair::new();
        let whole = record(&vec![5; 3 * RECORD_PROGRESS_BYTES]);
        let (first, rest) = whole.split_at(100);
        let (second, last) = rest.split_at(RECORD_PROGRESS_BYTES);
        let grow = |pair: &mut Pair, bytes: &[u8], now: u64| {
            pair.client.write_all(bytes).unwrap();
            let mut ended = false;
            let mut left = bytes.len();
            while left > 0 {
                let before = pair.receiver.left;
                pair.receive();
                left -= before - pair.receiver.left;
                ended |= pair.receiver.next_record(&mut pair.session).unwrap().is_some();
                pair.receiver.settle(&mut pair.buffers);
            }
            pair.receiver.count_partial(&pair.session, ended, Mono(now));
            (pair.receiver.stalled_since(), pair.receiver.partial.counted.amount() > 0)
        };
        assert_eq!(grow(&mut pair, first, 1), (Some(Mono(1)), true));
        assert_eq!(grow(&mut pair, &second[..7], 2), (Some(Mono(1)), true), "hardly grown");
        assert_eq!(grow(&mut pair, &second[7..], 3), (Some(Mono(3)), true));
        assert_eq!(grow(&mut pair, last, 4), (None, false));
    }

    #[test]
    fn the_buffer_follows_the_traffic() {
        let mut pair = Pair::new();
        pair.client.write_all(&record(&[1; 100])).unwrap();
        pair.drain(1);
        assert_eq!(pair.receiver.usual, RECV_SMALL_BYTES);
        let large = record(&vec![2; 2 * RECV_SMALL_BYTES]);
        pair.client.write_all(&large).unwrap();
        pair.drain(1);
        assert_eq!(pair.receiver.usual, RECV_BYTES, "one that was filled");
        for _ in 0..RECV_CALM - 1 {
            pair.client.write_all(&record(&[3; 100])).unwrap();
            pair.drain(1);
        }
        assert_eq!(pair.receiver.usual, RECV_BYTES, "a few small ones prove nothing");
        pair.client.write_all(&record(&[3; 100])).unwrap();
        pair.drain(1);
        assert_eq!(pair.receiver.usual, RECV_SMALL_BYTES);
        pair.client.write_all(&large).unwrap();
        assert_eq!(pair.drain(1), [vec![2; 2 * RECV_SMALL_BYTES]]);
    }
}
