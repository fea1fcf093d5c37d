//! The pools that this process has for itself. The mark in a pool's directory names the data
//! directory that it belongs to, but a copy of a data directory has the same name as the original;
//! so a process that works in a pool also holds a lock on its mark, which the kernel releases when
//! the process ends.

use crate::directory::{self, Lock, MARKER};
use crate::error::{CatalogError, Result};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The marks that are held, by the directories of their pools. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<HashMap<PathBuf, Lock>>>);

/// Claims are no part of a catalogue's content, so they never differ.
impl PartialEq for Claims {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Claims {}

impl Claims {
    /// Holds the pool in `directory`, which is marked, until the claim is released or the process
    /// ends.
    ///
    /// # Errors
    /// `PoolBusy` if another process holds it, `Io`.
    pub(crate) fn hold(&self, directory: &Path) -> Result<()> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = directory.join(MARKER);
        let file = File::open(&mark).map_err(directory::at(&mark))?;
        let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
        // A claim that was replaced since holds nothing.
        if held.get(directory).is_some_and(|old| identity(old.file()) == identity(&file)) {
            return Ok(());
        }
        match file.try_lock() {
            Ok(()) => {
                held.insert(directory.to_owned(), Lock::of(file));
                Ok(())
            }
            Err(TryLockError::WouldBlock) => {
                Err(CatalogError::PoolBusy { directory: directory.to_owned() })
            }
            Err(TryLockError::Error(source)) => Err(directory::at(&mark)(source)),
        }
    }

    /// Releases the claim on the pool in `directory`.
    pub(crate) fn release(&self, directory: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(directory);
    }
}
