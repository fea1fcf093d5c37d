//! Setting a damaged history aside: the file and SQLite's files beside it get a name that nothing
//! has. Nothing is overwritten or removed, so the number of such sets is bounded.

use super::HistoryError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Most sets that are kept, each of at most the size of a history and its log. Beyond: a damaged
/// history stays in its place, no history is written, and the log tells the operator to remove
/// some.
pub(super) const SETS_MAX: usize = 8;

/// Suffixes of the files that SQLite may keep beside a database, and of the database itself, which
/// goes last: as long as it is in its place, a set that a crash left half moved is found damaged
/// again, and moved under another name.
const PARTS: [&str; 4] = ["-wal", "-shm", "-journal", ""];

/// Closes `db` without writing its log into it: the set must hold the files as they were found.
pub(super) fn close_as_it_is(db: Connection) {
    // A failure means that SQLite writes the log's content into the file, as at any close.
    let _ignored = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    drop(db);
}

/// Moves the history at `path` aside, for the reason `why`, and logs it.
///
/// # Errors
/// [`HistoryError::TooManyAside`], or the file system's error; the history is then still at `path`.
pub(super) fn set(path: &Path, why: &HistoryError) -> Result<(), HistoryError> {
    let mut free = None;
    for number in 0..SETS_MAX {
        let name = name(path, number);
        if is_free(&name)? {
            free = Some(name);
            break;
        }
    }
    let aside = free.ok_or(HistoryError::TooManyAside)?;
    for part in PARTS {
        match rename(&with(path, part), &with(&aside, part)) {
            Err(Errno::NOENT) if !part.is_empty() => {}
            outcome => outcome.map_err(io::Error::from)?,
        }
    }
    tracing::warn!(
        error = %why, aside = %aside.display(),
        "the contract history is damaged or has the format of another version: it was moved aside, and a new one was started"
    );
    Ok(())
}

/// `history.db.broken`, then `history.db.broken-1` and so on.
fn name(path: &Path, number: usize) -> PathBuf {
    match number {
        0 => with(path, ".broken"),
        number => with(path, &format!(".broken-{number}")),
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Is this name free of all parts of a set?
fn is_free(name: &Path) -> io::Result<bool> {
    for part in PARTS {
        match with(name, part).symlink_metadata() {
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Renames without overwriting.
fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system has no such flag. The data directory is locked by this server, and
        // nothing had the name a moment ago.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::rename(from, to),
        outcome => outcome,
    }
}
