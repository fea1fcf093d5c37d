//! Addresses for servers that a test starts: free when they are picked, and held so that they still
//! are when the server listens, or listens again.

use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use std::net::{Ipv4Addr, SocketAddr};

/// An address that nobody else gets while it is held: connections to it are refused until a server
/// that is told of it listens there.
pub(crate) fn free_address() -> (SocketAddr, OwnedFd) {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let held = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    set_socket_reuseaddr(&held, true).unwrap();
    bind(&held, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    (getsockname(&held).unwrap().try_into().unwrap(), held)
}
