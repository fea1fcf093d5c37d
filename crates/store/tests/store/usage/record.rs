//! The usage that survives the server, enforcement where space is short, and counting on demand.

use super::walk::{count, data_below};
use crate::common::{Bed, ROOT, block_on, everywhere, everywhere_with, options};
use weir_core::store::MakeKind;
use weir_core::{FsError, SetAttr, Store};
use weir_store::{Options, StoreControl};

fn record(bed: &Bed) -> String {
    std::fs::read_to_string(bed.directory.join("meta/usage")).unwrap()
}

#[test]
fn what_did_not_change_since_it_was_opened_need_not_be_counted_after_a_crash() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        assert!(record(bed).starts_with("weir-usage 2 open "), "{}", record(bed));
        bed.store.close().unwrap();
        assert_eq!(record(bed), "weir-usage 2 clean 8192\n");
        let second = bed.reopen();
        let (found, _) =
            block_on(second.lookup(&second.root(), weir_core::Name::new(b"f").unwrap())).unwrap();
        block_on(second.read(&found, 0, 5000, Vec::new())).unwrap();
        let data = weir_core::Shared::from(vec![2; 5000]);
        let unstable = weir_core::store::Stability::Unstable;
        block_on(second.write(&found, 0, data, unstable)).unwrap();
        assert_eq!(record(bed), "weir-usage 2 clean 8192\n", "an overwrite changes no usage");
        let third = bed.reopen();
        assert_eq!((third.usage().bytes, third.usage().exact), (8192, true));
        assert_eq!((third.usage().counting, third.usage().counted), (None, None));
    });
}

#[test]
fn a_record_of_the_first_version_or_none_is_counted_anew() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        for old in [Some("4096\n"), Some("nonsense"), None] {
            bed.store.close().unwrap();
            let path = bed.directory.join("meta/usage");
            match old {
                Some(text) => std::fs::write(path, text).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
            let again = bed.reopen();
            count(&again);
            assert_eq!((again.usage().bytes, again.usage().exact), (8192, true));
            // The thread that counted puts it on record, and must not do so in the next round.
            while std::fs::read_to_string(bed.directory.join("meta/usage")).ok().as_deref()
                != Some("weir-usage 2 clean 8192\n")
            {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    });
}

#[test]
fn a_quota_lowered_below_the_usage_stops_growth_until_enough_is_freed() {
    everywhere(|bed| {
        let root = bed.root();
        for name in [b"a", b"b"] {
            let file = bed.create(&root, name, 0o644, &ROOT).unwrap();
            bed.write(&file, 0, &[1; 40_960]).unwrap();
        }
        bed.store.set_quota_bytes(61_440);
        let file = bed.lookup(&root, b"a").unwrap();
        let space = block_on(bed.store.fs_stat()).unwrap();
        assert_eq!((space.total_bytes, space.free_bytes), (61_440, 0));
        assert_eq!(bed.write(&file, 40_960, b"x"), Err(FsError::QuotaExceeded));
        assert_eq!(bed.write(&file, 0, &[2; 40_960]), Ok(40_960), "what is there may be rewritten");
        assert_eq!(bed.store.usage().bytes, 81_920);
        bed.remove(&root, b"b").unwrap();
        assert_eq!(bed.write(&file, 40_960, &[3; 20_480]), Ok(20_480), "up to the last unit");
        assert_eq!(bed.write(&file, 61_440, b"x"), Err(FsError::QuotaExceeded));
        assert_eq!(bed.store.usage().bytes, data_below(&bed.path()));
    });
}

#[test]
fn a_write_that_the_quota_refuses_leaves_nothing_behind() {
    let options = Options { quota_bytes: 40_960, ..options() };
    everywhere_with(&options, |bed| {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 10_000]).unwrap();
        assert_eq!(bed.write(&file, 8192, &[2; 32_769]), Err(FsError::QuotaExceeded));
        assert_eq!(bed.write(&file, 1 << 30, &[2; 32_768]), Err(FsError::QuotaExceeded));
        assert_eq!(bed.attr(&file).size, 10_000);
        assert_eq!(bed.read(&file, 0, 50_000).unwrap(), (vec![1; 10_000], true));
        assert_eq!(bed.store.usage().bytes, 12_288);
        assert_eq!(bed.write(&file, 8192, &[2; 32_768]), Ok(32_768), "what fits, exactly");
        assert_eq!(bed.store.usage().bytes, 40_960);
    });
}

#[test]
fn on_a_full_disk_short_writes_count_what_is_there_and_removing_works() {
    everywhere(|bed| {
        // Only on the small file systems made for tests.
        if bed.file_system == "temp" {
            return;
        }
        let root = bed.root();
        let mut names = Vec::new();
        'full: for number in 0..100u32 {
            let name = format!("f{number}").into_bytes();
            let Ok(file) = bed.create(&root, &name, 0o644, &ROOT) else { break };
            names.push(name);
            // With holes, so that a refused write has to be looked at closely.
            for piece in 0..40u64 {
                match bed.write(&file, piece * 151_000, &[1; 150_000]) {
                    Ok(150_000) => {}
                    Ok(short) => assert!(short < 150_000),
                    Err(error) => {
                        assert_eq!(error, FsError::NoSpace);
                        break 'full;
                    }
                }
            }
        }
        assert_eq!(bed.store.usage().bytes, data_below(&bed.path()), "on {}", bed.file_system);
        bed.store.close().unwrap();
        let again = Bed {
            store: bed.reopen(),
            directory: bed.directory.clone(),
            options: bed.options.clone(),
            file_system: bed.file_system,
        };
        count(&again.store);
        assert_eq!(again.store.usage().bytes, data_below(&bed.path()));
        for name in names {
            again.remove(&again.root(), &name).unwrap();
        }
        assert_eq!(again.store.usage().bytes, 0);
    });
}

#[test]
fn a_rescan_finds_what_was_changed_behind_the_servers_back() {
    everywhere(|bed| {
        let root = bed.root();
        let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
        for name in [b"a", b"b"] {
            let file = bed.create(&dir, name, 0o644, &ROOT).unwrap();
            bed.write(&file, 0, &[1; 40_960]).unwrap();
        }
        let open = bed.lookup(&dir, b"a").unwrap();
        let path = bed.path().join("d");
        std::fs::OpenOptions::new()
            .write(true)
            .open(path.join("a"))
            .unwrap()
            .set_len(5000)
            .unwrap();
        std::fs::remove_file(path.join("b")).unwrap();
        std::fs::write(path.join("c"), [1; 20_000]).unwrap();
        assert_eq!(bed.store.usage().bytes, 81_920);
        assert!(bed.store.rescan());
        count(&bed.store);
        let counted = bed.store.usage().counted.unwrap();
        assert_eq!((counted.before_bytes, counted.after_bytes), (81_920, 8192 + 20_480));
        assert_eq!((counted.files, counted.left_out), (2, 0));
        // The cached attributes of the open file were read anew too.
        bed.set(&open, &SetAttr { size: Some(0), ..SetAttr::default() }, &ROOT).unwrap();
        assert_eq!(bed.store.usage().bytes, 20_480);
    });
}

#[test]
fn what_a_rescan_finds_is_on_record_though_nothing_was_changed_since() {
    everywhere(|bed| {
        for name in [b"a", b"b"] {
            let file = bed.create(&bed.root(), name, 0o644, &ROOT).unwrap();
            bed.write(&file, 0, &[1; 40_960]).unwrap();
        }
        bed.store.close().unwrap();
        let again = bed.reopen();
        std::fs::remove_file(bed.path().join("b")).unwrap();
        assert!(again.rescan());
        count(&again);
        assert_eq!(again.usage().bytes, 40_960);
        // Written by the thread that counted, after it told of the end.
        while record(bed) != "weir-usage 2 clean 40960\n" {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let third = bed.reopen();
        assert_eq!((third.usage().bytes, third.usage().exact), (40_960, true));
    });
}
