//! Receive buffers of one connection that its requests in flight still hold.
//!
//! The buffers come back when those requests are done, so nothing is allocated and cleared anew
//! while requests wait for the disk. They are counted, so that a peer can't pin memory without
//! bound by mixing requests that wait with others.

use super::buffers::Buffers;
use super::load::OriginLoad;
use super::tally::Counted;
use crate::limits::LENT_MAX;
use crate::sync::Arc;
use std::rc::Rc;

/// The lent buffers of a connection.
pub(super) struct Lent {
    buffers: Vec<Arc<Vec<u8>>>,
    bytes: Counted,
    origin: Rc<OriginLoad>,
}

impl Lent {
    /// The buffers of a connection of this origin, none lent yet.
    pub(super) fn new(origin: Rc<OriginLoad>) -> Self {
        Self { buffers: Vec::new(), bytes: origin.count_lent(0), origin }
    }

    /// Puts `buffer` away: back to the free ones, or here if a request holds part of it.
    pub(super) fn put(&mut self, mut buffer: Arc<Vec<u8>>, free: &mut Buffers) {
        if Arc::get_mut(&mut buffer).is_some() {
            free.give_recv(buffer);
        } else {
            self.bytes.set(self.bytes.amount() + buffer.len());
            self.buffers.push(buffer);
        }
    }

    /// Takes back the buffers that no request holds any more. Cheap where nothing is lent.
    pub(super) fn reclaim(&mut self, free: &mut Buffers) {
        for mut buffer in self.buffers.extract_if(.., |buffer| Arc::get_mut(buffer).is_some()) {
            self.bytes.set(self.bytes.amount() - buffer.len());
            if Arc::get_mut(&mut buffer).is_some() {
                free.give_recv(buffer);
            }
        }
    }

    /// May one more buffer be lent?
    pub(super) fn may_lend(&self) -> bool {
        self.buffers.is_empty() || self.buffers.len() < LENT_MAX && self.origin.may_lend()
    }

    /// The sums of the connection's origin.
    pub(super) fn origin(&self) -> &OriginLoad {
        &self.origin
    }

    /// Is nothing lent?
    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_in_use_comes_back_only_when_it_is_free() {
        let (mut free, mut lent) = (Buffers::default(), Lent::new(OriginLoad::alone()));
        let buffer = free.recv(1);
        let (size, held) = (buffer.len(), Arc::clone(&buffer));
        lent.put(buffer, &mut free);
        assert_eq!(lent.bytes.amount(), size);
        lent.reclaim(&mut free);
        assert!(!Arc::ptr_eq(&held, &free.recv(1)));
        let address = Arc::as_ptr(&held);
        drop(held);
        lent.reclaim(&mut free);
        assert_eq!(lent.bytes.amount(), 0);
        assert_eq!(Arc::as_ptr(&free.recv(1)), address);
    }

    #[test]
    fn lending_is_bounded_and_ends_with_the_requests() {
        let (mut free, mut lent) = (Buffers::default(), Lent::new(OriginLoad::alone()));
        let mut held = Vec::new();
        while lent.may_lend() {
            let buffer = free.recv(1);
            held.push(Arc::clone(&buffer));
            lent.put(buffer, &mut free);
        }
        assert_eq!(held.len(), LENT_MAX);
        lent.reclaim(&mut free);
        assert!(!lent.is_empty() && lent.bytes.amount() > 0);
        held.clear();
        lent.reclaim(&mut free);
        assert!(lent.is_empty() && lent.may_lend());
        assert_eq!(lent.bytes.amount(), 0);
    }
}
