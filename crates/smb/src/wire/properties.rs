//! Properties of every message: what is written is read back the same, and no bytes make a decoder
//! panic.

use super::samples::{self, hex};
use super::*;
use crate::limits::CREATE_CONTEXTS_MAX;
use alloc::vec::Vec;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;

type Accepts = fn(&[u8]) -> bool;

/// Every kind of request, as a sample and whether its decoder accepts given bytes. The items of
/// lists are read.
pub(super) const REQUESTS: [(&str, Accepts); 17] = [
    (samples::NEGOTIATE_REQUEST, |bytes| {
        NegotiateRequest::decode(bytes)
            .inspect(|request| {
                assert_eq!(request.contexts.iter().count(), usize::from(request.contexts.count()));
                let kinds: Vec<_> = request.contexts.iter().map(|one| one.kind()).collect();
                assert!(request.contexts.repeated().is_none_or(|kind| kinds.contains(&kind)));
            })
            .is_ok()
    }),
    (samples::SESSION_SETUP_REQUEST, |bytes| {
        SessionSetupRequest::decode(bytes)
            .inspect(|request| {
                assert_eq!(bytes.get(request.token.range()), Some(request.token.bytes));
            })
            .is_ok()
    }),
    (samples::TREE_CONNECT_REQUEST, |bytes| TreeConnectRequest::decode(bytes).is_ok()),
    (samples::CREATE_REQUEST, |bytes| {
        CreateRequest::decode(bytes)
            .inspect(|request| assert!(request.contexts.iter().count() <= CREATE_CONTEXTS_MAX))
            .is_ok()
    }),
    (samples::CREATE_LEASE_REQUEST, |bytes| {
        CreateRequest::decode(bytes)
            .inspect(|request| assert!(request.contexts.iter().count() <= CREATE_CONTEXTS_MAX))
            .is_ok()
    }),
    (samples::CLOSE_REQUEST, |bytes| CloseRequest::decode(bytes).is_ok()),
    (samples::FLUSH_REQUEST, |bytes| FlushRequest::decode(bytes).is_ok()),
    (samples::READ_REQUEST, |bytes| ReadRequest::decode(bytes).is_ok()),
    (samples::WRITE_REQUEST, |bytes| {
        WriteRequest::decode(bytes)
            .inspect(|request| {
                assert_eq!(bytes.get(request.data.range()), Some(request.data.bytes));
            })
            .is_ok()
    }),
    (samples::LOCK_REQUEST, |bytes| {
        LockRequest::decode(bytes)
            .inspect(|request| assert_eq!(request.ranges.iter().count(), request.ranges.len()))
            .is_ok()
    }),
    (samples::IOCTL_REQUEST, |bytes| {
        IoctlRequest::decode(bytes)
            .inspect(|request| assert!(request.payload_bytes() >= request.max_output))
            .is_ok()
    }),
    (samples::CANCEL_REQUEST, |bytes| CancelRequest::decode(bytes).is_ok()),
    (samples::ECHO_REQUEST, |bytes| EchoRequest::decode(bytes).is_ok()),
    (samples::QUERY_DIRECTORY_REQUEST, |bytes| QueryDirectoryRequest::decode(bytes).is_ok()),
    (samples::CHANGE_NOTIFY_REQUEST, |bytes| ChangeNotifyRequest::decode(bytes).is_ok()),
    (samples::QUERY_INFO_REQUEST, |bytes| QueryInfoRequest::decode(bytes).is_ok()),
    (samples::SET_INFO_REQUEST, |bytes| SetInfoRequest::decode(bytes).is_ok()),
];

/// Every other decoder.
const OTHERS: [Accepts; 17] = [
    |bytes| {
        Chain::decode(bytes)
            .inspect(|chain| {
                assert_eq!(chain.iter().count(), chain.elements());
                assert!(chain.iter().all(|element| bytes.get(element.at).is_some()));
            })
            .is_ok()
    },
    |bytes| netbios::next(bytes).is_ok(),
    |bytes| Protocol::of(bytes).is_ok(),
    |bytes| Smb1Negotiate::decode(bytes).is_ok(),
    |bytes| OplockBreakRequest::decode(bytes).is_ok(),
    |bytes| NegotiateResponse::decode(bytes).is_ok(),
    |bytes| SessionSetupResponse::decode(bytes).is_ok(),
    |bytes| TreeConnectResponse::decode(bytes).is_ok(),
    |bytes| CreateResponse::decode(bytes).is_ok(),
    |bytes| CloseResponse::decode(bytes).is_ok(),
    |bytes| ReadResponse::decode(bytes).is_ok(),
    |bytes| WriteResponse::decode(bytes).is_ok(),
    |bytes| IoctlResponse::decode(bytes).is_ok(),
    |bytes| SetInfoResponse::decode(bytes).is_ok(),
    |bytes| output(bytes).is_ok(),
    |bytes| ErrorResponse::decode(bytes).is_ok(),
    |bytes| OplockBreak::decode(bytes).is_ok(),
];

/// Shows `bytes` to every decoder.
fn decode_all(bytes: &[u8]) {
    for decode in REQUESTS.iter().map(|(_, decode)| decode).chain(&OTHERS) {
        decode(bytes);
    }
}

/// A header, for messages whose body matters.
fn message(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = hex(samples::ECHO_REQUEST);
    out.truncate(HEADER_BYTES);
    encode(&mut out);
    out
}

prop_compose! {
    fn file_id()(persistent: u64, volatile: u64) -> FileId {
        FileId { persistent, volatile }
    }
}

prop_compose! {
    fn file_info()(
        [creation_time, last_access_time, last_write_time, change_time] in any::<[u64; 4]>(),
        [allocation_size, end_of_file] in any::<[u64; 2]>(),
        attributes: u32,
    ) -> NetworkOpenInfo {
        NetworkOpenInfo {
            creation_time,
            last_access_time,
            last_write_time,
            change_time,
            allocation_size,
            end_of_file,
            attributes: FileAttributes::from_bits_retain(attributes),
        }
    }
}

/// UTF-16 of up to 40 units, any of them.
fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u16>(), 0..40)
        .prop_map(|units| units.into_iter().flat_map(u16::to_le_bytes).collect())
}

/// One to nine numbers.
fn numbers() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 2]>(), 1..10).prop_map(|numbers| numbers.concat())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..60)
}

/// `bytes` as the payload of a message whose fixed part ends at `at`.
fn payload(bytes: &[u8], at: usize) -> Payload<'_> {
    Payload { bytes, at }
}

prop_compose! {
    fn lease()(
        key: [u8; 16],
        state: u32,
        flags: u32,
        more in option::of(any::<([u8; 16], u16)>()),
    ) -> Lease {
        let version_2 = more.map(|(parent_key, epoch)| LeaseVersion2 { parent_key, epoch });
        let state = LeaseState::from_bits_retain(state);
        Lease { key, state, flags: LeaseFlags::from_bits_retain(flags), version_2 }
    }
}

/// Writes `$value` as a message, reads it back and compares.
macro_rules! survives {
    ($type:ident, $value:expr) => {{
        let value = $value;
        let message = message(|out| value.encode(out));
        prop_assert_eq!($type::decode(&message), Ok(value));
    }};
}

proptest! {
    #[test]
    fn headers(
        numbers: [u16; 3],
        (status, flags, next_command) in any::<(u32, u32, u32)>(),
        message_id: u64,
        (tree_id, async_id) in any::<(u32, u64)>(),
        session_id: u64,
        signature: [u8; 16],
    ) {
        let flags = HeaderFlags::from_bits_retain(flags);
        let is_async = flags.contains(HeaderFlags::ASYNC);
        let header = Header {
            credit_charge: numbers[0],
            status: Status(status),
            command: Command::of(numbers[1]),
            credits: numbers[2],
            flags,
            next_command,
            message_id,
            tree: if is_async { TreeOrAsync::Async(async_id) } else { TreeOrAsync::Tree(tree_id) },
            session_id,
            signature,
        };
        prop_assert_eq!(Header::decode(&header.to_bytes()), Ok(header));
    }

    #[test]
    fn chains(bodies in vec(0usize..40, 1..9)) {
        let mut out = Vec::new();
        let mut writer = ChainWriter::new(&out);
        let header = Header::decode(&hex(samples::ECHO_REQUEST)).unwrap();
        for body in &bodies {
            writer.begin(&mut out, &header);
            out.resize(out.len() + body, 7);
        }
        writer.finish(&mut out);
        let found: Vec<_> = Chain::decode(&out).unwrap().iter().map(|one| one.at).collect();
        prop_assert_eq!(found.len(), bodies.len());
        for (at, body) in found.iter().zip(&bodies) {
            let padded = if bodies.len() == 1 { *body } else { body.next_multiple_of(8) };
            prop_assert_eq!(at.len(), HEADER_BYTES + padded);
        }
        prop_assert_eq!(found.last().unwrap().end, out.len());
    }

    #[test]
    fn negotiate_requests(
        (security_mode, capabilities, client_guid) in any::<(u16, u32, [u8; 16])>(),
        mut dialects in numbers(),
        (hashes, salt, ciphers, signing) in (numbers(), bytes(), numbers(), numbers()),
        (compression, rdma, net_name, data) in (numbers(), numbers(), name(), bytes()),
        bits: u32,
        is_3_1_1: bool,
    ) {
        if is_3_1_1 {
            dialects.extend_from_slice(&[0x11, 0x03]);
        }
        let contexts = [
            NegotiateContext::Other { kind: ContextType(0x100), data: &data },
            NegotiateContext::PreauthIntegrity { hashes: Numbers::new(&hashes), salt: &salt },
            NegotiateContext::Encryption(Numbers::new(&ciphers)),
            NegotiateContext::Compression {
                flags: CompressionFlags::from_bits_retain(bits),
                algorithms: Numbers::new(&compression),
            },
            NegotiateContext::NetName(&net_name),
            NegotiateContext::Transport(TransportFlags::from_bits_retain(bits)),
            NegotiateContext::RdmaTransform(Numbers::new(&rdma)),
            NegotiateContext::Signing(Numbers::new(&signing)),
        ];
        let dialects = Numbers::new(&dialects);
        let mut buffer = Vec::new();
        let with_contexts = dialects.contains(Dialect::SMB_3_1_1.0);
        let built =
            NegotiateContexts::build(&mut buffer, contexts.into_iter().filter(|_| with_contexts));
        prop_assert!(built.iter().eq(contexts.into_iter().filter(|_| with_contexts)));
        survives!(NegotiateRequest, NegotiateRequest {
            security_mode: SecurityMode::from_bits_retain(security_mode),
            capabilities: Capabilities::from_bits_retain(capabilities),
            client_guid,
            dialects,
            contexts: built,
        });
        survives!(NegotiateResponse, NegotiateResponse {
            security_mode: SecurityMode::from_bits_retain(security_mode),
            dialect: if with_contexts { Dialect::SMB_3_1_1 } else { Dialect::SMB_2_ANY },
            server_guid: client_guid,
            capabilities: Capabilities::from_bits_retain(capabilities),
            max_transact_size: bits,
            max_read_size: !bits,
            max_write_size: capabilities,
            system_time: u64::from(bits) << 20,
            start_time: 3,
            token: &data,
            contexts: built,
        });
    }

    #[test]
    fn session_setups(
        (flags, security_mode, session_flags) in any::<(u8, u8, u16)>(),
        capabilities: u32,
        previous_session_id: u64,
        token in bytes(),
    ) {
        survives!(SessionSetupRequest, SessionSetupRequest {
            flags: SessionSetupFlags::from_bits_retain(flags),
            security_mode: SecurityMode::from_bits_retain(security_mode.into()),
            capabilities: Capabilities::from_bits_retain(capabilities),
            previous_session_id,
            token: payload(&token, 88),
        });
        survives!(SessionSetupResponse, SessionSetupResponse {
            flags: SessionFlags::from_bits_retain(session_flags),
            token: &token,
        });
    }

    #[test]
    fn tree_connects(
        (flags, share_type) in any::<(u16, u8)>(),
        [share_flags, capabilities, access] in any::<[u32; 3]>(),
        path in name(),
    ) {
        survives!(TreeConnectRequest, TreeConnectRequest {
            flags: TreeConnectFlags::from_bits_retain(flags),
            path: &path,
        });
        survives!(TreeConnectResponse, TreeConnectResponse {
            share_type: ShareType(share_type),
            share_flags: ShareFlags::from_bits_retain(share_flags),
            capabilities: ShareCapabilities::from_bits_retain(capabilities),
            maximal_access: AccessMask::from_bits_retain(access),
        });
    }

    #[test]
    fn create_requests(
        (oplock, impersonation) in any::<(u8, u32)>(),
        [access, attributes, share, options] in any::<[u32; 4]>(),
        disposition in 0usize..6,
        name in name(),
        kinds in vec(0usize..9, 0..12),
        (data, lease, number) in (bytes(), lease(), any::<u64>()),
    ) {
        let one_of_each = [
            RequestContext::ExtendedAttributes(&data),
            RequestContext::SecurityDescriptor(&data),
            RequestContext::AllocationSize(number),
            RequestContext::MaximalAccess(None),
            RequestContext::MaximalAccess(Some(number)),
            RequestContext::TimeWarp(number),
            RequestContext::DiskId,
            RequestContext::Lease(lease),
            RequestContext::Other { name: b"a GUID of 16 byt", data: &data },
        ];
        let contexts = || kinds.iter().map(|kind| one_of_each[*kind]);
        let mut buffer = Vec::new();
        let built = CreateContexts::build(&mut buffer, contexts());
        prop_assert!(built.iter().eq(contexts()));
        survives!(CreateRequest, CreateRequest {
            oplock: OplockLevel(oplock),
            impersonation: ImpersonationLevel(impersonation),
            desired_access: AccessMask::from_bits_retain(access),
            attributes: FileAttributes::from_bits_retain(attributes),
            share_access: ShareAccess::from_bits_retain(share),
            disposition: [
                CreateDisposition::Supersede,
                CreateDisposition::Open,
                CreateDisposition::Create,
                CreateDisposition::OpenIf,
                CreateDisposition::Overwrite,
                CreateDisposition::OverwriteIf,
            ][disposition],
            options: CreateOptions::from_bits_retain(options),
            name: &name,
            contexts: built,
        });
    }

    #[test]
    fn create_responses(
        (oplock, flags, action) in any::<(u8, u8, u32)>(),
        (info, file) in (file_info(), file_id()),
        (access, status) in any::<(u32, u32)>(),
        (number, volume) in any::<(u64, u64)>(),
        kinds in vec(any::<bool>(), 0..4),
    ) {
        let access = AccessMask::from_bits_retain(access);
        let contexts: Vec<_> = kinds
            .iter()
            .map(|is_access| match is_access {
                true => ResponseContext::MaximalAccess { status: Status(status), access },
                false => ResponseContext::DiskId { file: number, volume },
            })
            .collect();
        let response = CreateResponse {
            oplock: OplockLevel(oplock),
            flags: CreateResponseFlags::from_bits_retain(flags),
            action: CreateAction(action),
            info,
            file,
        };
        let message = message(|out| response.encode(contexts.iter().copied(), out));
        prop_assert_eq!(CreateResponse::decode(&message), Ok((response, contexts)));
    }

    #[test]
    fn messages_of_fixed_size(
        (file, info) in (file_id(), file_info()),
        (flags, level) in any::<(u16, u8)>(),
        (number, bits) in any::<(u32, u32)>(),
        key: [u8; 16],
    ) {
        survives!(Empty, Empty);
        survives!(SetInfoResponse, SetInfoResponse);
        survives!(FlushRequest, FlushRequest { file });
        survives!(CloseRequest, CloseRequest { flags: CloseFlags::from_bits_retain(flags), file });
        survives!(CloseResponse, CloseResponse { flags: CloseFlags::from_bits_retain(flags), info });
        survives!(WriteResponse, WriteResponse { count: number });
        survives!(ChangeNotifyRequest, ChangeNotifyRequest {
            flags: ChangeNotifyFlags::from_bits_retain(flags),
            max_output: number,
            file,
            filter: CompletionFilter::from_bits_retain(bits),
        });
        let oplock = OplockBreak { level: OplockLevel(level), file };
        survives!(OplockBreak, oplock);
        let lease = LeaseBreakAck { key, state: LeaseState::from_bits_retain(bits) };
        survives!(LeaseBreakAck, lease);
        let request = OplockBreakRequest::decode(&message(|out| oplock.encode(out)));
        prop_assert_eq!(request, Ok(OplockBreakRequest::Oplock(oplock)));
        let request = OplockBreakRequest::decode(&message(|out| lease.encode(out)));
        prop_assert_eq!(request, Ok(OplockBreakRequest::Lease(lease)));
    }

    #[test]
    fn reads_and_writes(
        file in file_id(),
        (offset, flags) in any::<(u64, u8)>(),
        [length, minimum_count, channel, remaining_bytes] in any::<[u32; 4]>(),
        data in bytes(),
    ) {
        survives!(ReadRequest, ReadRequest {
            flags: ReadFlags::from_bits_retain(flags),
            length,
            offset,
            file,
            minimum_count,
            channel: Channel(channel),
            remaining_bytes,
        });
        survives!(WriteRequest, WriteRequest {
            offset,
            file,
            channel: Channel(channel),
            remaining_bytes,
            flags: WriteFlags::from_bits_retain(length),
            data: payload(&data, 112),
        });
        let message = message(|out| {
            let reply = ReadReply::begin(out);
            out.extend_from_slice(&data);
            reply.finish(out);
        });
        prop_assert_eq!(ReadResponse::decode(&message).unwrap().data, &data);
    }

    #[test]
    fn locks(file in file_id(), sequence: u32, raw in vec(any::<(u64, u64, u32)>(), 1..20)) {
        let ranges: Vec<_> = raw
            .into_iter()
            .map(|(offset, length, flags)| LockRange {
                offset,
                length,
                flags: LockFlags::from_bits_retain(flags),
            })
            .collect();
        let message = message(|out| LockRequest::encode(sequence, file, &ranges, out));
        let request = LockRequest::decode(&message).unwrap();
        prop_assert_eq!((request.file, request.sequence), (file, sequence));
        prop_assert!(request.ranges.iter().eq(ranges));
    }

    #[test]
    fn buffers(
        file in file_id(),
        [code, max_input, output_count, max_output, bits] in any::<[u32; 5]>(),
        (info_type, class, flags) in any::<(u8, u8, u8)>(),
        (input, pattern) in (bytes(), name()),
    ) {
        survives!(IoctlRequest, IoctlRequest {
            code: ControlCode(code),
            file,
            input: payload(&input, 120),
            max_input,
            output_count,
            max_output,
            flags: IoctlFlags::from_bits_retain(bits),
        });
        survives!(QueryDirectoryRequest, QueryDirectoryRequest {
            class,
            flags: QueryDirectoryFlags::from_bits_retain(flags),
            file_index: code,
            file,
            pattern: &pattern,
            max_output,
        });
        survives!(QueryInfoRequest, QueryInfoRequest {
            info_type: InfoType(info_type),
            class,
            max_output,
            input: payload(&input, 104),
            security: SecurityInformation::from_bits_retain(bits),
            flags: QueryInfoFlags::from_bits_retain(code),
            file,
        });
        survives!(SetInfoRequest, SetInfoRequest {
            info_type: InfoType(info_type),
            class,
            info: payload(&input, 96),
            security: SecurityInformation::from_bits_retain(bits),
            file,
        });
        let response = message(|out| {
            let reply = IoctlReply::begin(out);
            out.extend_from_slice(&input);
            reply.finish(out, ControlCode(code), file);
        });
        let expected = IoctlResponse { code: ControlCode(code), file, output: &input };
        prop_assert_eq!(IoctlResponse::decode(&response), Ok(expected));
        let response = message(|out| {
            let reply = OutputReply::begin(out);
            out.extend_from_slice(&input);
            reply.finish(out);
        });
        prop_assert_eq!(output(&response), Ok(&input[..]));
    }

    #[test]
    fn failures(
        needed: u32,
        unparsed_len: u16,
        (substitute, print) in (name(), name()),
        is_relative: bool,
    ) {
        let link = SymlinkError { unparsed_len, substitute: &substitute, print: &print, is_relative };
        for (status, response) in [
            (Status::ACCESS_DENIED, ErrorResponse::Plain),
            (Status::BUFFER_TOO_SMALL, ErrorResponse::BufferTooSmall { needed }),
            (Status::STOPPED_ON_SYMLINK, ErrorResponse::Symlink(link)),
        ] {
            let mut message = message(|out| response.encode(out));
            message[8..12].copy_from_slice(&status.0.to_le_bytes());
            prop_assert_eq!(ErrorResponse::decode(&message), Ok(response));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..400)) {
        decode_all(&bytes);
        // Most bytes fail at the header; behind a good one they reach the bodies.
        decode_all(&message(|out| out.extend_from_slice(&bytes)));
        for size in [4u8, 9, 16, 17, 24, 25, 33, 36, 41, 48, 49, 57, 60, 65, 89] {
            decode_all(&message(|out| {
                out.extend_from_slice(&[size, 0]);
                out.extend_from_slice(&bytes);
            }));
        }
    }

    #[test]
    fn mutated_messages_do_no_harm(
        sample in 0..samples::ALL.len(),
        changes in vec((any::<Index>(), prop_oneof![
            any::<u8>(), Just(0), Just(1), Just(8), Just(0x7f), Just(0xff),
        ]), 0..8),
        len in any::<Index>(),
        is_cut: bool,
    ) {
        let mut message = hex(samples::ALL[sample].1);
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        if is_cut {
            message.truncate(len.index(message.len()));
        }
        decode_all(&message);
    }
}

#[test]
fn truncated_requests_are_refused_or_lack_only_padding() {
    for (sample, decode) in REQUESTS {
        let message = hex(sample);
        let shortest = (0..=message.len()).find(|len| decode(&message[..*len])).unwrap();
        assert!(message.len() - shortest <= 8, "{sample}: {shortest}");
        assert!((shortest..message.len()).all(|len| decode(&message[..len])), "{sample}");
    }
}
