//! Which file system a directory is on. Pools on one file system share what its disks hold, wherever their
//! directories are. Looked up once for each directory: what is mounted changes only with a restart.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The device of each directory that was asked about.
#[derive(Debug, Default)]
pub(crate) struct Devices(Mutex<HashMap<PathBuf, u64>>);

impl Devices {
    /// The device that `directory` is on, or will be when it is made.
    pub(crate) fn of(&self, directory: &Path) -> Option<u64> {
        if let Some(known) = self.known().get(directory) {
            return Some(*known);
        }
        // Not under the lock: a disk that fails may keep whoever asks it waiting.
        let mut found =
            directory.ancestors().filter_map(|at| Some((at, at.metadata().ok()?.dev())));
        let (at, device) = found.next()?;
        if at == directory {
            self.known().insert(directory.to_owned(), device);
        }
        Some(device)
    }

    /// Forgets a directory, which may be on another file system from now on.
    pub(crate) fn forget(&self, directory: &Path) {
        self.known().remove(directory);
    }

    /// As if `directory` were on `device`.
    #[cfg(test)]
    pub(crate) fn pretend(&self, directory: &Path, device: u64) {
        self.known().insert(directory.to_owned(), device);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_still_to_be_made_is_where_it_will_be() {
        let base = tempfile::tempdir().unwrap();
        let devices = Devices::default();
        let here = base.path().metadata().unwrap().dev();
        assert_eq!(devices.of(&base.path().join("a/b")), Some(here));
        let elsewhere = Path::new("/proc/self/nowhere");
        assert_ne!(devices.of(elsewhere), Some(here));
        assert!(devices.known().is_empty(), "what isn't there is not remembered");
        assert_eq!(devices.of(base.path()), Some(here));
        assert_eq!(devices.known().len(), 1);
        devices.forget(base.path());
        assert!(devices.known().is_empty());
    }
}
