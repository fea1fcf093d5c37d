//! The holdings of clients in a bounded memory that strangers may fill: at the bound, the client
//! that holds the most of the origin that holds the most gives way.
//!
//! Clients are told apart by address, in the form of a number (IPv4 as its IPv6-mapped form), and
//! counted together by [`Origin`].

use crate::Origin;
use alloc::collections::{BTreeMap, BTreeSet};

/// The holdings of each client, and of each origin. Plain data; a change costs time logarithmic in
/// the number of clients that hold anything.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    total: usize,
    origins: BTreeMap<Origin, usize>,
    by_total: BTreeSet<(usize, Origin)>,
    clients: BTreeMap<u128, usize>,
    by_client: BTreeSet<(Origin, usize, u128)>,
}

impl Holdings {
    /// The holdings of all clients together.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// The holdings of `client`.
    #[must_use]
    pub fn of(&self, client: u128) -> usize {
        self.clients.get(&client).copied().unwrap_or(0)
    }

    /// Sets the holdings of `client` to `now`.
    pub fn set(&mut self, client: u128, now: usize) {
        let (before, origin) = (self.of(client), Origin::of_client(client));
        if before == now {
            return;
        }
        self.by_client.remove(&(origin, before, client));
        if now == 0 {
            self.clients.remove(&client);
        } else {
            self.clients.insert(client, now);
            self.by_client.insert((origin, now, client));
        }
        let held = self.origins.get(&origin).copied().unwrap_or(0);
        let holds = held - before + now;
        self.by_total.remove(&(held, origin));
        if holds == 0 {
            self.origins.remove(&origin);
        } else {
            self.origins.insert(origin, holds);
            self.by_total.insert((holds, origin));
        }
        self.total = self.total - before + now;
    }

    /// The client that must give something up: the one that holds the most, of the origin that
    /// holds the most. None if nobody holds anything.
    #[must_use]
    pub fn greediest(&self) -> Option<u128> {
        let (_, origin) = self.by_total.last()?;
        let of_origin = (*origin, 0, 0)..=(*origin, usize::MAX, u128::MAX);
        self.by_client.range(of_origin).next_back().map(|(_, _, client)| *client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv6Addr};

    fn client(text: &str) -> u128 {
        let v6 = match text.parse().unwrap() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Ipv6Addr::into(v6)
    }

    #[test]
    fn of_the_origin_with_the_most_the_client_with_the_most_gives_way() {
        let mut held = Holdings::default();
        held.set(client("10.0.0.1"), 5);
        held.set(client("2001:db8::1"), 2);
        held.set(client("2001:db8::2"), 4);
        held.set(client("2001:db8:0:1::1"), 5);
        assert_eq!(held.greediest(), Some(client("2001:db8::2")));
        held.set(client("2001:db8::2"), 0);
        assert_ne!(held.greediest(), Some(client("2001:db8::1")));
        assert_eq!(held.total(), 12);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_clients(changes in proptest::collection::vec((0u128..6, 0usize..9), 0..80)) {
            let mut held = Holdings::default();
            let mut model = BTreeMap::new();
            for (number, holds) in changes {
                // Pairs of clients share an origin.
                let client = (number / 2) << 64 | 1 << 60 | (number % 2);
                held.set(client, holds);
                model.insert(client, holds);
                let total: usize = model.values().sum();
                prop_assert_eq!(held.total(), total);
                let of_origin = |client: u128| -> usize {
                    model.iter().filter(|(other, _)| Origin::of_client(**other) == Origin::of_client(client)).map(|(_, held)| held).sum()
                };
                match held.greediest() {
                    None => prop_assert_eq!(total, 0),
                    Some(greedy) => {
                        let most = model.keys().map(|client| of_origin(*client)).max();
                        prop_assert_eq!(Some(of_origin(greedy)), most);
                        let peers = model.iter().filter(|(other, _)| Origin::of_client(**other) == Origin::of_client(greedy));
                        prop_assert_eq!(peers.map(|(_, held)| *held).max(), Some(held.of(greedy)));
                    }
                }
            }
        }
    }
}
