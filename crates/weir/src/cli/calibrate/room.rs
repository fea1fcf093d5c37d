//! Whether a directory can hold what is to be written there, as far as can be seen from this
//! process. What it may not look at it passes over: the server finds out.

use super::Result;
use anyhow::bail;
use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use weir_core::units::Bytes;

/// Room beside the files, for what the server and the file system keep of them, bytes.
const BESIDE_BYTES: u64 = 64 << 20;
/// The room beside the files as a part of them: one in this number.
const BESIDE_PART: u64 = 20;

/// Checks that `bytes` of files fit into `directory`, which need not be there yet, and that the
/// server, process `pid`, may write there.
///
/// # Errors
/// If there is too little room, or it is read-only or not writable.
pub(super) fn check(directory: &Path, bytes: u64, pid: u32) -> Result<()> {
    let Some(there) = nearest(directory) else { return Ok(()) };
    let Ok(disk) = statvfs(there) else { return Ok(()) };
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        bail!("the file system of {} is read-only and cannot be calibrated", there.display());
    }
    if is_ours(pid) && access(there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        bail!(
            "the server has no write permission in {}: grant it, or use another --path",
            there.display()
        );
    }
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if needed(bytes) > free {
        bail!(
            "the file system of {} has {:.2} free, but {:.2} are needed: use smaller files or fewer jobs (--file-size, --jobs), or free space",
            there.display(),
            Bytes(free),
            Bytes(needed(bytes))
        );
    }
    Ok(())
}

/// The files with what is kept beside them.
const fn needed(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / BESIDE_PART).saturating_add(BESIDE_BYTES)
}

/// The existing part of a path; nothing where this process may not look.
fn nearest(path: &Path) -> Option<&Path> {
    for part in path.ancestors() {
        match part.try_exists() {
            Ok(true) => return Some(part),
            Ok(false) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Does the process belong to who runs this one, so that it may do the same?
fn is_ours(pid: u32) -> bool {
    let owner = |process: &str| Path::new("/proc").join(process).metadata().map(|meta| meta.uid());
    matches!((owner(&pid.to_string()), owner("self")), (Ok(its), Ok(own)) if its == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_also_where_a_directory_is_still_to_be_made() {
        let base = tempfile::tempdir().unwrap();
        let own = std::process::id();
        for place in [base.path().to_owned(), base.path().join("a/b")] {
            check(&place, 0, own).unwrap();
            for bytes in [1 << 54, u64::MAX] {
                let told = check(&place, bytes, own).unwrap_err().to_string();
                assert!(told.contains("--file-size") && told.contains("free"), "{told}");
            }
        }
        assert_eq!(needed(100 << 20), (100 << 20) + (5 << 20) + (64 << 20));
    }

    #[test]
    fn where_nothing_may_be_written_nothing_is_begun() {
        let told = check(Path::new("/proc/nowhere"), 0, std::process::id()).unwrap_err();
        assert!(told.to_string().contains("/proc"), "{told}");
    }
}
