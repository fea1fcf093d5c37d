use super::super::entry::Lookup;
use super::super::key::CallKey;
use super::*;
use crate::limits::{CACHED_REPLIES_CLIENT_MAX, CACHED_REPLIES_KEPT};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use weir_core::{Shared, VolumeId};
use weir_gate::ConnId;
use weir_nfs::rpc::{Call, Credential};

fn key(clients: &Clients, xid: u32) -> CallKey {
    let (credential, args) = (Credential::None, Shared::from(Vec::new()));
    clients.fingerprints.of(&Call {
        xid,
        program: 100_003,
        version: 3,
        procedure: 12,
        credential,
        args,
    })
}

/// `calls` sends a call over `connection`. Returns the remembered reply; otherwise the call is
/// carried out, and its number is the reply.
fn ask(
    clients: &Clients,
    calls: &Arc<DrcClient>,
    connection: u64,
    xid: u32,
    now: Mono,
) -> Option<Vec<u8>> {
    let (key, waiter) = (key(clients, xid), ConnId { worker: 0, token: connection });
    match calls.look_up(key, waiter, now, <[u8]>::to_vec) {
        Lookup::New(entry) => {
            entry.answered(VolumeId(1), &xid.to_be_bytes(), now).unwrap();
            None
        }
        Lookup::Cached(reply) => Some(reply),
        Lookup::Bypass | Lookup::InProgress => panic!("nothing is underway"),
    }
}

/// One call of `client` over a connection that is lost.
fn ask_once(clients: &Clients, client: ClientKey, xid: u32, now: Mono) -> Option<Vec<u8>> {
    let calls = clients.enter(client, now);
    let reply = ask(clients, &calls, 1, xid, now);
    drop(calls);
    clients.leave(client, now);
    reply
}

fn v4(number: u32) -> ClientKey {
    client_at(IpAddr::from(number.to_be_bytes()))
}

fn known(clients: &Clients) -> usize {
    lock(&clients.register.table).known.len()
}

#[test]
fn a_client_is_the_same_across_its_connections_and_nobody_once_it_left() {
    let clients = Clients::new(1);
    let (now, client) = (Mono::ZERO, v4(5));
    let first = clients.enter(client, now);
    assert!(Arc::ptr_eq(&first, &clients.enter(client, now)));
    assert!(!Arc::ptr_eq(&first, &clients.enter(v4(6), now)));
    clients.leave(client, now);
    assert!(Arc::ptr_eq(&first, &clients.enter(client, now)));
    clients.leave(client, now);
    clients.leave(client, now);
    clients.leave(v4(6), now);
    assert_eq!(known(&clients), 1, "a request underway holds it");
    drop(first);
    clients.leave(v4(7), now);
    assert_eq!(known(&clients), 0);
}

#[test]
fn a_stranger_that_connects_and_leaves_makes_the_server_forget_nobody() {
    let (clients, now) = (Clients::new(1), Mono::ZERO);
    assert_eq!(ask_once(&clients, v4(1), 7, now), None);
    assert_eq!(ask_once(&clients, v4(2), 8, now), None);
    for _ in 0..5000 {
        drop(clients.enter(v4(2), now));
        clients.leave(v4(2), now);
    }
    assert_eq!(ask_once(&clients, v4(1), 7, now), Some(7u32.to_be_bytes().to_vec()));
}

#[test]
fn thousands_of_strangers_with_a_call_each_make_the_server_forget_nobody() {
    let (clients, now) = (Clients::new(1), Mono::ZERO);
    assert_eq!(ask_once(&clients, v4(1), 7, now), None);
    for stranger in 2..6000 {
        assert_eq!(ask_once(&clients, v4(stranger), 8, now), None);
    }
    assert_eq!(ask_once(&clients, v4(1), 7, now), Some(7u32.to_be_bytes().to_vec()));
}

#[test]
fn replies_are_forgotten_in_their_time_and_their_clients_with_them() {
    let clients = Clients::new(1);
    for client in 0..100 {
        ask_once(&clients, v4(client), 1, Mono::from_millis(client.into()));
    }
    assert_eq!(known(&clients), 100);
    let late = Mono::from_millis(100) + CACHED_REPLIES_KEPT;
    for _ in 0..200 {
        clients.leave(v4(1000), late);
    }
    assert_eq!(known(&clients), 0);
    let table = lock(&clients.register.table);
    assert!(table.due.is_empty() && table.leaving.is_empty());
}

/// A stranger's action, or one of the client in question.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client of this origin sends a number of calls over a connection that is lost.
    Flood { origin: u8, address: u16, calls: u8 },
    /// A client of this origin connects and leaves a number of times.
    Churn { origin: u8, address: u16, times: u8 },
    /// A client of this origin sends calls and closes in an orderly way.
    Close { origin: u8, address: u16, calls: u8 },
    /// A client of this origin keeps a connection with calls underway.
    Stay { origin: u8, address: u16 },
    /// The client in question sends a call over a connection that is lost.
    Ask,
    /// Time goes by.
    Pause { seconds: u16 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..ORIGINS, any::<u16>(), 1..60u8)
            .prop_map(|(origin, address, calls)| Event::Flood { origin, address, calls }),
        2 => (0..ORIGINS, any::<u16>(), 1..60u8)
            .prop_map(|(origin, address, times)| Event::Churn { origin, address, times }),
        1 => (0..ORIGINS, any::<u16>(), 1..9u8)
            .prop_map(|(origin, address, calls)| Event::Close { origin, address, calls }),
        1 => (0..ORIGINS, any::<u16>()).prop_map(|(origin, address)| Event::Stay { origin, address }),
        2 => Just(Event::Ask),
        1 => (0..900u16).prop_map(|seconds| Event::Pause { seconds }),
    ]
}

/// Origins of strangers, and the replies that all clients may have remembered: so the client in
/// question may have nine, which is less than a twelfth.
const ORIGINS: u8 = 10;
const MOST: usize = 110;
const SHARE: usize = 9;

/// The stranger at one of the addresses of an origin. Every other origin has one address.
fn stranger(origin: u8, address: u16) -> ClientKey {
    if origin.is_multiple_of(2) {
        return v4(1000 + u32::from(origin));
    }
    ClientKey(0x2001_0db8 << 96 | u128::from(origin) << 64 | u128::from(address))
}

proptest! {
    #[test]
    fn within_its_share_a_client_finds_its_replies_whatever_strangers_do(
        events in vec(event(), 0..120),
        victim_is_v6: bool,
    ) {
        let clients = Clients::bounded(1, MOST);
        let victim = if victim_is_v6 { ClientKey(0xfd00 << 112 | 1) } else { v4(1) };
        let (mut now, mut xid) = (Mono::ZERO, 1000u32);
        let (mut asked, mut staying) = (VecDeque::new(), Vec::new());
        for event in events {
            now = now + Duration::from_millis(1);
            match event {
                Event::Flood { origin, address, calls } => for _ in 0..calls {
                    xid += 1;
                    ask_once(&clients, stranger(origin, address), xid, now);
                },
                Event::Churn { origin, address, times } => for _ in 0..times {
                    drop(clients.enter(stranger(origin, address), now));
                    clients.leave(stranger(origin, address), now);
                },
                Event::Close { origin, address, calls } => {
                    let client = clients.enter(stranger(origin, address), now);
                    for _ in 0..calls {
                        xid += 1;
                        ask(&clients, &client, 2, xid, now);
                    }
                    client.forget_connection(2);
                    drop(client);
                    clients.leave(stranger(origin, address), now);
                }
                Event::Stay { origin, address } => {
                    let calls = clients.enter(stranger(origin, address), now);
                    xid += 1;
                    let waiter = ConnId { worker: 0, token: 3 };
                    let came = calls.look_up(key(&clients, xid), waiter, now, <[u8]>::to_vec);
                    staying.push((calls, came));
                }
                Event::Ask => if asked.len() < SHARE {
                    xid += 1;
                    asked.push_back((xid, now));
                    prop_assert_eq!(ask_once(&clients, victim, xid, now), None);
                },
                Event::Pause { seconds } => now = now + Duration::from_secs(seconds.into()),
            }
            while asked.front().is_some_and(|(_, at)| now.since(*at) > CACHED_REPLIES_KEPT) {
                asked.pop_front();
            }
            for (xid, _) in &asked {
                let reply = ask_once(&clients, victim, *xid, now);
                prop_assert_eq!(reply, Some(xid.to_be_bytes().to_vec()));
            }
            let table = lock(&clients.register.table);
            prop_assert!(table.replies.total() <= MOST);
            let connected = table.known.values().filter(|known| known.connections > 0).count();
            let known = table.known.len();
            prop_assert!(known <= connected + MOST + table.leaving.len(), "{known} are known");
            prop_assert!(table.leaving.len() <= 2, "{:?} wait to be forgotten", table.leaving.len());
        }
    }
}

#[test]
fn the_client_that_has_the_most_gives_way_and_keeps_the_newest() {
    let (clients, now) = (Clients::bounded(1, CACHED_REPLIES_CLIENT_MAX), Mono::ZERO);
    let most = u32::try_from(CACHED_REPLIES_CLIENT_MAX).unwrap();
    for xid in 0..most {
        ask_once(&clients, v4(1), xid, now);
    }
    for xid in 0..10 {
        ask_once(&clients, v4(2), xid, now);
    }
    assert_eq!(ask_once(&clients, v4(1), 10, now), Some(10u32.to_be_bytes().to_vec()));
    assert_eq!(ask_once(&clients, v4(1), 9, now), None, "the oldest are gone");
}

/// One call of a client about a volume, over a connection that is lost.
fn ask_on(clients: &Clients, client: ClientKey, xid: u32, volume: u32) -> Option<Vec<u8>> {
    let calls = clients.enter(client, Mono::ZERO);
    let (key, waiter) = (key(clients, xid), ConnId { worker: 0, token: 1 });
    let reply = match calls.look_up(key, waiter, Mono::ZERO, <[u8]>::to_vec) {
        Lookup::New(entry) => {
            entry.answered(VolumeId(volume), &xid.to_be_bytes(), Mono::ZERO).unwrap();
            None
        }
        Lookup::Cached(reply) => Some(reply),
        Lookup::Bypass | Lookup::InProgress => panic!("nothing is underway"),
    };
    drop(calls);
    clients.leave(client, Mono::ZERO);
    reply
}

#[test]
fn the_replies_of_a_volume_move_to_another_server_and_are_not_here_any_more() {
    let (here, there) = (Clients::new(7), Clients::new(7));
    for (xid, volume) in [(1, 1), (2, 2), (3, 1)] {
        assert_eq!(ask_on(&here, v4(1), xid, volume), None);
    }
    assert_eq!(ask_on(&here, v4(2), 1, 1), None);
    let moving = here.hand_over(&BTreeSet::from([VolumeId(1)]), Mono::ZERO);
    assert!(moving.iter().all(|(volume, _)| *volume == VolumeId(1)));
    let of_first = moving.iter().filter(|(_, one)| one.client == v4(1).0);
    assert_eq!(of_first.map(|(_, one)| one.xid).collect::<Vec<_>>(), [1, 3], "the oldest first");
    assert_eq!(moving.len(), 3);
    let all: Vec<Answered> = moving.into_iter().map(|(_, one)| one).collect();
    there.take_up(VolumeId(1), &all, Mono::ZERO);
    assert_eq!(ask_on(&there, v4(1), 1, 1), Some(1u32.to_be_bytes().to_vec()));
    assert_eq!(ask_on(&there, v4(2), 1, 1), Some(1u32.to_be_bytes().to_vec()));
    assert_eq!(ask_on(&there, v4(1), 2, 2), None, "the other volume stayed");
    assert_eq!(ask_on(&here, v4(1), 2, 2), Some(2u32.to_be_bytes().to_vec()));
    assert_eq!(ask_on(&here, v4(1), 1, 1), None, "it is another server's to know");
}

#[test]
fn a_reply_that_took_the_place_of_another_moves_once() {
    let (mut moved, clients) = (Vec::new(), Clients::new(7));
    let calls = clients.enter(v4(1), Mono::ZERO);
    for (at, reply) in [(0, b"old"), (1, b"new")] {
        let (call, at) = ((key(&clients, 1), VolumeId(1)), Mono::from_secs(at));
        calls.remember(call, (reply, at + CACHED_REPLIES_KEPT), at);
    }
    moved.extend(clients.hand_over(&BTreeSet::from([VolumeId(1)]), Mono::from_secs(1)));
    let [(_, one)] = &moved[..] else { panic!("{moved:?}") };
    assert_eq!(one.reply, b"new");
    assert_eq!(clients.hand_over(&BTreeSet::from([VolumeId(1)]), Mono::from_secs(1)), []);
}

/// One call of a client about a volume at a time, over a connection that is lost; is it executed?
fn executes(clients: &Clients, xid: u32, volume: u32, now: Mono) -> bool {
    let calls = clients.enter(v4(1), now);
    let (key, waiter) = (key(clients, xid), ConnId { worker: 0, token: 1 });
    let is_new = match calls.look_up(key, waiter, now, <[u8]>::to_vec) {
        Lookup::New(entry) => {
            entry.answered(VolumeId(volume), &xid.to_be_bytes(), now).unwrap();
            true
        }
        Lookup::Cached(_) => false,
        Lookup::Bypass | Lookup::InProgress => panic!("nothing is underway"),
    };
    drop(calls);
    clients.leave(v4(1), now);
    is_new
}

#[test]
fn replies_that_move_give_way_before_fresher_ones_of_another_volume() {
    let (here, there) = (Clients::new(7), Clients::new(7));
    let most = u32::try_from(CACHED_REPLIES_CLIENT_MAX).unwrap();
    let (first, half) = (Mono::from_secs(1), most / 2);
    for xid in 0..most {
        assert!(executes(&here, xid, 1, first));
    }
    let answered = here.hand_over(&BTreeSet::from([VolumeId(1)]), Mono::from_secs(61));
    let moving: Vec<_> = answered.into_iter().map(|(_, one)| one).collect();
    assert_eq!(moving.len(), CACHED_REPLIES_CLIENT_MAX);
    assert!(moving.iter().all(|one| one.age == Duration::from_secs(60)));
    // The next home has begun later than the calls were answered there.
    let now = Mono::from_secs(10);
    for xid in most..most + half {
        assert!(executes(&there, xid, 2, Mono::from_secs(5)));
    }
    there.take_up(VolumeId(1), &moving, now);
    let again: Vec<u32> =
        (most..most + half).filter(|xid| executes(&there, *xid, 2, now)).collect();
    assert_eq!(again, [], "of these the replies are fresher");
    let moved = there.hand_over(&BTreeSet::from([VolumeId(1)]), now);
    assert_eq!(moved.len(), CACHED_REPLIES_CLIENT_MAX - usize::try_from(half).unwrap());
    assert!(moved.iter().all(|(_, one)| one.age == Duration::from_secs(60)));
}

#[test]
fn a_move_does_not_prolong_the_time_of_a_reply() {
    let [first, second, third] = [1, 2, 3].map(|_| Clients::new(7));
    let volumes = BTreeSet::from([VolumeId(1)]);
    let (part, rest) = (CACHED_REPLIES_KEPT * 2 / 3, CACHED_REPLIES_KEPT / 3);
    let moved = |from: &Clients, to: &Clients, left: Mono, come: Mono| {
        for (volume, one) in from.hand_over(&volumes, left) {
            to.take_up(volume, &[one], come);
        }
    };
    executes(&first, 1, 1, Mono::ZERO);
    moved(&first, &second, Mono::ZERO + part, Mono::ZERO);
    assert!(!executes(&second, 1, 1, Mono::ZERO + rest));
    assert!(executes(&second, 1, 1, Mono::from_millis(1) + rest));
    // That one expires before it moves, and one that a peer says to be older is not taken.
    let late = Mono::from_millis(2) + rest + CACHED_REPLIES_KEPT;
    assert_eq!(second.hand_over(&volumes, late), []);
    executes(&first, 2, 1, Mono::ZERO);
    let mut old = first.hand_over(&volumes, Mono::ZERO).remove(0).1;
    old.age = CACHED_REPLIES_KEPT + Duration::from_millis(1);
    third.take_up(VolumeId(1), &[old], late);
    assert_eq!(third.hand_over(&volumes, late), []);
}

#[test]
fn a_moved_reply_does_not_take_the_place_of_a_younger_one() {
    let (here, there) = (Clients::new(7), Clients::new(7));
    executes(&here, 1, 1, Mono::ZERO);
    let mut old = here.hand_over(&BTreeSet::from([VolumeId(1)]), Mono::from_secs(9)).remove(0).1;
    old.reply = b"old".to_vec();
    executes(&there, 1, 1, Mono::from_secs(1));
    there.take_up(VolumeId(1), &[old], Mono::from_secs(2));
    let reply = ask_once(&there, v4(1), 1, Mono::from_secs(2));
    assert_eq!(reply, Some(1u32.to_be_bytes().to_vec()));
}

#[test]
fn a_connection_that_ends_in_order_leaves_replies_of_another_server() {
    let (here, there, now) = (Clients::new(7), Clients::new(7), Mono::ZERO);
    executes(&here, 1, 1, now);
    let moving = here.hand_over(&BTreeSet::from([VolumeId(1)]), now).remove(0).1;
    there.take_up(VolumeId(1), &[moving], now);
    // The client first asks whether the server is there, over a connection of its own.
    let calls = there.enter(v4(1), now);
    assert_eq!(calls.forget_connection(1), []);
    drop(calls);
    there.leave(v4(1), now);
    assert_eq!(ask_once(&there, v4(1), 1, now), Some(1u32.to_be_bytes().to_vec()));
}
