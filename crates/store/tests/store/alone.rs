//! The store in a process of its own, which is this test program run again: without privilege, and
//! with few descriptors.

use crate::common::{Bed, ROOT, block_on, options};
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use weir_core::store::{MakeKind, Want};
use weir_core::{Credentials, FsError, Name, SetAttr, Store};
use weir_store::{Options, StoreControl, switches_identity};

const NOBODY: u32 = 65_534;

/// Runs one ignored test of this program in a process of its own.
fn run_alone(test: &str, as_nobody: bool) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The user nobody may have no access to the build directory. Another process copies the
    // program: a descriptor open for writing here would be inherited by children of other tests,
    // and a program that is open for writing cannot be executed.
    let program = directory.path().join("test");
    let mut copy = Command::new("cp");
    copy.arg(std::env::current_exe().unwrap()).arg(&program);
    assert!(copy.status().unwrap().success());
    let mut command = Command::new(&program);
    command.args(["--ignored", "--exact", test]);
    command.env("TMPDIR", directory.path()).current_dir(directory.path());
    if as_nobody && geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn without_privilege_the_store_serves_its_own_user() {
    run_alone("alone::as_nobody", true);
}

#[test]
fn without_privilege_what_was_never_written_is_mended() {
    run_alone("usage::mend::as_nobody", true);
}

#[test]
fn when_descriptors_run_out_idle_objects_are_closed() {
    run_alone("alone::with_few_descriptors", false);
}

#[test]
#[ignore = "run in a process of its own by the test above"]
fn with_few_descriptors() {
    let place = tempfile::tempdir().unwrap();
    let bed = Bed::open(place.path().join("volume"), options(), "temp");
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
    let root = bed.root();
    let keys: Vec<_> = (0..300)
        .map(|number| {
            let name = format!("f{number}");
            let file = bed.create(&root, name.as_bytes(), 0o644, &ROOT).unwrap();
            bed.store.key(&file)
        })
        .collect();
    for key in &keys {
        block_on(bed.store.resolve(key)).unwrap();
    }
    let page = block_on(bed.store.read_dir(&root, 0, 1000, 100_000, Want::Attributes)).unwrap();
    assert!(page.eof && page.entries.iter().all(|entry| entry.object.is_some()));
    // With all of them in use there is nothing to close, which is for the client to try again.
    let held: Vec<_> = keys.iter().map_while(|key| block_on(bed.store.resolve(key)).ok()).collect();
    let refused = block_on(bed.store.resolve(&keys[held.len()]));
    assert_eq!(refused.err(), Some(FsError::Busy));
    drop(held);
    assert!(block_on(bed.store.resolve(&keys[299])).is_ok());
}

#[test]
#[ignore = "run without privilege by a test above"]
fn as_nobody() {
    assert!(!geteuid().is_root() && !switches_identity());
    let place = tempfile::tempdir().unwrap();
    let options = Options { cached_objects_max: 16, ..options() };
    let bed = Bed::open(place.path().join("volume"), options, "temp");
    assert!(!bed.store.handles_persist());
    let (root, own) = (bed.root(), Credentials::new(geteuid().as_raw(), 0));

    let stranger = Credentials::new(1001, 1001);
    assert_eq!(bed.create(&root, b"no", 0o644, &stranger).err(), Some(FsError::AccessDenied));
    let file = bed.create(&root, b"f", 0o644, &own).unwrap();
    bed.write(&file, 0, b"data").unwrap();
    block_on(bed.store.commit(&file)).unwrap();
    let by_root = bed.create(&root, b"g", 0o644, &ROOT).unwrap();
    assert_eq!(bed.attr(&by_root).uid, own.uid);
    let give = SetAttr { uid: Some(1), ..SetAttr::default() };
    assert_eq!(bed.set(&file, &give, &ROOT), Err(FsError::NotPermitted));
    assert_eq!(block_on(bed.store.set_root_attr(&give)), Err(FsError::NotPermitted));
    let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
    block_on(bed.store.link(&file, &dir, Name::new(b"l").unwrap(), &own)).unwrap();

    let key = bed.store.key(&file);
    drop(file);
    let found = block_on(bed.store.resolve(&key)).unwrap();
    assert_eq!(bed.read(&found, 0, 10).unwrap().0, b"data");
    let second = bed.reopen();
    assert_eq!(block_on(second.resolve(&key)).err(), Some(FsError::Stale), "not this process");
    drop(found);

    // Only so many are kept; the oldest is forgotten, the newest not.
    let mut newest = key;
    for number in 0..100 {
        let name = format!("n{number}");
        let file = bed.create(&root, name.as_bytes(), 0o644, &own).unwrap();
        newest = bed.store.key(&file);
    }
    assert_eq!(block_on(bed.store.resolve(&key)).err(), Some(FsError::Stale));
    assert!(block_on(bed.store.resolve(&newest)).is_ok());
    // Some objects exist only as open ones: they stay open, however long nobody asks for them.
    let open = bed.store.objects_open();
    bed.store.release_idle();
    assert_eq!((bed.store.objects_open(), open > 0), (open, true));
    bed.remove(&root, b"n99").unwrap();
    assert_eq!(block_on(bed.store.resolve(&newest)).err(), Some(FsError::Stale));
}
