//! Renames over one of several names of a file: the others stay.

use crate::common::{Bed, Object, ROOT, block_on, everywhere};
use weir_core::store::MakeKind;
use weir_core::{FsResult, Name, Store};

fn name(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

fn rename(bed: &Bed, from: (&Object, &str), to: (&Object, &str)) -> FsResult<()> {
    block_on(bed.store.rename(from.0, name(from.1), to.0, name(to.1), &ROOT)).map(drop)
}

fn link(bed: &Bed, file: &Object, (dir, to): (&Object, &str)) {
    let _attr = block_on(bed.store.link(file, dir, name(to), &ROOT)).unwrap();
}

/// The object of this name is `file`, which has this many names.
fn is(bed: &Bed, (dir, name): (&Object, &str), file: &Object, names: u32) {
    let found = bed.lookup(dir, name.as_bytes());
    assert_eq!(found.map(|found| found.key()), Ok(file.key()), "{name}");
    assert_eq!(bed.attr(file).nlink, names, "{name}");
}

/// Two directories.
fn directories(bed: &Bed, number: u32) -> [Object; 2] {
    ["d", "e"].map(|name| {
        let name = format!("{name}{number}");
        bed.make(&bed.root(), name.as_bytes(), &MakeKind::Directory).unwrap()
    })
}

#[test]
fn the_other_names_of_a_replaced_file_stay() {
    everywhere(|bed| {
        for number in 0..20 {
            let [d, e] = directories(bed, number);
            let file = bed.create(&d, b"a", 0o644, &ROOT).unwrap();
            link(bed, &file, (&d, "b"));
            link(bed, &file, (&e, "far"));
            let new = bed.create(&e, b"new", 0o644, &ROOT).unwrap();
            bed.write(&file, 0, b"old").unwrap();
            rename(bed, (&e, "new"), (&d, "b")).unwrap();
            // On record, whatever the rename itself has waited for.
            for dir in [&d, &e] {
                block_on(bed.store.stabilize(dir)).unwrap();
            }
            is(bed, (&d, "b"), &new, 1);
            is(bed, (&d, "a"), &file, 2);
            is(bed, (&e, "far"), &file, 2);
            assert!(bed.lookup(&e, b"new").is_err());
            // And they can be used.
            rename(bed, (&d, "a"), (&d, "again")).unwrap();
            bed.remove(&e, b"far").unwrap();
            is(bed, (&d, "again"), &file, 1);
            assert_eq!(bed.read(&file, 0, 9).unwrap().0, b"old");
        }
    });
}

#[test]
fn a_chain_of_such_renames_finds_each_name() {
    everywhere(|bed| {
        // By the mount that is at the side of the first.
        let beside = bed.reopen();
        for number in 0..20 {
            let [d, e] = directories(bed, number);
            let first = bed.create(&d, b"b", 0o644, &ROOT).unwrap();
            link(bed, &first, (&d, "first"));
            let second = bed.create(&e, b"c", 0o644, &ROOT).unwrap();
            link(bed, &second, (&e, "second"));
            rename(bed, (&e, "c"), (&d, "b")).unwrap();
            is(bed, (&d, "b"), &second, 2);
            // The session of these renames knows the directory, and may answer from its cache.
            let seen = block_on(beside.resolve(&d.key())).unwrap();
            block_on(beside.lookup(&seen, name("b"))).unwrap();
            drop(seen);
            // Replaces the other name of what has just replaced something.
            let third = bed.create(&e, b"f", 0o644, &ROOT).unwrap();
            rename(bed, (&e, "f"), (&e, "second")).unwrap();
            is(bed, (&e, "second"), &third, 1);
            is(bed, (&d, "b"), &second, 1);
            // The name that the session of the last rename has lost.
            let fourth = bed.create(&e, b"y", 0o644, &ROOT).unwrap();
            link(bed, &fourth, (&e, "z"));
            rename(bed, (&d, "b"), (&e, "z")).unwrap();
            is(bed, (&e, "z"), &second, 1);
            is(bed, (&e, "y"), &fourth, 1);
            is(bed, (&d, "first"), &first, 1);
            assert!(bed.lookup(&d, b"b").is_err());
        }
    });
}
