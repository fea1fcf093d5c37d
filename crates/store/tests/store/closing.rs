//! Many volumes of one server: what an idle one holds, and what closing all of them does.

use crate::common::{Bed, ROOT, options, places};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weir_core::FsError;
use weir_store::{LocalStore, StoreControl};

const VOLUMES: usize = 40;

fn beds(place: &Path) -> Vec<Bed> {
    let open = |n| Bed::open(place.join(format!("v{n}")), options(), "one of many");
    (0..VOLUMES).map(open).collect()
}

fn usage(bed: &Bed) -> PathBuf {
    bed.directory.join("meta/usage")
}

/// A record is replaced as a whole, so one that was not written is the same file still.
fn identity(bed: &Bed) -> u64 {
    std::fs::metadata(usage(bed)).unwrap().ino()
}

fn descriptors_below(directory: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(directory)).count()
}

#[test]
fn volumes_closed_together_are_recorded_where_they_have_changed_and_only_there() {
    for place in places() {
        let beds = beds(place.path());
        for bed in beds.iter().step_by(3) {
            let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
            bed.write(&file, 0, &[1; 5000]).unwrap();
        }
        let before: Vec<_> = beds.iter().map(identity).collect();
        let stores: Vec<_> = beds.iter().map(|bed| &bed.store).collect();
        assert_eq!(LocalStore::close_all(&stores), vec![Ok(()); VOLUMES]);
        for (at, bed) in beds.iter().enumerate() {
            let changed = at.is_multiple_of(3);
            let record = std::fs::read_to_string(usage(bed)).unwrap();
            let used = if changed { 8192 } else { 0 };
            assert_eq!(record, format!("weir-usage 2 clean {used}\n"), "v{at}");
            assert_eq!(identity(bed) != before[at], changed, "v{at}");
            let again = bed.reopen();
            assert_eq!((again.usage().bytes, again.usage().exact), (used, true));
        }
    }
}

#[test]
fn one_that_cant_be_recorded_is_told_of_and_keeps_none_of_the_others() {
    let place = tempfile::tempdir().unwrap();
    let beds = beds(place.path());
    for bed in &beds {
        let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
        bed.write(&file, 0, &[1; 5000]).unwrap();
    }
    std::fs::rename(beds[7].directory.join("meta"), beds[7].directory.join("away")).unwrap();
    let stores: Vec<_> = beds.iter().map(|bed| &bed.store).collect();
    for (at, closed) in LocalStore::close_all(&stores).into_iter().enumerate() {
        let expected = if at == 7 { Err(FsError::NotFound) } else { Ok(()) };
        assert_eq!(closed, expected, "v{at}");
    }
    std::fs::rename(beds[7].directory.join("away"), beds[7].directory.join("meta")).unwrap();
    assert_eq!(stores[7].close(), Ok(()), "what was not written is written the next time");
    let record = std::fs::read_to_string(usage(&beds[7])).unwrap();
    assert_eq!(record, "weir-usage 2 clean 8192\n");
}

#[test]
fn an_idle_volume_holds_one_descriptor() {
    let place = tempfile::tempdir().unwrap();
    let beds = beds(place.path());
    assert_eq!(descriptors_below(place.path()), VOLUMES);
    let file = beds[0].create(&beds[0].root(), b"f", 0o644, &ROOT).unwrap();
    beds[0].write(&file, 0, &[1; 5000]).unwrap();
    assert_eq!(descriptors_below(place.path()), VOLUMES + 1, "the file");
}
