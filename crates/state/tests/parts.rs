//! The parts of one origin and one volume in the common bounds: whatever they do, others find room.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use std::net::Ipv4Addr;
use weir_core::{Access, Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, Counted, File, Grant, Limit, Limits, Locked, Mode, Owner, Part, Protocol, Range,
    Refused, Scope, Share, Tables, Use,
};

const NOW: Mono = Mono::from_millis(1000);

/// Small, so that the bounds are reached soon.
const SMALL: Limits = Limits {
    file: Use { locks: 1000, waiters: 1000, shares: 1000, opens: 1000, owner_bytes: usize::MAX },
    client: Use { locks: 200, waiters: 100, shares: 100, opens: 100, owner_bytes: 1 << 12 },
    server: Use { locks: 400, waiters: 200, shares: 200, opens: 200, owner_bytes: 1 << 14 },
    clients: 200,
    origin: Part {
        one_in: 4,
        clients_one_in: 8,
        least: Use { locks: 4, waiters: 4, shares: 4, opens: 4, owner_bytes: 64 },
        least_clients: 4,
    },
    volume: Part {
        one_in: 2,
        clients_one_in: 2,
        least: Use { locks: 8, waiters: 8, shares: 8, opens: 8, owner_bytes: usize::MAX },
        least_clients: 8,
    },
};

fn file(volume: u32, number: u8) -> File {
    File { volume: VolumeId(volume), object: ObjectKey::new(&[number]).unwrap() }
}

fn client(from: u32, name: u32) -> Client {
    let origin = Origin::of(Ipv4Addr::from(from).into());
    Client::new(Protocol::Nlm, origin, &name.to_be_bytes())
}

fn ask(from: u32, name: u32, volume: u32, at: u64, mode: Mode) -> Ask {
    let owner = Owner::new(client(from, name), b"o");
    Ask { file: file(volume, 0), owner, range: Range::new(2 * at, 1).unwrap(), mode }
}

struct World {
    tables: Tables<()>,
    grants: Vec<Grant<()>>,
}

impl World {
    fn new() -> Self {
        let mut tables = Tables::new(SMALL);
        (0..9).for_each(|volume| tables.open(VolumeId(volume)));
        Self { tables, grants: Vec::new() }
    }

    fn lock(&mut self, ask: &Ask, wait: bool) -> Result<Locked, Refused> {
        self.tables.lock(NOW, ask, false, wait.then_some(()), &mut self.grants)
    }

    fn reclaim(&mut self, ask: &Ask) -> Result<Locked, Refused> {
        self.tables.lock(NOW, ask, true, None, &mut self.grants)
    }
}

fn full(counted: Counted, scope: Scope) -> Result<Locked, Refused> {
    Err(Refused::Full(Limit { counted, scope }))
}

#[test]
fn invented_clients_count_against_their_origin() {
    let mut world = World::new();
    let shared = |from, name| ask(from, name, name % 9, 0, Mode::Shared);
    let got = (0..10_000).take_while(|name| world.lock(&shared(1, *name), false).is_ok()).count();
    assert_eq!(got, SMALL.clients / SMALL.origin.clients_one_in);
    assert_eq!(world.lock(&shared(1, 9999), false), full(Counted::Clients, Scope::Origin));
    // Clients that are there already go on, and strangers come.
    assert_eq!(world.lock(&ask(1, 0, 5, 7, Mode::Exclusive), false), Ok(Locked::Granted));
    assert_eq!(world.lock(&shared(2, 9999), false), Ok(Locked::Granted));
    // The stranger leaves them one less, so two must go before one may come.
    for left in [client(1, 0), client(1, 1)] {
        world.tables.release_client(&left, &mut Vec::new());
        assert_eq!(world.tables.take_left(), [left]);
    }
    assert_eq!(world.lock(&shared(1, 9999), false), Ok(Locked::Granted));
    assert_eq!(world.tables.take_left(), []);
}

#[test]
fn clients_of_one_volume_leave_room_for_those_of_others() {
    let mut world = World::new();
    let mut got = 0;
    for from in 0..100 {
        let mut names = 0..100;
        got += names
            .by_ref()
            .take_while(|name| world.lock(&ask(from, *name, 1, 0, Mode::Shared), false).is_ok())
            .count();
    }
    assert_eq!(got, SMALL.clients / SMALL.volume.clients_one_in);
    let last = world.lock(&ask(500, 1, 1, 0, Mode::Shared), false);
    assert_eq!(last, full(Counted::Clients, Scope::Volume));
    for from in 600..620 {
        let lock = world.lock(&ask(from, 1, 2, 0, Mode::Shared), false);
        assert_eq!(lock, Ok(Locked::Granted));
    }
    world.tables.close(VolumeId(1));
    world.tables.open(VolumeId(1));
    let again = world.lock(&ask(500, 1, 1, 0, Mode::Shared), false);
    assert_eq!(again, Ok(Locked::Granted));
}

#[test]
fn a_reclaim_and_an_unlock_are_not_refused_because_of_others() {
    let mut world = World::new();
    world.tables.begin_grace(
        Mono::from_secs(100),
        [VolumeId(1)],
        (0..60).map(|name| client(1, name)),
    );
    for name in 0..60 {
        let lock = world.reclaim(&ask(1, name, 1, u64::from(name), Mode::Exclusive));
        assert_eq!(lock, Ok(Locked::Granted), "more than a part of an origin");
    }
    let mut world = World::new();
    let middle = Range::new(10, 5).unwrap();
    let whole = Range::new(0, 100).unwrap();
    let owner = Owner::new(client(1, 1), b"o");
    let ask_whole = Ask { file: file(3, 1), owner, range: whole, mode: Mode::Exclusive };
    assert_eq!(world.lock(&ask_whole, false), Ok(Locked::Granted));
    let mut at = 0;
    while world.lock(&ask(1, 1, 1, at, Mode::Exclusive), false).is_ok() {
        at += 1;
    }
    let Ask { file, owner, .. } = &ask_whole;
    let done = world.tables.unlock(file, owner, middle, &mut world.grants);
    assert_eq!(done, Ok(()));
}

/// A request of one of the greedy.
#[derive(Clone, Copy, Debug)]
struct Greed {
    from: u32,
    volume: u32,
    kind: u8,
    times: u32,
}

fn greed() -> impl Strategy<Value = Greed> {
    (0..6u32, 0..3u32, 0..4u8, 1..300u32).prop_map(|(from, volume, kind, times)| Greed {
        from,
        volume,
        kind,
        times,
    })
}

proptest! {
    /// Six origins on three volumes take what they can get, in every way. Nobody passes a bound,
    /// and a stranger who works on another volume has a lock, a share and a wait.
    #[test]
    fn whatever_a_few_take_a_stranger_finds_room(
        steps in prop::collection::vec(greed(), 1..40),
    ) {
        let mut world = World::new();
        let holder = ask(70, 1, 7, 0, Mode::Exclusive);
        prop_assert_eq!(world.lock(&holder, false), Ok(Locked::Granted));
        let none = Share { access: Access::READ, deny: Access::empty() };
        for (number, Greed { from, volume, kind, times }) in (0u32..).zip(steps) {
            for time in 0..times {
                let name = number * 1000 + time;
                let at = u64::from(name);
                let done = match kind {
                    0 => world.lock(&ask(from, name, volume, 0, Mode::Shared), false).is_ok(),
                    1 => world.lock(&ask(from, 1, volume, at, Mode::Exclusive), false).is_ok(),
                    2 => world.lock(&ask(from, name, volume, 0, Mode::Exclusive), true).is_ok(),
                    _ => {
                        let owner = Owner::new(client(from, name), &[b'x'; 40]);
                        world.tables.share(NOW, &file(volume, 1), &owner, none, false).is_ok()
                    }
                };
                if !done {
                    break;
                }
            }
        }
        let used = world.tables.used();
        prop_assert!(used.locks <= SMALL.server.locks && used.waiters <= SMALL.server.waiters);
        prop_assert!(world.tables.clients().len() <= SMALL.clients);
        let stranger = |volume, at| ask(80, 1, volume, at, Mode::Exclusive);
        prop_assert_eq!(world.lock(&stranger(8, 0), false), Ok(Locked::Granted));
        prop_assert_eq!(world.lock(&stranger(7, 0), true), Ok(Locked::Waits));
        let owner = Owner::new(client(80, 1), b"o");
        let share = world.tables.share(NOW, &file(8, 1), &owner, none, false);
        prop_assert_eq!(share, Ok(()));
    }
}
