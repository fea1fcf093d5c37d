//! Receive buffers of one connection that its requests in flight still hold.
//!
//! They come back when those requests are done, so nothing is allocated and cleared anew while
//! requests wait for the disk; and they are counted, so that a peer can't pin memory without bound
//! by mixing requests that wait with others.

use super::buffers::Buffers;
use crate::limits::{LENT_BYTES_WORKER_MAX, LENT_MAX};
use crate::sync::Arc;

/// The lent buffers of a connection.
#[derive(Default)]
pub(super) struct Lent {
    buffers: Vec<Arc<Vec<u8>>>,
}

impl Lent {
    /// Puts `buffer` away: back to the free ones, or here if a request holds part of it.
    pub(super) fn put(&mut self, mut buffer: Arc<Vec<u8>>, free: &mut Buffers) {
        if Arc::get_mut(&mut buffer).is_some() {
            free.give_recv(buffer);
        } else {
            free.lent_bytes += buffer.len();
            self.buffers.push(buffer);
        }
    }

    /// Takes back what is no longer held. Cheap where nothing is lent.
    pub(super) fn reclaim(&mut self, free: &mut Buffers) {
        for mut buffer in self.buffers.extract_if(.., |buffer| Arc::get_mut(buffer).is_some()) {
            free.lent_bytes -= buffer.len();
            if Arc::get_mut(&mut buffer).is_some() {
                free.give_recv(buffer);
            }
        }
    }

    /// May one more buffer be lent?
    pub(super) fn may_lend(&self, free: &Buffers) -> bool {
        self.buffers.is_empty()
            || self.buffers.len() < LENT_MAX && free.lent_bytes < LENT_BYTES_WORKER_MAX
    }

    /// Forgets them: the connection is gone.
    pub(super) fn forget(&mut self, free: &mut Buffers) {
        for buffer in self.buffers.drain(..) {
            free.lent_bytes -= buffer.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_in_use_comes_back_only_when_it_is_free() {
        let (mut free, mut lent) = (Buffers::default(), Lent::default());
        let buffer = free.recv(1);
        let (size, held) = (buffer.len(), Arc::clone(&buffer));
        lent.put(buffer, &mut free);
        assert_eq!(free.lent_bytes, size);
        lent.reclaim(&mut free);
        assert!(!Arc::ptr_eq(&held, &free.recv(1)));
        let address = Arc::as_ptr(&held);
        drop(held);
        lent.reclaim(&mut free);
        assert_eq!(free.lent_bytes, 0);
        assert_eq!(Arc::as_ptr(&free.recv(1)), address);
    }

    #[test]
    fn lending_is_bounded_and_forgotten_with_the_connection() {
        let (mut free, mut lent) = (Buffers::default(), Lent::default());
        let mut held = Vec::new();
        while lent.may_lend(&free) {
            let buffer = free.recv(1);
            held.push(Arc::clone(&buffer));
            lent.put(buffer, &mut free);
        }
        assert_eq!(held.len(), LENT_MAX);
        lent.forget(&mut free);
        assert_eq!(free.lent_bytes, 0);
        assert!(lent.may_lend(&free));
    }
}
