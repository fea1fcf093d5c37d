//! Bounds in sum on the memory that clients make their sessions hold: bytes of one kind, counted
//! for the session and for the server. Not here: the bounds themselves, which are in `limits.rs`.

use crate::sync::{Arc, AtomicUsize, Ordering};

/// Bytes that count together, and how many they may be.
pub(super) struct Sum {
    bytes: AtomicUsize,
    most: usize,
}

/// Bytes that a session holds, which count for the server too.
pub(super) struct SessionSum {
    session: Sum,
    server: Arc<Sum>,
}

/// Bytes that count in both sums until they are given up, at the latest when this is dropped.
pub(super) struct Charge {
    bytes: usize,
    sum: Arc<SessionSum>,
}

impl Sum {
    /// No bytes of `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), most }
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < self.most
    }

    fn add(&self, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl SessionSum {
    /// No bytes of `most`, beside those of other sessions in `server`.
    pub(super) fn new(most: usize, server: &Arc<Sum>) -> Arc<Self> {
        Arc::new(Self { session: Sum::new(most), server: Arc::clone(server) })
    }

    /// Are both sums below their bounds?
    pub(super) fn has_room(&self) -> bool {
        self.session.has_room() && self.server.has_room()
    }

    fn both(&self) -> [&Sum; 2] {
        [&self.session, &self.server]
    }
}

impl Charge {
    /// No bytes.
    pub(super) fn new(sum: &Arc<SessionSum>) -> Self {
        Self { bytes: 0, sum: Arc::clone(sum) }
    }

    /// Counts with `bytes` instead, whatever the bounds.
    pub(super) fn set(&mut self, bytes: usize) {
        for sum in self.sum.both() {
            sum.add(bytes);
            sum.remove(self.bytes);
        }
        self.bytes = bytes;
    }

    /// Counts with `bytes` instead. False, and nothing changes, if these are more and would pass a
    /// bound.
    #[must_use]
    pub(super) fn try_set(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let both = self.sum.both();
        let passed = both.map(|sum| sum.add(more) > sum.most);
        let fits = more == 0 || passed == [false; 2];
        let unused = if fits { self.bytes.saturating_sub(bytes) } else { more };
        both.iter().for_each(|sum| sum.remove(unused));
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sum: &SessionSum) -> [usize; 2] {
        sum.both().map(|sum| sum.bytes.load(Ordering::Relaxed))
    }

    #[test]
    fn bytes_count_for_their_session_and_the_server_until_they_are_dropped() {
        let server = Arc::new(Sum::new(100));
        let (one, other) = (SessionSum::new(60, &server), SessionSum::new(60, &server));
        let (mut first, mut second) = (Charge::new(&one), Charge::new(&other));
        assert!(first.try_set(60));
        assert!(!one.has_room() && other.has_room());
        assert!(!first.try_set(61), "of the session");
        assert!(!second.try_set(41), "of the server");
        assert_eq!((counted(&one), counted(&other)), ([60, 60], [0, 60]));
        assert!(second.try_set(40) && !other.has_room());
        // Less always has room, also where a sum has passed its bound.
        second.set(70);
        assert!(second.try_set(65));
        assert!(first.try_set(10));
        assert_eq!((counted(&one), counted(&other)), ([10, 75], [65, 75]));
        drop(second);
        assert_eq!((counted(&one), counted(&other)), ([10, 10], [0, 10]));
        drop(first);
        assert_eq!(counted(&one), [0, 0]);
    }
}
