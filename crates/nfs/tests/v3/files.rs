//! GETATTR, SETATTR, ACCESS, READ, WRITE and COMMIT.

use crate::world::{ALICE, BOB, FSID, Handle, ROOT, VERIFIER, World, at, failed, ok, with_mode};
use weir_core::{Credentials, FsError};
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, CommitArgs, CreateArgs, CreateHow3, FileHandle3, FileType, GetattrArgs,
    NfsTime3, ReadArgs, Sattr3, SetTime3, SetattrArgs, SpecData3, StableHow, Status, WccAttr,
    WccData, WriteArgs,
};
use weir_nfs::v3::wire::{MknodArgs, MknodData3};

fn fh(handle: &Handle) -> FileHandle3<'_> {
    FileHandle3(handle)
}

fn setattr(object: &Handle, new_attributes: Sattr3) -> SetattrArgs<'_> {
    SetattrArgs { object: fh(object), new_attributes, guard: None }
}

fn size(size: u64) -> Sattr3 {
    Sattr3 { size: Some(size), ..Sattr3::NONE }
}

#[test]
fn getattr_tells_everything_to_everybody() {
    let world = World::new();
    let file = world.client(ALICE).create(&world.root(), "f", 0o600);
    ok(world.client(ALICE).write(&file, 0, b"hello"));
    let attr = world.client(BOB).attr(&file);
    assert_eq!((attr.file_type, attr.mode, attr.nlink), (FileType::REG, 0o600, 1));
    assert_eq!((attr.uid, attr.gid, attr.size, attr.used), (10, 100, 5, 4096));
    assert_eq!((attr.rdev, attr.fsid), (SpecData3 { specdata1: 0, specdata2: 0 }, FSID));
    assert_eq!(world.client(BOB).attr(&world.root()).file_type, FileType::DIR);
}

#[test]
fn getattr_hands_the_error_of_the_store_on() {
    let world = World::new();
    let client = world.client(ALICE);
    let root = world.root();
    for (operations, error, status) in [
        (0, FsError::Busy, Status::JUKEBOX),
        (1, FsError::Io, Status::IO),
        (0, FsError::Stale, Status::STALE),
    ] {
        client.fail_after(operations, error);
        let answer = client.call(&GetattrArgs { object: fh(&root) });
        assert_eq!(failed(answer.results()).0, status);
    }
}

#[test]
fn setattr_changes_what_the_caller_owns() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let before = alice.attr(&file);
    let wcc = ok(alice.call(&setattr(&file, with_mode(0o170_640))).results());
    let seen = WccAttr { size: 0, mtime: before.mtime, ctime: before.ctime };
    assert_eq!(wcc.before, Some(seen));
    assert_eq!(wcc.after, Some(alice.attr(&file)));
    assert_eq!(alice.attr(&file).mode, 0o640, "the bits of the type are no part of the mode");

    let refused = world.client(BOB).call(&setattr(&file, with_mode(0o666)));
    let after = Some(alice.attr(&file));
    assert_eq!(failed(refused.results()), (Status::PERM, WccData { before: None, after }));
    let give = Sattr3 { uid: Some(11), ..Sattr3::NONE };
    assert_eq!(failed(alice.call(&setattr(&file, give)).results()).0, Status::PERM);
    ok(world.client(ROOT).call(&setattr(&file, give)).results());
    assert_eq!(alice.attr(&file).uid, 11);
}

#[test]
fn setattr_sets_times() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let time = NfsTime3 { seconds: 1_000_000, nseconds: 999_999_999 };
    let times = Sattr3 {
        atime: SetTime3::ToServerTime,
        mtime: SetTime3::ToClientTime(time),
        ..Sattr3::NONE
    };
    let before = alice.attr(&file);
    ok(alice.call(&setattr(&file, times)).results());
    let after = alice.attr(&file);
    assert_eq!(after.mtime, time);
    assert!(after.atime.nseconds > before.atime.nseconds);
    let nonsense = SetTime3::ToClientTime(NfsTime3 { seconds: 0, nseconds: 1_000_000_000 });
    let times = Sattr3 { mtime: nonsense, ..Sattr3::NONE };
    assert_eq!(failed(alice.call(&setattr(&file, times)).results()).0, Status::INVAL);
}

#[test]
fn setattr_of_the_size_follows_the_rule_of_write() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let file = alice.create(&world.root(), "f", 0o400);
    ok(alice.call(&setattr(&file, size(100))).results());
    assert_eq!(alice.read(&file, 0, 200), (vec![0; 100], true));
    assert_eq!(failed(bob.call(&setattr(&file, size(0))).results()).0, Status::ACCES);
    let huge = alice.call(&setattr(&file, size(1 << 63)));
    assert_eq!(failed(huge.results()).0, Status::FBIG);
    let root = world.root();
    let directory = world.client(ROOT).call(&setattr(&root, size(0)));
    assert_eq!(failed(directory.results()).0, Status::ISDIR);
}

#[test]
fn setattr_obeys_its_guard() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let guard = Some(alice.attr(&file).ctime);
    let guarded = SetattrArgs { object: fh(&file), new_attributes: with_mode(0o600), guard };
    ok(alice.call(&guarded).results());
    let (status, wcc) = failed(alice.call(&guarded).results());
    assert_eq!((status, wcc.after), (Status::NOT_SYNC, Some(alice.attr(&file))));
    let guard = Some(NfsTime3 { seconds: 0, nseconds: u32::MAX });
    let nonsense = SetattrArgs { guard, ..guarded };
    assert_eq!(failed(alice.call(&nonsense).results()).0, Status::INVAL);
}

fn access(world: &World, object: &Handle, cred: Credentials, read_only: bool) -> AccessBits {
    let client = if read_only { world.read_only(cred) } else { world.client(cred) };
    let result = client.call(&AccessArgs { object: fh(object), access: AccessBits::all() });
    let granted = ok(result.results());
    assert_eq!(granted.attributes, Some(client.attr(object)));
    granted.access
}

#[test]
fn access_maps_the_mode_of_a_file() {
    let world = World::new();
    let file = world.client(ALICE).create(&world.root(), "f", 0o751);
    let writes = AccessBits::MODIFY | AccessBits::EXTEND;
    let of = |cred, read_only| access(&world, &file, cred, read_only);
    assert_eq!(of(ALICE, false), AccessBits::READ | AccessBits::EXECUTE | writes);
    assert_eq!(of(ALICE, true), AccessBits::READ | AccessBits::EXECUTE);
    let member = Credentials::new(5, 5).with_groups(&[100]);
    assert_eq!(of(member, false), AccessBits::READ | AccessBits::EXECUTE);
    assert_eq!(of(BOB, false), AccessBits::EXECUTE);
    let closed = world.client(ALICE).create(&world.root(), "g", 0);
    assert_eq!(access(&world, &closed, ALICE, false), AccessBits::empty());
    assert_eq!(access(&world, &closed, ROOT, false), AccessBits::READ | writes);
}

#[test]
fn access_maps_the_mode_of_a_directory() {
    let world = World::new();
    let dir = world.client(ALICE).mkdir(&world.root(), "d", 0o752);
    let changes = AccessBits::MODIFY | AccessBits::EXTEND | AccessBits::DELETE;
    let lists = AccessBits::READ | AccessBits::LOOKUP;
    assert_eq!(access(&world, &dir, ALICE, false), lists | changes);
    assert_eq!(access(&world, &dir, ALICE, true), lists);
    let member = Credentials::new(5, 100);
    assert_eq!(access(&world, &dir, member, false), lists);
    assert_eq!(access(&world, &dir, BOB, false), AccessBits::empty(), "w without x is nothing");
}

#[test]
fn access_grants_nothing_that_was_not_asked() {
    let world = World::new();
    let root = world.root();
    let asked = AccessBits::READ | AccessBits::EXECUTE;
    let answer = world.client(ALICE).call(&AccessArgs { object: fh(&root), access: asked });
    assert_eq!(ok(answer.results()).access, AccessBits::READ);
}

#[test]
fn read_stops_at_the_end_of_the_file() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let data: Vec<u8> = (0..=255).cycle().take(10_001).collect();
    ok(alice.write(&file, 0, &data));
    assert_eq!(alice.read(&file, 0, 4096), (data[..4096].to_vec(), false));
    assert_eq!(alice.read(&file, 8192, 4096), (data[8192..].to_vec(), true));
    assert_eq!(alice.read(&file, 10_000, 1), (data[10_000..].to_vec(), true));
    assert_eq!(alice.read(&file, 0, 0), (vec![], false));
    assert_eq!(alice.read(&file, 10_001, 0), (vec![], true));
    assert_eq!(alice.read(&file, 20_000, 5), (vec![], true));
    for offset in [i64::MAX as u64, 1 << 63, u64::MAX] {
        assert_eq!(alice.read(&file, offset, u32::MAX), (vec![], true), "{offset}");
    }
}

#[test]
fn read_gives_at_most_the_largest_payload() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    ok(alice.call(&setattr(&file, size(5 << 20))).results());
    let (data, eof) = alice.read(&file, 0, u32::MAX);
    assert_eq!((data.len(), eof), (1 << 20, false));
}

#[test]
fn read_asks_for_the_right_to() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let file = alice.create(&world.root(), "f", 0o200);
    ok(alice.write(&file, 0, b"x"));
    assert_eq!(alice.read(&file, 0, 1).0, b"x", "the owner may, whatever the mode");
    let answer = bob.call(&ReadArgs { file: fh(&file), offset: 0, count: 1 });
    assert_eq!(failed(answer.results()), (Status::ACCES, Some(alice.attr(&file))));
    assert_eq!(answer.moved, 0);
    ok(alice.call(&setattr(&file, with_mode(0o001))).results());
    assert_eq!(bob.read(&file, 0, 1).0, b"x", "paging a program in is reading");
}

#[test]
fn data_is_in_regular_files_alone() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let what = MknodData3::Fifo(with_mode(0o666));
    let fifo = alice.call(&MknodArgs { location: at(&root, "p"), what });
    let fifo = crate::world::made(fifo.results());
    for (object, status) in [(&root, Status::ISDIR), (&fifo, Status::INVAL)] {
        let read = alice.call(&ReadArgs { file: fh(object), offset: 0, count: 1 });
        assert_eq!(failed(read.results()), (status, Some(alice.attr(object))));
        let (written, wcc) = failed(alice.write(object, 0, b"x"));
        assert_eq!((written, wcc.after), (status, Some(alice.attr(object))));
        let commit = alice.call(&CommitArgs { file: fh(object), offset: 0, count: 0 });
        assert_eq!(failed(commit.results()).0, status);
    }
}

#[test]
fn read_that_fails_in_the_store_is_a_whole_reply() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    alice.fail_after(2, FsError::Io);
    let answer = alice.call(&ReadArgs { file: fh(&file), offset: 0, count: 1 });
    assert_eq!(failed(answer.results()), (Status::IO, Some(alice.attr(&file))));
    assert_eq!(answer.moved, 0);
}

#[test]
fn write_tells_what_it_changed() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let before = alice.attr(&file);
    let args = WriteArgs {
        file: fh(&file),
        offset: 3,
        count: 5,
        stable: StableHow::DataSync,
        data: b"hello",
    };
    let answer = alice.call(&args);
    let done = ok(answer.results());
    assert_eq!((done.count, answer.moved, done.verifier), (5, 5, VERIFIER));
    assert!(done.committed as u32 >= StableHow::DataSync as u32);
    let seen = WccAttr { size: 0, mtime: before.mtime, ctime: before.ctime };
    let after = Some(alice.attr(&file));
    assert_eq!(done.file_wcc, WccData { before: Some(seen), after });
    assert_eq!(alice.read(&file, 0, 100), (b"\0\0\0hello".to_vec(), true));
}

#[test]
fn write_is_refused_without_touching_the_file() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let file = alice.create(&world.root(), "f", 0o444);
    ok(alice.write(&file, 0, b"old"));
    let attr = alice.attr(&file);
    let args = |count, offset| WriteArgs {
        file: fh(&file),
        offset,
        count,
        stable: StableHow::Unstable,
        data: b"new",
    };
    for (client, args, status) in [
        (bob, args(3, 0), Status::ACCES),
        (world.read_only(ALICE), args(3, 0), Status::ROFS),
        (alice, args(2, 0), Status::INVAL),
        (alice, args(4, 0), Status::INVAL),
        (alice, args(3, i64::MAX as u64 - 2), Status::FBIG),
        (alice, args(3, u64::MAX - 1), Status::FBIG),
    ] {
        let answer = client.call(&args);
        let wcc = WccData { before: None, after: Some(attr) };
        assert_eq!(failed(answer.results()), (status, wcc));
        assert_eq!(answer.moved, 0);
    }
    assert_eq!(alice.read(&file, 0, 100).0, b"old");
}

#[test]
fn write_of_nothing_succeeds_where_writing_would() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let done = ok(alice.write(&file, 1 << 40, b""));
    assert_eq!((done.count, alice.attr(&file).size), (0, 0));
    assert_eq!(failed(world.client(BOB).write(&file, 0, b"")).0, Status::ACCES);
}

#[test]
fn write_takes_at_most_the_largest_payload() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    let done = ok(alice.write(&file, 0, &vec![9; (1 << 20) + 100]));
    assert_eq!((done.count, alice.attr(&file).size), (1 << 20, 1 << 20));
}

#[test]
fn write_hands_the_error_of_the_store_on() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    for (error, status) in [
        (FsError::NoSpace, Status::NOSPC),
        (FsError::QuotaExceeded, Status::DQUOT),
        (FsError::Busy, Status::JUKEBOX),
        (FsError::Io, Status::IO),
    ] {
        alice.fail_after(2, error);
        let (got, wcc) = failed(alice.write(&file, 0, b"x"));
        assert_eq!((got, wcc.after), (status, Some(alice.attr(&file))));
    }
}

#[test]
fn commit_answers_the_verifier_of_the_writes() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o600);
    let written = ok(alice.write(&file, 0, b"x"));
    let args = CommitArgs { file: fh(&file), offset: 0, count: 0 };
    let done = ok(alice.call(&args).results());
    assert_eq!(done.verifier, written.verifier);
    assert_eq!(done.file_wcc.after, Some(alice.attr(&file)));
    // Data that was written while it was allowed can be made safe when writing is no longer
    // allowed.
    ok(world.read_only(BOB).call(&args).results());
    alice.fail_after(2, FsError::Io);
    let (status, wcc) = failed(alice.call(&args).results());
    assert_eq!((status, wcc.after), (Status::IO, Some(alice.attr(&file))));
}

#[test]
fn a_squashed_caller_has_the_rights_of_nobody() {
    let world = World::new();
    let nobody = Credentials::new(65_534, 65_534);
    let file = world.client(ROOT).create(&world.root(), "f", 0o640);
    let read =
        world.client(nobody.clone()).call(&ReadArgs { file: fh(&file), offset: 0, count: 1 });
    assert_eq!(failed(read.results()).0, Status::ACCES);
    let how = CreateHow3::Guarded(Sattr3 { uid: Some(0), gid: Some(0), ..with_mode(0o600) });
    let root = world.root();
    let made = world.client(nobody).call(&CreateArgs { location: at(&root, "g"), how });
    let attr = ok(made.results()).attributes.unwrap();
    assert_eq!((attr.uid, attr.gid), (65_534, 65_534), "ids it may not give are left out");
}
