//! Catalogues of earlier versions, kept as SQL text in `tests/formats`: each is opened by this
//! version with all that is in it, and so is a backup of each.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

use rusqlite::Connection;
use std::path::{Path, PathBuf};
use weir_catalog::{
    Access, BytesPerSecond, Catalog, Ceiling, ExportRule, IdempotencyKey, Iops, Known, Limits,
    Mode, NewUser, NewVolume, Protocols, Qos, RID_FIRST, Replace, ShareSettings, Squash,
    TermsChange, VolumeChange, backup_stopped, check, restore,
};

const TIB: u64 = 1 << 40;
const KEY: [u8; 16] = *b"sixteen bytes...";

/// The format that this version writes.
fn newest() -> i64 {
    let base = tempfile::tempdir().unwrap();
    drop(Catalog::open(base.path()).unwrap());
    let db = Connection::open(base.path().join("weir.db")).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// A data directory as a version of `format` left it.
fn directory_of(format: i64, data: &Path) {
    std::fs::create_dir(data).unwrap();
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{format}.sql"));
    let text = std::fs::read_to_string(&text)
        .unwrap_or_else(|error| panic!("a new format needs one of the last: {text:?}: {error}"));
    let db = Connection::open(data.join("weir.db")).unwrap();
    db.pragma_update(None, "journal_mode", "WAL").unwrap();
    db.execute_batch(&text).unwrap();
    std::fs::write(data.join("handle.key"), KEY).unwrap();
    let own: String = db.query_row("SELECT instance FROM meta", [], |row| row.get(0)).unwrap();
    std::fs::create_dir_all(data.join("pools/2")).unwrap();
    std::fs::write(data.join("pools/2/weir-pool"), format!("{own} 2\n")).unwrap();
}

/// Asserts the content that all formats have.
fn has_everything(catalog: &Catalog) {
    let snapshot = catalog.snapshot();
    let (fast, shared) =
        (snapshot.pool_named("fast").unwrap(), snapshot.pool_named("shared").unwrap());
    assert_eq!((fast.id.0, fast.level.name.as_str(), fast.model.qos()), (2, "premium", Qos::Auto));
    assert_eq!(fast.directory, catalog.directory().join("pools/2"));
    assert_eq!((shared.size_bytes, shared.model.qos()), (10 * TIB, Qos::Manual));
    assert_eq!(shared.directory, PathBuf::from("/srv/shared"));
    let (home, scratch) =
        (snapshot.volume_named("home").unwrap(), snapshot.volume_named("scratch").unwrap());
    assert_eq!((home.id.0, home.quota_bytes, home.terms.throughput), (3, TIB, None));
    assert_eq!(home.limits.rate, BytesPerSecond::from_mib(64));
    assert_eq!((scratch.id.0, scratch.limits.rate), (7, BytesPerSecond::from_mib(48)));
    assert_eq!(scratch.directory, PathBuf::from("/srv/shared/volumes/7"));
    let rules = [
        ExportRule {
            network: "10.9.0.0/16".parse().unwrap(),
            access: Access::ReadOnly,
            squash: Squash::All,
            anon_uid: 1000,
            anon_gid: 1001,
        },
        ExportRule { squash: Squash::Root, ..ExportRule::open("10.0.0.0/8".parse().unwrap()) },
    ];
    assert_eq!(home.exports, rules);
    assert_eq!(scratch.exports, [ExportRule::open("fd00::/8".parse().unwrap())]);
    assert_eq!((snapshot.pools().count(), snapshot.volumes().count()), (2, 2));
    assert_eq!(*catalog.handle_secret(), KEY);
    let condemned = catalog.condemned().unwrap();
    assert_eq!((condemned.len(), condemned[0].volume.0), (1, 9));
}

#[test]
fn the_catalogue_of_every_earlier_format_is_opened_with_all_that_is_in_it() {
    let newest = newest();
    assert!(newest > 1);
    for format in 1..newest {
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("data");
        directory_of(format, &data);
        // Looking does not upgrade.
        assert_eq!(check(&data, None).unwrap().format, format);
        let catalog = Catalog::open(&data).unwrap();
        has_everything(&catalog);
        assert_eq!(catalog.snapshot().generation, 17);
        // The catalogue goes on from there, and no id comes twice.
        let quota_bytes = TIB;
        let new = NewVolume {
            name: "new".into(),
            pool: "fast".into(),
            quota_bytes,
            ..NewVolume::default()
        };
        let made = catalog.create_volume(&new, Mode::Commit).unwrap();
        assert_eq!(made.snapshot.volume_named("new").unwrap().id.0, 10);
        drop(catalog);
        assert_eq!(check(&data, None).unwrap().format, newest);
    }
}

#[test]
fn a_backup_of_every_earlier_format_can_be_restored() {
    for format in 1..newest() {
        let base = tempfile::tempdir().unwrap();
        let (data, other) = (base.path().join("data"), base.path().join("other"));
        directory_of(format, &data);
        let backup = backup_stopped(&data).unwrap();
        assert_eq!(check(&data, None).unwrap().format, format);
        let restored = restore(&other, Path::new("b"), &backup, Replace::Never).unwrap();
        assert_eq!(restored.info.format, format);
        has_everything(&Catalog::open(&other).unwrap());
    }
}

#[test]
fn what_format_2_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(2, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let hosts = catalog.monitored_hosts().unwrap();
    assert_eq!((hosts.len(), &*hosts[0].name), (1, &b"\xff\0odd"[..]));
    assert_eq!(catalog.next_nsm_state().unwrap(), 43);
}

#[test]
fn what_format_3_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(3, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let snapshot = catalog.snapshot();
    let own = snapshot.levels().find(|level| !level.published).unwrap();
    assert_eq!(own.name, "elastic");
    assert_eq!(own.contract.rate_per_tib(), BytesPerSecond::from_mib(32));
}

#[test]
fn what_format_4_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(4, &data);
    let catalog = Catalog::open(&data).unwrap();
    let snapshot = catalog.snapshot();
    let ceiling = |name| snapshot.volume_named(name).unwrap().terms.ceiling;
    let rate = Some(BytesPerSecond::from_mib(100));
    assert_eq!(ceiling("home"), Ceiling { rate, iops: Some(Iops(500)) });
    assert_eq!(ceiling("scratch"), Ceiling::default());
}

#[test]
fn what_format_5_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(5, &data);
    let db = Connection::open(data.join("weir.db")).unwrap();
    db.execute_batch(
        "INSERT INTO pools VALUES (8, 'db', 'standard', 1099511627776, 'custom', NULL, 104857600, 1600);
         INSERT INTO volumes VALUES (9, 'log', 8, 1073741824, 10485760, NULL, NULL, 1000);
         INSERT INTO volumes VALUES (10, 'data', 8, 1073741824, 10485760, NULL, NULL, NULL);",
    )
    .unwrap();
    drop(db);
    let catalog = Catalog::open(&data).unwrap();
    let snapshot = catalog.snapshot();
    let pool = snapshot.pool_named("db").unwrap();
    assert_eq!((pool.model.qos(), pool.model.bought().iops), (Qos::Custom, Some(Iops(1600))));
    assert_eq!(pool.model.bought().rate, Some(BytesPerSecond::from_mib(100)));
    let limits = |name| snapshot.volume_named(name).unwrap().limits;
    let rate = BytesPerSecond::from_mib(10);
    assert_eq!(limits("log"), Limits { iops: Some(Iops(1000)), ..Limits::of(rate) });
    assert_eq!(limits("data"), Limits { iops: Some(Iops(160)), ..Limits::of(rate) });
}

#[test]
fn what_format_6_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let (data, other) = (base.path().join("data"), base.path().join("other"));
    directory_of(6, &data);
    let home = weir_core::VolumeId(3);
    let backup = backup_stopped(&data).unwrap();
    let catalog = Catalog::open(&data).unwrap();
    assert_eq!(catalog.credits().unwrap(), [(home, 123_456)].into());
    // Of a backup nobody knows what was spent since.
    restore(&other, Path::new("b"), &backup, Replace::Never).unwrap();
    assert_eq!(Catalog::open(&other).unwrap().credits().unwrap(), [(home, 0)].into());
    // A volume takes its credits with it.
    catalog.delete_volume("home", Mode::Commit).unwrap();
    assert_eq!(catalog.credits().unwrap(), [].into());
}

#[test]
fn what_format_7_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(7, &data);
    let db = Connection::open(data.join("weir.db")).unwrap();
    db.execute_batch(
        "INSERT INTO pools VALUES (8, 'all', 'standard', 1099511627776, 'shared', NULL, NULL, NULL);
         INSERT INTO volumes VALUES (9, 'heavy', 8, 1073741824, 1048576, NULL, NULL, NULL, 300);
         INSERT INTO volumes VALUES (10, 'usual', 8, 1073741824, NULL, NULL, NULL, NULL, NULL);",
    )
    .unwrap();
    drop(db);
    let catalog = Catalog::open(&data).unwrap();
    let snapshot = catalog.snapshot();
    let share = |name| {
        let volume = snapshot.volume_named(name).unwrap();
        assert_eq!(volume.limits, Limits::of(BytesPerSecond::from_mib(16)));
        volume.share.map(|share| (share.weight, share.floor.0))
    };
    assert_eq!((share("heavy"), share("usual")), (Some((300, 1 << 20)), Some((100, 0))));
}

#[test]
fn what_format_8_brought_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(8, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let claim = IdempotencyKey { key: [7; 32], request: [8; 32], at: 1001 };
    assert_eq!(catalog.recall(&claim).unwrap(), Known::Done(Some(b"{}".to_vec())));
}

#[test]
fn what_format_9_brought_is_kept_and_an_earlier_one_has_no_ceilings_of_files() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(8, &data);
    let ceiling =
        |catalog: &Catalog| catalog.snapshot().volume_named("home").unwrap().limits_of_files();
    let catalog = Catalog::open(&data).unwrap();
    assert_eq!(ceiling(&catalog), None);
    let rate = BytesPerSecond::from_mib(60);
    let change = VolumeChange {
        terms: TermsChange { file_rate: Some(Some(rate)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("home", &change, None, Mode::Commit).unwrap();
    let change = VolumeChange {
        terms: TermsChange { file_iops: Some(Some(Iops(70))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("home", &change, None, Mode::Commit).unwrap();
    drop(catalog);
    let catalog = Catalog::open(&data).unwrap();
    assert_eq!(ceiling(&catalog), Some(Ceiling { rate: Some(rate), iops: Some(Iops(70)) }));
    let change = VolumeChange {
        terms: TermsChange { file_rate: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("home", &change, None, Mode::Commit).unwrap();
    assert_eq!(ceiling(&catalog), Some(Ceiling { rate: None, iops: Some(Iops(70)) }));
}

#[test]
fn a_catalogue_of_format_9_has_its_ceilings_of_files_and_knows_of_no_disks() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(9, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let snapshot = catalog.snapshot();
    let ceiling = |name| snapshot.volume_named(name).unwrap().limits_of_files();
    let rate = Some(BytesPerSecond::from_mib(60));
    assert_eq!(ceiling("home"), Some(Ceiling { rate, iops: Some(Iops(70)) }));
    assert_eq!(ceiling("scratch"), None);
    assert_eq!(snapshot.calibrations().count(), 0);
}

#[test]
fn what_format_10_brought_is_kept_and_nobody_is_known_over_smb() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(10, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let snapshot = catalog.snapshot();
    let calibration = snapshot.calibration_of("/srv/shared").unwrap();
    assert_eq!((calibration.at, calibration.cells.len()), (1_700_000_000, 1));
    for volume in snapshot.volumes() {
        assert_eq!((volume.protocols, &volume.smb), (Protocols::NFS, &ShareSettings::default()));
    }
    assert!(snapshot.users().is_empty() && snapshot.groups().is_empty());
    // The domain belongs to the data directory, not to a version.
    assert_eq!(snapshot.domain(), [3_154_649_915, 2_683_567_935, 3_081_025_359]);
    let (name, groups) = ("first".to_owned(), Vec::new());
    let first = NewUser { name, uid: 1, gid: None, groups, enabled: true };
    let made = catalog.create_user(&first, Mode::Commit).unwrap();
    assert_eq!(made.snapshot.user_named("first").unwrap().rid, RID_FIRST);
}

#[test]
fn what_format_11_brought_is_kept_and_levels_have_no_ceilings() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(11, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let snapshot = catalog.snapshot();
    let home = snapshot.volume_named("home").unwrap();
    assert!(home.protocols.nfs() && home.protocols.smb());
    let rules = home.smb.rules.len();
    assert_eq!((home.smb.encrypt, home.smb.hidden, home.smb.abe, rules), (false, true, false, 1));
    assert_eq!(snapshot.user_named("anna").unwrap().rid, 1000);
    assert!(snapshot.group_named("staff").is_some());
    let own = snapshot.levels().find(|level| !level.published).unwrap();
    assert_eq!(own.contract.ceiling(), Ceiling::default());
    assert_eq!(home.terms.metadata_cache, None);
}

#[test]
fn what_format_12_brought_is_kept_and_nothing_is_of_a_cluster() {
    let base = tempfile::tempdir().unwrap();
    let data = base.path().join("data");
    directory_of(12, &data);
    let catalog = Catalog::open(&data).unwrap();
    has_everything(&catalog);
    let snapshot = catalog.snapshot();
    let own = snapshot.levels().find(|level| !level.published).unwrap();
    assert_eq!(own.contract.ceiling().rate, Some(BytesPerSecond::from_mib(4500)));
    let home = snapshot.volume_named("home").unwrap();
    assert_eq!(home.terms.metadata_cache, Some(false));
    assert!(snapshot.pools().all(|pool| pool.ceph.is_none()));
    assert!(snapshot.volumes().all(|volume| volume.address.is_none()));
    assert_eq!((snapshot.addresses().len(), snapshot.gateways().len()), (0, 0));
    let condemned = catalog.condemned().unwrap();
    assert!(condemned.iter().all(|one| one.ceph.is_none() && one.address.is_none()));
}
