//! The bytes that clients write to the pipes of `IPC$` (C706 §12, MS-SRVS, MS-WKST).

use super::messages::kind;
use std::io::Result;
use weir_fuzz::smb::utf16;

/// The interfaces and the transfer syntax by their numbers and versions, as bytes of the wire.
const SRVSVC: [u8; 20] = [
    0xc8, 0x4f, 0x32, 0x4b, 0x70, 0x16, 0xd3, 0x01, 0x12, 0x78, 0x5a, 0x47, 0xbf, 0x6e, 0xe1, 0x88,
    3, 0, 0, 0,
];
const WKSSVC: [u8; 20] = [
    0x98, 0xd0, 0xff, 0x6b, 0x12, 0xa1, 0x10, 0x36, 0x98, 0x33, 0x46, 0xc3, 0xf8, 0x7e, 0x34, 0x5a,
    1, 0, 0, 0,
];
const NDR: [u8; 20] = [
    0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];

/// A fragment of the call 1 that is the first and last.
fn fragment(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(16 + body.len()).expect("a short one").to_le_bytes();
    let head = [5, 0, kind, 3, 0x10, 0, 0, 0, length[0], length[1], 0, 0, 1, 0, 0, 0];
    [&head, body].concat()
}

fn bind(interface: [u8; 20]) -> Vec<u8> {
    let sizes = [0xb8, 0x10, 0xb8, 0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0];
    fragment(11, &[&sizes[..], &interface, &NDR].concat())
}

fn request(operation: u8, input: &[u8]) -> Vec<u8> {
    fragment(0, &[&[0, 0, 0, 0, 0, 0, operation, 0][..], input].concat())
}

fn string(text: &str) -> Vec<u8> {
    let units = utf16(&format!("{text}\0"));
    let count = u32::try_from(units.len() / 2).expect("a short text").to_le_bytes();
    let mut out = [&count[..], &[0; 4], &count, &units].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn server_name() -> Vec<u8> {
    [numbers(&[0x2_0000]), string("\\\\WEIR")].concat()
}

/// The bytes of a client that lists the shares and asks for each.
pub(super) fn listing() -> Vec<u8> {
    let list = numbers(&[1, 1, 0x2_0004, 0, 0, u32::MAX, 0x2_000c, 0]);
    let one = [server_name(), string("vol"), numbers(&[1])].concat();
    let info = [server_name(), numbers(&[101])].concat();
    [
        bind(SRVSVC),
        request(15, &[server_name(), list].concat()),
        request(16, &one),
        request(21, &info),
    ]
    .concat()
}

pub(super) fn pipes() -> Result<()> {
    kind("srvsvc", "srvsvc", &[&[6][..], &listing()].concat())?;
    let info = [server_name(), numbers(&[100])].concat();
    let wkssvc = [&[200][..], &bind(WKSSVC), &request(0, &info)].concat();
    kind("wkssvc", "wkssvc", &wkssvc)?;
    let other = [&[200][..], &bind(WKSSVC), &request(15, &[])].concat();
    kind("srvsvc", "srvsvc-unbound", &other)
}
