//! Directories of a mounted file system.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weir_load::error::BenchError;

/// Is the directory there?
pub(super) fn reach(root: &Path) -> Result<(), BenchError> {
    let found = std::fs::metadata(root).map_err(|source| failed(root, source))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(failed(root, Error::from(ErrorKind::NotADirectory)))
}

/// The number of the device that the directory is on (stat(2)).
pub(super) fn device(root: &Path) -> Result<u64, BenchError> {
    std::fs::metadata(root).map(|found| found.dev()).map_err(|source| failed(root, source))
}

/// The directory of a target.
pub(super) struct PathTop(pub(super) PathBuf);

impl super::Top for PathTop {
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        let directory = self.at(path);
        match std::fs::create_dir(&directory) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed(&directory, error)),
        }
    }

    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError> {
        let directory = self.at(path);
        let entries = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|source| failed(&directory, source))?,
        };
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.map_err(|source| failed(&directory, source))?;
            Ok(entry.file_name().to_string_lossy().into_owned())
        };
        entries.map(name).collect()
    }

    fn empty(&mut self, path: &[&str], except: &str) -> Result<(), BenchError> {
        let directory = self.at(path);
        empty(&directory, except).map_err(|source| failed(&directory, source))
    }

    fn remove(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        let directory = self.at(path);
        match unless_absent(std::fs::remove_dir(&directory)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(failed(&directory, error)),
        }
    }
}

impl PathTop {
    fn at(&self, path: &[&str]) -> PathBuf {
        path.iter().fold(self.0.clone(), |at, name| at.join(name))
    }
}

/// Removes what is in it, but for `except`. Entries may vanish meanwhile, as the files that a
/// client of NFS renames until they are closed.
fn empty(directory: &Path, except: &str) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() != except {
            unless_absent(remove(&entry))?;
        }
    }
    Ok(())
}

fn remove(entry: &std::fs::DirEntry) -> std::io::Result<()> {
    if entry.file_type()?.is_dir() {
        return std::fs::remove_dir_all(entry.path());
    }
    std::fs::remove_file(entry.path())
}

fn unless_absent(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn failed(path: &Path, source: Error) -> BenchError {
    let hint = match source.kind() {
        ErrorKind::PermissionDenied => "; run as a user that may write there",
        ErrorKind::ReadOnlyFilesystem => "; it is mounted read-only",
        ErrorKind::NotFound => "; name a directory that is there",
        ErrorKind::NotADirectory => "; name a directory",
        _ => "",
    };
    BenchError::Path { path: path.to_owned(), source, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_listed_and_removed() {
        use super::super::Top;
        let place = tempfile::tempdir().unwrap();
        let mut top = PathTop(place.path().to_owned());
        reach(place.path()).unwrap();
        assert!(weir_load::engine::path_room(place.path()).unwrap() > 0);
        let proc = device(Path::new("/proc")).unwrap();
        assert!(device(place.path()).unwrap() != proc, "another file system");
        assert!(top.make(&["bench"]).unwrap() && !top.make(&["bench"]).unwrap());
        std::fs::create_dir_all(place.path().join("bench/a/b")).unwrap();
        std::fs::write(place.path().join("bench/a/b/file"), "x").unwrap();
        assert_eq!(top.names(&["bench", "a"]).unwrap(), ["b"]);
        assert_eq!(top.names(&["absent"]).unwrap(), [""; 0]);
        std::fs::write(place.path().join("bench/file"), "x").unwrap();
        assert!(!top.remove(&["bench"]).unwrap());
        top.empty(&["bench"], "a").unwrap();
        assert_eq!(top.names(&["bench"]).unwrap(), ["a"]);
        top.empty(&["bench"], "").unwrap();
        assert!(top.remove(&["bench"]).unwrap() && !place.path().join("bench").exists());
        assert!(top.remove(&["bench"]).unwrap(), "it is removed already");
        top.empty(&["bench"], "").unwrap();
    }

    #[test]
    fn what_is_no_directory_is_told_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(reach(&file).unwrap_err().to_string().contains("name a directory"));
        let absent = reach(&place.path().join("absent")).unwrap_err().to_string();
        assert!(absent.contains("that is there"), "{absent}");
    }
}
