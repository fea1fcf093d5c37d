//! Places for connections of peers that have not proved yet who they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bounds of the places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of all peers together.
    pub(crate) total: usize,
    /// Of one address.
    pub(crate) each: usize,
}

/// The places in use, by the address of the peer.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    bounds: Bounds,
    used: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// A place in use. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, used: Arc::default() }
    }

    /// A place for a peer at `address`, unless all are in use.
    pub(crate) fn take(&self, address: IpAddr) -> Option<Place> {
        let mut used = self.used();
        let here = used.get(&address).copied().unwrap_or(0);
        if here >= self.bounds.each || used.values().sum::<usize>() >= self.bounds.total {
            return None;
        }
        used.insert(address, here + 1);
        drop(used);
        Some(Place { places: self.clone(), address })
    }

    fn used(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.places.used();
        if let Some(here) = used.get_mut(&self.address) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                used.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_for_each_address_and_in_all_and_become_free() {
        let places = Places::new(Bounds { total: 3, each: 2 });
        let of = |last| places.take(IpAddr::from([192, 0, 2, last]));
        let (first, second) = (of(1).unwrap(), of(1).unwrap());
        assert!(of(1).is_none());
        let third = of(2).unwrap();
        assert!(of(3).is_none(), "all are in use");
        drop(first);
        let again = of(3).unwrap();
        drop((second, third, again));
        assert!(places.used().is_empty());
    }
}
