//! Holes: made, found and counted.

use crate::common::{Bed, Faulty, Object, Place, ROOT, block_on, everywhere, options, places};
use rustix::io::Errno;
use std::os::unix::fs::{FileExt, MetadataExt};
use weir_core::attr::Change;
use weir_core::store::{Allocated, MakeKind};
use weir_core::{Credentials, FsError, SetAttr, Store};
use weir_store::StoreControl;
use weir_store::testing::{Fault, Kind, Rule};

const LENGTH: usize = 4096;
const UNIT: u64 = LENGTH as u64;

fn units_of(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(UNIT)).unwrap()
}

fn zero(bed: &Bed, file: &Object, from: u64, to: u64) -> Change {
    block_on(bed.store.zero_range(file, from, to)).unwrap()
}

fn allocated(bed: &Bed, file: &Object, from: u64, to: u64, most: usize) -> Allocated {
    block_on(bed.store.allocated_ranges(file, from, to, most)).unwrap()
}

fn ranges(bed: &Bed, file: &Object) -> Vec<(u64, u64)> {
    let found = allocated(bed, file, 0, u64::MAX, 100);
    assert!(!found.more);
    found.ranges.iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn what_is_zeroed_reads_as_zeros_and_is_no_longer_counted() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        let mut expected = vec![7; 10 * LENGTH + 100];
        bed.write(&file, 0, &expected).unwrap();
        assert_eq!(bed.store.usage().bytes, 11 * UNIT);
        let before = bed.attr(&file);
        let change = zero(bed, &file, UNIT + 10, 4 * UNIT + 1);
        expected[LENGTH + 10..4 * LENGTH + 1].fill(0);
        let after = change.after.unwrap();
        assert_eq!((change.before, after.size), (Some(before), before.size));
        assert!(after.mtime >= before.mtime && after.ctime > before.ctime);
        assert_eq!(bed.store.usage().bytes, 9 * UNIT, "on {}", bed.file_system);
        let end = 10 * UNIT + 100;
        assert_eq!(ranges(bed, &file), [(0, 2 * UNIT), (4 * UNIT, end)]);
        // The last block goes whole, since nothing is behind the end.
        zero(bed, &file, 10 * UNIT, u64::MAX);
        expected[10 * LENGTH..].fill(0);
        assert_eq!(bed.store.usage().bytes, 8 * UNIT);
        assert_eq!(ranges(bed, &file), [(0, 2 * UNIT), (4 * UNIT, 10 * UNIT)]);
        let none = zero(bed, &file, end, u64::MAX);
        assert_eq!(none.before, none.after, "behind the end is nothing");
        assert_eq!(bed.read(&file, 0, 1 << 20).unwrap(), (expected.clone(), true));
        // Bytes that were zeroed can be written again, and survive.
        bed.write(&file, 2 * UNIT, &[9; 10]).unwrap();
        expected[2 * LENGTH..][..10].fill(9);
        assert_eq!(bed.store.usage().bytes, 9 * UNIT);
        block_on(bed.store.commit(&file)).unwrap();
        assert_eq!(std::fs::read(bed.path().join("f")).unwrap(), expected);
        bed.remove(&bed.root(), b"f").unwrap();
        assert_eq!(bed.store.usage().bytes, 0);
    });
}

#[test]
fn a_part_of_a_unit_that_is_a_hole_leaves_the_unit_counted() {
    let Some(place) = Place::with_small_blocks() else { return };
    let bed = Bed::open(place.path().join("volume"), options(), place.name);
    let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
    bed.write(&file, 0, &[7; 3 * LENGTH]).unwrap();
    zero(&bed, &file, UNIT, UNIT + 3 * 1024);
    assert_eq!(bed.store.usage().bytes, 3 * UNIT);
    assert_eq!(ranges(&bed, &file), [(0, UNIT), (UNIT + 3072, 3 * UNIT)]);
    zero(&bed, &file, UNIT + 3 * 1024, 2 * UNIT);
    assert_eq!(bed.store.usage().bytes, 2 * UNIT);
}

#[test]
fn ranges_are_told_as_far_as_asked_for_and_whether_there_are_more() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        assert_eq!(allocated(bed, &file, 0, u64::MAX, 0), Allocated::default());
        bed.write(&file, 0, &[1; 100]).unwrap();
        let of = |ranges: &[(u64, u64)], more| {
            let ranges = ranges.iter().map(|(start, end)| *start..*end).collect();
            Allocated { ranges, more }
        };
        assert_eq!(allocated(bed, &file, 10, u64::MAX, 1), of(&[(10, 100)], false));
        assert_eq!(allocated(bed, &file, 0, 50, 0), of(&[], true));
        for number in 1..4 {
            bed.write(&file, number * 4 * UNIT, &[1; LENGTH]).unwrap();
        }
        block_on(bed.store.set_size(&file, 100 * UNIT)).unwrap();
        let at = |number: u64| (number * 4 * UNIT, (number * 4 + 1) * UNIT);
        assert_eq!(ranges(bed, &file), [0, 1, 2, 3].map(at));
        assert_eq!(allocated(bed, &file, 1, u64::MAX, 2), of(&[(1, UNIT), at(1)], true));
        let inside = (8 * UNIT + 5, 8 * UNIT + 9);
        assert_eq!(allocated(bed, &file, inside.0, inside.1, 2), of(&[inside], false));
        assert_eq!(allocated(bed, &file, UNIT, 4 * UNIT, 2), of(&[], false));
        let again = bed.reopen();
        let same = block_on(again.resolve(&bed.store.key(&file))).unwrap();
        let found = block_on(again.allocated_ranges(&same, 0, u64::MAX, 9)).unwrap();
        assert_eq!(found, of(&[0, 1, 2, 3].map(at), false), "nobody has asked before");
    });
}

#[test]
fn for_who_has_decided_sizes_and_holes_are_writes() {
    everywhere(|bed| {
        bed.open_to_all(&bed.root());
        let file = bed.create(&bed.root(), b"f", 0o600, &Credentials::new(1, 1)).unwrap();
        bed.write(&file, 0, &[1; 20_000]).unwrap();
        let privileged = SetAttr { mode: Some(0o6711), ..SetAttr::default() };
        let mode = |change: Change| change.after.unwrap().mode;
        bed.set(&file, &privileged, &ROOT).unwrap();
        assert_eq!(mode(block_on(bed.store.set_size(&file, 10_000)).unwrap()), 0o711);
        assert_eq!(bed.store.usage().bytes, 3 * UNIT);
        bed.set(&file, &privileged, &ROOT).unwrap();
        assert_eq!(mode(zero(bed, &file, 0, 1)), 0o711);
        bed.set(&file, &privileged, &ROOT).unwrap();
        let size = SetAttr { size: Some(5), ..SetAttr::default() };
        bed.set(&file, &size, &ROOT).unwrap();
        assert_eq!(bed.attr(&file).mode, 0o6711, "the superuser keeps them");
        let far = block_on(bed.store.set_size(&file, 1 << 63));
        assert_eq!(far.err(), Some(FsError::TooLarge));
        let link = bed.make(&bed.root(), b"l", &MakeKind::Symlink(b"f".to_vec())).unwrap();
        for (object, error) in [(&bed.root(), FsError::IsDirectory), (&link, FsError::WrongKind)] {
            assert_eq!(block_on(bed.store.set_size(object, 0)).err(), Some(error));
            assert_eq!(block_on(bed.store.zero_range(object, 0, 1)).err(), Some(error));
            let ranges = block_on(bed.store.allocated_ranges(object, 0, 1, 1));
            assert_eq!(ranges.err(), Some(error));
        }
    });
}

#[test]
fn a_hole_that_could_not_be_made_changes_nothing() {
    let faulty = Faulty::new();
    let make = |bed: &Bed| {
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        bed.write(&file, 0, &[7; 8 * LENGTH]).unwrap();
    };
    faulty.run(make);
    for (errno, error) in [(Errno::OPNOTSUPP, FsError::NotSupported), (Errno::IO, FsError::Io)] {
        let rule = Rule::new(&[Kind::Resize], faulty.directory.join("root"), Fault::Fail(errno));
        let rule = faulty.kernel.add(rule);
        let done = faulty.run(|bed| {
            let file = bed.lookup(&bed.root(), b"f").unwrap();
            let done = block_on(bed.store.zero_range(&file, 0, 4 * UNIT)).err();
            assert_eq!(bed.read(&file, 0, 1 << 20).unwrap().0, vec![7; 8 * LENGTH]);
            (done, bed.store.usage().bytes)
        });
        assert_eq!((done, faulty.kernel.hits(rule)), ((Some(error), 8 * UNIT), 1));
        faulty.kernel.lift(rule);
    }
}

#[test]
fn holes_beside_writes_leave_the_usage_exact() {
    for place in places().into_iter().chain(Place::with_small_blocks()) {
        let bed = Bed::open(place.path().join("volume"), options(), place.name);
        let file = bed.create(&bed.root(), b"f", 0o600, &ROOT).unwrap();
        std::thread::scope(|threads| {
            for thread in 0..3u64 {
                let (bed, file) = (&bed, &file);
                threads.spawn(move || {
                    let mut random = crate::common::Random(thread);
                    for _ in 0..300 {
                        let (from, length) = (random.word() % 200_000, random.word() % 30_000);
                        match random.below(5) {
                            0 => drop(block_on(bed.store.set_size(file, from)).unwrap()),
                            1 | 2 => drop(zero(bed, file, from, from + length)),
                            _ => drop(
                                bed.write(file, from, &vec![3; usize::try_from(length).unwrap()])
                                    .unwrap(),
                            ),
                        }
                    }
                });
            }
        });
        let found = std::fs::File::open(bed.path().join("f")).unwrap();
        let (mut units, mut block, size) = (0, vec![0; LENGTH], found.metadata().unwrap().size());
        let mut data = vec![false; units_of(size)];
        for (start, end) in ranges(&bed, &file) {
            data[units_of(start + 1) - 1..units_of(end)].fill(true);
        }
        for (number, data) in data.iter().enumerate() {
            let count = found.read_at(&mut block, number as u64 * UNIT).unwrap();
            assert!(*data || block[..count].iter().all(|byte| *byte == 0), "data in a hole");
            units += u64::from(*data);
        }
        assert_eq!(bed.store.usage().bytes, units * UNIT, "on {}", place.name);
        bed.store.rescan();
        while bed.store.usage().counting.is_some() {
            std::thread::yield_now();
        }
        assert_eq!(bed.store.usage().bytes, units * UNIT, "recounted on {}", place.name);
    }
}
