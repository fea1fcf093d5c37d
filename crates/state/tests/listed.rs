//! The list of all locks: it is in order and complete, and can be resumed after any entry, also
//! after a removed one.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_core::{Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, File, Limits, ListedLock, LockPlace, LockSpot, Locked, Mode, OpenLocked, OpenMode,
    Owner, Protocol, Range, Sharing, Span, Tables,
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
