//! Ending the TCP connections of an address (sock_diag(7), `SOCK_DESTROY`).
//!
//! After the removal of an address its connections stay: those of IPv6 would send on from it, and
//! those of IPv4 would go on when the address returns.

use super::{ACK, Attributes, DUMP, Message, REQUEST, ask, list, message};
use rustix::io::Errno;
use rustix::net::netlink;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// `SOCK_DIAG_BY_FAMILY` and `SOCK_DESTROY` of `linux/sock_diag.h`.
const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;

const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;

/// All states of TCP (`net/tcp_states.h`) but CLOSE (7) and LISTEN (10): a server that listens at
/// the address goes on, for the address may return.
const STATES: u32 = 0x1ffe & !(1 << 7 | 1 << 10);

/// Bytes of `struct inet_diag_sockid`: ports, addresses, interface, cookie.
const SOCKET_ID_BYTES: usize = 48;

/// A connection: the family of its socket, and its identity as the kernel gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    family: u8,
    id: [u8; SOCKET_ID_BYTES],
}

/// Ends all TCP connections of `address` in this network namespace: their owners get an error.
/// Returns how many there were.
///
/// # Errors
/// The first of the kernel's, after the attempt at all others; `Unsupported` if it was built
/// without `CONFIG_INET_DIAG_DESTROY`.
pub(crate) fn end_all(address: IpAddr) -> io::Result<usize> {
    let mut found = Vec::new();
    for family in families(address) {
        let request = request(BY_FAMILY, DUMP, *family, &[0; SOCKET_ID_BYTES]);
        list(Some(netlink::SOCK_DIAG), &request, |message| {
            found.extend(read(message).filter(|(_, local)| *local == address).map(|(one, _)| one));
        })?;
    }
    let mut first = None;
    for Connection { family, id } in &found {
        let request = request(DESTROY, ACK, *family, id);
        if let Err(error) = ask(Some(netlink::SOCK_DIAG), &request, 1)
            // It ended by itself meanwhile.
            && error.raw_os_error() != Some(Errno::NOENT.raw_os_error())
        {
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(found.len()), Err)
}

/// The families whose sockets can have `address`: a socket of IPv6 may be connected by IPv4.
fn families(address: IpAddr) -> &'static [u8] {
    match address {
        IpAddr::V4(_) => &[INET, INET6],
        IpAddr::V6(_) => &[INET6],
    }
}

/// A message with `struct inet_diag_req_v2`.
fn request(kind: u16, flag: u16, family: u8, id: &[u8; SOCKET_ID_BYTES]) -> Vec<u8> {
    let mut fixed = vec![family, TCP, 0, 0];
    fixed.extend(STATES.to_ne_bytes());
    fixed.extend(id);
    message(kind, REQUEST | flag, 1, &fixed, &Attributes::default())
}

/// A connection and its local address from `struct inet_diag_msg`.
fn read(message: Message<'_>) -> Option<(Connection, IpAddr)> {
    if message.kind != BY_FAMILY {
        return None;
    }
    let ([family, ..], rest) = message.payload.split_first_chunk::<4>()?;
    let id = *rest.first_chunk::<SOCKET_ID_BYTES>()?;
    let local = *id.get(4..)?.first_chunk::<16>()?;
    let local = match *family {
        INET => {
            let [a, b, c, d, ..] = local;
            IpAddr::from([a, b, c, d])
        }
        // Maps an IPv4 address that is written as one of IPv6 to itself.
        INET6 => Ipv6Addr::from(local).to_canonical(),
        _ => return None,
    };
    Some((Connection { family: *family, id }, local))
}

#[cfg(test)]
mod tests {
    use super::super::addresses::{family, octets};
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn listed(family: u8, local: IpAddr) -> Option<IpAddr> {
        let mut fixed = vec![family, 1, 0, 0, 8, 1, 2, 0];
        fixed.extend(octets(local));
        fixed.resize(72, 0);
        let bytes = message(BY_FAMILY, 0, 1, &fixed, &Attributes::default());
        read(super::super::messages(&bytes).next().unwrap()).map(|(_, local)| local)
    }

    #[test]
    fn the_local_address_of_a_connection_is_found_in_both_families() {
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        assert_eq!(listed(INET, address("10.0.0.9")), Some(address("10.0.0.9")));
        assert_eq!(listed(INET6, address("fd00::9")), Some(address("fd00::9")));
        assert_eq!(listed(INET6, address("::ffff:10.0.0.9")), Some(address("10.0.0.9")));
        assert_eq!(listed(1, address("10.0.0.9")), None);
        assert_eq!(family(address("fd00::9")), INET6);
        assert_eq!(request(DESTROY, ACK, INET, &[0; 48]).len(), 16 + 56);
    }

    /// A connection to an address that no other test uses ends, and its listener goes on.
    #[test]
    fn connections_end_and_listeners_stay() {
        assert!(rustix::process::geteuid().is_root(), "ending connections needs root");
        let listener = TcpListener::bind("127.0.77.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(to).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        assert_eq!(end_all("127.0.77.2".parse().unwrap()).unwrap(), 0);
        assert_eq!(end_all(to.ip()).unwrap(), 1);
        assert!(served.read(&mut [0]).is_err());
        assert!(client.read(&mut [0]).is_err());
        TcpStream::connect(to).unwrap();
        listener.accept().unwrap();
    }
}
