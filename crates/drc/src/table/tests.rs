use super::super::key::Fingerprints;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use weir_core::Shared;
use weir_nfs::rpc::{Call, Credential};

fn key(xid: u32) -> CallKey {
    let (credential, args) = (Credential::None, Shared::from(Vec::new()));
    let call = Call { xid, program: 100_003, version: 3, procedure: 12, credential, args };
    Fingerprints::new(1).of(&call)
}

fn on(connection: u64) -> ConnId {
    ConnId { worker: 0, token: connection }
}

/// A call comes and is new.
fn arrives_new(calls: &mut Calls, xid: u32, connection: u64, now: Mono) -> Ticket {
    match calls.look_up(key(xid), on(connection), now) {
        Arrival::New(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// Carries a call out that is new and answers `reply`.
fn carry_out(calls: &mut Calls, xid: u32, connection: u64, reply: &[u8], now: Mono) {
    arrives_new(calls, xid, connection, now);
    let waiters = calls.answered(key(xid)).unwrap();
    calls.remember(
        key(xid),
        (VolumeId(1), waiters.last().token),
        (reply, now + CACHED_REPLIES_KEPT),
        now,
    );
}

#[test]
fn an_answered_call_gets_its_reply_again_over_any_connection() {
    let mut calls = Calls::default();
    carry_out(&mut calls, 1, 10, b"ok", Mono::ZERO);
    for connection in [10, 11, 12] {
        let arrival = calls.look_up(key(1), on(connection), Mono::from_millis(5));
        assert_eq!(arrival, Arrival::Cached(b"ok"));
    }
    arrives_new(&mut calls, 2, 10, Mono::ZERO);
}

#[test]
fn a_call_underway_answers_the_connection_that_asked_last() {
    let mut calls = Calls::default();
    arrives_new(&mut calls, 1, 10, Mono::ZERO);
    assert_eq!(calls.look_up(key(1), on(11), Mono::ZERO), Arrival::InProgress);
    assert_eq!(calls.look_up(key(1), on(12), Mono::ZERO), Arrival::InProgress);
    let waiters = calls.answered(key(1)).unwrap();
    assert!(waiters.iter().eq([on(10), on(11), on(12)]));
    assert!(calls.in_progress.is_empty() && calls.replies.is_empty());
}

#[test]
fn what_too_many_send_at_once_is_carried_out_for_each() {
    let mut calls = Calls::default();
    let most = WAITERS_MAX as u64;
    arrives_new(&mut calls, 1, 0, Mono::ZERO);
    for connection in 1..most {
        assert_eq!(calls.look_up(key(1), on(connection), Mono::ZERO), Arrival::InProgress);
    }
    assert_eq!(calls.look_up(key(1), on(most), Mono::ZERO), Arrival::Bypass);
    assert_eq!(calls.look_up(key(1), on(0), Mono::ZERO), Arrival::InProgress, "known, so shared");
    let waiters = calls.answered(key(1)).unwrap();
    assert!(waiters.iter().eq((1..most).chain([0]).map(on)));
}

#[test]
fn a_call_given_up_may_be_carried_out_again() {
    let mut calls = Calls::default();
    let ticket = arrives_new(&mut calls, 1, 10, Mono::ZERO);
    calls.leave(key(1), ticket);
    arrives_new(&mut calls, 1, 11, Mono::ZERO);
}

#[test]
fn answers_are_forgotten_after_their_time() {
    let mut calls = Calls::default();
    carry_out(&mut calls, 1, 10, b"old", Mono::ZERO);
    let end = Mono::ZERO + CACHED_REPLIES_KEPT;
    assert_eq!(calls.look_up(key(1), on(10), end), Arrival::Cached(b"old"));
    let later = end + Duration::from_nanos(1);
    carry_out(&mut calls, 1, 10, b"new", later);
    assert_eq!(calls.look_up(key(1), on(10), later), Arrival::Cached(b"new"));
    carry_out(&mut calls, 2, 10, b"other", later);
    assert_eq!(calls.replies(), 2, "what was too old is gone, what was given anew is not");
}

#[test]
fn the_oldest_answer_makes_room_for_the_newest() {
    let mut calls = Calls::default();
    let most = u32::try_from(CACHED_REPLIES_CLIENT_MAX).unwrap();
    for xid in 0..most + 100 {
        carry_out(&mut calls, xid, 10, &xid.to_be_bytes(), Mono::ZERO);
    }
    assert_eq!(calls.replies(), CACHED_REPLIES_CLIENT_MAX);
    let newest = (most + 99).to_be_bytes();
    assert_eq!(calls.look_up(key(most + 99), on(1), Mono::ZERO), Arrival::Cached(&newest));
    let oldest = 100u32.to_be_bytes();
    assert_eq!(calls.look_up(key(100), on(1), Mono::ZERO), Arrival::Cached(&oldest));
    arrives_new(&mut calls, 99, 1, Mono::ZERO);
}

#[test]
fn the_oldest_answer_is_given_up_and_the_old_ones_in_time() {
    let mut calls = Calls::default();
    for xid in 0..4 {
        carry_out(&mut calls, xid, 10, b"ok", Mono::from_millis(xid.into()));
    }
    calls.forget_oldest();
    arrives_new(&mut calls, 0, 10, Mono::from_millis(5));
    assert_eq!(calls.replies(), 3);
    let due = |millis| Some(Mono::from_millis(millis) + CACHED_REPLIES_KEPT);
    calls.forget_old(Mono::from_millis(5));
    assert_eq!((calls.replies(), calls.due()), (3, due(1)));
    calls.forget_old(Mono::from_millis(2) + CACHED_REPLIES_KEPT);
    assert_eq!((calls.replies(), calls.due()), (2, due(2)));
    calls.forget_old(Mono::from_millis(9) + CACHED_REPLIES_KEPT);
    assert_eq!((calls.replies(), calls.due()), (0, None));
}

#[test]
fn what_a_connection_took_is_forgotten_with_it_and_nothing_else() {
    let mut calls = Calls::default();
    carry_out(&mut calls, 1, 10, b"a", Mono::ZERO);
    carry_out(&mut calls, 2, 11, b"b", Mono::ZERO);
    carry_out(&mut calls, 3, 10, b"c", Mono::ZERO);
    // Asked for again over another connection, it belongs to that one.
    assert_eq!(calls.look_up(key(3), on(11), Mono::ZERO), Arrival::Cached(b"c"));
    assert_eq!(calls.forget(10), [(VolumeId(1), key(1))]);
    assert_eq!((calls.replies(), calls.order.len()), (2, 2));
    arrives_new(&mut calls, 1, 12, Mono::ZERO);
}

#[test]
fn a_reply_of_unusual_length_is_not_kept() {
    let mut calls = Calls::default();
    carry_out(&mut calls, 1, 10, &[0; CACHED_REPLY_BYTES_MAX + 1], Mono::ZERO);
    assert_eq!(calls.replies(), 0);
}

/// An event of a call that may wait, over two connections of its client.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The client sends the call, perhaps again.
    Send(u64),
    /// The oldest request that waits on this connection gets its turn.
    Turn(u64),
    /// The request being carried out is answered.
    Finish,
    /// The connection is lost, and another takes its place.
    Lose(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..2u64).prop_map(Event::Send),
        3 => (0..2u64).prop_map(Event::Turn),
        2 => Just(Event::Finish),
        1 => (0..2u64).prop_map(Event::Lose),
    ]
}

/// One call that waits at a gate, its queue, and the connections that are owed a reply.
#[derive(Default)]
struct Model {
    calls: Calls,
    waiting: Vec<(ConnId, Ticket)>,
    running: Option<Ticket>,
    owed: Vec<ConnId>,
    lost: [u64; 2],
}

impl Model {
    /// The connection in `place` now: each that was lost had a number of its own.
    fn current(&self, place: u64) -> ConnId {
        on(place + 2 * self.lost[usize::try_from(place).unwrap()])
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Send(place) => {
                let waiter = self.current(place);
                match self.calls.wait(key(1), waiter) {
                    Place::Own(ticket) => self.waiting.push((waiter, ticket)),
                    Place::Shared => {}
                    // The call goes its own way, and is answered there.
                    Place::Bypass => return,
                }
                self.owed.push(waiter);
            }
            Event::Turn(place) => {
                let waiter = self.current(place);
                if let Some(at) = self.waiting.iter().position(|own| own.0 == waiter) {
                    let (_, ticket) = self.waiting.remove(at);
                    if self.calls.begin(key(1), ticket) {
                        assert_eq!(self.running.replace(ticket), None, "carried out twice at once");
                    }
                }
            }
            Event::Finish => {
                if self.running.take().is_some() {
                    let waiters = self.calls.answered(key(1)).unwrap();
                    self.owed.retain(|owed| !waiters.has(*owed));
                }
            }
            Event::Lose(place) => {
                let waiter = self.current(place);
                self.lost[usize::try_from(place).unwrap()] += 1;
                self.owed.retain(|owed| *owed != waiter);
                // The connection's waiting requests are given up; one that is carried out goes on.
                while let Some(at) = self.waiting.iter().position(|own| own.0 == waiter) {
                    let (_, ticket) = self.waiting.remove(at);
                    self.calls.leave(key(1), ticket);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_waiting_call_is_carried_out_once_at_a_time_and_everybody_is_answered(
        events in vec(event(), 0..60),
    ) {
        let mut model = Model::default();
        for event in events {
            model.apply(event);
        }
        // Every waiting request gets its turn in the end.
        for _ in 0..100 {
            model.apply(Event::Finish);
            model.apply(Event::Turn(0));
            model.apply(Event::Turn(1));
        }
        prop_assert!(model.owed.is_empty(), "{:?}", model.owed);
        prop_assert!(model.calls.in_progress.is_empty());
    }

    #[test]
    fn a_call_that_must_not_be_repeated_is_carried_out_once(
        steps in vec((0..4u32, 0..3u64, any::<bool>()), 0..200),
    ) {
        let (mut calls, mut done, mut running) = (Calls::default(), [0; 4], [None; 4]);
        for (at, (xid, connection, finish)) in steps.into_iter().enumerate() {
            let (now, slot) = (Mono::from_millis(at as u64), xid as usize);
            if finish {
                if let Some(last) = running[slot].take() {
                    let waiters = calls.answered(key(xid)).unwrap();
                    prop_assert_eq!(waiters.last(), last, "who asked last is answered");
                    let reply = xid.to_be_bytes();
                        let reply = (&reply[..], now + CACHED_REPLIES_KEPT);
                        calls.remember(key(xid), (VolumeId(1), last.token), reply, now);
                }
                continue;
            }
            match calls.look_up(key(xid), on(connection), now) {
                Arrival::New(_) => {
                    prop_assert_eq!(running[slot], None);
                    done[slot] += 1;
                    running[slot] = Some(on(connection));
                }
                Arrival::InProgress => {
                    prop_assert!(running[slot].is_some());
                    running[slot] = Some(on(connection));
                }
                Arrival::Cached(reply) => prop_assert_eq!(reply, xid.to_be_bytes()),
                Arrival::Bypass => prop_assert!(false, "three connections are not too many"),
            }
        }
        prop_assert!(done.iter().all(|times| *times <= 1), "{:?}", done);
    }
}
