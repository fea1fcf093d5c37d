//! Transports and addresses as rpcbind writes them: network identifiers and universal addresses
//! (RFC 5665 §5.2.3).

use alloc::string::{String, ToString};
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};

/// A transport by its network identifier (RFC 5665 §5.1). Others are not spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Netid {
    /// `tcp`: TCP over IPv4.
    Tcp,
    /// `udp`: UDP over IPv4.
    Udp,
    /// `tcp6`: TCP over IPv6.
    Tcp6,
    /// `udp6`: UDP over IPv6.
    Udp6,
}

/// The protocol number of TCP, in version 2 (RFC 1833 §3.1).
const IPPROTO_TCP: u32 = 6;
/// The protocol number of UDP, in version 2 (RFC 1833 §3.1).
const IPPROTO_UDP: u32 = 17;

impl Netid {
    /// Every transport.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Udp, Self::Tcp6, Self::Udp6];

    /// The stream (`stream`) or datagram transport to or from `address`.
    #[must_use]
    pub const fn of(address: &IpAddr, stream: bool) -> Self {
        match (address.is_ipv4(), stream) {
            (true, true) => Self::Tcp,
            (true, false) => Self::Udp,
            (false, true) => Self::Tcp6,
            (false, false) => Self::Udp6,
        }
    }

    /// The transport of this name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|netid| netid.name().as_bytes() == name)
    }

    /// The transport's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Tcp6 => "tcp6",
            Self::Udp6 => "udp6",
        }
    }

    /// Does it carry IPv4?
    #[must_use]
    pub const fn is_ipv4(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp)
    }

    /// The transport with this protocol number in version 2, which knows IPv4 alone.
    #[must_use]
    pub const fn of_protocol(number: u32) -> Option<Self> {
        match number {
            IPPROTO_TCP => Some(Self::Tcp),
            IPPROTO_UDP => Some(Self::Udp),
            _ => None,
        }
    }

    /// The transport's protocol number.
    #[must_use]
    pub const fn protocol(self) -> u32 {
        match self {
            Self::Tcp | Self::Tcp6 => IPPROTO_TCP,
            Self::Udp | Self::Udp6 => IPPROTO_UDP,
        }
    }
}

/// `address` as a universal address: the IP address, then the two bytes of the port in decimal,
/// with dots between them.
#[must_use]
pub fn universal(address: &SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    let mut text = address.ip().to_string();
    // Writing to a string can't fail.
    let _infallible = write!(text, ".{high}.{low}");
    text
}

/// A universal address that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Universal(pub SocketAddr);

impl Universal {
    /// Reads the universal address in `text`; nothing if it is none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(text).ok()?;
        let (rest, low) = text.rsplit_once('.')?;
        let (ip, high) = rest.rsplit_once('.')?;
        let byte = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse::<u8>().ok().filter(|_| plain)
        };
        let port = u16::from_be_bytes([byte(high)?, byte(low)?]);
        Some(Self(SocketAddr::new(ip.parse().ok()?, port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_written_as_the_standard_says() {
        let text = |address: &str| universal(&address.parse().unwrap());
        assert_eq!(text("10.1.3.7:2049"), "10.1.3.7.8.1");
        assert_eq!(text("[::]:111"), "::.0.111");
        assert_eq!(text("[2001:db8::1]:65535"), "2001:db8::1.255.255");
    }

    #[test]
    fn what_is_no_universal_address_is_refused() {
        for text in ["", ".", "1.2.3.4", "1.2.3.4.8", "1.2.3.4.8.1.9", "1.2.3.4.+8.1", "::.256.0"] {
            assert_eq!(Universal::parse(text.as_bytes()), None, "{text}");
        }
        for text in ["1.2.3.4.8.", "/run/rpcbind.sock", "host.8.1", "1.2.3.4. 8.1"] {
            assert_eq!(Universal::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Universal::parse(b"\xff.8.1"), None);
    }

    #[test]
    fn netids_are_found_by_name_and_number() {
        for netid in Netid::ALL {
            assert_eq!(Netid::named(netid.name().as_bytes()), Some(netid));
            let number = Netid::of_protocol(netid.protocol()).unwrap();
            assert!(number.is_ipv4() && number.name() == netid.name().trim_end_matches('6'));
        }
        assert_eq!(Netid::named(b"local"), None);
        assert_eq!(Netid::of_protocol(132), None);
        let six = "::1".parse().unwrap();
        assert_eq!((Netid::of(&six, true), Netid::of(&six, false)), (Netid::Tcp6, Netid::Udp6));
    }

    proptest! {
        #[test]
        fn every_address_reads_back(ip: IpAddr, port: u16) {
            let address = SocketAddr::new(ip, port);
            prop_assert_eq!(Universal::parse(universal(&address).as_bytes()), Some(Universal(address)));
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Universal::parse(&bytes);
        }
    }
}
