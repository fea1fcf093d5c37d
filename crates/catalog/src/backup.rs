//! Backups of the catalogue: one SQLite file with the catalogue's tables as they were at one moment
//! and a table `backup`, which tells when and by which version, and holds the key of file handles.
//!
//! Not in it: the volumes' files, and the API's token, which is no state: a restore leaves the one
//! that is there alone, and otherwise the server makes a new one.

use crate::catalog::Catalog;
use crate::directory::{self, Lock};
use crate::error::{CatalogError, Result};
use crate::{check, image, owner, rows, schema};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;

/// The newest version of the table that this server writes and reads.
const VERSION: i64 = 1;
/// No database of SQLite is shorter than its smallest page.
const PAGE_BYTES_MIN: usize = 512;
const TABLE: &str = "
    CREATE TABLE backup (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        version INTEGER NOT NULL,
        weir TEXT NOT NULL,
        taken INTEGER NOT NULL,
        handle_key BLOB NOT NULL
    ) STRICT;
";

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// When it was taken, in seconds since 1970.
    pub taken: i64,
    /// The version of Weir that took it.
    pub weir: String,
    /// The format of the catalogue in it.
    pub format: i64,
    /// How many pools it has.
    pub pools: usize,
    /// How many volumes it has.
    pub volumes: usize,
}

/// A backup that was read and found whole.
pub(crate) struct Backup {
    pub(crate) info: BackupInfo,
    pub(crate) key: [u8; 16],
    /// The catalogue, with the table `backup` still in it.
    pub(crate) image: Connection,
}

impl Catalog {
    /// A backup of this catalogue, as the content of a file. Changes wait meanwhile, requests don't.
    ///
    /// # Errors
    /// `Database`.
    pub fn backup(&self) -> Result<Vec<u8>> {
        let image = self.read(image::of)?;
        finish(image, self.handle_secret())
    }
}

/// A backup of the catalogue in `directory`, which no server uses, as the content of a file. Changes
/// nothing: the catalogue keeps its format.
///
/// # Errors
/// `Locked` if a server uses it; `NoCatalog`, `ForeignOwner`, `NewerFormat`, `BadSecret`, `Io`, `Database`.
pub fn backup_stopped(directory: &Path) -> Result<Vec<u8>> {
    let path = directory::existing_catalog(directory)?;
    owner::check_directory(directory)?;
    let _lock = Lock::take(directory)?;
    let db = schema::open_as_it_is(&path)?;
    schema::known_format(&db, &path)?;
    finish(image::of(&db)?, &directory::existing_secret(directory)?)
}

/// Reads the backup `bytes`, which came from `path`, and tells what is in it.
///
/// # Errors
/// `NotBackup`, `NewerBackup`, `NewerFormat`, `DamagedBackup`.
pub fn inspect_backup(path: &Path, bytes: &[u8]) -> Result<BackupInfo> {
    Ok(read(path, bytes)?.info)
}

fn finish(image: Connection, key: &[u8; 16]) -> Result<Vec<u8>> {
    image.execute_batch(TABLE)?;
    image.execute(
        "INSERT INTO backup VALUES (1, ?1, ?2, unixepoch(), ?3)",
        params![VERSION, env!("CARGO_PKG_VERSION"), key],
    )?;
    image::bytes(image)
}

/// Reads a backup and makes sure that it can be restored.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Backup> {
    let not_backup = || CatalogError::NotBackup { path: path.to_owned() };
    let damaged = |what: String| CatalogError::DamagedBackup { path: path.to_owned(), what };
    if bytes.len() < PAGE_BYTES_MIN {
        return Err(not_backup());
    }
    let image = image::read(bytes)?;
    let find = "SELECT version FROM backup";
    let version: Option<i64> =
        image.query_row(find, [], |row| row.get(0)).optional().map_err(|error| {
            match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseCorrupt) => damaged(error.to_string()),
                _ => not_backup(),
            }
        })?;
    let version = version.ok_or_else(not_backup)?;
    if version > VERSION {
        return Err(CatalogError::NewerBackup {
            path: path.to_owned(),
            found: version,
            known: VERSION,
        });
    }
    if let Some(first) = check::damages(&image)?.into_iter().next() {
        return Err(damaged(first));
    }
    let format = schema::known_format(&image, path)?;
    let row = "SELECT weir, taken, handle_key FROM backup";
    let (weir, taken, key) = image
        .query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))?;
    let key = key
        .try_into()
        .map_err(|_| damaged("its key for file handles has no 16 bytes".to_owned()))?;
    let newest = schema::newest(&image, path)?;
    let snapshot = rows::load(&newest, Path::new("/"))?;
    let (pools, volumes) = (snapshot.pools().count(), snapshot.volumes().count());
    Ok(Backup { info: BackupInfo { taken, weir, format, pools, volumes }, key, image })
}
