//! One connection: bytes in, complete requests out, replies that did not fit the socket kept.

use super::call::word;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::net::TcpStream;

/// The largest request: 1 MiB of data and its headers.
const RECORD_BYTES_MAX: usize = (1 << 20) + 2048;
/// Bytes received at once: at least one largest request.
const INPUT_BYTES: usize = RECORD_BYTES_MAX + 4;

/// A client's connection.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    input: Vec<u8>,
    start: usize,
    end: usize,
    unsent: Vec<u8>,
}

impl Connection {
    /// A connection over a socket that does not block.
    pub(crate) fn new(socket: TcpStream) -> Self {
        Self { socket, input: vec![0; INPUT_BYTES], start: 0, end: 0, unsent: Vec::new() }
    }

    /// Receives once. `CONNRESET` at the end of the stream.
    pub(crate) fn receive(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() || self.short_of_room() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match recv(&self.socket, &mut self.input[self.end..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(Errno::CONNRESET),
            Ok((count, _)) => {
                self.end += count;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Would the request that has begun to arrive not fit behind `start`?
    fn short_of_room(&self) -> bool {
        let mark = word(&self.input[..self.end], self.start).unwrap_or(u32::MAX);
        let length = (mark & 0x7fff_ffff) as usize;
        self.input.len() - self.start < length.saturating_add(4)
    }

    /// The place of the next complete request in the input, without its record mark.
    ///
    /// # Errors
    /// `PROTO` for a request in several fragments or of more than 1 MiB: the generator sends none.
    pub(crate) fn next(&mut self) -> Result<Option<std::ops::Range<usize>>> {
        let Some(mark) = word(&self.input[..self.end], self.start) else { return Ok(None) };
        let length = (mark & 0x7fff_ffff) as usize;
        if mark & 0x8000_0000 == 0 || length > RECORD_BYTES_MAX {
            return Err(Errno::PROTO);
        }
        let from = self.start + 4;
        if self.end - from < length {
            return Ok(None);
        }
        self.start = from + length;
        Ok(Some(from..from + length))
    }

    /// The bytes of a request that [`Connection::next`] found.
    pub(crate) fn record(&self, at: std::ops::Range<usize>) -> &[u8] {
        &self.input[at]
    }

    /// Sends `bytes` behind what is still unsent. What does not fit the socket is kept.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        while self.unsent.is_empty() && !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends what was kept.
    pub(crate) fn resume(&mut self) -> Result<()> {
        let kept = std::mem::take(&mut self.unsent);
        self.send(&kept)
    }

    /// Are there replies that the client has not taken yet? Nothing more is received until then.
    pub(crate) const fn is_blocked(&self) -> bool {
        !self.unsent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        (client, Connection::new(server))
    }

    fn record(length: u32, fill: u8) -> Vec<u8> {
        let mut bytes = (length | 0x8000_0000).to_be_bytes().to_vec();
        bytes.resize(4 + length as usize, fill);
        bytes
    }

    fn receive_all(connection: &mut Connection) -> Vec<(usize, u8)> {
        let mut seen = Vec::new();
        loop {
            match connection.receive() {
                Err(Errno::CONNRESET) => return seen,
                other => other.unwrap(),
            }
            while let Some(at) = connection.next().unwrap() {
                let bytes = connection.record(at);
                assert!(bytes.iter().all(|&byte| byte == bytes[0]));
                seen.push((bytes.len(), bytes[0]));
            }
        }
    }

    #[test]
    fn requests_of_any_size_come_out_whole_and_in_order() {
        let (mut client, mut connection) = pair();
        let sizes = [40u32, 300_000, 44, 1 << 20, 1 << 20, 700_000, 60];
        let sender = std::thread::spawn(move || {
            for (fill, &size) in (1..).zip(&sizes) {
                client.write_all(&record(size, fill)).unwrap();
            }
        });
        let seen = receive_all(&mut connection);
        sender.join().unwrap();
        let wanted: Vec<_> = sizes.iter().map(|&size| size as usize).zip(1..).collect();
        assert_eq!(seen, wanted);
    }

    #[test]
    fn fragments_and_oversize_are_refused() {
        for mark in [100u32, 0x8000_0000 | (1 << 22)] {
            let (mut client, mut connection) = pair();
            client.write_all(&mark.to_be_bytes()).unwrap();
            while connection.end == 0 {
                connection.receive().unwrap();
            }
            assert_eq!(connection.next(), Err(Errno::PROTO));
        }
    }

    #[test]
    fn what_the_client_does_not_take_is_kept_and_sent_later() {
        let (mut client, mut connection) = pair();
        let reply = vec![3u8; 64 << 20];
        connection.send(&reply).unwrap();
        assert!(connection.is_blocked());
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 64 << 20];
            std::io::Read::read_exact(&mut client, &mut all).unwrap();
            all
        });
        while connection.is_blocked() {
            connection.resume().unwrap();
        }
        assert_eq!(reader.join().unwrap(), reply);
    }
}
