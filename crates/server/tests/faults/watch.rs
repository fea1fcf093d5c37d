//! Whether contracts are kept, as a slow disk shows it. No test looks at a clock: "slow" is until
//! the test lets go, however long that is.

use crate::world::{World, write_args};
use weir_control::plane::VolumeReading;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{StableHow, Status, WriteArgs};
use weir_qos::Limits;
use weir_qos::verdict::{Cause, Course, Judgement, Reading, Reason, Verdict};
use weir_store::testing::{Fault, Kind, Rule};

/// The limits and counters of a volume now.
fn reading(world: &World, volume: &str) -> (Limits, Reading) {
    let id = world.server.catalog().snapshot().volume_named(volume).unwrap().id;
    let mut found = None;
    world.server.plane().readings(&mut |one: VolumeReading| {
        if one.id == id {
            found = Some((one.entitled.limits, one.reading));
        }
    });
    found.unwrap()
}

/// The volume's course since `before`.
fn since(world: &World, volume: &str, before: &Reading) -> Course {
    Course::between(before, &reading(world, volume).1)
}

#[test]
fn a_starved_store_has_broken_the_contract_and_an_idle_volume_has_not() {
    const WAITING: u32 = 30;
    for kind in [Kind::Write, Kind::Sync] {
        let world = World::start();
        let mut client = world.connect();
        let [one, other] = ["/one", "/other"].map(|path| client.mount(path));
        let file = client.create(&one, "file").unwrap();
        let held = Rule::new(&[kind], world.root("one").join("file"), Fault::Hold);
        let held = world.kernel.add(held);
        let sent =
            |at: u32| write_args(&file, u64::from(at) * 8192, &[1; 8192], StableHow::FileSync);
        for at in 0..WAITING {
            client.send(&sent(at));
        }
        world.kernel.wait_for(held, 1);
        assert_eq!(client.attributes(&other).nlink, 2, "all of them were taken up");
        let [before, calm] = ["one", "other"].map(|volume| reading(&world, volume).1);
        assert_eq!(client.attributes(&one).nlink, 2);
        let course = since(&world, "one", &before);
        assert_eq!((course.delivered.operations, course.asked_nanos), (0, 0));
        assert_eq!(course.store_nanos, course.nanos * u64::from(WAITING));
        let broken =
            Judgement { verdict: Verdict::Broken(Cause::Store), reason: Reason::WouldHave };
        assert_eq!(course.judge(), broken);
        assert_eq!(client.attributes(&other).nlink, 2);
        let course = since(&world, "other", &calm);
        let idle = Judgement { verdict: Verdict::NotDemanded, reason: Reason::NothingCame };
        assert_eq!(course.judge(), idle);
        world.kernel.lift(held);
        for _ in 0..WAITING {
            let record = client.record();
            let status =
                Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap().status();
            assert_eq!(status, Status::OK);
        }
        let course = since(&world, "one", &before);
        assert_eq!(course.delivered.operations, u64::from(WAITING));
        world.stop();
    }
}

#[test]
fn what_waits_for_its_contract_is_counted_to_the_byte() {
    const WRITES: u32 = 12;
    let world = World::start_small();
    let mut client = world.connect();
    let small = client.mount("/small");
    let file = client.create(&small, "file").unwrap();
    let before = reading(&world, "small").1;
    // At 16 bytes a second: the first goes at once, the others wait.
    for at in 0..WRITES {
        client.send(&write_args(&file, u64::from(at) * 4, &[1; 4], StableHow::Unstable));
    }
    for _ in 0..WRITES {
        client.record();
    }
    // Replies are counted when the socket has taken them, which is before the next is read.
    client.taken_up(&small);
    let course = since(&world, "small", &before);
    assert_eq!(course.delivered.operations, u64::from(WRITES));
    assert_eq!(course.delivered.bytes, u64::from(WRITES) * 4);
    assert_eq!(course.offered, course.delivered);
    assert_eq!(course.passed_nanos, course.used_nanos);
    assert_eq!(course.requests, u64::from(WRITES));
    let second = 1_000_000_000;
    // 48 bytes take 3 s, of which the first bytes may come at once.
    assert!(course.used_nanos > second && course.asked_nanos > second, "{course:?}");
    assert!(course.wait_nanos > course.asked_nanos, "several waited at once");
    assert!(course.asked_nanos <= course.nanos && course.busy_nanos <= course.nanos);
    let by_gate = Verdict::Broken(Cause::Gate);
    assert_ne!((course.judge().verdict, course.judge().reason), (by_gate, Reason::TooMuch));
    let later = reading(&world, "small").1;
    let after = since(&world, "small", &later);
    assert_eq!((after.busy_nanos, after.wait_nanos, after.network_nanos), (0, 0, 0), "all is over");
    world.stop();
}

#[test]
fn a_connection_that_breaks_leaves_nothing_under_way() {
    let world = World::start_small();
    let (mut client, mut other) = (world.connect(), world.connect());
    let small = client.mount("/small");
    let file = client.create(&small, "file").unwrap();
    for at in 0..20 {
        client.send(&write_args(&file, at * 64, &[1; 64], StableHow::Unstable));
    }
    // The first goes at once.
    client.record();
    client.taken_up(&small);
    let waiting = |world: &World| world.live("small").waiting;
    assert!(waiting(&world) > 0);
    drop(client);
    while waiting(&world) > 0 {
        other.attributes(&small);
    }
    let held = reading(&world, "small").1;
    other.taken_up(&small);
    let course = since(&world, "small", &held);
    assert_eq!((course.busy_nanos, course.wait_nanos, course.store_nanos), (0, 0, 0), "{course:?}");
    world.stop();
}
