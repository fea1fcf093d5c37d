//! A worker's free buffers, last in first out so that the warm one is used next.

use crate::limits::{RECV_BYTES, RECV_LARGE_BYTES, RECV_SMALL_BYTES};
use crate::sync::Arc;

const RECV_SMALL_KEPT: usize = 128;
const RECV_KEPT: usize = 32;
const RECV_LARGE_KEPT: usize = 4;
/// Capacity of the buffer that a short reply is written to.
pub(super) const REPLY_SMALL: usize = 512;
const REPLY_SMALL_KEPT: usize = 1024;
/// Capacity of a buffer in which short records are joined.
pub(super) const JOINED: usize = 4096;
const JOINED_KEPT: usize = 128;
const REPLY_LARGE_KEPT_BYTES: usize = 16 << 20;

/// Free buffers of one worker. Never more than a stated number of each kind is kept.
#[derive(Default)]
pub(crate) struct Buffers {
    recv_small: Vec<Arc<Vec<u8>>>,
    recv: Vec<Arc<Vec<u8>>>,
    recv_large: Vec<Arc<Vec<u8>>>,
    reply_small: Vec<Vec<u8>>,
    joined: Vec<Vec<u8>>,
    reply_large: Vec<Vec<u8>>,
    reply_large_bytes: usize,
}

impl Buffers {
    /// The size of a receive buffer of at least `bytes`.
    pub(super) fn size_for(bytes: usize) -> usize {
        if bytes <= RECV_SMALL_BYTES {
            RECV_SMALL_BYTES
        } else if bytes <= RECV_BYTES {
            RECV_BYTES
        } else {
            RECV_LARGE_BYTES.max(bytes)
        }
    }

    /// A receive buffer of at least `bytes`, all of it initialised, owned by nobody else.
    pub(crate) fn recv(&mut self, bytes: usize) -> Arc<Vec<u8>> {
        let size = Self::size_for(bytes);
        let free = match size {
            RECV_SMALL_BYTES => &mut self.recv_small,
            RECV_BYTES => &mut self.recv,
            _ => &mut self.recv_large,
        };
        free.pop().unwrap_or_else(|| Arc::new(vec![0; size]))
    }

    /// Takes a receive buffer back that nobody else holds.
    pub(crate) fn give_recv(&mut self, buffer: Arc<Vec<u8>>) {
        match buffer.len() {
            RECV_SMALL_BYTES if self.recv_small.len() < RECV_SMALL_KEPT => {
                self.recv_small.push(buffer);
            }
            RECV_BYTES if self.recv.len() < RECV_KEPT => self.recv.push(buffer),
            RECV_LARGE_BYTES if self.recv_large.len() < RECV_LARGE_KEPT => {
                self.recv_large.push(buffer);
            }
            _ => {}
        }
    }

    /// An empty reply buffer with room for `bytes`.
    pub(crate) fn reply(&mut self, bytes: usize) -> Vec<u8> {
        if bytes <= REPLY_SMALL {
            return self.reply_small.pop().unwrap_or_else(|| Vec::with_capacity(REPLY_SMALL));
        }
        let Some(mut buffer) = self.reply_large.pop() else {
            return Vec::with_capacity(bytes);
        };
        self.reply_large_bytes -= buffer.capacity();
        buffer.reserve(bytes);
        buffer
    }

    /// An empty buffer in which short records are joined.
    pub(super) fn joined(&mut self) -> Vec<u8> {
        self.joined.pop().unwrap_or_else(|| Vec::with_capacity(JOINED))
    }

    /// Takes a reply buffer back after it was sent.
    pub(crate) fn give_reply(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        let size = buffer.capacity();
        if size <= 2 * REPLY_SMALL {
            if size >= REPLY_SMALL && self.reply_small.len() < REPLY_SMALL_KEPT {
                self.reply_small.push(buffer);
            }
        } else if size == JOINED && self.joined.len() < JOINED_KEPT {
            self.joined.push(buffer);
        } else if self.reply_large_bytes + size <= REPLY_LARGE_KEPT_BYTES {
            self.reply_large_bytes += size;
            self.reply_large.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_are_kept_apart() {
        let mut buffers = Buffers::default();
        let small = buffers.recv(1);
        assert_eq!(small.len(), RECV_SMALL_BYTES);
        buffers.give_recv(small);
        assert_eq!(buffers.recv(RECV_SMALL_BYTES + 1).len(), RECV_BYTES);
        let large = buffers.recv(RECV_BYTES + 1);
        assert_eq!(large.len(), RECV_LARGE_BYTES);
        buffers.give_recv(large);
        assert_eq!(buffers.recv(RECV_BYTES).len(), RECV_BYTES);
        let reply = buffers.reply(100_000);
        buffers.give_reply(reply);
        assert!(buffers.reply(10).capacity() < 100_000);
        assert!(buffers.reply(4096).capacity() >= 100_000);
    }
}
