//! Datagrams with the address of ours that they were sent to (`IP_PKTINFO`, ip(7);
//! `IPV6_PKTINFO`, RFC 3542 §6.1): a host with several addresses replies from the one that the
//! client has asked. Neither std nor rustix passes these messages on. Here because `unsafe` is
//! kept to this crate. Not here: opening sockets, and what a datagram contains.

use rustix::fd::{AsFd, AsRawFd};
use std::io::{Error, Result};
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A datagram that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its length in the buffer, in bytes.
    pub len: usize,
    /// The sender's address, as far as UDP can be believed.
    pub from: SocketAddr,
    /// The address of ours that it was sent to; for a broadcast the one to reply from.
    pub to: Option<IpAddr>,
}

/// Bytes that the kernel reads or writes as structures, and their alignment.
#[repr(C, align(8))]
struct Aligned<const N: usize>([u8; N]);

/// Length of `sockaddr_in6`, the longest address here.
const NAME: usize = size_of::<libc::sockaddr_in6>();
/// Length of the header of a control message.
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Length of the control messages of a datagram: one, with an IPv6 address.
const CONTROL: usize = HEADER + size_of::<libc::in6_pktinfo>().next_multiple_of(8);

// The layouts that the functions below read and write byte by byte.
const _: () = assert!(HEADER == 16 && offset_of!(libc::cmsghdr, cmsg_level) == 8);
const _: () = assert!(offset_of!(libc::cmsghdr, cmsg_type) == 12);
const _: () = assert!(size_of::<libc::in_pktinfo>() == 12);
const _: () = assert!(offset_of!(libc::in_pktinfo, ipi_spec_dst) == 4);
const _: () = assert!(size_of::<libc::in6_pktinfo>() == 20);
const _: () = assert!(size_of::<libc::sockaddr_in>() == 16 && NAME == 28);

/// Has the kernel report to which address each datagram of `socket` was sent.
///
/// # Errors
/// The kernel's error.
pub fn report_destinations(socket: impl AsFd, is_ipv6: bool) -> Result<()> {
    let (level, option) = if is_ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
    } else {
        (libc::IPPROTO_IP, libc::IP_PKTINFO)
    };
    let (fd, on) = (socket.as_fd().as_raw_fd(), 1i32);
    #[expect(clippy::cast_possible_truncation, reason = "4")]
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `on` is a valid int of the length that is given, which the kernel reads.
    let done = unsafe { libc::setsockopt(fd, level, option, (&raw const on).cast(), length) };
    if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Receives a datagram without waiting. None if it was longer than `buffer`, or its sender has no
/// IP address: it is dropped.
///
/// # Errors
/// The kernel's error, `WouldBlock` if there is no datagram.
pub fn receive_datagram(socket: impl AsFd, buffer: &mut [u8]) -> Result<Option<Datagram>> {
    let (mut name, mut control) = (Aligned([0; NAME]), Aligned([0; CONTROL]));
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = no_message();
    message.msg_name = name.0.as_mut_ptr().cast();
    message.msg_namelen = length(NAME);
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `message` holds pointers to `name`, `part`, `buffer` and `control`, which live and
    // are borrowed by nobody else until the call returns, with their true lengths: the kernel
    // writes within them. Any bytes are valid there.
    let got = unsafe { libc::recvmsg(fd, &raw mut message, libc::MSG_DONTWAIT) };
    let len = usize::try_from(got).map_err(|_| Error::last_os_error())?;
    if message.msg_flags & libc::MSG_TRUNC != 0 {
        return Ok(None);
    }
    let to = control.0.get(..message.msg_controllen).and_then(destination);
    Ok(address(&name.0).map(|from| Datagram { len, from, to }))
}

/// Sends a datagram to `to` from our address `from`, or from any if that is unspecified, without
/// waiting.
///
/// # Errors
/// The kernel's error.
pub fn send_datagram(socket: impl AsFd, bytes: &[u8], to: SocketAddr, from: IpAddr) -> Result<()> {
    let (mut name, name_length) = name_of(to);
    let (mut control, control_length) = match from {
        from if from.is_unspecified() => (Aligned([0; CONTROL]), 0),
        from => source(from, to),
    };
    // The kernel only reads it, though the structure is the one for receiving.
    let base = bytes.as_ptr().cast_mut().cast();
    let mut part = libc::iovec { iov_base: base, iov_len: bytes.len() };
    let mut message = no_message();
    message.msg_name = name.0.as_mut_ptr().cast();
    message.msg_namelen = length(name_length);
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if control_length > 0 {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control_length;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `message` holds pointers to `name`, `part`, `bytes` and `control`, which live until
    // the call returns, with lengths within theirs, and the kernel only reads them.
    let sent = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// A message without address, data and control messages.
fn no_message() -> libc::msghdr {
    // SAFETY: a structure of integers and pointers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 28")]
const fn length(bytes: usize) -> libc::socklen_t {
    bytes as libc::socklen_t
}

/// The address in a `sockaddr`.
fn address(name: &[u8; NAME]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(array(name, 0)?));
    let port = u16::from_be_bytes(array(name, 2)?);
    match family {
        libc::AF_INET => Some((Ipv4Addr::from(array::<4>(name, 4)?), port).into()),
        libc::AF_INET6 => {
            let (flow, scope) = (array(name, 4)?, array(name, 24)?);
            let ip = Ipv6Addr::from(array::<16>(name, 8)?);
            let (flow, scope) = (u32::from_be_bytes(flow), u32::from_ne_bytes(scope));
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

/// The `sockaddr` of an address, and its length.
fn name_of(address: SocketAddr) -> (Aligned<NAME>, usize) {
    let mut name = Aligned([0; NAME]);
    #[expect(clippy::cast_possible_truncation, reason = "2 and 10")]
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET as u16,
        SocketAddr::V6(_) => libc::AF_INET6 as u16,
    };
    name.0[..2].copy_from_slice(&family.to_ne_bytes());
    name.0[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(four) => {
            name.0[4..8].copy_from_slice(&four.ip().octets());
            (name, size_of::<libc::sockaddr_in>())
        }
        SocketAddr::V6(six) => {
            name.0[4..8].copy_from_slice(&six.flowinfo().to_be_bytes());
            name.0[8..24].copy_from_slice(&six.ip().octets());
            name.0[24..].copy_from_slice(&six.scope_id().to_ne_bytes());
            (name, NAME)
        }
    }
}

/// The destination in the control messages of a datagram.
fn destination(mut control: &[u8]) -> Option<IpAddr> {
    loop {
        let len = usize::from_ne_bytes(array(control, 0)?);
        let level = i32::from_ne_bytes(array(control, 8)?);
        let kind = i32::from_ne_bytes(array(control, 12)?);
        let data = control.get(HEADER..len)?;
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                return Some(Ipv4Addr::from(array::<4>(data, 4)?).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                return Some(Ipv6Addr::from(array::<16>(data, 0)?).into());
            }
            _ => control = control.get(len.next_multiple_of(8)..)?,
        }
    }
}

/// The control message that has a datagram to `to` sent from `from`, and its length.
fn source(from: IpAddr, to: SocketAddr) -> (Aligned<CONTROL>, usize) {
    let mut control = Aligned([0; CONTROL]);
    let (level, kind, length) = match from {
        IpAddr::V4(from) => {
            control.0[HEADER + 4..HEADER + 8].copy_from_slice(&from.octets());
            (libc::IPPROTO_IP, libc::IP_PKTINFO, size_of::<libc::in_pktinfo>())
        }
        IpAddr::V6(from) => {
            control.0[HEADER..HEADER + 16].copy_from_slice(&from.octets());
            // A link-local address is one on the interface of the client.
            let interface = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
            control.0[HEADER + 16..HEADER + 20].copy_from_slice(&interface.to_ne_bytes());
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, size_of::<libc::in6_pktinfo>())
        }
    };
    control.0[..8].copy_from_slice(&(HEADER + length).to_ne_bytes());
    control.0[8..12].copy_from_slice(&level.to_ne_bytes());
    control.0[12..16].copy_from_slice(&kind.to_ne_bytes());
    (control, HEADER + length.next_multiple_of(8))
}

/// The bytes of `from` at `at`, if there are so many.
fn array<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_kernel() {
        for text in ["127.0.0.1:2049", "[fe80::1]:65535"] {
            let mut address: SocketAddr = text.parse().unwrap();
            if let SocketAddr::V6(six) = &mut address {
                six.set_scope_id(7);
                six.set_flowinfo(0x12345);
            }
            assert_eq!(super::address(&name_of(address).0.0), Some(address), "{text}");
        }
        assert_eq!(address(&[0; NAME]), None);
    }

    #[test]
    fn control_messages_are_read_to_their_end() {
        let to = "[::1]:1".parse().unwrap();
        for from in ["10.0.0.9", "fe80::2"] {
            let from: IpAddr = from.parse().unwrap();
            let (control, length) = source(from, to);
            let whole = &control.0[..length];
            assert_eq!(destination(whole), Some(from));
            // Another message before it, and pieces of it.
            let mut other = [0; 24];
            other[..8].copy_from_slice(&20usize.to_ne_bytes());
            assert_eq!(destination(&[&other, whole].concat()), Some(from));
            for length in 0..HEADER + 8 {
                assert_eq!(destination(&whole[..length]), None, "{length}");
            }
        }
        let mut endless = [0; 32];
        assert_eq!(destination(&endless), None);
        endless[..8].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(destination(&endless), None);
    }
}
