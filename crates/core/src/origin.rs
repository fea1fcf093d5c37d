//! The origins of requests, as far as bounds tell them apart, and the part of a common bound that
//! one origin may use.
//!
//! An origin is an IPv4 address, or the /64 of an IPv6 address, because a host with one address of
//! a /64 usually has all of them.

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};

/// An IPv4 address or an IPv6 /64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(u128);

impl Origin {
    /// The origin of a peer with this address. A mapped IPv4 address is the IPv4 address.
    #[must_use]
    pub fn of(peer: IpAddr) -> Self {
        match peer.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().into()),
            IpAddr::V6(v6) => Self(u128::from(v6) >> 64 << 64),
        }
    }

    /// The number that [`Origin::of_client`] makes this origin of again.
    #[must_use]
    pub fn number(self) -> u128 {
        self.0
    }

    /// The origin of a client whose address is this number: an IPv6 address, or an IPv4 address in
    /// its mapped form.
    #[must_use]
    pub fn of_client(client: u128) -> Self {
        Self::of(Ipv6Addr::from(client).into())
    }
}

/// The number of items of each origin, and of all origins together. An origin without items takes
/// no memory.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    total: usize,
    of: BTreeMap<Origin, usize>,
}

impl Counts {
    /// The items of all origins.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// The items of `origin`.
    #[must_use]
    pub fn of(&self, origin: Origin) -> usize {
        self.of.get(&origin).copied().unwrap_or(0)
    }

    /// The origin that has the most items, and how many; `None` if there are no items.
    #[must_use]
    pub fn greediest(&self) -> Option<(Origin, usize)> {
        let greediest = self.of.iter().max_by_key(|(_, items)| **items);
        greediest.map(|(origin, items)| (*origin, *items))
    }

    /// Whether one more item of `origin` keeps the bound `most` on all items and the origin's
    /// [`part`] of it.
    #[must_use]
    pub fn have_room(&self, origin: Origin, most: usize, one_in: usize, least: usize) -> bool {
        let own = self.of(origin);
        self.total < most && own < part(most, self.total - own, one_in, least)
    }

    /// Counts one more item of `origin`.
    pub fn add(&mut self, origin: Origin) {
        *self.of.entry(origin).or_default() += 1;
        self.total += 1;
    }

    /// Counts one item of `origin` less, if it has one.
    pub fn remove(&mut self, origin: Origin) {
        let Some(items) = self.of.get_mut(&origin) else { return };
        *items -= 1;
        if *items == 0 {
            self.of.remove(&origin);
        }
        self.total -= 1;
    }
}

/// One user's part of a bound that all share: the `one_in`th part of what the `others` leave of
/// `most`, and at least `least`.
///
/// The part shrinks as others use more, so a few users can't fill the bound: each leaves most of
/// the rest. Only users of `least` each fill it to the end.
#[must_use]
pub const fn part(most: usize, others: usize, one_in: usize, least: usize) -> usize {
    let free = most.saturating_sub(others);
    let part = match free.checked_div(one_in) {
        Some(part) => part,
        None => free,
    };
    if part > least { part } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_origin_and_a_mapped_address_is_the_ipv4_one() {
        let of = |text: &str| Origin::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    #[test]
    fn items_are_counted_by_origin_and_an_origin_without_items_is_forgotten() {
        let [one, two] = ["10.0.0.1", "2001:db8::7"].map(|text| Origin::of(text.parse().unwrap()));
        let mut counts = Counts::default();
        assert_eq!(counts.greediest(), None);
        counts.remove(one);
        (0..3).for_each(|_| counts.add(one));
        counts.add(two);
        assert_eq!((counts.total(), counts.of(one), counts.of(two)), (4, 3, 1));
        assert_eq!(counts.greediest(), Some((one, 3)));
        assert!(counts.have_room(one, 9, 2, 1) && !counts.have_room(one, 8, 2, 1));
        (0..3).for_each(|_| counts.remove(one));
        assert_eq!((counts.total(), counts.of.len()), (1, 1));
    }

    #[test]
    fn an_origin_with_its_part_has_no_room_and_others_do() {
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|text| Origin::of(text.parse().unwrap()));
        let mut counts = Counts::default();
        while counts.have_room(one, 100, 4, 2) {
            counts.add(one);
        }
        assert_eq!(counts.of(one), 25);
        assert!(counts.have_room(two, 100, 4, 2));
        assert!(!counts.have_room(two, 25, 4, 2), "the bound on all is reached");
    }

    #[test]
    fn greedy_users_leave_room_for_many_others() {
        let (most, least) = (16_384, 16);
        let (mut used, mut users) = (0, 0);
        while used + least <= most {
            used += part(most, used, 16, least);
            users += 1;
        }
        assert_eq!(part(most, 0, 16, least), 1024);
        assert!(users > 75, "{users} users fill it");
        assert_eq!((part(100, 0, 0, 5), part(10, 10, 2, 5), part(10, 11, 2, 5)), (100, 5, 5));
    }
}
