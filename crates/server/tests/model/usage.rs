//! The kernel's sum of a directory tree, without any help from the store.

use rustix::fs::{SeekFrom, seek};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const UNIT: u64 = 4096;

/// Bytes of the units of 4 KiB that hold data, files with several names once.
pub(crate) fn data_below(path: &Path) -> u64 {
    let (mut seen, mut pending, mut total) = (HashSet::new(), vec![path.to_owned()], 0);
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
        at = seek(file, SeekFrom::Hole(data)).unwrap();
        units += at.div_ceil(UNIT) - data / UNIT;
    }
    units * UNIT
}
