//! Removing the trees of deleted volumes, behind the answer. The catalogue remembers them until
//! they are gone, so a stop in the middle is taken up at the next start.
//!
//! Clients shape these trees, so nothing here recurses or builds long paths: directories found
//! inside are moved up to the top one by one, and no tree is ever more than two levels deep.

use crate::sync::{Arc, Mutex, lock};
use std::ffi::OsString;
use std::fs::{self, DirEntry, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Condemned};

/// Held by the one thread that removes; whoever comes next finds what is left.
static TURN: Mutex<()> = Mutex::new(());

/// Begins to remove all condemned trees, on a thread of its own.
///
/// # Errors
/// If no thread can be started; the trees then stay condemned.
pub(super) fn remove_condemned(catalog: Arc<Catalog>) -> io::Result<()> {
    let work = move || {
        let _turn = lock(&TURN);
        match catalog.condemned() {
            Ok(condemned) => condemned.iter().for_each(|one| remove_one(&catalog, one)),
            Err(error) => tracing::error!(%error, "can't tell which trees are to be removed"),
        }
    };
    // Nobody waits for it: leaving in the middle of a removal is safe.
    std::thread::Builder::new().name("weir-trash".to_owned()).spawn(work).map(drop)
}

fn remove_one(catalog: &Catalog, condemned: &Condemned) {
    let directory = &condemned.directory;
    match remove_tree(directory) {
        Ok(()) => {
            if let Err(error) = catalog.forget_condemned(condemned.volume) {
                tracing::error!(%error, "can't forget a removed tree; it does no harm");
            }
        }
        Err(error) => {
            tracing::warn!(%error, path = %directory.display(), "can't remove a deleted volume's files yet");
        }
    }
}

/// Removes a volume's directory: out of its place at once, then piece by piece.
fn remove_tree(directory: &Path) -> io::Result<()> {
    let trash = trash_name(directory);
    match fs::rename(directory, &trash) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut moved = 0u64;
    loop {
        let Some(entry) = first_entry(&trash)? else { break };
        if entry.file_type()?.is_dir() {
            empty(&entry.path(), &trash, &mut moved)?;
            fs::remove_dir(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_dir(&trash) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Empties one directory: files are removed, directories moved up into `trash`.
fn empty(directory: &Path, trash: &Path, moved: &mut u64) -> io::Result<()> {
    for entry in open(directory)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
            continue;
        }
        let free = loop {
            *moved += 1;
            let name = trash.join(format!("{moved}"));
            if name.symlink_metadata().is_err() {
                break name;
            }
        };
        fs::rename(entry.path(), free)?;
    }
    Ok(())
}

fn first_entry(directory: &Path) -> io::Result<Option<DirEntry>> {
    match open(directory) {
        Ok(mut entries) => entries.next().transpose(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a directory to list and empty it, whatever mode a client left it in.
fn open(directory: &Path) -> io::Result<fs::ReadDir> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            fs::set_permissions(directory, Permissions::from_mode(0o700))?;
            fs::read_dir(directory)
        }
        opened => opened,
    }
}

fn trash_name(directory: &Path) -> PathBuf {
    let mut name = OsString::from(".trash-");
    name.push(directory.file_name().unwrap_or_default());
    directory.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_any_depth_goes_and_links_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let keep = base.path().join("keep");
        fs::write(&keep, "precious").unwrap();
        let volume = base.path().join("7");
        fs::create_dir_all(volume.join("root/1/2")).unwrap();
        fs::write(volume.join("root/1/2/file"), "x").unwrap();
        std::os::unix::fs::symlink(base.path(), volume.join("root/up")).unwrap();
        std::os::unix::fs::symlink(base.path(), volume.join("aside")).unwrap();
        let mut deep = volume.join("root");
        for level in 0..12 {
            deep.push(format!("{level:0200}"));
            fs::create_dir(&deep).unwrap();
        }
        remove_tree(&volume).unwrap();
        assert_eq!(fs::read_to_string(&keep).unwrap(), "precious");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        remove_tree(&volume).unwrap();
    }

    #[test]
    fn a_removal_cut_short_is_taken_up_again() {
        let base = tempfile::tempdir().unwrap();
        let volume = base.path().join("7");
        let trash = base.path().join(".trash-7");
        fs::create_dir_all(trash.join("1/2/3")).unwrap();
        fs::create_dir_all(trash.join("2")).unwrap();
        fs::write(trash.join("1/2/3/file"), "x").unwrap();
        remove_tree(&volume).unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
