//! One connection: a socket, the bytes that came and the replies that wait to leave.
//!
//! A connection knows records, not their content. Without traffic it holds no buffer.

use super::buffers::Buffers;
use super::holder::Holder;
use super::lent::Lent;
use crate::engine::ServedVolume;
use crate::gate::Room;
use crate::limits::{PARTIAL_COPY_MAX, RECV_BYTES, RECV_CALM, RECV_SMALL_BYTES, SEND_SLICES_MAX};
use crate::session::{Frame, ProtocolError, Session};
use crate::sync::Arc;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;
use std::net::{IpAddr, TcpStream};
use std::rc::Rc;
use weir_core::{Mono, Shared, VolumeId};

/// The result of a round of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// There may be more in the socket.
    More,
    /// The socket was emptied.
    Drained,
    /// The peer is gone.
    Closed,
}

/// Bytes received and not consumed: `start..end` of `buffer`.
struct Window {
    buffer: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

/// A reply that waits to leave, and the volume whose READ, WRITE or COMMIT it answers.
struct Queued {
    bytes: Vec<u8>,
    of: Option<Arc<ServedVolume>>,
}

/// One client connection of a worker.
pub(crate) struct Conn {
    pub(crate) socket: TcpStream,
    pub(crate) peer: IpAddr,
    /// The protocol's state of the connection.
    pub(crate) session: Session,
    /// Names this connection among all that its worker ever had.
    pub(crate) token: u64,
    /// Time at which bytes were last received.
    pub(crate) active: Mono,
    /// Time at which the partial record here began to arrive, or grew by a good part.
    pub(crate) partial_since: Option<Mono>,
    /// Length of the partial record at that time.
    pub(crate) partial_then: usize,
    /// The connection's bytes in the worker's sum of partial records.
    pub(crate) partial_accounted: usize,
    /// The events that epoll watches for now.
    pub(crate) interest: EventFlags,
    /// Requests admitted and not answered.
    pub(crate) in_flight: usize,
    /// Bytes that requests in flight hold or are going to: arguments and replies.
    pub(crate) reserved: usize,
    /// Whether gates may let its requests go.
    pub(crate) room: Arc<Room>,
    /// The sums over all connections of its origin.
    pub(super) holder: Rc<Holder>,
    /// Reading is stopped until this volume's parked memory shrinks.
    pub(crate) stopped: Option<VolumeId>,
    /// Whole records may be left in the window, because a bound was reached.
    pub(crate) blocked: bool,
    /// The connection is blocked because its turn is over, or that of its origin.
    pub(crate) turn_over: bool,
    /// Time since which the socket takes nothing, after it did not take all of a flush.
    pub(crate) clogged: Option<Mono>,
    /// A reply was queued since the last flush.
    pub(crate) fresh: bool,
    /// The connection is on the worker's list of connections to tidy.
    pub(crate) dirty: bool,
    /// The connection's bytes in the worker's sum of reply bytes.
    pub(crate) accounted: usize,
    /// The number of its requests that wait at each volume's gate.
    pub(crate) parked: HashMap<VolumeId, usize>,
    /// Bytes of memory that those pin.
    pub(crate) parked_bytes: usize,
    pub(super) lent: Lent,
    /// Bytes that may still be received: without end until the server stops.
    left: usize,
    /// The peer closed its side.
    ended: bool,
    /// All requests were answered and the peer was told that no more comes.
    pub(crate) half_closed: bool,
    window: Option<Window>,
    partial: Vec<u8>,
    wanted: usize,
    /// The least size of the next buffer, by the traffic until now.
    usual: usize,
    /// The number of times in a row that a small buffer would have been half empty.
    calm: u8,
    out: VecDeque<Queued>,
    out_offset: usize,
    out_bytes: usize,
    /// The volumes whose replies the socket took and that are not counted yet, with the number of
    /// replies.
    pub(super) gone: Vec<(Arc<ServedVolume>, u64)>,
}

impl Conn {
    /// A connection that nothing was read from yet.
    pub(crate) fn new(
        socket: TcpStream,
        peer: IpAddr,
        session: Session,
        holder: Rc<Holder>,
        token: u64,
        now: Mono,
    ) -> Self {
        Self {
            socket,
            peer,
            session,
            token,
            active: now,
            partial_since: None,
            partial_then: 0,
            partial_accounted: 0,
            interest: EventFlags::IN,
            in_flight: 0,
            reserved: 0,
            room: Arc::default(),
            lent: Lent::new(Rc::clone(&holder)),
            holder,
            stopped: None,
            blocked: false,
            turn_over: false,
            clogged: None,
            fresh: false,
            dirty: false,
            accounted: 0,
            parked: HashMap::new(),
            parked_bytes: 0,
            left: usize::MAX,
            ended: false,
            half_closed: false,
            window: None,
            partial: Vec::new(),
            wanted: 0,
            usual: RECV_SMALL_BYTES,
            calm: 0,
            out: VecDeque::new(),
            out_offset: 0,
            out_bytes: 0,
            gone: Vec::new(),
        }
    }

    /// Bytes held by replies that wait to leave and by requests in flight.
    pub(crate) fn reply_bytes(&self) -> usize {
        self.out_bytes + self.reserved
    }

    /// Bytes of replies that wait to leave.
    pub(crate) fn out_bytes(&self) -> usize {
        self.out_bytes
    }

    /// Is there nothing more to be received?
    pub(crate) fn has_all(&self) -> bool {
        self.left == 0
    }

    /// From now on only what the kernel has received already is taken.
    pub(crate) fn take_no_more(&mut self) {
        let unread = rustix::io::ioctl_fionread(&self.socket).unwrap_or(0);
        self.left = usize::try_from(unread).unwrap_or(usize::MAX);
    }

    /// Tells the peer that no more comes, once everything that was taken is answered and sent.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn end_if_answered(&mut self) -> Result<(), Errno> {
        if self.has_all() && self.is_idle() && !self.half_closed {
            self.half_closed = true;
            rustix::net::shutdown(&self.socket, Shutdown::Write)?;
        }
        Ok(())
    }

    /// Is nothing under way on it, except perhaps a record that is not whole?
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.parked.is_empty() && self.out.is_empty() && !self.blocked
    }

    /// Bytes of memory that hold part of a record, while the rest is awaited.
    pub(crate) fn partial_bytes(&self) -> usize {
        let window = self.window.as_ref().map_or(0, |window| window.buffer.len());
        if self.blocked { 0 } else { window + self.partial.len() + self.session.held() }
    }

    /// Bytes of that part.
    pub(crate) fn partial_received(&self) -> usize {
        let window = self.window.as_ref().map_or(0, |window| window.end - window.start);
        window + self.partial.len() + self.session.held()
    }

    /// Did the client close in an orderly way, after it had taken every reply?
    pub(crate) fn took_all(&self) -> bool {
        self.ended && self.is_idle() && matches!(self.socket.take_error(), Ok(None))
    }

    /// Receives once and drops it: closing a socket that has unread bytes would reset it, and a
    /// reset can destroy replies that the peer has not read yet.
    pub(crate) fn discard(&mut self, buffers: &mut Buffers) -> Received {
        let mut buffer = buffers.recv(RECV_BYTES);
        let received = self.receive_into(Arc::get_mut(&mut buffer).map(Vec::as_mut_slice));
        buffers.give_recv(buffer);
        received.0
    }

    /// Receives once into what room there is, making some first.
    pub(crate) fn receive(&mut self, buffers: &mut Buffers) -> Received {
        let mut window = self.make_room(buffers);
        // Owned by this window alone: `make_room` sees to it.
        let room = Arc::get_mut(&mut window.buffer).and_then(|bytes| {
            let end = bytes.len().min(window.end.saturating_add(self.left));
            bytes.get_mut(window.end..end)
        });
        let (received, count) = self.receive_into(room);
        window.end += count;
        self.left -= count;
        self.note(received, count);
        self.window = Some(window);
        received
    }

    /// Learns from what came how much room the next buffer should have.
    fn note(&mut self, received: Received, count: usize) {
        self.calm = if count <= RECV_SMALL_BYTES / 2 { self.calm.saturating_add(1) } else { 0 };
        if received == Received::More {
            self.usual = RECV_BYTES;
        } else if self.calm >= RECV_CALM {
            self.usual = RECV_SMALL_BYTES;
        }
    }

    fn receive_into(&mut self, room: Option<&mut [u8]>) -> (Received, usize) {
        let Some(room) = room else { return (Received::Closed, 0) };
        let space = room.len();
        match rustix::net::recv(&self.socket, room, RecvFlags::DONTWAIT) {
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

    /// The next whole record, if there is one.
    ///
    /// # Errors
    /// [`ProtocolError`] if the peer broke a bound; close the connection.
    pub(crate) fn next_record(&mut self) -> Result<Option<Shared>, ProtocolError> {
        let Some(window) = &mut self.window else { return Ok(None) };
        loop {
            let bytes = window.buffer.get(window.start..window.end).unwrap_or(&[]);
            match self.session.next(bytes)? {
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

    /// Puts away what is left after the records were taken: gives the buffer back where nothing
    /// or little is left in it. A blocked connection keeps its window.
    pub(crate) fn settle(&mut self, buffers: &mut Buffers) {
        if self.blocked {
            return;
        }
        let Some(window) = self.window.take() else { return };
        let left = window.buffer.get(window.start..window.end).unwrap_or(&[]);
        if left.len() <= PARTIAL_COPY_MAX {
            self.partial.extend_from_slice(left);
            self.lent.put(window.buffer, buffers);
        } else {
            self.window = Some(window);
        }
    }

    /// A window with room, all of the old bytes in front, whose buffer nobody else holds.
    fn make_room(&mut self, buffers: &mut Buffers) -> Window {
        let Some(mut window) = self.window.take() else {
            let mut buffer = buffers.recv(self.wanted.max(self.usual));
            let end = self.partial.len();
            if let Some(front) = Arc::get_mut(&mut buffer).and_then(|bytes| bytes.get_mut(..end)) {
                front.copy_from_slice(&self.partial);
            }
            self.partial = Vec::new();
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
                if let Some(front) =
                    Arc::get_mut(&mut buffer).and_then(|bytes| bytes.get_mut(..left))
                {
                    front.copy_from_slice(old);
                }
                self.lent.put(window.buffer, buffers);
                Window { buffer, start: 0, end: left }
            }
        }
    }

    /// Queues a whole reply record.
    pub(crate) fn queue(&mut self, reply: Vec<u8>) {
        self.push(Queued { bytes: reply, of: None });
    }

    /// Queues a whole reply record to a READ, WRITE or COMMIT on `volume`.
    pub(crate) fn queue_of(&mut self, reply: Vec<u8>, volume: Arc<ServedVolume>) {
        self.push(Queued { bytes: reply, of: Some(volume) });
    }

    fn push(&mut self, reply: Queued) {
        self.fresh = true;
        self.out_bytes += reply.bytes.len();
        self.out.push_back(reply);
    }

    /// Takes all that waits to leave for gone: the connection is lost.
    pub(crate) fn give_up_replies(&mut self) {
        for of in self.out.drain(..).filter_map(|reply| reply.of) {
            note(&mut self.gone, of);
        }
    }

    /// Sends as much as the socket takes `now`, many replies to a call.
    ///
    /// # Errors
    /// Any but "would block": the connection is lost.
    pub(crate) fn flush(&mut self, buffers: &mut Buffers, now: Mono) -> Result<(), Errno> {
        self.fresh = false;
        let mut clogged = self.clogged.take();
        while !self.out.is_empty() {
            match self.send_once() {
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

    fn send_once(&self) -> Result<usize, Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let [only] = self.out.as_slices().0
            && self.out.len() == 1
        {
            let rest = only.bytes.get(self.out_offset..).unwrap_or(&[]);
            return rustix::net::send(&self.socket, rest, flags);
        }
        let mut slices = [IoSlice::new(&[]); SEND_SLICES_MAX];
        let count = self.out.len().min(SEND_SLICES_MAX);
        let mut skip = self.out_offset;
        for (slice, reply) in slices.iter_mut().zip(&self.out) {
            *slice = IoSlice::new(reply.bytes.get(skip..).unwrap_or(&[]));
            skip = 0;
        }
        let slices = slices.get(..count).unwrap_or(&[]);
        rustix::net::sendmsg(&self.socket, slices, &mut SendAncillaryBuffer::default(), flags)
    }

    fn sent(&mut self, mut bytes: usize, buffers: &mut Buffers) {
        self.out_bytes = self.out_bytes.saturating_sub(bytes);
        bytes += self.out_offset;
        while let Some(front) = self.out.front() {
            if bytes < front.bytes.len() {
                break;
            }
            bytes -= front.bytes.len();
            if let Some(reply) = self.out.pop_front() {
                buffers.give_reply(reply.bytes);
                if let Some(of) = reply.of {
                    note(&mut self.gone, of);
                }
            }
        }
        self.out_offset = bytes;
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
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn pair() -> (TcpStream, Conn) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let session = Session::for_test(peer.ip());
        let conn = Conn::new(socket, peer.ip(), session, Rc::default(), 1, Mono::ZERO);
        (client, conn)
    }

    fn record(bytes: &[u8]) -> Vec<u8> {
        let mark = u32::try_from(bytes.len()).unwrap() | 1 << 31;
        [&mark.to_be_bytes(), bytes].concat()
    }

    /// Reads until `count` records came, holding on to every other one.
    fn drain(conn: &mut Conn, buffers: &mut Buffers, count: usize) -> Vec<Vec<u8>> {
        let (mut got, mut pinned) = (Vec::new(), Vec::new());
        while got.len() < count {
            assert_ne!(conn.receive(buffers), Received::Closed);
            while let Some(record) = conn.next_record().unwrap() {
                got.push(record.to_vec());
                if got.len() % 2 == 0 {
                    pinned.push(record);
                }
            }
            conn.settle(buffers);
        }
        got
    }

    #[test]
    fn records_of_all_sizes_come_whole_and_in_order() {
        let (mut client, mut conn) = pair();
        let sizes = [0, 1, 40, 5_000, 300_000, 1_000_000, 7, 262_300, 262_300, 262_300, 12];
        let sent: Vec<Vec<u8>> = sizes
            .iter()
            .enumerate()
            .map(|(at, size)| (0..*size).map(|i| (i * 7 + at).to_le_bytes()[0]).collect())
            .collect();
        let bytes: Vec<u8> = sent.iter().flat_map(|r| record(r)).collect();
        let sender = std::thread::spawn(move || {
            for part in bytes.chunks(100_003) {
                client.write_all(part).unwrap();
            }
            client
        });
        let got = drain(&mut conn, &mut Buffers::default(), sizes.len());
        assert!(got == sent);
        drop(sender.join().unwrap());
    }

    #[test]
    fn a_quiet_connection_holds_no_buffer() {
        let (mut client, mut conn) = pair();
        let mut buffers = Buffers::default();
        client.write_all(&record(b"abc")).unwrap();
        client.write_all(&[0x80, 0]).unwrap();
        drain(&mut conn, &mut buffers, 1);
        while conn.partial.len() < 2 {
            conn.receive(&mut buffers);
            assert!(conn.next_record().unwrap().is_none());
            conn.settle(&mut buffers);
        }
        assert!(conn.window.is_none());
        client.write_all(&[0, 1, 9]).unwrap();
        assert_eq!(drain(&mut conn, &mut buffers, 1), [[9]]);
    }

    #[test]
    fn the_buffer_follows_the_traffic() {
        let (mut client, mut conn) = pair();
        let mut buffers = Buffers::default();
        client.write_all(&record(&[1; 100])).unwrap();
        drain(&mut conn, &mut buffers, 1);
        assert_eq!(conn.usual, RECV_SMALL_BYTES);
        let large = record(&vec![2; 2 * RECV_SMALL_BYTES]);
        client.write_all(&large).unwrap();
        drain(&mut conn, &mut buffers, 1);
        assert_eq!(conn.usual, RECV_BYTES, "one that was filled");
        for _ in 0..RECV_CALM - 1 {
            client.write_all(&record(&[3; 100])).unwrap();
            drain(&mut conn, &mut buffers, 1);
        }
        assert_eq!(conn.usual, RECV_BYTES, "a few small ones prove nothing");
        client.write_all(&record(&[3; 100])).unwrap();
        drain(&mut conn, &mut buffers, 1);
        assert_eq!(conn.usual, RECV_SMALL_BYTES);
        client.write_all(&large).unwrap();
        assert_eq!(drain(&mut conn, &mut buffers, 1), [vec![2; 2 * RECV_SMALL_BYTES]]);
    }

    #[test]
    fn replies_leave_in_order_through_a_small_socket() {
        let (mut client, mut conn) = pair();
        let mut buffers = Buffers::default();
        let mut sent = Vec::new();
        for at in 0..600usize {
            let reply = vec![b'x'; 10_000 + at];
            sent.extend_from_slice(&reply);
            conn.queue(reply);
        }
        let expected = sent.len();
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; expected];
            client.read_exact(&mut got).unwrap();
            got
        });
        while conn.out_bytes() > 0 {
            conn.flush(&mut buffers, Mono::ZERO).unwrap();
            std::thread::yield_now();
        }
        assert!(reader.join().unwrap() == sent);
    }
}
