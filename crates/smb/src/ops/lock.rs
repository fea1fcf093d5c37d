//! LOCK (MS-SMB2 §3.3.5.14): locks on ranges of bytes, or their end. The first range says which.
//!
//! Repeated requests are told apart by their sequence numbers only where opens are durable, which
//! none is here.

use super::{Context, Done, Failure, Outcome};
use crate::host::{Host, RangeLock};
use crate::wire::{
    AccessMask, LockFlags, LockRange, LockRanges, LockRequest, LockResponse, Status,
};
use alloc::vec::Vec;
use weir_core::FileKind;
use weir_state::{Mode, Span};

/// Rights of which one is needed.
const LOCKS: AccessMask = AccessMask::READ_DATA.union(AccessMask::WRITE_DATA);

pub(super) async fn lock<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = LockRequest::decode(cx.message)?;
    let open = cx.open(request.file)?;
    if open.kind != FileKind::Regular {
        return Err(Status::INVALID_PARAMETER.into());
    }
    if !open.granted.intersects(LOCKS) {
        return Err(Status::ACCESS_DENIED.into());
    }
    let first = request.ranges.iter().next();
    if first.is_some_and(|range| range.flags == LockFlags::UNLOCK) {
        unlock(cx.host, &open, request.ranges).await?;
    } else {
        let (locks, wait) = asked(request.ranges)?;
        cx.host.lock(&open, &locks, wait).await?;
    }
    LockResponse {}.encode(out);
    Ok(Done::on(open.id))
}

/// The locks that are asked for, and whether to wait: only one lock may be waited for
/// (MS-SMB2 §3.3.5.14.2).
fn asked(ranges: LockRanges<'_>) -> Result<(Vec<RangeLock>, bool), Status> {
    let single = ranges.len() == 1;
    let (mut locks, mut wait) = (Vec::with_capacity(ranges.len()), false);
    for range in ranges.iter() {
        let at_once = range.flags.contains(LockFlags::FAIL_IMMEDIATELY);
        let mode = match range.flags.difference(LockFlags::FAIL_IMMEDIATELY) {
            LockFlags::SHARED => Mode::Shared,
            LockFlags::EXCLUSIVE => Mode::Exclusive,
            _ => return Err(Status::INVALID_PARAMETER),
        };
        if !at_once && !single {
            return Err(Status::INVALID_PARAMETER);
        }
        wait = !at_once;
        locks.push(RangeLock { span: span(&range)?, mode });
    }
    Ok((locks, wait))
}

/// Gives the ranges up one after another, until one is not locked or is no range to unlock; those
/// before it stay unlocked (MS-SMB2 §3.3.5.14.1).
async fn unlock<H: Host>(host: &H, open: &H::Open, ranges: LockRanges<'_>) -> Result<(), Failure> {
    let mut spans = Vec::with_capacity(ranges.len());
    let mut end = Ok(());
    for range in ranges.iter() {
        let span = match range.flags {
            LockFlags::UNLOCK => span(&range),
            _ => Err(Status::INVALID_PARAMETER),
        };
        match span {
            Ok(span) => spans.push(span),
            Err(status) => {
                end = Err(status.into());
                break;
            }
        }
    }
    host.unlock(open, &spans).await?;
    end
}

fn span(range: &LockRange) -> Result<Span, Status> {
    Span::new(range.offset, range.length).ok_or(Status::INVALID_LOCK_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::close::finish;
    use crate::ops::testing::{Running, TestHost, TestServer};
    use crate::wire::{Command, FileId};
    use std::rc::Rc;
    use weir_core::testing::block_on;

    const SHARED: u32 = 1;
    const EXCLUSIVE: u32 = 2;
    const UNLOCK: u32 = 4;
    const NOW: u32 = 0x10;

    fn start(host: &TestHost, file: FileId, ranges: &[(u64, u64, u32)]) -> Running {
        let ranges: Vec<_> = ranges
            .iter()
            .map(|&(offset, length, flags)| {
                let flags = LockFlags::from_bits_retain(flags);
                LockRange { offset, length, flags }
            })
            .collect();
        let encode = |out: &mut Vec<u8>| LockRequest::encode(7, file, &ranges, out);
        host.start(Command::Lock, encode, lock)
    }

    fn status(host: &TestHost, file: FileId, ranges: &[(u64, u64, u32)]) -> Status {
        start(host, file, ranges).poll().expect("the request waits").status()
    }

    fn opened() -> (Rc<TestServer>, (TestHost, FileId), (TestHost, FileId)) {
        let server = TestServer::new();
        server.file("f", b"0123456789", 0o644, 7);
        let [ann, bob] = [7, 8].map(|uid| {
            let host = server.session(uid);
            let id = host.open("f", AccessMask::READ_DATA);
            (host, id)
        });
        (server, ann, bob)
    }

    #[test]
    fn locks_are_taken_and_given_up_and_stand_in_others_way() {
        let (_server, (ann, a), (bob, b)) = opened();
        let reply = start(&ann, a, &[(0, 10, EXCLUSIVE | NOW)]).poll().unwrap();
        assert_eq!(LockResponse::decode(reply.ok()), Ok(LockResponse {}));
        assert_eq!(reply.outcome, Ok(Done::on(a)));
        assert_eq!(status(&bob, b, &[(9, 1, SHARED | NOW)]), Status::LOCK_NOT_GRANTED);
        assert_eq!(status(&bob, b, &[(10, 1, EXCLUSIVE | NOW)]), Status::SUCCESS);
        assert_eq!(status(&bob, b, &[(0, 10, UNLOCK)]), Status::RANGE_NOT_LOCKED);
        assert_eq!(status(&ann, a, &[(0, 9, UNLOCK)]), Status::RANGE_NOT_LOCKED);
        assert_eq!(status(&ann, a, &[(0, 10, UNLOCK)]), Status::SUCCESS);
        assert_eq!(status(&bob, b, &[(9, 1, SHARED | NOW)]), Status::SUCCESS);
        assert_eq!(status(&ann, a, &[(9, 1, SHARED | NOW)]), Status::SUCCESS);
    }

    #[test]
    fn all_of_several_locks_are_taken_or_none() {
        let (_server, (ann, a), (bob, b)) = opened();
        assert_eq!(status(&bob, b, &[(5, 1, EXCLUSIVE | NOW)]), Status::SUCCESS);
        let both = [(0, 1, EXCLUSIVE | NOW), (5, 1, SHARED | NOW)];
        assert_eq!(status(&ann, a, &both), Status::LOCK_NOT_GRANTED);
        assert_eq!(status(&bob, b, &[(0, 1, EXCLUSIVE | NOW)]), Status::SUCCESS);
        let both = [(1, 1, EXCLUSIVE | NOW), (2, 1, SHARED | NOW)];
        assert_eq!(status(&ann, a, &both), Status::SUCCESS);
        assert_eq!(status(&ann, a, &[(1, 1, UNLOCK), (2, 1, UNLOCK)]), Status::SUCCESS);
    }

    /// The requests of smbtorture's `smb2.lock.valid-request` are among them.
    #[test]
    fn flags_decide_what_a_request_means() {
        let (_server, (ann, a), _) = opened();
        let invalid = |ranges: &[(u64, u64, u32)]| {
            assert_eq!(status(&ann, a, ranges), Status::INVALID_PARAMETER, "{ranges:?}");
        };
        invalid(&[]);
        for flags in [0, NOW, SHARED | EXCLUSIVE, !0x17, SHARED | 8] {
            invalid(&[(1, 1, flags)]);
        }
        for flags in [UNLOCK | EXCLUSIVE, UNLOCK | SHARED, UNLOCK | NOW] {
            invalid(&[(1, 1, flags)]);
        }
        invalid(&[(0, 1, 0), (0, 1, UNLOCK)]);
        invalid(&[(0, 1, SHARED | NOW), (0, 1, SHARED)]);
        invalid(&[(0, 1, SHARED), (0, 1, SHARED | NOW)]);
        invalid(&[(0, 1, SHARED | NOW), (0, 1, UNLOCK)]);
        assert_eq!(status(&ann, a, &[(0, 1, UNLOCK)]), Status::RANGE_NOT_LOCKED, "none was taken");
        assert_eq!(status(&ann, a, &[(0, 1, UNLOCK), (0, 1, 0)]), Status::RANGE_NOT_LOCKED);
    }

    #[test]
    fn unlocking_ends_at_the_first_error_and_what_it_did_stays() {
        let (_server, (ann, a), _) = opened();
        let taken: Vec<_> = (0..4).map(|at| (at, 1, EXCLUSIVE | NOW)).collect();
        assert_eq!(status(&ann, a, &taken), Status::SUCCESS);
        let wrong = [(0, 1, UNLOCK), (9, 1, UNLOCK), (1, 1, UNLOCK)];
        assert_eq!(status(&ann, a, &wrong), Status::RANGE_NOT_LOCKED);
        assert_eq!(status(&ann, a, &[(0, 1, UNLOCK)]), Status::RANGE_NOT_LOCKED);
        let wrong = [(1, 1, UNLOCK), (2, 1, SHARED | NOW), (2, 1, UNLOCK)];
        assert_eq!(status(&ann, a, &wrong), Status::INVALID_PARAMETER);
        assert_eq!(status(&ann, a, &[(1, 1, UNLOCK)]), Status::RANGE_NOT_LOCKED);
        assert_eq!(status(&ann, a, &[(2, 1, UNLOCK), (3, 1, UNLOCK)]), Status::SUCCESS);
    }

    #[test]
    fn a_range_must_have_an_end() {
        let (_server, (ann, a), _) = opened();
        let invalid = Status::INVALID_LOCK_RANGE;
        assert_eq!(status(&ann, a, &[(u64::MAX, u64::MAX, EXCLUSIVE | NOW)]), invalid);
        assert_eq!(status(&ann, a, &[(u64::MAX, 2, UNLOCK)]), invalid);
        assert_eq!(status(&ann, a, &[(u64::MAX, 1, EXCLUSIVE)]), Status::SUCCESS);
        assert_eq!(status(&ann, a, &[(5, 0, EXCLUSIVE)]), Status::SUCCESS);
    }

    #[test]
    fn a_single_lock_is_waited_for() {
        let (_server, (ann, a), (bob, b)) = opened();
        assert_eq!(status(&ann, a, &[(0, 1, EXCLUSIVE)]), Status::SUCCESS);
        let mut waiting = start(&bob, b, &[(0, 1, EXCLUSIVE)]);
        assert!(waiting.poll().is_none());
        assert_eq!(status(&ann, a, &[(0, 1, UNLOCK)]), Status::SUCCESS);
        assert_eq!(waiting.poll().unwrap().status(), Status::SUCCESS);
        assert_eq!(status(&ann, a, &[(0, 1, EXCLUSIVE | NOW)]), Status::LOCK_NOT_GRANTED);
    }

    #[test]
    fn who_waits_is_told_when_the_open_is_closed() {
        let (_server, (ann, a), (bob, b)) = opened();
        assert_eq!(status(&ann, a, &[(0, 1, EXCLUSIVE)]), Status::SUCCESS);
        let mut waiting = start(&bob, b, &[(0, 1, SHARED)]);
        assert!(waiting.poll().is_none());
        let open = bob.take(b).unwrap();
        block_on(finish(&bob, &open));
        assert_eq!(waiting.poll().unwrap().status(), Status::RANGE_NOT_LOCKED);
        let mut waiting = start(&bob, bob.open("f", LOCKS), &[(0, 1, SHARED)]);
        assert!(waiting.poll().is_none());
        let open = ann.take(a).unwrap();
        block_on(finish(&ann, &open));
        assert_eq!(waiting.poll().unwrap().status(), Status::SUCCESS);
    }

    #[test]
    fn only_files_open_for_data_are_locked() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        server.dir("d", 0o755, 7);
        let ann = server.session(7);
        let one = [(0, 1, SHARED | NOW)];
        assert_eq!(status(&ann, ann.open("f", AccessMask::WRITE_DATA), &one), Status::SUCCESS);
        let attributes = ann.open("f", AccessMask::READ_ATTRIBUTES);
        assert_eq!(status(&ann, attributes, &one), Status::ACCESS_DENIED);
        assert_eq!(status(&ann, ann.open("d", LOCKS), &one), Status::INVALID_PARAMETER);
        // The open is looked for before flags are looked at.
        assert_eq!(status(&ann, FileId::default(), &[(0, 0, 0)]), Status::FILE_CLOSED);
    }
}
