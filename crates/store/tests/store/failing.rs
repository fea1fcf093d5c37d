//! On a device that fails: a loop device whose file lies in a small tmpfs. Once the tmpfs is full,
//! nothing new can be written back, and `fsync` fails as on a disk that dies.

use crate::common::*;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_core::{FsError, Store};
use weir_store::{LocalStore, Options, StoreControl, reset_identity};

const TMPFS_MIB: u64 = 48;
/// More than there is room for.
const TOO_MUCH: usize = 64 << 20;
const PIECE: usize = 1 << 20;

/// A file system on such a device.
struct Failing {
    directory: tempfile::TempDir,
}

impl Failing {
    /// `None` where `WEIR_SKIP` names `loopfs`.
    fn new() -> Option<Self> {
        if std::env::var("WEIR_SKIP").is_ok_and(|skip| skip.contains("loopfs")) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let failing = Self { directory };
        let (small, mounted) = (failing.small(), failing.mounted());
        std::fs::create_dir(&small).unwrap();
        std::fs::create_dir(&mounted).unwrap();
        let size = format!("size={TMPFS_MIB}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(&small));
        let image = small.join("image");
        File::create(&image).unwrap().set_len(128 << 20).unwrap();
        // Without a journal, whose failure would end the file system.
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-O", "^has_journal"]).arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mounted));
        Some(failing)
    }

    fn small(&self) -> PathBuf {
        self.directory.path().join("small")
    }

    fn mounted(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    /// From now on writing back fails.
    fn fail(&self) {
        let mut filler = File::create(self.small().join("filler")).unwrap();
        while filler.write(&[1; 64 << 10]).is_ok() {}
    }

    /// The device is well again.
    fn mend(&self) {
        std::fs::remove_file(self.small().join("filler")).unwrap();
        let roomy =
            Command::new("mount").args(["-o", "remount,size=256m"]).arg(self.small()).status();
        assert!(roomy.unwrap().success());
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        reset_identity().unwrap();
        for mounted in [self.mounted(), self.small()] {
            run(Command::new("umount").arg("-l").arg(mounted));
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

fn volume(on: &Path) -> Bed {
    let options = Options { cached_objects_max: 16, ..options() };
    Bed::open(on.join("volume"), options, "failing")
}

fn fill(bed: &Bed, file: &Object) {
    let piece = vec![7; PIECE];
    for offset in (0..TOO_MUCH).step_by(PIECE) {
        bed.write(file, u64::try_from(offset).unwrap(), &piece).unwrap();
    }
}

#[test]
fn data_that_is_lost_is_told_of_although_nobody_has_its_file_open() {
    let Some(device) = Failing::new() else { return };
    let bed = volume(&device.mounted());
    let root = bed.root();
    let names: Vec<_> = (0..100).map(|number| format!("other-{number}").into_bytes()).collect();
    for name in &names {
        bed.create(&root, name, 0o644, &ROOT).unwrap();
    }
    let file = bed.create(&root, b"file", 0o644, &ROOT).unwrap();
    let key = bed.store.key(&file);
    bed.store.sync().unwrap();
    device.fail();
    fill(&bed, &file);
    drop(file);
    assert_eq!(bed.store.lost_writes(), 0);
    // Others want its room. It must not leave without a sync, and that fails.
    let crowd = || names.iter().for_each(|name| drop(bed.lookup(&root, name)));
    let told = (0..1000).any(|_| {
        crowd();
        std::thread::sleep(std::time::Duration::from_millis(1));
        bed.store.lost_writes() > 0
    });
    assert!(told, "the data is lost and nobody knows");
    let file = block_on(bed.store.resolve(&key)).unwrap();
    // The device says why, and the kernel passes it on.
    assert_eq!(block_on(bed.store.commit(&file)).err(), Some(FsError::NoSpace));
    // Written again, as the changed verifier makes clients do, it is safe.
    device.mend();
    fill(&bed, &file);
    let lost = bed.store.lost_writes();
    while block_on(bed.store.commit(&file)).is_err() {
        fill(&bed, &file);
    }
    assert!(bed.store.lost_writes() <= lost + 1, "a failure is told of once more at most");
}

#[test]
fn without_room_for_uncommitted_data_a_write_is_stable_before_it_is_answered() {
    use weir_core::Shared;
    use weir_core::store::Stability;
    let options = Options { cached_objects_max: 16, ..options() };
    everywhere_with(&options, |bed| {
        let mut committed = Vec::new();
        let mut held = Vec::new();
        for number in 0..12 {
            let name = format!("file-{number}");
            let file = bed.create(&bed.root(), name.as_bytes(), 0o644, &ROOT).unwrap();
            let data = Shared::from(vec![1; 10]);
            let write = bed.store.write(&file, 0, data, Stability::Unstable);
            committed.push(block_on(write).unwrap().committed);
            held.push(file);
        }
        assert_eq!(committed[..8], [Stability::Unstable; 8]);
        assert_eq!(committed[8..], [Stability::DataSync; 4]);
        // A file with uncommitted data may have more of it, and a commit makes room.
        let again = |file: &Object| {
            let data = Shared::from(vec![2; 10]);
            block_on(bed.store.write(file, 10, data, Stability::Unstable)).unwrap().committed
        };
        assert_eq!(again(&held[0]), Stability::Unstable);
        block_on(bed.store.commit(&held[0])).unwrap();
        assert_eq!(again(&held[11]), Stability::Unstable);
    });
}

#[test]
fn a_volume_whose_data_could_not_be_written_is_not_recorded_as_counted() {
    let Some(device) = Failing::new() else { return };
    let [idle, first, second] = ["idle", "first", "second"]
        .map(|name| Bed::open(device.mounted().join(name), options(), "failing"));
    let files =
        [&first, &second].map(|bed| bed.create(&bed.root(), b"file", 0o644, &ROOT).unwrap());
    first.store.sync().unwrap();
    device.fail();
    fill(&first, &files[0]);
    second.write(&files[1], 0, &[7; 5000]).unwrap();
    let closed = LocalStore::close_all(&[&idle.store, &first.store, &second.store]);
    assert!(closed[1].is_err() && closed[2].is_err(), "{closed:?}");
    let record = |bed: &Bed| std::fs::read_to_string(bed.directory.join("meta/usage")).ok();
    assert_eq!(record(&idle).as_deref(), Some("weir-usage 2 clean 0\n"), "it has not changed");
    // Without a record it is counted too.
    for record in [&first, &second].into_iter().filter_map(record) {
        assert!(record.starts_with("weir-usage 2 open "), "{record}");
    }
}
