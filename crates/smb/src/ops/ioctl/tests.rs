use super::*;
use crate::fscc::client::{
    decode_ranges, decode_resume_key, encode_copy, encode_range, encode_zero_data,
};
use crate::fscc::{COPY_CHUNKS_MAX, Chunk, CopyResult, Range, ResumeKey};
use crate::host::RangeLock;
use crate::ops::testing::{Part, Reply, TestHost, TestServer, utf16};
use crate::wire::{CreateOptions, IoctlResponse, Payload};
use proptest::prelude::*;
use std::rc::Rc;
use weir_core::store::Stability;
use weir_core::testing::block_on;
use weir_core::{DosAttributes, FsError, OpClass, Store};
use weir_state::{Mode, Sharing, Span};

const READ: AccessMask = AccessMask::READ_DATA;
const WRITE: AccessMask = AccessMask::WRITE_DATA;

fn request<'a>(code: ControlCode, file: FileId, input: &'a [u8], max: u32) -> IoctlRequest<'a> {
    IoctlRequest {
        code,
        file,
        input: Payload { bytes: input, at: 0 },
        max_input: 0,
        output_count: 0,
        max_output: max,
        flags: IoctlFlags::IS_FSCTL,
    }
}

fn send(host: &TestHost, request: &IoctlRequest<'_>) -> Reply {
    let encode = |out: &mut Vec<u8>| request.encode(out);
    let reply = host.call(Command::Ioctl, encode, async |cx, out| ioctl(cx, out).await);
    assert_eq!(host.server.io.get(), 0, "nothing is under way any more");
    reply
}

fn ask(
    host: &TestHost,
    code: ControlCode,
    file: FileId,
    input: &[u8],
    max: u32,
) -> (Status, Vec<u8>) {
    let reply = send(host, &request(code, file, input, max));
    let output = reply.outcome.as_ref().map_or(Vec::new(), |_| {
        let response = IoctlResponse::decode(reply.ok()).unwrap();
        assert_eq!((response.code, response.file), (code, file));
        response.output.to_vec()
    });
    (reply.status(), output)
}

fn status(host: &TestHost, code: ControlCode, file: FileId, input: &[u8]) -> Status {
    ask(host, code, file, input, 1000).0
}

fn tree(data: &[u8]) -> (Rc<TestServer>, TestHost) {
    let server = TestServer::new();
    server.file("f", data, 0o644, 7);
    server.dir("d", 0o755, 7);
    server.symlink("l", "../a:b/c");
    let ann = server.session(7);
    (server, ann)
}

fn lock(host: &TestHost, path: &str, offset: u64, length: u64, mode: Mode) {
    let open = host.opened(host.open(path, READ | WRITE));
    let lock = RangeLock { span: Span::new(offset, length).unwrap(), mode };
    block_on(host.lock(&open, &[lock], false)).unwrap();
}

#[test]
fn a_file_is_declared_sparse_and_no_longer() {
    let (server, ann) = tree(b"data");
    let file = ann.open("f", AccessMask::WRITE_ATTRIBUTES);
    let sparse = || {
        let (_, details) = block_on(server.store.details(&server.object("f").0)).unwrap();
        assert!(details.dos.contains(DosAttributes::ARCHIVE));
        details.dos.contains(DosAttributes::SPARSE)
    };
    for (input, wanted) in [(&[][..], true), (&[0], false), (&[0xff, 0], true), (&[7], true)] {
        assert_eq!(status(&ann, ControlCode::SET_SPARSE, file, input), Status::SUCCESS);
        assert_eq!(sparse(), wanted);
    }
    for access in [WRITE, AccessMask::APPEND_DATA] {
        let file = ann.open("f", access);
        assert_eq!(status(&ann, ControlCode::SET_SPARSE, file, &[]), Status::SUCCESS);
    }
    let weak = ann.open("f", READ | AccessMask::READ_ATTRIBUTES);
    assert_eq!(status(&ann, ControlCode::SET_SPARSE, weak, &[]), Status::ACCESS_DENIED);
    let dir = ann.open("d", WRITE);
    assert_eq!(status(&ann, ControlCode::SET_SPARSE, dir, &[]), Status::INVALID_PARAMETER);
}

#[test]
fn a_range_is_zeroed_under_locks() {
    let (server, ann) = tree(&[1; 100]);
    let bob = server.session(7);
    let through = CreateOptions::WRITE_THROUGH;
    let file = ann.open_as("f", WRITE, Sharing::all(), through);
    let zero = |file, offset, length| {
        let mut input = Vec::new();
        encode_zero_data(Range { offset, length }, &mut input);
        status(&ann, ControlCode::SET_ZERO_DATA, file, &input)
    };
    assert_eq!(zero(file, 10, 20), Status::SUCCESS);
    assert_eq!(zero(file, 50, 0), Status::SUCCESS);
    assert_eq!(zero(file, 90, 1000), Status::SUCCESS);
    let content = server.content("f");
    assert_eq!(content.len(), 100);
    for (at, byte) in content.iter().enumerate() {
        assert_eq!(*byte == 0, (10..30).contains(&at) || at >= 90, "{at}");
    }
    lock(&bob, "f", 40, 10, Mode::Shared);
    assert_eq!(zero(file, 45, 1), Status::FILE_LOCK_CONFLICT);
    assert_eq!(zero(file, 50, 1), Status::SUCCESS);
    let weak = ann.open("f", AccessMask::APPEND_DATA);
    assert_eq!(zero(weak, 0, 1), Status::ACCESS_DENIED);
    assert_eq!(zero(ann.open("d", WRITE), 0, 1), Status::INVALID_PARAMETER);
    let backwards = [2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    for input in [&backwards[..], &backwards[..15]] {
        let refused = status(&ann, ControlCode::SET_ZERO_DATA, file, input);
        assert_eq!(refused, Status::INVALID_PARAMETER);
    }
}

#[test]
fn allocated_ranges_are_told_as_they_fit() {
    let (server, ann) = tree(&[1; 4096 * 5]);
    let object = server.object("f").0;
    for block in [1, 3] {
        block_on(server.store.zero_range(&object, block * 4096, (block + 1) * 4096)).unwrap();
    }
    let file = ann.open("f", READ | WRITE);
    let get = |offset, length, max| {
        let mut input = Vec::new();
        encode_range(Range { offset, length }, &mut input);
        let (status, output) = ask(&ann, ControlCode::QUERY_ALLOCATED_RANGES, file, &input, max);
        let ranges = decode_ranges(&output).map(|range| (range.offset, range.length));
        (status, ranges.collect::<Vec<_>>())
    };
    let max = i64::MAX as u64;
    assert_eq!(get(100, max - 100, 64), (Status::SUCCESS, vec![(100, 4096 * 5 - 100)]));
    assert_eq!(status(&ann, ControlCode::SET_SPARSE, file, &[]), Status::SUCCESS);
    let three = [(0, 4096), (8192, 4096), (16384, 4096)];
    assert_eq!(get(0, max, 48), (Status::SUCCESS, three.to_vec()));
    assert_eq!(get(0, max, 47), (Status::BUFFER_OVERFLOW, three[..2].to_vec()));
    assert_eq!(get(0, max, 15), (Status::BUFFER_TOO_SMALL, vec![]));
    assert_eq!(get(4096, 4096, 0), (Status::SUCCESS, vec![]));
    assert_eq!(get(1 << 30, 10, 0), (Status::SUCCESS, vec![]));
    assert_eq!(get(0, 0, 0), (Status::SUCCESS, vec![]));
    assert_eq!(get(1, max, 64).0, Status::INVALID_PARAMETER);
    let short = status(&ann, ControlCode::QUERY_ALLOCATED_RANGES, file, &[0; 15]);
    assert_eq!(short, Status::INVALID_PARAMETER);
    let weak = ann.open("f", WRITE);
    let denied = status(&ann, ControlCode::QUERY_ALLOCATED_RANGES, weak, &[0; 16]);
    assert_eq!(denied, Status::ACCESS_DENIED);
}

/// Two files with opens, and a way to copy between them.
struct Copy {
    server: Rc<TestServer>,
    host: TestHost,
    key: ResumeKey,
    target: FileId,
}

impl Copy {
    fn of(from: &[u8], access: AccessMask, target_access: AccessMask) -> Self {
        let (server, host) = tree(from);
        server.file("t", b"", 0o644, 7);
        let source = host.open("f", access);
        let (ok, key) = ask(&host, ControlCode::SRV_REQUEST_RESUME_KEY, source, &[], 32);
        assert_eq!((ok, key.len()), (Status::SUCCESS, 32));
        let key = decode_resume_key(&key).unwrap();
        let target = host.open("t", target_access);
        Self { server, host, key, target }
    }

    fn run(&self, code: ControlCode, chunks: &[(u64, u64, u32)]) -> (Status, CopyResult) {
        let chunk = |&(source, target, length)| Chunk { source, target, length };
        let chunks: Vec<_> = chunks.iter().map(chunk).collect();
        let mut input = Vec::new();
        encode_copy(&self.key, &chunks, &mut input);
        let (status, output) = ask(&self.host, code, self.target, &input, 12);
        let none = CopyResult { chunks: 9, chunk_bytes: 9, bytes: 9 };
        (status, CopyResult::decode(&output).unwrap_or(none))
    }

    fn copy(&self, chunks: &[(u64, u64, u32)]) -> (Status, CopyResult) {
        self.run(ControlCode::SRV_COPYCHUNK, chunks)
    }
}

fn result(chunks: u32, chunk_bytes: u32, bytes: u32) -> CopyResult {
    CopyResult { chunks, chunk_bytes, bytes }
}

const NO_RESULT: CopyResult = CopyResult { chunks: 9, chunk_bytes: 9, bytes: 9 };

#[test]
fn chunks_are_copied_each_under_permits_of_its_own() {
    let copy = Copy::of(b"0123456789", READ, READ | WRITE);
    let done = copy.copy(&[(0, 3, 5), (8, 0, 2)]);
    assert_eq!(done, (Status::SUCCESS, result(2, 0, 7)));
    assert_eq!(copy.server.content("t"), b"89\x0001234");
    let part = |class, bytes| Part { class, bytes, ended: Some((bytes.into(), true)) };
    let wanted = [
        part(OpClass::Read, 5),
        part(OpClass::Write, 5),
        part(OpClass::Read, 2),
        part(OpClass::Write, 2),
    ];
    assert_eq!(*copy.server.parts.borrow(), wanted);
    assert_eq!(copy.copy(&[]), (Status::SUCCESS, result(0, 0, 0)));
}

#[test]
fn a_copy_is_as_stable_as_its_target_asks() {
    let copy = Copy::of(b"0123456789", READ, READ | WRITE);
    let target = copy.host.opened(copy.target);
    for (mode, stability) in [
        (CreateOptions::WRITE_THROUGH, Stability::FileSync),
        (CreateOptions::empty(), Stability::Unstable),
    ] {
        target.mode.set(mode);
        assert_eq!(copy.copy(&[(0, 0, 1)]).0, Status::SUCCESS);
        assert_eq!(copy.server.store.asked_stability(), Some(stability));
    }
}

#[test]
fn chunks_of_one_file_may_overlap() {
    let mut copy = Copy::of(b"0123456789", READ | WRITE, READ);
    copy.target = copy.host.open("f", READ | WRITE);
    assert_eq!(copy.copy(&[(0, 2, 8)]), (Status::SUCCESS, result(1, 0, 8)));
    assert_eq!(copy.server.content("f"), b"0101234567");
    assert_eq!(copy.copy(&[(2, 0, 8)]), (Status::SUCCESS, result(1, 0, 8)));
    assert_eq!(copy.server.content("f"), b"0123456767");
}

#[test]
fn a_copy_that_fails_tells_how_far_it_came() {
    let copy = Copy::of(b"0123456789", READ, READ | WRITE);
    let beyond = copy.copy(&[(0, 0, 4), (4, 4, 7), (0, 0, 1)]);
    assert_eq!(beyond, (Status::INVALID_VIEW_SIZE, result(1, 0, 4)));
    assert_eq!(copy.server.content("t"), b"0123");
    assert_eq!(copy.copy(&[(u64::MAX, 0, 4)]).0, Status::INVALID_VIEW_SIZE);
    assert_eq!(copy.copy(&[(0, u64::MAX, 4)]).0, Status::INVALID_PARAMETER);
    let bob = copy.server.session(7);
    lock(&bob, "f", 0, 1, Mode::Exclusive);
    lock(&bob, "t", 0, 1, Mode::Shared);
    let locked = (Status::FILE_LOCK_CONFLICT, result(0, 0, 0));
    assert_eq!(copy.copy(&[(0, 1, 1)]), locked, "the source");
    assert_eq!(copy.copy(&[(1, 0, 1)]), locked, "the target");
    assert_eq!(copy.copy(&[(1, 1, 1)]).0, Status::SUCCESS);
    copy.server.parts.borrow_mut().clear();
    copy.server.store.fail_after(1, FsError::NoSpace);
    assert_eq!(copy.copy(&[(1, 1, 2)]), (Status::DISK_FULL, result(0, 0, 0)));
    let ends: Vec<_> = copy.server.parts.borrow().iter().map(|part| part.ended).collect();
    assert_eq!(ends, [Some((2, true)), Some((0, false))]);
}

#[test]
fn a_copy_beyond_its_bounds_gets_them_as_result() {
    let copy = Copy::of(b"0123456789", READ, READ | WRITE);
    let bounds = (Status::INVALID_PARAMETER, CopyResult::BOUNDS);
    assert_eq!(copy.copy(&[(0, 0, 0)]), bounds);
    assert_eq!(copy.copy(&[(0, 0, IO_BYTES_MAX + 1)]), bounds);
    assert_eq!(copy.copy(&vec![(0, 0, 1); COPY_CHUNKS_MAX as usize + 1]), bounds);
    assert_eq!(copy.copy(&[(0, 0, IO_BYTES_MAX); 17]), bounds);
    let copy_raw =
        |input: &[u8], max| ask(&copy.host, ControlCode::SRV_COPYCHUNK, copy.target, input, max);
    let nothing = (Status::INVALID_PARAMETER, vec![]);
    assert_eq!(copy_raw(&[0; 31], 12), nothing);
    assert_eq!(copy_raw(&[0; 32], 11), nothing);
    let key = |max| ask(&copy.host, ControlCode::SRV_REQUEST_RESUME_KEY, copy.target, &[], max).0;
    assert_eq!((key(31), key(32)), (Status::INVALID_PARAMETER, Status::SUCCESS));
}

#[test]
fn a_copy_needs_access_to_both() {
    let both = READ | WRITE;
    let denied = (Status::ACCESS_DENIED, NO_RESULT);
    let chunk = [(0, 0, 4)];
    assert_eq!(Copy::of(b"0123", WRITE, both).copy(&chunk), denied);
    assert_eq!(Copy::of(b"0123", READ, READ).copy(&chunk), denied);
    assert_eq!(Copy::of(b"0123", READ, WRITE).copy(&chunk), denied);
    let write = Copy::of(b"0123", AccessMask::EXECUTE, WRITE);
    let done = write.run(ControlCode::SRV_COPYCHUNK_WRITE, &chunk);
    assert_eq!(done, (Status::SUCCESS, result(1, 0, 4)));
    let mut other = Copy::of(b"0123", READ, both);
    other.key[0] ^= 1;
    assert_eq!(other.copy(&chunk), (Status::OBJECT_NAME_NOT_FOUND, NO_RESULT));
    let mut dir = Copy::of(b"0123", READ, both);
    dir.target = dir.host.open("d", both);
    assert_eq!(dir.copy(&chunk), (Status::INVALID_DEVICE_REQUEST, NO_RESULT));
    let bob = other.server.session(7);
    other.key[0] ^= 1;
    let foreign = Copy { target: bob.open("t", both), host: bob, ..other };
    assert_eq!(foreign.copy(&chunk), (Status::OBJECT_NAME_NOT_FOUND, NO_RESULT));
}

#[test]
fn the_target_of_a_link_is_told() {
    let (_server, ann) = tree(b"");
    let link = ann.open("l", AccessMask::READ_ATTRIBUTES);
    let get = |file, max| ask(&ann, ControlCode::GET_REPARSE_POINT, file, &[], max);
    let name = utf16("..\\a\u{F022}b\\c");
    let bytes = u8::try_from(name.len()).unwrap();
    let mut wanted = vec![0x0C, 0, 0, 0xA0, bytes * 2 + 12, 0, 0, 0];
    wanted.extend_from_slice(&[0, 0, bytes, 0, bytes, 0, bytes, 0, 1, 0, 0, 0]);
    wanted.extend_from_slice(&name);
    wanted.extend_from_slice(&name);
    assert_eq!(get(link, 1000), (Status::SUCCESS, wanted.clone()));
    assert_eq!(get(link, 20), (Status::BUFFER_OVERFLOW, wanted[..20].to_vec()));
    assert_eq!(get(link, 7), (Status::BUFFER_TOO_SMALL, vec![]));
    let file = ann.open("f", READ);
    assert_eq!(get(file, 1000), (Status::NOT_A_REPARSE_POINT, vec![]));
}

#[test]
fn every_object_has_an_identifier_that_is_its_own() {
    let (server, ann) = tree(b"");
    let get = |path: &str, max| {
        let file = ann.open(path, AccessMask::READ_ATTRIBUTES);
        ask(&ann, ControlCode::CREATE_OR_GET_OBJECT_ID, file, &[], max)
    };
    let (status, file) = get("f", 64);
    assert_eq!((status, file.len()), (Status::SUCCESS, 64));
    let (id, rest) = file.split_at(16);
    let (volume, rest) = rest.split_at(16);
    assert_eq!((&rest[..16], &rest[16..]), (id, &[0; 16][..]));
    let number = server.object("f").1.fileid;
    assert_eq!(id[..8], number.to_le_bytes());
    assert_eq!(get("f", 100).1, file, "it stays the same");
    let (_, dir) = get("d", 64);
    assert_ne!(dir[..16], *id);
    assert_eq!(dir[16..32], *volume);
    assert_eq!(get("f", 63), (Status::INVALID_PARAMETER, vec![]));
}

#[test]
fn nothing_is_compressed() {
    let (_server, ann) = tree(b"");
    let file = ann.open("f", WRITE);
    let get = |max| ask(&ann, ControlCode::GET_COMPRESSION, file, &[], max);
    assert_eq!(get(2), (Status::SUCCESS, vec![0, 0]));
    assert_eq!(get(1), (Status::BUFFER_TOO_SMALL, vec![]));
    let set = |file, input: &[u8]| status(&ann, ControlCode::SET_COMPRESSION, file, input);
    assert_eq!(set(file, &[0, 0]), Status::SUCCESS);
    assert_eq!(set(file, &[1, 0]), Status::NOT_SUPPORTED);
    assert_eq!(set(file, &[0]), Status::INVALID_PARAMETER);
    assert_eq!(set(ann.open("f", READ), &[0, 0]), Status::ACCESS_DENIED);
}

#[test]
fn other_controls_and_requests_beyond_bounds_are_refused() {
    let (_server, ann) = tree(b"");
    let (file, none) = (ann.open("f", READ), FileId::PREVIOUS);
    for code in [ControlCode::PIPE_TRANSCEIVE, ControlCode::FILE_LEVEL_TRIM, ControlCode(7)] {
        assert_eq!(status(&ann, code, file, &[]), Status::INVALID_DEVICE_REQUEST);
        assert_eq!(status(&ann, code, none, &[]), Status::FILE_CLOSED);
    }
    for (code, wanted) in [
        (ControlCode::DFS_GET_REFERRALS, Status::FS_DRIVER_REQUIRED),
        (ControlCode::DFS_GET_REFERRALS_EX, Status::FS_DRIVER_REQUIRED),
        (ControlCode::QUERY_NETWORK_INTERFACE_INFO, Status::NOT_SUPPORTED),
    ] {
        assert_eq!(status(&ann, code, none, &[]), wanted);
        assert_eq!(status(&ann, code, file, &[]), Status::INVALID_PARAMETER);
    }
    let fine = request(ControlCode::GET_COMPRESSION, file, &[], 2);
    let refused = |request: IoctlRequest<'_>| send(&ann, &request).status();
    assert_eq!(refused(fine), Status::SUCCESS);
    let flags = IoctlFlags::empty();
    assert_eq!(refused(IoctlRequest { flags, ..fine }), Status::NOT_SUPPORTED);
    let (max_input, max_output) = (IO_BYTES_MAX + 1, IO_BYTES_MAX + 1);
    assert_eq!(refused(IoctlRequest { max_input, ..fine }), Status::INVALID_PARAMETER);
    assert_eq!(refused(IoctlRequest { max_output, ..fine }), Status::INVALID_PARAMETER);
    let short = ann.call(Command::Ioctl, |out| out.push(57), async |cx, out| ioctl(cx, out).await);
    assert_eq!(short.status(), Status::INVALID_PARAMETER);
}

#[test]
fn only_the_repeated_negotiation_ends_the_connection() {
    let ends = |command, code| {
        let mut message = Vec::new();
        let header = crate::ops::testing::header(command, Status::SUCCESS);
        header.encode(&mut message);
        request(code, FileId::PREVIOUS, &[0; 24], 24).encode(&mut message);
        ends_connection(&header, &message)
    };
    assert!(ends(Command::Ioctl, ControlCode::VALIDATE_NEGOTIATE_INFO));
    assert!(!ends(Command::Ioctl, ControlCode::SET_SPARSE));
    assert!(!ends(Command::Echo, ControlCode::VALIDATE_NEGOTIATE_INFO));
    let header = crate::ops::testing::header(Command::Ioctl, Status::SUCCESS);
    assert!(!ends_connection(&header, &header.to_bytes()), "without a body");
}

const CODES: [ControlCode; 9] = [
    ControlCode::SET_SPARSE,
    ControlCode::SET_ZERO_DATA,
    ControlCode::QUERY_ALLOCATED_RANGES,
    ControlCode::SRV_REQUEST_RESUME_KEY,
    ControlCode::SRV_COPYCHUNK,
    ControlCode::SRV_COPYCHUNK_WRITE,
    ControlCode::GET_REPARSE_POINT,
    ControlCode::GET_COMPRESSION,
    ControlCode::SET_COMPRESSION,
];

proptest! {
    #[test]
    fn no_control_panics_or_answers_more_than_asked_for(
        code in prop_oneof![0..CODES.len()].prop_map(|at| CODES[at]),
        mut input in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..120),
        max in 0_u32..100, with_key: bool, path in prop_oneof![Just("f"), Just("d"), Just("l")],
    ) {
        let (_server, ann) = tree(&[1; 5000]);
        let file = ann.open(path, AccessMask::all());
        if with_key && input.len() >= 24 {
            let (_, key) = ask(&ann, ControlCode::SRV_REQUEST_RESUME_KEY, file, &[], 32);
            input[..24].copy_from_slice(&key[..24]);
        }
        let (_, output) = ask(&ann, code, file, &input, max);
        prop_assert!(output.len() <= max as usize);
    }
}
