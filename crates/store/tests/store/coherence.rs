//! Whatever several threads do to the same names and files at once, afterwards the caches say what
//! the kernel says.

use crate::common::{Bed, ROOT, Random, block_on, everywhere, everywhere_with, options};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_core::attr::SetTime;
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::{Credentials, FsError, Name, SetAttr, Shared, Store, Timestamp};
use weir_store::{LocalStore, Options};

const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
const THREADS: u64 = 4;
const STEPS: u32 = 400;
/// Between two moves of a volume. They are rare; but for a pause it would move all the time.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(100);

fn any_name(random: &mut Random) -> Name<'static> {
    Name::new(NAMES[random.below(NAMES.len())]).unwrap()
}

#[test]
fn caches_agree_with_the_kernel_after_concurrent_changes() {
    everywhere(|bed| {
        let dirs = ["x", "y"].map(|name| {
            bed.make(&bed.root(), name.as_bytes(), &MakeKind::Directory).unwrap();
            name
        });
        for round in 0..5 {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let store = &bed.store;
                    scope.spawn(move || disturb(store, dirs, Random(round * THREADS + thread)));
                }
            });
            for dir in dirs {
                compare(bed, dir, round);
            }
        }
    });
}

#[test]
fn a_key_of_what_is_gone_is_stale_also_while_its_number_is_given_to_another() {
    everywhere(|bed| {
        let dir = bed.make(&bed.root(), b"dir", &MakeKind::Directory).unwrap();
        let gone: Vec<_> = (0..64)
            .map(|_| {
                let key = bed.store.key(&bed.create(&dir, b"f", 0o644, &ROOT).unwrap());
                bed.remove(&dir, b"f").unwrap();
                key
            })
            .collect();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2000 {
                    bed.create(&dir, b"f", 0o644, &ROOT).unwrap();
                    bed.remove(&dir, b"f").unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                for key in &gone {
                    assert_eq!(block_on(bed.store.resolve(key)).map(drop), Err(FsError::Stale));
                }
            }
        });
    });
}

fn disturb(store: &LocalStore, dirs: [&str; 2], mut random: Random) {
    let dirs = dirs.map(|dir| {
        block_on(store.lookup(&store.root(), Name::new(dir.as_bytes()).unwrap())).unwrap().0
    });
    let users = [ROOT, Credentials::new(1001, 1001)];
    for step in 0..STEPS {
        let (dir, other) = (&dirs[random.below(2)], &dirs[random.below(2)]);
        let name = any_name(&mut random);
        let cred = &users[usize::from(random.below(10) == 0)];
        let how = CreateHow::Unchecked(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        let result = match random.below(10) {
            0 => block_on(store.create(dir, name, &how, cred)).map(drop),
            1 => block_on(store.remove(dir, name, cred)).map(drop),
            2 => block_on(store.rename(dir, name, other, any_name(&mut random), cred)).map(drop),
            choice => block_on(store.lookup(dir, name)).and_then(|(file, _)| match choice {
                3 => block_on(store.link(&file, other, any_name(&mut random), &ROOT)).map(drop),
                4 | 5 => {
                    let data = Shared::from(vec![1; 100 + random.below(9000)]);
                    let at = u64::from(step) * 7;
                    block_on(store.write(&file, at, data, Stability::Unstable)).map(drop)
                }
                6 => {
                    let mode = Some(0o600 + u32::from(step % 64 == 0));
                    let set = SetAttr { mode, size: Some(u64::from(step)), ..SetAttr::default() };
                    block_on(store.set_attr(&file, &set, None, &ROOT)).map(drop)
                }
                7 => {
                    let time = SetTime::To(Timestamp { secs: i64::from(step), nanos: 5 });
                    let set = SetAttr { mtime: time, ..SetAttr::default() };
                    block_on(store.set_attr(&file, &set, None, &ROOT)).map(drop)
                }
                _ => block_on(store.attr(&file)).map(drop),
            }),
        };
        let expected = [
            Ok(()),
            Err(FsError::NotFound),
            Err(FsError::Exists),
            Err(FsError::Stale),
            Err(FsError::AccessDenied),
        ];
        assert!(expected.contains(&result), "{result:?}");
    }
}

fn compare(bed: &Bed, dir: &str, round: u64) {
    let parent = bed.lookup(&bed.root(), dir.as_bytes()).unwrap();
    let path = bed.path().join(dir);
    let mut checks = vec![(parent.clone(), path.clone())];
    for name in NAMES {
        let path = path.join(str::from_utf8(name).unwrap());
        match bed.lookup(&parent, name) {
            Ok(file) => checks.push((file, path)),
            Err(error) => {
                assert_eq!(error, FsError::NotFound);
                assert!(!path.exists(), "{path:?} was forgotten in round {round}");
            }
        }
    }
    for (object, path) in checks {
        let (ours, kernel) = (bed.attr(&object), std::fs::symlink_metadata(&path).unwrap());
        assert_eq!(ours.fileid, kernel.ino(), "{path:?} in round {round}");
        let times = |attr: &weir_core::Attr| {
            [attr.mtime, attr.ctime].map(|time| (time.secs, i64::from(time.nanos)))
        };
        assert_eq!(
            (ours.mode, u64::from(ours.nlink), ours.uid, ours.gid, ours.size, times(&ours)),
            (
                kernel.mode() & 0o7777,
                kernel.nlink(),
                kernel.uid(),
                kernel.gid(),
                kernel.size(),
                [(kernel.mtime(), kernel.mtime_nsec()), (kernel.ctime(), kernel.ctime_nsec())],
            ),
            "{path:?} in round {round}"
        );
    }
}

#[test]
fn directories_are_found_while_the_volume_moves_to_another_place() {
    let few = Options { cached_objects_max: 16, ..options() };
    everywhere_with(&few, |bed| {
        let dirs = (0..64).map(|number: u32| {
            let name = number.to_string();
            bed.make(&bed.root(), name.as_bytes(), &MakeKind::Directory).unwrap().key()
        });
        let keys: Vec<_> = dirs.collect();
        let elsewhere = bed.directory.with_file_name("elsewhere");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let moves = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::fs::rename(&bed.directory, &elsewhere).unwrap();
                    std::thread::sleep(PAUSE);
                    std::fs::rename(&elsewhere, &bed.directory).unwrap();
                    std::thread::sleep(PAUSE);
                }
            });
            for key in keys.iter().cycle().take(20_000) {
                let found = block_on(bed.store.resolve(key)).map(drop);
                if found.is_err() {
                    done.store(true, Ordering::Relaxed);
                }
                found.unwrap();
            }
            done.store(true, Ordering::Relaxed);
            moves.join().unwrap();
        });
    });
}
