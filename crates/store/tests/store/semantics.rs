//! The local store's promises that concern the disk under it, its caches and its directory. Those
//! that every kind of store keeps are in `promises.rs`.

use crate::common::{Bed, Faulty, ROOT, block_on, everywhere, everywhere_with, options};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_core::place::NEW_VOLUME_MARK;
use weir_core::store::{CreateHow, MakeKind};
use weir_core::{Credentials, FsError, Name, SetAttr, Store};
use weir_store::testing::{Fault, Kind, Rule, When};
use weir_store::{LocalStore, OpenError, Options, StoreControl};

const USER: Credentials = Credentials::new(1001, 1002);

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
