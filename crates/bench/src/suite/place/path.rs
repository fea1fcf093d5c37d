//! Directories of a mounted file system.

use super::occupied;
use std::io::{Error, ErrorKind};
use std::path::Path;
use weir_load::error::BenchError;

/// Is the directory there?
pub(super) fn reach(root: &Path) -> Result<(), BenchError> {
    let found = std::fs::metadata(root).map_err(|source| failed(root, source))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(failed(root, Error::from(ErrorKind::NotADirectory)))
}

/// Makes the directory, or finds it empty.
pub(super) fn claim(directory: &Path) -> Result<bool, BenchError> {
    match std::fs::create_dir(directory) {
        Ok(()) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(directory, error)),
    }
    let mut entries = std::fs::read_dir(directory).map_err(|source| failed(directory, source))?;
    if entries.next().is_some() {
        return Err(occupied(&directory.display().to_string()));
    }
    Ok(false)
}

/// Removes what is in it, and itself if `with_directory`.
pub(super) fn clear(directory: &Path, with_directory: bool) -> Result<(), BenchError> {
    let removed = if with_directory {
        std::fs::remove_dir_all(directory)
    } else {
        std::fs::read_dir(directory).and_then(|mut entries| {
            entries.try_for_each(|entry| {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    std::fs::remove_dir_all(entry.path())
                } else {
                    std::fs::remove_file(entry.path())
                }
            })
        })
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(directory, error)),
        _ => Ok(()),
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
    fn a_directory_is_claimed_once_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("bench");
        reach(place.path()).unwrap();
        assert!(weir_load::engine::path_room(place.path()).unwrap() > 0);
        assert!(claim(&directory).unwrap());
        assert!(!claim(&directory).unwrap(), "an empty one is found");
        std::fs::create_dir_all(directory.join("a/b")).unwrap();
        std::fs::write(directory.join("a/b/file"), "x").unwrap();
        std::fs::write(directory.join("file"), "x").unwrap();
        let complaint = claim(&directory).unwrap_err().to_string();
        assert!(complaint.contains("--reuse") && complaint.contains("bench"), "{complaint}");
        clear(&directory, false).unwrap();
        assert!(!claim(&directory).unwrap());
        std::fs::write(directory.join("file"), "x").unwrap();
        clear(&directory, true).unwrap();
        assert!(!directory.exists());
        clear(&directory, true).unwrap();
        clear(&directory, false).unwrap();
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
