//! The rules of opens and their locks one by one: who may open a file together with whom, what is
//! left to do at a close, the conflicts of locks, and what is told to a watcher.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

use std::sync::{Arc, Mutex};
use weir_core::{Access, Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, Closed, Conflict, Counted, DeleteRequest, File, Grant, GrantId, Io, Limit, Limits,
    Locked, Mode, NotLocked, OpenId, OpenLocked, OpenMode, Owner, Part, Presence, Protocol, Range,
    Refused, Scope, Share, Sharing, Span, Tables, Use, Watch,
};

use Mode::{Exclusive, Shared};

const NOW: Mono = Mono::from_millis(1000);
const ALL: OpenMode = OpenMode { access: Sharing::all(), share: Sharing::all() };
const FIRST: OpenId = OpenId(0);

const LOW: Limits = Limits {
    file: Use { locks: 4, waiters: 2, shares: 2, opens: 3, owner_bytes: usize::MAX },
    client: Use { locks: 3, waiters: 2, shares: 1, opens: 2, owner_bytes: 4 },
    server: Use { locks: 5, waiters: 4, shares: 3, opens: 4, owner_bytes: 7 },
    clients: 4,
    origin: Part::ALL,
    volume: Part::ALL,
};

fn file(number: u8) -> File {
    File { volume: VolumeId(u32::from(number / 10)), object: ObjectKey::new(&[number]).unwrap() }
}

fn session(number: u8) -> Client {
    Client::new(Protocol::Smb, Origin::default(), &[number])
}

fn process(number: u8) -> Owner {
    Owner::new(Client::new(Protocol::Nlm, Origin::default(), &[number]), b"p")
}

fn span(offset: u64, length: u64) -> Span {
    Span::new(offset, length).unwrap()
}

/// `rwd/rwd`: what it does, and what it lets others do.
fn mode(text: &str) -> OpenMode {
    let sharing = |text: &str| {
        let kinds = [('r', Sharing::READ), ('w', Sharing::WRITE), ('d', Sharing::DELETE)];
        kinds.into_iter().filter(|(sign, _)| text.contains(*sign)).map(|(_, kind)| kind).collect()
    };
    let (access, share) = text.split_once('/').unwrap();
    OpenMode { access: sharing(access), share: sharing(share) }
}

struct World {
    tables: Tables<&'static str>,
    grants: Vec<Grant<&'static str>>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let mut tables = Tables::new(limits);
        [VolumeId(0), VolumeId(1)].into_iter().for_each(|volume| tables.open(volume));
        Self { tables, grants: Vec::new() }
    }

    fn open(&mut self, who: u8, mode: OpenMode) -> Result<OpenId, Refused> {
        self.tables.open_file(&file(1), &session(who), mode, false)
    }

    fn close(&mut self, open: OpenId) -> Closed<&'static str> {
        self.tables.close_file(open, &mut self.grants).unwrap()
    }

    fn lock(&mut self, open: OpenId, at: (u64, u64), mode: Mode) -> Result<OpenLocked, Refused> {
        self.tables.lock_open(NOW, open, span(at.0, at.1), mode, None)
    }

    fn locks(&mut self, open: OpenId, at: (u64, u64), mode: Mode) -> bool {
        self.lock(open, at, mode).is_ok()
    }

    fn wait(&mut self, open: OpenId, at: (u64, u64), mode: Mode, token: &'static str) -> GrantId {
        match self.tables.lock_open(NOW, open, span(at.0, at.1), mode, Some(token)) {
            Ok(OpenLocked::Waits(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    fn unlock(&mut self, open: OpenId, at: (u64, u64)) -> Result<(), NotLocked> {
        self.tables.unlock_open(open, span(at.0, at.1), &mut self.grants)
    }

    fn nlm(&mut self, who: u8, at: (u64, u64), mode: Mode, wait: bool) -> Result<Locked, Refused> {
        let ask = nlm_ask(who, at, mode);
        self.tables.lock(NOW, &ask, false, wait.then_some("nlm"), &mut self.grants)
    }

    fn io(&self, open: Option<OpenId>, at: (u64, u64), io: Io) -> Result<(), Conflict> {
        self.tables.io(&file(1), open, span(at.0, at.1), io)
    }

    fn told(&mut self) -> Vec<&'static str> {
        self.grants.drain(..).map(|grant| grant.waiter).collect()
    }
}

fn nlm_ask(who: u8, at: (u64, u64), mode: Mode) -> Ask {
    Ask { file: file(1), owner: process(who), range: Range::new(at.0, at.1).unwrap(), mode }
}

#[test]
fn the_opens_of_a_file_are_read_in_parts_with_their_clients() {
    let mut world = World::new(Limits::SERVER);
    let at = |world: &World, number, after| {
        let file = file(number);
        let opens = world.tables.opens_at(&file, after);
        opens.map(|(id, client)| (id, client.clone())).collect::<Vec<_>>()
    };
    assert_eq!(at(&world, 1, FIRST), []);
    let one = world.open(1, ALL).unwrap();
    let elsewhere = world.tables.open_file(&file(2), &session(1), ALL, false).unwrap();
    assert_eq!(at(&world, 1, FIRST), [(one, session(1))]);
    assert_eq!(at(&world, 1, one), []);
    let (two, three) = (world.open(2, ALL).unwrap(), world.open(1, ALL).unwrap());
    let all = [(one, session(1)), (two, session(2)), (three, session(1))];
    assert_eq!(at(&world, 1, FIRST), all);
    assert_eq!(at(&world, 1, one), all[1..]);
    assert_eq!(at(&world, 2, FIRST), [(elsewhere, session(1))]);
    assert_eq!(at(&world, 11, FIRST), [], "of another volume");
    let _ = world.close(one);
    let _ = world.close(three);
    assert_eq!(at(&world, 1, FIRST), [(two, session(2))]);
}

fn full<T>(counted: Counted, scope: Scope) -> Result<T, Refused> {
    Err(Refused::Full(Limit { counted, scope }))
}

#[test]
fn opens_agree_about_reading_writing_and_deleting() {
    for (first, second, may) in [
        ("r/rwd", "r/rwd", true),
        ("r/w", "r/rwd", false),
        ("r/rwd", "w/w", false),
        ("w/r", "w/rwd", false),
        ("rw/rw", "d/rwd", false),
        ("d/rwd", "r/rw", false),
        ("r/d", "d/r", true),
        ("w/w", "w/w", true),
        // Attributes only: no conflict.
        ("/", "rwd/", true),
        ("rwd/", "/", true),
    ] {
        for (first, second) in [(first, second), (second, first)] {
            let mut world = World::new(Limits::SERVER);
            world.open(1, mode(first)).unwrap();
            let opened = world.open(1, mode(second));
            assert_eq!(opened.is_ok(), may, "{first} {second}: {opened:?}");
            if !may {
                assert_eq!(opened, Err(Refused::Sharing));
                assert_eq!(world.tables.opens_on(&file(1)), 1);
            }
        }
    }
}

#[test]
fn an_open_that_is_closed_is_in_nobodys_way() {
    let mut world = World::new(Limits::SERVER);
    let (first, second) =
        (world.open(1, mode("r/r")).unwrap(), world.open(2, mode("r/rw")).unwrap());
    assert_eq!(world.open(3, mode("w/rwd")), Err(Refused::Sharing));
    assert!(!world.close(first).last);
    let third = world.open(3, mode("w/rwd")).unwrap();
    assert_eq!(world.tables.denied(&file(1)), Sharing::DELETE);
    assert!(!world.close(second).last);
    assert_eq!(world.tables.denied(&file(1)), Sharing::empty());
    let closed = world.close(third);
    assert_eq!((closed.last, closed.delete, closed.file), (true, None, file(1)));
    assert_eq!(world.tables.close_file(third, &mut Vec::new()), None);
    assert_eq!(world.tables.used(), Use::default());
}

#[test]
fn shares_and_opens_stand_against_each_other() {
    let share = |access, deny| Share { access, deny };
    let (read, write, none) = (Access::READ, Access::WRITE, Access::empty());
    for (open, share, may) in [
        ("r/rwd", share(read, write), true),
        ("w/rwd", share(read, write), false),
        ("rw/r", share(write, none), false),
        ("rw/r", share(read, none), true),
        ("d/", share(read, none), false),
        ("/", share(write, read | write), true),
        ("r/rwd", share(none, read), false),
    ] {
        let mut world = World::new(Limits::SERVER);
        world.open(1, mode(open)).unwrap();
        let done = world.tables.share(NOW, &file(1), &process(1), share, false);
        assert_eq!(done, if may { Ok(()) } else { Err(Refused::Sharing) }, "{open} {share:?}");
        let mut world = World::new(Limits::SERVER);
        world.tables.share(NOW, &file(1), &process(1), share, false).unwrap();
        assert_eq!(world.open(1, mode(open)).is_ok(), may, "{share:?} {open}");
        world.tables.unshare(&file(1), &process(1));
        assert!(may || world.open(1, mode(open)).is_ok());
    }
}

#[test]
fn the_last_close_of_a_file_to_be_deleted_deletes_it() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    let (clock, client) = (file(1), session(3));
    let three = world.tables.open_file(&clock, &client, ALL, true).unwrap();
    assert!(!world.tables.is_delete_pending(&clock));
    let closed = world.close(three);
    assert_eq!((closed.last, closed.delete), (false, None));
    // Nobody opens it from now on, not even for attributes.
    assert!(world.tables.is_delete_pending(&clock));
    assert_eq!(world.open(4, mode("/rwd")), Err(Refused::DeletePending));
    // Others go on, and can take it back.
    world.tables.set_delete_pending(two, false).unwrap();
    let four = world.open(4, ALL).unwrap();
    world.tables.set_delete_pending(two, true).unwrap();
    assert_eq!(world.open(4, ALL), Err(Refused::DeletePending));
    for open in [two, four] {
        assert_eq!(world.close(open).delete, None);
    }
    let closed = world.close(one);
    assert_eq!(closed.delete, Some(DeleteRequest { open: two, client: session(2) }));
    assert!(closed.last && !world.tables.is_delete_pending(&clock));
    assert!(world.open(1, ALL).is_ok());
    assert_eq!(world.tables.set_delete_pending(one, true), Err(Refused::Closed));
}

#[test]
fn an_open_alone_deletes_its_file_when_it_is_closed() {
    let mut world = World::new(Limits::SERVER);
    let open = world.tables.open_file(&file(1), &session(1), ALL, true).unwrap();
    // To say that the file stays does not change how it was opened.
    world.tables.set_delete_pending(open, false).unwrap();
    let delete = world.close(open).delete;
    assert_eq!(delete, Some(DeleteRequest { open, client: session(1) }));
    let open = world.open(1, ALL).unwrap();
    world.tables.set_delete_pending(open, true).unwrap();
    assert!(world.close(open).delete.is_some());
}

/// The cases of smbtorture's `smb2.lock.stacking` and `overlap`.
#[test]
fn an_open_may_ask_later_to_delete_its_file_and_take_that_back() {
    let mut world = World::new(Limits::SERVER);
    let [first, second, third] = [1, 2, 3].map(|who| world.open(who, mode("d/rwd")).unwrap());
    for (open, delete) in [(first, true), (first, false), (second, true)] {
        world.tables.set_delete_on_close(open, delete).unwrap();
    }
    assert!(!world.tables.is_delete_pending(&file(1)), "not before it is closed");
    assert_eq!(world.close(first).delete, None);
    assert!(!world.tables.is_delete_pending(&file(1)));
    assert_eq!(world.close(second).delete, None, "another is open");
    assert_eq!(world.close(third).delete.map(|request| request.open), Some(second));
    assert_eq!(world.tables.set_delete_on_close(third, true), Err(Refused::Closed));
}

#[test]
fn locks_of_one_open_stack_unless_the_new_one_is_exclusive() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(one, (0, 10), Shared) && world.locks(one, (0, 10), Shared));
    assert!(!world.locks(one, (5, 1), Exclusive), "over a shared one");
    assert_eq!(world.unlock(one, (0, 10)), Ok(()));
    assert_eq!(world.unlock(one, (0, 10)), Ok(()));
    assert_eq!(world.unlock(one, (0, 10)), Err(NotLocked));
    assert!(world.locks(one, (0, 10), Exclusive));
    assert!(!world.locks(one, (9, 5), Exclusive), "over an exclusive one");
    assert!(world.locks(one, (0, 10), Shared), "a shared one over an exclusive one");
    assert!(!world.locks(two, (0, 10), Shared));
    // The exclusive one goes first.
    assert_eq!(world.unlock(one, (0, 10)), Ok(()));
    assert!(world.locks(two, (0, 10), Shared) && !world.locks(two, (0, 10), Exclusive));
    assert_eq!(world.tables.locks_of(one), [(span(0, 10), Shared, 1)]);
}

#[test]
fn ranges_are_unlocked_as_they_were_locked() {
    let mut world = World::new(Limits::SERVER);
    let open = world.open(1, ALL).unwrap();
    assert!(world.locks(open, (110, 4), Shared) && world.locks(open, (114, 2), Shared));
    for wrong in [(110, 6), (110, 3), (111, 3), (0, 0)] {
        assert_eq!(world.unlock(open, wrong), Err(NotLocked));
    }
    let held = [(span(110, 4), Shared, 1), (span(114, 2), Shared, 1)];
    assert_eq!(world.tables.locks_of(open), held);
    assert_eq!(world.unlock(open, (110, 4)), Ok(()));
    assert_eq!(world.tables.used().locks, 1);
}

/// The table of smbtorture's `smb2.lock.zerobytelength`, by one open and by two.
#[test]
fn no_bytes_are_locked_as_a_boundary() {
    for (first, second, may) in [
        ((10, 0), (10, 0), true),
        ((10, 0), (9, 1), true),
        ((10, 0), (10, 1), true),
        ((10, 0), (11, 1), true),
        ((10, 0), (9, 2), false),
        ((10, 0), (10, 2), true),
        ((10, 0), (9, 3), false),
        ((0, 0), (0, 0), true),
        ((0, 0), (0, 5), true),
    ] {
        for (first, second) in [(first, second), (second, first)] {
            for who in [1, 2] {
                let mut world = World::new(Limits::SERVER);
                let opens = [1, who].map(|who| world.open(who, ALL).unwrap());
                let [one, two] = if who == 1 { [opens[0]; 2] } else { opens };
                assert!(world.locks(one, first, Exclusive));
                assert_eq!(world.locks(two, second, Exclusive), may, "{first:?} {second:?}");
                assert!(!may || world.unlock(two, second).is_ok());
                assert_eq!(world.unlock(one, first), Ok(()));
                assert_eq!(world.tables.used().locks, 0);
            }
        }
    }
}

#[test]
fn all_locks_are_taken_or_none() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(two, (20, 5), Shared));
    let (a, b) = ((span(0, 5), Exclusive), (span(5, 5), Shared));
    let lock = |world: &mut World, locks: &[_]| world.tables.lock_all(NOW, one, locks);
    assert!(matches!(lock(&mut world, &[a, b, (span(24, 9), Exclusive)]), Err(Refused::Held(_))));
    assert_eq!(world.tables.locks_of(one), []);
    // Also if they conflict with each other.
    assert!(lock(&mut world, &[a, b, b, (span(9, 1), Exclusive)]).is_err());
    assert_eq!(world.tables.used().locks, 1);
    assert_eq!(lock(&mut world, &[a, b, b]), Ok(()));
    assert_eq!(world.tables.locks_of(one), [(a.0, a.1, 1), (b.0, b.1, 2)]);
}

#[test]
fn both_disciplines_stand_against_each_other() {
    let mut world = World::new(Limits::SERVER);
    let open = world.open(1, ALL).unwrap();
    assert_eq!(world.nlm(1, (0, 10), Shared, false), Ok(Locked::Granted));
    assert!(world.locks(open, (5, 10), Shared) && !world.locks(open, (9, 1), Exclusive));
    assert!(world.locks(open, (15, 5), Exclusive));
    let Err(Refused::Held(holder)) = world.nlm(1, (0, 99), Shared, false) else { panic!() };
    assert_eq!((holder.owner.open(), holder.range.first()), (Some(open), 15));
    assert!(world.nlm(1, (5, 1), Exclusive, false).is_err());
    assert!(world.nlm(1, (0, 5), Exclusive, false).is_ok());
    // A boundary within a range of a process.
    assert!(!world.locks(open, (4, 0), Shared));
    assert!(world.locks(open, (0, 0), Exclusive));
}

#[test]
fn who_waits_is_served_in_the_order_of_coming_whatever_the_protocol() {
    let mut world = World::new(Limits::SERVER);
    let opens = [1, 2, 3].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(opens[0], (0, 10), Exclusive));
    let first = world.wait(opens[1], (0, 10), Exclusive, "first");
    assert_eq!(world.nlm(1, (0, 10), Shared, true), Ok(Locked::Waits));
    world.wait(opens[2], (3, 1), Shared, "third");
    assert_eq!(world.unlock(opens[0], (0, 10)), Ok(()));
    let grant = &world.grants[0];
    assert_eq!((grant.id, grant.ask.owner.open()), (first, Some(opens[1])));
    assert_eq!(world.told(), ["first"]);
    assert_eq!(world.unlock(opens[1], (0, 10)), Ok(()));
    assert_eq!(world.told(), ["nlm", "third"]);
    // A grant to an open need not be settled: nothing takes it back.
    world.tables.refused(first, &mut world.grants);
    assert!(world.tables.locks_of(opens[2]).len() == 1 && world.told().is_empty());
}

#[test]
fn a_wait_that_is_cancelled_or_closed_is_over() {
    let mut world = World::new(Limits::SERVER);
    let opens = [1, 2, 3].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(opens[0], (0, 10), Shared));
    let writer = world.wait(opens[1], (0, 10), Exclusive, "writer");
    let reader = world.wait(opens[2], (5, 10), Shared, "reader");
    let cancel =
        |world: &mut World, open, wait| world.tables.cancel_open(open, wait, &mut world.grants);
    assert_eq!(cancel(&mut world, opens[2], writer), None, "another's");
    assert_eq!(cancel(&mut world, opens[1], writer), Some("writer"));
    assert_eq!(world.told(), ["reader"]);
    assert_eq!(cancel(&mut world, opens[2], reader), None, "granted");
    // Two requests alike wait by themselves.
    let waits = [(); 2].map(|()| world.wait(opens[1], (0, 10), Exclusive, "again"));
    assert_ne!(waits[0], waits[1]);
    let closed = world.close(opens[1]);
    assert_eq!(closed.waiters, ["again"; 2]);
    assert_eq!((world.tables.used().waiters, world.tables.used().locks), (0, 2));
    assert_eq!(world.lock(opens[1], (0, 1), Shared), Err(Refused::Closed));
}

#[test]
fn a_close_lets_those_go_who_waited_for_its_locks() {
    let mut world = World::new(Limits::SERVER);
    let opens = [1, 2].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(opens[0], (0, 8), Exclusive) && world.locks(opens[0], (0, 8), Shared));
    world.wait(opens[1], (7, 1), Exclusive, "next");
    assert_eq!(world.nlm(1, (0, 1), Exclusive, true), Ok(Locked::Waits));
    let _closed = world.close(opens[0]);
    assert_eq!(world.told(), ["next", "nlm"]);
}

#[test]
fn an_open_can_wait_for_its_own_lock() {
    let mut world = World::new(Limits::SERVER);
    let open = world.open(1, ALL).unwrap();
    assert!(world.locks(open, (0, 8), Exclusive));
    world.wait(open, (0, 8), Exclusive, "again");
    world.wait(open, (0, 8), Exclusive, "and again");
    assert_eq!(world.unlock(open, (0, 8)), Ok(()));
    assert_eq!(world.told(), ["again"]);
}

#[test]
fn a_cycle_through_opens_ends_with_a_cancel() {
    let mut world = World::new(Limits::SERVER);
    let open = world.open(1, ALL).unwrap();
    assert!(world.locks(open, (0, 1), Exclusive));
    assert_eq!(world.nlm(1, (1, 1), Exclusive, false), Ok(Locked::Granted));
    let wait = world.wait(open, (1, 1), Exclusive, "smb");
    assert_eq!(world.nlm(1, (0, 1), Exclusive, true), Ok(Locked::Waits));
    assert_eq!(world.tables.cancel_open(open, wait, &mut world.grants), Some("smb"));
    assert_eq!(world.unlock(open, (0, 1)), Ok(()));
    assert_eq!(world.told(), ["nlm"]);
}

/// MS-FSA §2.1.4.10 without locking intent.
#[test]
fn locks_stand_in_the_way_of_reading_and_writing() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(one, (0, 10), Exclusive) && world.locks(one, (20, 10), Shared));
    assert_eq!(world.nlm(1, (40, 10), Exclusive, false), Ok(Locked::Granted));
    assert_eq!(world.nlm(1, (60, 10), Shared, false), Ok(Locked::Granted));
    let own = (Some(one), [true, true, true, false, false, false, true, false]);
    let other = (Some(two), [false, false, true, false, false, false, true, false]);
    let nfs = (None, [false, false, true, false, true, true, true, true]);
    for (who, expected) in [own, other, nfs] {
        let mut expected = expected.into_iter();
        for at in [9, 29, 49, 69] {
            for io in [Io::Read, Io::Write] {
                let may = world.io(who, (at, 5), io);
                let wanted = if expected.next().unwrap() { Ok(()) } else { Err(Conflict::Locked) };
                assert_eq!(may, wanted, "{who:?} {at} {io:?}");
                assert_eq!(world.io(who, (at, 0), io), Ok(()), "no bytes");
                assert_eq!(world.io(who, (at + 1, 5), io), Ok(()), "behind it");
            }
        }
    }
    // A shared lock over the own exclusive one denies writing.
    assert!(world.locks(one, (0, 1), Shared));
    assert_eq!(world.io(Some(one), (0, 1), Io::Write), Err(Conflict::Locked));
    assert_eq!(world.io(Some(one), (1, 1), Io::Write), Ok(()));
}

#[test]
fn an_open_that_does_not_share_denies_those_without_one() {
    let mut world = World::new(Limits::SERVER);
    let _attributes = world.open(1, mode("/")).unwrap();
    assert_eq!(world.io(None, (0, 5), Io::Write), Ok(()));
    let open = world.open(1, mode("rw/r")).unwrap();
    assert_eq!(world.io(None, (0, 5), Io::Read), Ok(()));
    assert_eq!(world.io(None, (0, 5), Io::Write), Err(Conflict::Denied));
    assert_eq!(world.io(Some(open), (0, 5), Io::Write), Ok(()));
    let _closed = world.close(open);
    assert_eq!(world.io(None, (0, 5), Io::Write), Ok(()));
}

#[test]
fn the_grace_period_delays_locks_and_no_opens() {
    let mut world = World::new(Limits::SERVER);
    let nlm = process(1).client().clone();
    world.tables.begin_grace(Mono::from_secs(9), [VolumeId(0)], [nlm]);
    let open = world.open(1, mode("rwd/")).unwrap();
    assert_eq!(world.lock(open, (0, 1), Shared), Err(Refused::Grace));
    let waits = world.tables.lock_open(NOW, open, span(0, 1), Shared, Some("late"));
    assert_eq!(waits, Err(Refused::Grace));
    assert_eq!(world.tables.lock_all(NOW, open, &[]), Err(Refused::Grace));
    // A lock is reclaimed under an open; a share that conflicts with it is lost.
    let ask = nlm_ask(1, (0, 9), Exclusive);
    let lock = world.tables.lock(NOW, &ask, true, None, &mut world.grants);
    assert_eq!(lock, Ok(Locked::Granted));
    let share = Share { access: Access::READ, deny: Access::empty() };
    let share = world.tables.share(NOW, &file(1), &process(1), share, true);
    assert_eq!(share, Err(Refused::Sharing));
    let later = Mono::from_secs(9);
    assert!(world.tables.lock_open(later, open, span(20, 1), Shared, None).is_ok());
}

#[test]
fn opens_and_their_locks_are_bounded() {
    let mut world = World::new(LOW);
    let [one, two] = [1, 1].map(|who| world.open(who, ALL).unwrap());
    assert_eq!(world.open(1, ALL), full(Counted::Opens, Scope::Client));
    world.open(2, ALL).unwrap();
    assert_eq!(world.open(2, ALL), full(Counted::Opens, Scope::File));
    let other = world.tables.open_file(&file(2), &session(2), ALL, false).unwrap();
    let third = world.tables.open_file(&file(2), &session(3), ALL, false);
    assert_eq!(third, full(Counted::Opens, Scope::Server));
    assert!(world.locks(one, (0, 1), Shared) && world.locks(one, (0, 1), Shared));
    assert!(world.locks(two, (0, 0), Exclusive));
    assert_eq!(world.lock(one, (0, 1), Shared), full(Counted::Locks, Scope::Client));
    let none_of = world.tables.lock_all(NOW, one, &[(span(7, 0), Shared)]);
    assert_eq!(none_of, full(Counted::Locks, Scope::Client));
    // A file's locks are bounded together, whoever has them.
    assert_eq!(world.nlm(1, (50, 1), Exclusive, false), Ok(Locked::Granted));
    let more = world.nlm(1, (60, 1), Exclusive, false);
    assert_eq!(more, full(Counted::Locks, Scope::File));
    let closed = world.tables.release_client(process(1).client(), &mut world.grants);
    assert_eq!(closed, []);
    for _ in 0..2 {
        world.wait(one, (0, 1), Exclusive, "waits");
    }
    let waits = world.tables.lock_open(NOW, two, span(0, 1), Exclusive, Some("waits"));
    assert_eq!(waits, full(Counted::Waiters, Scope::File));
    for open in [one, two, other] {
        let _closed = world.close(open);
    }
    assert_eq!(world.tables.used(), Use { opens: 1, ..Use::default() });
}

#[test]
fn opens_are_listed_by_client_and_in_pages() {
    let mut world = World::new(Limits::SERVER);
    let opens: Vec<_> = (0..6).map(|n| world.open(n % 2, ALL).unwrap()).collect();
    assert!(opens.is_sorted());
    let page: Vec<_> = world.tables.opens(opens[1]).take(3).map(|open| open.id).collect();
    assert_eq!(page, &opens[2..5]);
    let of_one: Vec<_> = world.tables.opens_of(&session(1), FIRST).collect();
    assert_eq!(of_one, [opens[1], opens[3], opens[5]]);
    let rest: Vec<_> = world.tables.opens_of(&session(1), opens[1]).skip(1).collect();
    assert_eq!(rest, [opens[5]]);
    let listed = world.tables.opens(FIRST).next().unwrap();
    assert_eq!((listed.id, listed.file, listed.client), (opens[0], file(1), session(0)));
    assert_eq!((listed.mode, listed.delete_on_close), (ALL, false));
}

#[test]
fn a_session_that_ends_closes_its_opens_and_leaves_nothing() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    let other = world.tables.open_file(&file(12), &session(1), ALL, true).unwrap();
    assert!(world.locks(one, (0, 1), Exclusive));
    world.wait(one, (0, 1), Exclusive, "own");
    world.wait(two, (0, 1), Exclusive, "other");
    let closed = world.tables.release_client(&session(1), &mut world.grants);
    let ids: Vec<_> = closed.iter().map(|closed| (closed.open, closed.last)).collect();
    assert_eq!(ids, [(one, false), (other, true)]);
    assert_eq!((closed[0].waiters.as_slice(), closed[0].delete.is_some()), (&["own"][..], false));
    assert!(closed[1].delete.is_some() && closed[1].file == file(12));
    assert_eq!(world.told(), ["other"]);
    assert!(!world.tables.has(&session(1)) && world.tables.has(&session(2)));
    let closed = world.tables.release_client(&session(2), &mut world.grants);
    assert_eq!(closed.len(), 1);
    assert_eq!(world.tables.take_left(), [], "a session's end is known to its server");
    assert_eq!(world.tables.used(), Use::default());
    assert_eq!(world.tables.release_client(&session(2), &mut world.grants), []);
}

#[test]
fn a_volume_that_goes_takes_its_opens_along() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, mode("rwd/rwd")).unwrap());
    let stays = world.tables.open_file(&file(12), &session(1), mode("r/"), true).unwrap();
    assert!(world.locks(one, (0, 1), Exclusive));
    world.wait(two, (0, 1), Exclusive, "never");
    world.tables.close(VolumeId(0));
    assert!(world.grants.is_empty());
    assert_eq!(world.tables.used(), Use { opens: 1, ..Use::default() });
    assert_eq!(world.lock(one, (0, 1), Shared), Err(Refused::Closed));
    assert_eq!(world.open(1, ALL), Err(Refused::NoVolume));
    let left: Vec<_> = world.tables.opens(FIRST).map(|open| open.id).collect();
    assert_eq!(left, [stays]);
    world.tables.open(VolumeId(0));
    assert!(world.open(1, mode("rwd/")).is_ok());
}

#[test]
fn a_request_of_an_open_is_quick_unless_others_wait() {
    let mut world = World::new(Limits::SERVER);
    let [one, two] = [1, 2].map(|who| world.open(who, ALL).unwrap());
    assert!(world.locks(one, (0, 1), Exclusive) && world.tables.is_quick_open(one));
    for _ in 0..33 {
        world.wait(two, (0, 1), Exclusive, "waits");
    }
    assert!(!world.tables.is_quick_open(one));
    let mut world = World::new(Limits::SERVER);
    let one = world.open(1, ALL).unwrap();
    for _ in 0..257 {
        assert!(world.locks(one, (0, 1), Shared));
    }
    assert!(!world.tables.is_quick_open(one));
}

/// Notes what it is told.
#[derive(Clone, Debug, Default)]
struct Notes(Arc<Mutex<Vec<(File, Presence, Presence)>>>);

impl Watch for Notes {
    fn changed(&mut self, file: &File, before: Presence, after: Presence) {
        self.0.lock().unwrap().push((*file, before, after));
    }
}

#[test]
fn a_watcher_is_told_of_firsts_and_lasts() {
    let notes = Notes::default();
    let mut world = World::new(Limits::SERVER);
    world.tables = world.tables.watched_by(Box::new(notes.clone()));
    let told = |expected: &[(Presence, Presence)]| {
        let told: Vec<_> = notes.0.lock().unwrap().drain(..).collect();
        let expected: Vec<_> =
            expected.iter().map(|(before, after)| (file(1), *before, *after)).collect();
        assert_eq!(told, expected);
    };
    let (none, opens) = (Presence::empty(), Presence::OPENS);
    let open_locks = opens | Presence::OPEN_LOCKS;
    let owner_locks = opens | Presence::OWNER_LOCKS;
    let denials = opens | Presence::DENIALS;
    let one = world.open(1, ALL).unwrap();
    told(&[(none, opens)]);
    let two = world.open(2, mode("r/rwd")).unwrap();
    told(&[]);
    assert!(world.locks(one, (0, 5), Shared));
    told(&[(opens, open_locks)]);
    // Given, taken and given: told once.
    world.tables.lock_all(NOW, one, &[(span(9, 1), Shared), (span(9, 1), Exclusive)]).unwrap_err();
    world.nlm(1, (0, 5), Exclusive, true).unwrap();
    told(&[]);
    world.unlock(one, (0, 5)).unwrap();
    told(&[(open_locks, owner_locks)]);
    world.tables.release_client(process(1).client(), &mut world.grants);
    told(&[(owner_locks, opens)]);
    let _closed = world.close(one);
    let three = world.open(1, mode("r/rd"));
    told(&[(opens, denials)]);
    let _closed = world.close(two);
    told(&[]);
    world.tables.close(VolumeId(0));
    told(&[(denials, none)]);
    assert!(three.is_ok());
}
