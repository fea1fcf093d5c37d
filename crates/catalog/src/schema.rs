//! The tables, as numbered migrations. A migration that has been released never changes.

use crate::error::{CatalogError, Result};
use crate::image;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::Path;
use weir_cluster::Version;

/// Migration `n` leads from format `n` to `n + 1`; the format is SQLite's `user_version`.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        instance TEXT NOT NULL,
        generation INTEGER NOT NULL
    ) STRICT;
    INSERT INTO meta VALUES (1, lower(hex(randomblob(16))), 0);

    CREATE TABLE pools (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        level TEXT NOT NULL,
        size_bytes INTEGER NOT NULL CHECK (size_bytes > 0),
        qos TEXT NOT NULL,
        directory TEXT UNIQUE
    ) STRICT;

    CREATE TABLE volumes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE RESTRICT,
        quota_bytes INTEGER NOT NULL CHECK (quota_bytes > 0),
        throughput INTEGER CHECK (throughput > 0)
    ) STRICT;
    CREATE INDEX volumes_by_pool ON volumes (pool);

    CREATE TABLE export_rules (
        volume INTEGER NOT NULL REFERENCES volumes (id) ON DELETE CASCADE,
        network TEXT NOT NULL,
        access TEXT NOT NULL,
        squash TEXT NOT NULL,
        anon_uid INTEGER NOT NULL,
        anon_gid INTEGER NOT NULL,
        PRIMARY KEY (volume, network)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE condemned (
        volume INTEGER PRIMARY KEY,
        directory TEXT NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE nsm (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        state INTEGER NOT NULL
    ) STRICT;
    INSERT INTO nsm VALUES (1, -1);

    CREATE TABLE monitored_hosts (
        address TEXT NOT NULL,
        name BLOB NOT NULL,
        local TEXT NOT NULL,
        PRIMARY KEY (address, name, local)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE levels (
        name TEXT PRIMARY KEY,
        rate_per_tib INTEGER NOT NULL CHECK (rate_per_tib > 0)
    ) STRICT, WITHOUT ROWID;
",
    "
    ALTER TABLE volumes ADD COLUMN ceiling_throughput INTEGER CHECK (ceiling_throughput > 0);
    ALTER TABLE volumes ADD COLUMN ceiling_iops INTEGER CHECK (ceiling_iops > 0);
",
    "
    ALTER TABLE pools ADD COLUMN throughput INTEGER CHECK (throughput > 0);
    ALTER TABLE pools ADD COLUMN iops INTEGER CHECK (iops > 0);
    ALTER TABLE volumes ADD COLUMN iops INTEGER CHECK (iops > 0);
",
    "
    CREATE TABLE credits (
        volume INTEGER PRIMARY KEY REFERENCES volumes (id) ON DELETE CASCADE,
        credits INTEGER NOT NULL CHECK (credits >= 0)
    ) STRICT;
",
    "
    ALTER TABLE volumes ADD COLUMN weight INTEGER CHECK (weight > 0);
",
    "
    CREATE TABLE requests (
        key BLOB PRIMARY KEY,
        request BLOB NOT NULL,
        at INTEGER NOT NULL,
        answer BLOB
    ) STRICT;
",
    "
    ALTER TABLE volumes ADD COLUMN file_throughput INTEGER CHECK (file_throughput > 0);
    ALTER TABLE volumes ADD COLUMN file_iops INTEGER CHECK (file_iops > 0);
",
    "
    CREATE TABLE calibrations (
        directory TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        version TEXT NOT NULL,
        host TEXT NOT NULL,
        kernel TEXT NOT NULL,
        processor TEXT NOT NULL,
        processors INTEGER NOT NULL,
        memory_bytes INTEGER NOT NULL,
        file_system TEXT NOT NULL,
        durability TEXT NOT NULL,
        jobs INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        millis INTEGER NOT NULL,
        data_bytes INTEGER NOT NULL,
        others_rate INTEGER NOT NULL,
        others_iops INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE calibrated_cells (
        directory TEXT NOT NULL REFERENCES calibrations (directory) ON DELETE CASCADE,
        read_percent INTEGER NOT NULL CHECK (read_percent BETWEEN 0 AND 100),
        block_bytes INTEGER NOT NULL CHECK (block_bytes > 0),
        rate INTEGER NOT NULL CHECK (rate > 0),
        iops INTEGER NOT NULL CHECK (iops > 0),
        mean_nanos INTEGER NOT NULL,
        p99_nanos INTEGER NOT NULL,
        server_cpu_nanos INTEGER,
        saturated INTEGER NOT NULL CHECK (saturated IN (0, 1)),
        PRIMARY KEY (directory, read_percent, block_bytes)
    ) STRICT, WITHOUT ROWID;
",
    // Users and groups are one table, because they share their names and RIDs; a group has no uid.
    "
    CREATE TABLE accounts (
        rid INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        uid INTEGER UNIQUE CHECK (uid > 0),
        gid INTEGER NOT NULL,
        enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
        nt_hash BLOB
    ) STRICT;
    CREATE UNIQUE INDEX gids_of_groups ON accounts (gid) WHERE uid IS NULL;
    INSERT INTO sqlite_sequence VALUES ('accounts', 999);
    CREATE TABLE members (
        user_rid INTEGER NOT NULL REFERENCES accounts (rid) ON DELETE CASCADE,
        group_rid INTEGER NOT NULL REFERENCES accounts (rid) ON DELETE CASCADE,
        PRIMARY KEY (user_rid, group_rid)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX members_by_group ON members (group_rid);

    ALTER TABLE volumes ADD COLUMN nfs INTEGER NOT NULL DEFAULT 1 CHECK (nfs IN (0, 1));
    ALTER TABLE volumes ADD COLUMN smb INTEGER NOT NULL DEFAULT 0 CHECK (smb IN (0, 1));
    ALTER TABLE volumes ADD COLUMN smb_encrypt INTEGER NOT NULL DEFAULT 0
        CHECK (smb_encrypt IN (0, 1));
    ALTER TABLE volumes ADD COLUMN smb_hidden INTEGER NOT NULL DEFAULT 0
        CHECK (smb_hidden IN (0, 1));
    ALTER TABLE volumes ADD COLUMN smb_abe INTEGER NOT NULL DEFAULT 0 CHECK (smb_abe IN (0, 1));
    CREATE TABLE share_rules (
        volume INTEGER NOT NULL REFERENCES volumes (id) ON DELETE CASCADE,
        network TEXT,
        account INTEGER REFERENCES accounts (rid) ON DELETE RESTRICT,
        access TEXT NOT NULL
    ) STRICT;
    CREATE INDEX share_rules_by_volume ON share_rules (volume);
    CREATE INDEX share_rules_by_account ON share_rules (account);
",
    "
    ALTER TABLE levels ADD COLUMN volume_ceiling INTEGER CHECK (volume_ceiling > 0);
    ALTER TABLE volumes ADD COLUMN metadata_cache INTEGER CHECK (metadata_cache IN (0, 1));
",
    "
    ALTER TABLE pools ADD COLUMN ceph_conf TEXT;
    ALTER TABLE pools ADD COLUMN ceph_user TEXT;
    ALTER TABLE pools ADD COLUMN ceph_path TEXT;
    CREATE UNIQUE INDEX pools_by_ceph_path ON pools (ceph_conf, ceph_path);
    CREATE TABLE addresses (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        address TEXT NOT NULL UNIQUE,
        prefix INTEGER NOT NULL CHECK (prefix BETWEEN 1 AND 128)
    ) STRICT;
    ALTER TABLE volumes ADD COLUMN address INTEGER REFERENCES addresses (id) ON DELETE RESTRICT;
    CREATE INDEX volumes_by_address ON volumes (address);
    ALTER TABLE condemned ADD COLUMN ceph_conf TEXT;
    ALTER TABLE condemned ADD COLUMN ceph_user TEXT;
    ALTER TABLE condemned ADD COLUMN address INTEGER;
    CREATE TABLE gateways (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        links TEXT NOT NULL UNIQUE,
        helper TEXT NOT NULL UNIQUE
    ) STRICT;
",
];

/// Opens the database at `path` in its newest format, made if it isn't there.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let mut db = Connection::open(path)?;
    keep_to_ourselves(&db)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    migrate(&mut db, path)?;
    Ok(db)
}

/// The formats of the catalogue of a cluster, each with the version of the cluster's records that
/// has it. A migration that is added here needs a new version ([`Version::CURRENT`]): gateways of
/// the one before would be given rows that they can't read otherwise.
const FORMATS: &[(Version, u32)] = &[(Version(1), 13)];

/// The newest format.
pub(crate) fn newest_format() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX).saturating_add(Version::AHEAD.into())
}

/// The format that the catalogue of a cluster has at least while its records are in `version`.
pub(crate) fn format_in(version: Version) -> u32 {
    if version >= Version::CURRENT {
        return newest_format();
    }
    let known = FORMATS.iter().rev().find(|(since, _)| *since <= version);
    known.map_or(0, |(_, format)| *format)
}

/// A new database in memory, in the newest format.
pub(crate) fn in_memory() -> Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    migrate(&mut db, Path::new(":memory:"))?;
    Ok(db)
}

/// Opens the database that is at `path`, in the format it has.
pub(crate) fn open_as_it_is(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    keep_to_ourselves(&db)?;
    Ok(db)
}

/// No other process opens the database while the server runs, so the index of the log is kept in
/// private memory instead of a mapped file, with which a failing disk would end the server
/// (SIGBUS).
fn keep_to_ourselves(db: &Connection) -> Result<()> {
    Ok(db.pragma_update(None, "locking_mode", "EXCLUSIVE")?)
}

/// A copy of `db`, which came from `path`, in the newest format, in memory.
pub(crate) fn newest(db: &Connection, path: &Path) -> Result<Connection> {
    let mut copy = image::of(db)?;
    migrate(&mut copy, path)?;
    Ok(copy)
}

/// The format of `db`, which came from `path`.
///
/// # Errors
/// `NewerFormat` if this version doesn't know it.
pub(crate) fn known_format(db: &Connection, path: &Path) -> Result<i64> {
    let found = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    pending(found, path).map(|_| found)
}

/// The migrations from format `found` to the newest.
fn pending(found: i64, path: &Path) -> Result<&'static [&'static str]> {
    let known = i64::from(newest_format());
    let done = usize::try_from(found).ok().filter(|_| found <= known);
    let pending = done.and_then(|done| MIGRATIONS.get(done.min(MIGRATIONS.len())..));
    pending.ok_or_else(|| CatalogError::NewerFormat { path: path.to_owned(), found, known })
}

/// Brings `db`, which came from `path`, to the newest format, all at once or not at all.
pub(crate) fn migrate(db: &mut Connection, path: &Path) -> Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in pending(known_format(&tx, path)?, path)? {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "user_version", newest_format())?;
    tx.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::digest::{SHA256, digest};

    /// The content of each migration, and the first bytes of the SHA-256 of its words. A new
    /// migration adds a line at the end; a line that is here stays as it is, as there may be
    /// databases that were made by it.
    const LANDED: &[(&str, &str)] = &[
        ("meta, pools, volumes, export_rules, condemned", "428ce3c72e9042a0"),
        ("nsm, monitored_hosts", "0b73380578dd2bf9"),
        ("levels", "72c3e2cf1e47bab3"),
        ("ceilings of volumes", "75c63c1575f7528b"),
        ("what pools buy, IOPS of volumes", "fd7b03b27c1a12e9"),
        ("credits", "ba599faa68931b33"),
        ("weight of volumes", "b74188662d9ecb5f"),
        ("requests", "fa392a37e6e72887"),
        ("ceilings of files", "d30bd6c9f20c72a1"),
        ("calibrations, calibrated_cells", "d3191befe7bc4680"),
        ("accounts, members, protocols of volumes, share_rules", "dadb6c179ee70c4a"),
        ("ceilings of levels, metadata caches of volumes", "cab4fced75250015"),
        ("pools on CephFS, addresses of volumes, gateways", "be650b23826453c2"),
    ];

    #[test]
    fn no_migration_that_landed_is_changed_or_moved() {
        for (at, (made, landed)) in LANDED.iter().enumerate() {
            let found = MIGRATIONS.get(at).map(|migration| print(migration));
            let to = at + 1;
            assert_eq!(found.as_deref(), Some(*landed), "{made}: format {at} to {to}");
        }
        assert_eq!(MIGRATIONS.len(), LANDED.len(), "a new migration has no line here");
    }

    #[test]
    fn each_format_of_a_cluster_has_a_version_and_none_comes_without_one() {
        let newest = u32::try_from(MIGRATIONS.len()).unwrap();
        let (last, format) = *FORMATS.last().unwrap();
        assert_eq!(format, newest, "a migration needs a version of the cluster's records");
        assert!(last <= Version::CURRENT, "the version of this format is not spoken");
        assert!(FORMATS.is_sorted() && FORMATS.windows(2).all(|two| two[0].0 < two[1].0));
        assert_eq!((format_in(Version(0)), format_in(Version(1))), (0, 13));
        assert_eq!(format_in(Version(u16::MAX)), newest_format());
    }

    /// Of the words alone: spaces and ends of lines are no part of a table.
    fn print(migration: &str) -> String {
        let words: Vec<_> = migration.split_whitespace().collect();
        let digest = digest(&SHA256, words.join(" ").as_bytes());
        digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_newer_format_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weir.db");
        open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, CatalogError::NewerFormat { found: 99, .. }), "{refused}");
        let db = Connection::open(&path).unwrap();
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, 99);
    }

    #[test]
    fn a_commit_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("weir.db")).unwrap();
        let text = |name| db.pragma_query_value(None, name, |row| row.get::<_, String>(0)).unwrap();
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(text("journal_mode"), "wal");
        assert_eq!((number("synchronous"), number("foreign_keys")), (2, 1));
    }

    #[test]
    fn no_file_is_mapped_that_a_failing_disk_could_take_away() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("weir.db")).unwrap();
        assert!(db.query_row("SELECT count(*) FROM pools", [], |row| row.get::<_, u32>(0)).is_ok());
        assert!(dir.path().join("weir.db-wal").exists());
        assert!(!dir.path().join("weir.db-shm").exists());
    }
}
