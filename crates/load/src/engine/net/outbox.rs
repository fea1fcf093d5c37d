//! The data to be sent on a connection: encoded headers and, between them, payload that stays where
//! it is and is gathered by the send.

use crate::payload::Payload;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

/// Pieces gathered by one send.
const PIECES_MAX: usize = 128;

#[derive(Clone, Copy, Debug)]
enum Piece {
    Head { start: usize, end: usize },
    Payload { start: usize, len: usize },
}

impl Piece {
    const fn len(&self) -> usize {
        match self {
            Self::Head { start, end } => *end - *start,
            Self::Payload { len, .. } => *len,
        }
    }
}

/// The bytes waiting on one connection. Its memory is bounded by the connection's depth.
#[derive(Debug, Default)]
pub(in crate::engine) struct Outbox {
    heads: Vec<u8>,
    pieces: Vec<Piece>,
    /// Pieces sent in full.
    sent: usize,
    /// Bytes sent of the piece after these.
    sent_bytes: usize,
}

impl Outbox {
    /// Lets `encode` append header bytes.
    #[inline]
    pub(in crate::engine) fn head(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.heads.len();
        encode(&mut self.heads);
        let end = self.heads.len();
        match self.pieces.last_mut() {
            Some(Piece::Head { end: last, .. }) if *last == start => *last = end,
            _ => self.pieces.push(Piece::Head { start, end }),
        }
    }

    /// Appends `len` bytes of the payload buffer from `start` on.
    #[inline]
    pub(in crate::engine) fn payload(&mut self, start: usize, len: usize) {
        self.pieces.push(Piece::Payload { start, len });
    }

    /// Sends until everything is gone (`true`) or the socket takes no more (`false`).
    pub(super) fn flush(
        &mut self,
        socket: BorrowedFd<'_>,
        payload: &Payload,
    ) -> Result<bool, Errno> {
        while self.sent < self.pieces.len() {
            match self.send(socket, payload) {
                Ok(count) => self.advance(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.forget();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.heads.clear();
        self.pieces.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Gives back the memory of what was sent: a connection that is always behind never empties.
    fn forget(&mut self) {
        if self.sent < PIECES_MAX || self.sent < self.pieces.len() / 2 {
            return;
        }
        self.pieces.drain(..self.sent);
        self.sent = 0;
        let first = self.pieces.iter().find_map(|piece| match piece {
            Piece::Head { start, .. } => Some(*start),
            Piece::Payload { .. } => None,
        });
        let gone = first.unwrap_or(self.heads.len());
        self.heads.drain(..gone);
        for piece in &mut self.pieces {
            if let Piece::Head { start, end } = piece {
                (*start, *end) = (*start - gone, *end - gone);
            }
        }
    }

    fn send(&self, socket: BorrowedFd<'_>, payload: &Payload) -> Result<usize, Errno> {
        let mut gathered = [IoSlice::new(&[]); PIECES_MAX];
        let waiting = self.pieces.get(self.sent..).unwrap_or(&[]);
        let mut count = 0;
        let mut skip = self.sent_bytes;
        for (slot, piece) in gathered.iter_mut().zip(waiting) {
            let bytes = match *piece {
                Piece::Head { start, end } => self.heads.get(start..end).unwrap_or(&[]),
                Piece::Payload { start, len } => payload.slice(start, len),
            };
            *slot = IoSlice::new(bytes.get(skip..).unwrap_or(&[]));
            skip = 0;
            count += 1;
        }
        let gathered = gathered.get(..count).unwrap_or(&[]);
        sendmsg(socket, gathered, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
    }

    fn advance(&mut self, count: usize) {
        self.sent_bytes += count;
        while let Some(piece) = self.pieces.get(self.sent) {
            let len = piece.len();
            if self.sent_bytes < len {
                return;
            }
            self.sent_bytes -= len;
            self.sent += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn headers_and_payload_arrive_in_order_through_a_socket_that_takes_little_at_a_time() {
        let payload = Payload::new();
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut outbox = Outbox::default();
        let mut wanted = Vec::new();
        for turn in 0..300_u64 {
            let start = Payload::plain_start(turn);
            outbox.head(|out| out.extend_from_slice(&turn.to_be_bytes()));
            outbox.payload(start, 4096 + 4 * usize::try_from(turn).unwrap());
            wanted.extend_from_slice(&turn.to_be_bytes());
            let len = 4096 + 4 * usize::try_from(turn).unwrap();
            wanted.extend_from_slice(payload.slice(start, len));
        }
        let mut seen = Vec::new();
        let mut blocked = 0;
        while !outbox.flush(here.as_fd(), &payload).unwrap() {
            blocked += 1;
            let mut chunk = [0; 10_007];
            let len = there.read(&mut chunk).unwrap();
            seen.extend_from_slice(&chunk[..len]);
        }
        drop(here);
        there.read_to_end(&mut seen).unwrap();
        assert!(blocked > 0, "the socket buffer must be smaller than what is sent");
        assert!(seen == wanted);
    }

    #[test]
    fn a_connection_that_is_always_behind_takes_no_more_memory() {
        let payload = Payload::new();
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let (mut outbox, mut sent, mut got) = (Outbox::default(), 0_u64, Vec::new());
        let mut chunk = vec![0; 64 << 10];
        let mut most = 0;
        for turn in 0..20_000_u64 {
            outbox.head(|out| out.extend_from_slice(&turn.to_be_bytes()));
            outbox.payload(0, 4088);
            sent += 4096;
            // The reader takes as much as is added, so that there is always a rest.
            if outbox.flush(here.as_fd(), &payload).unwrap() {
                continue;
            }
            while (got.len() as u64) + (1 << 20) < sent {
                let len = there.read(&mut chunk).unwrap();
                got.extend_from_slice(&chunk[..len]);
            }
            most = most.max(outbox.pieces.len());
        }
        assert!(most < 2000, "{most} pieces");
        while !outbox.flush(here.as_fd(), &payload).unwrap() {
            let len = there.read(&mut chunk).unwrap();
            got.extend_from_slice(&chunk[..len]);
        }
        drop(here);
        there.read_to_end(&mut got).unwrap();
        assert_eq!(got.len() as u64, sent);
        for (turn, record) in got.chunks(4096).enumerate() {
            assert_eq!(record[..8], (turn as u64).to_be_bytes(), "record {turn}");
            assert_eq!(&record[8..], payload.slice(0, 4088));
        }
    }

    #[test]
    fn adjacent_headers_become_one_piece() {
        let mut outbox = Outbox::default();
        outbox.head(|out| out.push(1));
        outbox.head(|out| out.push(2));
        assert_eq!(outbox.pieces.len(), 1);
    }
}
