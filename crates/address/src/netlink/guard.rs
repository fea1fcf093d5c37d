//! The guard: a rule of the kernel by which nothing leaves the machine from an address whose lease
//! has ended. It needs no process that runs: the end of each lease is the timeout of an element of
//! a set, to the kernel's tick, and is compared for each packet (nftables, over nfnetlink).
//!
//! The guard also keeps clients from learning that their server has ended before the next machine
//! holds the address. It drops the reset of a connection whose socket has
//! [`SILENT_END_PRIORITY`]. For a moment after such a reset it also drops the resets with which
//! the kernel answers segments of connections that are gone and refuses new connections. A client
//! that gets a reset connects anew at once, and its attempt may then wait for seconds. A client
//! that gets nothing sends its segments again, and connects anew when the next machine tickles it.
//!
//! The lifetime of an address itself is too coarse for that, and does not concern established
//! connections of IPv6 at all. One table each for ARP, IPv4 and IPv6:
//!
//! ```text
//! table ip weir-address {
//!     set managed { type ipv4_addr; size 4096; }       # every address that was ever held
//!     set leased  { type ipv4_addr; flags timeout; }   # those that may be used, until when
//!     chain output {
//!         type filter hook output priority 0; policy accept;
//!         ip saddr @managed ip saddr != @leased drop
//!         # Not for ARP, as the set `ended` of addresses, with a timeout of 500 ms:
//!         tcp flags & rst != 0 meta priority 4 ip saddr @managed add @ended { ip saddr } drop
//!         tcp flags & (rst | ack) == rst ip saddr @ended drop
//!         tcp flags & (rst | ack) == rst | ack tcp sequence 0 ip saddr @ended drop
//!     }
//! }
//! ```

use super::addresses::octets;
use super::{ACK, APPEND, Attributes, CREATE, REQUEST, ask, message};
use crate::SILENT_END_PRIORITY;
use crate::limits::GUARDED_MAX;
use rustix::net::netlink;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

const TABLE: &str = "weir-address";
const CHAIN: &str = "output";
const MANAGED: &str = "managed";
const LEASED: &str = "leased";
const ENDED: &str = "ended";
/// Time for which the guard drops resets of an address whose server has ended: longer than the
/// milliseconds until its lease ends, and shorter than the 0.7 s until the next server on this
/// machine tickles its clients for the second time.
const ENDED_TIME: Duration = Duration::from_millis(500);

/// `linux/netfilter/nfnetlink.h`
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;

/// `enum nf_tables_msg_types`
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const NEW_SET: u16 = 9;
const NEW_ELEMENT: u16 = 12;
const DELETE_ELEMENT: u16 = 14;

/// `NFTA_LIST_ELEM`
const LIST_ELEMENT: u16 = 1;
/// `NFT_SET_TIMEOUT`
const WITH_TIMEOUTS: u32 = 0x10;
/// `NFT_SET_EVAL`: rules add to the set.
const BY_RULES: u32 = 0x20;
/// `NFT_REG_1`, and the register of verdicts.
const REGISTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
/// `NFT_PAYLOAD_NETWORK_HEADER` and `NFT_PAYLOAD_TRANSPORT_HEADER`
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
/// `NFT_META_PRIORITY` and `NFT_META_L4PROTO`
const PRIORITY: u32 = 2;
const TRANSPORT_PROTOCOL: u32 = 16;
/// `NFT_CMP_EQ` and `NFT_CMP_NEQ`
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
/// `IPPROTO_TCP`, and the offset and length of fields in its header (RFC 9293, section 3.1).
const TCP: u8 = 6;
const SEQUENCE: (u32, u32) = (4, 4);
const FLAGS: (u32, u32) = (13, 1);
/// Flags of TCP.
const RST: u8 = 0x04;
const ACKNOWLEDGED: u8 = 0x10;
/// `NFT_DYNSET_OP_ADD`
const ADD: u32 = 0;
/// `NFT_LOOKUP_F_INV`
const NOT_IN: u32 = 1;
/// `NF_DROP` and `NF_ACCEPT`
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

/// A table: the family, its hook for packets that leave, and the sender's address in the header.
struct Family {
    /// `NFPROTO_*`
    number: u8,
    /// Whether TCP is carried over it.
    has_tcp: bool,
    /// `NF_ARP_OUT`, or `NF_INET_LOCAL_OUT`.
    hook: u32,
    /// Offset of the sender's address in the network header (RFC 826, RFC 791, RFC 8200).
    offset: u32,
    /// Its length in bytes.
    length: u32,
    /// The number by which `nft list` knows the kind of address.
    shown_as: u32,
}

const FAMILIES: &[Family] = &[
    Family { number: 3, has_tcp: false, hook: 1, offset: 14, length: 4, shown_as: 7 },
    Family { number: 2, has_tcp: true, hook: 3, offset: 12, length: 4, shown_as: 7 },
    Family { number: 10, has_tcp: true, hook: 3, offset: 8, length: 16, shown_as: 8 },
];

impl Family {
    fn has(&self, address: IpAddr) -> bool {
        (self.length == 4) == address.is_ipv4()
    }
}

/// Sets the guard up anew, without any address.
///
/// # Errors
/// The kernel's: without nftables there is no guard, and no address may be held.
pub(crate) fn set_up() -> io::Result<()> {
    let mut batch = Batch::new();
    for family in FAMILIES {
        // Deleting a table that is not there fails, so that it is made first.
        batch.add(family, NEW_TABLE, CREATE, &named(TABLE));
        batch.add(family, DELETE_TABLE, 0, &named(TABLE));
        batch.add(family, NEW_TABLE, CREATE, &named(TABLE));
        let size = with_number(Attributes::default(), 1, GUARDED_MAX);
        let managed = set(family, MANAGED, 1, 0).with_nested(9, &size);
        batch.add(family, NEW_SET, CREATE, &managed);
        batch.add(family, NEW_SET, CREATE, &set(family, LEASED, 2, WITH_TIMEOUTS));
        if family.has_tcp {
            let flags = WITH_TIMEOUTS | BY_RULES;
            let ended = set(family, ENDED, 3, flags).with_nested(9, &size);
            batch.add(family, NEW_SET, CREATE, &ended);
        }
        batch.add(family, NEW_CHAIN, CREATE, &chain(family));
        for rule in rules(family) {
            batch.add(family, NEW_RULE, CREATE | APPEND, &rule);
        }
    }
    batch.commit()
}

/// Removes the guard.
///
/// # Errors
/// The kernel's.
pub(crate) fn take_down() -> io::Result<()> {
    let mut batch = Batch::new();
    for family in FAMILIES {
        batch.add(family, DELETE_TABLE, 0, &named(TABLE));
    }
    batch.commit()
}

/// Places an address under the guard, for as long as that stands: from now on nothing leaves from
/// it without a lease.
///
/// # Errors
/// The kernel's.
pub(crate) fn manage(address: IpAddr) -> io::Result<()> {
    let mut batch = Batch::new();
    for family in FAMILIES.iter().filter(|family| family.has(address)) {
        let element = Attributes::default().with_nested(LIST_ELEMENT, &element(address, None));
        batch.add(family, NEW_ELEMENT, CREATE, &elements(MANAGED, Some(&element)));
    }
    batch.commit()
}

/// Replaces all leases by these: addresses, and the time for which each is still held.
///
/// # Errors
/// The kernel's; then the leases are as before.
pub(crate) fn lease(leases: &[(IpAddr, Duration)]) -> io::Result<()> {
    let mut batch = Batch::new();
    for family in FAMILIES {
        batch.add(family, DELETE_ELEMENT, 0, &elements(LEASED, None));
        let mut list = None;
        for (address, time) in leases.iter().filter(|(address, _)| family.has(*address)) {
            // 0 would mean for ever.
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
            let element = element(*address, Some(millis));
            let so_far: Attributes = list.unwrap_or_default();
            list = Some(so_far.with_nested(LIST_ELEMENT, &element));
        }
        if let Some(list) = &list {
            batch.add(family, NEW_ELEMENT, CREATE, &elements(LEASED, Some(list)));
        }
    }
    batch.commit()
}

/// Messages that the kernel carries out together or not at all.
struct Batch {
    bytes: Vec<u8>,
    messages: u32,
}

impl Batch {
    fn new() -> Self {
        Self { bytes: limit(BATCH_BEGIN, 0), messages: 0 }
    }

    fn add(&mut self, family: &Family, kind: u16, flags: u16, attributes: &Attributes) {
        self.messages += 1;
        let (kind, flags) = (SUBSYSTEM << 8 | kind, REQUEST | ACK | flags);
        let fixed = [family.number, 0, 0, 0];
        self.bytes.extend(message(kind, flags, self.messages, &fixed, attributes));
    }

    fn commit(mut self) -> io::Result<()> {
        self.bytes.extend(limit(BATCH_END, self.messages + 1));
        let answers = usize::try_from(self.messages).unwrap_or(usize::MAX);
        ask(Some(netlink::NETFILTER), &self.bytes, answers)
    }
}

/// The begin or end of a batch, with `struct nfgenmsg` for the subsystem.
fn limit(kind: u16, sequence: u32) -> Vec<u8> {
    let [high, low] = SUBSYSTEM.to_be_bytes();
    message(kind, REQUEST, sequence, &[0, 0, high, low], &Attributes::default())
}

/// The numbers of attributes are those of `linux/netfilter/nf_tables.h`; their values are
/// big-endian.
fn named(name: &str) -> Attributes {
    Attributes::default().with_text(1, name)
}

fn with_number(attributes: Attributes, kind: u16, number: u32) -> Attributes {
    attributes.with(kind, &number.to_be_bytes())
}

fn with_numbers<const N: usize>(numbers: [(u16, u32); N]) -> Attributes {
    numbers.into_iter().fold(Attributes::default(), |attributes, (kind, number)| {
        with_number(attributes, kind, number)
    })
}

/// `NFTA_SET_*`
fn set(family: &Family, name: &str, id: u32, flags: u32) -> Attributes {
    let mut set = named(TABLE).with_text(2, name);
    for (kind, number) in [(3, flags), (4, family.shown_as), (5, family.length), (10, id)] {
        set = with_number(set, kind, number);
    }
    set
}

/// `NFTA_CHAIN_*` and `NFTA_HOOK_*`
fn chain(family: &Family) -> Attributes {
    let hook = with_number(with_number(Attributes::default(), 1, family.hook), 2, 0);
    let chain = named(TABLE).with_text(3, CHAIN).with_nested(4, &hook);
    with_number(chain, 5, ACCEPT).with_text(7, "filter")
}

/// The rules of a family. The order matters: a reset that the first rule drops says nothing about
/// the server.
fn rules(family: &Family) -> Vec<Attributes> {
    let mut rules = vec![drop_without_lease(family)];
    if family.has_tcp {
        rules.extend([
            drop_marked_reset(family),
            drop_reset_of_segment(family),
            drop_refusal(family),
        ]);
    }
    rules
}

/// The rule that drops each packet from a managed address without a lease.
fn drop_without_lease(family: &Family) -> Attributes {
    rule(vec![
        ("payload", load_sender(family)),
        ("lookup", is_in(MANAGED)),
        ("lookup", with_number(is_in(LEASED), 5, NOT_IN)),
        ("immediate", drop_packet()),
    ])
}

/// The rule that drops a reset of a socket with [`SILENT_END_PRIORITY`]. It adds the sender's
/// address to the set of addresses whose server has ended.
fn drop_marked_reset(family: &Family) -> Attributes {
    let mut expressions = match_flags(RST, NOT_EQUAL, 0);
    expressions.extend([
        ("meta", load_meta(PRIORITY)),
        ("cmp", compare(EQUAL, &SILENT_END_PRIORITY.to_ne_bytes())),
        ("payload", load_sender(family)),
        ("lookup", is_in(MANAGED)),
        ("dynset", add_to(ENDED)),
        ("immediate", drop_packet()),
    ]);
    rule(expressions)
}

/// The rule that drops a reset with which the kernel answers a segment of a connection that is
/// gone, from an address whose server has ended. Such a reset has no ACK (RFC 9293, section
/// 3.5.2).
fn drop_reset_of_segment(family: &Family) -> Attributes {
    let mut expressions = match_flags(RST | ACKNOWLEDGED, EQUAL, RST);
    expressions.extend([
        ("payload", load_sender(family)),
        ("lookup", is_in(ENDED)),
        ("immediate", drop_packet()),
    ]);
    rule(expressions)
}

/// The rule that drops a reset with which the kernel refuses a connection, from an address whose
/// server has ended. Such a reset has ACK and the sequence number 0 (RFC 9293, section 3.5.2).
fn drop_refusal(family: &Family) -> Attributes {
    let mut expressions = match_flags(RST | ACKNOWLEDGED, EQUAL, RST | ACKNOWLEDGED);
    expressions.extend([
        ("payload", load_tcp(SEQUENCE)),
        ("cmp", compare(EQUAL, &[0; 4])),
        ("payload", load_sender(family)),
        ("lookup", is_in(ENDED)),
        ("immediate", drop_packet()),
    ]);
    rule(expressions)
}

/// Expressions that match a TCP segment if its flags, masked with `mask`, compare as `operation`
/// says with `flags`.
fn match_flags(mask: u8, operation: u32, flags: u8) -> Vec<(&'static str, Attributes)> {
    vec![
        ("meta", load_meta(TRANSPORT_PROTOCOL)),
        ("cmp", compare(EQUAL, &[TCP])),
        ("payload", load_tcp(FLAGS)),
        ("bitwise", mask_byte(mask)),
        ("cmp", compare(operation, &[flags])),
    ]
}

/// `NFTA_RULE_*`: a rule of these expressions, each with its name. An expression that does not
/// match ends the rule.
fn rule(expressions: Vec<(&str, Attributes)>) -> Attributes {
    let mut list = Attributes::default();
    for (name, data) in expressions {
        let expression = Attributes::default().with_text(1, name).with_nested(2, &data);
        list = list.with_nested(LIST_ELEMENT, &expression);
    }
    named(TABLE).with_text(2, CHAIN).with_nested(4, &list)
}

/// Loads the sender's address into the register.
fn load_sender(family: &Family) -> Attributes {
    load_header(NETWORK_HEADER, family.offset, family.length)
}

/// Loads a field of the TCP header into the register.
fn load_tcp((offset, length): (u32, u32)) -> Attributes {
    load_header(TRANSPORT_HEADER, offset, length)
}

/// `NFTA_PAYLOAD_*`: loads bytes of a header into the register.
fn load_header(header: u32, offset: u32, length: u32) -> Attributes {
    with_numbers([(1, REGISTER), (2, header), (3, offset), (4, length)])
}

/// `NFTA_META_*`: loads metadata of the packet into the register.
fn load_meta(key: u32) -> Attributes {
    with_numbers([(1, REGISTER), (2, key)])
}

/// `NFTA_LOOKUP_*`: matches if the set has the value in the register.
fn is_in(set: &str) -> Attributes {
    with_number(Attributes::default().with_text(1, set), 2, REGISTER)
}

/// `NFTA_DYNSET_*`: adds the value in the register to the set, for [`ENDED_TIME`].
fn add_to(set: &str) -> Attributes {
    let added = with_number(Attributes::default().with_text(1, set), 3, ADD);
    let millis = u64::try_from(ENDED_TIME.as_millis()).unwrap_or(u64::MAX);
    with_number(added, 4, REGISTER).with(6, &millis.to_be_bytes())
}

/// `NFTA_BITWISE_*`: masks the byte in the register.
fn mask_byte(mask: u8) -> Attributes {
    let value = |byte: u8| Attributes::default().with(1, &[byte]);
    let masked = with_numbers([(1, REGISTER), (2, REGISTER), (3, 1)]);
    masked.with_nested(4, &value(mask)).with_nested(5, &value(0))
}

/// `NFTA_CMP_*`: matches if the value in the register compares as `operation` says with `value`.
fn compare(operation: u32, value: &[u8]) -> Attributes {
    let compared = with_numbers([(1, REGISTER), (2, operation)]);
    compared.with_nested(3, &Attributes::default().with(1, value))
}

/// `NFTA_IMMEDIATE_*`: drops the packet.
fn drop_packet() -> Attributes {
    let code = with_number(Attributes::default(), 1, DROP);
    let verdict = Attributes::default().with_nested(2, &code);
    with_number(Attributes::default(), 1, VERDICT_REGISTER).with_nested(2, &verdict)
}

/// `NFTA_SET_ELEM_LIST_*`: these elements of a set, or all.
fn elements(set: &str, elements: Option<&Attributes>) -> Attributes {
    let list = named(TABLE).with_text(2, set);
    match elements {
        Some(elements) => list.with_nested(3, elements),
        None => list,
    }
}

/// `NFTA_SET_ELEM_*`: an address, and the time after which it is no longer in the set.
fn element(address: IpAddr, timeout_millis: Option<u64>) -> Attributes {
    let key = Attributes::default().with(1, &octets(address));
    let element = Attributes::default().with_nested(1, &key);
    match timeout_millis {
        Some(millis) => element.with(4, &millis.to_be_bytes()),
        None => element,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_tables() {
        let numbers = |text: &str| -> Vec<u8> {
            let address: IpAddr = text.parse().unwrap();
            let all = FAMILIES.iter().filter(|family| family.has(address));
            all.map(|family| family.number).collect()
        };
        assert_eq!(numbers("10.0.0.9"), [3, 2], "ARP and IPv4");
        assert_eq!(numbers("fd00::9"), [10]);
    }

    #[test]
    fn a_batch_has_its_limits_and_counts_its_messages() {
        let mut batch = Batch::new();
        for family in FAMILIES {
            batch.add(family, NEW_TABLE, CREATE, &named(TABLE));
        }
        assert_eq!(batch.messages, 3);
        batch.bytes.extend(limit(BATCH_END, 4));
        let kinds: Vec<u16> =
            super::super::messages(&batch.bytes).map(|message| message.kind).collect();
        assert_eq!(kinds, [0x10, 0xa00, 0xa00, 0xa00, 0x11]);
    }
}
