//! The replies of NFS on the bridge: which machine sent them from which address, and when it ended
//! connections. A packet socket in the network of the bridge sees the frames of all machines, and a
//! filter in the kernel leaves those of NFS servers.

use crate::bed::{Machine, NFS_PORT};
use anyhow::{Context, Result};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Protocol of IPv4 in a frame (`ETH_P_IP`), and of a packet socket for all frames (`ETH_P_ALL`).
const IPV4: u16 = 0x0800;
const ALL_FRAMES: u16 = 0x0003;
/// Bytes of a frame that are looked at: the headers with all options.
const HEAD_BYTES: u32 = 160;
/// Bytes of the socket's buffer.
const BUFFER_BYTES: usize = 8 << 20;
/// Longest wait for a frame.
const LOOK: Duration = Duration::from_millis(100);

/// The machines that sent replies from each address, in order, each time that they changed.
pub(crate) type Senders = BTreeMap<Ipv4Addr, Vec<Machine>>;

/// The frames that were seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The senders of replies.
    pub(crate) senders: Senders,
    /// When the sender of replies from an address last ended a connection there, by its place in
    /// the order of senders.
    pub(crate) ended: BTreeMap<(Ipv4Addr, usize), Instant>,
}

/// A watch over the bridge, on a thread of its own.
pub(crate) struct Wire {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The state that the watch shares with its owner.
#[derive(Default)]
struct Shared {
    end: AtomicBool,
    seen: Mutex<Seen>,
}

impl Wire {
    /// Watches the frames of these machines from now on. The calling thread is in the network of
    /// the bridge.
    ///
    /// # Errors
    /// If the system refuses the socket or the thread.
    pub(crate) fn watch(machines: Vec<Machine>) -> Result<Self> {
        let socket = open().context("cannot watch the bridge")?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let watch = move || {
            let mut frame = [0; HEAD_BYTES as usize];
            while !own.end.load(Ordering::Relaxed) {
                // An error says that no frame came for a while.
                if let Ok(length) = (&socket).read(&mut frame) {
                    let mut seen = own.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.note(frame.get(..length).unwrap_or(&[]), &machines);
                }
            }
        };
        let thread = std::thread::Builder::new().name("bridge".to_owned()).spawn(watch)?;
        Ok(Self { shared, thread })
    }

    /// Takes what was seen since the watch began, or since that was taken before.
    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the watch.
    pub(crate) fn end(self) -> Seen {
        self.shared.end.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        if self.thread.join().is_err() {
            return Seen::default();
        }
        std::mem::take(&mut shared.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn open() -> std::io::Result<Socket> {
    let protocol = Protocol::from(i32::from(ALL_FRAMES.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
    socket.attach_filter(&filter())?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// The program of the filter (the classic BPF of Linux's `networking/filter`): TCP over IPv4 from
/// the port of NFS.
fn filter() -> [SockFilter; 11] {
    // Loads from a place, loads from behind the header of IPv4, the length of that header, jumps.
    const HALF: u16 = 0x28;
    const BYTE: u16 = 0x30;
    const HALF_BEHIND: u16 = 0x48;
    const HEADER: u16 = 0xb1;
    const EQUAL: u16 = 0x15;
    const ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;
    // A jump skips so many instructions: the last one drops the frame.
    [
        SockFilter::new(HALF, 0, 0, 12),
        SockFilter::new(EQUAL, 0, 8, IPV4.into()),
        SockFilter::new(BYTE, 0, 0, 23),
        SockFilter::new(EQUAL, 0, 6, 6),
        SockFilter::new(HALF, 0, 0, 20),
        SockFilter::new(ANY_BIT, 4, 0, 0x1fff),
        SockFilter::new(HEADER, 0, 0, 14),
        SockFilter::new(HALF_BEHIND, 0, 0, 14),
        SockFilter::new(EQUAL, 0, 1, NFS_PORT.into()),
        SockFilter::new(RETURN, 0, 0, HEAD_BYTES),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

impl Seen {
    /// Notes the sender of a frame if it is a reply, and the moment if it ends a connection.
    fn note(&mut self, frame: &[u8], machines: &[Machine]) {
        let Some(segment) = segment(frame) else { return };
        let is_sender = |machine: &&Machine| machine.hardware() == segment.hardware;
        let Some(machine) = machines.iter().find(is_sender) else { return };
        let seen = self.senders.entry(segment.address).or_default();
        if segment.has_bytes && seen.last() != Some(machine) {
            seen.push(*machine);
        }
        if segment.ends && seen.last() == Some(machine) {
            self.ended.insert((segment.address, seen.len()), Instant::now());
        }
    }
}

/// A segment of TCP from the port of NFS over IPv4.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    /// The sender's hardware address and address.
    hardware: [u8; 6],
    address: Ipv4Addr,
    /// Whether it is part of a reply, and not headers alone (acknowledgements, resets).
    has_bytes: bool,
    /// Whether it ends the connection (FIN, RST).
    ends: bool,
}

/// The segment in a frame, if there is one.
fn segment(frame: &[u8]) -> Option<Segment> {
    /// FIN and RST (RFC 9293, section 3.1).
    const END: u8 = 0x01 | 0x04;
    let (ethernet, packet) = frame.split_at_checked(14)?;
    if ethernet.get(12..14)? != IPV4.to_be_bytes() || *packet.get(9)? != 6 {
        return None;
    }
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes(*packet.get(2..4)?.first_chunk()?));
    let segment = packet.get(header..)?;
    if *segment.get(..2)? != NFS_PORT.to_be_bytes() {
        return None;
    }
    let offset = usize::from(segment.get(12)? >> 4) * 4;
    let address: [u8; 4] = *packet.get(12..16)?.first_chunk()?;
    Some(Segment {
        hardware: *ethernet.get(6..12)?.first_chunk()?,
        address: address.into(),
        // The kernel leaves the length of the largest packets out.
        has_bytes: total == 0 || total > header + offset,
        ends: *segment.get(13)? & END != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(machine: Machine, source: Ipv4Addr, port: u16, payload: usize) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(machine.hardware());
        frame.extend(IPV4.to_be_bytes());
        let total = u16::try_from(20 + 32 + payload).unwrap();
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend(source.octets());
        frame.extend([10, 77, 3, 1]);
        frame.extend(port.to_be_bytes());
        frame.extend([0x30, 0x39, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x10]);
        frame.resize(14 + 20 + 32 + payload, 0);
        frame
    }

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 4, 1);

    #[test]
    fn segments_are_from_the_port_of_nfs() {
        let one = Machine::Gateway(1);
        let hardware = one.hardware();
        let reply = Segment { hardware, address: ADDRESS, has_bytes: true, ends: false };
        assert_eq!(segment(&frame(one, ADDRESS, 2049, 10)), Some(reply));
        let acknowledgement = Segment { hardware, address: ADDRESS, has_bytes: false, ends: false };
        assert_eq!(segment(&frame(one, ADDRESS, 2049, 0)), Some(acknowledgement));
        assert_eq!(segment(&frame(one, ADDRESS, 2050, 10)), None, "another port");
        let mut other = frame(one, ADDRESS, 2049, 10);
        other[14 + 9] = 17;
        assert_eq!(segment(&other), None, "UDP");
        let whole = frame(one, ADDRESS, 2049, 10);
        for length in 0..47 {
            assert_eq!(segment(&whole[..length]), None, "cut off at {length}");
        }
    }

    #[test]
    fn the_end_of_a_connection_is_noted_with_the_place_of_its_sender() {
        let [one, two] = [1, 2].map(Machine::Gateway);
        let end = |machine, flag| {
            let mut frame = frame(machine, ADDRESS, 2049, 0);
            frame[14 + 20 + 13] |= flag;
            frame
        };
        let mut seen = Seen::default();
        seen.note(&end(one, 0x04), &[one, two]);
        assert_eq!(seen.ended.len(), 0, "it has sent no reply");
        for (machine, flag, places) in [(one, 0x04, 1), (two, 0x01, 2)] {
            seen.note(&frame(machine, ADDRESS, 2049, 4), &[one, two]);
            seen.note(&frame(machine, ADDRESS, 2049, 0), &[one, two]);
            assert_eq!(seen.ended.len(), places - 1);
            seen.note(&end(machine, flag), &[one, two]);
            assert!(seen.ended.contains_key(&(ADDRESS, places)));
        }
        seen.note(&end(one, 0x04), &[one, two]);
        assert_eq!(seen.ended.len(), 2, "its address is at the other");
    }

    #[test]
    fn each_change_of_the_sender_is_noted_once() {
        let machines = [1, 2].map(Machine::Gateway);
        let mut seen = Seen::default();
        for number in [1, 1, 2, 2, 1] {
            seen.note(&frame(Machine::Gateway(number), ADDRESS, 2049, 4), &machines);
        }
        seen.note(&frame(Machine::Clients, ADDRESS, 2049, 4), &machines);
        assert_eq!(seen.senders[&ADDRESS], [1, 2, 1].map(Machine::Gateway));
    }
}
