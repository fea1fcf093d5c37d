//! Netlink (netlink(7)): messages with attributes, and asking the kernel. Each question has a
//! socket of its own, so that no answer to an earlier one can be mistaken. Not here: what is asked.
//!
//! All numbers are in the machine's byte order, unless the kernel's headers say otherwise.

pub(crate) mod addresses;
pub(crate) mod connections;
pub(crate) mod guard;

use crate::limits::KERNEL_WAIT_MAX;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};
use std::io;
use std::os::fd::OwnedFd;

/// `NLM_F_*` and `NLMSG_*` of `linux/netlink.h`.
pub(crate) const REQUEST: u16 = 1;
pub(crate) const ACK: u16 = 4;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const APPEND: u16 = 0x800;
pub(crate) const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER_BYTES: usize = 16;

/// `NLA_F_NESTED`, and the bits of an attribute's kind that are flags.
const NESTED: u16 = 1 << 15;
const KIND_FLAGS: u16 = 3 << 14;

/// Bytes of the largest datagram that the kernel sends: a part of a list.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;

/// Attributes in the making.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(short(value.len() + 4).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        pad(&mut self.0);
        self
    }

    pub(crate) fn with_nested(self, kind: u16, inner: &Self) -> Self {
        self.with(kind | NESTED, &inner.0)
    }

    /// A text with its ending zero.
    pub(crate) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &[text.as_bytes(), &[0]].concat())
    }
}

/// A message: its header, `fixed` (the structure that belongs to its kind), and its attributes.
pub(crate) fn message(
    kind: u16,
    flags: u16,
    sequence: u32,
    fixed: &[u8],
    attributes: &Attributes,
) -> Vec<u8> {
    let length = HEADER_BYTES + fixed.len().next_multiple_of(4) + attributes.0.len();
    let mut out = Vec::with_capacity(length);
    out.extend(u32::from(short(length)).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend(fixed);
    pad(&mut out);
    out.extend(&attributes.0);
    out
}

/// A length as the kernel counts it. All messages of the helper are far shorter: the longest lists
/// [`crate::limits::ADDRESSES_MAX`] addresses with 40 bytes each.
fn short(length: usize) -> u16 {
    debug_assert!(length <= usize::from(u16::MAX));
    u16::try_from(length).unwrap_or(u16::MAX)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) payload: &'a [u8],
}

/// The messages in a datagram. One that is malformed ends them.
fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let (header, _) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let [a, b, c, d, k, l, ..] = *header;
        let length = usize::try_from(u32::from_ne_bytes([a, b, c, d])).ok()?;
        let payload = datagram.get(HEADER_BYTES..length)?;
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind: u16::from_ne_bytes([k, l]), payload })
    })
}

/// The attributes in `bytes`: kind and value. One that is malformed ends them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let ([a, b, k, l], _) = bytes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([*a, *b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([*k, *l]) & !KIND_FLAGS, value))
    })
}

/// Sends `request`, which has `answers` messages with [`ACK`], and waits until the kernel has
/// carried all of them out.
///
/// # Errors
/// The kernel's first error, or that of the socket.
pub(crate) fn ask(protocol: Option<Protocol>, request: &[u8], answers: usize) -> io::Result<()> {
    let mut missing = answers;
    exchange(protocol, request, |message| {
        if message.kind == ERROR {
            outcome(message.payload)?;
            missing = missing.saturating_sub(1);
        }
        Ok(missing == 0)
    })
}

/// Sends `request`, which has [`DUMP`], and passes each message of the list to `each`.
///
/// # Errors
/// The kernel's error, or that of the socket.
pub(crate) fn list(
    protocol: Option<Protocol>,
    request: &[u8],
    mut each: impl FnMut(Message<'_>),
) -> io::Result<()> {
    exchange(protocol, request, |message| match message.kind {
        ERROR | DONE => outcome(message.payload).map(|()| true),
        _ => {
            each(message);
            Ok(false)
        }
    })
}

/// The error at the start of an answer, if there is one.
fn outcome(payload: &[u8]) -> io::Result<()> {
    match payload.first_chunk::<4>().map(|code| i32::from_ne_bytes(*code)) {
        None | Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
    }
}

/// Sends `request`, and passes answers to `each` until it returns `true`.
fn exchange(
    protocol: Option<Protocol>,
    request: &[u8],
    mut each: impl FnMut(Message<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let socket = open(protocol)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    retry_on_intr(|| sendto(&socket, request, SendFlags::empty(), &kernel))?;
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let received = retry_on_intr(|| recv(&socket, &mut datagram[..], RecvFlags::TRUNC));
        let (_, length) = match received {
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            received => received?,
        };
        let bytes = datagram.get(..length).ok_or(Errno::MSGSIZE)?;
        for message in messages(bytes) {
            if each(message)? {
                return Ok(());
            }
        }
    }
}

fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, direction, Some(KERNEL_WAIT_MAX))?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_made() {
        let inner = Attributes::default().with(1, &[7]).with_text(2, "abc");
        let made = Attributes::default().with(3, &[1, 2, 3, 4, 5]).with_nested(4, &inner);
        let bytes = message(20, REQUEST | ACK, 9, &[1, 2, 3, 4], &made);
        assert_eq!(bytes.len() % 4, 0);
        let two = [bytes.clone(), bytes.clone()].concat();
        let read: Vec<Message<'_>> = messages(&two).collect();
        assert_eq!(read.len(), 2);
        for message in read {
            assert_eq!((message.kind, &message.payload[..4]), (20, &[1, 2, 3, 4][..]));
            let found: Vec<(u16, &[u8])> = attributes(&message.payload[4..]).collect();
            assert_eq!(found[0], (3, &[1, 2, 3, 4, 5][..]));
            assert_eq!(found[1].0, 4);
            let found: Vec<(u16, &[u8])> = attributes(found[1].1).collect();
            assert_eq!(found, [(1, &[7][..]), (2, b"abc\0")]);
        }
    }

    #[test]
    fn what_is_malformed_ends_the_list() {
        let bytes = message(20, 0, 1, &[], &Attributes::default().with(1, &[1]));
        for length in 0..bytes.len() {
            assert_eq!(messages(&bytes[..length]).count(), 0, "{length}");
        }
        for length in [0_u16, 3, 9] {
            let attribute = [&length.to_ne_bytes()[..], &[0; 6]].concat();
            assert_eq!(attributes(&attribute).count(), 0, "{length}");
        }
    }

    #[test]
    fn the_kernel_s_error_is_told() {
        let error = outcome(&(-13_i32).to_ne_bytes()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(outcome(&0_i32.to_ne_bytes()).is_ok());
        assert!(outcome(&[]).is_ok());
        assert!(outcome(&i32::MIN.to_ne_bytes()).is_err());
        // No kind of message has this number.
        let nonsense = message(0xfff, REQUEST | ACK, 1, &[0; 4], &Attributes::default());
        assert!(ask(None, &nonsense, 1).is_err());
    }
}
