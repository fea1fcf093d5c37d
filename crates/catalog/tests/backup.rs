//! Backups as an operator relies on them: whole, restorable, and never in the place of something
//! else.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use ring::digest::{SHA256, digest};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use weir_catalog::{
    Catalog, CatalogError, Mode, MonitoredHost, NewPool, NewVolume, Qos, Replace, Severity,
    backup_stopped, check, inspect_backup, restore,
};

const GIB: u64 = 1 << 30;

fn pool(name: &str) -> NewPool {
    let (level, qos) = ("premium".to_owned(), Qos::Auto);
    NewPool { name: name.to_owned(), level, size_bytes: 1024 * GIB, qos, ..NewPool::default() }
}

fn volume(name: &str) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        pool: "p".to_owned(),
        quota_bytes: GIB,
        ..NewVolume::default()
    }
}

/// A catalogue with a pool, a volume and its tree.
fn with_volume(data: &Path) -> Catalog {
    let catalog = Catalog::open(data).unwrap();
    catalog.create_pool(&pool("p"), Mode::Commit).unwrap();
    add(&catalog, "v");
    catalog
}

/// A volume more, with its tree, as the server would make it.
fn add(catalog: &Catalog, name: &str) {
    let made = catalog.create_volume(&volume(name), Mode::Commit).unwrap();
    let tree = &made.snapshot.volume_named(name).unwrap().directory;
    std::fs::create_dir_all(tree.join("root")).unwrap();
}

fn take(backup: &[u8], data: &Path) -> weir_catalog::Result<weir_catalog::Restored> {
    restore(data, Path::new("the-backup"), backup, Replace::Never)
}

/// The database in a backup, and the line with its checksum.
fn parts(backup: &[u8]) -> (&[u8], &[u8]) {
    let word = b"\nweir-backup-sha256:";
    backup.split_at(backup.windows(word.len()).rposition(|found| found == word).unwrap())
}

/// `backup` after `sql`, without a checksum.
fn altered(backup: &[u8], sql: &str) -> Vec<u8> {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("changed");
    std::fs::write(&path, parts(backup).0).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    std::fs::read(&path).unwrap()
}

/// `database` as a backup with the right checksum.
fn sealed(database: &[u8]) -> Vec<u8> {
    let digest = digest(&SHA256, database);
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    [database, format!("\nweir-backup-sha256:{digits}\n").as_bytes()].concat()
}

/// `backup` as a version without checksums made it.
fn of_earlier_version(backup: &[u8]) -> Vec<u8> {
    altered(backup, "UPDATE backup SET version = 1")
}

/// The findings of a check, as codes.
fn codes(data: &Path) -> Vec<&'static str> {
    check(data, None).unwrap().findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_backup_brings_everything_back_in_another_directory() {
    let base = tempfile::tempdir().unwrap();
    let (data, other) = (base.path().join("data"), base.path().join("other"));
    let catalog = with_volume(&data);
    let host = MonitoredHost {
        address: "10.0.0.2".parse().unwrap(),
        name: b"\xff\0odd".to_vec(),
        local: "10.0.0.1".parse().unwrap(),
    };
    catalog.monitor_host(&host).unwrap();
    let (before, key) = (catalog.snapshot(), *catalog.handle_secret());
    let backup = catalog.backup().unwrap();
    let info = inspect_backup(Path::new("b"), &backup).unwrap();
    assert_eq!((info.pools, info.volumes), (1, 1));
    assert_eq!(info.weir, env!("CARGO_PKG_VERSION"));
    assert!(info.taken > 1_700_000_000, "{}", info.taken);

    let restored = take(&backup, &other).unwrap();
    assert_eq!((restored.info, restored.kept), (info, None));
    for name in ["weir.db", "handle.key"] {
        let mode = other.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let after = Catalog::open(&other).unwrap();
    assert_eq!(*after.handle_secret(), key);
    assert_eq!(after.monitored_hosts().unwrap(), [host]);
    let (old, new) = (before.volume_named("v").unwrap(), after.snapshot());
    let new = new.volume_named("v").unwrap();
    let there = other.canonicalize().unwrap();
    assert_eq!(new.directory, there.join("pools/1/volumes/1"));
    let moved = weir_catalog::Volume { directory: new.directory.clone(), ..(**old).clone() };
    assert_eq!(**new, moved);
}

#[test]
fn a_backup_that_weir_0_1_0_made_is_whole_and_restored() {
    let backup = include_bytes!("fixtures/backup-of-0.1.0.weir");
    let info = inspect_backup(Path::new("b"), backup).unwrap();
    let digits = "e946c453c2826dab68ce3a221526579c19c8565c4c903bb621597299a3b6e933";
    assert_eq!((info.sha256.as_deref(), info.pools, info.volumes), (Some(digits), 1, 1));
    let base = tempfile::tempdir().unwrap();
    take(backup, base.path()).unwrap();
    assert!(Catalog::open(base.path()).unwrap().snapshot().volume_named("home").is_some());
    let mut damaged = backup.to_vec();
    damaged[5000] ^= 1;
    assert!(inspect_backup(Path::new("b"), &damaged).is_err());
}

#[test]
fn a_backup_of_a_stopped_server_is_that_of_a_running_one() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    let locked = backup_stopped(base.path()).unwrap_err();
    assert!(matches!(locked, CatalogError::Locked { .. }), "{locked}");
    let running = catalog.backup().unwrap();
    drop(catalog);
    let stopped = backup_stopped(base.path()).unwrap();
    let text = |backup: &[u8]| {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("backup");
        std::fs::write(&path, backup).unwrap();
        // Read as from a medium that nothing can be written to.
        let uri = format!("file:{}?immutable=1", path.display());
        let db = Connection::open(uri).unwrap();
        let lines = "SELECT instance || generation FROM meta UNION SELECT name || pool FROM volumes
            UNION SELECT volume || network FROM export_rules UNION SELECT hex(handle_key) FROM backup";
        let mut query = db.prepare(lines).unwrap();
        let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(text(&running), text(&stopped));
    assert_eq!(text(&running).len(), 5);
    let nothing = tempfile::tempdir().unwrap();
    let refused = backup_stopped(nothing.path()).unwrap_err();
    assert!(matches!(refused, CatalogError::NoCatalog { .. }), "{refused}");
    assert_eq!(nothing.path().read_dir().unwrap().count(), 0);
}

#[test]
fn changes_of_after_the_backup_are_never_taken_for_later_ones() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    let backup = catalog.backup().unwrap();
    let state = catalog.next_nsm_state().unwrap();
    add(&catalog, "w");
    let forgotten = catalog.snapshot().volume_named("w").unwrap().clone();
    let generation = catalog.snapshot().generation;
    drop(catalog);
    let kept = restore(base.path(), Path::new("b"), &backup, Replace::Kept).unwrap().kept.unwrap();
    assert!(kept.ends_with("replaced-1"));
    let catalog = Catalog::open(base.path()).unwrap();
    assert!(catalog.snapshot().volume_named("w").is_none());
    assert!(catalog.snapshot().generation > generation);
    let later = catalog.next_nsm_state().unwrap();
    assert!(later > state && later % 2 == 1, "{state} {later}");
    add(&catalog, "w");
    let again = catalog.snapshot().volume_named("w").unwrap().clone();
    assert!(again.id > forgotten.id);
    assert_ne!(again.directory, forgotten.directory);
    drop(catalog);
    // The tree of the forgotten volume is told of, as is one that is gone.
    std::fs::remove_dir_all(&again.directory).unwrap();
    assert_eq!(codes(base.path()), ["volume_away", "unknown_tree"]);
}

#[test]
fn ids_leap_also_where_nothing_was_made_before_the_backup() {
    let base = tempfile::tempdir().unwrap();
    let backup = Catalog::open(base.path()).unwrap().backup().unwrap();
    drop(with_volume(base.path()));
    restore(base.path(), Path::new("b"), &backup, Replace::Kept).unwrap();
    let catalog = with_volume(base.path());
    let snapshot = catalog.snapshot();
    assert!(snapshot.volume_named("v").unwrap().id.0 > 1);
    assert!(snapshot.pool_named("p").unwrap().id.0 > 1);
}

#[test]
fn a_catalogue_is_replaced_only_when_told_and_kept() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    let backup = catalog.backup().unwrap();
    let (locked, running) = (take(&backup, base.path()).unwrap_err(), "uses it");
    assert!(matches!(locked, CatalogError::Locked { .. }), "{running}: {locked}");
    add(&catalog, "w");
    catalog.tokens().unwrap();
    drop(catalog);
    let token = std::fs::read(base.path().join("api.token")).unwrap();
    let refused = take(&backup, base.path()).unwrap_err();
    assert!(matches!(refused, CatalogError::CatalogExists { .. }), "{refused}");
    assert!(Catalog::open(base.path()).unwrap().snapshot().volume_named("w").is_some());
    for number in 1..=2 {
        let restored = restore(base.path(), Path::new("b"), &backup, Replace::Kept).unwrap();
        assert!(restored.kept.unwrap().ends_with(format!("replaced-{number}")));
    }
    assert!(Catalog::open(base.path()).unwrap().snapshot().volume_named("w").is_none());
    assert_eq!(std::fs::read(base.path().join("api.token")).unwrap(), token);
    // The kept directory is a catalogue by itself.
    let kept = base.path().join("replaced-1");
    assert!(Catalog::open(&kept).unwrap().snapshot().volume_named("w").is_some());
}

#[test]
fn an_interrupted_restore_keeps_the_server_from_starting_until_it_is_done_again() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    let backup = catalog.backup().unwrap();
    drop(catalog);
    // This is the state between moving the old catalogue aside and putting the new one in its
    // place.
    std::fs::write(base.path().join("restoring"), "").unwrap();
    std::fs::remove_file(base.path().join("weir.db")).unwrap();
    std::fs::write(base.path().join("weir.db.new"), "half").unwrap();
    let refused = Catalog::open(base.path()).unwrap_err();
    assert!(matches!(refused, CatalogError::RestoreInterrupted { .. }), "{refused}");
    restore(base.path(), Path::new("b"), &backup, Replace::Kept).unwrap();
    assert!(Catalog::open(base.path()).unwrap().snapshot().volume_named("v").is_some());
}

#[test]
fn what_is_no_whole_backup_is_refused_and_changes_nothing() {
    let base = tempfile::tempdir().unwrap();
    let (data, other) = (base.path().join("data"), base.path().join("other"));
    let catalog = with_volume(&data);
    for number in 0..200 {
        add(&catalog, &format!("more-{number}"));
    }
    let backup = catalog.backup().unwrap();
    let refused = |bytes: &[u8]| {
        let error = take(bytes, &other).unwrap_err();
        assert!(!other.exists(), "{error}");
        error.code()
    };
    assert_eq!(refused(b"no database at all"), "not_a_backup");
    assert_eq!(refused(b""), "not_a_backup");
    assert_eq!(refused(&std::fs::read(data.join("weir.db")).unwrap()), "not_a_backup");
    let mut damaged = backup.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 4096].fill(0x5a);
    assert_eq!(refused(&damaged), "damaged_backup");
    assert_eq!(refused(&backup[..backup.len() - 4096]), "damaged_backup");
    let changed = |sql: &str| refused(&sealed(&altered(&backup, sql)));
    assert_eq!(changed("UPDATE backup SET version = 4"), "newer_backup");
    assert_eq!(changed("UPDATE backup SET version = 3"), "damaged_backup", "of no cluster");
    assert_eq!(changed("UPDATE backup SET handle_key = x'00'"), "damaged_backup");
    assert_eq!(changed("DELETE FROM backup"), "not_a_backup");
    assert_eq!(changed("PRAGMA user_version = 99"), "newer_format");
    assert_eq!(
        changed("PRAGMA foreign_keys = OFF; DELETE FROM pools"),
        "damaged_backup",
        "volumes without a pool"
    );
    for version in [-1, 0, 1] {
        let sql = format!("UPDATE backup SET version = {version}");
        assert_eq!(changed(&sql), "damaged_backup", "{version}, and a checksum");
    }
    let sql = "UPDATE backup SET taken = 7";
    assert_eq!(refused(&altered(&backup, sql)), "damaged_backup", "no checksum");
    take(&sealed(&altered(&backup, sql)), &other).unwrap();
}

/// The restore refuses `bytes` as damaged, changes nothing, and says what to do.
fn refuses(bytes: &[u8], what: &str) {
    let base = tempfile::tempdir().unwrap();
    let other = base.path().join("other");
    for error in
        [inspect_backup(Path::new("b"), bytes).unwrap_err(), take(bytes, &other).unwrap_err()]
    {
        assert_eq!(error.code(), "damaged_backup", "{what}: {error}");
        assert!(error.to_string().contains("the backup"), "{what}: {error}");
        assert!(error.to_string().contains("use another"), "{what}: {error}");
    }
    assert!(!other.exists(), "{what}");
}

/// `bytes` with one bit inverted.
fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

fn a_backup() -> (Vec<u8>, [u8; 16]) {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    (catalog.backup().unwrap(), *catalog.handle_secret())
}

#[test]
fn a_backup_with_one_changed_bit_is_refused() {
    let (backup, key) = a_backup();
    let (database, line) = parts(&backup);
    let at = database.windows(16).position(|bytes| *bytes == key).unwrap();
    // The header of the database, the row with the key and its version, and the checksum.
    let regions = [0..100, at - 64..at + 16, database.len()..database.len() + line.len()];
    for byte in regions.into_iter().flatten() {
        for bit in 0..8 {
            refuses(&flipped(&backup, byte * 8 + bit), &format!("byte {byte} bit {bit}"));
        }
    }
    inspect_backup(Path::new("b"), &backup).unwrap();
}

#[test]
fn a_backup_that_is_cut_or_goes_on_is_refused() {
    let (backup, _) = a_backup();
    let (database, line) = parts(&backup);
    for cut in 1..=line.len() {
        refuses(&backup[..backup.len() - cut], &format!("{cut} bytes cut"));
    }
    for cut in (line.len() + 1..backup.len()).step_by(509) {
        let cut = &backup[..backup.len() - cut];
        assert!(inspect_backup(Path::new("b"), cut).is_err(), "{} bytes left", cut.len());
    }
    for more in [&b"\0"[..], b"\n", &[0; 4096], line, &backup] {
        refuses(&[&backup, more].concat(), "it goes on");
    }
    refuses(&[database, b"x", line].concat(), "a byte more");
    refuses(&[database, &line.to_ascii_uppercase()].concat(), "capitals");
}

#[test]
fn a_backup_of_a_version_without_checksums_is_restored_and_says_so() {
    let (backup, key) = a_backup();
    let earlier = of_earlier_version(&backup);
    let base = tempfile::tempdir().unwrap();
    let other = base.path().join("other");
    let info = take(&earlier, &other).unwrap().info;
    assert_eq!((info.sha256, info.volumes), (None, 1));
    assert_eq!(*Catalog::open(&other).unwrap().handle_secret(), key);
    assert_eq!(inspect_backup(Path::new("b"), &backup).unwrap().sha256.unwrap().len(), 64);
    // Damage that shows without a checksum is found.
    refuses(&[&earlier[..], b"\0"].concat(), "it goes on");
    refuses(&[&earlier[..], &[0; 4096]].concat(), "it goes on by a page");
    refuses(&earlier[..earlier.len() - 1], "a byte is cut");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_passes(
        bits in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        hole in any::<(prop::sample::Index, u8, u16)>(),
    ) {
        static BACKUP: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let backup = BACKUP.get_or_init(|| a_backup().0);
        for bit in &bits {
            let bit = bit.index(backup.len() * 8);
            refuses(&flipped(backup, bit), &format!("bit {bit}"));
        }
        let (at, value, length) = hole;
        let at = at.index(parts(backup).0.len());
        let mut holed = backup.clone();
        let end = (at + 1 + usize::from(length)).min(parts(backup).0.len());
        holed[at..end].fill(value);
        if holed != *backup {
            refuses(&holed, &format!("{at} to {end} are {value}"));
        }
    }
}

#[test]
fn a_check_finds_what_is_wrong_and_mends_nothing() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    let catalog = with_volume(&data);
    let online = check(&data, Some(&catalog.backup().unwrap())).unwrap();
    assert_eq!(online.findings, []);
    assert!(matches!(check(&data, None), Err(CatalogError::Locked { .. })));
    drop(catalog);
    let report = check(&data, None).unwrap();
    assert_eq!((report.snapshot.volumes().count(), report.findings), (1, vec![]));

    let loosen = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let key = data.join("handle.key");
    loosen(&key, 0o644);
    assert_eq!(codes(&data), ["loose_mode"]);
    assert_eq!(check(&data, None).unwrap().findings[0].severity, Severity::Warning);
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    loosen(&key, 0o600);
    std::fs::write(&key, "short").unwrap();
    assert_eq!(codes(&data), ["bad_secret"]);
    std::fs::remove_file(&key).unwrap();
    assert_eq!(codes(&data), ["no_secret"]);
    assert!(!key.exists());
    std::fs::write(&key, [7; 16]).unwrap();
    loosen(&key, 0o600);

    if rustix::process::geteuid().is_root() {
        let files = || data.read_dir().unwrap().count();
        let before = files();
        std::os::unix::fs::chown(&data, Some(1001), None).unwrap();
        assert!(matches!(check(&data, None), Err(CatalogError::ForeignOwner { .. })));
        std::os::unix::fs::chown(&data, Some(0), None).unwrap();
        assert_eq!(files(), before);
    }

    let place = data.join("pools/1");
    loosen(&place, 0o777);
    assert_eq!(codes(&data), ["pool_exposed"]);
    loosen(&place, 0o700);
    std::fs::rename(place.join("weir-pool"), place.join("other")).unwrap();
    assert_eq!(codes(&data), ["pool_away"]);
    std::fs::rename(&place, data.join("elsewhere")).unwrap();
    assert_eq!(codes(&data), ["pool_away"]);
    assert!(!place.exists());
}

#[test]
fn a_check_finds_a_damaged_database() {
    let base = tempfile::tempdir().unwrap();
    let catalog = with_volume(base.path());
    for number in 0..200 {
        add(&catalog, &format!("more-{number}"));
    }
    drop(catalog);
    let path = base.path().join("weir.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 8192 * 4096;
    bytes[middle..middle + 4096].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    assert!(codes(base.path()).contains(&"database_damaged"), "{:?}", codes(base.path()));
}
