//! Birth, DOS attributes and the count of changes.

use crate::common::{Bed, Faulty, Object, ROOT, block_on, everywhere, everywhere_with, options};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};
use weir_core::attr::SetTime;
use weir_core::store::{MakeKind, Stability, Want};
use weir_core::{
    Attr, Credentials, Details, DosAttributes, FsError, FsResult, Name, SetAttr, SetDetails,
    Shared, Store, Timestamp,
};
use weir_store::testing::{Fault, Kind, Rule};
use weir_store::{Options, StoreControl};

const ATTRIBUTE: &str = "user.weir.dos";
const OWNER: Credentials = Credentials::new(1001, 2001);

fn details(store: &impl Store<Object = Object>, object: &Object) -> Details {
    block_on(store.details(object)).unwrap().1
}

fn set(bed: &Bed, object: &Object, set: SetDetails, cred: &Credentials) -> FsResult<Details> {
    block_on(bed.store.set_details(object, &set, cred)).map(|found| found.1)
}

fn dos(dos: DosAttributes) -> SetDetails {
    SetDetails { dos: Some(dos), birth: None }
}

fn born(secs: i64) -> SetDetails {
    SetDetails { birth: Some(Timestamp { secs, nanos: 5 }), dos: None }
}

/// The attribute of the object called `name`, as it lies on the disk.
fn kept(bed: &Bed, name: &str) -> Option<Vec<u8>> {
    let mut room = [0; 100];
    match getxattr(bed.path().join(name), ATTRIBUTE, &mut room) {
        Ok(length) => Some(room[..length].to_vec()),
        Err(errno) => {
            assert_eq!(errno, Errno::NODATA);
            None
        }
    }
}

fn natural_birth(bed: &Bed, name: &str) -> SystemTime {
    std::fs::symlink_metadata(bed.path().join(name)).unwrap().created().unwrap()
}

fn as_system(time: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(time.secs.try_into().unwrap(), time.nanos)
}

#[test]
fn what_nobody_has_set_is_kept_nowhere() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"file", 0o644, &OWNER.clone()).err();
        assert_eq!(file, Some(FsError::AccessDenied));
        bed.open_to_all(&root);
        let file = bed.create(&root, b"file", 0o600, &OWNER).unwrap();
        let dir = bed.make(&root, b"dir", &MakeKind::Directory).unwrap();
        let link = bed.make(&root, b"link", &MakeKind::Symlink(b"file".to_vec())).unwrap();
        let pipe = bed.make(&root, b"pipe", &MakeKind::Fifo).unwrap();
        let none = DosAttributes::empty();
        for (object, name, expected) in [
            (&file, "file", DosAttributes::ARCHIVE),
            (&dir, "dir", none),
            (&link, "link", none),
            (&pipe, "pipe", none),
        ] {
            let (attr, found) = block_on(bed.store.details(object)).unwrap();
            assert_eq!(attr, bed.attr(object));
            assert_eq!((found.dos, as_system(found.birth)), (expected, natural_birth(bed, name)));
            let again = bed.lookup(&bed.reopen().root(), name.as_bytes()).unwrap();
            assert_eq!(details(&bed.store, &again).dos, expected);
        }
        assert_eq!((kept(bed, "file"), kept(bed, "dir")), (None, None));
        for object in [&link, &pipe] {
            let refused = set(bed, object, dos(DosAttributes::HIDDEN), &ROOT);
            assert_eq!(refused, Err(FsError::NotSupported));
        }
    });
}

#[test]
fn only_what_differs_is_kept_and_it_outlives_the_server() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"file", 0o600, &ROOT).unwrap();
        let dir = bed.make(&root, b"dir", &MakeKind::Directory).unwrap();
        let natural = details(&bed.store, &file).birth;
        let hidden = DosAttributes::HIDDEN;
        for (object, name) in [(&file, "file"), (&dir, "dir")] {
            let before = details(&bed.store, object);
            let changed = set(bed, object, dos(hidden), &ROOT).unwrap();
            assert!(changed.change > before.change);
            assert_eq!((changed.dos, changed.birth), (hidden, before.birth));
            assert_eq!(kept(bed, name), Some(vec![1, 2, 2, 0]));
            let both = set(bed, object, born(-7), &ROOT).unwrap();
            assert_eq!((both.dos, both.birth), (hidden, Timestamp { secs: -7, nanos: 5 }));
            let again = bed.reopen();
            let found = block_on(again.resolve(&bed.store.key(object))).unwrap();
            let found = block_on(again.details(&found)).unwrap().1;
            assert_eq!((found.dos, found.birth), (both.dos, both.birth));
            assert_eq!(set(bed, object, born(-7), &ROOT), Ok(both), "no change");
        }
        // Back to what they were, together.
        let as_it_was = SetDetails { birth: Some(natural), dos: Some(DosAttributes::ARCHIVE) };
        let found = set(bed, &file, as_it_was, &ROOT).unwrap();
        assert_eq!((found.birth, kept(bed, "file")), (natural, None));
        set(bed, &dir, dos(DosAttributes::empty()), &ROOT).unwrap();
        assert_eq!(kept(bed, "dir").map(|bytes| bytes.len()), Some(14), "its birth is left");
    });
}

#[test]
fn the_owner_and_whoever_may_write_set_them_and_a_caller_that_has_decided() {
    everywhere(|bed| {
        bed.open_to_all(&bed.root());
        let file = bed.create(&bed.root(), b"file", 0o420, &OWNER).unwrap();
        let (member, other) = (Credentials::new(1002, 2001), Credentials::new(1003, 1));
        let mut all = [DosAttributes::HIDDEN, DosAttributes::SYSTEM, DosAttributes::SPARSE].iter();
        for cred in [&OWNER, &member, &ROOT] {
            let wanted = *all.next().unwrap();
            assert_eq!(set(bed, &file, dos(wanted), cred).unwrap().dos, wanted);
        }
        let refused = set(bed, &file, dos(DosAttributes::ARCHIVE), &other);
        assert_eq!(refused, Err(FsError::AccessDenied));
        assert_eq!(details(&bed.store, &file).dos, DosAttributes::SPARSE);
        // Read by anybody: who may see an object may see these.
        let attr: Attr = bed.attr(&file);
        assert_eq!(attr.mode, 0o420);
    });
}

#[test]
fn what_another_version_has_kept_reads_as_nothing_and_is_replaced() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        let key = bed.store.key(&file);
        let path = bed.path().join("file");
        for bytes in [&[9, 1, 2, 3][..], &[7; 90]] {
            setxattr(&path, ATTRIBUTE, bytes, XattrFlags::empty()).unwrap();
            let again = Bed { store: bed.reopen(), directory: bed.directory.clone(), ..open(bed) };
            let file = block_on(again.store.resolve(&key)).unwrap();
            assert_eq!(details(&again.store, &file).dos, DosAttributes::ARCHIVE);
            set(&again, &file, dos(DosAttributes::HIDDEN), &ROOT).unwrap();
            assert_eq!(kept(bed, "file"), Some(vec![1, 2, 2, 0]));
        }
    });
}

fn open(bed: &Bed) -> Bed {
    let (directory, options) = (bed.directory.clone(), bed.options.clone());
    Bed { store: bed.store.clone(), directory, options, file_system: bed.file_system }
}

#[test]
fn every_change_is_counted_and_no_count_comes_again() {
    let few = Options { cached_objects_max: 16, ..options() };
    everywhere_with(&few, |bed| {
        let root = bed.root();
        let file = bed.create(&root, b"file", 0o600, &ROOT).unwrap();
        let (file_key, root_key) = (bed.store.key(&file), bed.store.key(&root));
        drop(file);
        // Of each object what it was at each count.
        let mut seen = HashMap::new();
        let mut last = [0, 0];
        let mut moved = [0, 0];
        for round in 0..120u64 {
            let file = block_on(bed.store.resolve(&file_key)).unwrap();
            let other = format!("other{}", round / 2);
            let changes_names = round % 3 == 0;
            match round % 6 {
                0 => drop(bed.write(&file, round, b"data").unwrap()),
                1 => {
                    let time = SetTime::To(Timestamp { secs: 5, nanos: 0 });
                    let set = SetAttr { mtime: time, ..SetAttr::default() };
                    bed.set(&file, &set, &ROOT).unwrap();
                }
                2 => {
                    let size = SetAttr { size: Some(100 + round), ..SetAttr::default() };
                    bed.set(&file, &size, &ROOT).unwrap();
                }
                3 => drop(set(bed, &file, born(round.cast_signed()), &ROOT).unwrap()),
                4 => drop(block_on(bed.store.zero_range(&file, 0, 50)).unwrap()),
                _ => drop(block_on(bed.store.set_size(&file, 200 + round)).unwrap()),
            }
            if changes_names {
                bed.create(&root, other.as_bytes(), 0o600, &ROOT).unwrap();
            }
            drop(file);
            if round % 4 == 0 {
                // Everything but the root is closed.
                for number in 0..40 {
                    let name = format!("crowd{number}");
                    let _there = bed.create(&root, name.as_bytes(), 0o600, &ROOT);
                    block_on(bed.store.lookup(&root, Name::new(name.as_bytes()).unwrap())).unwrap();
                }
                bed.store.release_idle();
            }
            for (number, key) in [&file_key, &root_key].into_iter().enumerate() {
                let object = block_on(bed.store.resolve(key)).unwrap();
                let (attr, found) = block_on(bed.store.details(&object)).unwrap();
                assert!(found.change >= last[number], "{} in round {round}", bed.file_system);
                moved[number] += u32::from(found.change > last[number]);
                last[number] = found.change;
                let state = (attr.size, attr.mtime, attr.ctime, attr.nlink, found.birth);
                let before = seen.insert((number, found.change), state);
                assert!(before.is_none_or(|before| before == state), "the same count again");
            }
        }
        assert_eq!(moved[0], 120, "each change of the file");
        assert!(moved[1] >= 40, "each change of its names");
        let ctime = bed.attr(&block_on(bed.store.resolve(&file_key)).unwrap()).ctime;
        let nanos = u64::try_from(ctime.secs).unwrap() * 1_000_000_000;
        assert!(last[0].abs_diff(nanos) < 2_000_000_000, "near the time of the last change");
    });
}

#[test]
fn a_listing_has_them_whether_its_objects_are_held_open_or_not() {
    let few = Options { cached_objects_max: 16, ..options() };
    everywhere_with(&few, |bed| {
        let root = bed.root();
        for number in 0..60 {
            let name = format!("file{number}");
            let file = bed.create(&root, name.as_bytes(), 0o600, &ROOT).unwrap();
            set(bed, &file, born(number), &ROOT).unwrap();
        }
        bed.make(&root, b"link", &MakeKind::Symlink(b"x".to_vec())).unwrap();
        let page = block_on(bed.store.read_dir(&root, 0, 100, 10_000, Want::Details)).unwrap();
        assert_eq!(page.entries.len(), 63);
        for entry in &page.entries {
            let name = Name::new(&entry.name).unwrap();
            let (object, attr) = block_on(bed.store.lookup(&root, name)).unwrap();
            let (own, found) = (details(&bed.store, &object), entry.details.unwrap());
            assert_eq!((found.birth, found.dos), (own.birth, own.dos), "{name:?}");
            // Of what is not held open it isn't known that it has no list.
            let (key, listed) = entry.object.unwrap();
            assert_eq!(
                (key, Attr { has_acl: attr.has_acl, ..listed }),
                (bed.store.key(&object), attr)
            );
        }
        let page = block_on(bed.store.read_dir(&root, 0, 100, 10_000, Want::Attributes)).unwrap();
        assert!(page.entries.iter().all(|entry| entry.object.is_some() && entry.details.is_none()));
    });
}

#[test]
fn of_two_that_set_different_things_at_once_both_are_kept() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        for round in 0..200 {
            let wanted = if round % 2 == 0 { DosAttributes::HIDDEN } else { DosAttributes::SYSTEM };
            std::thread::scope(|threads| {
                threads.spawn(|| set(bed, &file, dos(wanted), &ROOT).unwrap());
                threads.spawn(|| set(bed, &file, born(round), &ROOT).unwrap());
                threads.spawn(|| {
                    let data = Shared::from(vec![1; 10]);
                    block_on(bed.store.write(&file, 0, data, Stability::Unstable)).unwrap();
                });
            });
            let found = details(&bed.store, &file);
            assert_eq!((found.dos, found.birth.secs), (wanted, round));
            let again = bed.reopen();
            let fresh = block_on(again.resolve(&bed.store.key(&file))).unwrap();
            let fresh = block_on(again.details(&fresh)).unwrap().1;
            assert_eq!((fresh.dos, fresh.birth), (found.dos, found.birth), "on the disk too");
        }
    });
}

#[test]
fn without_the_cache_the_kernel_is_asked_each_time() {
    let without = Options { metadata_cache: false, ..options() };
    everywhere_with(&without, |bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        assert_eq!(details(&bed.store, &file).dos, DosAttributes::ARCHIVE);
        let before = details(&bed.store, &file).change;
        set(bed, &file, dos(DosAttributes::SYSTEM), &ROOT).unwrap();
        let found = details(&bed.store, &file);
        assert_eq!(found.dos, DosAttributes::SYSTEM);
        assert!(found.change > before);
    });
}

#[test]
fn details_that_could_not_be_stored_are_as_they_were() {
    let faulty = Faulty::new();
    faulty.run(|bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        set(bed, &file, dos(DosAttributes::HIDDEN), &ROOT).unwrap();
    });
    for errno in [Errno::NOSPC, Errno::IO] {
        let path = faulty.directory.join("root/file");
        let rule = Rule::new(&[Kind::Change], path, Fault::Fail(errno));
        let rule = faulty.kernel.add(rule);
        let refused = faulty.run(|bed| {
            bed.store.release_idle();
            let file = bed.lookup(&bed.root(), b"file").unwrap();
            set(bed, &file, dos(DosAttributes::SYSTEM), &ROOT)
        });
        let expected = if errno == Errno::IO { FsError::Io } else { FsError::NoSpace };
        assert_eq!((refused, faulty.kernel.hits(rule)), (Err(expected), 1));
        faulty.kernel.lift(rule);
        faulty.run(|bed| {
            let file = bed.lookup(&bed.root(), b"file").unwrap();
            assert_eq!(details(&bed.store, &file).dos, DosAttributes::HIDDEN);
        });
    }
}
