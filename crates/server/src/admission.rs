//! The admission of connections: bounds on all together and on each origin, so that one stranger
//! can't keep others out.

use crate::limits::CONNECTIONS_OVER_MAX;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::net::IpAddr;
pub(crate) use weir_core::Origin;
use weir_core::origin::Counts;

/// Asks the workers to close one idle connection of an origin. The first that has one does.
pub(crate) struct Shed {
    /// The connection's origin.
    pub(crate) origin: Origin,
    claimed: AtomicBool,
}

impl Shed {
    /// True for the first who asks: close one.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }
}

/// The decision about a new connection.
pub(crate) enum Verdict {
    /// The connection is served.
    Admitted,
    /// The connection is served, and the origin that has the most gives up one that is idle.
    InsteadOf(Arc<Shed>),
    /// The connection is closed: its origin has as many as it may.
    OriginFull,
    /// The connection is closed: nobody has more than its origin would have.
    Full,
}

/// The count of connections.
pub(crate) struct Admission {
    most: usize,
    most_each: usize,
    counts: Mutex<Counts>,
}

impl Admission {
    /// At most `most` connections, and `most_each` of an origin.
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self { most, most_each, counts: Mutex::default() }
    }

    /// Connections now.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.counts).total()
    }

    /// A connection from `peer` wants to be served. Count it off with [`Self::leave`] if it is.
    pub(crate) fn enter(&self, peer: IpAddr) -> Verdict {
        let origin = Origin::of(peer);
        let mut counts = lock(&self.counts);
        let own = counts.of(origin);
        if own >= self.most_each {
            return Verdict::OriginFull;
        }
        let mut verdict = Verdict::Admitted;
        if counts.total() >= self.most {
            match counts.greediest() {
                Some((greedy, count))
                    if count > own + 1 && counts.total() < self.most + CONNECTIONS_OVER_MAX =>
                {
                    let shed = Shed { origin: greedy, claimed: AtomicBool::new(false) };
                    verdict = Verdict::InsteadOf(Arc::new(shed));
                }
                _ => return Verdict::Full,
            }
        }
        counts.add(origin);
        verdict
    }

    /// A connection from `peer` that was admitted ended.
    pub(crate) fn leave(&self, peer: IpAddr) {
        lock(&self.counts).remove(Origin::of(peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn no_origin_gets_more_than_its_bound() {
        let admission = Admission::new(100, 3);
        for _ in 0..3 {
            assert!(matches!(admission.enter(peer(1)), Verdict::Admitted));
        }
        assert!(matches!(admission.enter(peer(1)), Verdict::OriginFull));
        assert!(matches!(admission.enter(peer(2)), Verdict::Admitted));
        admission.leave(peer(1));
        assert!(matches!(admission.enter(peer(1)), Verdict::Admitted));
        assert_eq!(admission.connections(), 4);
    }

    #[test]
    fn when_all_is_taken_the_greediest_makes_room_for_those_with_less() {
        let admission = Admission::new(4, 3);
        for last in [1, 1, 1, 2] {
            assert!(matches!(admission.enter(peer(last)), Verdict::Admitted));
        }
        let Verdict::InsteadOf(shed) = admission.enter(peer(3)) else { panic!("kept out") };
        assert_eq!(shed.origin, Origin::of(peer(1)));
        assert!(shed.claim() && !shed.claim());
        admission.leave(peer(1));
        // Two, one and one: nobody has more than a second one of these would be.
        for last in [1, 2, 3] {
            assert!(matches!(admission.enter(peer(last)), Verdict::Full));
        }
        assert!(matches!(admission.enter(peer(4)), Verdict::InsteadOf(_)));
    }

    #[test]
    fn where_the_greediest_has_nothing_idle_little_is_admitted_beyond() {
        let admission = Admission::new(1000, 1000);
        for _ in 0..1000 {
            admission.enter(peer(1));
        }
        let mut beyond = 0;
        while matches!(admission.enter(IpAddr::from([10, 1, 0, beyond])), Verdict::InsteadOf(_)) {
            beyond += 1;
        }
        assert_eq!(usize::from(beyond), CONNECTIONS_OVER_MAX);
    }
}
