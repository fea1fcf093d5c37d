//! The addresses of interfaces (rtnetlink(7)): adding one with a lifetime, removing, listing.

use super::{
    ACK, Attributes, CREATE, DUMP, Message, REPLACE, REQUEST, ask, attributes, list, message,
};
use crate::place::{Interface, Place};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `RTM_*` of `linux/rtnetlink.h`.
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;

/// `IFA_*` of `linux/if_addr.h`.
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const CACHE_INFO: u16 = 6;
const FLAGS: u16 = 8;
const NO_DUPLICATE_DETECTION: u32 = 0x02;
const PERMANENT: u32 = 0x80;

/// An address that an interface has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    /// The index of the interface.
    pub(crate) interface: u32,
    /// It has no lifetime: somebody else configured it.
    pub(crate) permanent: bool,
}

/// The index of an interface in this network namespace.
///
/// # Errors
/// If there is none of this name.
pub(crate) fn index_of(interface: &Interface) -> io::Result<u32> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let any = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    Ok(name_to_index(&any, interface.name())?)
}

/// Adds an address for `valid_seconds`, after which the kernel removes it, or changes its lifetime.
///
/// The address is "deprecated" from the start: the machine does not choose it for its own
/// connections. Of an IPv6 address no duplicates are detected: it could not be used for a second.
///
/// # Errors
/// The kernel's.
pub(crate) fn add(place: &Place, interface: u32, valid_seconds: u32) -> io::Result<()> {
    let bytes = octets(place.address());
    let times = [0, valid_seconds, 0, 0].map(u32::to_ne_bytes).concat();
    let mut attributes =
        Attributes::default().with(LOCAL, &bytes).with(ADDRESS, &bytes).with(CACHE_INFO, &times);
    if place.address().is_ipv6() {
        attributes = attributes.with(FLAGS, &NO_DUPLICATE_DETECTION.to_ne_bytes());
    }
    let fixed = fixed(place.address(), place.prefix(), interface);
    let flags = REQUEST | ACK | CREATE | REPLACE;
    ask(None, &message(NEW_ADDRESS, flags, 1, &fixed, &attributes), 1)
}

/// Removes an address. Returns whether the interface had it.
///
/// # Errors
/// The kernel's.
pub(crate) fn remove(address: IpAddr, prefix: u8, interface: u32) -> io::Result<bool> {
    let bytes = octets(address);
    let attributes = Attributes::default().with(LOCAL, &bytes).with(ADDRESS, &bytes);
    let fixed = fixed(address, prefix, interface);
    let request = message(DELETE_ADDRESS, REQUEST | ACK, 1, &fixed, &attributes);
    match ask(None, &request, 1) {
        Ok(()) => Ok(true),
        Err(error) if is(&error, Errno::ADDRNOTAVAIL) || is(&error, Errno::NODEV) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The places where this network namespace has `address`.
///
/// # Errors
/// The kernel's.
pub(crate) fn find(address: IpAddr) -> io::Result<Vec<Listed>> {
    let fixed = [family(address), 0, 0, 0, 0, 0, 0, 0];
    let request = message(GET_ADDRESS, REQUEST | DUMP, 1, &fixed, &Attributes::default());
    let mut found = Vec::new();
    list(None, &request, |message| {
        found.extend(read(message).filter(|listed| listed.address == address));
    })?;
    Ok(found)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn read(message: Message<'_>) -> Option<Listed> {
    if message.kind != NEW_ADDRESS {
        return None;
    }
    let ([family, prefix, flags, _, index @ ..], rest) =
        message.payload.split_first_chunk::<8>()?;
    let (mut address, mut local, mut flags) = (None, None, u32::from(*flags));
    for (kind, value) in attributes(rest) {
        match kind {
            ADDRESS => address = address_of(*family, value),
            LOCAL => local = address_of(*family, value),
            FLAGS => flags = u32::from_ne_bytes(*value.first_chunk()?),
            _ => {}
        }
    }
    Some(Listed {
        address: local.or(address)?,
        prefix: *prefix,
        interface: u32::from_ne_bytes(*index),
        permanent: flags & PERMANENT != 0,
    })
}

/// `struct ifaddrmsg`
fn fixed(address: IpAddr, prefix: u8, interface: u32) -> [u8; 8] {
    let [a, b, c, d] = interface.to_ne_bytes();
    [family(address), prefix, 0, 0, a, b, c, d]
}

/// `AF_INET` or `AF_INET6`.
pub(super) fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}

pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn address_of(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        2 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        10 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(family: u8, attributes: &Attributes) -> Option<Listed> {
        let bytes = message(NEW_ADDRESS, 0, 1, &[family, 24, 0x80, 0, 3, 0, 0, 0], attributes);
        read(super::super::messages(&bytes).next().unwrap())
    }

    #[test]
    fn the_local_address_counts_and_the_long_flags_where_there_are_any() {
        let (ours, peer) = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 1));
        let both = Attributes::default().with(ADDRESS, &peer.octets()).with(LOCAL, &ours.octets());
        let interface = u32::from_ne_bytes([3, 0, 0, 0]);
        let expected = Listed { address: ours.into(), prefix: 24, interface, permanent: true };
        assert_eq!(listed(2, &both), Some(expected));
        let leased = both.with(FLAGS, &0x20_u32.to_ne_bytes());
        assert_eq!(listed(2, &leased), Some(Listed { permanent: false, ..expected }));
        let ours = Ipv6Addr::LOCALHOST;
        let only = Attributes::default().with(ADDRESS, &ours.octets());
        assert_eq!(listed(10, &only), Some(Listed { address: ours.into(), ..expected }));
        assert_eq!(listed(10, &Attributes::default()), None);
        assert_eq!(listed(2, &Attributes::default().with(ADDRESS, &[1])), None);
        assert_eq!(listed(9, &only), None);
    }

    #[test]
    fn a_request_has_the_bytes_that_the_kernel_s_headers_describe() {
        let interface = Interface::parse("eth0").unwrap();
        let place = Place::new(Ipv4Addr::new(10, 0, 0, 9).into(), 32, interface).unwrap();
        assert_eq!(fixed(place.address(), 32, 1)[..4], [2, 32, 0, 0]);
        let v6: IpAddr = "fd00::9".parse().unwrap();
        assert_eq!(fixed(v6, 64, 0x0102_0304)[4..], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!((family(v6), octets(v6).len()), (10, 16));
    }

    #[test]
    fn the_machine_s_own_addresses_are_listed() {
        // The loopback interface of a new namespace is down and has none.
        let found = find(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert!(found.iter().all(|listed| listed.prefix == 8 && listed.permanent), "{found:?}");
        assert_eq!(find(Ipv4Addr::new(192, 0, 2, 77).into()).unwrap(), []);
        assert!(index_of(&Interface::parse("lo").unwrap()).unwrap() > 0);
        assert!(index_of(&Interface::parse("no-such-one").unwrap()).is_err());
    }
}
