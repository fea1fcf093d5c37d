//! A UDP socket that reports to which local address a datagram was sent, and sends from a chosen
//! one: on a host with several addresses a client accepts replies only from the one it has called.

use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use weir_store::{receive_datagram, report_destinations, send_datagram};

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
        }
        report_destinations(&socket, address.is_ipv6())?;
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
            match receive_datagram(&self.socket, buffer) {
                Ok(Some(datagram)) => {
                    let to = datagram.to.unwrap_or(self.bound.ip());
                    return Some(Arrived { len: datagram.len, from: datagram.from, to });
                }
                Ok(None) => {}
                // A socket reports what became of earlier datagrams; none of that ends it.
                Err(error) => match error.kind() {
                    ErrorKind::ConnectionRefused | ErrorKind::Interrupted => {}
                    _ => return None,
                },
            }
        }
    }

    /// Sends `bytes` to `to` from our address `from`. A datagram that the kernel does not take is
    /// lost like any other.
    pub(super) fn send(&self, bytes: &[u8], to: SocketAddr, from: IpAddr) {
        if let Err(error) = send_datagram(&self.socket, bytes, to, from) {
            tracing::debug!(%error, "cannot send a datagram");
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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
