//! READ (MS-SMB2 §3.3.5.12): the store appends the data to the response itself.
//!
//! A READ that finds less than its client needs at least fails, but the store has read the data:
//! the failure has the number of bytes, which are charged, so that no client reads for nothing.

use super::{Context, Done, Failure, Outcome};
use crate::host::Host;
use crate::limits::IO_BYTES_MAX;
use crate::open::Open;
use crate::wire::{AccessMask, Channel, ReadReply, ReadRequest, Status};
use alloc::vec::Vec;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::{FileKind, Store};
use weir_state::{Mode, Range};

/// Rights of which one is needed. Who may run a file may read it.
const READS: AccessMask = AccessMask::READ_DATA.union(AccessMask::EXECUTE);

#[inline]
pub(super) async fn read<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = ReadRequest::decode(cx.message)?;
    if request.length > IO_BYTES_MAX || request.channel != Channel::NONE {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let open = cx.open(request.file)?;
    may_read(&open, &request)?;
    let head = ReadReply::begin(out);
    if request.length > 0 {
        let range = Range::new(request.offset, request.length.into());
        let _io = cx.host.begin_io(&open, range, Mode::Shared).await?;
        // On failure the buffer is gone, and the caller begins anew.
        let buffer = core::mem::take(out);
        *out =
            cx.host.store().read(&open.object, request.offset, request.length, buffer).await?.out;
    }
    let moved = head.finish(out);
    if moved < request.minimum_count || (moved == 0 && request.length > 0) {
        return Err(Failure::from(Status::END_OF_FILE).moved(moved.into()));
    }
    Ok(Done::on(open.id).moved(moved.into()))
}

/// MS-FSA §2.1.5.3: what the request needs of its open, and where it may be.
#[inline]
fn may_read<O>(open: &Open<O>, request: &ReadRequest) -> Result<(), Status> {
    if open.kind != FileKind::Regular {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    if !open.granted.intersects(READS) {
        return Err(Status::ACCESS_DENIED);
    }
    match request.offset.checked_add(request.length.into()) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::RangeLock;
    use crate::ops::testing::{Reply, TestHost, TestServer};
    use crate::wire::{Command, FileId, HEADER_BYTES, ReadFlags, ReadResponse};
    use weir_core::FsError;
    use weir_core::testing::block_on;
    use weir_state::Span;

    fn of(file: FileId, offset: u64, length: u32) -> ReadRequest {
        ReadRequest {
            flags: ReadFlags::empty(),
            length,
            offset,
            file,
            minimum_count: 0,
            channel: Channel::NONE,
            remaining_bytes: 0,
        }
    }

    fn send(host: &TestHost, request: ReadRequest) -> Reply {
        let reply = host.call(Command::Read, |out| request.encode(out), read);
        assert_eq!(host.server.io.get(), 0, "nothing is under way any more");
        reply
    }

    fn opened(data: &[u8]) -> (TestHost, FileId) {
        let server = TestServer::new();
        server.file("f", data, 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::READ_DATA);
        (ann, id)
    }

    #[test]
    fn data_is_read_to_the_end_of_the_file() {
        let (ann, id) = opened(b"0123456789");
        for (offset, length, data) in [(0, 4, &b"0123"[..]), (8, 4, b"89"), (9, 1, b"9")] {
            let reply = send(&ann, of(id, offset, length));
            let response = ReadResponse::decode(reply.ok()).unwrap();
            assert_eq!(response, ReadResponse { data, remaining: 0 });
            assert_eq!(reply.outcome, Ok(Done::on(id).moved(data.len() as u64)));
        }
    }

    /// The answers that smbtorture's `smb2.read.eof` and `smb2.rw.invalid` expect.
    #[test]
    fn the_end_of_the_file_is_told_where_too_little_is_left() {
        let (ann, id) = opened(b"0123456789");
        let status = |offset, length, minimum_count| {
            send(&ann, ReadRequest { minimum_count, ..of(id, offset, length) }).status()
        };
        assert_eq!(status(10, 10, 0), Status::END_OF_FILE);
        assert_eq!(status(11, 10, 0), Status::END_OF_FILE);
        assert_eq!(status(10, 0, 0), Status::SUCCESS);
        assert_eq!(status(10, 0, 1), Status::END_OF_FILE);
        assert_eq!(status(9, 2, 1), Status::SUCCESS);
        assert_eq!(status(9, 1, 2), Status::END_OF_FILE);
        assert_eq!(status(0, 5, 10), Status::END_OF_FILE);
        let most = FILE_BYTES_MAX;
        assert_eq!(status(most - 1, 1, 0), Status::END_OF_FILE);
        assert_eq!(status(most, 0, 0), Status::SUCCESS);
        for (offset, length) in [(most, 1), (most + 1, 0), (u64::MAX, 0), (u64::MAX, 5)] {
            assert_eq!(status(offset, length, 0), Status::INVALID_PARAMETER, "{offset} {length}");
        }
    }

    #[test]
    fn data_that_was_read_in_vain_counts_as_moved() {
        let (ann, id) = opened(b"0123456789");
        let moved = |offset, length, minimum_count| {
            let reply = send(&ann, ReadRequest { minimum_count, ..of(id, offset, length) });
            let failure = reply.outcome.unwrap_err();
            assert_eq!((failure.status, reply.message.len()), (Status::END_OF_FILE, HEADER_BYTES));
            failure.moved
        };
        assert_eq!(moved(4, 100, 7), 6);
        assert_eq!(moved(0, 5, 10), 5);
        assert_eq!(moved(10, 10, 0), 0);
        assert_eq!(moved(10, 0, 1), 0);
    }

    #[test]
    fn only_files_open_for_reading_are_read() {
        let server = TestServer::new();
        server.file("f", b"data", 0o644, 7);
        server.dir("d", 0o755, 7);
        server.symlink("l", "f");
        let ann = server.session(7);
        let status = |id| send(&ann, of(id, 0, 10)).status();
        assert_eq!(status(ann.open("f", AccessMask::EXECUTE)), Status::SUCCESS);
        let other = AccessMask::WRITE_DATA | AccessMask::READ_ATTRIBUTES;
        assert_eq!(status(ann.open("f", other)), Status::ACCESS_DENIED);
        for path in ["d", "l"] {
            let id = ann.open(path, AccessMask::READ_DATA);
            assert_eq!(status(id), Status::INVALID_DEVICE_REQUEST);
            assert_eq!(send(&ann, of(id, 0, 0)).status(), Status::INVALID_DEVICE_REQUEST);
        }
        assert_eq!(status(FileId::PREVIOUS), Status::FILE_CLOSED);
        assert_eq!(
            send(&server.session(7), of(FileId::default(), 0, 1)).status(),
            Status::FILE_CLOSED
        );
    }

    #[test]
    fn amounts_are_bounded() {
        let (ann, id) = opened(&[7; 3000]);
        let most = send(&ann, of(id, 0, IO_BYTES_MAX));
        assert_eq!(ReadResponse::decode(most.ok()).unwrap().data.len(), 3000);
        assert_eq!(send(&ann, of(id, 0, IO_BYTES_MAX + 1)).status(), Status::INVALID_PARAMETER);
        let rdma = ReadRequest { channel: Channel::RDMA_V1, ..of(id, 0, 1) };
        assert_eq!(send(&ann, rdma).status(), Status::INVALID_PARAMETER);
    }

    #[test]
    fn exclusive_locks_of_others_stand_in_the_way_and_deny_modes_do_not() {
        let server = TestServer::new();
        server.file("f", b"0123456789", 0o644, 7);
        let (ann, bob) = (server.session(7), server.session(7));
        let (one, other) = (ann.open("f", READS), bob.open("f", READS));
        let lock = RangeLock { span: Span::new(4, 2).unwrap(), mode: Mode::Exclusive };
        block_on(ann.lock(&ann.opened(one), &[lock], false)).unwrap();
        let status = |host, id, offset, length| send(host, of(id, offset, length)).status();
        assert_eq!(status(&bob, other, 0, 5), Status::FILE_LOCK_CONFLICT);
        assert_eq!(status(&bob, other, 5, 100), Status::FILE_LOCK_CONFLICT);
        assert_eq!(status(&bob, other, 0, 4), Status::SUCCESS);
        assert_eq!(status(&bob, other, 6, 4), Status::SUCCESS);
        assert_eq!(status(&bob, other, 4, 0), Status::SUCCESS, "no bytes are always free");
        assert_eq!(status(&ann, one, 0, 10), Status::SUCCESS);
    }

    #[test]
    fn changes_and_failures_of_the_store_are_seen() {
        let (ann, id) = opened(b"old");
        ann.server.write(&ann.server.object("f").0, b"newer");
        assert_eq!(ReadResponse::decode(send(&ann, of(id, 0, 9)).ok()).unwrap().data, b"newer");
        ann.server.store.fail_after(0, FsError::Io);
        assert_eq!(send(&ann, of(id, 0, 9)).status(), Status::UNEXPECTED_IO_ERROR);
        ann.server.remove("f");
        assert_eq!(send(&ann, of(id, 0, 9)).status(), Status::FILE_DELETED);
    }
}
