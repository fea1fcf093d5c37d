//! Opening a connection, with advice where that fails.

use crate::error::BenchError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a TCP connection to `address`, from `source` if one is given.
pub(in crate::engine) fn connect(
    address: SocketAddr,
    source: Option<IpAddr>,
) -> Result<TcpStream, BenchError> {
    let attempt = || -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        socket.connect_timeout(&address.into(), CONNECT_TIMEOUT)?;
        Ok(socket.into())
    };
    attempt().map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "; nothing listens there: is the server running, and is this its port?"
            }
            io::ErrorKind::AddrNotAvailable => {
                "; the source address does not belong to this machine"
            }
            io::ErrorKind::TimedOut => "; no answer within 5 s: check for a firewall",
            _ => "",
        };
        let from = source.map_or_else(|| "any address".to_owned(), |ip| ip.to_string());
        BenchError::Connect { address, from, source: error, hint }
    })
}
