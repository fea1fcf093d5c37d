//! Backups of the catalogue: one SQLite file with the catalogue's tables as they were at one moment
//! and a table `backup`, which tells when and by which version, and holds the key of file handles.
//! Since version 2 a line after the database has a checksum over it ([`seal`]).
//!
//! Not in it: the volumes' files; the API's token, which is no state: a restore leaves the one that
//! is there alone, and otherwise the server makes a new one; and the key that seals passwords
//! (`smb.key`), so that whoever finds a backup has no password.
//!
//! Version 3 is the backup of a cluster. Its secrets, tokens included, are in the table
//! `backup_secrets` as they are in the cluster's store: sealed by the key of the cluster, whose
//! name is in `backup_cluster`. It has no key that can be read, so `handle_key` is empty.

use crate::cluster::Secret;
use crate::directory::{self, Lock};
use crate::error::{CatalogError, ClusterError, Result};
use crate::seal::{self, Seal};
use crate::{image, owner, rows, schema};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use std::path::Path;

/// The newest version of backups of a server that is alone. Version 1 had no checksum.
const VERSION: i64 = 2;
/// The version of backups of a cluster, and the newest that is known.
const VERSION_OF_CLUSTER: i64 = 3;
/// The first version with a checksum. A backup of it without one is damaged.
const SEALED_SINCE: i64 = 2;
/// No database of SQLite is shorter than its smallest page.
const PAGE_BYTES_MIN: usize = 512;
const OTHER_CONTENT: &str = "the content does not match the checksum";
const TABLE: &str = "
    CREATE TABLE backup (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        version INTEGER NOT NULL,
        weir TEXT NOT NULL,
        taken INTEGER NOT NULL,
        handle_key BLOB NOT NULL
    ) STRICT;
";
const TABLES_OF_CLUSTER: &str = "
    CREATE TABLE backup_cluster (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL) STRICT;
    CREATE TABLE backup_secrets (name TEXT PRIMARY KEY, sealed TEXT NOT NULL) STRICT;
";
/// Removes what a backup has beside the catalogue.
const STRIP: &str = "
    DROP TABLE IF EXISTS backup;
    DROP TABLE IF EXISTS backup_cluster;
    DROP TABLE IF EXISTS backup_secrets;
";

/// A backup's information about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// Time at which the backup was taken, in seconds since 1970.
    pub taken: i64,
    /// The version of Weir that took it.
    pub weir: String,
    /// The format of the catalogue in it.
    pub format: i64,
    /// The number of pools in it.
    pub pools: usize,
    /// The number of volumes in it.
    pub volumes: usize,
    /// SHA-256 of everything in it, in hexadecimal digits, which was found to be right. Backups of
    /// earlier versions have none, so that damage to them is not always detected.
    pub sha256: Option<String>,
    /// The name of the cluster that it is of; `None` if it is of a server that is alone.
    pub cluster: Option<String>,
}

/// The secrets in a backup.
pub(crate) enum Held {
    /// The secret that seals file handles, of a server that is alone.
    Handles([u8; 16]),
    /// The secrets of a cluster, sealed by its key.
    Sealed {
        /// The name of the cluster.
        cluster: String,
        /// The secrets.
        sealed: Vec<(Secret, String)>,
    },
}

/// A backup that was read and found whole.
pub(crate) struct Backup {
    pub(crate) info: BackupInfo,
    pub(crate) held: Held,
    /// The catalogue, with the tables of the backup still in it ([`strip`]).
    pub(crate) image: Connection,
}

impl Backup {
    /// The secret that seals file handles, in the backup of a server that is alone.
    ///
    /// # Errors
    /// `OfCluster`.
    pub(crate) fn handles(&self, path: &Path) -> Result<[u8; 16]> {
        match &self.held {
            Held::Handles(key) => Ok(*key),
            Held::Sealed { cluster, .. } => {
                let (path, cluster) = (path.to_owned(), cluster.clone());
                Err(ClusterError::OfCluster { path, cluster }.into())
            }
        }
    }
}

/// A backup of the catalogue in `directory`, which no server uses, as the content of a file.
/// Changes nothing: the catalogue keeps its format.
///
/// # Errors
/// `Locked` if a server uses it; `NoCatalog`, `ForeignOwner`, `NewerFormat`, `BadSecret`, `Io`,
/// `Database`.
pub fn backup_stopped(directory: &Path) -> Result<Vec<u8>> {
    let path = directory::existing_catalog(directory)?;
    owner::check_directory(directory)?;
    let _lock = Lock::take(directory)?;
    let db = schema::open_as_it_is(&path)?;
    schema::known_format(&db, &path)?;
    finish(image::of(&db)?, &Held::Handles(directory::existing_secret(directory)?))
}

/// Reads the backup `bytes`, which came from `path`, and tells what is in it.
///
/// # Errors
/// `NotBackup`, `NewerBackup`, `NewerFormat`, `DamagedBackup`.
pub fn inspect_backup(path: &Path, bytes: &[u8]) -> Result<BackupInfo> {
    Ok(read(path, bytes)?.info)
}

/// The backup of `image`, with these secrets.
pub(crate) fn finish(image: Connection, held: &Held) -> Result<Vec<u8>> {
    image.execute_batch(TABLE)?;
    let (version, key) = match held {
        Held::Handles(key) => (VERSION, &key[..]),
        Held::Sealed { cluster, sealed } => {
            image.execute_batch(TABLES_OF_CLUSTER)?;
            image.execute("INSERT INTO backup_cluster VALUES (1, ?1)", [cluster])?;
            for (which, sealed) in sealed {
                let sql = "INSERT INTO backup_secrets VALUES (?1, ?2)";
                image.execute(sql, [which.file(), sealed])?;
            }
            (VERSION_OF_CLUSTER, &[][..])
        }
    };
    image.execute(
        "INSERT INTO backup VALUES (1, ?1, ?2, unixepoch(), ?3)",
        params![version, env!("CARGO_PKG_VERSION"), key],
    )?;
    Ok(seal::close(image::bytes(image)?))
}

/// Removes what a backup has beside the catalogue from `image`.
pub(crate) fn strip(image: &Connection) -> Result<()> {
    Ok(image.execute_batch(STRIP)?)
}

/// The database in the backup `bytes`, which a server sent, for a look at its catalogue. The
/// catalogue's own damages are not looked for here: the caller reports them one by one.
pub(crate) fn database(bytes: &[u8]) -> Result<Connection> {
    match seal::open(bytes) {
        Seal::Whole { content, .. } => image::read(content),
        // A backup of an earlier version.
        Seal::Missing => image::read(bytes),
        Seal::Broken => Err(CatalogError::DamagedBackup {
            path: "received from the server".into(),
            what: OTHER_CONTENT.to_owned(),
        }),
    }
}

/// Reads a backup and makes sure that it is whole and can be restored.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Backup> {
    let not_backup = || CatalogError::NotBackup { path: path.to_owned() };
    let damaged = |what: String| CatalogError::DamagedBackup { path: path.to_owned(), what };
    // The checksum comes before SQLite reads any of the file.
    let (content, sha256) = match seal::open(bytes) {
        Seal::Whole { content, sha256 } => (content, Some(sha256)),
        Seal::Broken => return Err(damaged(OTHER_CONTENT.to_owned())),
        Seal::Missing => (bytes, None),
    };
    if content.len() < PAGE_BYTES_MIN {
        return Err(not_backup());
    }
    let image = image::read(content)?;
    let find = "SELECT version FROM backup";
    let found = image.query_row(find, [], |row| row.get(0)).optional();
    let version: Option<i64> = found.map_err(|error| match &error {
        // The table is there, but its row or the rest of the database is damaged.
        rusqlite::Error::InvalidColumnType(..) => damaged(error.to_string()),
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure) => {
                damaged(error.to_string())
            }
            _ => not_backup(),
        },
    })?;
    let version = version.ok_or_else(not_backup)?;
    if version > VERSION_OF_CLUSTER {
        return Err(CatalogError::NewerBackup {
            path: path.to_owned(),
            found: version,
            known: VERSION_OF_CLUSTER,
        });
    }
    if version < 1 {
        return Err(damaged(format!("backup version {version} does not exist")));
    }
    if (version >= SEALED_SINCE) != sha256.is_some() {
        return Err(damaged("the checksum at the end is missing".to_owned()));
    }
    let length = image::length(&image)?;
    if length != content.len() as u64 {
        let found = content.len();
        return Err(damaged(format!("it has {found} bytes, but its database has {length}")));
    }
    if let Some(first) = image::damages(&image)?.into_iter().next() {
        return Err(damaged(first));
    }
    let format = schema::known_format(&image, path)?;
    let row = "SELECT weir, taken, handle_key FROM backup";
    let (weir, taken, key) = image
        .query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))?;
    let held =
        match version {
            VERSION_OF_CLUSTER => sealed(&image).map_err(damaged)?,
            _ => Held::Handles(key.try_into().map_err(|_| {
                damaged("its key for file handles does not have 16 bytes".to_owned())
            })?),
        };
    let cluster = match &held {
        Held::Handles(_) => None,
        Held::Sealed { cluster, .. } => Some(cluster.clone()),
    };
    let newest = schema::newest(&image, path)?;
    let snapshot = rows::load(&newest, Path::new("/"))?;
    let (pools, volumes) = (snapshot.pools().count(), snapshot.volumes().count());
    let info = BackupInfo { taken, weir, format, pools, volumes, sha256, cluster };
    Ok(Backup { info, held, image })
}

/// The secrets in the backup of a cluster; the damage, if they cannot be read.
fn sealed(image: &Connection) -> std::result::Result<Held, String> {
    let told = |error: rusqlite::Error| error.to_string();
    let find = "SELECT name FROM backup_cluster";
    let cluster = image.query_row(find, [], |row| row.get(0)).map_err(told)?;
    let mut query = image.prepare("SELECT name, sealed FROM backup_secrets").map_err(told)?;
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)));
    let mut sealed = Vec::new();
    for row in rows.map_err(told)? {
        let (name, content) = row.map_err(told)?;
        let which = Secret::ALL.into_iter().find(|which| which.file() == name);
        let which = which.ok_or_else(|| format!("no cluster has a secret named {name:?}"))?;
        sealed.push((which, content));
    }
    Ok(Held::Sealed { cluster, sealed })
}
