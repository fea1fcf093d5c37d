//! Sending what tells the network where an address is, and what makes clients reconnect. Not here:
//! the packets' bytes, and when they are sent.

use crate::packet::{Announcement, Mac, advertisement, arp, tickle_v4, tickle_v6};
use crate::place::{Interface, Place};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, MsgFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_multicast_hops;
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, bind, ipproto, sendto, socket_with,
};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

/// `ARPHRD_ETHER`
const ETHERNET: u16 = 1;

/// All nodes on the link (RFC 4291, section 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The hop limit that receivers of neighbour advertisements demand (RFC 4861, section 7.1.2).
const HOPS: u32 = 255;

/// A connection of an earlier life of an address: the local address and port, and the client's.
pub(crate) type Connection = (SocketAddr, SocketAddr);

/// Announces an address on its interface once. Nothing is sent where there are no hardware
/// addresses to tell, such as on the loopback interface and on tunnels.
///
/// # Errors
/// The kernel's.
pub(crate) fn announce(place: &Place) -> io::Result<()> {
    let Some((link, mac)) = hardware(place.interface())? else { return Ok(()) };
    match place.address() {
        IpAddr::V4(address) => {
            // No protocol, so that the socket receives nothing.
            let socket = open(AddressFamily::PACKET, None)?;
            for kind in [Announcement::Request, Announcement::Reply] {
                let frame = arp(kind, address, mac);
                nix::sys::socket::sendto(socket.as_raw_fd(), &frame, &link, MsgFlags::empty())?;
            }
            Ok(())
        }
        IpAddr::V6(address) => {
            let interface = u32::try_from(link.ifindex()).map_err(|_| Errno::NODEV)?;
            let socket = open(AddressFamily::INET6, Some(ipproto::ICMPV6))?;
            set_ipv6_multicast_hops(&socket, HOPS)?;
            bind(&socket, &SocketAddrV6::new(address, 0, 0, 0))?;
            let all = SocketAddrV6::new(ALL_NODES, 0, 0, interface);
            let message = advertisement(address, mac);
            sendto(&socket, &message, SendFlags::empty(), &all)?;
            Ok(())
        }
    }
}

/// Sends a tickle to each client. One that cannot be reached does not keep the others from theirs.
///
/// # Errors
/// The first of the kernel's, after the attempt at all others.
pub(crate) fn tickle(connections: &[Connection]) -> io::Result<()> {
    // Sockets of this protocol receive nothing, and send packets with their header.
    let v4 = open(AddressFamily::INET, Some(ipproto::RAW))?;
    let v6 = open(AddressFamily::INET6, Some(ipproto::RAW))?;
    let mut first = None;
    for connection in connections {
        let sent = match *connection {
            (SocketAddr::V4(local), SocketAddr::V4(client)) => {
                let to = SocketAddrV4::new(*client.ip(), 0);
                sendto(&v4, &tickle_v4(local, client), SendFlags::DONTWAIT, &to)
            }
            (SocketAddr::V6(local), SocketAddr::V6(client)) => {
                let to = SocketAddrV6::new(*client.ip(), 0, 0, 0);
                sendto(&v6, &tickle_v6(local, client), SendFlags::DONTWAIT, &to)
            }
            _ => Err(Errno::AFNOSUPPORT),
        };
        if let Err(error) = sent {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(()), |error| Err(error.into()))
}

/// The link address of an interface of the kind of Ethernet, as a destination, and its hardware
/// address.
fn hardware(interface: &Interface) -> io::Result<Option<(LinkAddr, Mac)>> {
    let of_interface = getifaddrs()?.filter(|one| one.interface_name == interface.name());
    let mut links = of_interface.filter_map(|one| one.address?.as_link_addr().copied());
    let ethernet = links.find(|link| link.hatype() == ETHERNET);
    Ok(ethernet.and_then(|link| Some((link, link.addr()?))))
}

fn open(family: AddressFamily, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_announced_where_there_are_no_hardware_addresses() {
        let interface = Interface::parse("lo").unwrap();
        assert!(hardware(&interface).unwrap().is_none());
        let place = Place::new("10.99.0.9".parse().unwrap(), 32, interface).unwrap();
        announce(&place).unwrap();
    }
}
