//! Making and checking files.

use super::at;
use crate::engine::share::FileSpec;
use crate::engine::{Plan, content};
use crate::error::BenchError;
use crate::workload::Layout;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that a user without privilege may still write (statvfs(3)).
pub fn room(root: &Path) -> Result<u64, BenchError> {
    let found = rustix::fs::statvfs(root).map_err(|source| at(root, source.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Makes the file `spec` at `path` as the layout says; reports to `progress` how many more
/// bytes are written.
pub(super) fn make(
    path: &Path,
    spec: &FileSpec,
    plan: &Plan,
    progress: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(|source| at(path, source))?;
    match plan.workload.layout {
        Layout::Written { block_bytes } => {
            write_through((path, &file), spec, block_bytes, plan, progress)
        }
        Layout::Existing | Layout::Sparse => {
            file.set_len(spec.size).map_err(|source| at(path, source))
        }
    }
}

fn write_through(
    (path, file): (&Path, &File),
    spec: &FileSpec,
    block_bytes: u32,
    plan: &Plan,
    mut progress: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mut buffer = vec![0; usize::try_from(block_bytes).unwrap_or(0)];
    let mut offset = 0;
    while offset < spec.size {
        let len = u64::from(block_bytes).min(spec.size - offset);
        let data = buffer.get_mut(..usize::try_from(len).unwrap_or(0)).unwrap_or(&mut []);
        content::fill(plan, spec, offset, data);
        file.write_all_at(data, offset).map_err(|source| at(path, source))?;
        offset += len;
        progress(len)?;
    }
    Ok(())
}

/// Checks that the file `spec` is at `path` and has its size.
pub(super) fn check(path: &Path, spec: &FileSpec) -> Result<(), BenchError> {
    let found = std::fs::metadata(path).map_err(|source| at(path, source))?.len();
    let size = spec.size;
    if found >= size {
        return Ok(());
    }
    Err(BenchError::Workload(format!(
        "{} has {found} bytes, but {size} are required: run once with --keep and that size, or \
         omit --reuse",
        path.display()
    )))
}
