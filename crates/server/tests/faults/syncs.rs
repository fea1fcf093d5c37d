//! Syncs that fail. The kernel tells of lost data once and goes on as if nothing were; clients
//! must hear of it all the same: by the status where they wait for a sync, and by another write
//! verifier where they have yet to ask for one (RFC 1813 §3.3.7, §3.3.21).

use crate::world::{Client, World, commit_args, create_args, write_args};
use rustix::io::Errno;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{CommitArgs, CreateArgs, Res, StableHow, Status, WriteArgs};
use weir_store::testing::{Fault, Kind, Rule, When};

const FAILS: Fault = Fault::Fail(Errno::IO);

/// The status of a COMMIT in `record`.
fn commit_status(record: &[u8]) -> Status {
    Reply::parse(record).unwrap().results::<CommitArgs<'_>>().unwrap().status()
}

/// Commits until it is answered with success, as a client does that sends again what it has. Each
/// failure may be told once more, so that is soon.
fn commit_at_last(client: &mut Client, file: &[u8]) -> [u8; 8] {
    let verifier = (0..3).find_map(|_| client.commit(file).ok());
    verifier.unwrap()
}

#[test]
fn what_a_failed_commit_may_have_lost_is_never_answered_as_committed() {
    let world = World::start();
    let (mut client, mut elsewhere) = (world.connect(), world.connect());
    let (one, other) = (client.mount("/one"), elsewhere.mount("/other"));
    let [file, second] = ["file", "second"].map(|name| client.create(&one, name).unwrap());
    let apart = elsewhere.create(&other, "file").unwrap();
    let mut write = |file| client.write(file, 0, &[1; 5000], StableHow::Unstable).unwrap().verifier;
    let before = write(&file);
    assert_eq!(write(&second), before);
    let undisturbed = elsewhere.write(&apart, 0, &[2; 5000], StableHow::Unstable).unwrap();

    let path = world.root("one").join("file");
    let rule = world.kernel.add(Rule::new(&[Kind::Sync], path, FAILS).when(When::First(1)));
    let (status, size) = client.commit(&file).unwrap_err();
    assert_eq!(status, Status::IO);
    assert_eq!(size.unwrap(), 5000, "the client is told what is there now");
    assert_eq!(world.kernel.hits(rule), 1);

    // The next sync succeeds, and does not cover what the failed one lost.
    let after = commit_at_last(&mut client, &file);
    assert_ne!(after, before, "the client would believe that its data is safe");
    // The owner of the lost data is not known, so every client with uncommitted data sends it
    // again.
    assert_ne!(client.commit(&second).unwrap(), before);
    let again = client.write(&file, 0, &[1; 5000], StableHow::Unstable).unwrap();
    assert_eq!(client.commit(&file).unwrap(), again.verifier, "sent again, it is safe");
    assert_eq!(client.read(&file, 0, 8000).unwrap(), (vec![1; 5000], true));
    // Another volume has lost nothing.
    assert_eq!(elsewhere.commit(&apart).unwrap(), undisturbed.verifier);
    world.stop();
}

#[test]
fn a_stable_write_whose_sync_fails_is_told_so() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    let path = world.root("one").join("file");
    let cases = [
        (StableHow::FileSync, Errno::IO, Status::IO),
        (StableHow::DataSync, Errno::IO, Status::IO),
        (StableHow::FileSync, Errno::NOSPC, Status::NOSPC),
        (StableHow::DataSync, Errno::DQUOT, Status::DQUOT),
        (StableHow::FileSync, Errno::ROFS, Status::ROFS),
        (StableHow::FileSync, Errno::NOENT, Status::IO),
    ];
    for (stable, errno, expected) in cases {
        let before = client.write(&file, 0, &[1; 100], StableHow::Unstable).unwrap().verifier;
        let rule = Rule::new(&[Kind::Sync], &path, Fault::Fail(errno));
        let rule = world.kernel.add(rule);
        let (status, size) = client.write(&file, 0, &[2; 300], stable).unwrap_err();
        assert_eq!(status, expected, "{stable:?} {errno}");
        assert!(size.is_some());
        assert!(client.write(&file, 0, &[2; 300], stable).is_err(), "it goes on failing");
        world.kernel.lift(rule);
        let done = (0..3).find_map(|_| client.write(&file, 0, &[2; 300], stable).ok()).unwrap();
        assert_eq!((done.count, done.committed), (300, stable));
        assert_ne!(client.commit(&file).unwrap(), before, "what was uncommitted may be lost");
    }
    world.stop();
}

#[test]
fn everybody_who_shares_a_failed_sync_is_told() {
    const CLIENTS: usize = 3;
    const EACH: usize = 4;
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    client.write(&file, 0, &[1; 100], StableHow::Unstable).unwrap();
    let path = world.root("one").join("file");
    let held = Rule::new(&[Kind::Sync], &path, Fault::Hold).when(When::First(1));
    let held = world.kernel.add(held);
    let fails = world.kernel.add(Rule::new(&[Kind::Sync], &path, FAILS).when(When::First(1)));
    client.send(&commit_args(&file));
    world.kernel.wait_for(held, 1);
    // These calls come while a sync runs, so they all wait for the next.
    let mut crowd: Vec<Client> = (0..CLIENTS).map(|_| world.connect()).collect();
    for waiting in &mut crowd {
        for _ in 0..EACH {
            waiting.send(&commit_args(&file));
        }
        waiting.taken_up(&one);
    }
    assert_eq!(world.kernel.hits(fails), 0);
    world.kernel.lift(held);
    assert_eq!(commit_status(&client.record()), Status::OK);
    for waiting in &mut crowd {
        for _ in 0..EACH {
            assert_eq!(commit_status(&waiting.record()), Status::IO);
        }
    }
    assert_eq!(world.kernel.hits(fails), 1, "they shared one sync");
    world.stop();
}

#[test]
fn a_create_whose_sync_fails_is_told_so_and_the_same_call_is_told_the_same() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let status = |record: &[u8]| {
        let reply = Reply::parse(record).unwrap();
        match reply.results::<CreateArgs<'_>>().unwrap() {
            Res::Ok(_) => Status::OK,
            Res::Fail(status, wcc) => {
                assert!(wcc.after.is_some());
                status
            }
        }
    };
    // The file is synced first, and then its directory.
    for (xid, when) in [(7000, When::First(1)), (7001, When::Nth(2))] {
        let rule = Rule::new(&[Kind::Sync], world.root("one"), FAILS).when(when);
        let fails = world.kernel.add(rule);
        client.send_as(xid, &create_args(&one, "file"));
        assert_eq!(status(&client.record()), Status::IO);
        assert_eq!(world.kernel.hits(fails), 1);
        world.kernel.lift(fails);
        // The client did not get the reply and asks again: carried out anew it would be EXIST.
        client.send_as(xid, &create_args(&one, "file"));
        assert_eq!(status(&client.record()), Status::IO);
        // Whether the name would survive a power cut is not known; it does not come by halves.
        let file = client.lookup(&one, "file").unwrap();
        client.remove(&one, "file").unwrap();
        assert_eq!(client.lookup(&one, "file"), Err(Status::NOENT));
        assert_eq!(client.commit(&file).unwrap_err().0, Status::STALE);
    }
    assert_eq!(world.server.plane().totals().repetitions_answered, 2);
    world.stop();
}

#[test]
fn data_in_flight_when_a_sync_fails_is_sent_again() {
    let world = World::start();
    let (mut writer, mut client) = (world.connect(), world.connect());
    let one = client.mount("/one");
    let [file, second] = ["file", "second"].map(|name| client.create(&one, name).unwrap());
    let root = world.root("one");
    // The write has begun before the sync of another file fails, and ends after it.
    let held = world.kernel.add(Rule::new(&[Kind::Write], root.join("file"), Fault::Hold));
    let fails = world.kernel.add(Rule::new(&[Kind::Sync], root.join("second"), FAILS));
    in_the_pool(&world, &mut client, &one);
    writer.send(&write_args(&file, 0, &[1; 100], StableHow::Unstable));
    world.kernel.wait_for(held, 1);
    assert_eq!(client.commit(&second).unwrap_err().0, Status::IO);
    world.kernel.lift(held);
    world.kernel.lift(fails);
    let record = writer.record();
    let written = Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap();
    let Res::Ok(written) = written else { panic!("{written:?}") };
    assert_ne!(written.verifier, writer.commit(&file).unwrap(), "to be on the safe side");
    world.stop();
}

/// Writes go to the pool for a while after a sync, so that one that is held holds up no worker.
fn in_the_pool(world: &World, client: &mut Client, root: &[u8]) {
    let file = client.create(root, "calm").unwrap();
    let path = world.root("one").join("calm");
    let slow = Fault::Slow(std::time::Duration::from_millis(2));
    let slow = world.kernel.add(Rule::new(&[Kind::Write], path, slow));
    // More than one, because a single one might be the scheduler's fault.
    for _ in 0..8 {
        client.write(&file, 0, &[0; 10], StableHow::Unstable).unwrap();
    }
    world.kernel.lift(slow);
}
