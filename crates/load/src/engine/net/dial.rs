//! Opening a connection, with advice where that fails.

use crate::error::BenchError;
use socket2::{Domain, Protocol, Socket, Type};
use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The source ports that servers take for those of privileged clients: the range in which the NFS
/// client of Linux looks (its `min_resvport` and `max_resvport`), above most well-known services.
pub(in crate::engine) const PRIVILEGED: RangeInclusive<u16> = 665..=1023;

const FOREIGN: &str = "; the source address does not belong to this machine";
const UNPRIVILEGED: &str = "; source ports below 1024 (resvport) need root or CAP_NET_BIND_SERVICE, \
                            as setcap cap_net_bind_service+ep gives it to a program";
const EXHAUSTED: &str = "; resvport leaves the 359 source ports from 665 to 1023 to each source \
                         address of this machine, and none of them is free: use fewer connections, \
                         or more addresses with --source";

/// The source ports of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Ports {
    /// The system chooses.
    Any,
    /// [`PRIVILEGED`] ones.
    Privileged,
}

/// Opens a TCP connection to `address`, from `source` if one is given.
pub(in crate::engine) fn connect(
    address: SocketAddr,
    source: Option<IpAddr>,
    ports: Ports,
) -> Result<TcpStream, BenchError> {
    let opened = match ports {
        Ports::Any => dial(address, source.map(|ip| SocketAddr::new(ip, 0))),
        Ports::Privileged => dial_from(address, source, PRIVILEGED),
    };
    opened.map_err(|Failure { error, hint }| {
        let from = source.map_or_else(|| "any address".to_owned(), |ip| ip.to_string());
        BenchError::Connect { address, from, source: error, hint }
    })
}

/// Checks that this process may use [`Ports::Privileged`].
pub(in crate::engine) fn check_privileged() -> Result<(), BenchError> {
    // The ports of root end at a number that a machine may lower (ip_unprivileged_port_start,
    // ip(7)), so that the first is the one to try.
    let free = |port: u16| {
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
            .and_then(|socket| socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into()))
    };
    match free(*PRIVILEGED.start()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(BenchError::Target(format!("this process may not bind a port{UNPRIVILEGED}")))
        }
        // A port in use is one that this process may have.
        _ => Ok(()),
    }
}

/// Why there is no connection, with advice.
struct Failure {
    error: io::Error,
    hint: &'static str,
}

/// Connects from the first of `ports` with which that succeeds, beginning at one by chance: a
/// server may still hold the connection that used a port last.
fn dial_from(
    address: SocketAddr,
    source: Option<IpAddr>,
    ports: RangeInclusive<u16>,
) -> Result<TcpStream, Failure> {
    let ip = source.unwrap_or(match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    });
    let all: Vec<u16> = ports.collect();
    let chance = std::hash::RandomState::new().hash_one(std::process::id());
    let begin = usize::try_from(chance >> 32).unwrap_or(0) % all.len().max(1);
    for port in all.iter().cycle().skip(begin).take(all.len()) {
        match dial(address, Some(SocketAddr::new(ip, *port))) {
            Err(Failure { error, .. }) if error.kind() == io::ErrorKind::AddrInUse => {}
            outcome => return outcome,
        }
    }
    Err(Failure { error: io::Error::from(io::ErrorKind::AddrInUse), hint: EXHAUSTED })
}

/// Connects from `source` if one is given. A source that is in use is
/// [`AddrInUse`](io::ErrorKind::AddrInUse), whether other connections have the port or the same
/// connection was closed a moment ago.
fn dial(address: SocketAddr, source: Option<SocketAddr>) -> Result<TcpStream, Failure> {
    let failure = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "; nothing listens there: is the server running, and is this its port?"
            }
            io::ErrorKind::TimedOut => "; no answer within 5 s: check for a firewall",
            _ => "",
        };
        Failure { error, hint }
    };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(failure)?;
    socket.set_tcp_nodelay(true).map_err(failure)?;
    let fixed = source.filter(|source| source.port() != 0);
    if fixed.is_some() {
        // The port may serve connections to other servers at the same time.
        socket.set_reuse_address(true).map_err(failure)?;
        // A close resets the connection: an orderly one would hold the port for a minute
        // (TIME-WAIT, RFC 9293 §3.3.2), and a few steps would use up all of them.
        socket.set_linger(Some(Duration::ZERO)).map_err(failure)?;
    }
    if let Some(source) = source {
        socket.bind(&source.into()).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::AddrNotAvailable => FOREIGN,
                io::ErrorKind::PermissionDenied if fixed.is_some() => UNPRIVILEGED,
                _ => "",
            };
            Failure { error, hint }
        })?;
    }
    match socket.connect_timeout(&address.into(), CONNECT_TIMEOUT) {
        Ok(()) => Ok(socket.into()),
        // connect(2) returns this error if a connection with the same two addresses and ports
        // exists.
        Err(error) if fixed.is_some() && error.kind() == io::ErrorKind::AddrNotAvailable => {
            Err(failure(io::Error::from(io::ErrorKind::AddrInUse)))
        }
        Err(error) => Err(failure(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A port of `ip` that nobody has.
    fn free_port(ip: IpAddr) -> u16 {
        TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_port_in_use_is_passed_over_and_none_is_an_error_with_advice() {
        // An address of this test alone, so that nobody else takes its ports.
        let source: IpAddr = "127.66.11.4".parse().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let port = free_port(source);
        let only = || dial_from(address, Some(source), port..=port);
        let first = only().map_err(|failure| failure.error).unwrap();
        assert_eq!(first.local_addr().unwrap(), SocketAddr::new(source, port));
        let failure = only().err().unwrap();
        assert_eq!(failure.error.kind(), io::ErrorKind::AddrInUse);
        assert!(failure.hint.contains("359 source ports"), "{}", failure.hint);
        let ports = PRIVILEGED.end() - PRIVILEGED.start() + 1;
        assert_eq!(ports, 359, "the number in the advice");
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let elsewhere = dial_from(other.local_addr().unwrap(), Some(source), port..=port);
        assert!(elsewhere.is_ok(), "the port is free towards another server");
    }

    #[test]
    fn a_source_address_of_another_machine_is_no_port_in_use() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = Some("192.0.2.1".parse().unwrap());
        let failure =
            dial_from(server.local_addr().unwrap(), source, 20_000..=20_009).err().unwrap();
        assert_eq!(failure.hint, FOREIGN);
    }
}
