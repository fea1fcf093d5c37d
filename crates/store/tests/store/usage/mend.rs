//! Files after a power cut: blocks that were allocated and never written. A recount after an
//! unclean stop makes holes of them, and takes nothing away that anybody wrote.

use super::walk::{count, data_below, forget};
use crate::common::{Bed, Object, ROOT, Random, block_on, everywhere, options};
use rustix::fs::{FallocateFlags, XattrFlags, fallocate, fsetxattr, ioctl_ficlone};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weir_core::attr::SetTime;
use weir_core::store::Stability;
use weir_core::{Name, SetAttr, Shared, Store, Timestamp};
use weir_store::{LocalStore, StoreControl, switches_identity};

const UNIT: u64 = 4096;
/// Units of a file under concurrent writes.
const UNITS: usize = 768;
const TRIES: u64 = 10;

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Leaves the units `first..end` of a file as a power cut would.
fn never_written(path: &Path, first: u64, end: u64) {
    let (first, end) = (first * UNIT, end * UNIT);
    let flags = FallocateFlags::KEEP_SIZE;
    fallocate(open(path), flags, first, end - first).unwrap();
}

/// Lets the next server find that the volume was not closed.
fn unclean(bed: &Bed) {
    let record = format!("weir-usage 2 open 0 {}\n", 1u64 << 30);
    std::fs::write(bed.directory.join("meta/usage"), record).unwrap();
}

fn blocks(path: &Path) -> u64 {
    path.metadata().unwrap().blocks() * 512 / UNIT
}

/// A file of ten units, of which the first and the last hold data and the others were never
/// written.
fn damaged(bed: &Bed, name: &str) -> std::path::PathBuf {
    let file = bed.create(&bed.root(), name.as_bytes(), 0o644, &ROOT).unwrap();
    bed.write(&file, 0, &[1; 4096]).unwrap();
    bed.write(&file, 9 * UNIT, &[2; 4000]).unwrap();
    let path = bed.path().join(name);
    never_written(&path, 1, 9);
    open(&path).sync_all().unwrap();
    path
}

#[test]
fn what_was_never_written_is_a_hole_after_the_recount_that_follows_an_unclean_stop() {
    everywhere(|bed| {
        let path = damaged(bed, "f");
        assert!(blocks(&path) >= 10, "{} units on {}", blocks(&path), bed.file_system);
        bed.store.close().unwrap();
        // Once it was read, the kernel calls it data.
        let content = std::fs::read(&path).unwrap();
        assert_eq!(data_below(&bed.path()), 10 * UNIT);

        let clean = bed.reopen();
        count(&clean);
        assert!(blocks(&path) >= 10, "nothing is done to a volume that was closed");
        let before = path.metadata().unwrap();
        unclean(bed);
        let store = bed.reopen();
        count(&store);
        let after = path.metadata().unwrap();
        assert_eq!(store.usage().bytes, 2 * UNIT, "on {}", bed.file_system);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        assert_eq!(data_below(&bed.path()), 2 * UNIT, "whoever reads it");
        assert_eq!(after.len(), before.len());
        assert_eq!((after.mtime(), after.mtime_nsec()), (before.mtime(), before.mtime_nsec()));
        assert_eq!((after.atime(), after.mode()), (before.atime(), before.mode()));
    });
}

#[test]
#[ignore = "run without privilege by a test of `alone`"]
fn as_nobody() {
    assert!(!switches_identity());
    let place = tempfile::tempdir().unwrap();
    let bed = Bed::open(place.path().join("volume"), options(), "temp");
    let [plain, set_id] = ["plain", "set-id"].map(|name| damaged(&bed, name));
    std::fs::set_permissions(&set_id, Permissions::from_mode(0o6755)).unwrap();
    let before = plain.metadata().unwrap();
    unclean(&bed);
    let store = bed.reopen();
    count(&store);
    assert_eq!(store.usage().bytes, data_below(&bed.path()));
    assert!(blocks(&plain) < 10, "{} units", blocks(&plain));
    assert_eq!(plain.metadata().unwrap().modified().unwrap(), before.modified().unwrap());
    assert_eq!((set_id.metadata().unwrap().mode() & 0o7777, blocks(&set_id) >= 10), (0o6755, true));
}

#[test]
fn a_file_that_may_not_be_changed_is_left_as_it_is() {
    everywhere(|bed| {
        // No such flags or rights on some of those.
        if bed.file_system == "temp" {
            return;
        }
        let paths = ["immutable", "appending", "capable"].map(|name| damaged(bed, name));
        let flag = |flag: &str, path: &Path| {
            assert!(Command::new("chattr").arg(flag).arg(path).status().unwrap().success());
        };
        flag("+i", &paths[0]);
        flag("+a", &paths[1]);
        // Version 2 of the format, the right to bind low ports.
        let rights = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        fsetxattr(open(&paths[2]), "security.capability", &rights, XattrFlags::empty()).unwrap();
        unclean(bed);
        let store = bed.reopen();
        count(&store);
        assert_eq!(store.usage().counted.unwrap().left_out, 0);
        assert_eq!(store.usage().bytes, data_below(&bed.path()));
        let mut buffer = [0u8; 64];
        let kept = rustix::fs::fgetxattr(open(&paths[2]), "security.capability", &mut buffer);
        assert_eq!(kept, Ok(rights.len()));
        for path in &paths {
            assert!(blocks(path) >= 10, "{} on {}", path.display(), bed.file_system);
        }
        flag("-i", &paths[0]);
        flag("-a", &paths[1]);
    });
}

/// The file of a try: what each unit holds by right, one byte all over it; nothing: a hole.
type Units = Vec<Option<u8>>;

/// Makes a file whose units are, at random, data shared with another file (if it is to `share` and
/// the file system can), data of its own, holes, and blocks that were never written; some of it is
/// in memory only. Gives what they hold, and how many of them the copy holds.
fn mixed(bed: &Bed, name: &str, random: &mut Random, share: bool) -> (Units, u64) {
    let file = bed.create(&bed.root(), name.as_bytes(), 0o644, &ROOT).unwrap();
    let mut units: Units = vec![None; UNITS];
    let write = |at: usize, units: &mut Units, byte: u8| {
        bed.write(&file, at as u64 * UNIT, &[byte; 4096]).unwrap();
        units[at] = Some(byte);
    };
    // Stretches, so that mending takes a while.
    let mut at = 0;
    while at < UNITS {
        let end = (at + 1 + random.below(200)).min(UNITS);
        if end == UNITS || random.below(3) == 0 {
            (at..end).for_each(|at| write(at, &mut units, 1));
        }
        at = end;
    }
    let path = bed.path().join(name);
    open(&path).sync_all().unwrap();
    let copy = bed.path().join(format!("{name}.copy"));
    let shared = share && ioctl_ficlone(File::create(copy).unwrap(), open(&path)).is_ok();
    assert!(shared || !share || bed.file_system != "xfs");
    let copied = if shared { units.iter().flatten().count() as u64 } else { 0 };
    let mut at = 0;
    while let Some(start) = (at..UNITS).find(|&at| units[at].is_none()) {
        let end = (start..UNITS).find(|&at| units[at].is_some()).unwrap_or(UNITS);
        if random.below(4) > 0 {
            never_written(&path, start as u64, end as u64);
        }
        at = end;
    }
    for at in 0..UNITS {
        if random.below(20) == 0 {
            write(at, &mut units, 2);
        }
    }
    if random.below(2) == 0 {
        open(&path).sync_all().unwrap();
    }
    // Unstable data that is still in memory, over what was never written too.
    for at in 0..UNITS {
        if random.below(20) == 0 {
            write(at, &mut units, 3);
        }
    }
    if random.below(2) == 0 {
        std::fs::read(&path).unwrap();
    }
    (units, copied)
}

/// Writes to units of its own, every `of`th, until told otherwise.
fn scribble(store: &LocalStore, file: &Object, (own, of): (usize, usize), seed: u64) -> Units {
    let mut random = Random(seed);
    let mut units: Units = vec![None; UNITS];
    for _ in 0..40 {
        let at = random.below(UNITS / of) * of + own;
        let byte = random.word().to_le_bytes()[0] | 4;
        let data = Shared::from(vec![byte; 4096]);
        let how = [Stability::Unstable, Stability::Unstable, Stability::DataSync];
        let stability = how[random.below(40).min(2)];
        block_on(store.write(file, at as u64 * UNIT, data, stability)).unwrap();
        units[at] = Some(byte);
        if random.below(30) == 0 {
            block_on(store.commit(file)).unwrap();
        }
    }
    units
}

fn compare(bed: &Bed, name: &str, units: &Units, when: &str) {
    let content = std::fs::read(bed.path().join(name)).unwrap();
    for (at, (unit, found)) in units.iter().zip(content.chunks(4096)).enumerate() {
        let byte = unit.unwrap_or(0);
        let wrong = found.iter().position(|found| *found != byte);
        assert_eq!(wrong, None, "unit {at} of {name} {when}: {} for {byte}", found[0]);
    }
}

#[test]
fn nothing_written_is_lost_while_files_are_mended_under_concurrent_writes() {
    let tries = std::env::var("WEIR_MEND_TRIES").map_or(TRIES, |text| text.parse().unwrap());
    everywhere(|bed| {
        for attempt in 0..tries {
            let mut random = Random(attempt);
            let share = random.below(2) == 0;
            let bed = Bed::open(
                bed.directory.with_file_name(format!("try{attempt}")),
                options(),
                bed.file_system,
            );
            let (mut units, first) = mixed(&bed, "f", &mut random, share);
            let (still, second) = mixed(&bed, "still", &mut random, share);
            let copied = [first, second];
            unclean(&bed);
            let store = bed.reopen();
            let wait = Duration::from_micros(random.word() % 500);
            let lookup = |name: &str| {
                let name = Name::new(name.as_bytes()).unwrap();
                block_on(store.lookup(&store.root(), name)).unwrap().0
            };
            let (file, other) = (lookup("f"), lookup("still"));
            let mtime = Timestamp { secs: 1_000_000_000, nanos: 7 };
            let written = std::thread::scope(|scope| {
                let writers = [0, 1, 2].map(|own| {
                    let (store, file) = (&store, &file);
                    scope.spawn(move || {
                        std::thread::sleep(wait);
                        scribble(store, file, (own, 3), attempt * 3 + own as u64)
                    })
                });
                std::thread::sleep(wait);
                let set = SetAttr { mtime: SetTime::To(mtime), ..SetAttr::default() };
                block_on(store.set_attr(&other, &set, None, &ROOT)).unwrap();
                writers.map(|writer| writer.join().unwrap())
            });
            for (at, unit) in written.iter().flat_map(|units| units.iter().enumerate()) {
                units[at] = unit.or(units[at]);
            }
            count(&store);
            let when = format!("in try {attempt} on {}", bed.file_system);
            assert_eq!(block_on(store.attr(&other)).unwrap().mtime, mtime, "{when}");
            for _ in 0..2 {
                compare(&bed, "f", &units, &when);
                compare(&bed, "still", &still, &when);
                forget(&bed.path());
            }
            let held = [&units, &still].map(|units| units.iter().flatten().count() as u64);
            let expected = (held[0] + held[1] + copied[0] + copied[1]) * UNIT;
            assert_eq!(data_below(&bed.path()), expected, "{when}");
            // XFS reserves blocks around shared blocks, which makes holes there look like data once
            // they are read, whoever reads them.
            if copied == [0, 0] {
                assert_eq!(store.usage().bytes, expected, "{when}");
            }
            drop((file, other, store));
            drop(bed.store);
            reset_and_remove(&bed.directory);
        }
    });
}

fn reset_and_remove(directory: &Path) {
    weir_store::reset_identity().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}
