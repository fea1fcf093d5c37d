//! Bad bytes, and odd sequences of good ones: always a reply the client can decode, never a panic,
//! and nothing left when everybody is gone.

use crate::world::{A, B, C, FILE, Process, World};
use proptest::prelude::*;
use weir_nfs::client::{
    NlmCancel, NlmFreeAll, NlmGranted, NlmGrantedRes, NlmLock, NlmLockMsg, NlmNmLock, NlmShare,
    NlmTest, NlmUnlock, NlmUnshare, RemoteCall, Reply,
};
use weir_nfs::nlm::wire::{CallerName, FreeAllArgs, LockArgs, NetObj, Res, TestArgs};
use weir_nfs::nlm::{Delivery, Next, Procedure, Request, Status};
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::xdr::{Decode, Reader, Writer};
use weir_state::{Limits, Part, Use};

/// Is `body` a whole result of the procedure, and nothing more?
fn is_result_of(procedure: Procedure, body: &[u8]) -> bool {
    fn whole<'a, A: RemoteCall>(body: &'a [u8]) -> bool {
        let mut input = Reader::new(body);
        A::Results::<'a>::decode(&mut input).is_ok() && input.finish().is_ok()
    }
    match procedure {
        Procedure::Test => whole::<NlmTest<'_>>(body),
        Procedure::Lock => whole::<NlmLock<'_>>(body),
        Procedure::Cancel => whole::<NlmCancel<'_>>(body),
        Procedure::Unlock => whole::<NlmUnlock<'_>>(body),
        Procedure::Granted => whole::<NlmGranted<'_>>(body),
        Procedure::Share => whole::<NlmShare<'_>>(body),
        Procedure::Unshare => whole::<NlmUnshare<'_>>(body),
        Procedure::NmLock => whole::<NlmNmLock<'_>>(body),
        _ => body.is_empty(),
    }
}

fn call(procedure: u32, args: Vec<u8>) -> Call {
    let (program, credential) = (weir_nfs::PROGRAM_NLM, Credential::None);
    Call { xid: 7, program, version: 4, procedure, credential, args: args.into() }
}

/// Serves it if it can be understood, and checks the reply.
fn serve(world: &mut World, who: &Process, call: &Call) {
    let Ok(request) = Request::parse(call) else { return };
    let file = request.target().map_or(Err(Status::FAILED), |target| {
        crate::world::file(target.handle.get(..8).unwrap_or(target.handle))
    });
    let (reply, _) = world.serve(&who.peer(), &request, file);
    let reply = Reply::parse(&reply[4..]).unwrap();
    assert!(is_result_of(request.procedure(), reply.body.unwrap()));
}

/// Arguments that are understood, of every procedure that has any.
fn valid(process: &Process) -> Vec<(u32, Vec<u8>)> {
    fn one<A: RemoteCall>(args: &A) -> (u32, Vec<u8>) {
        let mut out = Writer::default();
        args.encode(&mut out);
        (A::PROCEDURE, out.into_vec())
    }
    let lock = LockArgs { block: true, ..process.lock(FILE, true) };
    let test = TestArgs { cookie: lock.cookie, exclusive: true, lock: lock.lock };
    let share = process.share(1, 2);
    vec![
        one(&NlmTest(test)),
        one(&NlmLock(lock)),
        one(&NlmLockMsg(lock)),
        one(&NlmGranted(test)),
        one(&NlmGrantedRes(Res { cookie: NetObj(&[0; 8]), status: Status::DENIED })),
        one(&NlmShare(share)),
        one(&NlmUnshare(share)),
        one(&NlmFreeAll(FreeAllArgs { name: CallerName(b"a"), state: 1 })),
    ]
}

#[test]
fn cut_off_arguments_are_garbage() {
    for (procedure, args) in valid(&A) {
        for end in 0..args.len() {
            assert!(Request::parse(&call(procedure, args[..end].to_vec())).is_err());
        }
        assert!(Request::parse(&call(procedure, args)).is_ok());
    }
}

#[test]
fn a_changed_byte_is_refused_or_answered() {
    let mut world = World::new();
    for (procedure, args) in valid(&A) {
        for (at, byte) in (0..args.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|b| (at, b))) {
            let mut changed = args.clone();
            changed[at] = byte;
            serve(&mut world, &B, &call(procedure, changed));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Lock {
        who: usize,
        at: (u64, u64),
        exclusive: bool,
        block: bool,
        state: u32,
    },
    Unlock {
        who: usize,
        at: (u64, u64),
    },
    Cancel {
        who: usize,
        at: (u64, u64),
        exclusive: bool,
    },
    Share {
        who: usize,
        access: u32,
        deny: u32,
    },
    Unshare {
        who: usize,
    },
    Rebooted {
        who: usize,
        state: u32,
    },
    /// The client's reaction to the next callback: a status, nothing heard, or no answer.
    Callback(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0usize..3;
    let at = || (0u64..6, 0u64..4);
    prop_oneof![
        8 => (who(), at(), any::<bool>(), any::<bool>(), 0u32..6).prop_map(
            |(who, at, exclusive, block, state)| Step::Lock { who, at, exclusive, block, state }
        ),
        4 => (who(), at()).prop_map(|(who, at)| Step::Unlock { who, at }),
        2 => (who(), at(), any::<bool>())
            .prop_map(|(who, at, exclusive)| Step::Cancel { who, at, exclusive }),
        1 => (who(), 0u32..5, 0u32..5)
            .prop_map(|(who, access, deny)| Step::Share { who, access, deny }),
        1 => who().prop_map(|who| Step::Unshare { who }),
        1 => (who(), 0u32..6).prop_map(|(who, state)| Step::Rebooted { who, state }),
        6 => (0u32..12).prop_map(Step::Callback),
    ]
}

fn take(world: &mut World, step: &Step) {
    let process = |who: usize| [A, B, C][who];
    let file = |(offset, length)| ("file", offset, length);
    match *step {
        Step::Lock { who, at, exclusive, block, state } => {
            let lock = process(who).lock(file(at), exclusive);
            world.ask(&process(who), LockArgs { block, state, ..lock });
        }
        Step::Unlock { who, at } => {
            assert_eq!(world.unlock(&process(who), file(at)), Status::GRANTED);
        }
        Step::Cancel { who, at, exclusive } => {
            assert_eq!(world.cancel(&process(who), file(at), exclusive), Status::GRANTED);
        }
        Step::Share { who, access, deny } => {
            world.share(&process(who), access, deny);
        }
        Step::Unshare { who } => {
            assert_eq!(world.unshare(&process(who)), Status::GRANTED);
        }
        Step::Rebooted { who, state } => {
            world.rebooted(process(who).ip(), process(who).name, state);
        }
        Step::Callback(answer) => deliver(world, answer),
    }
}

fn deliver(world: &mut World, answer: u32) {
    let Some(callback) = world.callbacks.pop() else { return };
    let next = match answer {
        10 => world.delivered(callback, Delivery::NotHeard),
        11 => world.delivered(callback, Delivery::Unknown),
        status => world.answered(callback, Status(status)),
    };
    if let Next::Again(callback) = next {
        world.callbacks.push(callback);
    }
}

proptest! {
    #[test]
    fn never_panics(procedure in 0u32..26, args in prop::collection::vec(any::<u8>(), 0..300)) {
        serve(&mut World::new(), &A, &call(procedure, args));
    }

    #[test]
    fn whatever_crosses_on_the_way_nothing_is_left_in_the_end(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut world = World::new();
        for step in steps {
            take(&mut world, &step);
        }
        for who in [A, B, C] {
            world.rebooted(who.ip(), who.name, 99);
        }
        prop_assert_eq!(world.tables.used(), Use::default());
        prop_assert_eq!(world.hosts(), []);
        // Grants that nobody holds any more are nobody's any more.
        while let Some(callback) = world.callbacks.pop() {
            prop_assert_eq!(world.delivered(callback, Delivery::NotHeard), Next::Done);
        }
        prop_assert_eq!(world.tables.used(), Use::default());
    }
}

#[test]
fn at_the_bounds_locks_are_denied_and_the_server_goes_on() {
    let one = Use { locks: 1, waiters: 1, shares: 1, opens: 0, owner_bytes: 64 };
    let (origin, volume) = (Part::ALL, Part::ALL);
    let limits = Limits { file: one, client: one, server: one, clients: 2, origin, volume };
    let mut world = World::with_limits(limits);
    assert_eq!(world.lock(&A, ("file", 0, 1), true), Status::GRANTED);
    assert_eq!(world.lock(&A, ("file", 5, 1), true), Status::DENIED_NOLOCKS);
    assert_eq!(world.wait(&B, ("file", 0, 1), true), Status::BLOCKED);
    assert_eq!(world.wait(&C, ("file", 0, 1), true), Status::DENIED_NOLOCKS);
    assert_eq!(world.share(&A, 1, 0), Status::GRANTED);
    assert_eq!(world.share(&B, 1, 0), Status::DENIED_NOLOCKS);
    let long = [b'x'; 100];
    let mut args = A.lock(("file", 0, 1), true);
    args.lock.oh = NetObj(&long);
    assert_eq!(world.ask(&A, args), Status::DENIED);
    args.lock.fh = NetObj(b"other");
    assert_eq!(world.ask(&A, args), Status::DENIED_NOLOCKS);
    assert_eq!(world.unlock(&A, ("file", 0, 0)), Status::GRANTED);
    let _told = world.grant(&B, ("file", 0, 1));
}
