//! Tests of the pipes: the exchanges of clients that list shares, and hostile ones.

use super::bind::{NDR, SRVSVC, WKSSVC};
use super::*;
use proptest::prelude::*;
use std::vec::Vec;

const SHARES: [Share<'static>; 3] = [
    Share { name: "vol", comment: "Größe", kind: ShareKind::Disk },
    Share { name: "old$", comment: "", kind: ShareKind::HiddenDisk },
    Share { name: "IPC$", comment: "Remote IPC", kind: ShareKind::Ipc },
];

const HOST: Host<'static> =
    Host { name: "WEIR", group: "WORKGROUP", comment: "a server", shares: &|| SHARES.to_vec() };

/// 71710533-beba-4937-8319-b5dbef9ccc36, 1.0.
const NDR64: [u8; 20] = [
    0x33, 0x05, 0x71, 0x71, 0xBA, 0xBE, 0x37, 0x49, 0x83, 0x19, 0xB5, 0xDB, 0xEF, 0x9C, 0xCC, 0x36,
    1, 0, 0, 0,
];

/// 6cb71c2c-9812-4540-0300-000000000000, 1.0.
const FEATURES: [u8; 20] =
    [0x2C, 0x1C, 0xB7, 0x6C, 0x12, 0x98, 0x40, 0x45, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

fn fragment(kind: u8, flags: u8, call: u32, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(16 + body.len()).unwrap().to_le_bytes();
    let head = [5, 0, kind, flags, 0x10, 0, 0, 0, length[0], length[1], 0, 0];
    [&head[..], &call.to_le_bytes(), body].concat()
}

fn bind_body(fragment: u16, contexts: &[(u16, [u8; 20], [u8; 20])]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&fragment.to_le_bytes());
    body.extend_from_slice(&fragment.to_le_bytes());
    body.extend_from_slice(&[0, 0, 0, 0, u8::try_from(contexts.len()).unwrap(), 0, 0, 0]);
    for (id, interface, syntax) in contexts {
        body.extend_from_slice(&id.to_le_bytes());
        body.extend_from_slice(&[1, 0]);
        body.extend_from_slice(interface);
        body.extend_from_slice(syntax);
    }
    body
}

fn bind(interface: [u8; 20]) -> Vec<u8> {
    fragment(11, 3, 1, &bind_body(4280, &[(0, interface, NDR)]))
}

fn request(operation: u16, input: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0, 0];
    body.extend_from_slice(&operation.to_le_bytes());
    body.extend_from_slice(input);
    fragment(0, 3, 2, &body)
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn string(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    let count = u32::try_from(units.len()).unwrap();
    let mut out = u32s(&[count, 0, count]);
    out.extend(units.into_iter().flat_map(u16::to_le_bytes));
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn server_name() -> Vec<u8> {
    [u32s(&[0x2_0000]), string("\\\\WEIR")].concat()
}

/// A pipe after its bind.
fn bound(interface: Interface) -> Pipe {
    let mut pipe = Pipe::new(interface);
    let syntax = if interface == Interface::Srvsvc { SRVSVC } else { WKSSVC };
    pipe.write(&bind(syntax), &HOST).unwrap();
    assert!(pipe.read(usize::MAX).is_some());
    pipe
}

/// The output of a call: all fragments of the answer put together.
fn output(pipe: &mut Pipe, operation: u16, input: &[u8], host: &Host<'_>) -> Vec<u8> {
    pipe.write(&request(operation, input), host).unwrap();
    let mut whole = Vec::new();
    loop {
        let (fragment, more) = pipe.read(usize::MAX).unwrap();
        assert!(!more);
        assert_eq!((fragment[2], &fragment[12..16]), (2, &[2, 0, 0, 0][..]), "a response");
        assert_eq!(fragment[3] & 1 != 0, whole.is_empty(), "the flag of the first");
        whole.extend_from_slice(&fragment[24..]);
        if fragment[3] & 2 != 0 {
            assert_eq!(pipe.read(usize::MAX), None);
            return whole;
        }
    }
}

fn enumerate(level: u32, resume: Option<u32>) -> Vec<u8> {
    let resume = resume.map_or(u32s(&[0]), |resume| u32s(&[0x2_000C, resume]));
    let list = u32s(&[level, level, 0x2_0004, 0, 0, u32::MAX]);
    [server_name(), list, resume].concat()
}

#[test]
fn pipes_have_names() {
    assert_eq!(Interface::of_name(b"srvsvc"), Some(Interface::Srvsvc));
    assert_eq!(Interface::of_name(b"WksSvc"), Some(Interface::Wkssvc));
    assert_eq!(Interface::of_name(b"lsarpc"), None);
}

#[test]
fn a_bind_is_answered_context_by_context() {
    let mut pipe = Pipe::new(Interface::Srvsvc);
    let contexts = [(0, SRVSVC, NDR), (1, SRVSVC, NDR64), (2, SRVSVC, FEATURES), (3, WKSSVC, NDR)];
    pipe.write(&fragment(11, 3, 7, &bind_body(5840, &contexts)), &HOST).unwrap();
    let (answer, more) = pipe.read(1024).unwrap();
    let mut body = vec![0xB8, 0x10, 0xB8, 0x10, 1, 0, 0, 0, 13, 0];
    body.extend_from_slice(b"\\PIPE\\srvsvc\0\0");
    body.resize((16 + body.len()).next_multiple_of(4) - 16, 0);
    body.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
    body.extend_from_slice(&NDR);
    for reason in [2, 2, 1] {
        body.extend_from_slice(&[2, 0, reason, 0]);
        body.extend_from_slice(&[0; 20]);
    }
    assert_eq!((answer, more), (fragment(12, 3, 7, &body), false));
}

#[test]
fn later_contexts_can_be_added() {
    let mut pipe = bound(Interface::Srvsvc);
    let body = bind_body(4280, &[(5, SRVSVC, NDR)]);
    pipe.write(&fragment(14, 3, 3, &body), &HOST).unwrap();
    let (answer, _) = pipe.read(1024).unwrap();
    assert_eq!((answer[2], answer.len()), (15, 16 + 12 + 4 + 24));
    let mut call = request(21, &[server_name(), u32s(&[100])].concat());
    call[20] = 5;
    pipe.write(&call, &HOST).unwrap();
    assert_eq!(pipe.read(1024).map(|(answer, _)| answer[2]), Some(2));
}

#[test]
fn shares_are_listed_except_hidden_ones() {
    let mut pipe = bound(Interface::Srvsvc);
    let out = output(&mut pipe, 15, &enumerate(1, Some(0)), &HOST);
    let expected = [
        u32s(&[1, 1, 0x2_0000, 2, 0x2_0004, 2]),
        u32s(&[0x2_0008, 0, 0x2_000C]),
        u32s(&[0x2_0010, 0x8000_0003, 0x2_0014]),
        string("vol"),
        string("Größe"),
        string("IPC$"),
        string("Remote IPC"),
        u32s(&[2, 0x2_0018, 0, 0]),
    ];
    assert_eq!(out, expected.concat());
    let out = output(&mut pipe, 15, &enumerate(0, None), &HOST);
    let expected = [
        u32s(&[0, 0, 0x2_0000, 2, 0x2_0004, 2, 0x2_0008, 0x2_000C]),
        string("vol"),
        string("IPC$"),
        u32s(&[2, 0, 0]),
    ];
    assert_eq!(out, expected.concat());
    let out = output(&mut pipe, 15, &enumerate(0, Some(1)), &HOST);
    let one = u32s(&[0, 0, 0x2_0000, 1, 0x2_0004, 1, 0x2_0008]);
    assert_eq!(out, [one, string("IPC$"), u32s(&[1, 0x2_000C, 0, 0])].concat(), "resumed");
    let out = output(&mut pipe, 15, &enumerate(502, None), &HOST);
    assert_eq!(out, u32s(&[502, 502, 0, 0, 0, 124]));
}

#[test]
fn the_details_of_a_share_are_sent_also_if_it_is_hidden() {
    let mut pipe = bound(Interface::Srvsvc);
    let ask = |name: &str, level| [server_name(), string(name), u32s(&[level])].concat();
    let out = output(&mut pipe, 16, &ask("VOL", 1), &HOST);
    let head = u32s(&[1, 0x2_0000, 0x2_0004, 0, 0x2_0008]);
    assert_eq!(out, [head, string("vol"), string("Größe"), u32s(&[0])].concat());
    let out = output(&mut pipe, 16, &ask("vol", 0), &HOST);
    assert_eq!(out, [u32s(&[0, 0x2_0000, 0x2_0004]), string("vol"), u32s(&[0])].concat());
    let out = output(&mut pipe, 16, &ask("old$", 1), &HOST);
    let head = u32s(&[1, 0x2_0000, 0x2_0004, 0x8000_0000, 0x2_0008]);
    assert_eq!(out, [head, string("old$"), string(""), u32s(&[0])].concat());
    assert_eq!(output(&mut pipe, 16, &ask("none", 1), &HOST), u32s(&[1, 0, 2310]));
    assert_eq!(output(&mut pipe, 16, &ask("vol", 2), &HOST), u32s(&[2, 0, 124]));
}

#[test]
fn the_server_tells_about_itself() {
    let mut pipe = bound(Interface::Srvsvc);
    let ask = |level| [server_name(), u32s(&[level])].concat();
    let out = output(&mut pipe, 21, &ask(101), &HOST);
    let head = u32s(&[101, 0x2_0000, 500, 0x2_0004, 10, 0, 0x8003, 0x2_0008]);
    assert_eq!(out, [head, string("WEIR"), string("a server"), u32s(&[0])].concat());
    let out = output(&mut pipe, 21, &u32s(&[0, 100]), &HOST);
    let head = u32s(&[100, 0x2_0000, 500, 0x2_0004]);
    assert_eq!(out, [head, string("WEIR"), u32s(&[0])].concat());
    assert_eq!(output(&mut pipe, 21, &ask(102), &HOST), u32s(&[102, 0, 124]));
    let mut pipe = bound(Interface::Wkssvc);
    let out = output(&mut pipe, 0, &ask(100), &HOST);
    let head = u32s(&[100, 0x2_0000, 500, 0x2_0004, 0x2_0008, 10, 0]);
    assert_eq!(out, [head, string("WEIR"), string("WORKGROUP"), u32s(&[0])].concat());
    assert_eq!(output(&mut pipe, 0, &ask(102), &HOST), u32s(&[102, 0, 124]));
}

fn fault(pipe: &mut Pipe, bytes: &[u8]) -> u32 {
    pipe.write(bytes, &HOST).unwrap();
    let (answer, _) = pipe.read(1024).unwrap();
    assert_eq!((answer[2], answer[3], answer.len()), (3, 0x23, 32));
    u32::from_le_bytes(answer[24..28].try_into().unwrap())
}

#[test]
fn calls_that_cannot_be_answered_are_faults() {
    let mut pipe = bound(Interface::Srvsvc);
    assert_eq!(fault(&mut pipe, &request(8, &[])), 0x1C01_0002);
    assert_eq!(fault(&mut pipe, &request(15, &[1, 2, 3])), 0x6F7);
    let mut other = request(15, &enumerate(1, None));
    other[20] = 9;
    assert_eq!(fault(&mut pipe, &other), 0x1C01_0003);
    let mut early = Pipe::new(Interface::Srvsvc);
    assert_eq!(fault(&mut early, &request(15, &enumerate(1, None))), 0x1C01_0003);
    let mixed = [server_name(), u32s(&[1, 0, 0, u32::MAX, 0])].concat();
    assert_eq!(fault(&mut pipe, &request(15, &mixed)), 0x6F7, "two levels");
    let full = [server_name(), u32s(&[1, 1, 4, 1, 4, 1, 0, 0, 0])].concat();
    assert_eq!(fault(&mut pipe, &request(15, &full)), 0x6F7, "a list with entries");
    for lengths in [[9, 0, 10], [2, 1, 1], [u32::MAX, 0, u32::MAX], [1 << 31, 0, 1 << 31]] {
        let name = [u32s(&[1]), u32s(&lengths), vec![0; 64]].concat();
        assert_eq!(fault(&mut pipe, &request(21, &name)), 0x6F7, "{lengths:?}");
    }
}

#[test]
fn security_and_too_many_contexts_refuse_a_bind_as_a_whole() {
    for bytes in [
        {
            let mut secured = bind(SRVSVC);
            secured[10] = 8;
            secured
        },
        fragment(11, 3, 1, &bind_body(4280, &[(0, SRVSVC, NDR); 17])),
    ] {
        let mut pipe = Pipe::new(Interface::Srvsvc);
        pipe.write(&bytes, &HOST).unwrap();
        assert_eq!(pipe.read(99).map(|(answer, _)| (answer[2], answer.len())), Some((13, 21)));
        pipe.write(&bind(SRVSVC), &HOST).unwrap();
        assert_eq!(pipe.read(99).map(|(answer, _)| answer[2]), Some(12), "another may come");
    }
}

#[test]
fn a_bind_is_told_what_the_pipe_sends_and_takes() {
    let mut pipe = Pipe::new(Interface::Srvsvc);
    pipe.write(&fragment(11, 3, 1, &bind_body(2000, &[(0, SRVSVC, NDR)])), &HOST).unwrap();
    let (answer, _) = pipe.read(1024).unwrap();
    assert_eq!(answer[16..20], [0xD0, 7, 0xB8, 0x10], "2,000 and 4,280");
}

#[test]
fn further_contexts_that_are_refused_get_a_fault() {
    let mut pipe = bound(Interface::Srvsvc);
    let mut secured = fragment(14, 3, 3, &bind_body(4280, &[(5, SRVSVC, NDR)]));
    secured[10] = 8;
    for bytes in [secured, fragment(14, 3, 3, &bind_body(4280, &[(5, SRVSVC, NDR); 17]))] {
        assert_eq!(fault(&mut pipe, &bytes), 0x1C01_000B);
    }
}

#[test]
fn a_pipe_has_room_for_a_few_contexts() {
    let mut pipe = bound(Interface::Srvsvc);
    for round in 0..3_u16 {
        let contexts: Vec<_> = (0..8).map(|id| (round * 8 + id, SRVSVC, NDR)).collect();
        pipe.write(&fragment(14, 3, 3, &bind_body(4280, &contexts)), &HOST).unwrap();
        let (answer, _) = pipe.read(1024).unwrap();
        let refused = if round == 2 { 2 } else { 0 };
        assert_eq!(answer[answer.len() - 24], refused, "{round}");
    }
}

#[test]
fn fragments_may_come_in_parts_and_together() {
    let call = request(21, &[server_name(), u32s(&[101])].concat());
    let both = [bind(SRVSVC), call].concat();
    let mut whole = Pipe::new(Interface::Srvsvc);
    whole.write(&both, &HOST).unwrap();
    let mut parts = Pipe::new(Interface::Srvsvc);
    for byte in &both {
        parts.write(&[*byte], &HOST).unwrap();
    }
    for _ in 0..2 {
        let answer = whole.read(4096);
        assert!(answer.is_some());
        assert_eq!(answer, parts.read(4096));
    }
}

#[test]
fn a_call_may_come_in_fragments() {
    let input = enumerate(1, None);
    let body = |part: &[u8]| [&[0, 0, 0, 0, 0, 0, 15, 0], part].concat();
    let (a, b) = input.split_at(16);
    let (b, c) = b.split_at(8);
    let mut pipe = bound(Interface::Srvsvc);
    for (flags, part) in [(1, a), (0, b)] {
        pipe.write(&fragment(0, flags, 2, &body(part)), &HOST).unwrap();
        assert_eq!(pipe.waiting(), 0);
    }
    pipe.write(&fragment(0, 2, 2, &body(c)), &HOST).unwrap();
    let (answer, _) = pipe.read(4096).unwrap();
    let mut other = bound(Interface::Srvsvc);
    assert_eq!(answer[24..], output(&mut other, 15, &input, &HOST));
}

#[test]
fn long_answers_are_cut_and_read_in_parts() {
    let names: Vec<String> = (0..5000).map(|number| format!("share{number}")).collect();
    let shares: Vec<_> =
        names.iter().map(|name| Share { name, comment: "", kind: ShareKind::Disk }).collect();
    let list = || shares.clone();
    let host = Host { shares: &list, ..HOST };
    let mut pipe = bound(Interface::Srvsvc);
    let out = output(&mut pipe, 15, &enumerate(1, Some(0)), &host);
    let end = u32s(&[5000, 0x2_0000 + 4 * (2 + 2 * 4096), 4096, 234]);
    assert_eq!(out[12..16], u32s(&[4096]));
    assert_eq!(out[out.len() - 16..], end);
    pipe.write(&request(15, &enumerate(1, None)), &host).unwrap();
    let waiting = pipe.waiting();
    assert_eq!(waiting, 4280);
    let (part, more) = pipe.read(1000).unwrap();
    assert_eq!((part.len(), more, pipe.waiting()), (1000, true, waiting - 1000));
    let (part, more) = pipe.read(waiting - 1000).unwrap();
    assert_eq!((part.len(), more), (waiting - 1000, false));
    // Unread, it lets no further call in.
    assert!(pipe.held_bytes() > 4280);
    assert_eq!(pipe.write(&request(15, &enumerate(1, None)), &host), Err(PipeError::TooMuch));
}

#[test]
fn shares_are_listed_for_those_alone_who_ask_for_them() {
    let listed = std::cell::Cell::new(0);
    let list = || {
        listed.set(listed.get() + 1);
        SHARES.to_vec()
    };
    let host = Host { shares: &list, ..HOST };
    let mut pipe = Pipe::new(Interface::Srvsvc);
    for byte in bind(SRVSVC) {
        pipe.write(&[byte], &host).unwrap();
    }
    pipe.read(1 << 16);
    let server = request(21, &[server_name(), u32s(&[101])].concat());
    pipe.write(&server, &host).unwrap();
    pipe.read(1 << 16);
    assert_eq!((listed.get(), pipe.held_bytes()), (0, 0));
    pipe.write(&request(15, &enumerate(1, None)), &host).unwrap();
    assert_eq!(listed.get(), 1);
}

#[test]
fn a_client_that_takes_little_is_sent_little() {
    let names: Vec<String> = (0..100).map(|number| format!("share{number}")).collect();
    let shares: Vec<_> =
        names.iter().map(|name| Share { name, comment: "", kind: ShareKind::Disk }).collect();
    let mut pipe = Pipe::new(Interface::Srvsvc);
    let bind = fragment(11, 3, 1, &bind_body(0, &[(0, SRVSVC, NDR)]));
    pipe.write(&bind, &HOST).unwrap();
    pipe.read(1024);
    let list = || shares.clone();
    pipe.write(&request(15, &enumerate(1, None)), &Host { shares: &list, ..HOST }).unwrap();
    assert_eq!(pipe.waiting(), 1432);
}

#[test]
fn a_rule_that_is_broken_breaks_the_pipe() {
    let good = request(21, &[server_name(), u32s(&[101])].concat());
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let many = fragment(0, 1, 2, &[0; 4000]);
    let on = fragment(0, 0, 2, &[0; 4000]);
    for (bytes, error) in [
        (with(0, 4), PipeError::Protocol),
        (with(2, 2), PipeError::Protocol),
        (with(2, 11), PipeError::Protocol),
        (with(3, 2), PipeError::Protocol),
        (with(4, 0), PipeError::Protocol),
        (with(9, 0x20), PipeError::TooMuch),
        (with(10, 8), PipeError::Protocol),
        (fragment(0, 3, 2, &[0; 7]), PipeError::Protocol),
        (fragment(0, 0x83, 2, &[0; 23]), PipeError::Protocol),
        ([5, 0, 0, 3, 0x10, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0].to_vec(), PipeError::Protocol),
        ([many.clone(), good.clone()].concat(), PipeError::Protocol),
        ([many.clone(), fragment(0, 2, 3, &[0; 8])].concat(), PipeError::Protocol),
        ([&many[..], &on, &on, &on, &on].concat(), PipeError::TooMuch),
    ] {
        let mut pipe = bound(Interface::Srvsvc);
        assert_eq!(pipe.write(&bytes, &HOST), Err(error), "{bytes:?}");
        assert_eq!(pipe.write(&good, &HOST), Err(error), "and it stays so");
    }
    let mut pipe = bound(Interface::Srvsvc);
    pipe.write(&[many, fragment(19, 3, 2, &[]), fragment(18, 3, 2, &[]), good].concat(), &HOST)
        .unwrap();
    assert!(pipe.waiting() > 0, "an orphaned call gives way");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        parts in prop::collection::vec(any::<Vec<u8>>(), 0..4),
        (kind, flags) in (0..20_u8, any::<u8>()),
        operation in prop::sample::select(&[0_u16, 15, 16, 21][..]),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        for interface in [Interface::Srvsvc, Interface::Wkssvc] {
            let mut pipe = bound(interface);
            for part in &parts {
                let _ = pipe.write(&fragment(kind, flags, 2, part), &HOST);
                let _ = pipe.write(&request(operation, part), &HOST);
                let _ = pipe.write(part, &HOST);
                let _ = pipe.read(part.len());
            }
            let mut changed = [bind(SRVSVC), request(15, &enumerate(1, Some(0)))].concat();
            let at = at.index(changed.len());
            changed[at] = byte;
            let mut pipe = Pipe::new(interface);
            let _ = pipe.write(&changed, &HOST);
        }
    }
}
