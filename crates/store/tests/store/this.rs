//! Removing and renaming one object, whatever happens to its name meanwhile. The tests of CephFS
//! (`tests/ceph`) run these too.

use crate::common::{Bed, Object, ROOT, block_on, everywhere};
use std::sync::Barrier;
use weir_core::store::{MakeKind, Replace};
use weir_core::{Credentials, FsError, FsResult, Name, SetAttr, Store};

const OWNER: Credentials = Credentials::new(1001, 2001);
const OTHER: Credentials = Credentials::new(1002, 2002);

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn remove(bed: &Bed, dir: &Object, at: &str, this: &Object, cred: &Credentials) -> FsResult<()> {
    block_on(bed.store.remove_this(dir, name(at), this, cred)).map(drop)
}

pub(crate) fn rename(
    bed: &Bed,
    this: &Object,
    from: (&Object, &str),
    to: (&Object, &str),
    replace: Replace,
) -> FsResult<()> {
    let (from, to) = ((from.0, name(from.1)), (to.0, name(to.1)));
    block_on(bed.store.rename_this(this, from, to, replace, &ROOT)).map(drop)
}

pub(crate) fn leads(bed: &Bed, dir: &Object, at: &str) -> FsResult<u64> {
    bed.lookup(dir, at.as_bytes()).map(|object| bed.attr(&object).fileid)
}

#[test]
fn a_newer_namesake_stays() {
    everywhere(|bed| {
        let root = bed.root();
        let old = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
        bed.remove(&root, b"f").unwrap();
        assert_eq!(remove(bed, &root, "f", &old, &ROOT), Err(FsError::NotFound));
        let new = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
        let to = (&root, "g");
        for this in [&old, &root] {
            assert_eq!(remove(bed, &root, "f", this, &ROOT), Err(FsError::NotFound));
            let renamed = rename(bed, this, (&root, "f"), to, Replace::Yes);
            assert_eq!(renamed, Err(FsError::NotFound));
        }
        assert_eq!(leads(bed, &root, "f"), Ok(bed.attr(&new).fileid));
        block_on(bed.store.link(&new, &root, name("g"), &ROOT)).unwrap();
        remove(bed, &root, "f", &new, &ROOT).unwrap();
        assert_eq!(bed.attr(&new).nlink, 1);
        remove(bed, &root, "g", &new, &ROOT).unwrap();
        let resolved = block_on(bed.store.resolve(&bed.store.key(&new)));
        assert_eq!(resolved.err(), Some(FsError::Stale));
    });
}

#[test]
fn directories_and_special_names_are_removed_as_by_their_own_calls() {
    everywhere(|bed| {
        let root = bed.root();
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        let file = bed.create(&dir, b"f", 0o600, &ROOT).unwrap();
        assert_eq!(remove(bed, &root, "d", &dir, &ROOT), Err(FsError::NotEmpty));
        for at in [".", ".."] {
            assert_eq!(remove(bed, &dir, at, &dir, &ROOT), Err(FsError::Invalid));
        }
        assert_eq!(remove(bed, &file, "f", &file, &ROOT), Err(FsError::NotDirectory));
        remove(bed, &dir, "f", &file, &ROOT).unwrap();
        remove(bed, &root, "d", &dir, &ROOT).unwrap();
        assert_eq!(remove(bed, &dir, "f", &file, &ROOT), Err(FsError::Stale));
    });
}

#[test]
fn who_has_decided_passes_for_root_and_others_are_decided_about() {
    everywhere(|bed| {
        let root = bed.root();
        let sticky = SetAttr { mode: Some(0o1777), ..SetAttr::default() };
        bed.set(&root, &sticky, &ROOT).unwrap();
        let file = bed.create(&root, b"f", 0o600, &OWNER).unwrap();
        assert_eq!(remove(bed, &root, "f", &file, &OTHER), Err(FsError::NotPermitted));
        let refused = block_on(bed.store.rename_this(
            &file,
            (&root, name("f")),
            (&root, name("g")),
            Replace::No,
            &OTHER,
        ));
        assert_eq!(refused.err(), Some(FsError::NotPermitted));
        rename(bed, &file, (&root, "f"), (&root, "g"), Replace::No).unwrap();
        // Root changes attributes of others and leaves them theirs.
        let set = SetAttr { mode: Some(0o640), gid: Some(7), ..SetAttr::default() };
        bed.set(&file, &set, &ROOT).unwrap();
        let attr = bed.attr(&file);
        assert_eq!((attr.uid, attr.gid, attr.mode), (1001, 7, 0o640));
        remove(bed, &root, "g", &file, &ROOT).unwrap();
    });
}

#[test]
fn a_file_belongs_to_its_maker_and_the_group_of_a_setgid_directory() {
    everywhere(|bed| {
        let root = bed.root();
        let set = SetAttr { mode: Some(0o2777), gid: Some(77), ..SetAttr::default() };
        bed.set(&root, &set, &ROOT).unwrap();
        let file = bed.create(&root, b"f", 0o664, &OWNER).unwrap();
        let attr = bed.attr(&file);
        assert_eq!((attr.uid, attr.gid, attr.mode), (1001, 77, 0o664));
    });
}

#[test]
fn an_existing_name_is_replaced_only_if_that_is_wanted() {
    everywhere(|bed| {
        let root = bed.root();
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        let file = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
        let other = bed.create(&dir, b"g", 0o600, &ROOT).unwrap();
        let (id, before) = (bed.attr(&file).fileid, bed.attr(&other).fileid);
        let go = |from, to, replace| rename(bed, &file, from, to, replace);
        assert_eq!(go((&root, "f"), (&dir, "g"), Replace::No), Err(FsError::Exists));
        assert_eq!(leads(bed, &dir, "g"), Ok(before));
        go((&root, "f"), (&root, "f"), Replace::No).unwrap();
        go((&root, "f"), (&root, "F"), Replace::No).unwrap();
        assert_eq!(leads(bed, &root, "f"), Err(FsError::NotFound));
        go((&root, "F"), (&dir, "g"), Replace::Yes).unwrap();
        assert_eq!(
            (leads(bed, &dir, "g"), leads(bed, &root, "F")),
            (Ok(id), Err(FsError::NotFound))
        );
        assert_eq!(bed.attr(&other).nlink, 0);
        block_on(bed.store.link(&file, &dir, name("h"), &ROOT)).unwrap();
        assert_eq!(go((&dir, "g"), (&dir, "h"), Replace::No), Err(FsError::Exists));
        go((&dir, "g"), (&dir, "h"), Replace::Yes).unwrap();
        assert_eq!((leads(bed, &dir, "g"), leads(bed, &dir, "h")), (Ok(id), Ok(id)));
        for (from, to) in [("..", "x"), ("g", ".")] {
            let renamed = go((&dir, from), (&dir, to), Replace::Yes);
            assert_eq!(renamed, Err(FsError::Invalid));
        }
        let below = rename(bed, &dir, (&root, "d"), (&dir, "d"), Replace::No);
        assert_eq!(below, Err(FsError::Invalid), "into itself");
    });
}

#[test]
fn while_names_change_hands_nobody_loses_another_object() {
    everywhere(|bed| {
        let root = bed.root();
        for _ in 0..200 {
            let old = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
            let new = bed.create(&root, b"g", 0o600, &ROOT).unwrap();
            let start = Barrier::new(3);
            let wait = || {
                start.wait();
            };
            let (moved, removed, taken) = std::thread::scope(|threads| {
                let moved = threads.spawn(|| {
                    wait();
                    block_on(Store::rename(&bed.store, &root, name("g"), &root, name("f"), &ROOT))
                        .map(drop)
                });
                let removed = threads.spawn(|| {
                    wait();
                    remove(bed, &root, "f", &old, &ROOT)
                });
                let taken = threads.spawn(|| {
                    wait();
                    rename(bed, &old, (&root, "f"), (&root, "h"), Replace::No)
                });
                (moved.join().unwrap(), removed.join().unwrap(), taken.join().unwrap())
            });
            assert_eq!(moved, Ok(()));
            assert!(removed == Ok(()) || removed == Err(FsError::NotFound), "{removed:?}");
            assert!(taken == Ok(()) || taken == Err(FsError::NotFound), "{taken:?}");
            assert!(removed.is_err() || taken.is_err(), "it had one name");
            assert_eq!(leads(bed, &root, "f"), Ok(bed.attr(&new).fileid));
            assert_eq!(leads(bed, &root, "h").is_ok(), taken.is_ok());
            bed.remove(&root, b"f").unwrap();
            if taken.is_ok() {
                bed.remove(&root, b"h").unwrap();
            }
        }
    });
}
