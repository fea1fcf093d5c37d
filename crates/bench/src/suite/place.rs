//! The targets besides the load: are they there, is there room, and the directories that the suite
//! makes and removes.

mod nfs;
mod owner;
mod path;

use owner::{MARK, Owner};
use weir_load::engine::{Limits, SmbTop, path_room};
use weir_load::error::BenchError;
use weir_load::target::{Target, Targets};
use weir_load::workload::Location;

/// Looks after the directories of targets.
pub trait Place {
    /// Are the targets there?
    ///
    /// # Errors
    /// [`BenchError`] says why not, and what to do.
    fn reach(&mut self) -> Result<(), BenchError>;

    /// Bytes that may still be written to the target of this name; `None` if it does not tell.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked.
    fn room(&mut self, target: &str) -> Result<Option<u64>, BenchError>;

    /// The limits of the target of this name.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be asked.
    fn limits(&mut self, target: &str) -> Result<Limits, BenchError>;

    /// Makes the directory `at` for the suite alone, or finds it empty, or empties it if it is that
    /// of a killed run of this machine. It holds a mark of this run then.
    ///
    /// # Errors
    /// [`BenchError`] if something else is in it, or if it can't be made.
    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError>;

    /// Removes the mark of this run from the directory `at`, whose files stay.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be removed.
    fn release(&mut self, at: &Location) -> Result<(), BenchError>;

    /// Removes everything in the directory `at`, and itself if `with_directory`. One that is not
    /// there is removed already.
    ///
    /// # Errors
    /// [`BenchError`] names what could not be removed.
    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError>;
}

/// How a directory came to be that of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// It was made, by this run or the killed one.
    pub made: bool,
    /// The process of the killed run whose files were removed.
    pub abandoned: Option<u32>,
}

/// A [`Place`] reached from this process.
pub struct TargetPlace {
    targets: Targets,
}

impl TargetPlace {
    /// At `targets`.
    #[must_use]
    pub fn new(targets: impl Into<Targets>) -> Self {
        Self { targets: targets.into() }
    }
}

impl Place for TargetPlace {
    fn reach(&mut self) -> Result<(), BenchError> {
        self.targets.iter().try_for_each(|(_, target)| match target {
            Target::Nfs(target) => nfs::NfsTop::open(target).map(drop),
            Target::Smb(target) => SmbTop::open(target).map(drop),
            Target::Path(target) => target.all().try_for_each(path::reach),
        })
    }

    fn room(&mut self, target: &str) -> Result<Option<u64>, BenchError> {
        match self.targets.get(target)? {
            Target::Nfs(target) => nfs::NfsTop::open(target)?.room(),
            Target::Smb(target) => SmbTop::open(target)?.room(),
            Target::Path(target) => path_room(&target.root).map(Some),
        }
    }

    fn limits(&mut self, target: &str) -> Result<Limits, BenchError> {
        match self.targets.get(target)? {
            Target::Nfs(target) => nfs::NfsTop::open(target)?.limits(),
            Target::Smb(target) => Ok(SmbTop::open(target)?.limits()),
            Target::Path(_) => Ok(Limits::default()),
        }
    }

    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError> {
        plain(&at.directory)?;
        claim(&mut *self.top(at)?, &at.directory)
    }

    fn release(&mut self, at: &Location) -> Result<(), BenchError> {
        plain(&at.directory)?;
        self.top(at)?.clear(&[&at.directory, MARK], true)
    }

    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError> {
        plain(&at.directory)?;
        self.top(at)?.clear(&[&at.directory], with_directory)
    }
}

impl TargetPlace {
    fn top(&self, at: &Location) -> Result<Box<dyn Top>, BenchError> {
        Ok(match self.targets.get(&at.target)? {
            Target::Nfs(target) => Box::new(nfs::NfsTop::open(target)?),
            Target::Smb(target) => Box::new(SmbTop::open(target)?),
            Target::Path(target) => Box::new(path::PathTop(target.root.clone())),
        })
    }
}

/// Directories below the top of a target, by the names that lead to them.
trait Top {
    /// Makes a directory; `false` if it is there.
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError>;

    /// The first names in a directory, `.` and `..` left out; none if it is not there.
    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError>;

    /// Removes what is in a directory, and itself if `with_directory`.
    fn clear(&mut self, path: &[&str], with_directory: bool) -> Result<(), BenchError>;
}

impl Top for SmbTop {
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        self.make(&path.join("/"))
    }

    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError> {
        self.names(&path.join("/"))
    }

    fn clear(&mut self, path: &[&str], with_directory: bool) -> Result<(), BenchError> {
        self.clear(&path.join("/"), with_directory)
    }
}

/// Makes a directory, or finds it empty, or empties that of a killed run; it is marked as that of
/// this run then.
fn claim(top: &mut dyn Top, directory: &str) -> Result<Claim, BenchError> {
    let mut claim = Claim { made: top.make(&[directory])?, abandoned: None };
    if !claim.made && !top.names(&[directory])?.is_empty() {
        let names = top.names(&[directory, MARK])?;
        let owner = names.iter().find_map(|name| Owner::parse(name));
        match owner.filter(|owner| owner.has_ended() == Some(true)) {
            Some(owner) => {
                top.clear(&[directory], false)?;
                claim = Claim { made: owner.made, abandoned: Some(owner.process()) };
            }
            None => return Err(occupied(directory, !names.is_empty())),
        }
    }
    top.make(&[directory, MARK])?;
    top.make(&[directory, MARK, &Owner::this(claim.made).name()])?;
    Ok(claim)
}

/// Everything in a directory of the suite is removed, so it must lie below the target, whatever a
/// text says.
fn plain(directory: &str) -> Result<(), BenchError> {
    if directory.is_empty() || directory.starts_with('.') || directory.contains(['/', '\0']) {
        return Err(BenchError::Workload(format!("{directory:?} is not a plain directory name")));
    }
    Ok(())
}

/// The error of a directory that is not empty; `has_owner` if a run that may be active uses it.
fn occupied(directory: &str, has_owner: bool) -> BenchError {
    let who = if has_owner {
        "another run uses it, or was killed on another machine"
    } else {
        "it was left by a run with --keep, or is somebody else's"
    };
    BenchError::Workload(format!(
        "the directory {directory} already exists on the target and is not empty: {who}. Use its \
         files with --reuse, use another directory with --dir, or remove it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_directory_below_the_target_is_ever_emptied() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("precious"), "x").unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        for directory in ["", ".", "..", "a/b", "/", "../x"] {
            let at = Location { directory: directory.to_owned(), ..Location::default() };
            assert!(place.claim(&at).is_err(), "{at:?}");
            assert!(place.clear(&at, true).is_err(), "{at:?}");
        }
        assert!(root.path().join("precious").exists());
    }

    fn location(directory: &str) -> Location {
        Location { directory: directory.to_owned(), ..Location::default() }
    }

    #[test]
    fn a_directory_is_claimed_once_and_released_with_its_files() {
        let root = tempfile::tempdir().unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let at = location("bench");
        assert_eq!(place.claim(&at).unwrap(), Claim { made: true, abandoned: None });
        let refused = place.claim(&at).unwrap_err().to_string();
        assert!(refused.contains("another run uses it"), "{refused}");
        std::fs::write(root.path().join("bench/file"), "x").unwrap();
        place.release(&at).unwrap();
        assert_eq!(std::fs::read_dir(root.path().join("bench")).unwrap().count(), 1);
        let refused = place.claim(&at).unwrap_err().to_string();
        assert!(refused.contains("--keep"), "{refused}");
        place.clear(&at, false).unwrap();
        assert_eq!(place.claim(&at).unwrap(), Claim { made: false, abandoned: None });
        place.clear(&at, true).unwrap();
        assert!(!root.path().join("bench").exists());
    }

    #[test]
    fn the_files_of_a_killed_run_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let mut place = TargetPlace::new(Target::Path(root.path().into()));
        let at = location("bench");
        let leave = |owner: &str| {
            std::fs::create_dir_all(root.path().join("bench").join(MARK).join(owner)).unwrap();
            std::fs::write(root.path().join("bench/file"), "x").unwrap();
        };
        let own = Owner::this(true).name();
        let mut parts: Vec<&str> = own.split('.').collect();
        // No process has started at the time 1.
        parts[2] = "1";
        leave(&parts.join("."));
        let process = std::process::id();
        assert_eq!(place.claim(&at).unwrap(), Claim { made: true, abandoned: Some(process) });
        assert!(!root.path().join("bench/file").exists());
        place.clear(&at, true).unwrap();
        parts[4] = "another-machine";
        leave(&parts.join("."));
        assert!(place.claim(&at).is_err());
        assert!(root.path().join("bench/file").exists());
    }
}
