//! A disk that takes its time. "Slow" is until the test lets go, so that what comes meanwhile comes
//! because it need not wait.

use crate::world::{World, write_args};
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{StableHow, Status, WriteArgs};
use weir_store::testing::{Fault, Kind, Rule};

fn write_status(record: &[u8]) -> Status {
    Reply::parse(record).unwrap().results::<WriteArgs<'_>>().unwrap().status()
}

#[test]
fn a_slow_disk_delays_only_what_waits_for_it() {
    /// More than one volume may have running at once.
    const WAITING: u32 = 30;
    for kind in [Kind::Write, Kind::Sync] {
        let world = World::start();
        let mut slow = world.connect();
        let one = slow.mount("/one");
        let [file, cached] = ["file", "cached"].map(|name| slow.create(&one, name).unwrap());
        slow.write(&cached, 0, &[7; 5000], StableHow::FileSync).unwrap();
        let held = Rule::new(&[kind], world.root("one").join("file"), Fault::Hold);
        let held = world.kernel.add(held);
        let sent =
            |at: u32| write_args(&file, u64::from(at) * 8192, &[1; 8192], StableHow::FileSync);
        let mut waiting: Vec<u32> = (0..WAITING).map(|at| slow.send(&sent(at))).collect();
        world.kernel.wait_for(held, 1);
        // Over the same connection, what is in memory; the rest of the volume over another.
        assert_eq!(slow.attributes(&one).nlink, 2);
        assert_eq!(slow.read(&cached, 0, 8192).unwrap(), (vec![7; 5000], true));
        let mut same = world.connect();
        assert_eq!(same.attributes(&cached).size, 5000);
        assert_eq!(same.read(&cached, 0, 8192).unwrap().0.len(), 5000);
        // Another volume has the disk to itself.
        let mut elsewhere = world.connect();
        let other = elsewhere.mount("/other");
        for round in 0..20 {
            let name = format!("file-{round}");
            let apart = elsewhere.create(&other, &name).unwrap();
            elsewhere.write(&apart, 0, &[2; 10_000], StableHow::FileSync).unwrap();
            elsewhere.write(&apart, 0, &[3; 10_000], StableHow::Unstable).unwrap();
            elsewhere.commit(&apart).unwrap();
            assert_eq!(elsewhere.read(&apart, 0, 20_000).unwrap(), (vec![3; 10_000], true));
            elsewhere.remove(&other, &name).unwrap();
        }
        assert!(world.kernel.hits(held) > 0);
        world.kernel.lift(held);
        let mut answered: Vec<u32> = waiting
            .iter()
            .map(|_| {
                let record = slow.record();
                assert_eq!(write_status(&record), Status::OK);
                Reply::parse(&record).unwrap().xid
            })
            .collect();
        answered.sort_unstable();
        waiting.sort_unstable();
        assert_eq!(answered, waiting, "each is answered once");
        assert_eq!(slow.attributes(&file).size, u64::from(WAITING) * 8192);
        world.stop();
    }
}

#[test]
fn a_write_that_waits_for_the_disk_and_is_sent_again_is_carried_out_once() {
    let world = World::start();
    let (mut client, mut again) = (world.connect(), world.connect());
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    let before = world.live("one");
    let held = Rule::new(&[Kind::Write], world.root("one").join("file"), Fault::Hold);
    let held = world.kernel.add(held);
    let args = write_args(&file, 0, &[1; 4096], StableHow::FileSync);
    client.send_as(9000, &args);
    world.kernel.wait_for(held, 1);
    for other in [&mut client, &mut again] {
        other.send_as(9000, &args);
        other.taken_up(&one);
    }
    assert_eq!(world.server.plane().totals().repetitions_dropped, 2);
    world.kernel.lift(held);
    for other in [&mut client, &mut again] {
        assert_eq!(write_status(&other.record()), Status::OK);
    }
    let after = world.live("one");
    assert_eq!(after.write_ops, before.write_ops + 1);
    assert_eq!(after.write_bytes, before.write_bytes + 4096);
    world.stop();
}
