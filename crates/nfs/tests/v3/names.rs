//! LOOKUP, READLINK, and everything that gives, moves and takes away names.

use crate::world::{ALICE, BOB, Client, Handle, ROOT, World, at, failed, made, ok, with_mode};
use weir_core::FsError;
use weir_core::testing::MemStore;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DeviceData3, DirOpArgs3, FileHandle3, FileType, LinkArgs, LookupArgs,
    MkdirArgs, MknodArgs, MknodData3, ReadlinkArgs, RemoveArgs, RenameArgs, RmdirArgs, Sattr3,
    SpecData3, Status, SymlinkArgs, WccAttr, WccData,
};

fn create<'a>(dir: &'a Handle, name: &'a str) -> CreateArgs<'a> {
    CreateArgs { location: at(dir, name), how: CreateHow3::Guarded(Sattr3::NONE) }
}

fn symlink<'a>(dir: &'a Handle, name: &'a str, data: &'a [u8]) -> SymlinkArgs<'a> {
    SymlinkArgs { location: at(dir, name), attributes: Sattr3::NONE, data }
}

fn rename<'a>(from: DirOpArgs3<'a>, to: DirOpArgs3<'a>) -> RenameArgs<'a> {
    RenameArgs { from, to }
}

fn status_of_create(client: &Client<'_>, dir: &Handle, name: &str) -> Status {
    client.call(&create(dir, name)).status
}

#[test]
fn lookup_finds_names_and_dots() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let dir = alice.mkdir(&root, "d", 0o755);
    let file = alice.create(&dir, "f", 0o644);
    let answer = alice.call(&LookupArgs { what: at(&dir, "f") });
    let found = ok(answer.results());
    assert_eq!(found.object.0, file);
    assert_eq!(found.attributes, Some(alice.attr(&file)));
    assert_eq!(found.dir_attributes, Some(alice.attr(&dir)));
    assert_eq!(alice.lookup(&dir, "."), Ok(dir.clone()));
    assert_eq!(alice.lookup(&dir, ".."), Ok(root.clone()));
    assert_eq!(alice.lookup(&root, ".."), Ok(root), "the top is its own parent");
}

#[test]
fn lookup_says_why_not() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let dir = alice.mkdir(&world.root(), "d", 0o744);
    let file = alice.create(&dir, "f", 0o644);
    let attr = Some(alice.attr(&dir));
    let long = "x".repeat(256);
    for (client, name, status) in [
        (alice, "g", Status::NOENT),
        (alice, "", Status::ACCES),
        (alice, "a/b", Status::INVAL),
        (alice, "a\0b", Status::INVAL),
        (alice, &long, Status::NAMETOOLONG),
        (bob, "f", Status::ACCES),
        (bob, "g", Status::ACCES),
    ] {
        let answer = client.call(&LookupArgs { what: at(&dir, name) });
        assert_eq!(failed(answer.results()), (status, attr), "{name:?}");
    }
    let answer = alice.call(&LookupArgs { what: at(&file, "x") });
    assert_eq!(failed(answer.results()), (Status::NOTDIR, Some(alice.attr(&file))));
}

#[test]
fn names_are_any_bytes() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let name: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
    let location = DirOpArgs3 { dir: FileHandle3(&root), name: &name };
    let how = CreateHow3::Guarded(Sattr3::NONE);
    let file = made(alice.call(&CreateArgs { location, how }).results());
    let answer = alice.call(&LookupArgs { what: location });
    assert_eq!(ok(answer.results()).object.0, file);
}

#[test]
fn create_gives_the_object_and_the_change_of_the_directory() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o755);
    let before = alice.attr(&dir);
    let how = CreateHow3::Guarded(with_mode(0o640));
    let answer = alice.call(&CreateArgs { location: at(&dir, "f"), how });
    let new = ok(answer.results());
    let file = new.object.unwrap().0.to_vec();
    assert_eq!(new.attributes, Some(alice.attr(&file)));
    let attr = new.attributes.unwrap();
    assert_eq!((attr.mode, attr.uid, attr.gid, attr.size), (0o640, 10, 100, 0));
    let seen = WccAttr { size: before.size, mtime: before.mtime, ctime: before.ctime };
    let after = Some(alice.attr(&dir));
    assert_eq!(new.dir_wcc, WccData { before: Some(seen), after });
    let (status, wcc) = failed(alice.call(&create(&dir, "f")).results());
    assert_eq!((status, wcc), (Status::EXIST, WccData { before: None, after }));
}

#[test]
fn create_unchecked_opens_and_exclusive_recognises_itself() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let of = |name, how| alice.call(&CreateArgs { location: at(&root, name), how });
    let file = made(of("f", CreateHow3::Unchecked(with_mode(0o644))).results());
    ok(alice.write(&file, 0, b"data"));
    let again = made(of("f", CreateHow3::Unchecked(Sattr3::NONE)).results());
    assert_eq!((&again, alice.attr(&file).size), (&file, 4));
    let truncate = Sattr3 { size: Some(0), ..Sattr3::NONE };
    made(of("f", CreateHow3::Unchecked(truncate)).results());
    assert_eq!(alice.attr(&file).size, 0);
    let first = of("x", CreateHow3::Exclusive([1; 8]));
    let first = made(first.results());
    assert_eq!(made(of("x", CreateHow3::Exclusive([1; 8])).results()), first);
    assert_eq!(of("x", CreateHow3::Exclusive([2; 8])).status, Status::EXIST);
    assert_eq!(of("f", CreateHow3::Exclusive([1; 8])).status, Status::EXIST);
}

#[test]
fn making_is_refused_alike_whatever_is_made() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let dir = alice.mkdir(&world.root(), "d", 0o755);
    let file = alice.create(&dir, "f", 0o644);
    let after = Some(alice.attr(&dir));
    let long = "x".repeat(256);
    let read_only = world.read_only(ALICE);
    for (client, name, status) in [
        (alice, "f", Status::EXIST),
        (alice, ".", Status::EXIST),
        (alice, "..", Status::EXIST),
        (alice, "", Status::ACCES),
        (alice, "a/b", Status::INVAL),
        (alice, &long, Status::NAMETOOLONG),
        (bob, "g", Status::ACCES),
        (read_only, "g", Status::ROFS),
    ] {
        let fifo = MknodArgs { location: at(&dir, name), what: MknodData3::Fifo(Sattr3::NONE) };
        let mkdir = MkdirArgs { location: at(&dir, name), attributes: Sattr3::NONE };
        let expected = (status, WccData { before: None, after });
        assert_eq!(failed(client.call(&create(&dir, name)).results()), expected, "{name:?}");
        assert_eq!(failed(client.call(&mkdir).results()), expected, "{name:?}");
        assert_eq!(failed(client.call(&symlink(&dir, name, b"to")).results()), expected);
        assert_eq!(failed(client.call(&fifo).results()), expected, "{name:?}");
    }
    assert_eq!(status_of_create(&alice, &file, "x"), Status::NOTDIR);
    for (error, status) in [(FsError::NoSpace, Status::NOSPC), (FsError::Busy, Status::JUKEBOX)] {
        alice.fail_after(1, error);
        assert_eq!(status_of_create(&alice, &dir, "new"), status);
    }
}

#[test]
fn mkdir_makes_directories_and_ignores_a_size() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let links = alice.attr(&root).nlink;
    let attributes = Sattr3 { size: Some(0), ..with_mode(0o1777) };
    let dir = made(alice.call(&MkdirArgs { location: at(&root, "d"), attributes }).results());
    let attr = alice.attr(&dir);
    assert_eq!((attr.file_type, attr.mode, attr.nlink), (FileType::DIR, 0o1777, 2));
    assert_eq!(alice.attr(&root).nlink, links + 1);
}

#[test]
fn symlinks_keep_their_target() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let link = made(alice.call(&symlink(&root, "l", b"../to//\xff")).results());
    assert_eq!(alice.attr(&link).file_type, FileType::LNK);
    let args = ReadlinkArgs { symlink: FileHandle3(&link) };
    let answer = alice.call(&args);
    let target = ok(answer.results());
    assert_eq!((target.data, target.attributes), (&b"../to//\xff"[..], Some(alice.attr(&link))));
    let longest = vec![b'x'; 4095];
    made(alice.call(&symlink(&root, "m", &longest)).results());
    let too_long = vec![b'x'; 4096];
    for (target, status) in
        [(&too_long[..], Status::NAMETOOLONG), (b"", Status::INVAL), (b"a\0b", Status::INVAL)]
    {
        assert_eq!(alice.call(&symlink(&root, "n", target)).status, status);
    }
    let answer = alice.call(&ReadlinkArgs { symlink: FileHandle3(&root) });
    assert_eq!(failed(answer.results()), (Status::INVAL, Some(alice.attr(&root))));
}

#[test]
fn mknod_makes_special_files() {
    let world = World::new();
    let root = world.root();
    let spec = SpecData3 { specdata1: 8, specdata2: 1 };
    let node = DeviceData3 { attributes: with_mode(0o600), spec };
    let of = |client: Client<'_>, name, what| {
        client.call(&MknodArgs { location: at(&root, name), what })
    };
    let superuser = world.client(ROOT);
    for (name, what, file_type) in [
        ("c", MknodData3::CharDevice(node), FileType::CHR),
        ("b", MknodData3::BlockDevice(node), FileType::BLK),
        ("s", MknodData3::Socket(with_mode(0o600)), FileType::SOCK),
        ("p", MknodData3::Fifo(with_mode(0o600)), FileType::FIFO),
    ] {
        let object = made(of(superuser, name, what).results());
        let attr = superuser.attr(&object);
        assert_eq!((attr.file_type, attr.mode), (file_type, 0o600));
        let device = matches!(file_type, FileType::CHR | FileType::BLK);
        assert_eq!(attr.rdev == spec, device);
    }
    let denied = of(world.client(ALICE), "d", MknodData3::CharDevice(node));
    assert_eq!(denied.status, Status::PERM);
    for file_type in [FileType::REG, FileType::DIR, FileType::LNK, FileType(99)] {
        let refused = of(superuser, "r", MknodData3::Other(file_type));
        assert_eq!(refused.status, Status::BADTYPE);
    }
}

#[test]
fn remove_and_rmdir_each_take_their_sort() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let dir = alice.mkdir(&world.root(), "d", 0o755);
    let file = alice.create(&dir, "f", 0o644);
    let sub = alice.mkdir(&dir, "s", 0o755);
    alice.create(&sub, "inner", 0o644);
    let before = alice.attr(&dir);
    let after = Some(before);
    let read_only = world.read_only(ALICE);
    for (client, name, remove, rmdir) in [
        (alice, "x", Status::NOENT, Status::NOENT),
        (alice, "s", Status::ISDIR, Status::NOTEMPTY),
        (alice, ".", Status::ISDIR, Status::INVAL),
        (alice, "..", Status::ISDIR, Status::EXIST),
        (alice, "", Status::ACCES, Status::ACCES),
        (bob, "f", Status::ACCES, Status::ACCES),
        (read_only, "f", Status::ROFS, Status::ROFS),
    ] {
        let wcc = WccData { before: None, after };
        let answer = client.call(&RemoveArgs { object: at(&dir, name) });
        assert_eq!(failed(answer.results()), (remove, wcc), "{name:?}");
        let answer = client.call(&RmdirArgs { object: at(&dir, name) });
        assert_eq!(failed(answer.results()), (rmdir, wcc), "{name:?}");
    }
    assert_eq!(alice.call(&RmdirArgs { object: at(&dir, "f") }).status, Status::NOTDIR);
    assert_eq!(alice.call(&RemoveArgs { object: at(&file, "x") }).status, Status::NOTDIR);

    let wcc = ok(alice.call(&RemoveArgs { object: at(&dir, "f") }).results());
    assert_eq!(wcc.before.unwrap().mtime, before.mtime);
    assert_eq!(wcc.after, Some(alice.attr(&dir)));
    assert_eq!(alice.lookup(&dir, "f"), Err(Status::NOENT));
    ok(alice.call(&RemoveArgs { object: at(&sub, "inner") }).results());
    ok(alice.call(&RmdirArgs { object: at(&dir, "s") }).results());
    assert_eq!(alice.lookup(&dir, "s"), Err(Status::NOENT));
    let stale = alice.call(&CreateArgs { location: at(&sub, "x"), how: create(&sub, "x").how });
    assert_eq!(failed(stale.results()), (Status::STALE, WccData::NONE));
}

#[test]
fn rename_tells_both_changes() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let (a, b) = (alice.mkdir(&root, "a", 0o755), alice.mkdir(&root, "b", 0o755));
    let file = alice.create(&a, "f", 0o644);
    alice.create(&b, "g", 0o644);
    let wcc = ok(alice.call(&rename(at(&a, "f"), at(&b, "g"))).results());
    assert_eq!(wcc.from_dir_wcc.after, Some(alice.attr(&a)));
    assert_eq!(wcc.to_dir_wcc.after, Some(alice.attr(&b)));
    assert!(wcc.from_dir_wcc.before.is_some() && wcc.to_dir_wcc.before.is_some());
    assert_eq!(alice.lookup(&b, "g"), Ok(file));
    assert_eq!(alice.lookup(&a, "f"), Err(Status::NOENT));
}

#[test]
fn rename_says_why_not() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let root = world.root();
    let (a, b) = (alice.mkdir(&root, "a", 0o755), alice.mkdir(&root, "b", 0o755));
    let file = alice.create(&a, "f", 0o644);
    let sub = alice.mkdir(&a, "s", 0o755);
    alice.create(&b, "full", 0o644);
    let read_only = world.read_only(ALICE);
    for (client, from, to, status) in [
        (alice, at(&a, "x"), at(&b, "y"), Status::NOENT),
        (alice, at(&a, "s"), at(&sub, "y"), Status::INVAL),
        (alice, at(&a, "f"), at(&a, "s"), Status::ISDIR),
        (alice, at(&a, "s"), at(&a, "f"), Status::NOTDIR),
        (alice, at(&a, "s"), at(&root, "b"), Status::NOTEMPTY),
        (alice, at(&a, "."), at(&b, "y"), Status::INVAL),
        (alice, at(&a, "f"), at(&b, ".."), Status::INVAL),
        (alice, at(&a, "f"), at(&b, ""), Status::ACCES),
        (alice, at(&a, "f"), at(&file, "y"), Status::NOTDIR),
        (bob, at(&a, "f"), at(&b, "y"), Status::ACCES),
        (read_only, at(&a, "f"), at(&b, "y"), Status::ROFS),
    ] {
        let (got, wcc) = failed(client.call(&rename(from, to)).results());
        assert_eq!(got, status, "{from:?} to {to:?}");
        assert!(wcc.from_dir_wcc.after.is_some() && wcc.to_dir_wcc.after.is_some());
    }
}

#[test]
fn link_adds_a_name() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let root = world.root();
    let dir = alice.mkdir(&root, "d", 0o755);
    let file = alice.create(&root, "f", 0o644);
    let args = |name| LinkArgs { file: FileHandle3(&file), link: at(&dir, name) };
    let linked = ok(alice.call(&args("g")).results());
    assert_eq!(linked.file_attributes, Some(alice.attr(&file)));
    assert_eq!(linked.link_dir_wcc.after, Some(alice.attr(&dir)));
    assert_eq!((alice.attr(&file).nlink, alice.lookup(&dir, "g")), (2, Ok(file.clone())));
    let read_only = world.read_only(ALICE);
    for (client, name, status) in [
        (alice, "g", Status::EXIST),
        (alice, "..", Status::EXIST),
        (alice, "a/b", Status::INVAL),
        (bob, "h", Status::ACCES),
        (read_only, "h", Status::ROFS),
    ] {
        let (got, with) = failed(client.call(&args(name)).results());
        assert_eq!(got, status, "{name:?}");
        assert_eq!(with.file_attributes, Some(alice.attr(&file)));
        assert_eq!(with.link_dir_wcc.after, Some(alice.attr(&dir)));
    }
    let directory = LinkArgs { file: FileHandle3(&dir), link: at(&root, "e") };
    assert_eq!(alice.call(&directory).status, Status::ISDIR);
    alice.fail_after(2, FsError::TooManyLinks);
    assert_eq!(alice.call(&args("many")).status, Status::MLINK);
}

#[test]
fn names_stay_within_their_volume() {
    let (world, other) = (World::new(), World::of(2, MemStore::new()));
    let alice = world.client(ALICE);
    let (root, foreign) = (world.root(), other.root());
    let file = alice.create(&root, "f", 0o644);
    let mut forged = foreign.clone();
    forged[9] ^= 1;
    for (second, status) in
        [(&foreign, Status::XDEV), (&forged, Status::BADHANDLE), (&vec![], Status::BADHANDLE)]
    {
        let answer = alice.call(&rename(at(&root, "f"), at(second, "g")));
        let (got, wcc) = failed(answer.results());
        assert_eq!((got, wcc.from_dir_wcc.after), (status, Some(alice.attr(&root))));
        assert_eq!(wcc.to_dir_wcc, WccData::NONE);
        let answer = alice.call(&LinkArgs { file: FileHandle3(&file), link: at(second, "g") });
        let (got, with) = failed(answer.results());
        assert_eq!((got, with.file_attributes), (status, Some(alice.attr(&file))));
    }
    assert_eq!(alice.lookup(&root, "f"), Ok(file));
}
