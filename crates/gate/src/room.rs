//! The part of a connection that other threads see: whether gates may let its requests go.
//!
//! A gate charges a request when it lets it go, so a request must not go before its connection can
//! take the reply. The worker that owns the connection says whether it has room; gates, which any
//! worker may ask, count what they send it. Not here: memory itself, which the worker counts when
//! a request is started.

use crate::limits::REPLY_BYTES_MAX;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// The room of one connection for replies.
#[derive(Debug)]
pub struct Room {
    /// Whether the connection can take replies, as its worker says.
    open: AtomicBool,
    /// Bytes of released requests that the worker has not started yet.
    coming: AtomicUsize,
    /// A gate found no room since the worker's last check.
    refused: AtomicBool,
}

impl Default for Room {
    fn default() -> Self {
        let (coming, refused) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { open: AtomicBool::new(true), coming, refused }
    }
}

impl Room {
    /// Takes room for a request that is going to hold `bytes`. Where there is none, the worker that
    /// owns the connection is going to [look](Self::was_refused).
    ///
    /// Sequentially consistent like the rest: either the worker sees that room was refused, or the
    /// second try here sees what the worker changed.
    pub fn take(&self, bytes: usize) -> bool {
        if self.try_take(bytes) {
            return true;
        }
        self.refused.store(true, Ordering::SeqCst);
        self.try_take(bytes)
    }

    fn try_take(&self, bytes: usize) -> bool {
        let add = |coming: usize| {
            let fits = coming == 0 || coming + bytes <= REPLY_BYTES_MAX;
            fits.then_some(coming + bytes)
        };
        self.open.load(Ordering::SeqCst)
            && self.coming.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).is_ok()
    }

    /// Counts out a released request that has arrived at the worker.
    pub fn arrived(&self, bytes: usize) {
        self.coming.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Says whether the connection can take replies.
    pub fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    /// Whether a gate found no room since this was last asked. To be asked after every change that
    /// makes some: requests of the connection may be stalled at gates.
    pub fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed) && self.refused.swap(false, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_as_long_as_there_is_room_and_at_least_one_does() {
        let room = Room::default();
        assert!(room.take(2 * REPLY_BYTES_MAX), "one goes, whatever it holds");
        assert!(!room.take(1) && room.was_refused() && !room.was_refused());
        room.arrived(2 * REPLY_BYTES_MAX);
        assert!((0..4).all(|_| room.take(REPLY_BYTES_MAX / 4)));
        assert!(!room.take(1));
        room.arrived(REPLY_BYTES_MAX / 4);
        room.set_open(false);
        assert!(!room.take(1) && room.was_refused());
        room.set_open(true);
        assert!(room.take(1) && !room.was_refused());
    }
}
