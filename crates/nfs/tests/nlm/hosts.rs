//! Hosts that restart, and the server that does.

use crate::world::{A, B, C, FILE, NOW, Process, VOLUME, World};
use weir_core::{Mono, VolumeId};
use weir_nfs::client::NlmFreeAll;
use weir_nfs::nlm::wire::{CallerName, FreeAllArgs};
use weir_nfs::nlm::{Host, Status};

const UNTIL: Mono = Mono::from_millis(90_000);

fn host(process: &Process) -> Host {
    Host::new(process.ip(), process.name.as_bytes())
}

/// `who` announces that it restarted; whether B, who waits for the file, gets it thereby.
fn notify(world: &mut World, who: &Process, name: &str, state: u32) -> bool {
    world.rebooted(who.ip(), name, state);
    world.callbacks.pop().is_some_and(|callback| callback.peer == B.peer())
}

/// A holds the file and a share, and B waits for the file.
fn held() -> World {
    let mut world = World::new();
    world.lock(&A, FILE, true);
    world.share(&A, 1, 2);
    world.wait(&B, FILE, true);
    world
}

#[test]
fn a_host_that_restarted_holds_nothing_any_more() {
    let mut world = held();
    assert!(notify(&mut world, &A, "a", 5));
    assert_eq!(world.hosts(), [host(&B)]);
}

#[test]
fn a_host_may_leave_its_domain_out_or_add_it() {
    assert!(notify(&mut held(), &A, "A.example.org", 5));
    let mut world = World::new();
    world.lock(&Process { name: "a.example.org", ..A }, FILE, true);
    world.wait(&B, FILE, true);
    assert!(notify(&mut world, &A, "a", 5));
}

#[test]
fn nobody_is_believed_about_others() {
    let mut world = held();
    assert!(!notify(&mut world, &C, "a", 5), "another address");
    assert!(!notify(&mut world, &A, "b", 5), "another name");
    let free = |name| NlmFreeAll(FreeAllArgs { name: CallerName(name), state: 5 });
    world.call(&C.peer(), &free(b"a"));
    assert!(world.callbacks.is_empty());
    world.call(&A.peer(), &free(b"a"));
    let _told = world.grant(&B, FILE);
}

#[test]
fn a_notice_that_comes_late_does_not_take_locks_of_the_same_life() {
    let mut world = held();
    assert!(notify(&mut world, &A, "a", 5));
    world.cancel(&B, FILE, true);
    world.callbacks.clear();
    assert_eq!(world.lock(&Process { state: 5, ..A }, FILE, true), Status::GRANTED);
    world.wait(&B, FILE, true);
    assert!(!notify(&mut world, &A, "a", 5));
    // Nor if the lock came first and the notice was lost till now.
    let mut world = World::new();
    world.lock(&Process { state: 5, ..A }, FILE, true);
    world.wait(&B, FILE, true);
    assert!(!notify(&mut world, &A, "a", 5));
    assert!(notify(&mut world, &A, "a", 7));
}

#[test]
fn a_lock_of_a_later_life_ends_those_of_the_life_before() {
    let mut world = held();
    let (later, unknown) = (Process { state: 5, ..A }, Process { state: 0, ..A });
    assert_eq!(world.lock(&unknown, ("other", 0, 0), true), Status::GRANTED);
    assert!(world.callbacks.is_empty());
    assert_eq!(world.lock(&later, ("other", 0, 0), true), Status::GRANTED);
    let _told = world.grant(&B, FILE);
}

#[test]
fn after_a_restart_locks_are_reclaimed_before_new_ones_are_given() {
    let mut world = World::new();
    world.tables.begin_grace(UNTIL, [VOLUME], [&A, &B].map(|who| host(who).client()));
    assert_eq!(world.tables.grace_until(NOW), Some(UNTIL));
    let grace = Status::DENIED_GRACE_PERIOD;
    assert_eq!(world.wait(&B, FILE, true), grace);
    assert_eq!(world.holder(&B, FILE, true), Err(grace));
    assert_eq!(world.share(&B, 1, 0), grace);
    assert_eq!(world.reclaim(&A, FILE, true), Status::GRANTED);
    assert_eq!(world.reclaim(&A, FILE, true), Status::GRANTED, "a repetition");
    assert_eq!(world.reclaim(&B, FILE, false), Status::DENIED);
    assert_eq!(world.reclaim(&C, ("other", 0, 0), true), grace, "it held nothing before");
    assert_eq!(world.unlock(&A, FILE), Status::GRANTED);
    assert_eq!(world.cancel(&A, FILE, true), Status::GRANTED);
    world.now = UNTIL;
    assert_eq!(world.lock(&C, FILE, true), Status::GRANTED);
    assert_eq!(world.reclaim(&B, ("other", 0, 0), true), grace, "too late");
}

#[test]
fn the_grace_period_ends_when_all_who_could_reclaim_have_restarted() {
    let mut world = World::new();
    world.tables.begin_grace(UNTIL, [VOLUME], [&A, &B].map(|who| host(who).client()));
    notify(&mut world, &A, "a.example.org", 5);
    assert_eq!(world.lock(&C, FILE, true), Status::DENIED_GRACE_PERIOD);
    notify(&mut world, &B, "b", 5);
    assert_eq!(world.lock(&C, FILE, true), Status::GRANTED);
}

#[test]
fn a_deleted_volume_takes_its_locks_along() {
    let mut world = held();
    world.tables.close(VolumeId(2));
    assert_eq!(world.hosts(), [host(&A), host(&B)]);
    world.tables.close(VOLUME);
    assert_eq!(world.lock(&C, FILE, true), Status::STALE_FH);
    assert_eq!(world.tables.used(), weir_state::Use::default());
}
