//! The messages of [`samples`]: each reads as what its sender meant, and written again gives the
//! same bytes, but for fields that are free.

use super::samples::{self, hex};
use super::*;
use crate::utf16::to_utf16 as utf16;
use alloc::vec::Vec;

/// The header of `message`, then the body that `encode` appends.
fn again(message: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    Header::decode(message).unwrap().encode(&mut out);
    encode(&mut out);
    out
}

/// `text` in UTF-16.
/// The open of most of the messages.
const FILE: FileId = FileId { persistent: 0x7102_3a7c, volatile: 0x45ca_3d6e };

#[test]
fn negotiate_request() {
    let message = hex(samples::NEGOTIATE_REQUEST);
    let request = NegotiateRequest::decode(&message).unwrap();
    assert_eq!(request.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!(request.capabilities.bits(), 0x7f);
    assert_eq!(request.client_guid[..], message[76..92]);
    let dialects: Vec<u16> = request.dialects.iter().collect();
    assert_eq!(dialects, [0x0202, 0x0210, 0x0300, 0x0302, 0x0311]);
    let contexts: Vec<_> = request.contexts.iter().collect();
    assert_eq!(
        contexts,
        [
            NegotiateContext::PreauthIntegrity {
                hashes: Numbers::new(&[1, 0]),
                salt: &message[126..158],
            },
            NegotiateContext::Encryption(Numbers::new(&[2, 0, 1, 0, 4, 0, 3, 0])),
            NegotiateContext::Signing(Numbers::new(&[2, 0, 1, 0, 0, 0])),
            NegotiateContext::NetName(&utf16("127.0.0.1")),
        ]
    );
    assert_eq!(request.contexts.repeated(), None);
    assert_eq!(again(&message, |out| request.encode(out)), message);
    let mut buffer = Vec::new();
    assert_eq!(NegotiateContexts::build(&mut buffer, contexts), request.contexts);
}

#[test]
fn a_negotiate_without_3_1_1_has_no_contexts() {
    let mut message = hex(samples::NEGOTIATE_REQUEST);
    message[108..110].copy_from_slice(&[0x10, 0x02]);
    message[92..96].copy_from_slice(&[0xff; 4]);
    let request = NegotiateRequest::decode(&message).unwrap();
    assert_eq!(request.contexts.iter().count(), 0, "a time is in their place");
}

#[test]
fn negotiate_response() {
    let message = hex(samples::NEGOTIATE_RESPONSE);
    let response = NegotiateResponse::decode(&message).unwrap();
    assert_eq!(response.dialect, Dialect::SMB_3_1_1);
    assert_eq!(response.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!(response.server_guid, *b"verifysmb\0\0\0\0\0\0\0");
    let capabilities = Capabilities::DFS
        | Capabilities::LEASING
        | Capabilities::LARGE_MTU
        | Capabilities::MULTI_CHANNEL;
    assert_eq!(response.capabilities, capabilities);
    let sizes = [response.max_transact_size, response.max_read_size, response.max_write_size];
    assert_eq!(sizes, [8 << 20; 3]);
    assert_eq!(response.token.len(), 0x4a);
    assert_eq!(response.token[..2], [0x60, 0x48]);
    assert_eq!(
        response.contexts.iter().skip(1).collect::<Vec<_>>(),
        [
            NegotiateContext::Encryption(Numbers::new(&[2, 0])),
            NegotiateContext::Signing(Numbers::new(&[2, 0])),
        ]
    );
    assert_eq!(again(&message, |out| response.encode(out)), message);
}

#[test]
fn session_setup() {
    let message = hex(samples::SESSION_SETUP_REQUEST);
    let request = SessionSetupRequest::decode(&message).unwrap();
    assert_eq!(request.flags, SessionSetupFlags::empty());
    assert_eq!(request.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!(request.capabilities, Capabilities::DFS);
    assert_eq!(request.previous_session_id, 0);
    assert_eq!(request.token.range(), 88..162);
    assert_eq!(request.token.bytes, &message[88..]);
    assert_eq!(again(&message, |out| request.encode(out)), message);

    let message = hex(samples::SESSION_SETUP_RESPONSE);
    let response = SessionSetupResponse::decode(&message).unwrap();
    assert_eq!(response.flags, SessionFlags::empty());
    assert_eq!(response.token, &message[72..]);
    assert_eq!(again(&message, |out| response.encode(out)), message);
}

#[test]
fn tree_connect() {
    let message = hex(samples::TREE_CONNECT_REQUEST);
    let request = TreeConnectRequest::decode(&message).unwrap();
    let path = utf16(r"\\127.0.0.1\IPC$");
    assert_eq!(request, TreeConnectRequest { flags: TreeConnectFlags::empty(), path: &path });
    assert_eq!(again(&message, |out| request.encode(out)), message);

    // An extension of 16 bytes before the path (§2.2.9.1).
    let mut extended = message.clone();
    extended[66] = 4;
    extended[68] = 88;
    extended.splice(72..72, [0; 16]);
    let request = TreeConnectRequest::decode(&extended).unwrap();
    let flags = TreeConnectFlags::EXTENSION_PRESENT;
    assert_eq!(request, TreeConnectRequest { flags, path: &path });

    let message = hex(samples::TREE_CONNECT_RESPONSE);
    let response = TreeConnectResponse::decode(&message).unwrap();
    assert_eq!(response.share_type, ShareType::PIPE);
    assert_eq!(response.maximal_access.bits(), 0x001f_00a9);
    assert_eq!(again(&message, |out| response.encode(out)), message);
}

#[test]
fn create_request() {
    let message = hex(samples::CREATE_REQUEST);
    let request = CreateRequest::decode(&message).unwrap();
    assert_eq!(request.oplock, OplockLevel::NONE);
    assert_eq!(request.impersonation, ImpersonationLevel::IMPERSONATION);
    let access = AccessMask::GENERIC_READ | AccessMask::GENERIC_WRITE | AccessMask::DELETE;
    assert_eq!(request.desired_access, access);
    assert_eq!(request.attributes, FileAttributes::NORMAL);
    assert_eq!(request.share_access, ShareAccess::READ);
    assert_eq!(request.disposition, CreateDisposition::OverwriteIf);
    assert_eq!(request.options, CreateOptions::NON_DIRECTORY_FILE);
    assert_eq!(request.name, utf16("py.txt"));
    let contexts: Vec<_> = request.contexts.iter().collect();
    assert_eq!(
        contexts,
        [
            RequestContext::MaximalAccess(None),
            RequestContext::DiskId,
            RequestContext::AllocationSize(4096),
        ]
    );
    // This client pads contexts without data by eight bytes more.
    let mut buffer = Vec::new();
    let built = CreateContexts::build(&mut buffer, contexts.iter().copied());
    assert!(built.iter().eq(contexts));
    assert_eq!(again(&message, |out| request.encode(out)), message);
}

#[test]
fn create_with_a_lease() {
    let message = hex(samples::CREATE_LEASE_REQUEST);
    let request = CreateRequest::decode(&message).unwrap();
    let lease = Lease {
        key: core::array::from_fn(|at| u8::try_from(at).unwrap()),
        state: LeaseState::all(),
        flags: LeaseFlags::empty(),
        version_2: Some(LeaseVersion2 { parent_key: [0; 16], epoch: 0 }),
    };
    assert_eq!(request.contexts.iter().collect::<Vec<_>>(), [RequestContext::Lease(lease)]);
}

#[test]
fn create_response() {
    let message = hex(samples::CREATE_RESPONSE);
    let (response, contexts) = CreateResponse::decode(&message).unwrap();
    let time = 0x01dd_7ce1_1333_54fb;
    let info = NetworkOpenInfo {
        creation_time: time,
        last_access_time: time,
        last_write_time: time,
        change_time: time,
        allocation_size: 0x1000,
        end_of_file: 0,
        attributes: FileAttributes::ARCHIVE,
    };
    let (oplock, flags) = (OplockLevel::NONE, CreateResponseFlags::empty());
    let action = CreateAction::CREATED;
    assert_eq!(response, CreateResponse { oplock, flags, action, info, file: FILE });
    let access = AccessMask::from_bits_retain(0x0017_019f);
    assert_eq!(
        contexts,
        [
            ResponseContext::MaximalAccess { status: Status::SUCCESS, access },
            ResponseContext::DiskId { file: 0x00a0_2221, volume: 0x27 },
        ]
    );
    assert_eq!(again(&message, |out| response.encode(contexts, out)), message);
}

#[test]
fn a_compound_and_its_responses() {
    let frame = hex(samples::COMPOUND_REQUEST);
    let elements: Vec<_> = Chain::decode(&frame).unwrap().iter().collect();
    let commands: Vec<_> = elements.iter().map(|element| element.header.command).collect();
    assert_eq!(commands, [Ok(Command::Create), Ok(Command::Close)]);
    assert!(!elements[0].header.flags.contains(HeaderFlags::RELATED));
    assert!(elements[1].header.flags.contains(HeaderFlags::RELATED));
    let create = CreateRequest::decode(&frame[elements[0].at.clone()]).unwrap();
    assert_eq!(create.options, CreateOptions::DELETE_ON_CLOSE);
    let close = CloseRequest::decode(&frame[elements[1].at.clone()]).unwrap();
    assert_eq!(close, CloseRequest { flags: CloseFlags::empty(), file: FileId::PREVIOUS });

    let frame = hex(samples::COMPOUND_RESPONSE);
    let mut out = Vec::new();
    let mut writer = ChainWriter::new(&out);
    for element in Chain::decode(&frame).unwrap().iter() {
        writer.begin(&mut out, &element.header);
        match element.header.command {
            Ok(Command::Create) => {
                let (response, _) = CreateResponse::decode(&frame[element.at]).unwrap();
                response.encode([], &mut out);
            }
            _ => CloseResponse::decode(&frame[element.at]).unwrap().encode(&mut out),
        }
    }
    writer.finish(&mut out);
    assert_eq!(out, frame);
}

#[test]
fn close_and_flush() {
    let message = hex(samples::CLOSE_REQUEST);
    let request = CloseRequest::decode(&message).unwrap();
    assert_eq!(request, CloseRequest { flags: CloseFlags::POSTQUERY_ATTRIB, file: FILE });
    assert_eq!(again(&message, |out| request.encode(out)), message);

    let message = hex(samples::CLOSE_RESPONSE);
    let response = CloseResponse::decode(&message).unwrap();
    assert_eq!(response.flags, CloseFlags::POSTQUERY_ATTRIB);
    assert_eq!((response.info.end_of_file, response.info.allocation_size), (11, 0x1000));
    assert_eq!(response.info.change_time, response.info.last_write_time);
    assert_eq!(response.info.attributes, FileAttributes::ARCHIVE);
    assert_eq!(again(&message, |out| response.encode(out)), message);

    let message = hex(samples::FLUSH_REQUEST);
    let request = FlushRequest::decode(&message).unwrap();
    assert_eq!(request, FlushRequest { file: FILE });
    assert_eq!(again(&message, |out| request.encode(out)), message);
}

#[test]
fn read() {
    let message = hex(samples::READ_REQUEST);
    let request = ReadRequest::decode(&message).unwrap();
    let expected = ReadRequest {
        flags: ReadFlags::empty(),
        length: 5,
        offset: 0,
        file: FILE,
        minimum_count: 0,
        channel: Channel::NONE,
        remaining_bytes: 0,
    };
    assert_eq!(request, expected);
    assert_eq!(request.payload_bytes(), 5);
    assert_eq!(again(&message, |out| request.encode(out)), message);

    let message = hex(samples::READ_RESPONSE);
    let response = ReadResponse::decode(&message).unwrap();
    assert_eq!(response, ReadResponse { data: b"hello", remaining: 0 });
    let encoded = again(&message, |out| {
        let reply = ReadReply::begin(out);
        out.extend_from_slice(b"hello");
        assert_eq!(reply.finish(out), 5);
    });
    assert_eq!(encoded, message);
}

#[test]
fn write() {
    let message = hex(samples::WRITE_REQUEST);
    let request = WriteRequest::decode(&message).unwrap();
    let data = Payload { bytes: b"hello world", at: 112 };
    let expected = WriteRequest {
        offset: 0,
        file: FILE,
        channel: Channel::NONE,
        remaining_bytes: 0,
        flags: WriteFlags::empty(),
        data,
    };
    assert_eq!(request, expected);
    assert_eq!(message[request.data.range()], *b"hello world");
    assert_eq!(request.payload_bytes(), 11);
    assert_eq!(again(&message, |out| request.encode(out)), message);

    let message = hex(samples::WRITE_RESPONSE);
    let response = WriteResponse::decode(&message).unwrap();
    assert_eq!(response, WriteResponse { count: 11 });
    assert_eq!(again(&message, |out| response.encode(out)), message);
}

#[test]
fn interim_response_and_cancel() {
    let mut message = hex(samples::INTERIM_RESPONSE);
    let header = Header::decode(&message).unwrap();
    assert_eq!((header.status, header.command), (Status::PENDING, Ok(Command::Write)));
    assert_eq!(header.tree, TreeOrAsync::Async(5));
    assert_eq!(ErrorResponse::decode(&message), Ok(ErrorResponse::Plain));
    // This server leaves any byte where there is no data.
    message[72] = 0;
    assert_eq!(again(&message, |out| ErrorResponse::Plain.encode(out)), message);

    let message = hex(samples::CANCEL_REQUEST);
    let header = Header::decode(&message).unwrap();
    assert_eq!(header.tree, TreeOrAsync::Async(13));
    assert_eq!(CancelRequest::decode(&message), Ok(Empty));
    assert_eq!(again(&message, |out| Empty.encode(out)), message);
    assert_eq!(EchoRequest::decode(&hex(samples::ECHO_REQUEST)), Ok(Empty));
}

#[test]
fn lock() {
    let message = hex(samples::LOCK_REQUEST);
    let request = LockRequest::decode(&message).unwrap();
    let flags = LockFlags::EXCLUSIVE | LockFlags::FAIL_IMMEDIATELY;
    let ranges: Vec<_> = request.ranges.iter().collect();
    assert_eq!(ranges, [LockRange { offset: 10, length: 20, flags }]);
    assert_eq!((request.ranges.len(), request.sequence), (1, 0));
    let encoded = again(&message, |out| {
        LockRequest::encode(request.sequence, request.file, &ranges, out);
    });
    assert_eq!(encoded, message);
}

#[test]
fn ioctl() {
    let message = hex(samples::IOCTL_REQUEST);
    let request = IoctlRequest::decode(&message).unwrap();
    assert_eq!(request.code, ControlCode::SRV_REQUEST_RESUME_KEY);
    assert_eq!((request.file, request.flags), (FILE, IoctlFlags::IS_FSCTL));
    assert_eq!((request.input.bytes, request.max_input, request.max_output), (&[][..], 0, 64));
    assert_eq!(request.payload_bytes(), 64);

    let message = hex(samples::IOCTL_RESPONSE);
    let response = IoctlResponse::decode(&message).unwrap();
    assert_eq!((response.code, response.file), (ControlCode::SRV_REQUEST_RESUME_KEY, FILE));
    assert_eq!(response.output.len(), 32);
    let encoded = again(&message, |out| {
        let reply = IoctlReply::begin(out);
        out.extend_from_slice(response.output);
        assert_eq!(reply.finish(out, response.code, response.file), 32);
    });
    assert_eq!(encoded, message);
}

#[test]
fn query_directory_and_change_notify() {
    let message = hex(samples::QUERY_DIRECTORY_REQUEST);
    let request = QueryDirectoryRequest::decode(&message).unwrap();
    assert_eq!((request.class, request.pattern), (0x25, &utf16("*")[..]));
    assert_eq!((request.flags, request.file_index), (QueryDirectoryFlags::empty(), 0));
    assert_eq!(request.max_output, 8 << 20);
    let charge = Header::decode(&message).unwrap().credit_charge;
    assert_eq!(charge_for(request.payload_bytes()), charge);
    assert_eq!(again(&message, |out| request.encode(out)), message);

    let message = hex(samples::CHANGE_NOTIFY_REQUEST);
    let request = ChangeNotifyRequest::decode(&message).unwrap();
    assert_eq!((request.flags, request.max_output), (ChangeNotifyFlags::empty(), 65_536));
    assert_eq!(request.filter, CompletionFilter::FILE_NAME);
    assert_eq!(again(&message, |out| request.encode(out)), message);
}

#[test]
fn query_info() {
    let message = hex(samples::QUERY_INFO_REQUEST);
    let request = QueryInfoRequest::decode(&message).unwrap();
    assert_eq!((request.info_type, request.class), (InfoType::FILESYSTEM, 3));
    assert_eq!((request.max_output, request.input.bytes), (0xffff, &[][..]));
    assert_eq!(request.security, SecurityInformation::empty());
    assert_eq!(request.payload_bytes(), 0xffff);

    let message = hex(samples::QUERY_INFO_RESPONSE);
    let info = output(&message).unwrap();
    assert_eq!(info, &message[72..]);
    let encoded = again(&message, |out| {
        let reply = OutputReply::begin(out);
        assert_eq!(reply.buffer(), out.len());
        out.extend_from_slice(info);
        assert_eq!(reply.finish(out), 24);
    });
    assert_eq!(encoded, message);
}

#[test]
fn set_info() {
    let message = hex(samples::SET_INFO_REQUEST);
    let request = SetInfoRequest::decode(&message).unwrap();
    assert_eq!((request.info_type, request.class), (InfoType::FILE, 13));
    assert_eq!(request.info, Payload { bytes: &[1], at: 96 });
    assert_eq!(again(&message, |out| request.encode(out)), message);
}

#[test]
fn a_failure_with_the_size_that_would_do() {
    let message = hex(samples::BUFFER_TOO_SMALL_RESPONSE);
    let response = ErrorResponse::BufferTooSmall { needed: 0x98 };
    assert_eq!(ErrorResponse::decode(&message), Ok(response));
    // Here it goes out in a context (§2.2.2.1).
    let encoded = again(&message, |out| response.encode(out));
    assert_eq!(encoded[64..], hex("0900 01 00 0c000000 04000000 00000000 98000000"));
    assert_eq!(ErrorResponse::decode(&encoded), Ok(response));
}

#[test]
fn a_failure_at_a_symbolic_link() {
    let (substitute, print) = (utf16(r"..\to"), utf16("to"));
    let response = ErrorResponse::Symlink(SymlinkError {
        unparsed_len: 6,
        substitute: &substitute,
        print: &print,
        is_relative: true,
    });
    let mut message = hex(samples::BUFFER_TOO_SMALL_RESPONSE);
    message[8..12].copy_from_slice(&Status::STOPPED_ON_SYMLINK.0.to_le_bytes());
    let encoded = again(&message, |out| response.encode(out));
    let body = hex("0900 01 00 32000000 2a000000 00000000
         26000000 53594d4c 0c0000a0 1a00 0600 0000 0a00 0a00 0400 01000000");
    assert_eq!(encoded[64..108], body);
    assert_eq!(encoded[108..], [substitute.clone(), print.clone()].concat());
    assert_eq!(ErrorResponse::decode(&encoded), Ok(response));
}

#[test]
fn a_sealed_frame() {
    let frame = hex(samples::SEALED_FRAME);
    assert_eq!(Protocol::of(&frame), Ok(Protocol::Sealed));
}

#[test]
fn an_empty_part_may_have_any_offset() {
    let mut message = hex(samples::SET_INFO_REQUEST);
    message[68..72].copy_from_slice(&[0; 4]);
    message[72..74].copy_from_slice(&[0xff; 2]);
    assert_eq!(SetInfoRequest::decode(&message).unwrap().info.bytes, []);
}

#[test]
fn a_part_may_not_reach_into_the_fixed_part_or_beyond_the_end() {
    let message = hex(samples::WRITE_REQUEST);
    for (at, len) in [(0, 11), (64, 11), (111, 11), (113, 11), (112, 12), (0xffff, u32::MAX)] {
        let mut message = message.clone();
        message[66..68].copy_from_slice(&u16::to_le_bytes(at));
        message[68..72].copy_from_slice(&u32::to_le_bytes(len));
        let (offset, len) = (at.into(), len as usize);
        let error = WireError::OutOfPlace { what: "data to write", offset, len };
        assert_eq!(WriteRequest::decode(&message), Err(error));
    }
}

#[test]
fn names_have_an_even_length() {
    let mut message = hex(samples::CREATE_REQUEST);
    message[110] = 11;
    let error = WireError::BadLength { what: "name of a file", len: 11 };
    assert_eq!(CreateRequest::decode(&message), Err(error));
}

#[test]
fn a_request_names_its_structure_size() {
    for (sample, decode) in properties::REQUESTS {
        let mut message = hex(sample);
        assert!(decode(&message), "{sample}");
        message[64] ^= 2;
        assert!(!decode(&message), "{sample}");
    }
}
