//! The store's promises about objects that every kind of store keeps, one by one. The tests of
//! CephFS (`tests/ceph`) run these too, so nothing here looks at the disk behind the store's back.

use crate::common::{OLD_TIME, ROOT, block_on, everywhere, everywhere_with, options};
use weir_core::attr::SetTime;
use weir_core::store::{CreateHow, MakeKind, Stability, Want, WriteHow};
use weir_core::{Credentials, FileKind, FsError, Name, SetAttr, Shared, Store, Timestamp};
use weir_store::{Durability, Options, StoreControl};

const USER: Credentials = Credentials::new(1001, 1002);

#[test]
fn what_was_written_is_read_and_eof_comes_from_the_size() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        assert_eq!(bed.write(&file, 3, b"hello"), Ok(5));
        assert_eq!(bed.read(&file, 0, 100).unwrap(), (b"\0\0\0hello".to_vec(), true));
        assert_eq!(bed.read(&file, 0, 7).unwrap(), (b"\0\0\0hell".to_vec(), false));
        assert_eq!(bed.read(&file, 8, 1).unwrap(), (vec![], true));
        assert_eq!(bed.read(&file, u64::MAX, 9).unwrap(), (vec![], true));
        assert_eq!(bed.attr(&file).size, 8);
    });
}

#[test]
fn names_of_255_arbitrary_bytes_work_and_longer_ones_do_not() {
    everywhere(|bed| {
        let all: Vec<u8> = (1..=255).filter(|&b| b != b'/').chain([200]).collect();
        assert_eq!(all.len(), 255);
        let file = bed.create(&bed.root(), &all, 0o644, &ROOT).unwrap();
        assert_eq!(bed.lookup(&bed.root(), &all).unwrap().key(), file.key());
        let page = block_on(bed.store.read_dir(&bed.root(), 0, 10, 10_000, Want::Names)).unwrap();
        assert!(page.entries.iter().any(|entry| *entry.name == *all));
        let long = [b'x'; 256];
        assert_eq!(bed.create(&bed.root(), &long, 0o644, &ROOT).err(), Some(FsError::NameTooLong));
    });
}

#[test]
fn handles_survive_a_second_life_of_the_store() {
    everywhere(|bed| {
        assert!(bed.store.handles_persist());
        let dir = bed.make(&bed.root(), b"d", &MakeKind::Directory).unwrap();
        let file = bed.create(&dir, b"f", 0o644, &ROOT).unwrap();
        let link = bed.make(&dir, b"l", &MakeKind::Symlink(b"/etc".to_vec())).unwrap();
        let fifo = bed.make(&dir, b"p", &MakeKind::Fifo).unwrap();
        bed.write(&file, 0, b"kept").unwrap();
        let again = bed.reopen();
        for object in [&dir, &file, &link, &fifo, &bed.root()] {
            let found = block_on(again.resolve(&bed.store.key(object))).unwrap();
            assert_eq!(block_on(again.attr(&found)), Ok(bed.attr(object)));
        }
        let found = block_on(again.resolve(&bed.store.key(&file))).unwrap();
        assert_eq!(block_on(again.read(&found, 0, 9, Vec::new())).unwrap().out, b"kept");
    });
}

#[test]
fn a_handle_is_stale_once_the_last_name_is_gone() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"f", 0o644, &ROOT).unwrap();
        block_on(bed.store.link(&file, &root, Name::new(b"g").unwrap(), &ROOT)).unwrap();
        let key = bed.store.key(&file);
        bed.remove(&root, b"f").unwrap();
        assert!(block_on(bed.store.resolve(&key)).is_ok());
        assert_eq!(bed.attr(&file).nlink, 1);
        bed.remove(&root, b"g").unwrap();
        assert_eq!(block_on(bed.store.resolve(&key)).err(), Some(FsError::Stale), "while in use");
        drop(file);
        assert_eq!(block_on(bed.store.resolve(&key)).err(), Some(FsError::Stale));
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        let key = bed.store.key(&dir);
        block_on(bed.store.remove_dir(&root, Name::new(b"d").unwrap(), &ROOT)).unwrap();
        assert_eq!(block_on(bed.store.resolve(&key)).err(), Some(FsError::Stale));
        assert_eq!(bed.create(&dir, b"x", 0o644, &ROOT).err(), Some(FsError::Stale));
    });
}

#[test]
fn no_name_leads_out_of_the_volume() {
    everywhere(|bed| {
        let root = bed.root();
        for target in ["/etc/passwd", "../../..", "..", "/"] {
            let kind = MakeKind::Symlink(target.as_bytes().to_vec());
            let link = bed.make(&root, b"l", &kind).unwrap();
            assert_eq!(block_on(bed.store.read_link(&link)).unwrap(), target.as_bytes());
            assert_eq!(bed.attr(&link).kind, FileKind::Symlink);
            assert_eq!(bed.lookup(&link, b"passwd").err(), Some(FsError::NotDirectory));
            assert_eq!(bed.read(&link, 0, 10).err(), Some(FsError::WrongKind));
            assert_eq!(bed.create(&root, b"l", 0o644, &ROOT).err(), Some(FsError::Exists));
            bed.remove(&root, b"l").unwrap();
        }
        assert_eq!(bed.lookup(&root, b"..").unwrap().key(), root.key());
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        assert_eq!(bed.lookup(&dir, b"..").unwrap().key(), root.key());
        let page = block_on(bed.store.read_dir(&root, 0, 100, 10_000, Want::Attributes)).unwrap();
        let above = page.entries.iter().find(|entry| *entry.name == *b"..").unwrap();
        assert_eq!(above.fileid, bed.attr(&root).fileid);
        assert_eq!(above.object.map(|(key, _)| key), Some(bed.store.key(&root)));
    });
}

#[test]
fn objects_belong_to_the_caller_and_the_kernel_decides_for_it() {
    everywhere(|bed| {
        let root = bed.root();
        assert_eq!(bed.create(&root, b"no", 0o644, &USER).err(), Some(FsError::AccessDenied));
        bed.open_to_all(&root);
        let file = bed.create(&root, b"f", 0o604, &USER).unwrap();
        let attr = bed.attr(&file);
        assert_eq!((attr.uid, attr.gid, attr.mode), (1001, 1002, 0o604));
        let other = Credentials::new(2001, 2002);
        let chmod = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        assert_eq!(bed.set(&file, &chmod, &other), Err(FsError::NotPermitted));
        assert_eq!(bed.set(&file, &chmod, &USER), Ok(()));
        let give = SetAttr { uid: Some(7), ..SetAttr::default() };
        assert_eq!(bed.set(&file, &give, &USER), Err(FsError::NotPermitted));
        assert_eq!(bed.set(&file, &give, &ROOT), Ok(()));
        let unknown = Credentials::new(u32::MAX, u32::MAX);
        assert_eq!(bed.create(&root, b"x", 0o644, &unknown).err(), Some(FsError::AccessDenied));
        let after = bed.create(&root, b"mine", 0o644, &ROOT).unwrap();
        assert_eq!(bed.attr(&after).uid, 0);
        let member = Credentials::new(1001, 1002).with_groups(&[3003]);
        let share = SetAttr { gid: Some(3003), ..SetAttr::default() };
        let file = bed.create(&root, b"g", 0o644, &member).unwrap();
        assert_eq!(bed.set(&file, &share, &USER), Err(FsError::NotPermitted));
        assert_eq!(bed.set(&file, &share, &member), Ok(()));
    });
}

#[test]
fn what_cannot_be_made_whole_is_not_made() {
    everywhere(|bed| {
        let root = bed.root();
        bed.open_to_all(&root);
        let set = SetAttr { uid: Some(5), ..SetAttr::default() };
        let name = Name::new(b"x").unwrap();
        let how = CreateHow::Guarded(set);
        let file = block_on(bed.store.create(&root, name, &how, &USER));
        assert_eq!(file.err(), Some(FsError::NotPermitted));
        let dir = block_on(bed.store.make(&root, name, &MakeKind::Directory, &set, &USER));
        assert_eq!(dir.err(), Some(FsError::NotPermitted));
        assert_eq!(bed.lookup(&root, b"x").err(), Some(FsError::NotFound));
        assert!(!bed.is_there("x"));
    });
}

#[test]
fn writing_takes_set_ids_away() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o6755, &ROOT).unwrap();
        assert_eq!(bed.attr(&file).mode, 0o6755);
        bed.write(&file, 0, b"x").unwrap();
        assert_eq!(bed.attr(&file).mode, 0o755);
        // Set-group-id without group execute means mandatory locking and stays.
        bed.set(&file, &SetAttr { mode: Some(0o2644), ..SetAttr::default() }, &ROOT).unwrap();
        bed.write(&file, 0, b"x").unwrap();
        assert_eq!(bed.attr(&file).mode, 0o2644);
    });
}

#[test]
fn a_write_that_gives_no_attributes_takes_set_ids_away_and_others_see_it() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        let write = |offset| {
            let how = WriteHow { stability: Stability::Unstable, gives_change: false };
            let done = block_on(bed.store.write(&file, offset, vec![7; 10].into(), how)).unwrap();
            assert_eq!(done.count, 10);
        };
        let mut before = bed.attr(&file);
        for offset in [0, 10, 5, 4095] {
            write(offset);
            let after = bed.attr(&file);
            assert_eq!((after.size, after.mode), (before.size.max(offset + 10), 0o644));
            assert!(after.mtime >= before.mtime);
            before = after;
        }
        write(0);
        bed.set(&file, &SetAttr { mode: Some(0o6755), ..SetAttr::default() }, &ROOT).unwrap();
        write(0);
        assert_eq!(bed.attr(&file).mode, 0o755);
    });
}

#[test]
fn a_retried_exclusive_create_finds_its_own_file() {
    everywhere(|bed| {
        let (root, name) = (bed.root(), Name::new(b"f").unwrap());
        let create = |verifier| {
            block_on(bed.store.create(&root, name, &CreateHow::Exclusive(verifier), &ROOT))
        };
        let first = create([0xff; 8]).unwrap().object;
        let again = create([0xff; 8]).unwrap();
        assert_eq!(again.object.key(), first.key());
        assert_eq!(create([0xfe; 8]).err(), Some(FsError::Exists));
        // Once it is in use, nobody can have just made it.
        bed.write(&first, 0, b"x").unwrap();
        assert_eq!(create([0xff; 8]).err(), Some(FsError::Exists));
    });
}

#[test]
fn a_guard_lets_only_the_expected_state_through() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        let seen = bed.attr(&file).ctime;
        let wrong = Timestamp { secs: seen.secs - 1, ..seen };
        let try_with = |guard| block_on(bed.store.set_attr(&file, &set, Some(guard), &ROOT));
        assert_eq!(try_with(wrong).err(), Some(FsError::NotSync));
        assert_eq!(bed.attr(&file).mode, 0o644);
        let change = try_with(seen).unwrap();
        assert_eq!(change.before.map(|attr| attr.mode), Some(0o644));
        assert_eq!(change.after.map(|attr| attr.mode), Some(0o600));
    });
}

#[test]
fn times_sizes_and_modes_are_set_on_every_kind() {
    everywhere(|bed| {
        let root = bed.root();
        let device = weir_core::DeviceNumber { major: 240, minor: 300 };
        let kinds = [
            MakeKind::Directory,
            MakeKind::Symlink(b"t".to_vec()),
            MakeKind::Fifo,
            MakeKind::Socket,
            MakeKind::CharDevice(device),
            MakeKind::BlockDevice(device),
        ];
        let old = OLD_TIME;
        let time = SetTime::To(old);
        for (number, kind) in kinds.iter().enumerate() {
            let object = bed.make(&root, format!("k{number}").as_bytes(), kind).unwrap();
            let set = SetAttr {
                mode: Some(0o710),
                uid: Some(11),
                gid: Some(12),
                size: None,
                atime: time,
                mtime: time,
            };
            bed.set(&object, &set, &ROOT).unwrap();
            let attr = bed.attr(&object);
            assert_eq!((attr.uid, attr.gid), (11, 12));
            if attr.kind != FileKind::Symlink {
                assert_eq!(attr.mode, 0o710, "{kind:?}");
            }
            if bed.file_system != "xfs" {
                assert_eq!((attr.atime, attr.mtime), (old, old), "{kind:?}");
            }
            let size = SetAttr { size: Some(0), ..SetAttr::default() };
            assert!(bed.set(&object, &size, &ROOT).is_err(), "{kind:?}");
        }
        let node = bed.lookup(&root, b"k4").unwrap();
        assert_eq!(bed.attr(&node).rdev, device);
    });
}

#[test]
fn the_quota_stops_growth_and_nothing_else() {
    let options = Options { quota_bytes: 64 << 10, ..options() };
    everywhere_with(&options, |bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        assert_eq!(bed.write(&file, 0, &[1; 64 << 10]), Ok(64 << 10));
        assert_eq!(bed.write(&file, 64 << 10, b"x"), Err(FsError::QuotaExceeded));
        assert_eq!(bed.attr(&file).size, 64 << 10);
        assert_eq!(bed.write(&file, 100, &[2; 5000]), Ok(5000), "what is there may be rewritten");
        let space = block_on(bed.store.fs_stat()).unwrap();
        assert_eq!((space.total_bytes, space.free_bytes), (64 << 10, 0));
        bed.store.set_quota_bytes(128 << 10);
        assert_eq!(bed.write(&file, 64 << 10, b"x"), Ok(1));
        bed.set(&file, &SetAttr { size: Some(0), ..SetAttr::default() }, &ROOT).unwrap();
        assert_eq!(bed.store.usage().bytes, 0);
    });
}

#[test]
fn a_listing_in_small_pages_gives_each_name_once_with_its_object() {
    everywhere(|bed| {
        let root = bed.root();
        let names: Vec<_> = (0..300).map(|i| format!("file-{i:04}").into_bytes()).collect();
        for name in &names {
            bed.create(&root, name, 0o644, &ROOT).unwrap();
        }
        let (mut cookie, mut seen) = (0, Vec::new());
        loop {
            let page =
                block_on(bed.store.read_dir(&root, cookie, 7, 60, Want::Attributes)).unwrap();
            assert!(page.entries.len() <= 7 && (page.eof || !page.entries.is_empty()));
            for entry in page.entries {
                cookie = entry.cookie;
                assert_ne!(cookie, 0);
                let (key, attr) = entry.object.unwrap();
                assert_eq!(attr.fileid, entry.fileid);
                let object = block_on(bed.store.resolve(&key)).unwrap();
                assert_eq!(bed.attr(&object), attr);
                seen.push(entry.name.to_vec());
            }
            if page.eof {
                break;
            }
        }
        seen.retain(|name| name != b"." && name != b"..");
        seen.sort_unstable();
        assert_eq!(seen, names);
        assert_eq!(
            block_on(bed.store.read_dir(&root, u64::MAX, 7, 60, Want::Names)).err(),
            Some(FsError::BadCookie)
        );
    });
}

#[test]
fn more_objects_than_are_kept_open_still_work() {
    let options = Options { cached_objects_max: 16, ..options() };
    everywhere_with(&options, |bed| {
        let root = bed.root();
        let keys: Vec<_> = (0..200u32)
            .map(|i| {
                let name = format!("f{i}");
                let file = bed.create(&root, name.as_bytes(), 0o644, &ROOT).unwrap();
                bed.write(&file, 0, &i.to_be_bytes()).unwrap();
                bed.store.key(&file)
            })
            .collect();
        for (i, key) in (0u32..).zip(&keys) {
            let file = block_on(bed.store.resolve(key)).unwrap();
            assert_eq!(bed.read(&file, 0, 4).unwrap().0, i.to_be_bytes());
        }
    });
}

#[test]
fn every_stability_answers_at_least_what_was_asked() {
    everywhere_with(&Options { namespace_durability: Durability::Power, ..options() }, |bed| {
        let dir = bed.make(&bed.root(), b"d", &MakeKind::Directory).unwrap();
        let file = bed.create(&dir, b"f", 0o644, &ROOT).unwrap();
        for stability in [Stability::Unstable, Stability::DataSync, Stability::FileSync] {
            let data = Shared::from(vec![1; 10]);
            let done = block_on(bed.store.write(&file, 0, data, stability)).unwrap();
            assert!(done.committed >= stability && done.count == 10);
        }
        let (f, g) = (Name::new(b"f").unwrap(), Name::new(b"g").unwrap());
        block_on(bed.store.link(&file, &bed.root(), g, &ROOT)).unwrap();
        block_on(bed.store.rename(&dir, f, &bed.root(), f, &ROOT)).unwrap();
        let link = bed.make(&dir, b"l", &MakeKind::Symlink(b"t".to_vec())).unwrap();
        bed.set(&link, &SetAttr { uid: Some(3), ..SetAttr::default() }, &ROOT).unwrap();
        bed.remove(&bed.root(), b"f").unwrap();
        assert_eq!(bed.lookup(&bed.root(), b"g").unwrap().key(), file.key());
        assert_eq!(bed.store.sync_failures(), 0);
    });
}

#[test]
fn a_rename_over_a_directory_with_entries_is_refused_alike_everywhere() {
    everywhere(|bed| {
        let root = bed.root();
        let [_, full] =
            [b"from", b"into"].map(|name| bed.make(&root, name, &MakeKind::Directory).unwrap());
        bed.create(&full, b"entry", 0o644, &ROOT).unwrap();
        let [from, to] = [b"from", b"into"].map(|name| Name::new(name).unwrap());
        let rename = || block_on(bed.store.rename(&root, from, &root, to, &ROOT)).map(drop);
        assert_eq!(rename(), Err(FsError::NotEmpty));
        bed.remove(&full, b"entry").unwrap();
        assert_eq!(rename(), Ok(()));
    });
}
