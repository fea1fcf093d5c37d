//! IP networks of export rules: an address and a prefix length. No names, no routing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IPv4 or IPv6 network, with the bits outside its prefix zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpNetwork {
    addr: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Neither an address nor `ADDRESS/PREFIX`.
    #[error("{0:?} is not an IP network such as 10.0.0.0/8, 192.0.2.7 or fd00::/8")]
    Malformed(String),
    /// The prefix is longer than the address.
    #[error("prefix /{prefix} is too long: the maximum for {addr} is /{max}")]
    PrefixTooLong {
        /// The address.
        addr: IpAddr,
        /// The prefix asked for.
        prefix: u8,
        /// The longest for this family.
        max: u8,
    },
    /// Bits outside the prefix are set, so two networks may be meant.
    #[error(
        "{given}/{prefix} has bits set outside its prefix: use {network}, or {given} for a single host"
    )]
    HostBits {
        /// The address given.
        given: IpAddr,
        /// The prefix given.
        prefix: u8,
        /// The network that holds it.
        network: IpNetwork,
    },
}

impl IpNetwork {
    /// The network of `addr` with `prefix` bits.
    ///
    /// # Errors
    /// [`NetworkError::PrefixTooLong`]; [`NetworkError::HostBits`] if `addr` is not the first
    /// address of the network.
    pub fn new(addr: IpAddr, prefix: u8) -> Result<Self, NetworkError> {
        let max = width(addr);
        if prefix > max {
            return Err(NetworkError::PrefixTooLong { addr, prefix, max });
        }
        let network = Self { addr: truncate(addr, prefix), prefix };
        if network.addr != addr {
            return Err(NetworkError::HostBits { given: addr, prefix, network });
        }
        Ok(network)
    }

    /// 127.0.0.0/8.
    #[must_use]
    pub const fn loopback_v4() -> Self {
        Self { addr: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 }
    }

    /// `::1/128`.
    #[must_use]
    pub const fn loopback_v6() -> Self {
        Self { addr: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 }
    }

    /// The first address.
    #[must_use]
    pub const fn addr(&self) -> IpAddr {
        self.addr
    }

    /// Bits that all its addresses share.
    #[must_use]
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Is `addr` in the network? An IPv4 address mapped into IPv6 (`::ffff:10.0.0.1`, as a
    /// dual-stack socket reports it) counts as the IPv4 address it carries.
    #[must_use]
    pub fn contains(&self, addr: IpAddr) -> bool {
        let addr = addr.to_canonical();
        addr.is_ipv4() == self.addr.is_ipv4() && truncate(addr, self.prefix) == self.addr
    }
}

fn width(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}

/// `addr` with the bits after the first `prefix` zeroed.
fn truncate(addr: IpAddr, prefix: u8) -> IpAddr {
    match addr {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.prefix)
    }
}

impl FromStr for IpNetwork {
    type Err = NetworkError;

    /// `ADDRESS/PREFIX`, or an address alone for the one host.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let malformed = || NetworkError::Malformed(text.chars().take(64).collect());
        let (addr, prefix) = match text.split_once('/') {
            Some((addr, prefix)) => (addr, Some(prefix)),
            None => (text, None),
        };
        let addr: IpAddr = addr.parse().map_err(|_| malformed())?;
        let prefix = match prefix {
            Some(digits) => digits.parse().map_err(|_| malformed())?,
            None => width(addr),
        };
        Self::new(addr, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(text: &str) -> IpNetwork {
        text.parse().unwrap()
    }

    #[test]
    fn reads_networks_and_hosts() {
        assert_eq!(network("10.0.0.0/8").to_string(), "10.0.0.0/8");
        assert_eq!(network("192.0.2.7").to_string(), "192.0.2.7/32");
        assert_eq!(network("fd00::/8").to_string(), "fd00::/8");
        assert_eq!(network("::/0").prefix(), 0);
    }

    #[test]
    fn refuses_what_is_ambiguous_and_says_what_to_write() {
        let error = "10.1.2.3/8".parse::<IpNetwork>().unwrap_err();
        assert!(error.to_string().contains("use 10.0.0.0/8"), "{error}");
        assert!(matches!(
            "10.0.0.0/33".parse::<IpNetwork>(),
            Err(NetworkError::PrefixTooLong { max: 32, .. })
        ));
        for text in ["", "10.0.0", "host.example", "10.0.0.0/", "10.0.0.0/-1", "::/129x"] {
            assert!(matches!(text.parse::<IpNetwork>(), Err(NetworkError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn families_do_not_mix_but_mapped_addresses_count_as_ipv4() {
        assert!(network("127.0.0.0/8").contains("::ffff:127.0.0.5".parse().unwrap()));
        assert!(!network("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(!network("::/0").contains("10.0.0.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn contains_agrees_with_comparing_bits(addr: u32, prefix in 0u8..=32, other: u32) {
            let base = truncate(IpAddr::V4(addr.into()), prefix);
            let network = IpNetwork::new(base, prefix).unwrap();
            let same = (0..prefix).all(|bit| (addr ^ other) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(network.contains(IpAddr::V4(other.into())), same);
            prop_assert_eq!(network.to_string().parse::<IpNetwork>().unwrap(), network);
        }
    }
}
