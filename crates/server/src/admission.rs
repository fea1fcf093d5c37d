//! Admission of connections: a limit on all connections and one per origin, so that one client
//! cannot keep others out.

use crate::limits::CONNECTIONS_OVER_MAX;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering, lock};
use std::net::IpAddr;
pub(crate) use weir_core::Origin;
use weir_core::origin::Counts;

/// A request to the workers to close one idle connection of an origin. The first worker that has
/// one closes it.
pub(crate) struct Eviction {
    /// The origin that loses a connection.
    pub(crate) origin: Origin,
    /// Connections whose end costs their clients opens and locks may be closed too.
    pub(crate) takes_state: bool,
    claimed: AtomicBool,
    /// Workers that have no connection to close.
    unable: AtomicUsize,
}

impl Eviction {
    /// The request to close a connection of `origin`.
    fn new(origin: Origin, takes_state: bool) -> Arc<Self> {
        let (claimed, unable) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Self { origin, takes_state, claimed, unable })
    }

    /// A worker has no connection to close. Once none of all `workers` has, this gives the request
    /// to close one that holds state: the last resort.
    pub(crate) fn unable(&self, workers: usize) -> Option<Arc<Self>> {
        let all = self.unable.fetch_add(1, Ordering::AcqRel) + 1 == workers;
        (all && !self.takes_state).then(|| Self::new(self.origin, true))
    }

    /// True for the first worker that calls it: close a connection.
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }
}

/// The decision on a new connection.
pub(crate) enum Decision {
    /// Serve the connection.
    Accept,
    /// Serve the connection, and close an idle one of the origin with the most connections.
    AcceptAndEvict(Arc<Eviction>),
    /// Close the connection: its origin has reached its limit.
    RejectOrigin,
    /// Close the connection: no origin has more connections than this one would have.
    Reject,
}

/// The numbers of connections.
pub(crate) struct Admission {
    most: usize,
    most_each: usize,
    counts: Mutex<Counts>,
}

impl Admission {
    /// At most `most` connections, and `most_each` per origin.
    pub(crate) fn new(most: usize, most_each: usize) -> Self {
        Self { most, most_each, counts: Mutex::default() }
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.counts).total()
    }

    /// Decides on a new connection from `peer`. If it is accepted, call [`Self::leave`] at its end.
    pub(crate) fn enter(&self, peer: IpAddr) -> Decision {
        let origin = Origin::of(peer);
        let mut counts = lock(&self.counts);
        let own = counts.of(origin);
        if own >= self.most_each {
            return Decision::RejectOrigin;
        }
        let mut decision = Decision::Accept;
        if counts.total() >= self.most {
            match counts.greediest() {
                Some((greedy, count))
                    if count > own + 1 && counts.total() < self.most + CONNECTIONS_OVER_MAX =>
                {
                    decision = Decision::AcceptAndEvict(Eviction::new(greedy, false));
                }
                _ => return Decision::Reject,
            }
        }
        counts.add(origin);
        decision
    }

    /// An accepted connection from `peer` has ended.
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
            assert!(matches!(admission.enter(peer(1)), Decision::Accept));
        }
        assert!(matches!(admission.enter(peer(1)), Decision::RejectOrigin));
        assert!(matches!(admission.enter(peer(2)), Decision::Accept));
        admission.leave(peer(1));
        assert!(matches!(admission.enter(peer(1)), Decision::Accept));
        assert_eq!(admission.connections(), 4);
    }

    #[test]
    fn when_all_is_taken_the_greediest_makes_room_for_those_with_less() {
        let admission = Admission::new(4, 3);
        for last in [1, 1, 1, 2] {
            assert!(matches!(admission.enter(peer(last)), Decision::Accept));
        }
        let Decision::AcceptAndEvict(eviction) = admission.enter(peer(3)) else {
            panic!("kept out")
        };
        assert_eq!(eviction.origin, Origin::of(peer(1)));
        assert!(eviction.claim() && !eviction.claim());
        admission.leave(peer(1));
        // Two, one and one: nobody has more than a second one of these would be.
        for last in [1, 2, 3] {
            assert!(matches!(admission.enter(peer(last)), Decision::Reject));
        }
        assert!(matches!(admission.enter(peer(4)), Decision::AcceptAndEvict(_)));
    }

    #[test]
    fn where_the_greediest_has_nothing_idle_little_is_admitted_beyond() {
        let admission = Admission::new(1000, 1000);
        for _ in 0..1000 {
            admission.enter(peer(1));
        }
        let mut beyond = 0;
        while matches!(
            admission.enter(IpAddr::from([10, 1, 0, beyond])),
            Decision::AcceptAndEvict(_)
        ) {
            beyond += 1;
        }
        assert_eq!(usize::from(beyond), CONNECTIONS_OVER_MAX);
    }
}
