//! The target besides the load: is it there, is there room, and the directories that the suite
//! makes and removes.

mod nfs;
mod path;

use weir_load::engine::{SmbTop, path_room};
use weir_load::error::BenchError;
use weir_load::target::Target;

/// Looks after the directories of a target.
pub trait Place {
    /// Is the target there?
    ///
    /// # Errors
    /// [`BenchError`] says why not, and what to do.
    fn reach(&mut self) -> Result<(), BenchError>;

    /// Bytes that may still be written; `None` if the target does not tell.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked.
    fn room(&mut self) -> Result<Option<u64>, BenchError>;

    /// Makes `directory` below the target for the suite alone. Gives true if it was made, false
    /// if it was there, and empty.
    ///
    /// # Errors
    /// [`BenchError`] if something is in it, or if it can't be made.
    fn claim(&mut self, directory: &str) -> Result<bool, BenchError>;

    /// Removes everything in `directory`, and itself if `with_directory`. One that is not there is
    /// removed already.
    ///
    /// # Errors
    /// [`BenchError`] names what could not be removed.
    fn clear(&mut self, directory: &str, with_directory: bool) -> Result<(), BenchError>;
}

/// A [`Place`] reached from this process.
pub struct TargetPlace {
    target: Target,
}

impl TargetPlace {
    /// At `target`.
    #[must_use]
    pub const fn new(target: Target) -> Self {
        Self { target }
    }
}

impl Place for TargetPlace {
    fn reach(&mut self) -> Result<(), BenchError> {
        match &self.target {
            Target::Nfs(target) => nfs::Top::open(target).map(drop),
            Target::Smb(target) => SmbTop::open(target).map(drop),
            Target::Path(root) => path::reach(root),
        }
    }

    fn room(&mut self) -> Result<Option<u64>, BenchError> {
        match &self.target {
            Target::Nfs(target) => nfs::Top::open(target)?.room(),
            Target::Smb(target) => SmbTop::open(target)?.room(),
            Target::Path(root) => path_room(root).map(Some),
        }
    }

    fn claim(&mut self, directory: &str) -> Result<bool, BenchError> {
        plain(directory)?;
        match &self.target {
            Target::Nfs(target) => nfs::Top::open(target)?.claim(directory),
            Target::Smb(target) => {
                let claimed = SmbTop::open(target)?.claim(directory)?;
                claimed.ok_or_else(|| occupied(directory))
            }
            Target::Path(root) => path::claim(&root.join(directory)),
        }
    }

    fn clear(&mut self, directory: &str, with_directory: bool) -> Result<(), BenchError> {
        plain(directory)?;
        match &self.target {
            Target::Nfs(target) => nfs::Top::open(target)?.clear(directory, with_directory),
            Target::Smb(target) => SmbTop::open(target)?.clear(directory, with_directory),
            Target::Path(root) => path::clear(&root.join(directory), with_directory),
        }
    }
}

/// Everything in a directory of the suite is removed, so it must lie below the target, whatever a
/// text says.
fn plain(directory: &str) -> Result<(), BenchError> {
    if directory.is_empty() || directory.starts_with('.') || directory.contains(['/', '\0']) {
        return Err(BenchError::Workload(format!("{directory:?} is not a plain directory name")));
    }
    Ok(())
}

/// The error of a directory that is not empty.
fn occupied(directory: &str) -> BenchError {
    BenchError::Workload(format!(
        "the directory {directory} already exists on the target and is not empty: it was left by \
         an earlier run with --keep or by a killed run, or another run is active. Use its files \
         with --reuse, use another directory with --dir, or remove it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_directory_below_the_target_is_ever_emptied() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("precious"), "x").unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().to_owned()));
        for directory in ["", ".", "..", "a/b", "/", "../x"] {
            assert!(place.claim(directory).is_err(), "{directory:?}");
            assert!(place.clear(directory, true).is_err(), "{directory:?}");
        }
        assert!(root.path().join("precious").exists());
    }
}
