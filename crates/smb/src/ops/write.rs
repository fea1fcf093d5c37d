//! WRITE (MS-SMB2 §3.3.5.13): the store takes the data where it was received.

use super::access::WRITES;
use super::stable::stabilize;
use super::{Context, Done, Outcome};
use crate::host::Host;
use crate::limits::IO_BYTES_MAX;
use crate::open::Open;
use crate::wire::{Channel, Status, WriteFlags, WriteRequest, WriteResponse};
use alloc::vec::Vec;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::{Stability, WriteHow};
use weir_core::{FileKind, Store};
use weir_state::{Mode, Range};

#[inline]
pub(super) async fn write<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = WriteRequest::decode(cx.message)?;
    if request.payload_bytes() > IO_BYTES_MAX || request.channel != Channel::NONE {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let open = cx.open(request.file)?;
    may_write(&open, &request)?;
    let mut count = 0;
    if let Some(range) = Range::new(request.offset, request.payload_bytes().into()) {
        let _io = cx.host.begin_io(&open, Some(range), Mode::Exclusive).await?;
        let data = cx.message.slice(request.data.range());
        let through = open.is_write_through();
        let stability = stability(through, request.flags);
        let how = WriteHow { stability, gives_change: false };
        count = cx.host.store().write(&open.object, request.offset, data, how).await?.count;
        // An open for write-through has a stable name already.
        if stability == Stability::FileSync && !through {
            stabilize(cx.host, &open).await?;
        }
    }
    WriteResponse { count }.encode(out);
    Ok(Done::on(open.id).moved(count.into()))
}

/// MS-FSA §2.1.5.4: what the request needs of its open, and where it may be. The right to append
/// is the right to write: POSIX has them undivided, and Windows writes where the client says too.
#[inline]
fn may_write<O>(open: &Open<O>, request: &WriteRequest<'_>) -> Result<(), Status> {
    if open.kind != FileKind::Regular {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    if !open.granted.intersects(WRITES) {
        return Err(Status::ACCESS_DENIED);
    }
    // An offset of all ones, which means the end of the file to Windows' own programs, is among
    // those that are too large.
    match request.offset.checked_add(request.payload_bytes().into()) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

#[inline]
const fn stability(through: bool, flags: WriteFlags) -> Stability {
    if through || flags.contains(WriteFlags::WRITE_THROUGH) {
        Stability::FileSync
    } else {
        Stability::Unstable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::RangeLock;
    use crate::ops::set_info::set_info;
    use crate::ops::testing::{Reply, TestHost, TestServer};
    use crate::wire::{
        AccessMask, Command, CreateOptions, FileId, InfoType, Payload, SecurityInformation,
        SetInfoRequest,
    };
    use weir_core::testing::block_on;
    use weir_core::{Credentials, FsError, SetAttr};
    use weir_state::{Sharing, Span};

    fn of(file: FileId, offset: u64, bytes: &[u8]) -> WriteRequest<'_> {
        WriteRequest {
            offset,
            file,
            channel: Channel::NONE,
            remaining_bytes: 0,
            flags: WriteFlags::empty(),
            data: Payload { bytes, at: 0 },
        }
    }

    fn send(host: &TestHost, request: WriteRequest<'_>) -> Reply {
        let reply = host.call(Command::Write, |out| request.encode(out), write);
        assert_eq!(host.server.io.get(), 0, "nothing is under way any more");
        reply
    }

    fn opened(data: &[u8]) -> (TestHost, FileId) {
        let server = TestServer::new();
        server.file("f", data, 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::WRITE_DATA);
        (ann, id)
    }

    #[test]
    fn an_open_keeps_its_right_to_write_whatever_the_mode_becomes() {
        let (ann, id) = opened(b"0123");
        let (file, _) = ann.server.object("f");
        let taken_away = SetAttr { mode: Some(0), uid: Some(8), ..SetAttr::default() };
        block_on(ann.server.store.set_attr(&file, &taken_away, None, &Credentials::ROOT)).unwrap();
        assert_eq!(send(&ann, of(id, 0, b"ab")).status(), Status::SUCCESS);
        assert_eq!(ann.server.content("f"), b"ab23");
    }

    #[test]
    fn data_goes_where_the_client_says() {
        let (ann, id) = opened(b"0123456789");
        let reply = send(&ann, of(id, 8, b"abcd"));
        assert_eq!(WriteResponse::decode(reply.ok()), Ok(WriteResponse { count: 4 }));
        assert_eq!(reply.outcome, Ok(Done::on(id).moved(4)));
        assert_eq!(ann.server.content("f"), b"01234567abcd");
        let append = ann.open("f", AccessMask::APPEND_DATA);
        send(&ann, of(append, 0, b"x")).ok();
        assert_eq!(ann.server.content("f"), b"x1234567abcd");
    }

    /// The answers that smbtorture's `smb2.rw.invalid` expects.
    #[test]
    fn the_offset_and_the_end_must_be_in_a_file() {
        let (ann, id) = opened(b"");
        let status = |offset, data| send(&ann, of(id, offset, data)).status();
        let most = FILE_BYTES_MAX;
        assert_eq!(status(most, b""), Status::SUCCESS);
        for (offset, data) in
            [(most, &b"x"[..]), (most + 1, b""), (u64::MAX, b"x"), (u64::MAX - 1, b"xy")]
        {
            assert_eq!(status(offset, data), Status::INVALID_PARAMETER, "{offset}");
        }
        assert_eq!(ann.server.object("f").1.size, 0);
    }

    #[test]
    fn only_files_open_for_writing_are_written() {
        let server = TestServer::new();
        server.file("f", b"data", 0o644, 7);
        server.dir("d", 0o755, 7);
        let ann = server.session(7);
        let status = |id| send(&ann, of(id, 0, b"x")).status();
        let other = AccessMask::READ_DATA | AccessMask::WRITE_ATTRIBUTES;
        assert_eq!(status(ann.open("f", other)), Status::ACCESS_DENIED);
        assert_eq!(status(ann.open("d", WRITES)), Status::INVALID_DEVICE_REQUEST);
        assert_eq!(status(FileId::default()), Status::FILE_CLOSED);
        assert_eq!(server.content("f"), b"data");
    }

    #[test]
    fn amounts_are_bounded() {
        let (ann, id) = opened(b"");
        let most = vec![1; IO_BYTES_MAX as usize + 1];
        assert_eq!(send(&ann, of(id, 0, &most)).status(), Status::INVALID_PARAMETER);
        send(&ann, of(id, 0, &most[1..])).ok();
        assert_eq!(ann.server.object("f").1.size, u64::from(IO_BYTES_MAX));
        let rdma = WriteRequest { channel: Channel::RDMA_V1, ..of(id, 0, b"x") };
        assert_eq!(send(&ann, rdma).status(), Status::INVALID_PARAMETER);
    }

    #[test]
    fn locks_stand_in_the_way_even_one_s_own_shared_ones() {
        let server = TestServer::new();
        server.file("f", b"0123456789", 0o644, 7);
        let (ann, bob) = (server.session(7), server.session(7));
        let (one, other) = (ann.open("f", WRITES), bob.open("f", WRITES));
        let lock = |offset, mode| {
            let lock = RangeLock { span: Span::new(offset, 1).unwrap(), mode };
            block_on(ann.lock(&ann.opened(one), &[lock], false)).unwrap();
        };
        lock(2, Mode::Exclusive);
        lock(6, Mode::Shared);
        let status = |host, id, offset| send(host, of(id, offset, b"xy")).status();
        assert_eq!(status(&bob, other, 1), Status::FILE_LOCK_CONFLICT);
        assert_eq!(status(&bob, other, 6), Status::FILE_LOCK_CONFLICT);
        assert_eq!(status(&bob, other, 3), Status::SUCCESS);
        assert_eq!(status(&ann, one, 2), Status::SUCCESS);
        assert_eq!(status(&ann, one, 5), Status::FILE_LOCK_CONFLICT);
        assert_eq!(send(&bob, of(other, 2, b"")).status(), Status::SUCCESS);
        assert_eq!(server.content("f"), b"01xyy56789");
    }

    #[test]
    fn write_through_is_asked_for_by_mode_or_request() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        let ann = server.session(7);
        let id = ann.open_as("f", WRITES, Sharing::all(), CreateOptions::WRITE_THROUGH);
        let of_open = |id, flags| stability(ann.opened(id).is_write_through(), flags);
        let none = WriteFlags::empty();
        assert_eq!(of_open(id, none), Stability::FileSync);
        let id = ann.open("f", WRITES);
        assert_eq!(of_open(id, none), Stability::Unstable);
        assert_eq!(of_open(id, WriteFlags::UNBUFFERED), Stability::Unstable);
        assert_eq!(of_open(id, WriteFlags::WRITE_THROUGH), Stability::FileSync);
    }

    /// FileModeInformation (MS-FSA §2.1.5.15.7) as a client sets it.
    fn set_mode(host: &TestHost, file: FileId, mode: u32) {
        let request = SetInfoRequest {
            info_type: InfoType::FILE,
            class: 16,
            info: Payload { bytes: &mode.to_le_bytes(), at: 0 },
            security: SecurityInformation::empty(),
            file,
        };
        let encode = |out: &mut Vec<u8>| request.encode(out);
        let set = async |cx: &Context<'_, _>, out: &mut Vec<u8>| set_info(cx, out).await;
        host.call(Command::SetInfo, encode, set).ok();
    }

    #[test]
    fn a_client_sets_and_clears_write_through_of_an_open() {
        let (ann, id) = opened(b"");
        let (store, file) = (&ann.server.store, ann.server.object("f").0);
        let asked = |flags| {
            send(&ann, WriteRequest { flags, ..of(id, 0, b"x") }).ok();
            store.asked_stability()
        };
        let (plain, through) = (WriteFlags::empty(), WriteFlags::WRITE_THROUGH);
        assert_eq!(asked(plain), Some(Stability::Unstable));
        set_mode(&ann, id, 2);
        assert_eq!(store.take_stabilized(), [file, store.root()]);
        assert_eq!(asked(plain), Some(Stability::FileSync));
        assert_eq!(asked(through), Some(Stability::FileSync));
        assert_eq!(store.take_stabilized(), [], "its name is stable");
        set_mode(&ann, id, 0);
        assert_eq!(asked(plain), Some(Stability::Unstable));
    }

    #[test]
    fn failures_of_the_store_are_told() {
        let (ann, id) = opened(b"");
        for (error, status) in [
            (FsError::QuotaExceeded, Status::DISK_FULL),
            (FsError::NoSpace, Status::DISK_FULL),
            (FsError::ReadOnly, Status::MEDIA_WRITE_PROTECTED),
        ] {
            ann.server.store.fail_after(0, error);
            assert_eq!(send(&ann, of(id, 0, b"x")).status(), status);
        }
        ann.server.remove("f");
        assert_eq!(send(&ann, of(id, 0, b"x")).status(), Status::FILE_DELETED);
    }
}
