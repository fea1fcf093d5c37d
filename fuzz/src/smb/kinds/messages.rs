//! Messages: bodies behind a header.

use super::super::message;
use weir_smb::limits::{CREATE_CONTEXTS_MAX, LOCK_RANGES_MAX, NEGOTIATE_CONTEXTS_MAX};
use weir_smb::wire::{
    ChangeNotifyRequest, CloseRequest, CloseResponse, Command, CreateContexts, CreateRequest,
    CreateResponse, Empty, ErrorResponse, FlushRequest, HEADER_BYTES, Header, IoctlReply,
    IoctlRequest, IoctlResponse, LockRequest, NegotiateContexts, NegotiateRequest,
    NegotiateResponse, OplockBreakRequest, OutputReply, QueryDirectoryRequest, QueryInfoRequest,
    ReadReply, ReadRequest, ReadResponse, SessionSetupRequest, SessionSetupResponse,
    SetInfoRequest, SetInfoResponse, Status, TreeConnectRequest, TreeConnectResponse, WriteRequest,
    WriteResponse, output,
};

/// A message that `encode` gives its body.
fn whole(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(&super::super::header(Command::Echo), encode)
}

/// The body of a message.
fn body(mut message: Vec<u8>) -> Vec<u8> {
    message.split_off(HEADER_BYTES)
}

/// Makes the functions of messages that are one type with both directions. A variable part is moved
/// to the place where the encoder puts it.
macro_rules! both {
    ($($name:ident $type:ident $($part:ident $at:literal)?;)*) => {
        $(
            pub(super) fn $name(bytes: &[u8]) -> Option<Vec<u8>> {
                let message = whole(|out| out.extend_from_slice(bytes));
                let value = $type::decode(&message).ok()?;
                $(
                    assert_eq!(message.get(value.$part.range()), Some(value.$part.bytes));
                    let mut value = value;
                    value.$part.at = $at;
                )?
                let again = whole(|out| value.encode(out));
                assert_eq!($type::decode(&again), Ok(value));
                Some(body(again))
            }
        )*
    };
}

both! {
    session_setup_request SessionSetupRequest token 88;
    tree_connect_request TreeConnectRequest;
    close_request CloseRequest;
    flush_request FlushRequest;
    read_request ReadRequest;
    write_request WriteRequest data 112;
    ioctl_request IoctlRequest input 120;
    empty Empty;
    query_directory_request QueryDirectoryRequest;
    change_notify_request ChangeNotifyRequest;
    query_info_request QueryInfoRequest input 104;
    set_info_request SetInfoRequest info 96;
    session_setup_response SessionSetupResponse;
    tree_connect_response TreeConnectResponse;
    close_response CloseResponse;
    write_response WriteResponse;
    set_info_response SetInfoResponse;
}

pub(super) fn negotiate_request(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = NegotiateRequest::decode(&message).ok()?;
    negotiate_contexts(&value.contexts);
    let again = whole(|out| value.encode(out));
    assert_eq!(NegotiateRequest::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn negotiate_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = NegotiateResponse::decode(&message).ok()?;
    negotiate_contexts(&value.contexts);
    let again = whole(|out| value.encode(out));
    assert_eq!(NegotiateResponse::decode(&again), Ok(value));
    Some(body(again))
}

/// The contexts survive one by one, and so does the one that is there twice.
fn negotiate_contexts(contexts: &NegotiateContexts<'_>) {
    assert!(contexts.iter().count() <= NEGOTIATE_CONTEXTS_MAX);
    let mut buffer = Vec::new();
    let built = NegotiateContexts::build(&mut buffer, contexts.iter());
    assert!(built.iter().eq(contexts.iter()));
    assert_eq!(built.repeated(), contexts.repeated());
}

pub(super) fn create_request(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = CreateRequest::decode(&message).ok()?;
    assert!(value.contexts.iter().count() <= CREATE_CONTEXTS_MAX);
    let mut buffer = Vec::new();
    let built = CreateContexts::build(&mut buffer, value.contexts.iter());
    assert!(built.iter().eq(value.contexts.iter()));
    let again = whole(|out| value.encode(out));
    assert_eq!(CreateRequest::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn create_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = CreateResponse::decode(&message).ok()?;
    assert!(value.1.len() <= CREATE_CONTEXTS_MAX);
    let again = whole(|out| value.0.encode(value.1.iter().copied(), out));
    assert_eq!(CreateResponse::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn lock_request(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = LockRequest::decode(&message).ok()?;
    let ranges: Vec<_> = value.ranges.iter().collect();
    assert!((1..=LOCK_RANGES_MAX).contains(&ranges.len()) && ranges.len() == value.ranges.len());
    let again = whole(|out| LockRequest::encode(value.sequence, value.file, &ranges, out));
    let decoded = LockRequest::decode(&again).expect("our requests can be read");
    assert_eq!((decoded.sequence, decoded.file), (value.sequence, value.file));
    assert!(decoded.ranges.iter().eq(ranges));
    Some(body(again))
}

pub(super) fn oplock_break_request(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = OplockBreakRequest::decode(&message).ok()?;
    let again = whole(|out| match value {
        OplockBreakRequest::Oplock(one) => one.encode(out),
        OplockBreakRequest::Lease(one) => one.encode(out),
    });
    assert_eq!(OplockBreakRequest::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn read_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let ReadResponse { data, .. } = ReadResponse::decode(&message).ok()?;
    let again = whole(|out| {
        let reply = ReadReply::begin(out);
        out.extend_from_slice(data);
        reply.finish(out);
    });
    assert_eq!(ReadResponse::decode(&again), Ok(ReadResponse { data, remaining: 0 }));
    Some(body(again))
}

pub(super) fn ioctl_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let value = IoctlResponse::decode(&message).ok()?;
    let again = whole(|out| {
        let reply = IoctlReply::begin(out);
        out.extend_from_slice(value.output);
        reply.finish(out, value.code, value.file);
    });
    assert_eq!(IoctlResponse::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn output_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = whole(|out| out.extend_from_slice(bytes));
    let buffer = output(&message).ok()?;
    let again = whole(|out| {
        let reply = OutputReply::begin(out);
        out.extend_from_slice(buffer);
        reply.finish(out);
    });
    assert_eq!(output(&again), Ok(buffer));
    Some(body(again))
}

pub(super) fn plain_error(bytes: &[u8]) -> Option<Vec<u8>> {
    error(Status::ACCESS_DENIED, bytes)
}

pub(super) fn too_small_error(bytes: &[u8]) -> Option<Vec<u8>> {
    error(Status::BUFFER_TOO_SMALL, bytes)
}

pub(super) fn symlink_error(bytes: &[u8]) -> Option<Vec<u8>> {
    error(Status::STOPPED_ON_SYMLINK, bytes)
}

fn error(status: Status, bytes: &[u8]) -> Option<Vec<u8>> {
    let header = Header { status, ..super::super::header(Command::Create) };
    let sent = message(&header, |out| out.extend_from_slice(bytes));
    let value = ErrorResponse::decode(&sent).ok()?;
    let again = message(&header, |out| value.encode(out));
    assert_eq!(ErrorResponse::decode(&again), Ok(value));
    Some(body(again))
}

pub(super) fn header(bytes: &[u8]) -> Option<Vec<u8>> {
    let header = Header::decode(bytes).ok()?;
    let again = header.to_bytes();
    assert_eq!(Header::decode(&again), Ok(header));
    Some(again.to_vec())
}
