//! The rules of the table one by one: whose turn it is, what comes back when a grant is not wanted,
//! shares, the grace period, and what happens at the bounds.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_core::{Access, Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, Counted, File, Grant, GrantId, Limit, Limits, Locked, Mode, Owner, Part, Protocol,
    Range, Refused, Scope, Share, Tables, Use,
};

use Mode::{Exclusive, Shared};

const NOW: Mono = Mono::from_millis(1000);

const LOW: Limits = Limits {
    file: Use { locks: 4, waiters: 3, shares: 2, opens: 3, owner_bytes: usize::MAX },
    client: Use { locks: 3, waiters: 2, shares: 1, opens: 2, owner_bytes: 4 },
    server: Use { locks: 5, waiters: 4, shares: 3, opens: 4, owner_bytes: 7 },
    clients: 4,
    origin: Part::ALL,
    volume: Part::ALL,
};

const VOLUMES: [VolumeId; 3] = [VolumeId(0), VolumeId(1), VolumeId(2)];

/// The files 0 to 9 are on volume 0, the next ten on volume 1, and so on.
fn file(number: u8) -> File {
    File { volume: VolumeId(u32::from(number / 10)), object: ObjectKey::new(&[number]).unwrap() }
}

fn client(name: &str) -> Client {
    Client::new(Protocol::Nlm, Origin::default(), name.as_bytes())
}

/// `a1` is owner 1 of client a.
fn owner(name: &str) -> Owner {
    Owner::new(client(&name[..1]), &name.as_bytes()[1..])
}

fn ask(who: &str, offset: u64, length: u64, mode: Mode) -> Ask {
    let range = Range::new(offset, length).unwrap();
    Ask { file: file(1), owner: owner(who), range, mode }
}

/// A table, and what it granted to those who waited.
struct World {
    tables: Tables<&'static str>,
    grants: Vec<Grant<&'static str>>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let mut tables = Tables::new(limits);
        VOLUMES.into_iter().for_each(|volume| tables.open(volume));
        Self { tables, grants: Vec::new() }
    }

    /// Locks without waiting; the error is kept short.
    fn lock(&mut self, ask: &Ask) -> Result<Locked, Refused> {
        self.tables.lock(NOW, ask, false, None, &mut self.grants)
    }

    fn wait(&mut self, ask: &Ask, token: &'static str) -> Result<Locked, Refused> {
        self.tables.lock(NOW, ask, false, Some(token), &mut self.grants)
    }

    fn unlock(&mut self, ask: &Ask) -> Result<(), Limit> {
        self.tables.unlock(&ask.file, &ask.owner, ask.range, &mut self.grants)
    }

    /// Tokens of those granted since the last call, and the last grant's id.
    fn granted(&mut self) -> (Vec<&'static str>, Option<GrantId>) {
        let last = self.grants.last().map(|grant| grant.id);
        (self.grants.drain(..).map(|grant| grant.waiter).collect(), last)
    }

    fn holder(&self, ask: &Ask) -> Option<(Owner, Range, Mode)> {
        match self.tables.test(NOW, ask) {
            Err(Refused::Held(holder)) => Some((holder.owner, holder.range, holder.mode)),
            _ => None,
        }
    }
}

fn full(counted: Counted, scope: Scope) -> Refused {
    Refused::Full(Limit { counted, scope })
}

#[test]
fn who_waits_is_served_in_the_order_of_coming() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    for (who, token) in [("b1", "first"), ("c1", "second"), ("d1", "third")] {
        assert_eq!(world.wait(&ask(who, 0, 10, Exclusive), token), Ok(Locked::Waits));
    }
    for (who, token) in [("a1", "first"), ("b1", "second"), ("c1", "third")] {
        world.unlock(&ask(who, 0, 10, Exclusive)).unwrap();
        assert_eq!(world.granted().0, [token]);
    }
}

#[test]
fn readers_that_come_later_do_not_starve_a_writer() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Shared)).unwrap();
    assert_eq!(world.wait(&ask("b1", 0, 10, Exclusive), "writer"), Ok(Locked::Waits));
    assert_eq!(world.wait(&ask("c1", 5, 10, Shared), "reader"), Ok(Locked::Waits));
    // An owner that does not want to wait is told of held locks, and there are none.
    assert_eq!(world.lock(&ask("d1", 0, 10, Shared)), Ok(Locked::Granted));
    // A holder may be waited for by the writer.
    assert_eq!(world.wait(&ask("a1", 0, 20, Shared), "holder"), Ok(Locked::Granted));
    world.unlock(&ask("d1", 0, 10, Shared)).unwrap();
    world.unlock(&ask("a1", 0, 20, Shared)).unwrap();
    assert_eq!(world.granted().0, ["writer"]);
    world.unlock(&ask("b1", 0, 10, Exclusive)).unwrap();
    assert_eq!(world.granted().0, ["reader"]);
}

#[test]
fn a_cancelled_wait_lets_those_behind_it_go() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Shared)).unwrap();
    world.wait(&ask("b1", 0, 10, Exclusive), "writer").unwrap();
    world.wait(&ask("c1", 0, 10, Shared), "reader").unwrap();
    assert!(!world.tables.cancel(&ask("b1", 0, 9, Exclusive), &mut world.grants));
    assert!(world.tables.cancel(&ask("b1", 0, 10, Exclusive), &mut world.grants));
    assert_eq!(world.granted().0, ["reader"]);
}

#[test]
fn to_ask_again_is_not_to_wait_twice() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    world.wait(&ask("b1", 0, 10, Exclusive), "once").unwrap();
    world.wait(&ask("b1", 0, 10, Exclusive), "again").unwrap();
    assert_eq!(world.tables.used().waiters, 1);
    world.unlock(&ask("a1", 0, 10, Exclusive)).unwrap();
    let (told, grant) = world.granted();
    assert_eq!(told, ["again"]);
    // The client asks once more before it hears of the grant, and is told that it has the lock.
    // That it then does not know what to make of the grant changes nothing.
    assert_eq!(world.wait(&ask("b1", 0, 10, Exclusive), "late"), Ok(Locked::Granted));
    world.tables.refused(grant.unwrap(), &mut world.grants);
    assert!(world.holder(&ask("a1", 0, 1, Shared)).is_some());
}

#[test]
fn a_grant_that_is_not_wanted_goes_to_the_next() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    world.wait(&ask("b1", 0, 10, Exclusive), "gone").unwrap();
    world.wait(&ask("c1", 0, 10, Exclusive), "next").unwrap();
    world.unlock(&ask("a1", 0, 10, Exclusive)).unwrap();
    let (told, grant) = world.granted();
    assert_eq!(told, ["gone"]);
    world.tables.refused(grant.unwrap(), &mut world.grants);
    let (told, grant) = world.granted();
    assert_eq!(told, ["next"]);
    world.tables.taken(grant.unwrap());
    world.tables.refused(grant.unwrap(), &mut world.grants);
    assert_eq!(world.holder(&ask("a1", 3, 1, Shared)).unwrap().0, owner("c1"));
}

#[test]
fn a_refused_upgrade_leaves_what_was_held_before() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("a1", 0, 10, Shared)).unwrap();
    world.lock(&ask("b1", 5, 10, Shared)).unwrap();
    world.wait(&ask("a1", 0, 10, Exclusive), "upgrade").unwrap();
    world.unlock(&ask("b1", 5, 10, Shared)).unwrap();
    let (_, grant) = world.granted();
    assert_eq!(world.holder(&ask("b1", 2, 1, Shared)).unwrap().2, Exclusive);
    world.tables.refused(grant.unwrap(), &mut world.grants);
    assert_eq!(world.holder(&ask("b1", 2, 1, Shared)), None);
    let whole = Range::new(0, 10).unwrap();
    assert_eq!(world.holder(&ask("b1", 2, 1, Exclusive)), Some((owner("a1"), whole, Shared)));
}

#[test]
fn an_unlock_settles_a_grant_and_a_cancel_gives_it_back() {
    for cancelled in [false, true] {
        let mut world = World::new(Limits::SERVER);
        world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
        world.wait(&ask("b1", 0, 10, Exclusive), "b").unwrap();
        world.unlock(&ask("a1", 0, 10, Exclusive)).unwrap();
        let (_, grant) = world.granted();
        if cancelled {
            assert!(world.tables.cancel(&ask("b1", 0, 10, Exclusive), &mut world.grants));
        } else {
            world.unlock(&ask("b1", 0, 10, Exclusive)).unwrap();
        }
        world.lock(&ask("b1", 0, 10, Exclusive)).unwrap();
        world.tables.refused(grant.unwrap(), &mut world.grants);
        assert_eq!(world.tables.used().locks, 1, "that was another lock");
    }
}

#[test]
fn a_wait_for_oneself_is_refused_across_files() {
    let mut world = World::new(Limits::SERVER);
    let other = |who| Ask { file: file(2), ..ask(who, 0, 10, Exclusive) };
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    world.lock(&other("b1")).unwrap();
    world.wait(&other("a1"), "a").unwrap();
    assert_eq!(world.wait(&ask("b1", 5, 10, Shared), "b"), Err(Refused::Deadlock));
    assert!(matches!(world.lock(&ask("b1", 5, 10, Shared)), Err(Refused::Held(_))));
}

#[test]
fn a_wait_for_oneself_is_refused_across_volumes() {
    let mut world = World::new(Limits::SERVER);
    let on = |number, who| Ask { file: file(number), ..ask(who, 0, 10, Exclusive) };
    for (number, who) in [(1, "a1"), (11, "b1"), (21, "c1")] {
        world.lock(&on(number, who)).unwrap();
    }
    world.wait(&on(11, "a1"), "a").unwrap();
    world.wait(&on(21, "b1"), "b").unwrap();
    assert_eq!(world.wait(&on(1, "c1"), "c"), Err(Refused::Deadlock));
    world.unlock(&on(21, "c1")).unwrap();
    assert_eq!(world.granted().0, ["b"]);
}

#[test]
fn a_client_that_goes_takes_all_its_owners_along_and_nobody_elses() {
    let mut world = World::new(Limits::SERVER);
    for (at, who) in [(1, "a1"), (2, "a2"), (3, "b1")] {
        world.lock(&Ask { file: file(at), ..ask(who, 0, 10, Exclusive) }).unwrap();
        world.wait(&Ask { file: file(at), ..ask("c1", 0, 10, Exclusive) }, "c").unwrap();
    }
    let all = Share { access: Access::READ, deny: Access::WRITE };
    world.tables.share(NOW, &file(4), &owner("a3"), all, false).unwrap();
    world.wait(&Ask { file: file(3), ..ask("a1", 0, 10, Shared) }, "a").unwrap();
    world.tables.release_owner(&owner("a2"), &mut world.grants);
    assert_eq!(world.granted().0, ["c"]);
    world.tables.release_client(&client("a"), &mut world.grants);
    assert_eq!(world.granted().0, ["c"]);
    assert!(!world.tables.has(&client("a")) && world.tables.has(&client("b")));
    let used = Use { locks: 3, waiters: 1, shares: 0, opens: 0, owner_bytes: 2 };
    assert_eq!(world.tables.used(), used);
}

#[test]
fn a_volume_that_goes_takes_its_locks_along() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&Ask { file: file(11), ..ask("a1", 0, 10, Exclusive) }).unwrap();
    world.wait(&Ask { file: file(11), ..ask("b1", 0, 10, Exclusive) }, "b").unwrap();
    world.lock(&Ask { file: file(21), ..ask("a1", 0, 10, Exclusive) }).unwrap();
    world.tables.close(VolumeId(1));
    assert_eq!(world.tables.used(), Use { locks: 1, owner_bytes: 1, ..Use::default() });
    assert!(world.tables.has(&client("a")) && !world.tables.has(&client("b")));
    // A request that comes too late takes nothing that nobody would give back.
    let late = Ask { file: file(11), ..ask("b1", 0, 10, Exclusive) };
    assert_eq!(world.lock(&late), Err(Refused::NoVolume));
    let share = Share { access: Access::READ, deny: Access::WRITE };
    let shared = world.tables.share(NOW, &late.file, &late.owner, share, false);
    assert_eq!(shared, Err(Refused::NoVolume));
    assert_eq!(world.tables.test(NOW, &late), Err(Refused::NoVolume));
    assert!(!world.tables.has(&client("b")));
}

#[test]
fn a_grace_period_is_the_volume_s() {
    let mut world = World::new(Limits::SERVER);
    // Volume 1 was served before the restart and opens late; volume 2 is new.
    world.tables.close(VolumeId(1));
    world.tables.begin_grace(Mono::from_millis(5000), [VolumeId(0), VolumeId(1)], [client("a")]);
    world.tables.open(VolumeId(1));
    let at = |number, who| Ask { file: file(number), ..ask(who, 0, 10, Exclusive) };
    assert_eq!(world.lock(&at(1, "b1")), Err(Refused::Grace));
    assert_eq!(world.lock(&at(11, "b1")), Err(Refused::Grace));
    assert_eq!(world.lock(&at(21, "b1")), Ok(Locked::Granted));
    for (number, reclaimed) in [(1, Ok(Locked::Granted)), (22, Err(Refused::NoReclaim))] {
        let reclaim = at(number, "a1");
        assert_eq!(world.tables.lock(NOW, &reclaim, true, None, &mut Vec::new()), reclaimed);
    }
}

#[test]
fn a_request_is_quick_unless_it_has_to_wait_or_others_do() {
    let mut world = World::new(Limits::SERVER);
    let holder = ask("a1", 0, 10, Exclusive);
    world.lock(&holder).unwrap();
    let other = ask("b1", 5, 1, Shared);
    assert!(world.tables.is_quick(&holder, true) && world.tables.is_quick(&other, false));
    assert!(!world.tables.is_quick(&other, true), "it has to wait");
    for number in 0..40 {
        assert!(world.tables.is_quick(&holder, false) == (number <= 32));
        world.wait(&ask(&format!("c{number}"), 5, 1, Exclusive), "c").unwrap();
    }
    for offset in 0..300 {
        let range = ask("d1", 20 + 2 * offset, 1, Exclusive);
        world.lock(&Ask { file: file(2), ..range }).unwrap();
    }
    assert!(!world.tables.is_quick(&Ask { file: file(2), ..ask("d1", 0, 1, Shared) }, false));
    assert!(world.tables.is_quick(&Ask { file: file(2), ..ask("e1", 0, 1, Shared) }, true));
}

#[test]
fn shares_deny_what_they_say() {
    let (read, write) = (Access::READ, Access::WRITE);
    let (none, both) = (Access::empty(), read | write);
    for (access, deny, other, other_deny, fits) in [
        (read, none, read, none, true),
        (read, none, write, none, true),
        (read, write, read, none, true),
        (read, write, write, none, false),
        (read, write, both, none, false),
        (read, none, read, read, false),
        (write, none, read, read, true),
        (none, both, none, both, true),
        (none, read, read, none, false),
    ] {
        let mut world = World::new(Limits::SERVER);
        let first = Share { access, deny };
        let second = Share { access: other, deny: other_deny };
        world.tables.share(NOW, &file(1), &owner("a1"), first, false).unwrap();
        let answer = world.tables.share(NOW, &file(1), &owner("b1"), second, false);
        assert_eq!(answer, if fits { Ok(()) } else { Err(Refused::Shared) });
        world.tables.unshare(&file(1), &owner("a1"));
        assert_eq!(world.tables.share(NOW, &file(1), &owner("b1"), second, false), Ok(()));
    }
}

#[test]
fn an_owner_changes_its_share_only_as_far_as_others_let_it() {
    let mut world = World::new(Limits::SERVER);
    let share = |access, deny| Share { access, deny };
    let (none, read, write) = (Access::empty(), Access::READ, Access::WRITE);
    world.tables.share(NOW, &file(1), &owner("a1"), share(read, none), false).unwrap();
    world.tables.share(NOW, &file(1), &owner("b1"), share(read, none), false).unwrap();
    let deny_all = share(read, read | write);
    let refused = world.tables.share(NOW, &file(1), &owner("a1"), deny_all, false);
    assert_eq!(refused, Err(Refused::Shared));
    world.tables.share(NOW, &file(1), &owner("a1"), share(read, write), false).unwrap();
    let writes = world.tables.share(NOW, &file(1), &owner("b1"), share(write, none), false);
    assert_eq!(writes, Err(Refused::Shared));
    assert_eq!(world.tables.used().shares, 2);
}

#[test]
fn in_the_grace_period_only_those_from_before_get_anything() {
    let mut world = World::new(Limits::SERVER);
    let until = Mono::from_millis(5000);
    world.tables.begin_grace(until, VOLUMES, [client("a"), client("b")]);
    let new = ask("a1", 0, 10, Exclusive);
    let mut lock = |now, ask: &Ask, reclaim| {
        world.tables.lock(now, ask, reclaim, Some("waits"), &mut Vec::new())
    };
    assert_eq!(lock(NOW, &new, false), Err(Refused::Grace));
    assert_eq!(lock(NOW, &new, true), Ok(Locked::Granted));
    // The first to reclaim has it; a conflict is refused, and a reclaim never waits.
    assert!(matches!(lock(NOW, &ask("b1", 5, 10, Shared), true), Err(Refused::Held(_))));
    assert_eq!(lock(NOW, &ask("c1", 50, 10, Shared), true), Err(Refused::NoReclaim));
    let last = Mono(until.0 - 1);
    assert_eq!(lock(last, &ask("c1", 50, 10, Shared), false), Err(Refused::Grace));
    assert_eq!(lock(until, &ask("c1", 50, 10, Shared), false), Ok(Locked::Granted));
    assert_eq!(lock(until, &ask("b1", 70, 10, Shared), true), Err(Refused::NoReclaim));
}

#[test]
fn in_the_grace_period_nobody_can_tell_and_everybody_may_let_go() {
    let mut world = World::new(Limits::SERVER);
    world.tables.begin_grace(Mono::from_millis(5000), VOLUMES, [client("a")]);
    let held = ask("a1", 0, 10, Exclusive);
    world.tables.lock(NOW, &held, true, None, &mut Vec::new()).unwrap();
    assert_eq!(world.tables.test(NOW, &ask("b1", 0, 10, Shared)), Err(Refused::Grace));
    world.unlock(&held).unwrap();
    assert_eq!(world.tables.used(), Use::default());
    let share = Share { access: Access::READ, deny: Access::WRITE };
    let refused = world.tables.share(NOW, &file(1), &owner("a1"), share, false);
    assert_eq!(refused, Err(Refused::Grace));
    world.tables.share(NOW, &file(1), &owner("a1"), share, true).unwrap();
    world.tables.unshare(&file(1), &owner("a1"));
}

#[test]
fn the_grace_period_ends_early_when_nobody_is_left_to_reclaim() {
    let mut world = World::new(Limits::SERVER);
    let until = Mono::from_millis(5000);
    world.tables.begin_grace(until, VOLUMES, []);
    assert_eq!(world.tables.grace_until(NOW), None);
    world.tables.begin_grace(until, VOLUMES, [client("a"), client("b")]);
    world.tables.release_client(&client("a"), &mut world.grants);
    assert_eq!(world.tables.grace_until(NOW), Some(until));
    world.tables.release_client(&client("b"), &mut world.grants);
    assert_eq!(world.tables.grace_until(NOW), None);
    assert_eq!(world.lock(&ask("c1", 0, 10, Exclusive)), Ok(Locked::Granted));
}

#[test]
fn locks_are_bounded_by_client_file_and_server() {
    let mut world = World::new(LOW);
    let at = |number, who, offset| Ask { file: file(number), ..ask(who, offset, 1, Shared) };
    for offset in [0, 2, 4] {
        world.lock(&at(1, "a1", offset)).unwrap();
    }
    assert_eq!(world.lock(&at(1, "a1", 6)), Err(full(Counted::Locks, Scope::Client)));
    world.lock(&at(1, "b1", 0)).unwrap();
    assert_eq!(world.lock(&at(1, "b1", 2)), Err(full(Counted::Locks, Scope::File)));
    world.lock(&at(2, "b1", 0)).unwrap();
    assert_eq!(world.lock(&at(2, "b1", 2)), Err(full(Counted::Locks, Scope::Server)));
    // To grow a range, or to join two, takes no more.
    world.lock(&at(1, "a1", 1)).unwrap();
    assert_eq!(world.tables.used().locks, 4);
    world.lock(&at(2, "b1", 2)).unwrap();
}

#[test]
fn at_the_bound_the_middle_of_a_range_stays_locked() {
    let mut world = World::new(LOW);
    world.lock(&ask("a1", 0, 10, Shared)).unwrap();
    for offset in [20, 40] {
        world.lock(&ask("a1", offset, 1, Shared)).unwrap();
    }
    let full = Limit { counted: Counted::Locks, scope: Scope::Client };
    assert_eq!(world.unlock(&ask("a1", 5, 1, Shared)), Err(full));
    assert!(world.holder(&ask("b1", 5, 1, Exclusive)).is_some());
    world.unlock(&ask("a1", 5, 5, Shared)).unwrap();
}

#[test]
fn waiters_shares_names_and_clients_are_bounded() {
    let mut world = World::new(LOW);
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    for length in [1, 2] {
        world.wait(&ask("b1", 0, length, Shared), "b").unwrap();
    }
    let answer = world.wait(&ask("b1", 0, 3, Shared), "b");
    assert_eq!(answer, Err(full(Counted::Waiters, Scope::Client)));
    world.wait(&ask("c1", 0, 1, Shared), "c").unwrap();
    let answer = world.wait(&ask("d1", 0, 1, Shared), "d");
    assert_eq!(answer, Err(full(Counted::Waiters, Scope::File)));
    let share = Share { access: Access::READ, deny: Access::empty() };
    world.tables.share(NOW, &file(1), &owner("a1"), share, false).unwrap();
    let answer = world.tables.share(NOW, &file(2), &owner("a1"), share, false);
    assert_eq!(answer, Err(full(Counted::Shares, Scope::Client)));
    let long = ask("d12345", 50, 1, Shared);
    assert_eq!(world.lock(&long), Err(full(Counted::OwnerBytes, Scope::Client)));
    world.lock(&ask("d1234", 50, 1, Shared)).unwrap();
    let one_more = ask("d5", 60, 1, Shared);
    assert_eq!(world.lock(&one_more), Err(full(Counted::OwnerBytes, Scope::Client)));
    let fifth = ask("e1", 60, 1, Shared);
    assert_eq!(world.lock(&fifth), Err(full(Counted::Clients, Scope::Server)));
}

#[test]
fn a_waiter_whose_turn_comes_is_served_at_the_bound_too() {
    let mut world = World::new(LOW);
    world.lock(&ask("a1", 0, 10, Exclusive)).unwrap();
    world.wait(&ask("b1", 4, 1, Exclusive), "b").unwrap();
    for offset in [20, 30, 40] {
        world.lock(&ask("b1", offset, 1, Exclusive)).unwrap();
    }
    world.unlock(&ask("a1", 0, 10, Exclusive)).unwrap();
    assert_eq!(world.granted().0, ["b"]);
    assert_eq!(world.tables.used().locks, 4);
}

#[test]
fn two_waits_of_one_owner_that_are_granted_together_are_both_told() {
    let mut world = World::new(Limits::SERVER);
    world.lock(&ask("b1", 0, 200, Exclusive)).unwrap();
    for (offset, token) in [(0, "first"), (50, "second")] {
        assert_eq!(world.wait(&ask("a1", offset, 100, Exclusive), token), Ok(Locked::Waits));
    }
    world.unlock(&ask("b1", 0, 200, Exclusive)).unwrap();
    let ids: Vec<GrantId> = world.grants.iter().map(|grant| grant.id).collect();
    assert_eq!(world.granted().0, ["first", "second"]);
    for id in ids {
        assert!(world.tables.grantee(id).is_some(), "the request of {id:?} still waits");
        world.tables.taken(id);
        assert!(world.tables.grantee(id).is_none());
    }
}
