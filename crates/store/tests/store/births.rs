//! Handles of objects whose place another object has taken, with the same name for the kernel. XFS
//! gives such names after a power cut. Here ext4 is made to: its generation numbers can be set.

use crate::common::{Bed, Object, Place, ROOT, block_on, options};
use std::process::Command;
use weir_core::{FsError, ObjectKey, Store};
use weir_store::StoreControl;

/// The generation in the kernel's handle: type (1 byte), inode number (4), generation (4).
fn generation(key: &ObjectKey) -> u32 {
    let bytes = key.as_bytes();
    assert_eq!((bytes.len(), bytes[0]), (9, 1), "a handle of ext4");
    u32::from_ne_bytes(bytes[5..9].try_into().unwrap())
}

fn set_generation(bed: &Bed, name: &str, generation: u32) {
    let file = bed.path().join(name);
    let done = Command::new("chattr").arg("-v").arg(generation.to_string()).arg(file).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A volume where "new" has the inode of "old", which is gone, and the key of "old".
fn taken_over() -> (Place, Bed, ObjectKey) {
    let flags = ["-q", "-F", "-b", "4096", "-O", "^metadata_csum"];
    let place = Place::loop_device("ext4", &flags, 64);
    let bed = Bed::open(place.path().join("volume"), options(), place.name);
    let make = |name: &[u8]| -> Object { bed.create(&bed.root(), name, 0o600, &ROOT).unwrap() };
    // The record of the volume's usage is a new file each time it is written: it may get the inode.
    let used_again = (0..20).find_map(|_| {
        let old = make(b"old");
        let (key, fileid) = (bed.store.key(&old), bed.attr(&old).fileid);
        drop(old);
        bed.remove(&bed.root(), b"old").unwrap();
        let new = make(b"new");
        if bed.attr(&new).fileid == fileid {
            return Some((key, new));
        }
        bed.remove(&bed.root(), b"new").unwrap();
        None
    });
    let (key, new) = used_again.expect("the place is used again");
    assert_ne!(bed.store.key(&new), key, "with another generation");
    bed.write(&new, 0, b"the new one's").unwrap();
    drop(new);
    bed.store.close().unwrap();
    set_generation(&bed, "new", generation(&key));
    let store = bed.reopen();
    (place, Bed { store, ..bed }, key)
}

#[test]
fn the_handle_of_a_file_that_is_gone_never_leads_to_one_with_its_inode_and_generation() {
    let (_place, bed, old) = taken_over();
    let resolve = |key: &ObjectKey| block_on(bed.store.resolve(key));
    assert_eq!(resolve(&old).unwrap_err(), FsError::Stale);
    let new = bed.lookup(&bed.root(), b"new").unwrap();
    assert_eq!(bed.store.key(&new), old, "the kernel can't tell them apart");
    assert_eq!(resolve(&old).unwrap_err(), FsError::Stale, "while the new one is held open, too");
    let found = resolve(&bed.store.key(&new)).unwrap();
    assert_eq!(bed.read(&found, 0, 100).unwrap().0, b"the new one's");
}

#[test]
fn a_key_from_a_handle_of_version_1_has_no_birth_and_finds_what_the_kernel_does() {
    let (_place, bed, old) = taken_over();
    let unborn = ObjectKey::new(old.as_bytes()).unwrap();
    let found = block_on(bed.store.resolve(&unborn)).unwrap();
    assert_eq!(bed.read(&found, 0, 100).unwrap().0, b"the new one's");
    let again = block_on(bed.store.resolve(&unborn)).unwrap();
    assert_eq!(bed.attr(&again), bed.attr(&found), "held open, too");
}

#[test]
fn a_birth_outlives_the_server_and_a_change_of_everything_that_can_be_set() {
    crate::common::everywhere(|bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        let key = bed.store.key(&file);
        bed.write(&file, 0, b"data").unwrap();
        let time = weir_core::attr::SetTime::To(weir_core::Timestamp { secs: 1, nanos: 0 });
        let (atime, mtime) = (time, time);
        let set = weir_core::SetAttr { atime, mtime, mode: Some(0o644), ..Default::default() };
        bed.set(&file, &set, &ROOT).unwrap();
        drop(file);
        bed.store.close().unwrap();
        let store = bed.reopen();
        let found = block_on(store.resolve(&key)).unwrap();
        assert_eq!(format!("{:?}", store.key(&found)), format!("{key:?}"), "birth and all");
        assert!(!format!("{key:?}").ends_with("@00000000"), "this file system keeps births");
    });
}
