//! The directory of one load described by options: its own for as long as the load is applied.
//!
//! Plain `weir bench` treats directories as the suite does: one that holds anything is refused, a
//! mark keeps other runs out of it, and the next run knows the files of one that was killed.

use crate::suite::{Place, TargetPlace};
use weir_load::control::Control;
use weir_load::engine::check_room;
use weir_load::error::BenchError;
use weir_load::target::Target;
use weir_load::workload::{Layout, Location, Operation, Workload};

/// A claimed directory.
pub(super) struct Claimed {
    place: TargetPlace,
    at: Location,
    made: bool,
    keep: bool,
    /// A remark for the user: files of a killed run were removed.
    pub(super) remark: Option<String>,
}

impl Claimed {
    /// Claims the directory of `load` on `target`, and sees that there is room for its files.
    /// Nothing is claimed for a load without a directory, or one that finds its files there.
    ///
    /// # Errors
    /// [`BenchError`] if the directory holds anything or can't be made, or the target has too
    /// little room.
    pub(super) fn of(
        target: &Target,
        load: &Workload,
        control: &Control,
    ) -> Result<Option<Self>, BenchError> {
        if load.operation == Operation::Null || load.layout == Layout::Existing {
            return Ok(None);
        }
        let mut place = TargetPlace::new(target.clone()).stopped_by(control);
        check_room(load, || place.room(&load.target))?;
        let at = load.location();
        let claim = place.claim(&at)?;
        let remark = claim.abandoned.map(|process| {
            format!(
                "the directory {} was that of a killed run (process {process}): its files were \
                 removed",
                at.directory
            )
        });
        Ok(Some(Self { place, at, made: claim.made, keep: load.keep, remark }))
    }

    /// Gives the directory back: with its files if they are to be kept, and otherwise without, and
    /// without itself if it was made.
    ///
    /// # Errors
    /// [`BenchError`] names what could not be removed.
    pub(super) fn finish(mut self) -> Result<(), BenchError> {
        if self.keep { self.place.release(&self.at) } else { self.place.clear(&self.at, self.made) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn load(directory: &str, keep: bool) -> Workload {
        Workload { directory: directory.to_owned(), keep, ..Workload::default() }
    }

    fn claim(root: &Path, load: &Workload) -> Result<Option<Claimed>, BenchError> {
        Claimed::of(&Target::Path(root.into()), load, &Control::new())
    }

    #[test]
    fn a_directory_with_somebodys_files_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let mine = root.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        std::fs::write(mine.join("file.00000"), "precious").unwrap();
        let refused = claim(root.path(), &load("mine", false)).err().unwrap().to_string();
        assert!(refused.contains("not empty") && refused.contains("--dir"), "{refused}");
        assert_eq!(std::fs::read(mine.join("file.00000")).unwrap(), b"precious");
    }

    #[test]
    fn files_are_removed_or_kept_and_a_found_directory_stays() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("bench");
        for (found, keep) in [(false, false), (true, false), (false, true)] {
            if found {
                std::fs::create_dir(&directory).unwrap();
            }
            let claimed = claim(root.path(), &load("bench", keep)).unwrap().unwrap();
            assert!(claim(root.path(), &load("bench", keep)).is_err(), "another run keeps out");
            std::fs::write(directory.join("file.00000"), "x").unwrap();
            claimed.finish().unwrap();
            assert_eq!(directory.exists(), found || keep);
            let left = directory.read_dir().map_or(0, Iterator::count);
            assert_eq!(left, usize::from(keep));
            if found {
                std::fs::remove_dir(&directory).unwrap();
            }
        }
        assert!(claim(root.path(), &load("bench", false)).is_err(), "kept files are not lost");
    }

    #[test]
    fn nothing_is_claimed_where_no_files_are_made() {
        let root = tempfile::tempdir().unwrap();
        let existing = Workload { layout: Layout::Existing, ..load("bench", false) };
        let null = Workload { operation: Operation::Null, ..load("bench", false) };
        for load in [existing, null] {
            assert!(claim(root.path(), &load).unwrap().is_none());
        }
        assert_eq!(root.path().read_dir().unwrap().count(), 0);
    }
}
