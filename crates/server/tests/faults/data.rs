//! READ and WRITE over a disk that fails: the status, what is left behind, and what the contract
//! and the counters make of it.

use crate::world::World;
use rustix::io::Errno;
use weir_nfs::v3::wire::{StableHow, Status};
use weir_store::testing::{Fault, Kind, Rule, When};

const KIB: u64 = 1024;

#[test]
fn a_write_that_fails_is_told_why_and_leaves_nothing_behind() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    client.write(&file, 0, &[1; 4096], StableHow::Unstable).unwrap();
    let path = world.root("one").join("file");
    let cases = [
        (Errno::IO, Status::IO),
        (Errno::NOSPC, Status::NOSPC),
        (Errno::DQUOT, Status::DQUOT),
        (Errno::ROFS, Status::ROFS),
        (Errno::STALE, Status::STALE),
        (Errno::FBIG, Status::FBIG),
        (Errno::NOMEM, Status::JUKEBOX),
    ];
    for (number, (errno, expected)) in (0..).zip(cases) {
        let before = world.live("one");
        let rule = world.kernel.add(Rule::new(&[Kind::Write], &path, Fault::Fail(errno)));
        // In the file, at its end, and behind a hole; inline and in the pool.
        for offset in [0, 4096, 1 << 20] {
            for stable in [StableHow::Unstable, StableHow::FileSync] {
                let (status, size) = client.write(&file, offset, &[2; 8192], stable).unwrap_err();
                assert_eq!(status, expected, "{errno} at {offset}");
                assert_eq!(size.unwrap(), 4096);
            }
        }
        assert_eq!(world.kernel.hits(rule), 6);
        world.kernel.lift(rule);
        assert_eq!(client.used(&one), 4096, "{errno}");
        let after = world.live("one");
        let count = |live: &weir_control::plane::VolumeLive| (live.write_ops, live.failed_ops);
        assert_eq!(count(&after), (before.write_ops + 6, before.failed_ops + 6));
        assert_eq!(after.write_bytes, before.write_bytes, "what was not done is not counted");
        // And it goes on at once.
        let again = [u8::try_from(number).unwrap(); 4096];
        client.write(&file, 0, &again, StableHow::FileSync).unwrap();
        assert_eq!(client.read(&file, 0, 8192).unwrap(), (again.to_vec(), true));
    }
    world.stop();
}

#[test]
fn a_disk_that_fills_up_takes_part_of_a_write_and_the_client_goes_on() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let path = world.root("one").join("file");
    for stable in [StableHow::Unstable, StableHow::DataSync, StableHow::FileSync] {
        let file = client.create(&one, "file").unwrap();
        // The first system call writes 10,000 bytes, and from then on there is no room.
        let short = Rule::new(&[Kind::Write], &path, Fault::Short(10_000)).when(When::First(1));
        let short = world.kernel.add(short);
        let full = Rule::new(&[Kind::Write], &path, Fault::Fail(Errno::NOSPC));
        let full = world.kernel.add(full);
        let data: Vec<u8> = (0..40_000u32).map(|at| at.to_le_bytes()[1]).collect();
        let done = client.write(&file, 0, &data, stable).unwrap();
        assert_eq!((done.count, done.committed), (10_000, stable));
        assert_eq!(done.file_wcc.after.unwrap().size, 10_000);
        assert_eq!(client.used(&one), 12 * KIB, "three units hold 10,000 bytes");
        // The client asks for the rest, and is told why not.
        let (status, size) = client.write(&file, 10_000, &data[10_000..], stable).unwrap_err();
        assert_eq!((status, size.unwrap()), (Status::NOSPC, 10_000));
        assert_eq!(client.used(&one), 12 * KIB);
        world.kernel.lift(short);
        world.kernel.lift(full);
        let done = client.write(&file, 10_000, &data[10_000..], stable).unwrap();
        assert_eq!(done.count, 30_000);
        assert_eq!(client.read(&file, 0, 50_000).unwrap(), (data, true));
        assert_eq!(client.used(&one), 40 * KIB);
        client.remove(&one, "file").unwrap();
        assert_eq!(client.used(&one), 0);
    }
    world.stop();
}

#[test]
fn what_the_kernel_moves_in_pieces_comes_whole() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    let data: Vec<u8> = (0..100_000u32).map(|at| at.to_le_bytes()[1]).collect();
    let short = |kinds: &[Kind]| Rule::new(kinds, world.root("one"), Fault::Short(7000));
    let pieces = world.kernel.add(short(&[Kind::Write]));
    let done = client.write(&file, 0, &data, StableHow::Unstable).unwrap();
    assert_eq!((done.count, world.kernel.hits(pieces)), (100_000, 15));
    let pieces = world.kernel.add(short(&[Kind::Read, Kind::ReadCached]));
    assert_eq!(client.read(&file, 0, 100_000).unwrap(), (data.clone(), true));
    assert_eq!(client.read(&file, 10, 50_000).unwrap(), (data[10..50_010].to_vec(), false));
    assert!(world.kernel.hits(pieces) >= 15 + 8);
    world.stop();
}

#[test]
fn a_read_that_fails_is_told_why_and_gives_no_byte() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let [file, second] = ["file", "second"].map(|name| client.create(&one, name).unwrap());
    for file in [&file, &second] {
        client.write(file, 0, &[1; 20_000], StableHow::FileSync).unwrap();
    }
    let path = world.root("one").join("file");
    let both = [Kind::Read, Kind::ReadCached];
    for (errno, expected) in [(Errno::IO, Status::IO), (Errno::STALE, Status::STALE)] {
        let before = world.live("one");
        // One bad place: what does not touch it is read.
        let rule = Rule::new(&both, &path, Fault::Fail(errno)).bytes(8192..8193);
        let rule = world.kernel.add(rule);
        assert_eq!(client.read(&file, 0, 8192).unwrap(), (vec![1; 8192], false));
        let (status, size) = client.read(&file, 4096, 8192).unwrap_err();
        assert_eq!((status, size.unwrap()), (expected, 20_000));
        assert_eq!(client.read(&second, 4096, 8192).unwrap().0.len(), 8192);
        world.kernel.lift(rule);
        let after = world.live("one");
        assert_eq!(after.read_bytes, before.read_bytes + 2 * 8192);
        assert_eq!(after.failed_ops, before.failed_ops + 1);
        assert_eq!(client.read(&file, 4096, 20_000).unwrap(), (vec![1; 15_904], true));
    }
    // Half of it is in the cache, and the disk fails for the rest.
    let cached = Rule::new(&[Kind::ReadCached], &path, Fault::Short(4096));
    let cached = world.kernel.add(cached);
    let broken = world.kernel.add(Rule::new(&[Kind::Read], &path, Fault::Fail(Errno::IO)));
    assert_eq!(client.read(&file, 0, 20_000).unwrap_err().0, Status::IO);
    assert_eq!((world.kernel.hits(cached), world.kernel.hits(broken)), (1, 1));
    world.stop();
}

#[test]
fn a_short_read_is_not_taken_for_the_end_of_the_file() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    client.write(&file, 0, &[1; 20_000], StableHow::FileSync).unwrap();
    let path = world.root("one").join("file");
    // A part of what was asked for, and then no more than that.
    let kinds = [Kind::Read, Kind::ReadCached];
    let part = Rule::new(&kinds, &path, Fault::Short(5000)).when(When::First(1));
    let part = world.kernel.add(part);
    let nothing = world.kernel.add(Rule::new(&kinds, &path, Fault::Short(0)));
    let (data, eof) = client.read(&file, 0, 20_000).unwrap();
    assert_eq!((data, eof), (vec![1; 5000], false), "there is more, and the client asks for it");
    world.kernel.lift(part);
    world.kernel.lift(nothing);
    assert_eq!(client.read(&file, 5000, 20_000).unwrap(), (vec![1; 15_000], true));
    world.stop();
}

#[test]
fn requests_that_fail_cost_the_contract_nothing() {
    const MIB: usize = 1 << 20;
    let world = World::start_small();
    let mut client = world.connect();
    let small = client.mount("/small");
    let file = client.create(&small, "file").unwrap();
    let rule = Rule::new(&[Kind::Write], world.root("small"), Fault::Fail(Errno::IO));
    let rule = world.kernel.add(rule);
    // Each would spend the contract of a day. If one were charged, the next would wait for it.
    for _ in 0..20 {
        let written = client.write(&file, 0, &vec![1; MIB], StableHow::FileSync);
        assert_eq!(written.unwrap_err().0, Status::IO);
    }
    assert_eq!(world.kernel.hits(rule), 20);
    let live = world.live("small");
    assert_eq!((live.delayed_ops, live.write_bytes, live.failed_ops), (0, 0, 20));
    world.stop();
}
