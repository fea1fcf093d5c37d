//! The store's promises about objects, one by one, on each file system.

use crate::common::{Bed, Faulty, ROOT, block_on, everywhere, everywhere_with, options};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_core::attr::SetTime;
use weir_core::place::NEW_VOLUME_MARK;
use weir_core::store::{CreateHow, MakeKind, Stability, Want, WriteHow};
use weir_core::{Credentials, FileKind, FsError, Name, SetAttr, Shared, Store, Timestamp};
use weir_store::testing::{Fault, Kind, Rule, When};
use weir_store::{Durability, LocalStore, OpenError, Options, StoreControl};

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
fn a_read_appends_and_keeps_what_the_buffer_holds_also_when_it_needs_the_disk() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        let data: Vec<u8> =
            (0..300_000u32).map(|i| i.to_le_bytes()[0] ^ i.to_le_bytes()[1]).collect();
        bed.write(&file, 0, &data).unwrap();
        block_on(bed.store.commit(&file)).unwrap();
        let kernel = std::fs::File::open(bed.path().join("f")).unwrap();
        rustix::fs::fadvise(&kernel, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let done = block_on(bed.store.read(&file, 0, 300_000, b"head".to_vec())).unwrap();
        assert_eq!(&done.out[..4], b"head");
        assert!(done.out[4..] == data[..] && done.eof && done.count == 300_000);
    });
}

#[test]
fn a_hole_reads_as_zeros_and_uses_nothing() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"sparse", 0o644, &ROOT).unwrap();
        let before = bed.store.usage().bytes;
        bed.write(&file, 1 << 32, b"x").unwrap();
        let attr = bed.attr(&file);
        assert_eq!(attr.size, (1 << 32) + 1);
        assert!(attr.used < 1 << 20, "{}", attr.used);
        assert!(bed.store.usage().bytes - before < 1 << 20);
        assert_eq!(bed.read(&file, 1 << 20, 10).unwrap(), (vec![0; 10], false));
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
fn replaced_and_removed_files_give_their_space_back() {
    everywhere(|bed| {
        let root = bed.root();
        let (a, b) = (Name::new(b"a").unwrap(), Name::new(b"b").unwrap());
        for name in [a, b] {
            let file = bed.create(&root, name.as_bytes(), 0o644, &ROOT).unwrap();
            bed.write(&file, 0, &[1; 20_000]).unwrap();
        }
        assert_eq!(bed.store.usage().bytes, 2 * 20_480);
        block_on(bed.store.rename(&root, a, &root, b, &ROOT)).unwrap();
        assert_eq!(bed.store.usage().bytes, 20_480);
        bed.remove(&root, b"b").unwrap();
        assert_eq!(bed.store.usage().bytes, 0);
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
fn a_directory_outside_the_volume_is_refused_even_with_its_true_key() {
    everywhere(|bed| {
        let other = LocalStore::open(&bed.directory.with_file_name("other"), &bed.options).unwrap();
        let set = SetAttr::default();
        let name = Name::new(b"d").unwrap();
        let made = block_on(other.make(&other.root(), name, &MakeKind::Directory, &set, &ROOT));
        let key = other.key(&made.unwrap().object);
        assert_eq!(block_on(bed.store.resolve(&key)).err(), Some(FsError::Stale));
        let root = other.key(&other.root());
        assert_eq!(block_on(bed.store.resolve(&root)).err(), Some(FsError::Stale));
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
        assert!(!bed.path().join("x").exists());
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
fn a_file_with_attributes_never_has_a_name_without_them() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
    everywhere(|bed| {
        let (root, name, path) = (bed.root(), Name::new(b"f").unwrap(), bed.path().join("f"));
        let (seen, bare, done) =
            (AtomicU32::new(0), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    if let Ok(found) = std::fs::metadata(&path) {
                        seen.fetch_add(1, SeqCst);
                        bare.fetch_or(found.mtime() != 0x7fff_ffff, SeqCst);
                    }
                }
            });
            while seen.load(SeqCst) < 20 && !bare.load(SeqCst) {
                let how = CreateHow::Exclusive([0x7f, 255, 255, 255, 0x7f, 255, 255, 255]);
                block_on(bed.store.create(&root, name, &how, &ROOT)).unwrap();
                bed.remove(&root, b"f").unwrap();
            }
            done.store(true, SeqCst);
        });
        assert!(!bare.load(SeqCst), "a file was there without its verifier");
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
        let old = Timestamp { secs: -5, nanos: 250_000_000 };
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
fn at_the_quota_a_sparse_file_can_be_rewritten_where_it_has_data() {
    let options = Options { quota_bytes: 8 << 10, ..options() };
    everywhere_with(&options, |bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 1 << 20, &[1; 8 << 10]).unwrap();
        block_on(bed.store.commit(&file)).unwrap();
        assert_eq!(bed.write(&file, 1 << 20, &[2; 8 << 10]), Ok(8 << 10));
        assert_eq!(bed.write(&file, 0, b"x"), Err(FsError::QuotaExceeded));
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
fn without_the_metadata_cache_changes_behind_the_back_are_seen() {
    everywhere_with(&Options { metadata_cache: false, ..options() }, |bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        std::fs::write(bed.path().join("f"), b"behind").unwrap();
        assert_eq!(bed.attr(&file).size, 6);
        std::fs::rename(bed.path().join("f"), bed.path().join("g")).unwrap();
        assert_eq!(bed.lookup(&bed.root(), b"f").err(), Some(FsError::NotFound));
        assert_eq!(bed.lookup(&bed.root(), b"g").unwrap().key(), file.key());
    });
}

#[test]
fn without_the_metadata_cache_names_in_memory_need_no_other_thread() {
    let faulty = Faulty::new();
    let root = faulty.directory.join("root");
    let opens = faulty.kernel.add(Rule::new(&[Kind::Open], &root, Fault::Slow(Duration::ZERO)));
    faulty.run(|bed| {
        bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.store.set_metadata_cache(false);
    });
    let before = faulty.kernel.hits(opens);
    let (found, missing) = faulty.run(|bed| {
        let (file, none) = (Name::new(b"f").unwrap(), Name::new(b"none").unwrap());
        let root = bed.root();
        let _remembered = bed.lookup(&root, b"none");
        (ready(bed.store.lookup(&root, file)), ready(bed.store.lookup(&root, none)))
    });
    assert!(found.expect("it is answered at once").is_ok());
    assert_eq!(missing.expect("so is what is missing").err(), Some(FsError::NotFound));
    let during = faulty.kernel.hits(opens) - before;
    assert!(during <= 1, "one look at the disk, for the name that is missing: {during}");
    // A name that the kernel does not have in memory takes the way of the cache's misses.
    let forgotten = Fault::Fail(rustix::io::Errno::AGAIN);
    let cached = faulty.kernel.add(Rule::new(&[Kind::OpenCached], &root, forgotten));
    let (first, found) = faulty.run(|bed| {
        let (root, file) = (bed.root(), Name::new(b"f").unwrap());
        (ready(bed.store.lookup(&root, file)), bed.lookup(&root, b"f"))
    });
    assert!(first.is_none() && found.is_ok(), "it waits for another thread");
    assert_eq!(faulty.kernel.hits(cached), 2);
    faulty.kernel.lift(cached);
    let during = faulty.kernel.hits(opens);
    let (created, removed) = faulty.run(|bed| {
        let (root, file) = (bed.root(), Name::new(b"f").unwrap());
        let how = CreateHow::Unchecked(SetAttr::default());
        let created = ready(bed.store.create(&root, file, &how, &ROOT)).map(|made| made.is_ok());
        (created, ready(bed.store.remove(&root, file, &ROOT)).map(|gone| gone.is_ok()))
    });
    assert_eq!((created, removed), (Some(true), Some(true)), "of a name that is there");
    assert_eq!(faulty.kernel.hits(opens), during, "without a look at the disk");
}

#[test]
fn without_the_metadata_cache_the_identity_of_the_caller_before_decides_nothing() {
    everywhere_with(&Options { metadata_cache: false, ..options() }, |bed| {
        if !weir_store::switches_identity() {
            return;
        }
        let open = SetAttr { mode: Some(0o777), ..SetAttr::default() };
        bed.set(&bed.root(), &open, &ROOT).unwrap();
        let closed = bed.make(&bed.root(), b"closed", &MakeKind::Directory).unwrap();
        bed.create(&closed, b"f", 0o600, &ROOT).unwrap();
        bed.set(&closed, &SetAttr { mode: Some(0o700), ..open }, &ROOT).unwrap();
        let mine = Name::new(b"mine").unwrap();
        let how = CreateHow::Guarded(SetAttr::default());
        ready(bed.store.create(&bed.root(), mine, &how, &USER)).unwrap().unwrap();
        ready(bed.store.remove(&bed.root(), mine, &USER)).unwrap().unwrap();
        let found = ready(bed.store.lookup(&closed, Name::new(b"f").unwrap()));
        assert!(found.is_some_and(|found| found.is_ok()), "it is answered at once, as by root");
    });
}

/// The name belongs to another file after the cache was off, and a lookup from before ends late.
#[test]
fn a_lookup_that_outlasts_the_time_without_the_metadata_cache_leaves_no_name() {
    let faulty = Faulty::new();
    let root = faulty.directory.join("root");
    std::fs::write(root.join("f"), b"old").unwrap();
    std::fs::write(root.join("n"), b"newer").unwrap();
    // The first open finds the name, the second one opens the object.
    let held = Rule::new(&[Kind::Open], &root, Fault::Hold).when(When::Nth(2));
    let held = faulty.kernel.add(held);
    let lookup = faulty.run(|bed| {
        let (store, root) = (bed.store.clone(), bed.root());
        std::thread::spawn(move || {
            let found = block_on(store.lookup(&root, Name::new(b"f").unwrap()));
            found.map(|(_, attr)| attr.size)
        })
    });
    faulty.kernel.wait_for(held, 1);
    faulty.run(|bed| bed.store.set_metadata_cache(false));
    std::fs::rename(root.join("f"), root.join("g")).unwrap();
    std::fs::rename(root.join("n"), root.join("f")).unwrap();
    faulty.run(|bed| bed.store.set_metadata_cache(true));
    faulty.kernel.lift(held);
    assert_eq!(lookup.join().unwrap(), Ok(3), "it began before");
    let size = faulty.run(|bed| bed.attr(&bed.lookup(&bed.root(), b"f").unwrap()).size);
    assert_eq!(size, 5);
}

/// The value of a future, if it is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn the_metadata_cache_is_switched_while_the_volume_is_used() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"f", 0o644, &ROOT).unwrap();
        let other = bed.create(&root, b"other", 0o644, &ROOT).unwrap();
        let _cached = (bed.attr(&file), bed.lookup(&root, b"f").unwrap());
        let folded = |name: &[u8]| {
            let found = block_on(bed.store.lookup_folded(&root, Name::new(name).unwrap()));
            found.map(|found| found.name.to_vec())
        };
        // Builds the index of folded names.
        assert_eq!(folded(b"OTHER"), Ok(b"other".to_vec()));
        bed.store.set_metadata_cache(false);
        // Off, the kernel is asked: changes behind the back are seen, also of what was cached.
        std::fs::write(bed.path().join("f"), b"behind").unwrap();
        assert_eq!(bed.attr(&file).size, 6);
        std::fs::rename(bed.path().join("f"), bed.path().join("g")).unwrap();
        assert_eq!(bed.lookup(&root, b"f").err(), Some(FsError::NotFound));
        assert_eq!(bed.lookup(&root, b"g").unwrap().key(), file.key());
        // Changes through the store are as they are with it.
        bed.remove(&root, b"other").unwrap();
        assert_eq!(bed.lookup(&root, b"other").err(), Some(FsError::NotFound));
        drop(other);
        std::fs::write(bed.path().join("g"), b"again behind").unwrap();
        std::fs::write(bed.path().join("Late"), b"").unwrap();
        bed.store.set_metadata_cache(true);
        // On again, nothing from before is believed.
        assert_eq!(bed.attr(&file).size, 12);
        for name in [b"Late", b"LATE"] {
            assert_eq!(folded(name), Ok(b"Late".to_vec()));
        }
        assert_eq!(bed.lookup(&root, b"f").err(), Some(FsError::NotFound));
        assert_eq!(bed.lookup(&root, b"g").unwrap().key(), file.key());
        bed.write(&file, 0, &[7; 100]).unwrap();
        assert_eq!(bed.attr(&file).size, 100);
    });
}

#[test]
fn a_newer_format_is_refused_and_the_usage_survives_a_clean_stop() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        bed.store.close().unwrap();
        let usage = bed.directory.join("meta/usage");
        assert_eq!(std::fs::read_to_string(&usage).unwrap(), "weir-usage 2 clean 8192\n");
        let again = bed.reopen();
        assert_eq!((again.usage().bytes, again.usage().exact), (8192, true));
        let format = bed.directory.join("meta/format");
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "weir-volume 1\n");
        std::fs::write(&format, "weir-volume 2\n").unwrap();
        let refused = LocalStore::open(&bed.directory, &bed.options);
        assert!(matches!(refused, Err(OpenError::NewerFormat { found: 2, .. })));
        std::fs::write(&format, "nonsense").unwrap();
        let refused = LocalStore::open(&bed.directory, &bed.options);
        assert!(matches!(refused, Err(OpenError::DamagedFormat { .. })));
    });
}

#[test]
fn a_volume_with_files_that_lost_its_format_or_its_root_is_not_taken_for_a_new_one() {
    everywhere(|bed| {
        bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.store.close().unwrap();
        let (format, root) = (bed.directory.join("meta/format"), bed.directory.join("root"));
        let open = || LocalStore::open(&bed.directory, &bed.options);
        std::fs::remove_file(&format).unwrap();
        let refused = open().unwrap_err();
        assert!(matches!(refused, OpenError::NoFormat { .. }), "{refused}");
        assert!(refused.to_string().contains("write \"weir-volume 1\" to it"), "{refused}");
        assert!(!format.exists());
        std::fs::write(&format, "weir-volume 1\n").unwrap();
        open().unwrap();

        std::fs::rename(&root, bed.directory.join("aside")).unwrap();
        let refused = open().unwrap_err();
        assert!(matches!(refused, OpenError::Directory { what: "open its root", .. }), "{refused}");
        assert!(!root.exists());
        std::fs::remove_file(&format).unwrap();
        std::fs::write(bed.directory.join("meta/usage"), "weir-usage 2 clean 8192\n").unwrap();
        let refused = open().unwrap_err();
        assert!(matches!(refused, OpenError::NoFormat { .. }), "a usage: {refused}");
        std::fs::write(&format, "weir-volume 1\n").unwrap();
        assert!(!root.exists());
        std::fs::rename(bed.directory.join("aside"), &root).unwrap();
        open().unwrap();
    });
}

#[test]
fn a_volume_that_was_not_made_to_the_end_is_made_at_the_next_opening() {
    everywhere(|bed| {
        for made in [&["meta"][..], &["meta", "snap", "root"]] {
            let place = bed.directory.with_extension(made.len().to_string());
            made.iter().for_each(|name| std::fs::create_dir_all(place.join(name)).unwrap());
            let mark = place.join(NEW_VOLUME_MARK);
            std::fs::write(&mark, "").unwrap();
            let opened = LocalStore::open(&place, &bed.options).unwrap();
            assert_eq!((opened.usage().bytes, opened.usage().exact), (0, true));
            assert!(place.join("meta/format").exists());
            assert!(!mark.exists());
        }
    });
}

#[test]
fn an_emptied_directory_is_no_new_volume_and_nothing_is_made_in_it() {
    everywhere(|bed| {
        bed.store.close().unwrap();
        for name in ["meta", "snap", "root"] {
            std::fs::remove_dir_all(bed.directory.join(name)).unwrap();
        }
        let refused = LocalStore::open(&bed.directory, &bed.options).unwrap_err();
        assert!(matches!(refused, OpenError::NoFormat { .. }), "{refused}");
        assert!(refused.to_string().contains("delete the volume and create it again"), "{refused}");
        assert_eq!(bed.directory.read_dir().unwrap().count(), 0);
    });
}

#[test]
fn the_mark_of_a_new_volume_does_not_outlive_its_making() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        bed.store.close().unwrap();
        // The state after a power cut between the format and the removal of the mark.
        let mark = bed.directory.join(NEW_VOLUME_MARK);
        std::fs::write(&mark, "").unwrap();
        assert_eq!(bed.reopen().usage().bytes, 8192);
        assert!(!mark.exists());
    });
}

/// A fresh volume is counted in the background; `close` notes the usage only once that is done.
fn wait_until_counted(bed: &Bed) {
    while !bed.store.usage().exact {
        std::thread::yield_now();
    }
}

#[test]
fn after_an_unclean_stop_the_usage_is_counted_hard_links_once() {
    everywhere(|bed| {
        let root = bed.root();
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        let file = bed.create(&dir, b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 10_000]).unwrap();
        block_on(bed.store.link(&file, &root, Name::new(b"g").unwrap(), &ROOT)).unwrap();
        block_on(bed.store.commit(&file)).unwrap();
        let again = Bed {
            store: bed.reopen(),
            directory: bed.directory.clone(),
            options: bed.options.clone(),
            file_system: bed.file_system,
        };
        wait_until_counted(&again);
        assert_eq!(again.store.usage().bytes, 12_288);
    });
}

#[test]
fn a_mount_point_inside_is_not_crossed() {
    everywhere(|bed| {
        if bed.file_system == "temp" {
            return;
        }
        bed.make(&bed.root(), b"m", &MakeKind::Directory).unwrap();
        bed.reopen();
        let point = bed.path().join("m");
        let status =
            std::process::Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&point).status();
        assert!(status.unwrap().success());
        let fresh = bed.reopen();
        let found = block_on(fresh.lookup(&fresh.root(), Name::new(b"m").unwrap()));
        let status = std::process::Command::new("umount").arg(&point).status();
        assert!(status.unwrap().success());
        assert_eq!(found.err(), Some(FsError::CrossVolume));
    });
}

#[test]
fn attributes_say_what_the_kernel_says() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o640, &USER).err();
        assert_eq!(file, Some(FsError::AccessDenied));
        let file = bed.create(&bed.root(), b"f", 0o640, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        let (attr, kernel) = (bed.attr(&file), std::fs::metadata(bed.path().join("f")).unwrap());
        assert_eq!(attr.fileid, kernel.ino());
        assert_eq!(attr.used, kernel.blocks() * 512);
        assert_eq!(
            (attr.mtime.secs, i64::from(attr.mtime.nanos)),
            (kernel.mtime(), kernel.mtime_nsec())
        );
        assert_eq!(
            (attr.ctime.secs, i64::from(attr.ctime.nanos)),
            (kernel.ctime(), kernel.ctime_nsec())
        );
    });
}

#[test]
fn users_of_this_machine_are_kept_out_of_the_volume_s_directory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("volumes/7");
    let mode = |path: &std::path::Path| path.metadata().unwrap().mode() & 0o777;
    drop(Bed::open(path.clone(), options(), "temp"));
    assert_eq!((mode(&path), mode(&place.path().join("volumes"))), (0o700, 0o700));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    drop(Bed::open(path.clone(), options(), "temp"));
    assert_eq!(mode(&path), 0o700);
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
