//! The data directory and the pools' directories: who owns them, the lock, the secret. Not the
//! trees of the volumes, which are the store's.

use crate::error::{CatalogError, Result};
use crate::limits::PATH_BYTES_MAX;
use crate::model::Pool;
use crate::owner;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::fs::{DirBuilder, DirEntry, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use weir_core::VolumeId;
use weir_core::place::NEW_VOLUME_MARK;

/// Marks a pool's directory with its owner.
pub(crate) const MARKER: &str = "weir-pool";

/// The mark in a data directory while a restore writes to it.
pub(crate) const RESTORING: &str = "restoring";
const SECRET_BYTES: usize = 16;
/// Shortest token an operator may put in place of the one that is made.
const TOKEN_CHARS_MIN: usize = 32;

/// A failure at `path`.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> CatalogError {
    move |source| CatalogError::Io { path: path.to_owned(), source }
}

/// Makes the data directory, or takes it over if it is ours, and gives its absolute path. Nobody
/// but its owner can look inside afterwards: it holds the secret of all file handles.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(at(directory))?;
    let directory = directory.canonicalize().map_err(at(directory))?;
    owner::check_directory(&directory)?;
    let mode = directory.metadata().map_err(at(&directory))?.permissions().mode();
    if mode & 0o077 != 0 {
        let ours = directory.join("weir.db").exists();
        let empty = directory.read_dir().map_err(at(&directory))?.next().is_none();
        if !ours && !empty {
            return Err(CatalogError::NotDataDirectory { directory });
        }
        std::fs::set_permissions(&directory, Permissions::from_mode(0o700))
            .map_err(at(&directory))?;
    }
    Ok(directory)
}

/// The lock of a file, such as the one that holds the data directory for one server. It is released
/// with this, or by the kernel when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close the file is not enough: a process that another thread starts meanwhile has it
        // open until it runs its program, and the lock with it.
        let _closed = self.file.unlock();
    }
}

impl Lock {
    /// Takes over the lock of a file that is locked already.
    pub(crate) const fn of(file: File) -> Self {
        Self { file }
    }

    /// The file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Takes the data directory.
    ///
    /// # Errors
    /// [`CatalogError::Locked`] with the holder's pid.
    pub fn take(directory: &Path) -> Result<Self> {
        let path = directory.join("weir.lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = (&file).take(32).read_to_string(&mut text).ok();
                let pid = pid.and_then(|_| text.trim().parse().ok());
                return Err(CatalogError::Locked { directory: directory.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(at(&path)(source)),
        }
        let mut lock = Self::of(file);
        lock.file.set_len(0).map_err(at(&path))?;
        writeln!(lock.file, "{}", std::process::id()).map_err(at(&path))?;
        Ok(lock)
    }
}

/// The secret that seals file handles, made once.
pub(crate) fn secret(directory: &Path) -> Result<[u8; SECRET_BYTES]> {
    let bytes = read_or_make(directory, "handle.key", random::<SECRET_BYTES>)?;
    bytes.try_into().map_err(|_| CatalogError::BadSecret { path: directory.join("handle.key") })
}

/// The secret, which must be there.
pub(crate) fn existing_secret(directory: &Path) -> Result<[u8; SECRET_BYTES]> {
    let path = directory.join("handle.key");
    let bytes = std::fs::read(&path).map_err(at(&path))?;
    bytes.try_into().map_err(|_| CatalogError::BadSecret { path })
}

/// The database of a data directory, which must be there.
pub(crate) fn existing_catalog(directory: &Path) -> Result<PathBuf> {
    let path = directory.join("weir.db");
    match path.try_exists() {
        Ok(true) => Ok(path),
        Ok(false) => Err(CatalogError::NoCatalog { directory: directory.to_owned() }),
        Err(source) => Err(at(&path)(source)),
    }
}

/// Refuses a directory in which a restore was interrupted.
pub(crate) fn check_restored(directory: &Path) -> Result<()> {
    match is_there(&directory.join(RESTORING))? {
        true => Err(CatalogError::RestoreInterrupted { directory: directory.to_owned() }),
        false => Ok(()),
    }
}

/// Whether `path` exists. A failing disk is an error, not an answer.
pub(crate) fn is_there(path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path)(error)),
    }
}

/// The token of the API, made once: 64 random hexadecimal digits.
pub(crate) fn token(directory: &Path) -> Result<String> {
    let make = || Ok((random_digits()? + "\n").into_bytes());
    let bytes = read_or_make(directory, "api.token", make)?;
    valid_token(bytes).ok_or_else(|| CatalogError::BadToken { path: directory.join("api.token") })
}

/// The secret that signs reports, made once.
pub(crate) fn report_secret(directory: &Path) -> Result<[u8; 32]> {
    let bytes = read_or_make(directory, "report.key", random::<32>)?;
    bytes.try_into().map_err(|_| CatalogError::BadReportKey { path: directory.join("report.key") })
}

pub(crate) fn valid_token(bytes: Vec<u8>) -> Option<String> {
    let token = String::from_utf8(bytes).ok().map(|token| token.trim().to_owned());
    token.filter(|token| token.len() >= TOKEN_CHARS_MIN)
}

/// 64 random hexadecimal digits.
pub(crate) fn random_digits() -> Result<String> {
    Ok(random::<32>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<Vec<u8>> {
    let mut bytes = [0; N];
    let failed = |error| at(Path::new("random source"))(std::io::Error::other(error));
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes.to_vec())
}

/// The content of the file `name`, if it is there.
pub(crate) fn read_if_there(directory: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = directory.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(&path)(error)),
    }
}

/// The content of the file `name`, which is made if it isn't there.
pub(crate) fn read_or_make(
    directory: &Path,
    name: &str,
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    if let Some(bytes) = read_if_there(directory, name)? {
        return Ok(bytes);
    }
    let bytes = make()?;
    write_whole(directory, name, &bytes)?;
    Ok(bytes)
}

/// Writes a file that is there either whole or not at all, and stays after a power cut.
pub(crate) fn write_whole(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, new) = (directory.join(name), directory.join(format!("{name}.new")));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(at(&new))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(at(&new))?;
    std::fs::rename(&new, &path).map_err(at(&path))?;
    File::open(directory).and_then(|dir| dir.sync_all()).map_err(at(directory))
}

/// Checks the path that a pool asks for, against the directories of the `others`.
pub(crate) fn check_pool_path<'a>(
    path: &Path,
    mut others: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Result<()> {
    let bad = |reason: &str| {
        Err(CatalogError::BadPath { path: path.to_owned(), reason: reason.to_owned() })
    };
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return bad("the path must be absolute and without \"..\"");
    }
    if path.as_os_str().len() > PATH_BYTES_MAX
        || path.to_str().is_none_or(|text| text.contains('\0'))
    {
        return bad("the path is too long, or not valid UTF-8");
    }
    if path.exists() && !path.is_dir() {
        return bad("it is not a directory");
    }
    if let Some((pool, _)) =
        others.find(|(_, other)| path.starts_with(other) || other.starts_with(path))
    {
        return bad(&format!("it is inside, or contains, pool {pool:?}; pools cannot be nested"));
    }
    Ok(())
}

/// Is the place free for a pool of the data directory called `instance`?
///
/// `is_live` says whether a pool of this data directory exists; a mark of one that doesn't is
/// what an interrupted create or delete left behind.
pub(crate) fn check_vacant(
    path: &Path,
    instance: &str,
    is_live: impl Fn(u32) -> bool,
) -> Result<()> {
    let refuse = |reason: &str| {
        Err(CatalogError::BadPath { path: path.to_owned(), reason: reason.to_owned() })
    };
    let marker = path.join(MARKER);
    match std::fs::read_to_string(&marker) {
        Ok(mark) => {
            let ours = mark.trim().strip_prefix(instance).and_then(|id| id.trim().parse().ok());
            if ours.is_none_or(is_live) {
                return refuse(
                    "it contains another Weir pool; use another path, or delete that pool first",
                );
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_vacant(&path.join("volumes")) {
                return Ok(());
            }
            refuse("it contains a directory \"volumes\" that is not empty; use another path")
        }
        Err(error) => Err(at(&marker)(error)),
    }
}

/// Makes a pool's directory and marks it as ours, so that no two servers ever mix their volumes.
/// The caller has checked that it is vacant.
pub(crate) fn claim_pool(path: &Path, instance: &str, pool: u32) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
    write_whole(path, MARKER, format!("{instance} {pool}\n").as_bytes())
}

/// Is the directory of `pool` there, and marked as its own? Not where its file system isn't
/// mounted, and what was put there then would be out of sight as soon as it is.
pub(crate) fn check_claim(pool: &Pool, instance: &str) -> Result<()> {
    let (name, directory) = (pool.name.clone(), pool.directory.clone());
    let marker = directory.join(MARKER);
    match std::fs::read_to_string(&marker) {
        Ok(mark) if mark.trim() == format!("{instance} {}", pool.id) => Ok(()),
        Ok(_) => Err(CatalogError::PoolForeign { pool: name, directory }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(CatalogError::PoolAway { pool: name, directory })
        }
        Err(error) => Err(at(&marker)(error)),
    }
}

/// Makes the directory of a new volume, marked as to be filled by the store. It is there before the
/// catalogue knows the volume, so that a volume without one is a volume that was lost, and so is
/// one whose directory has neither the mark nor what the store puts there.
pub(crate) fn make_volume(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
    check_unfilled(path)?;
    let mark = path.join(NEW_VOLUME_MARK);
    OpenOptions::new().create(true).append(true).open(&mark).map_err(at(&mark))?;
    // The names of the mark, of the volume and of the directory of volumes, which may be new too.
    for parent in path.ancestors().take(3) {
        File::open(parent).and_then(|dir| dir.sync_all()).map_err(at(parent))?;
    }
    Ok(())
}

/// Is `path` missing, empty, or what an attempt to make a volume left that ended before the volume
/// was in the catalogue: a directory with nothing in it but the mark of a new one?
///
/// # Errors
/// `BadPath` if anything else is there.
pub(crate) fn check_unfilled(path: &Path) -> Result<()> {
    let left = |entry: std::io::Result<DirEntry>| {
        entry
            .and_then(|entry| Ok((entry.file_name(), entry.metadata()?)))
            .is_ok_and(|(name, meta)| name == NEW_VOLUME_MARK && meta.is_file() && meta.len() == 0)
    };
    let unfilled = match path.read_dir() {
        Ok(mut entries) => entries.all(left),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if unfilled {
        return Ok(());
    }
    let reason = "it contains something that is not a volume of this catalogue".to_owned();
    Err(CatalogError::BadPath { path: path.to_owned(), reason })
}

/// Removes what [`check_unfilled`] lets pass.
pub(crate) fn clear_unfilled(path: &Path) -> Result<()> {
    let mark = path.join(NEW_VOLUME_MARK);
    match std::fs::remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(&mark)(error)),
        _ => Ok(()),
    }
}

/// Has the store made a volume in `path`?
pub(crate) fn is_volume(path: &Path) -> bool {
    path.join("meta/format").is_file()
}

/// Does the directory carry the mark of any pool of the data directory called `instance`?
pub(crate) fn is_marked_by(pool: &Path, instance: &str) -> bool {
    std::fs::read_to_string(pool.join(MARKER)).is_ok_and(|mark| {
        mark.trim().strip_prefix(instance).is_some_and(|id| id.trim().parse::<u32>().is_ok())
    })
}

/// The volumes of which there are trees in a pool's directory.
pub(crate) fn trees(pool: &Path) -> impl Iterator<Item = VolumeId> {
    let entries = pool.join("volumes").read_dir().into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(VolumeId))
}

/// Is `path` missing or an empty directory?
fn is_vacant(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Gives a deleted pool's directory back. While trees of deleted volumes are still being removed
/// the mark stays; it does no harm, because its pool no longer exists.
pub(crate) fn release_pool(path: &Path, instance: &str, is_default: bool) {
    if !is_marked_by(path, instance) {
        return;
    }
    let volumes = path.join("volumes");
    if std::fs::remove_dir(&volumes).is_err() && volumes.exists() {
        return;
    }
    let unmarked = std::fs::remove_file(path.join(MARKER));
    if is_default && unmarked.is_ok() {
        // A file left in the directory, if any, was put there by somebody else and is theirs.
        let _not_empty = std::fs::remove_dir(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_lock_ends_with_its_owner_although_a_child_still_has_the_file() {
        let base = tempfile::tempdir().unwrap();
        let lock = Lock::take(base.path()).unwrap();
        // As a child has it between fork and exec.
        let _of_the_child = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(base.path()), Err(CatalogError::Locked { .. })));
        drop(lock);
        Lock::take(base.path()).unwrap();
    }

    #[test]
    fn the_data_directory_is_its_owners_alone_and_nobody_elses_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let made = prepare(&base.path().join("a/b")).unwrap();
        assert_eq!(mode(&made), 0o700);
        let open = base.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(mode(&prepare(&open).unwrap()), 0o700);
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        std::fs::write(open.join("letter"), "dear").unwrap();
        assert!(matches!(prepare(&open), Err(CatalogError::NotDataDirectory { .. })));
        assert_eq!(mode(&open), 0o755);
    }

    #[test]
    fn a_second_server_is_refused_with_the_pid_of_the_first() {
        let base = tempfile::tempdir().unwrap();
        let held = Lock::take(base.path()).unwrap();
        let refused = Lock::take(base.path()).unwrap_err();
        assert!(refused.to_string().contains(&format!("pid {}", std::process::id())), "{refused}");
        drop(held);
        Lock::take(base.path()).unwrap();
    }

    #[test]
    fn the_secret_is_made_once_and_readable_by_its_owner_alone() {
        let base = tempfile::tempdir().unwrap();
        let secret_made = secret(base.path()).unwrap();
        assert_eq!(mode(&base.path().join("handle.key")), 0o600);
        assert_eq!(secret(base.path()).unwrap(), secret_made);
        std::fs::write(base.path().join("handle.key"), "short").unwrap();
        assert!(matches!(secret(base.path()), Err(CatalogError::BadSecret { .. })));
    }

    #[test]
    fn the_token_is_made_once_and_never_short() {
        let base = tempfile::tempdir().unwrap();
        let made = token(base.path()).unwrap();
        assert!(made.len() == 64 && made.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(mode(&base.path().join("api.token")), 0o600);
        assert_eq!(token(base.path()).unwrap(), made);
        std::fs::write(base.path().join("api.token"), "letmein").unwrap();
        assert!(matches!(token(base.path()), Err(CatalogError::BadToken { .. })));
    }

    #[test]
    fn a_pool_of_another_server_is_never_taken() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("pool");
        check_vacant(&path, "aaaa", |_| false).unwrap();
        claim_pool(&path, "aaaa", 1).unwrap();
        assert!(check_vacant(&path, "bbbb", |_| false).is_err());
        assert!(check_vacant(&path, "aaaa", |id| id == 1).is_err());
        check_vacant(&path, "aaaa", |_| false).unwrap();
        release_pool(&path, "bbbb", true);
        assert!(path.exists(), "it is another's");
        release_pool(&path, "aaaa", true);
        assert!(!path.exists());
        std::fs::create_dir_all(path.join("volumes/7")).unwrap();
        assert!(check_vacant(&path, "aaaa", |_| false).is_err());
    }
}
