//! Taking, testing, changing and giving up locks and shares.

use crate::world::{A, About, B, C, FILE, Process, World};
use weir_core::Mono;
use weir_nfs::client::{NlmNmLock, NlmNull};
use weir_nfs::nlm::{Need, Request, Status};
use weir_nfs::rpc::{AcceptError, Call, Credential};

const LOW: About = ("file", 0, 10);
const HIGH: About = ("file", 10, 10);

#[test]
fn exclusive_locks_keep_others_out_and_shared_ones_do_not() {
    let mut world = World::new();
    assert_eq!(world.lock(&A, LOW, true), Status::GRANTED);
    assert_eq!(world.lock(&B, LOW, false), Status::DENIED);
    assert_eq!(world.lock(&B, HIGH, false), Status::GRANTED);
    assert_eq!(world.lock(&A, HIGH, false), Status::GRANTED);
    assert_eq!(world.lock(&A, HIGH, true), Status::DENIED);
    assert_eq!(world.lock(&A, ("other", 0, 0), true), Status::GRANTED);
}

#[test]
fn test_tells_who_stands_in_the_way() {
    let mut world = World::new();
    world.lock(&Process { svid: 77, ..A }, ("file", 5, 0), true);
    assert_eq!(world.holder(&B, LOW, false), Ok(Some((true, 77, 5, 0))));
    assert_eq!(world.holder(&B, ("file", 0, 5), true), Ok(None));
    assert_eq!(world.holder(&Process { svid: 77, ..A }, LOW, true), Ok(None));
}

#[test]
fn processes_of_one_host_exclude_each_other_and_those_of_two_have_equal_numbers() {
    let mut world = World::new();
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);
    assert_eq!(world.lock(&Process { svid: 2, ..A }, FILE, true), Status::DENIED);
    assert_eq!(world.lock(&Process { address: "10.0.0.7", ..A }, FILE, true), Status::DENIED);
    assert_eq!(world.lock(&Process { name: "z", ..A }, FILE, true), Status::DENIED);
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED, "a repetition");
}

#[test]
fn the_middle_can_be_unlocked_and_the_mode_changed() {
    let mut world = World::new();
    world.lock(&A, ("file", 0, 100), true);
    assert_eq!(world.unlock(&A, ("file", 40, 10)), Status::GRANTED);
    assert_eq!(world.lock(&B, ("file", 40, 10), true), Status::GRANTED);
    assert_eq!(world.lock(&A, ("file", 90, 10), false), Status::GRANTED);
    assert_eq!(world.holder(&C, ("file", 95, 1), true), Ok(Some((false, 1, 90, 10))));
    assert_eq!(world.unlock(&C, ("file", 0, 0)), Status::GRANTED, "nothing to give up");
    assert_eq!(world.holder(&C, ("file", 0, 1), true), Ok(Some((true, 1, 0, 40))));
}

#[test]
fn offsets_beyond_a_file_are_too_big() {
    let mut world = World::new();
    assert_eq!(world.lock(&A, ("file", 1 << 63, 1), true), Status::FBIG);
    assert_eq!(world.lock(&A, ("file", 5, u64::MAX), true), Status::FBIG);
    assert_eq!(world.lock(&A, ("file", (1 << 63) - 1, 1), true), Status::GRANTED);
}

#[test]
fn what_the_server_found_out_about_the_file_is_told() {
    let mut world = World::new();
    let gone = ("gone", 0, 0);
    assert_eq!(world.lock(&A, gone, true), Status::STALE_FH);
    assert_eq!(world.holder(&A, gone, true), Err(Status::STALE_FH));
    assert_eq!(world.unlock(&A, gone), Status::STALE_FH);
    assert_eq!(world.cancel(&A, gone, true), Status::STALE_FH);
}

#[test]
fn nm_lock_is_a_lock_that_nobody_monitors() {
    let mut world = World::new();
    let (_, status) = world.call(&A.peer(), &NlmNmLock(A.lock(FILE, true)));
    assert_eq!(status, Status::GRANTED);
    assert_eq!(world.lock(&B, FILE, true), Status::DENIED);
}

#[test]
fn a_wait_that_closes_a_circle_is_a_deadlock() {
    let mut world = World::new();
    world.lock(&A, LOW, true);
    world.lock(&B, HIGH, true);
    assert_eq!(world.wait(&A, HIGH, true), Status::BLOCKED);
    assert_eq!(world.wait(&B, LOW, true), Status::DEADLCK);
    assert_eq!(world.lock(&B, LOW, true), Status::DENIED);
}

#[test]
fn shares_deny_access_to_others() {
    let (read, write, both) = (1, 2, 3);
    let mut world = World::new();
    assert_eq!(world.share(&A, read, write), Status::GRANTED);
    assert_eq!(world.share(&B, both, 0), Status::DENIED);
    assert_eq!(world.share(&B, read, 0), Status::GRANTED);
    assert_eq!(world.share(&A, both, 0), Status::GRANTED, "it changes what it had");
    assert_eq!(world.share(&B, both, 0), Status::GRANTED);
    assert_eq!(world.share(&C, 0, write), Status::DENIED);
    assert_eq!(world.unshare(&A), Status::GRANTED);
    assert_eq!(world.unshare(&A), Status::GRANTED, "XNFS: it need not be there");
    assert_eq!(world.unshare(&B), Status::GRANTED);
    assert_eq!(world.share(&C, 0, both), Status::GRANTED);
    // A share keeps other shares out, not locks.
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);
}

#[test]
fn null_does_nothing() {
    let mut world = World::new();
    let (reply, _) = world.call(&A.peer(), &NlmNull);
    assert_eq!(reply.len(), 24);
}

#[test]
fn what_is_not_spoken_is_refused() {
    let refusal = |version, procedure, args: &[u8]| {
        let (program, credential) = (weir_nfs::PROGRAM_NLM, Credential::None);
        let args = args.to_vec().into();
        let call = Call { xid: 7, program, version, procedure, credential, args };
        Request::parse(&call).err()
    };
    let mismatch = Some(AcceptError::ProgramMismatch { low: 4, high: 4 });
    assert_eq!([1, 3, 5].map(|version| refusal(version, 0, &[])), [mismatch; 3]);
    let unavailable = Some(AcceptError::ProcedureUnavailable);
    assert_eq!([16, 19, 24].map(|procedure| refusal(4, procedure, &[])), [unavailable; 3]);
    for procedure in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 21, 22, 23] {
        assert_eq!(refusal(4, procedure, &[0, 0, 0]), Some(AcceptError::GarbageArgs));
    }
}

#[test]
fn what_a_caller_needs_depends_on_what_it_asks() {
    let needs = |args: &dyn Fn() -> Vec<u8>, procedure| {
        let (program, credential) = (weir_nfs::PROGRAM_NLM, Credential::None);
        let args = args().into();
        let call = Call { xid: 7, program, version: 4, procedure, credential, args };
        let request = Request::parse(&call).unwrap();
        let monitored = request.monitors(&A.peer()).is_some();
        (request.target().map(|target| target.need), monitored)
    };
    let encoded = |args: &dyn weir_nfs::xdr::Encode| {
        let mut out = weir_nfs::xdr::Writer::default();
        args.encode(&mut out);
        out.into_vec()
    };
    let lock = |exclusive| encoded(&A.lock(FILE, exclusive));
    assert_eq!(needs(&|| lock(true), 2), (Some(Need::Change), true));
    assert_eq!(needs(&|| lock(false), 2), (Some(Need::Use), true));
    assert_eq!(needs(&|| lock(true), 7), (Some(Need::Change), true));
    assert_eq!(needs(&|| lock(true), 22), (Some(Need::Change), false));
    assert_eq!(needs(&|| encoded(&A.share(1, 3)), 20), (Some(Need::Use), true));
    assert_eq!(needs(&|| encoded(&A.share(2, 0)), 20), (Some(Need::Change), true));
    assert_eq!(needs(&|| encoded(&A.share(2, 0)), 21), (Some(Need::Handle), false));
    assert_eq!(needs(&Vec::new, 0), (None, false));
}

#[test]
fn time_alone_ends_no_lock() {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    world.now = Mono(u64::MAX);
    assert_eq!(world.lock(&B, FILE, true), Status::DENIED);
}
