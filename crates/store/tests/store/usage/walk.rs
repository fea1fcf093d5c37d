//! The kernel's sum of a directory tree, without any help from the store.

use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use weir_store::{LocalStore, StoreControl};

/// Waits for the end of a recount.
pub(super) fn count(store: &LocalStore) {
    while store.usage().counting.is_some() {
        std::thread::yield_now();
    }
}

/// Lets the kernel write down and forget what it has in memory of the files in `directory`.
pub(super) fn forget(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let file = File::open(entry.unwrap().path()).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
}

/// Bytes of the units of 4 KiB that hold data, files with several names once.
pub(super) fn data_below(path: &Path) -> u64 {
    let mut seen = HashSet::new();
    let mut total = 0;
    let mut pending = vec![path.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let attr = entry.metadata().unwrap();
            if attr.is_dir() {
                pending.push(entry.path());
            } else if attr.is_file() && seen.insert(attr.ino()) {
                total += data_of(&File::open(entry.path()).unwrap());
            }
        }
    }
    total
}

fn data_of(file: &File) -> u64 {
    let (mut units, mut at) = (0, 0);
    while let Ok(data) = seek(file, SeekFrom::Data(at)) {
        // A unit with several stretches of data counts once.
        let first = (data / 4096).max(at.div_ceil(4096));
        at = seek(file, SeekFrom::Hole(data)).unwrap();
        units += at.div_ceil(4096).saturating_sub(first);
    }
    units * 4096
}
