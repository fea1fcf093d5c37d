//! The packets that the helper sends itself: announcements by ARP (RFC 826, RFC 5227) and by
//! neighbour advertisements (RFC 4861), and the segments of TCP that make a client reconnect. Plain
//! data. Not here: sending.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// A hardware address of Ethernet.
pub(crate) type Mac = [u8; 6];

const BROADCAST: Mac = [0xff; 6];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// The two operations of ARP by which an address is announced. Most listen to both, some to one
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    Request,
    Reply,
}

/// A gratuitous ARP frame: `address` is at `mac`. Sender and target are the same (RFC 5227, section
/// 2.3); a reply names the hardware address as target too, without which Linux does not take it for
/// gratuitous.
pub(crate) fn arp(kind: Announcement, address: Ipv4Addr, mac: Mac) -> Vec<u8> {
    let (operation, target) = match kind {
        Announcement::Request => (1, [0; 6]),
        Announcement::Reply => (2, mac),
    };
    let mut frame = Vec::with_capacity(42);
    frame.extend(BROADCAST);
    frame.extend(mac);
    frame.extend(ETHERTYPE_ARP);
    // Ethernet, IPv4, and the lengths of their addresses.
    frame.extend([0, 1, 0x08, 0x00, 6, 4, 0, operation]);
    frame.extend(mac);
    frame.extend(address.octets());
    frame.extend(target);
    frame.extend(address.octets());
    frame
}

/// An unsolicited neighbour advertisement: `address` is at `mac`, in place of what was known before
/// (RFC 4861, sections 4.4 and 7.2.6). The kernel fills in the checksum.
pub(crate) fn advertisement(address: Ipv6Addr, mac: Mac) -> Vec<u8> {
    const OVERRIDE: u8 = 0x20;
    let mut message = vec![136, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(address.octets());
    // The option with the target's link-layer address, of one unit of 8 bytes.
    message.extend([2, 1]);
    message.extend(mac);
    message
}

/// Bytes of a header of TCP without options.
const TCP_BYTES: usize = 20;
const TCP_PROTOCOL: u8 = 6;

/// A segment from `local` to `client` with numbers of no connection: the client answers with its
/// own (RFC 9293, section 3.10.7.4), which this machine does not know either, so that it resets the
/// connection. It has the flags SYN and ACK, which firewalls that follow connections let through
/// (Linux); a mere ACK with such numbers they drop. With the header of IPv4; the kernel fills in
/// that checksum.
pub(crate) fn tickle_v4(local: SocketAddrV4, client: SocketAddrV4) -> Vec<u8> {
    let mut pseudo = Vec::with_capacity(12);
    pseudo.extend(local.ip().octets());
    pseudo.extend(client.ip().octets());
    pseudo.extend([0, TCP_PROTOCOL, 0, 20]);
    // Version and header length, service, length 40, no identification, do not fragment, time to
    // live 64, and the checksum, which is 0 here.
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP_PROTOCOL, 0, 0];
    packet.extend(local.ip().octets());
    packet.extend(client.ip().octets());
    packet.extend(segment(local.port(), client.port(), &pseudo));
    packet
}

/// As [`tickle_v4`], with the header of IPv6.
pub(crate) fn tickle_v6(local: SocketAddrV6, client: SocketAddrV6) -> Vec<u8> {
    let mut pseudo = Vec::with_capacity(40);
    pseudo.extend(local.ip().octets());
    pseudo.extend(client.ip().octets());
    pseudo.extend([0, 0, 0, 20, 0, 0, 0, TCP_PROTOCOL]);
    // Version, class and flow, payload length 20, next header, hop limit 64.
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, TCP_PROTOCOL, 64];
    packet.extend(local.ip().octets());
    packet.extend(client.ip().octets());
    packet.extend(segment(local.port(), client.port(), &pseudo));
    packet
}

/// A header of TCP with the flags SYN and ACK and both sequence numbers 0.
fn segment(from: u16, to: u16, pseudo: &[u8]) -> [u8; TCP_BYTES] {
    const HEADER_WORDS: u8 = 5 << 4;
    const SYN_ACK: u8 = 0x02 | 0x10;
    let ([a, b], [c, d]) = (from.to_be_bytes(), to.to_be_bytes());
    let with = |[e, f]: [u8; 2]| {
        [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, HEADER_WORDS, SYN_ACK, 0x04, 0x00, e, f, 0, 0]
    };
    with(checksum(&[pseudo, &with([0, 0])]))
}

/// The checksum of the internet (RFC 1071) over parts of an even length each.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let sum: u64 =
        words.map(|word| word.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let [.., high, low] = folded.to_be_bytes();
    [!high, !low]
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 7];

    /// The checksum by another way: bit by bit of its definition, one's complement addition of
    /// 16-bit words with the carry added at each step.
    fn sums_to_ones(bytes: &[u8]) -> bool {
        let mut sum = 0_u16;
        for at in (0..bytes.len()).step_by(2) {
            let low = bytes.get(at + 1).copied().unwrap_or(0);
            let (next, carry) = sum.overflowing_add(u16::from_be_bytes([bytes[at], low]));
            sum = next + u16::from(carry);
        }
        sum == 0xffff
    }

    #[test]
    fn the_checksum_is_that_of_the_standard_s_example() {
        // RFC 1071, section 3: the words add up to ddf2.
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&example]), [!0xdd, !0xf2]);
        assert_eq!(checksum(&[&[]]), [0xff, 0xff]);
        let many = vec![0xff; 65_536];
        assert_eq!(checksum(&[&many, &many]), [0, 0]);
    }

    #[test]
    fn an_announcement_by_arp_has_the_bytes_of_the_standard() {
        let address = Ipv4Addr::new(10, 0, 0, 9);
        let request = arp(Announcement::Request, address, MAC);
        let expected = [
            &[0xff; 6][..],
            &MAC,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &MAC,
            &[10, 0, 0, 9],
            &[0; 6],
            &[10, 0, 0, 9],
        ]
        .concat();
        assert_eq!(request, expected);
        let reply = arp(Announcement::Reply, address, MAC);
        assert_eq!((reply[21], &reply[32..38]), (2, &MAC[..]));
    }

    #[test]
    fn an_advertisement_overrides_and_names_the_hardware_address() {
        let address: Ipv6Addr = "fd00::9".parse().unwrap();
        let message = advertisement(address, MAC);
        assert_eq!(message.len(), 32);
        assert_eq!(message[..8], [136, 0, 0, 0, 0x20, 0, 0, 0]);
        assert_eq!(message[8..24], address.octets());
        assert_eq!(message[24..], [&[2, 1][..], &MAC].concat());
    }

    #[test]
    fn tickles_have_right_checksums() {
        for (local, client) in
            [("10.0.0.9:2049", "10.0.0.1:700"), ("192.0.2.255:445", "203.0.113.77:65535")]
        {
            let (local, client): (SocketAddrV4, SocketAddrV4) =
                (local.parse().unwrap(), client.parse().unwrap());
            let packet = tickle_v4(local, client);
            assert_eq!(packet.len(), 40);
            assert_eq!(packet[12..20], [local.ip().octets(), client.ip().octets()].concat());
            let covered = [&packet[12..20], &[0, 6, 0, 20], &packet[20..]].concat();
            assert!(sums_to_ones(&covered), "{packet:02x?}");
            assert_eq!(
                packet[20..24],
                [local.port(), client.port()].map(u16::to_be_bytes).concat()
            );
            assert_eq!(packet[33], 0x12, "SYN and ACK");
        }
        let (local, client): (SocketAddrV6, SocketAddrV6) =
            ("[fd00::9]:2049".parse().unwrap(), "[2001:db8::ffff:1]:701".parse().unwrap());
        let packet = tickle_v6(local, client);
        assert_eq!(packet.len(), 60);
        let covered = [&packet[8..40], &[0, 0, 0, 20, 0, 0, 0, 6], &packet[40..]].concat();
        assert!(sums_to_ones(&covered), "{packet:02x?}");
        assert_eq!(packet[..8], [0x60, 0, 0, 0, 0, 20, 6, 64]);
    }
}
