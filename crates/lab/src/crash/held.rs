//! The usage of a volume's files, asked from the file system and not from the server.

use anyhow::{Context, Result};
use rustix::fs::{Advice, SeekFrom, fadvise, seek, syncfs};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The unit of usage, in bytes.
const UNIT: u64 = super::content::BLOCK;

/// The directory of the volume whose top directory has this inode number, below the data directory
/// of a server.
///
/// # Errors
/// If there is none, or the directories can't be read.
pub(super) fn top_directory(data: &Path, fileid: u64) -> Result<PathBuf> {
    for pool in data.join("pools").read_dir()? {
        for volume in pool?.path().join("volumes").read_dir()? {
            let top = volume?.path().join("root");
            if top.metadata().is_ok_and(|attr| attr.ino() == fileid) {
                return Ok(top);
            }
        }
    }
    Err(anyhow::anyhow!("no volume of {} has the top directory {fileid}", data.display()))
}

/// Bytes of the units that hold data in the regular files below `top`, files with several names
/// once. Nobody may change them meanwhile.
///
/// `SEEK_DATA` calls blocks that were allocated and never written a hole, and data while somebody
/// has read them and the kernel remembers it. So that the answer is the same at any time, all is
/// written down first, and then the kernel is made to forget what it has in memory of each file.
///
/// # Errors
/// If the file system fails.
pub(super) fn held_bytes(top: &Path) -> Result<u64> {
    syncfs(File::open(top)?).context("can't sync")?;
    let mut seen = HashSet::new();
    let mut total = 0;
    let mut pending = vec![top.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in directory.read_dir()? {
            let path = entry?.path();
            let attr = path.symlink_metadata()?;
            if attr.is_dir() {
                pending.push(path);
            } else if attr.is_file() && attr.len() > 0 && seen.insert(attr.ino()) {
                total += held_by(&path).with_context(|| format!("at {}", path.display()))?;
            }
        }
    }
    Ok(total)
}

fn held_by(path: &Path) -> Result<u64> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    fadvise(&file, 0, None, Advice::DontNeed)?;
    let (mut units, mut at) = (0, 0);
    loop {
        let begin = match seek(&file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => return Ok(units * UNIT),
            Err(errno) => return Err(errno.into()),
        };
        let end = seek(&file, SeekFrom::Hole(begin))?;
        let first = (begin / UNIT).max(at.div_ceil(UNIT));
        units += end.div_ceil(UNIT).saturating_sub(first);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn units_with_data_count_once_however_many_names_a_file_has() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let file = File::create(below.join("f")).unwrap();
        file.write_all_at(&[1; 5000], 0).unwrap();
        file.write_all_at(&[1; 10], 100 * UNIT).unwrap();
        file.set_len(1 << 30).unwrap();
        std::fs::hard_link(below.join("f"), top.path().join("g")).unwrap();
        std::os::unix::fs::symlink("f", below.join("l")).unwrap();
        assert_eq!(held_bytes(top.path()).unwrap(), 3 * UNIT);
        let fileid = top.path().metadata().unwrap().ino();
        assert!(top_directory(top.path(), fileid).is_err());
    }

    #[test]
    fn the_top_directory_is_found_by_its_number() {
        let data = tempfile::tempdir().unwrap();
        let top = data.path().join("pools/1/volumes/2/root");
        std::fs::create_dir_all(&top).unwrap();
        std::fs::create_dir_all(data.path().join("pools/1/volumes/3/root")).unwrap();
        assert_eq!(top_directory(data.path(), top.metadata().unwrap().ino()).unwrap(), top);
    }
}
