//! A UDP socket that tells to which address of ours a datagram came, and sends from a chosen one:
//! on a machine with several addresses a client takes answers only from the one it asked.

use libc::{in_pktinfo, in6_addr, in6_pktinfo};
use nix::cmsg_space;
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use socket2::{Domain, Socket, Type};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A datagram that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The datagram's length in the buffer given, in bytes.
    pub(super) len: usize,
    /// The sender's address, as far as UDP can be believed.
    pub(super) from: SocketAddr,
    /// The address of ours to answer from.
    pub(super) to: IpAddr,
}

/// A bound socket.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    socket: UdpSocket,
    bound: SocketAddr,
}

impl DatagramSocket {
    /// Listens on `address`; on all addresses of one family if it is unspecified.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn bind(address: &SocketAddr) -> std::io::Result<Self> {
        let socket = Socket::new(Domain::for_address(*address), Type::DGRAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        } else {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        }
        socket.bind(&(*address).into())?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from(socket);
        let bound = socket.local_addr()?;
        Ok(Self { socket, bound })
    }

    /// The address it is bound to.
    pub(super) fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// The next datagram, if there is one that fits `buffer`; longer ones are dropped.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<Arrived> {
        loop {
            let mut control = cmsg_space!(in6_pktinfo, in_pktinfo);
            let mut slices = [IoSliceMut::new(buffer)];
            let fd = self.socket.as_raw_fd();
            let flags = MsgFlags::MSG_DONTWAIT;
            let got = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut control), flags);
            let message = match got {
                Ok(message) => message,
                // A socket reports what became of earlier datagrams; none of that ends it.
                Err(nix::Error::ECONNREFUSED | nix::Error::EINTR) => continue,
                Err(_) => return None,
            };
            let whole = !message.flags.contains(MsgFlags::MSG_TRUNC);
            let from = message.address.as_ref().and_then(address);
            let to = message.cmsgs().ok().and_then(|mut messages| messages.find_map(|m| local(&m)));
            if let (true, Some(from)) = (whole, from) {
                let to = to.unwrap_or(self.bound.ip());
                return Some(Arrived { len: message.bytes, from, to });
            }
        }
    }

    /// Sends `bytes` to `to` from our address `from`. A datagram that the kernel does not take is
    /// lost like any other.
    pub(super) fn send(&self, bytes: &[u8], to: SocketAddr, from: IpAddr) {
        let (mut four, mut six);
        let control = match from {
            from if from.is_unspecified() => None,
            IpAddr::V4(from) => {
                let s_addr = u32::from_ne_bytes(from.octets());
                four = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: zero(), ipi_addr: zero() };
                four.ipi_spec_dst.s_addr = s_addr;
                Some(ControlMessage::Ipv4PacketInfo(&four))
            }
            IpAddr::V6(from) => {
                let ipi6_addr = in6_addr { s6_addr: from.octets() };
                six = in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
                if let SocketAddr::V6(to) = to {
                    six.ipi6_ifindex = to.scope_id();
                }
                Some(ControlMessage::Ipv6PacketInfo(&six))
            }
        };
        let (slices, flags) = ([IoSlice::new(bytes)], MsgFlags::MSG_DONTWAIT);
        let to = SockaddrStorage::from(to);
        let fd = self.socket.as_raw_fd();
        if let Err(error) = sendmsg(fd, &slices, control.as_slice(), flags, Some(&to)) {
            tracing::debug!(%error, "cannot send a datagram");
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const fn zero() -> libc::in_addr {
    libc::in_addr { s_addr: 0 }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let four = storage.as_sockaddr_in().map(|four| SocketAddr::V4((*four).into()));
    four.or_else(|| storage.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into())))
}

/// The address of ours that a datagram came to. For a broadcast it is the one to answer from.
fn local(message: &ControlMessageOwned) -> Option<IpAddr> {
    match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a datagram: the test hangs, and so fails, if none comes.
    fn receive(socket: &DatagramSocket, buffer: &mut [u8]) -> Arrived {
        loop {
            if let Some(arrived) = socket.receive(buffer) {
                return arrived;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_answer_comes_from_the_address_that_was_asked() {
        let server = DatagramSocket::bind(&"0.0.0.0:0".parse().unwrap()).unwrap();
        let port = server.bound().port();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = client.local_addr().unwrap();
        for asked in ["127.0.0.1", "127.0.0.9"] {
            client.send_to(b"question", (asked, port)).unwrap();
            let mut buffer = [0; 64];
            let arrived = receive(&server, &mut buffer);
            assert_eq!(arrived, Arrived { len: 8, from: own, to: asked.parse().unwrap() });
            server.send(b"answer", arrived.from, arrived.to);
            let (len, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((len, from.to_string()), (6, format!("{asked}:{port}")));
        }
    }

    #[test]
    fn ipv6_works_and_what_is_too_long_is_dropped() {
        let server = DatagramSocket::bind(&"[::1]:0".parse().unwrap()).unwrap();
        let client = UdpSocket::bind("[::1]:0").unwrap();
        client.connect(server.bound()).unwrap();
        client.send(&[1; 65]).unwrap();
        client.send(&[2; 64]).unwrap();
        let mut buffer = [0; 64];
        let arrived = receive(&server, &mut buffer);
        assert_eq!((arrived.len, arrived.to), (64, server.bound().ip()));
        assert_eq!(buffer, [2; 64]);
        server.send(b"answer", arrived.from, arrived.to);
        assert_eq!(client.recv(&mut buffer).unwrap(), 6);
        assert_eq!(server.receive(&mut buffer), None);
    }
}
