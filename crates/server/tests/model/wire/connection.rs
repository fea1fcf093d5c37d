//! One TCP connection, one call at a time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes: a server that doesn't answer fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, buffer: Vec::new() }
    }

    /// Sends a whole record and takes the next, without its mark.
    pub(crate) fn exchange(&mut self, call: &[u8]) -> Vec<u8> {
        self.socket.write_all(call).unwrap();
        loop {
            if let Some((mark, rest)) = self.buffer.split_first_chunk::<4>() {
                let length = (u32::from_be_bytes(*mark) & 0x7fff_ffff) as usize;
                if rest.len() >= length {
                    let record = rest[..length].to_vec();
                    self.buffer.drain(..4 + length);
                    return record;
                }
            }
            let mut part = [0; 16 << 10];
            let count = self.socket.read(&mut part).unwrap();
            assert!(count > 0, "the server closed the connection");
            self.buffer.extend_from_slice(&part[..count]);
        }
    }
}
