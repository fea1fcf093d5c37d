//! Volumes that move from one server's tables into another's: whoever holds something holds it
//! there, nobody else gets it, and those who wait go on waiting in their order.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use weir_core::{Access, Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, Counted, File, Grant, Limit, Limits, ListedLock, Locked, Mode, OpenMode, Owner,
    Protocol, Range, Refused, Scope, Share, Sharing, Span, Tables, Use, VolumeLocks,
};

const NOW: Mono = Mono::from_millis(1000);
const VOLUME: VolumeId = VolumeId(1);
const OTHER: VolumeId = VolumeId(2);

fn file(number: u8) -> File {
    File { volume: VOLUME, object: ObjectKey::new(&[number]).unwrap() }
}

fn client(name: &str) -> Client {
    Client::new(Protocol::Nlm, Origin::default(), name.as_bytes())
}

fn owner(name: &str) -> Owner {
    Owner::new(client(&name[..1]), &name.as_bytes()[1..])
}

fn ask(who: &str, number: u8) -> Ask {
    Ask { file: file(number), owner: owner(who), range: Range::ALL, mode: Mode::Exclusive }
}

fn tables(limits: Limits) -> Tables<u32> {
    let mut tables = Tables::new(limits);
    tables.open(VOLUME);
    tables.open(OTHER);
    tables
}

fn lock(tables: &mut Tables<u32>, ask: &Ask, wait: Option<u32>) -> Result<Locked, Refused> {
    let mut grants = Vec::new();
    let locked = tables.lock(NOW, ask, false, wait, &mut grants);
    assert!(grants.is_empty());
    locked
}

/// The tokens of those who got locks.
fn tokens(grants: Vec<Grant<u32>>) -> Vec<u32> {
    grants.into_iter().map(|grant| grant.waiter).collect()
}

/// The locks and waits without their numbers, which are each server's own.
fn listed(tables: &Tables<u32>) -> Vec<(File, Owner, u64, Option<u64>, Mode)> {
    let entry = |one: ListedLock| (one.place.file, one.owner, one.offset, one.length, one.mode);
    tables.locks(None).map(entry).collect()
}

/// Moves the volume to a new server; gives the tokens of those who get locks there at once.
fn moved(from: &mut Tables<u32>) -> (Tables<u32>, Vec<u32>) {
    let (mut to, mut grants) = (tables(Limits::SERVER), Vec::new());
    let moving = from.hand_over(NOW, VOLUME);
    to.take_up(NOW, VOLUME, moving, &mut grants).unwrap();
    (to, tokens(grants))
}

#[test]
fn a_lock_that_moves_is_held_there_and_not_here() {
    let mut from = tables(Limits::SERVER);
    assert_eq!(lock(&mut from, &ask("a1", 1), None), Ok(Locked::Granted));
    let (mut to, granted) = moved(&mut from);
    assert_eq!(granted, []);
    assert_eq!((from.used(), from.clients().len()), (Use::default(), 0));
    assert_eq!(lock(&mut from, &ask("b1", 1), None), Err(Refused::NoVolume));
    assert!(matches!(lock(&mut to, &ask("b1", 1), None), Err(Refused::Held(_))));
    assert_eq!(lock(&mut to, &ask("a1", 1), None), Ok(Locked::Granted), "the request is repeated");
    let mut grants = Vec::new();
    to.unlock(&file(1), &owner("a1"), Range::ALL, &mut grants).unwrap();
    assert_eq!(lock(&mut to, &ask("b1", 1), None), Ok(Locked::Granted));
}

#[test]
fn those_who_wait_get_the_lock_in_their_order() {
    let mut from = tables(Limits::SERVER);
    lock(&mut from, &ask("a1", 1), None).unwrap();
    for (who, token) in [("b1", 1), ("c1", 2), ("d1", 3)] {
        assert_eq!(lock(&mut from, &ask(who, 1), Some(token)), Ok(Locked::Waits));
    }
    let (mut to, granted) = moved(&mut from);
    assert_eq!(granted, []);
    let mut order = Vec::new();
    for who in ["a1", "b1", "c1"] {
        let mut grants = Vec::new();
        to.unlock(&file(1), &owner(who), Range::ALL, &mut grants).unwrap();
        order.extend(tokens(grants));
    }
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_grant_without_an_answer_moves_as_a_lock() {
    let mut from = tables(Limits::SERVER);
    lock(&mut from, &ask("a1", 1), None).unwrap();
    lock(&mut from, &ask("b1", 1), Some(1)).unwrap();
    let mut grants = Vec::new();
    from.unlock(&file(1), &owner("a1"), Range::ALL, &mut grants).unwrap();
    let [grant] = &grants[..] else { panic!("{grants:?}") };
    let id = grant.id;
    let (mut to, _) = moved(&mut from);
    assert_eq!(from.grantee(id), None, "the callback is not due here any more");
    assert_eq!(lock(&mut to, &ask("b1", 1), Some(2)), Ok(Locked::Granted), "it asks again");
    assert!(matches!(lock(&mut to, &ask("c1", 1), None), Err(Refused::Held(_))));
}

#[test]
fn opens_stay_and_whoever_waited_for_their_locks_alone_gets_them() {
    let mut from = tables(Limits::SERVER);
    let session = Client::new(Protocol::Smb, Origin::default(), b"s");
    let mode = OpenMode { access: Sharing::all(), share: Sharing::all() };
    let open = from.open_file(&file(1), &session, mode, false).unwrap();
    from.lock_all(NOW, open, &[(Span::new(0, 10).unwrap(), Mode::Exclusive)]).unwrap();
    lock(&mut from, &ask("b1", 1), Some(1)).unwrap();
    let (to, granted) = moved(&mut from);
    assert_eq!(granted, [1]);
    assert!(!to.has(&session) && !from.has(&session));
}

#[test]
fn shares_move() {
    let mut from = tables(Limits::SERVER);
    let share = Share { access: Access::READ, deny: Access::WRITE };
    from.share(NOW, &file(1), &owner("a1"), share, false).unwrap();
    let (mut to, _) = moved(&mut from);
    let writes = Share { access: Access::WRITE, deny: Access::empty() };
    assert_eq!(to.share(NOW, &file(1), &owner("b1"), writes, false), Err(Refused::Shared));
    to.unshare(&file(1), &owner("a1"));
    assert_eq!(to.share(NOW, &file(1), &owner("b1"), writes, false), Ok(()));
}

#[test]
fn what_is_too_much_or_contradicts_itself_is_not_taken_up() {
    let mut from = tables(Limits::SERVER);
    for who in ["a1", "b1", "c1"] {
        let number = who.as_bytes()[0];
        lock(&mut from, &ask(who, number), None).unwrap();
    }
    let moving = from.hand_over(NOW, VOLUME);
    let one = Use { locks: 3, ..Limits::SERVER.server };
    let mut to = tables(Limits { server: one, ..Limits::SERVER });
    let elsewhere = Ask { file: File { volume: OTHER, ..file(1) }, ..ask("z1", 1) };
    lock(&mut to, &elsewhere, None).unwrap();
    let full = Refused::Full(Limit { counted: Counted::Locks, scope: Scope::Server });
    let mut grants = Vec::new();
    assert_eq!(to.take_up(NOW, VOLUME, moving.clone(), &mut grants), Err(full));
    assert_eq!(to.used().locks, 1, "nothing of it is left");
    assert_eq!(lock(&mut to, &ask("b1", b'a'), None), Ok(Locked::Granted));
    let mut twice = moving;
    let mut other = twice.locks[0].clone();
    other.owner = owner("z2");
    twice.locks.push(other);
    let mut to = tables(Limits::SERVER);
    assert!(matches!(to.take_up(NOW, VOLUME, twice, &mut grants), Err(Refused::Held(_))));
    assert_eq!(to.used(), Use::default());
    assert_eq!(
        to.take_up(NOW, VolumeId(9), VolumeLocks::default(), &mut grants),
        Err(Refused::NoVolume)
    );
}

#[test]
fn the_rest_of_a_grace_period_moves() {
    let mut from = tables(Limits::SERVER);
    from.begin_grace(Mono::from_millis(5000), [VOLUME, OTHER], [client("a"), client("b")]);
    from.release_client(&client("b"), &mut Vec::new());
    let moving = from.hand_over(NOW, VOLUME);
    let left = moving.grace.clone().unwrap();
    assert_eq!((left.time, left.clients.known.len()), (Duration::from_secs(4), 2));
    assert_eq!(left.clients.awaited, [client("a")].into());
    assert!(from.admits(NOW, OTHER, &client("c"), false).is_err(), "it goes on there");
    let (mut to, later) = (tables(Limits::SERVER), Mono::from_millis(50_000));
    to.take_up(later, VOLUME, moving, &mut Vec::new()).unwrap();
    let admits = |tables: &Tables<u32>, at: u64, who: &str, reclaim| {
        tables.admits(Mono::from_millis(at), VOLUME, &client(who), reclaim)
    };
    assert_eq!(admits(&to, 53_999, "c", false), Err(Refused::Grace));
    assert_eq!(admits(&to, 53_999, "b", true), Ok(()));
    assert_eq!(admits(&to, 53_999, "c", true), Err(Refused::NoReclaim));
    assert_eq!(admits(&to, 54_000, "c", false), Ok(()));
    to.release_client(&client("a"), &mut Vec::new());
    assert_eq!(admits(&to, 50_000, "c", false), Ok(()), "nobody is awaited");
}

#[test]
fn a_grace_period_that_is_over_does_not_move() {
    let mut from = tables(Limits::SERVER);
    from.begin_grace(NOW, [VOLUME], [client("a")]);
    assert_eq!(from.hand_over(NOW, VOLUME).grace, None);
}

/// Groups of volumes arrive one after another when a gateway with several addresses dies.
#[test]
fn a_second_grace_period_does_not_end_the_first() {
    let mut tables = tables(Limits::SERVER);
    tables.begin_grace(Mono::from_millis(5000), [VOLUME], [client("a")]);
    tables.begin_grace(Mono::from_millis(9000), [OTHER], [client("b")]);
    let admits = |at: u64, volume, who: &str, reclaim| {
        tables.admits(Mono::from_millis(at), volume, &client(who), reclaim)
    };
    assert_eq!(admits(4999, VOLUME, "c", false), Err(Refused::Grace));
    assert_eq!(admits(4999, VOLUME, "a", true), Ok(()));
    assert_eq!(admits(4999, VOLUME, "b", true), Err(Refused::NoReclaim));
    assert_eq!(admits(5000, VOLUME, "c", false), Ok(()));
    assert_eq!(admits(8999, OTHER, "c", false), Err(Refused::Grace));
    assert_eq!(tables.grace_until(NOW), Some(Mono::from_millis(9000)));
    tables.begin_grace(Mono::from_millis(7000), [VOLUME, OTHER], [client("d")]);
    assert_eq!(tables.grace_until(NOW), Some(Mono::from_millis(7000)), "in place of both");
}

proptest! {
    /// The list of everything is the same at both ends, and so is the way it goes on.
    #[test]
    fn what_moves_is_as_it_was(
        asks in vec((0..4u8, 0..3u8, 0..6u64, 1..4u64, any::<bool>(), any::<bool>()), 0..60)
    ) {
        let (mut from, mut token) = (tables(Limits::SERVER), 0);
        for (who, number, first, length, exclusive, waits) in asks {
            let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
            let name = ["a1", "a2", "b1", "c1"][usize::from(who)];
            let range = Range::new(first, length).unwrap();
            let ask = Ask { range, mode, ..ask(name, number) };
            token += 1;
            let _any = from.lock(NOW, &ask, false, waits.then_some(token), &mut Vec::new());
        }
        let (before, used) = (listed(&from), from.used());
        let (mut to, granted) = moved(&mut from);
        // An owner that holds a lock by now may overtake others, and gets what is free.
        if granted.is_empty() {
            prop_assert_eq!(listed(&to), before);
            prop_assert_eq!(to.used(), used);
        }
        prop_assert_eq!(from.used(), Use::default());
        for who in ["a1", "a2", "b1", "c1", "a1", "a2", "b1", "c1"] {
            to.release_owner(&owner(who), &mut Vec::new());
        }
        prop_assert_eq!(to.used(), Use::default());
    }
}
