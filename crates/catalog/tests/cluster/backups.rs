//! Backups of a cluster that must not be restored: damaged, of later versions, with another key,
//! or of the other kind.

use crate::world::{Cluster, pool};
use ring::digest::{SHA256, digest};
use rusqlite::Connection;
use std::path::Path;
use weir_catalog::{
    Catalog, ClusterBackup, ClusterKey, Import, Mode, Replace, back_up_cluster, inspect_backup,
    restore,
};

/// The length of the line with the checksum.
const LINE: usize = 85;

/// `backup` after `sql`, with the right checksum.
fn altered(backup: &[u8], sql: &str) -> Vec<u8> {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("changed");
    std::fs::write(&path, &backup[..backup.len() - LINE]).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let database = std::fs::read(&path).unwrap();
    let digest = digest(&SHA256, &database);
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    [&database, format!("\nweir-backup-sha256:{digits}\n").as_bytes()].concat()
}

#[track_caller]
fn refused(bytes: &[u8], key: u8, code: &str) {
    let read = ClusterBackup::read(Path::new("b"), bytes, &ClusterKey::new([key; 32]));
    assert_eq!(read.unwrap_err().code(), code);
}

#[test]
fn a_backup_that_is_damaged_newer_or_of_another_key_is_refused() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let bytes = back_up_cluster(&cluster.place("a")).unwrap();
    let info = inspect_backup(Path::new("b"), &bytes).unwrap();
    assert_eq!((info.pools, info.cluster), (1, Some(cluster.name.clone())));
    assert!(ClusterBackup::read(Path::new("b"), &bytes, &ClusterKey::new([1; 32])).is_ok());
    refused(&bytes, 2, "wrong_cluster_key");
    for cut in [1, LINE, bytes.len() / 2, bytes.len() - 1] {
        let short = &bytes[..bytes.len() - cut];
        let read = ClusterBackup::read(Path::new("b"), short, &ClusterKey::new([1; 32]));
        let code = read.unwrap_err().code();
        assert!(["damaged_backup", "not_a_backup"].contains(&code), "{cut}: {code}");
    }
    for at in (0..bytes.len()).step_by(997) {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        let read = ClusterBackup::read(Path::new("b"), &changed, &ClusterKey::new([1; 32]));
        assert!(read.is_err(), "{at}");
    }
    let unaltered = altered(&bytes, "");
    assert!(ClusterBackup::read(Path::new("b"), &unaltered, &ClusterKey::new([1; 32])).is_ok());
    for (sql, code) in [
        ("UPDATE backup SET version = 4", "newer_backup"),
        ("PRAGMA user_version = 99", "newer_format"),
        ("DROP TABLE backup_secrets", "damaged_backup"),
        ("DROP TABLE backup_cluster", "damaged_backup"),
        ("INSERT INTO backup_secrets VALUES ('other.key', '00')", "damaged_backup"),
        ("UPDATE backup_secrets SET sealed = 'x'", "wrong_cluster_key"),
        ("UPDATE backup_cluster SET name = 'elsewhere'", "wrong_cluster_key"),
        ("DELETE FROM backup_secrets WHERE name = 'handle.key'", "damaged_backup"),
        ("UPDATE backup SET version = 2", "damaged_backup"),
    ] {
        refused(&altered(&bytes, sql), 1, code);
    }
}

#[test]
fn the_backups_of_a_cluster_and_of_a_server_alone_are_not_taken_for_each_other() {
    let cluster = Cluster::new();
    let base = cluster.base.path();
    let of_cluster = back_up_cluster(&cluster.place("a")).unwrap();
    let of_server = Catalog::open(&base.join("alone")).unwrap().backup().unwrap();
    refused(&of_server, 1, "backup_of_server");
    let path = Path::new("b");
    let imported = Import::of_backup(path, &of_cluster).unwrap_err();
    let restored = restore(&base.join("new"), path, &of_cluster, Replace::Never).unwrap_err();
    for error in [imported, restored] {
        assert_eq!(error.code(), "backup_of_cluster");
        assert!(error.to_string().contains(&cluster.name), "{error}");
    }
    assert!(!base.join("new").exists());
}
