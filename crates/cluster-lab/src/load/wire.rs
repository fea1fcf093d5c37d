//! The replies of NFS on the bridge: which machine sent them from which address. A packet socket in
//! the network of the bridge sees the frames of all machines, and a filter in the kernel leaves the
//! replies.

use crate::bed::{Machine, NFS_PORT};
use anyhow::{Context, Result};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

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

/// A watch over the bridge, on a thread of its own.
pub(crate) struct Wire {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The state that the watch shares with its owner.
#[derive(Default)]
struct Shared {
    end: AtomicBool,
    senders: Mutex<Senders>,
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
                    let mut senders = own.senders.lock().unwrap_or_else(PoisonError::into_inner);
                    note(&mut senders, frame.get(..length).unwrap_or(&[]), &machines);
                }
            }
        };
        let thread = std::thread::Builder::new().name("bridge".to_owned()).spawn(watch)?;
        Ok(Self { shared, thread })
    }

    /// Takes the senders since the watch began, or since they were taken before.
    pub(crate) fn take(&self) -> Senders {
        std::mem::take(&mut self.shared.senders.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the watch.
    pub(crate) fn end(self) -> Senders {
        self.shared.end.store(true, Ordering::Relaxed);
        let senders = Arc::clone(&self.shared);
        if self.thread.join().is_err() {
            return Senders::new();
        }
        std::mem::take(&mut senders.senders.lock().unwrap_or_else(PoisonError::into_inner))
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

/// Notes the sender of a frame if it is a reply.
fn note(senders: &mut Senders, frame: &[u8], machines: &[Machine]) {
    let Some((hardware, address)) = reply(frame) else { return };
    let Some(machine) = machines.iter().find(|machine| machine.hardware() == hardware) else {
        return;
    };
    let seen = senders.entry(address).or_default();
    if seen.last() != Some(machine) {
        seen.push(*machine);
    }
}

/// The sender's hardware address and address, if the frame carries bytes of TCP from the port of
/// NFS over IPv4. Headers alone (acknowledgements, resets) are no reply.
fn reply(frame: &[u8]) -> Option<([u8; 6], Ipv4Addr)> {
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
    // The kernel leaves the length of the largest packets out.
    if total != 0 && total <= header + offset {
        return None;
    }
    let address: [u8; 4] = *packet.get(12..16)?.first_chunk()?;
    Some((*ethernet.get(6..12)?.first_chunk()?, address.into()))
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
    fn replies_are_bytes_from_the_port_of_nfs() {
        let one = Machine::Gateway(1);
        let of = |frame: &[u8]| reply(frame);
        assert_eq!(of(&frame(one, ADDRESS, 2049, 10)), Some((one.hardware(), ADDRESS)));
        assert_eq!(of(&frame(one, ADDRESS, 2049, 0)), None, "an acknowledgement");
        assert_eq!(of(&frame(one, ADDRESS, 2050, 10)), None, "another port");
        let mut other = frame(one, ADDRESS, 2049, 10);
        other[14 + 9] = 17;
        assert_eq!(of(&other), None, "UDP");
        let whole = frame(one, ADDRESS, 2049, 10);
        for length in 0..46 {
            assert_eq!(of(&whole[..length]), None, "cut off at {length}");
        }
    }

    #[test]
    fn each_change_of_the_sender_is_noted_once() {
        let machines = [1, 2].map(Machine::Gateway);
        let mut senders = Senders::new();
        for number in [1, 1, 2, 2, 1] {
            note(&mut senders, &frame(Machine::Gateway(number), ADDRESS, 2049, 4), &machines);
        }
        note(&mut senders, &frame(Machine::Clients, ADDRESS, 2049, 4), &machines);
        assert_eq!(senders[&ADDRESS], [1, 2, 1].map(Machine::Gateway));
    }
}
