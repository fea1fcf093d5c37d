//! Removing the trees of deleted volumes, behind the answer. The catalogue remembers them until
//! they are gone, so a stop in the middle is taken up at the next start.
//!
//! Clients shape these trees, so nothing here recurses or builds long paths: directories found
//! inside are moved up to the top one by one, and no tree is ever more than two levels deep.

use crate::plane::Plane;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};
use std::ffi::OsString;
use std::fs::{self, DirEntry, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use weir_catalog::{Catalog, Condemned};

/// The threads that remove, of which one works at a time.
#[derive(Default)]
pub(super) struct Trash {
    leaving: AtomicBool,
    turn: Mutex<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Trash {
    /// Begins to remove all condemned trees, on a thread of its own: those on this machine, and
    /// through `plane` the others. Gateways that remove one tree at once don't disturb each other.
    ///
    /// # Errors
    /// If no thread can be started; the trees then stay condemned.
    pub(super) fn remove_condemned(
        self: &Arc<Self>,
        catalog: Arc<Catalog>,
        plane: Arc<dyn Plane>,
    ) -> io::Result<()> {
        let trash = Arc::clone(self);
        let work = move || {
            let _turn = lock(&trash.turn);
            match catalog.condemned() {
                Ok(condemned) => {
                    for one in &condemned {
                        match one.ceph {
                            None => remove_one(&catalog, one, &trash.leaving),
                            Some(_) => remove_elsewhere(&catalog, &*plane, one, &trash.leaving),
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "cannot determine which deleted volumes' files to remove");
                }
            }
        };
        let thread = std::thread::Builder::new().name("weir-trash".to_owned()).spawn(work)?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Stops between two files, and waits until the catalogue is no longer used.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            if thread.join().is_err() {
                tracing::error!("removing deleted volumes' files failed with an internal error");
            }
        }
    }
}

fn remove_one(catalog: &Catalog, condemned: &Condemned, leaving: &AtomicBool) {
    let directory = &condemned.directory;
    if !catalog.may_remove(condemned) {
        tracing::warn!(
            path = %directory.display(),
            "a deleted volume's files are not removed: the pool's marker file is missing or belongs to another pool; mount the pool's file system and restart the server"
        );
        return;
    }
    match remove_tree(directory, leaving) {
        Ok(Removal::CutShort) => {}
        Ok(Removal::Done) => {
            forget(catalog, condemned);
            // The directory's pool may have been deleted meanwhile.
            catalog.release_emptied(directory);
        }
        Err(error) => {
            tracing::warn!(%error, path = %directory.display(), "cannot remove a deleted volume's files; will retry");
        }
    }
}

/// Removes a tree that is not on this machine.
fn remove_elsewhere(
    catalog: &Catalog,
    plane: &dyn Plane,
    condemned: &Condemned,
    leaving: &AtomicBool,
) {
    match plane.remove_tree(condemned, &|| leaving.load(Ordering::Relaxed)) {
        Ok(true) => forget(catalog, condemned),
        Ok(false) => {}
        Err(error) => {
            let path = condemned.directory.display();
            tracing::warn!(%error, %path, "cannot remove a deleted volume's files; will retry");
        }
    }
}

fn forget(catalog: &Catalog, condemned: &Condemned) {
    if let Err(error) = catalog.forget_condemned(condemned.volume) {
        tracing::error!(%error, "cannot delete the record of a removed directory tree; this is harmless");
    }
}

/// The progress of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// Nothing is left.
    Done,
    /// The server stops; the next start continues.
    CutShort,
}

/// Removes a volume's directory: out of its place at once, then piece by piece.
fn remove_tree(directory: &Path, leaving: &AtomicBool) -> io::Result<Removal> {
    let trash = trash_name(directory);
    unless_missing(fs::rename(directory, &trash))?;
    let mut moved = 0u64;
    while let Some(entry) = first_entry(&trash)? {
        if leaving.load(Ordering::Relaxed) {
            return Ok(Removal::CutShort);
        }
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        } else if empty(&entry.path(), &trash, &mut moved, leaving)? == Removal::Done {
            fs::remove_dir(entry.path())?;
        }
    }
    unless_missing(fs::remove_dir(&trash))?;
    Ok(Removal::Done)
}

/// Empties one directory: files are removed, directories moved up into `trash`.
fn empty(
    directory: &Path,
    trash: &Path,
    moved: &mut u64,
    leaving: &AtomicBool,
) -> io::Result<Removal> {
    for entry in open(directory)? {
        if leaving.load(Ordering::Relaxed) {
            return Ok(Removal::CutShort);
        }
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
    Ok(Removal::Done)
}

/// Ignores that a file is missing, because it needs no removal.
fn unless_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
    use weir_catalog::{Mode, NewVolume};

    static STAYING: AtomicBool = AtomicBool::new(false);

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
        assert_eq!(remove_tree(&volume, &STAYING).unwrap(), Removal::Done);
        assert_eq!(fs::read_to_string(&keep).unwrap(), "precious");
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        assert_eq!(remove_tree(&volume, &STAYING).unwrap(), Removal::Done);
    }

    #[test]
    fn only_trees_in_a_pool_of_our_own_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&base.path().join("data")).unwrap();
        let (level, size_bytes) = ("standard".to_owned(), 4 << 40);
        let (name, directory) = ("p".to_owned(), Some(base.path().join("pool")));
        let new = weir_catalog::NewPool {
            name,
            level,
            size_bytes,
            directory,
            ..weir_catalog::NewPool::default()
        };
        catalog.create_pool(&new, Mode::Commit).unwrap();
        let (name, pool) = ("v".to_owned(), "p".to_owned());
        let new = NewVolume { name, pool, quota_bytes: 1 << 40, ..NewVolume::default() };
        catalog.create_volume(&new, Mode::Commit).unwrap();
        let tree = base.path().join("pool/volumes/1");
        fs::write(tree.join("file"), "x").unwrap();
        let mark = base.path().join("pool/weir-pool");
        let own = fs::read_to_string(&mark).unwrap();
        catalog.delete_volume("v", Mode::Commit).unwrap();
        let condemned = catalog.condemned().unwrap().remove(0);
        fs::write(&mark, own.replace(&own[..4], "????")).unwrap();
        remove_one(&catalog, &condemned, &STAYING);
        fs::remove_file(&mark).unwrap();
        remove_one(&catalog, &condemned, &STAYING);
        assert!(tree.join("file").exists());
        assert_eq!(catalog.condemned().unwrap().len(), 1, "it is not forgotten");
        fs::write(&mark, own).unwrap();
        remove_one(&catalog, &condemned, &STAYING);
        assert!(!tree.exists());
        assert!(catalog.condemned().unwrap().is_empty());
    }

    #[test]
    fn the_directory_of_a_pool_deleted_meanwhile_goes_with_its_last_tree() {
        let base = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(&base.path().join("data")).unwrap();
        let pool = |directory| weir_catalog::NewPool {
            name: "p".to_owned(),
            level: "standard".to_owned(),
            size_bytes: 4 << 40,
            directory,
            ..weir_catalog::NewPool::default()
        };
        let chosen = base.path().join("pool");
        for (id, directory) in [(1, None), (2, Some(chosen.clone()))] {
            catalog.create_pool(&pool(directory), Mode::Commit).unwrap();
            let place = catalog.snapshot().pool_named("p").unwrap().directory.clone();
            let (name, pool) = ("v".to_owned(), "p".to_owned());
            let new = NewVolume { name, pool, quota_bytes: 1 << 40, ..NewVolume::default() };
            catalog.create_volume(&new, Mode::Commit).unwrap();
            fs::write(place.join(format!("volumes/{id}/file")), "x").unwrap();
            catalog.delete_volume("v", Mode::Commit).unwrap();
            catalog.delete_pool("p", Mode::Commit).unwrap();
            assert!(place.join("weir-pool").exists(), "the tree is still to be removed");
            remove_one(&catalog, &catalog.condemned().unwrap().remove(0), &STAYING);
            assert_eq!(place.exists(), place == chosen, "one that was given is its owner's");
        }
        assert_eq!(fs::read_dir(&chosen).unwrap().count(), 0);
        // While a pool lives, its directory stays.
        catalog.create_pool(&pool(Some(chosen.clone())), Mode::Commit).unwrap();
        catalog.release_emptied(&chosen.join("volumes/2"));
        assert!(chosen.join("weir-pool").exists());
    }

    #[test]
    fn a_removal_cut_short_is_taken_up_again() {
        let base = tempfile::tempdir().unwrap();
        let volume = base.path().join("7");
        let trash = base.path().join(".trash-7");
        fs::create_dir_all(trash.join("1/2/3")).unwrap();
        fs::create_dir_all(trash.join("2")).unwrap();
        let leaving = AtomicBool::new(true);
        assert_eq!(remove_tree(&volume, &leaving).unwrap(), Removal::CutShort);
        fs::write(trash.join("1/2/3/file"), "x").unwrap();
        assert_eq!(remove_tree(&volume, &STAYING).unwrap(), Removal::Done);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
