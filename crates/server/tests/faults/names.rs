//! Operations on names over a disk that fails: each is tried again and again with the first, the
//! second, … of its system calls failing, until it goes through.

use crate::world::{Client, World, at};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, FileHandle3, LinkArgs, MkdirArgs, MknodArgs, MknodData3, RemoveArgs,
    RenameArgs, RmdirArgs, Sattr3, SetTime3, SetattrArgs, StableHow, Status, SymlinkArgs,
};
use weir_store::testing::{Fault, Kind, Rule, When};

/// All that changes or opens anything; what a failed sync means is said in `syncs`.
const KINDS: [Kind; 8] = [
    Kind::Write,
    Kind::Resize,
    Kind::Open,
    Kind::Make,
    Kind::Link,
    Kind::Rename,
    Kind::Remove,
    Kind::Change,
];
/// No operation takes this many of those.
const CALLS_MAX: u64 = 40;

const ERRORS: [(Errno, Status); 3] =
    [(Errno::IO, Status::IO), (Errno::NOSPC, Status::NOSPC), (Errno::DQUOT, Status::DQUOT)];

/// A tree as a client sees it.
type Tree = BTreeMap<PathBuf, (u64, u32, u64, u64, u32)>;

fn tree(at: &Path) -> Tree {
    let mut found = Tree::new();
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let data = std::fs::symlink_metadata(&path).unwrap();
        if data.is_dir() {
            found.extend(tree(&path));
        }
        let size = if data.is_dir() { 0 } else { data.size() };
        found.insert(path, (data.ino(), data.mode(), data.nlink(), size, data.uid()));
    }
    found
}

/// An operation, and what must be there before it.
struct Case {
    name: &'static str,
    prepare: fn(&mut Client, &[u8]),
    act: fn(&mut Client, &[u8]) -> Status,
}

const SET: Sattr3 = Sattr3 { mode: Some(0o6750), uid: Some(7), gid: Some(8), ..Sattr3::NONE };

fn nothing(_: &mut Client, _: &[u8]) {}

fn create(client: &mut Client, dir: &[u8], how: CreateHow3) -> Status {
    client.ask(&CreateArgs { location: at(dir, "new"), how }, |result| result.status())
}

fn some_file(client: &mut Client, dir: &[u8]) {
    let file = client.create(dir, "old").unwrap();
    client.write(&file, 0, &[1; 20_000], StableHow::Unstable).unwrap();
}

fn two_files(client: &mut Client, dir: &[u8]) {
    some_file(client, dir);
    let file = client.create(dir, "new").unwrap();
    client.write(&file, 0, &[1; 30_000], StableHow::Unstable).unwrap();
}

fn some_directory(client: &mut Client, dir: &[u8]) {
    let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
    let args = MkdirArgs { location: at(dir, "old"), attributes };
    assert_eq!(client.ask(&args, |result| result.status()), Status::OK);
}

fn rename(client: &mut Client, dir: &[u8]) -> Status {
    let args = RenameArgs { from: at(dir, "old"), to: at(dir, "new") };
    client.ask(&args, |result| result.status())
}

const CASES: [Case; 15] = [
    Case {
        name: "create",
        prepare: nothing,
        act: |client, dir| {
            create(client, dir, CreateHow3::Guarded(Sattr3 { mode: Some(0o600), ..Sattr3::NONE }))
        },
    },
    Case {
        name: "create with attributes",
        prepare: nothing,
        act: |client, dir| {
            create(client, dir, CreateHow3::Guarded(Sattr3 { size: Some(99_999), ..SET }))
        },
    },
    Case {
        name: "create exclusively",
        prepare: nothing,
        act: |client, dir| create(client, dir, CreateHow3::Exclusive([3; 8])),
    },
    Case {
        name: "mkdir",
        prepare: nothing,
        act: |client, dir| {
            let args = MkdirArgs { location: at(dir, "new"), attributes: SET };
            client.ask(&args, |result| result.status())
        },
    },
    Case {
        name: "symlink",
        prepare: nothing,
        act: |client, dir| {
            let args = SymlinkArgs { location: at(dir, "new"), attributes: SET, data: b"target" };
            client.ask(&args, |result| result.status())
        },
    },
    Case {
        name: "mknod",
        prepare: nothing,
        act: |client, dir| {
            let args = MknodArgs { location: at(dir, "new"), what: MknodData3::Fifo(SET) };
            client.ask(&args, |result| result.status())
        },
    },
    Case {
        name: "link",
        prepare: some_file,
        act: |client, dir| {
            let Ok(file) = client.lookup(dir, "old") else { return Status::IO };
            let args = LinkArgs { file: FileHandle3(&file), link: at(dir, "new") };
            client.ask(&args, |result| result.status())
        },
    },
    Case { name: "rename", prepare: some_file, act: rename },
    Case { name: "rename over a file", prepare: two_files, act: rename },
    Case { name: "rename a directory", prepare: some_directory, act: rename },
    Case {
        name: "remove",
        prepare: some_file,
        act: |client, dir| {
            client.ask(&RemoveArgs { object: at(dir, "old") }, |result| result.status())
        },
    },
    Case {
        name: "rmdir",
        prepare: some_directory,
        act: |client, dir| {
            client.ask(&RmdirArgs { object: at(dir, "old") }, |result| result.status())
        },
    },
    Case {
        name: "create over a file, which cuts it",
        prepare: two_files,
        act: |client, dir| {
            create(client, dir, CreateHow3::Unchecked(Sattr3 { size: Some(0), ..Sattr3::NONE }))
        },
    },
    Case { name: "cut", prepare: some_file, act: |client, dir| set(client, dir, 100) },
    Case { name: "grow", prepare: some_file, act: |client, dir| set(client, dir, 1 << 20) },
];

fn set(client: &mut Client, dir: &[u8], size: u64) -> Status {
    let Ok(file) = client.lookup(dir, "old") else { return Status::IO };
    let new_attributes = Sattr3 { size: Some(size), ..Sattr3::NONE };
    let args = SetattrArgs { object: FileHandle3(&file), new_attributes, guard: None };
    client.ask(&args, |result| result.status())
}

#[test]
fn whichever_system_call_fails_an_operation_is_done_whole_or_not_at_all() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let mut number = 0;
    for Case { name, prepare, act } in CASES {
        for (errno, expected) in ERRORS {
            let mut failures = 0;
            for nth in 1..=CALLS_MAX {
                number += 1;
                let place = format!("case-{number}");
                let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
                let args = MkdirArgs { location: at(&one, &place), attributes };
                assert_eq!(client.ask(&args, |result| result.status()), Status::OK);
                let dir = client.lookup(&one, &place).unwrap();
                prepare(&mut client, &dir);
                let path = world.root("one").join(&place);
                let (before, used) = (tree(&path), client.used(&one));
                let rule = Rule::new(&KINDS, world.root("one"), Fault::Fail(errno));
                let rule = world.kernel.add(rule.when(When::Nth(nth)));
                let status = act(&mut client, &dir);
                let hit = world.kernel.hits(rule) > 0;
                world.kernel.lift(rule);
                let what = format!("{name}: call {nth} fails with {errno}");
                if !hit {
                    assert_eq!(status, Status::OK, "{what}");
                    assert_ne!(tree(&path), before, "{what}");
                    break;
                }
                assert!(nth < CALLS_MAX, "{what}");
                if status != Status::OK {
                    failures += 1;
                    assert_eq!(status, expected, "{what}");
                    assert_eq!(tree(&path), before, "{what}");
                    assert_eq!(client.used(&one), used, "{what}");
                    // The cached state agrees.
                    for name in ["old", "new"] {
                        let there = client.lookup(&dir, name).is_ok();
                        assert_eq!(there, before.contains_key(&path.join(name)), "{what}");
                    }
                    assert_eq!(act(&mut client, &dir), Status::OK, "{what}, and then not");
                }
            }
            assert!(failures > 0, "{name} goes through whatever fails?");
        }
    }
    world.stop();
}

#[test]
fn a_file_that_can_not_be_opened_for_a_moment_is_not_read_only_from_then_on() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let path = world.root("one").join("file");
    std::fs::write(&path, [1; 100]).unwrap();
    // The first opens it by name, the second for use.
    for nth in 1..=2 {
        let rule = Rule::new(&[Kind::Open], world.root("one"), Fault::Fail(Errno::IO));
        let rule = world.kernel.add(rule.when(When::Nth(nth)));
        let status = client.lookup(&one, "file").err();
        assert_eq!(world.kernel.hits(rule), 1);
        world.kernel.lift(rule);
        assert_eq!(status, Some(Status::IO), "call {nth}");
    }
    let file = client.lookup(&one, "file").unwrap();
    client.write(&file, 0, &[2; 100], StableHow::FileSync).unwrap();
    world.stop();
}

#[test]
fn times_that_can_not_be_set_are_told_of() {
    let world = World::start();
    let mut client = world.connect();
    let one = client.mount("/one");
    let file = client.create(&one, "file").unwrap();
    let path = world.root("one").join("file");
    for (errno, expected) in ERRORS {
        let rule = world.kernel.add(Rule::new(&[Kind::Change], &path, Fault::Fail(errno)));
        for set in [SET, Sattr3 { mtime: SetTime3::ToServerTime, ..Sattr3::NONE }] {
            let before = client.attributes(&file);
            let args = SetattrArgs { object: FileHandle3(&file), new_attributes: set, guard: None };
            assert_eq!(client.ask(&args, |result| result.status()), expected);
            assert_eq!(client.attributes(&file), before);
        }
        world.kernel.lift(rule);
    }
    world.stop();
}
