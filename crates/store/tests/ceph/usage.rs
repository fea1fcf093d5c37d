//! Usage and quota on CephFS: sizes of files, on record, and taken from CephFS after an unclean
//! stop.

use crate::common::{Bed, ROOT, block_on, everywhere, everywhere_with, options};
use weir_core::store::Allocated;
use weir_core::{FsError, Name, SetAttr, Store};
use weir_store::{Options, StoreControl};

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn used(bed: &Bed) -> u64 {
    bed.store.usage().bytes
}

#[test]
fn usage_is_the_size_of_files_and_hard_links_count_once() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
        bed.write(&file, 1000, &[1; 500]).unwrap();
        assert_eq!(used(bed), 1500, "the hole too");
        block_on(bed.store.link(&file, &root, name("g"), &ROOT)).unwrap();
        bed.remove(&root, b"f").unwrap();
        assert_eq!(used(bed), 1500);
        bed.set(&file, &SetAttr { size: Some(100), ..SetAttr::default() }, &ROOT).unwrap();
        assert_eq!(used(bed), 100);
        block_on(bed.store.zero_range(&file, 0, 50)).unwrap();
        assert_eq!((used(bed), bed.read(&file, 0, 60).unwrap().0[49]), (100, 0));
        let all = block_on(bed.store.allocated_ranges(&file, 10, u64::MAX, 1)).unwrap();
        assert_eq!(all, Allocated { ranges: std::iter::once(10..100).collect(), more: false });
        let other = bed.create(&root, b"h", 0o600, &ROOT).unwrap();
        bed.write(&other, 0, &[1; 30]).unwrap();
        block_on(bed.store.rename(&root, name("h"), &root, name("g"), &ROOT)).unwrap();
        assert_eq!(used(bed), 30, "what was replaced is gone");
        // It is held open: its data is not counted, whatever happens to it.
        bed.write(&file, 0, &[1; 4000]).unwrap();
        assert_eq!(used(bed), 30);
        bed.remove(&root, b"g").unwrap();
        assert_eq!(used(bed), 0);
    });
}

#[test]
fn many_writers_of_one_file_leave_the_usage_exact() {
    everywhere_with(&Options { quota_bytes: 100_000, ..options() }, |bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        std::thread::scope(|threads| {
            for thread in 0..4u64 {
                let (bed, file) = (&bed, &file);
                threads.spawn(move || {
                    for round in 0..20u64 {
                        let at = (thread * 7 + round * 13) % 40 * 3000;
                        let done = bed.write(file, at, &[3; 3000]);
                        assert!(matches!(done, Ok(3000) | Err(FsError::QuotaExceeded)), "{done:?}");
                    }
                });
            }
        });
        assert_eq!(used(bed), bed.attr(&file).size);
        assert!(used(bed) <= 100_000);
    });
}

#[test]
fn usage_is_on_record_after_a_clean_stop_and_taken_from_ceph_after_another() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
        bed.store.close().unwrap();
        let again = bed.reopen();
        assert_eq!((again.usage().bytes, again.usage().exact), (5000, true));
        // The next one opens it without that it was closed.
        let third = bed.reopen();
        while !third.usage().exact {
            std::thread::sleep(std::time::Duration::from_millis(50));
            third.rescan();
        }
        let usage = third.usage();
        assert_eq!((usage.bytes, usage.counted.map(|counted| counted.files)), (5000, Some(1)));
    });
}
