//! Where requests come from, as far as bounds tell origins apart, and how much of a common bound
//! one origin may use.
//!
//! An origin is an IPv4 address, or the /64 of an IPv6 address, because a host with one address of
//! a /64 usually has all of them.

use core::net::IpAddr;

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
