//! Putting a backup in the place of a catalogue.
//!
//! A backup does not know the objects made after it. So that no new object is ever taken for one of
//! them, ids, generations and the state number of the lock manager go on far ahead of where they
//! were: a directory or a handle of a forgotten volume is never that of a later one.

use crate::backup::{self, BackupInfo};
use crate::directory::{self, Lock};
use crate::error::{CatalogError, Result};
use crate::{image, rows, schema};
use rusqlite::Connection;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The catalogue that is to be.
const NEW: &str = "weir.db.new";
/// The files of a catalogue. The log may be there after a crash.
const PARTS: [&str; 4] = ["weir.db", "weir.db-wal", "weir.db-shm", "handle.key"];

/// Further than a catalogue comes between two backups; ids last for 4,095 restores. What requests
/// made is perhaps forgotten, so they are too.
const AHEAD: &str = "
    UPDATE meta SET generation = generation + 0x100000;
    INSERT INTO sqlite_sequence SELECT name, 0 FROM (SELECT 'pools' AS name UNION SELECT 'volumes')
        WHERE name NOT IN (SELECT name FROM sqlite_sequence);
    UPDATE sqlite_sequence SET seq = seq + 0x100000 WHERE name IN ('pools', 'volumes', 'accounts');
    DELETE FROM requests;
    UPDATE credits SET credits = 0;
    UPDATE nsm SET state = (state + 0x200000) & 0x7fffffff;
";

/// May a catalogue that is there be replaced?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// No.
    Never,
    /// Yes; it is kept beside.
    Kept,
}

/// The outcome of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The backup's information about itself.
    pub info: BackupInfo,
    /// The directory that the earlier catalogue is in now.
    pub kept: Option<PathBuf>,
}

/// Makes the backup `bytes`, which came from `path`, the catalogue of `directory`, in the newest
/// format. What was there is moved aside. An interrupted restore is done anew; until then no server
/// starts on the directory.
///
/// # Errors
/// `Locked` if a server uses the directory, `CatalogExists` if there is a catalogue and it may not
/// be replaced; `OfCluster`; those of [`backup::inspect_backup`]; `NotDataDirectory`,
/// `ForeignOwner`, `Io`.
pub fn restore(directory: &Path, path: &Path, bytes: &[u8], replace: Replace) -> Result<Restored> {
    let backup = backup::read(path, bytes)?;
    let key = backup.handles(path)?;
    let directory = directory::prepare(directory)?;
    let _lock = Lock::take(&directory)?;
    if replace == Replace::Never && !present(&directory)?.is_empty() {
        return Err(CatalogError::CatalogExists { directory });
    }
    let kept = put(&directory, &backup.image, &key)?;
    Ok(Restored { info: backup.info, kept })
}

/// Makes `image`, with the secret `key` for file handles, the catalogue of `directory`, whose lock
/// the caller has. What was there is moved aside, to the directory that is given back.
///
/// # Errors
/// `Io`, `Database`, `Damaged`.
pub(crate) fn put(directory: &Path, image: &Connection, key: &[u8; 16]) -> Result<Option<PathBuf>> {
    make(directory, image)?;
    directory::write_whole(directory, directory::RESTORING, b"")?;
    let there = present(directory)?;
    let kept = if there.is_empty() { None } else { Some(move_aside(directory, &there)?) };
    let (new, place) = (directory.join(NEW), directory.join("weir.db"));
    std::fs::rename(&new, &place).map_err(directory::at(&place))?;
    // Syncs the directory too.
    directory::write_whole(directory, "handle.key", key)?;
    let mark = directory.join(directory::RESTORING);
    std::fs::remove_file(&mark).map_err(directory::at(&mark))?;
    sync(directory)?;
    Ok(kept)
}

/// The files of a catalogue that are in `directory`.
pub(crate) fn present(directory: &Path) -> Result<Vec<&'static str>> {
    let mut there = Vec::new();
    for name in PARTS {
        if directory::is_there(&directory.join(name))? {
            there.push(name);
        }
    }
    Ok(there)
}

/// Makes the catalogue that is to be, beside the one that is.
fn make(directory: &Path, image: &Connection) -> Result<()> {
    let path = directory.join(NEW);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(directory::at(&path)(error));
        }
        // Gone, or left by an interrupted restore.
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(&path).map_err(directory::at(&path))?;
    let mut db = Connection::open(&path)?;
    image::copy(image, &mut db)?;
    backup::strip(&db)?;
    schema::migrate(&mut db, &path)?;
    advance(&db)?;
    rows::load(&db, directory)?;
    db.close().map_err(|(_, error)| error)?;
    file.sync_all().map_err(directory::at(&path))
}

/// Lets ids, generations and the state number of the lock manager go on far ahead.
pub(crate) fn advance(db: &Connection) -> Result<()> {
    Ok(db.execute_batch(AHEAD)?)
}

fn move_aside(directory: &Path, names: &[&str]) -> Result<PathBuf> {
    let mut number = 1_u32;
    let aside = loop {
        let path = directory.join(format!("replaced-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => break path,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(directory::at(&path)(error)),
        }
    };
    for name in names {
        let from = directory.join(name);
        std::fs::rename(&from, aside.join(name)).map_err(directory::at(&from))?;
    }
    sync(&aside)?;
    sync(directory)?;
    Ok(aside)
}

fn sync(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|dir| dir.sync_all()).map_err(directory::at(directory))
}
