//! The list of all locks: it is in order and complete, and can be resumed after any entry, also
//! after a removed one. The lock of any entry can be released.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_core::{Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, File, Grant, Limits, ListedLock, LockPlace, LockSpot, Locked, Mode, OpenLocked,
    OpenMode, Owner, Protocol, Range, ReleasedLock, Sharing, Span, Tables,
};

const NOW: Mono = Mono::ZERO;

fn file(volume: u32, object: u8) -> File {
    File { volume: VolumeId(volume), object: ObjectKey::new(&[object]).unwrap() }
}

fn named(name: &[u8]) -> Owner {
    Owner::new(Client::new(Protocol::Nlm, Origin::default(), b"host"), name)
}

fn lock(tables: &mut Tables<()>, file: File, name: &[u8], range: Range) -> Locked {
    let ask = Ask { file, owner: named(name), range, mode: Mode::Exclusive };
    tables.lock(NOW, &ask, false, Some(()), &mut Vec::new()).unwrap()
}

fn all(tables: &Tables<()>, after: Option<&LockPlace>) -> Vec<ListedLock> {
    tables.locks(after).collect()
}

/// Locks of both disciplines and waiters on three files of two volumes.
fn filled() -> Tables<()> {
    let mut tables = Tables::new(Limits::SERVER);
    tables.open(VolumeId(1));
    tables.open(VolumeId(2));
    let session = Client::new(Protocol::Smb, Origin::default(), b"s");
    let mode = OpenMode { access: Sharing::all(), share: Sharing::all() };
    let open = tables.open_file(&file(1, 7), &session, mode, false).unwrap();
    let span = |offset, length| Span::new(offset, length).unwrap();
    let locks =
        [(span(10, 5), Mode::Shared), (span(10, 5), Mode::Shared), (span(0, 0), Mode::Exclusive)];
    tables.lock_all(NOW, open, &locks).unwrap();
    assert_eq!(lock(&mut tables, file(1, 7), b"a", Range::new(100, 1).unwrap()), Locked::Granted);
    assert_eq!(lock(&mut tables, file(1, 7), b"a", Range::to_eof(200)), Locked::Granted);
    assert_eq!(lock(&mut tables, file(1, 7), b"b", Range::ALL), Locked::Waits);
    let waits = tables.lock_open(NOW, open, span(100, 1), Mode::Shared, Some(())).unwrap();
    assert!(matches!(waits, OpenLocked::Waits(_)));
    for other in [file(1, 8), file(2, 1)] {
        assert_eq!(lock(&mut tables, other, b"a", Range::ALL), Locked::Granted);
    }
    tables
}

#[test]
fn every_lock_is_listed_once_with_its_owner_and_range() {
    let tables = filled();
    let seen: Vec<_> = all(&tables, None)
        .into_iter()
        .map(|one| {
            let waits = matches!(one.place.spot, LockSpot::Waiting(_));
            let File { volume, object } = one.place.file;
            let owner = one.owner.open().map_or(one.owner.name().to_vec(), |_| b"open".to_vec());
            let (owner, object) = (String::from_utf8(owner).unwrap(), object.as_bytes()[0]);
            (volume.0, object, owner, one.offset, one.length, one.mode == Mode::Shared, waits)
        })
        .collect();
    let of = |owner: &str| owner.to_owned();
    let expected = [
        (1, 7, of("a"), 100, Some(1), false, false),
        (1, 7, of("a"), 200, None, false, false),
        (1, 7, of("open"), 0, Some(0), false, false),
        (1, 7, of("open"), 10, Some(5), true, false),
        (1, 7, of("b"), 0, None, false, true),
        (1, 7, of("open"), 100, Some(1), true, true),
        (1, 8, of("a"), 0, None, false, false),
        (2, 1, of("a"), 0, None, false, false),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_reader_goes_on_after_any_entry_whether_it_is_still_there_or_not() {
    let mut tables = filled();
    let whole = all(&tables, None);
    assert!(whole.is_sorted_by(|one, next| one.place < next.place));
    for (at, one) in whole.iter().enumerate() {
        assert_eq!(all(&tables, Some(&one.place)), whole[at + 1..]);
    }
    let nothing = Vec::<ListedLock>::new();
    tables.close(VolumeId(2));
    let last = &whole.last().unwrap().place;
    assert_eq!(all(&tables, Some(last)), nothing);
    tables.release_client(&Client::new(Protocol::Smb, Origin::default(), b"s"), &mut Vec::new());
    let rest: Vec<_> = whole.iter().filter(|one| one.owner.open().is_none()).cloned().collect();
    for one in whole.iter().filter(|one| one.place.file.volume == VolumeId(1)) {
        let expected = rest.iter().filter(|other| other.place > one.place && &other.place < last);
        assert_eq!(all(&tables, Some(&one.place)), expected.cloned().collect::<Vec<_>>());
    }
}

/// Releases the lock or ends the wait in this place, if there is one.
fn release(
    tables: &mut Tables<()>,
    place: &LockPlace,
) -> (Option<ReleasedLock<()>>, Vec<Grant<()>>) {
    let mut grants = Vec::new();
    let released = tables.release_lock(place, &mut grants);
    (released, grants)
}

#[test]
fn the_lock_in_a_place_is_released_whole_and_nothing_else_is() {
    let whole = all(&filled(), None);
    for one in &whole {
        let mut tables = filled();
        let before = tables.used();
        let (released, grants) = release(&mut tables, &one.place);
        let (times, waits) = match one.place.spot {
            LockSpot::Open(_, span, _) if span.length() == 5 => (2, 0),
            LockSpot::Waiting(_) => (0, 1),
            _ => (1, 0),
        };
        let waiter = (waits == 1).then_some(());
        assert_eq!(released, Some(ReleasedLock { lock: one.clone(), waiter }));
        let granted: Vec<_> = grants.iter().map(|grant| LockSpot::Waiting(grant.id.0)).collect();
        let is_left =
            |other: &&ListedLock| other.place != one.place && !granted.contains(&other.place.spot);
        let expected: Vec<_> = whole.iter().filter(is_left).cloned().collect();
        let left = all(&tables, None);
        let old: Vec<_> = left.iter().filter(|other| whole.contains(other)).cloned().collect();
        assert_eq!(old, expected, "{one:?}");
        assert_eq!(tables.used().locks, before.locks - times + granted.len());
        assert_eq!(tables.used().waiters, before.waiters - waits - granted.len());
        let (again, grants) = release(&mut tables, &one.place);
        assert!(again.is_none() && grants.is_empty());
        assert_eq!(all(&tables, None), left);
    }
}

#[test]
fn a_place_beside_a_lock_releases_nothing() {
    let mut tables = filled();
    let whole = all(&tables, None);
    for one in &whole {
        let spot = match one.place.spot.clone() {
            LockSpot::Named(owner, first) => LockSpot::Named(owner, first + 1),
            LockSpot::Open(owner, span, Mode::Shared) => {
                LockSpot::Open(owner, span, Mode::Exclusive)
            }
            LockSpot::Open(owner, span, Mode::Exclusive) => {
                LockSpot::Open(owner, span, Mode::Shared)
            }
            LockSpot::Waiting(number) => LockSpot::Waiting(number + 100),
        };
        let other = LockPlace { file: file(3, 3), ..one.place.clone() };
        for place in [LockPlace { spot, ..one.place.clone() }, other] {
            let (released, grants) = release(&mut tables, &place);
            assert!(released.is_none() && grants.is_empty(), "{place:?}");
        }
    }
    assert_eq!(all(&tables, None), whole);
}

#[test]
fn a_released_lock_goes_to_those_who_wait_and_an_ended_wait_holds_up_nobody() {
    let mut tables = Tables::new(Limits::SERVER);
    let at = file(1, 1);
    tables.open(at.volume);
    let place = |tables: &Tables<()>, number: usize| all(tables, None)[number].place.clone();
    for name in [b"a", b"b"] {
        lock(&mut tables, at, name, Range::ALL);
    }
    let held = place(&tables, 0);
    let (_, grants) = release(&mut tables, &held);
    let [first] = &grants[..] else { panic!("{grants:?}") };
    assert_eq!(first.ask.owner, named(b"b"));
    // Its client has not confirmed the grant when the lock is released again.
    assert_eq!(lock(&mut tables, at, b"c", Range::new(5, 5).unwrap()), Locked::Waits);
    assert_eq!(lock(&mut tables, at, b"d", Range::new(0, 7).unwrap()), Locked::Waits);
    assert_eq!(lock(&mut tables, at, b"e", Range::new(0, 2).unwrap()), Locked::Waits);
    let held = place(&tables, 0);
    let (_, grants) = release(&mut tables, &held);
    let granted: Vec<_> = grants.iter().map(|grant| grant.ask.owner.clone()).collect();
    assert_eq!(granted, [named(b"c")], "one after the other");
    assert_eq!(tables.grantee(first.id), None, "the grant is settled");
    let mut grants = Vec::new();
    tables.refused(first.id, &mut grants);
    assert!(grants.is_empty());
    // The request of d waits for the lock of c, and that of e waits behind it.
    let waits = place(&tables, 1);
    let (ended, grants) = release(&mut tables, &waits);
    assert_eq!(ended.unwrap().lock.owner, named(b"d"));
    let granted: Vec<_> = grants.iter().map(|grant| grant.ask.owner.clone()).collect();
    assert_eq!(granted, [named(b"e")]);
}
