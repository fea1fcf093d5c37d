//! What the file system itself says that a volume's files hold, asked by a program that is none of
//! ours (`xfs_io`, on ext4 too), without any help from the server.

use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unit in which usage is counted, in bytes.
const UNIT: u64 = 4096;
/// The unit of the program's output.
const SECTOR: u64 = 512;
/// Files for one run of the program.
const FILES_MAX: usize = 256;

/// Bytes of the units that have blocks, or are to have them, in all files below `path`, those with
/// several names once.
///
/// # Errors
/// If something there can't be read, or goes away meanwhile.
pub(super) fn data_below(path: &Path) -> Result<u64> {
    let files = files_below(path)?;
    let mut units = 0;
    for some in files.chunks(FILES_MAX) {
        let mut command = Command::new("xfs_io");
        command.args(["-r", "-c", "fiemap"]).args(some.iter().map(|(path, _)| path));
        let output = command.output().context("can't run xfs_io")?;
        if !output.status.success() {
            bail!("xfs_io failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        units += units_shown(&String::from_utf8(output.stdout)?, some)?;
    }
    Ok(units * UNIT)
}

/// Every regular file with its length.
fn files_below(path: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let (mut seen, mut files) = (HashSet::new(), Vec::new());
    let mut pending = vec![path.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let attr = entry.metadata()?;
            if attr.is_dir() {
                pending.push(entry.path());
            } else if attr.is_file() && seen.insert(attr.ino()) {
                files.push((entry.path(), attr.len()));
            }
        }
    }
    Ok(files)
}

/// Units in the maps of `files`, which are shown one after the other, each under its name.
fn units_shown(shown: &str, files: &[(PathBuf, u64)]) -> Result<u64> {
    let (mut rest, mut units) = (files.iter(), 0);
    let (mut end, mut next) = (0, 0);
    for line in shown.lines() {
        let Some(extent) = line.strip_prefix('\t') else {
            let (path, length) =
                rest.next().context("xfs_io shows more files than it was given")?;
            if line.strip_suffix(':') != path.to_str() {
                bail!("xfs_io shows {line:?} where {} was expected", path.display());
            }
            (end, next) = (length.div_ceil(UNIT), 0);
            continue;
        };
        let words = || extent.split_once(": [")?.1.split_once("]: ");
        let (sectors, blocks) = words().with_context(|| format!("xfs_io says {line:?}"))?;
        if blocks.trim() == "hole" {
            continue;
        }
        let (first, last) = sectors.split_once("..").context("xfs_io shows no range")?;
        // What lies behind the end of the file is the file system's reserve.
        let first = (first.parse::<u64>()? * SECTOR / UNIT).max(next);
        let stop = (last.parse::<u64>()? * SECTOR / UNIT + 1).min(end);
        units += stop.saturating_sub(first);
        next = next.max(stop);
    }
    Ok(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_from_the_maps_of_several_files() {
        let files = [("/v/a", 5 * UNIT), ("/v/empty", 0), ("/v/b", 9000)]
            .map(|(path, length)| (PathBuf::from(path), length));
        let shown = "/v/a:\n\t0: [0..7]: 96..103\n\t1: [8..15]: hole\n\t2: [16..79]: 200..263\n\
            /v/empty:\n\
            /v/b:\n\t0: [0..1]: 8..9\n\t1: [2..3]: hole\n\t2: [4..5]: 10..11\n\t3: [16..23]: 0..7\n";
        // One and three units up to the end; nothing; one unit with two extents, and the last.
        assert_eq!(units_shown(shown, &files).unwrap(), 1 + 3 + 2);
        assert!(units_shown("/v/c:\n", &files).is_err());
        assert!(units_shown("/v/a:\n\tnonsense\n", &files).is_err());
    }
}
