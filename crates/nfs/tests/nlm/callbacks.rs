//! Tests of callbacks to waiters, of the waiters' answers, and of messages that cross on the way.

use crate::world::{A, B, C, COOKIE, FILE, Process, World};
use weir_nfs::client::{
    NlmCancelMsg, NlmGranted, NlmGrantedMsg, NlmGrantedRes, NlmLockMsg, NlmLockRes, NlmTestMsg,
    NlmUnlockMsg, Reply,
};
use weir_nfs::nlm::wire::{
    CancelArgs, Holder, LockArgs, NetObj, Res, TestArgs, TestReply, TestRes, UnlockArgs,
};
use weir_nfs::nlm::{Callback, Delivery, Next, Procedure, Status};
use weir_nfs::xdr::decode;

/// A holds the file, B waits for it, and gets it; the call that says so.
fn granted() -> (World, Callback) {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    assert_eq!(world.wait(&B, FILE, true), Status::BLOCKED);
    assert!(world.callbacks.is_empty());
    world.unlock(&A, FILE);
    let grant = world.grant(&B, FILE);
    (world, grant)
}

#[test]
fn who_waited_is_called_back_and_holds_the_lock_from_then_on() {
    let (mut world, grant) = granted();
    assert_eq!(world.lock(&C, FILE, true), Status::DENIED);
    assert_eq!(world.answered(grant, Status::GRANTED), Next::Done);
    assert_eq!(world.holder(&C, FILE, true), Ok(Some((true, 1, 0, 0))));
}

#[test]
fn who_does_not_wait_any_more_is_passed_over() {
    let (mut world, grant) = granted();
    assert_eq!(world.wait(&C, FILE, true), Status::BLOCKED);
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    let next = world.grant(&C, FILE);
    assert_eq!(world.delivered(next, Delivery::NotHeard), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);
}

#[test]
fn a_client_in_grace_is_asked_again() {
    let (mut world, grant) = granted();
    let again = world.answered(grant, Status::DENIED_GRACE_PERIOD);
    let Next::Again(grant) = again else { panic!("not tried again") };
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);
}

#[test]
fn a_lock_is_never_taken_from_who_may_have_heard_of_it() {
    // The first call was heard and its answer lost. The client has its lock and waits for nothing
    // when the second comes.
    let (mut world, grant) = granted();
    let Next::Again(grant) = world.delivered(grant, Delivery::Unknown) else {
        panic!("not tried again")
    };
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
}

#[test]
fn attempts_end_and_the_lock_stays() {
    let (mut world, grant) = granted();
    let (mut next, mut attempts) = (Next::Again(grant), 0);
    while let Next::Again(grant) = next {
        next = world.delivered(grant, Delivery::Unknown);
        attempts += 1;
    }
    assert_eq!(attempts, 6);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
    assert_eq!(world.wait(&B, FILE, true), Status::GRANTED, "should it ask again after all");
}

#[test]
fn who_asks_again_is_told_and_a_grant_that_comes_late_changes_nothing() {
    let (mut world, grant) = granted();
    assert_eq!(world.wait(&B, FILE, true), Status::GRANTED);
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
}

#[test]
fn to_ask_again_while_waiting_is_to_wait_once() {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    for _ in 0..3 {
        assert_eq!(world.wait(&B, FILE, true), Status::BLOCKED);
    }
    assert_eq!(world.tables.used().waiters, 1);
    world.unlock(&A, FILE);
    let _told_once = world.grant(&B, FILE);
}

#[test]
fn a_cancel_ends_the_wait_and_may_be_repeated() {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    world.wait(&B, FILE, true);
    for _ in 0..2 {
        assert_eq!(world.cancel(&B, FILE, true), Status::GRANTED);
    }
    world.unlock(&A, FILE);
    assert!(world.callbacks.is_empty());
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);
}

#[test]
fn a_cancel_that_crosses_the_grant_gives_the_lock_back() {
    let (mut world, grant) = granted();
    assert_eq!(world.cancel(&B, FILE, true), Status::GRANTED);
    assert_eq!(world.lock(&C, FILE, true), Status::GRANTED);
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED, "that is C's lock");
}

#[test]
fn an_unlock_that_crosses_the_answer_is_final() {
    let (mut world, grant) = granted();
    world.unlock(&B, FILE);
    assert_eq!(world.lock(&B, FILE, true), Status::GRANTED);
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
}

#[test]
fn an_answer_that_makes_no_sense_takes_nothing_away() {
    let (mut world, grant) = granted();
    let Next::Again(grant) = world.delivered(grant, Delivery::Answered(b"?")) else {
        panic!("not tried again")
    };
    assert_eq!(world.answered(grant, Status::DENIED), Next::Done);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
}

#[test]
fn messages_are_answered_by_messages() {
    let mut world = World::new();
    world.lock(&A, ("file", 5, 0), true);
    let cookie = NetObj(COOKIE);
    let answer = |world: &mut World, procedure| {
        assert_eq!(world.callbacks.len(), 1);
        let callback = world.callbacks.pop().unwrap();
        assert_eq!((callback.peer, callback.procedure), (B.peer(), procedure));
        callback.args
    };
    let test = TestArgs { cookie, exclusive: true, lock: B.about(FILE) };
    let (reply, _) = world.call(&B.peer(), &NlmTestMsg(test));
    assert_eq!(Reply::parse(&reply).unwrap().body, Ok(&[][..]));
    let holder = Holder { exclusive: true, svid: 1, oh: NetObj(b"oh"), offset: 5, length: 0 };
    let expected = TestRes { cookie, reply: TestReply::Denied(holder) };
    assert_eq!(decode(&answer(&mut world, Procedure::TestRes)), Ok(expected));

    let res = |status| Ok(Res { cookie, status });
    let lock = LockArgs { block: true, ..B.lock(FILE, true) };
    world.call(&B.peer(), &NlmLockMsg(lock));
    assert_eq!(decode(&answer(&mut world, Procedure::LockRes)), res(Status::BLOCKED));
    let cancel = CancelArgs { cookie, block: true, exclusive: true, lock: B.about(FILE) };
    world.call(&B.peer(), &NlmCancelMsg(cancel));
    assert_eq!(decode(&answer(&mut world, Procedure::CancelRes)), res(Status::GRANTED));
    let unlock = UnlockArgs { cookie, lock: B.about(FILE) };
    world.call(&B.peer(), &NlmUnlockMsg(unlock));
    assert_eq!(decode(&answer(&mut world, Procedure::UnlockRes)), res(Status::GRANTED));
}

/// A grant as by [`granted`], but B asked by a message; the cookie of the message that tells it.
fn granted_by_message() -> (World, Vec<u8>) {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    world.call(&B.peer(), &NlmLockMsg(LockArgs { block: true, ..B.lock(FILE, true) }));
    world.callbacks.clear();
    world.unlock(&A, FILE);
    let callback = world.grant(&B, FILE);
    assert_eq!(callback.procedure, Procedure::GrantedMsg);
    let cookie = decode::<TestArgs<'_>>(&callback.args).unwrap().cookie.0.to_vec();
    assert_eq!(world.delivered(callback, Delivery::Answered(&[])), Next::Done);
    (world, cookie)
}

fn granted_res(world: &mut World, from: &Process, cookie: &[u8], status: Status) {
    let args = Res { cookie: NetObj(cookie), status };
    let (reply, _) = world.call(&from.peer(), &NlmGrantedRes(args));
    assert_eq!(Reply::parse(&reply).unwrap().body, Ok(&[][..]));
}

#[test]
fn granted_res_says_what_came_of_a_message() {
    let (mut world, cookie) = granted_by_message();
    granted_res(&mut world, &B, &cookie, Status::DENIED);
    assert_eq!(world.lock(&A, FILE, true), Status::GRANTED);

    let (mut world, cookie) = granted_by_message();
    granted_res(&mut world, &B, &cookie, Status::GRANTED);
    granted_res(&mut world, &B, &cookie, Status::DENIED);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED, "it had said otherwise");
}

#[test]
fn granted_res_of_somebody_else_is_not_believed() {
    let (mut world, cookie) = granted_by_message();
    granted_res(&mut world, &C, &cookie, Status::DENIED);
    granted_res(&mut world, &B, b"short", Status::DENIED);
    granted_res(&mut world, &B, &[0xff; 8], Status::DENIED);
    assert_eq!(world.lock(&A, FILE, true), Status::DENIED);
}

#[test]
fn who_takes_us_for_a_client_is_told_that_we_wait_for_nothing() {
    let mut world = World::new();
    let args = TestArgs { cookie: NetObj(COOKIE), exclusive: true, lock: A.about(FILE) };
    let (reply, _) = world.call(&A.peer(), &NlmGranted(args));
    let res = Reply::parse(&reply).unwrap().results::<NlmGranted<'_>>().unwrap();
    assert_eq!(res, Res { cookie: NetObj(COOKIE), status: Status::DENIED });
    world.call(&A.peer(), &NlmGrantedMsg(args));
    let callback = world.callbacks.pop().unwrap();
    assert_eq!(callback.procedure, Procedure::GrantedRes);
    // An answer to what we never asked is dropped.
    let answer = Res { cookie: NetObj(COOKIE), status: Status::DENIED };
    let (reply, _) = world.call(&A.peer(), &NlmLockRes(answer));
    assert_eq!(Reply::parse(&reply).unwrap().body, Ok(&[][..]));
}
