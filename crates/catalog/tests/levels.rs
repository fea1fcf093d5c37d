//! Service levels of the operator's own, and moves between pools.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::path::Path;
use weir_catalog::{
    BytesPerSecond, Catalog, Fault, Iops, LevelChange, Limits, Mode, NewLevel, NewPool, NewVolume,
    PoolChange, Qos, Replace, Severity, Terms, TermsChange, VolumeChange, check, restore,
};

const TIB: u64 = 1 << 40;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(catalog: &Catalog, name: &str, level: &str, qos: Qos) {
    let (name, level) = (name.to_owned(), level.to_owned());
    let new = NewPool { name, level, size_bytes: 4 * TIB, qos, ..NewPool::default() };
    catalog.create_pool(&new, Mode::Commit).unwrap();
}

fn volume(catalog: &Catalog, name: &str, pool: &str, tib: u64, rate: Option<u64>) {
    let (name, pool) = (name.to_owned(), pool.to_owned());
    let new = NewVolume {
        name,
        pool,
        quota_bytes: tib * TIB,
        terms: Terms { throughput: rate.map(mib), ..Terms::default() },
        ..NewVolume::default()
    };
    let made = catalog.create_volume(&new, Mode::Commit).unwrap();
    let tree = &made.snapshot.volume_named(&new.name).unwrap().directory;
    std::fs::write(tree.join("own"), &new.name).unwrap();
}

fn limit(catalog: &Catalog, name: &str) -> f64 {
    catalog.snapshot().volume_named(name).unwrap().limits.rate.mib()
}

fn to_pool(name: &str) -> VolumeChange {
    VolumeChange { pool: Some(name.to_owned()), ..VolumeChange::default() }
}

/// Is the file that was put into the tree in this pool and volume?
fn tree_is_in(data: &Path, pool: u32, volume: u32) -> bool {
    data.join(format!("pools/{pool}/volumes/{volume}/own")).exists()
}

#[test]
fn a_level_of_ones_own_is_in_force_in_all_its_pools_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_level("elastic", mib(32), Mode::Commit).unwrap();
    pool(&catalog, "a", "elastic", Qos::Auto);
    pool(&catalog, "m", "elastic", Qos::Manual);
    pool(&catalog, "s", "standard", Qos::Auto);
    volume(&catalog, "in-a", "a", 2, None);
    volume(&catalog, "in-m", "m", 1, Some(100));
    volume(&catalog, "in-s", "s", 1, None);
    assert_eq!(limit(&catalog, "in-a"), 64.0);
    let planned = catalog.change_level("elastic", mib(48), Mode::Preview).unwrap();
    assert_eq!(limit(&catalog, "in-a"), 64.0);
    let done = catalog.change_level("elastic", mib(48), Mode::Commit).unwrap();
    assert_eq!(planned.changes, done.changes);
    assert_eq!(done.changes.len(), 1);
    assert_eq!((done.changes[0].before.rate, done.changes[0].after.rate), (mib(64), mib(96)));
    assert_eq!((limit(&catalog, "in-m"), limit(&catalog, "in-s")), (100.0, 16.0));
    drop(catalog);
    let again = Catalog::open(dir.path()).unwrap();
    assert_eq!(limit(&again, "in-a"), 96.0);
}

#[test]
fn a_volume_gets_no_more_than_the_ceiling_of_its_level() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let new = NewLevel { rate_per_tib: mib(32), volume_ceiling: Some(mib(50)) };
    catalog.create_level("own", new, Mode::Commit).unwrap();
    for (name, qos) in [("a", Qos::Auto), ("m", Qos::Manual), ("s", Qos::Shared)] {
        pool(&catalog, name, "own", qos);
    }
    volume(&catalog, "small", "a", 1, None);
    volume(&catalog, "large", "a", 2, None);
    volume(&catalog, "shared", "s", 1, None);
    volume(&catalog, "manual", "m", 1, Some(50));
    let limits =
        |catalog: &Catalog| ["small", "large", "shared", "manual"].map(|name| limit(catalog, name));
    assert_eq!(limits(&catalog), [32.0, 50.0, 50.0, 50.0]);
    // More cannot be assigned, and the refusal names the most.
    let more = TermsChange { throughput: Some(mib(51)), ..TermsChange::default() };
    let more = VolumeChange { terms: more, ..VolumeChange::default() };
    let refused = catalog.change_volume("manual", &more, None, Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "throughput_out_of_bounds");
    assert!(refused.to_string().contains("request at most 50 MiB/s"), "{refused}");
    assert_eq!(refused.allowed().unwrap().max, Some(50 << 20));
    // Online: lower, and none; the rate per TiB stays, and so do assigned rates.
    let ceiling = |most| LevelChange { rate_per_tib: None, volume_ceiling: Some(most) };
    let lower = catalog.change_level("own", ceiling(Some(mib(20))), Mode::Commit).unwrap();
    assert_eq!((lower.changes.len(), limits(&catalog)), (4, [20.0; 4]));
    drop(catalog);
    let catalog = Catalog::open(dir.path()).unwrap();
    assert_eq!(limits(&catalog), [20.0; 4]);
    catalog.change_level("own", mib(64), Mode::Commit).unwrap();
    assert_eq!(limits(&catalog), [20.0; 4], "another rate keeps the ceiling");
    catalog.change_level("own", ceiling(None), Mode::Commit).unwrap();
    assert_eq!(limits(&catalog), [64.0, 128.0, 256.0, 50.0]);
    // Zero would stop all I/O.
    let zero = catalog.change_level("own", ceiling(Some(mib(0))), Mode::Commit).unwrap_err();
    assert_eq!(zero.code(), "ceiling_out_of_bounds");
    let said = "the volume ceiling of the level cannot be 0 B/s: the range is 1 B/s to 1 EiB/s";
    assert!(zero.to_string().starts_with(said), "{zero}");
}

fn with_ceiling(most: u64) -> LevelChange {
    LevelChange { rate_per_tib: None, volume_ceiling: Some(Some(mib(most))) }
}

fn rate(mib_per_second: u64) -> VolumeChange {
    let terms = TermsChange { throughput: Some(mib(mib_per_second)), ..TermsChange::default() };
    VolumeChange { terms, ..VolumeChange::default() }
}

/// Changes a volume in every way but its rate.
fn change_otherwise(catalog: &Catalog, name: &str) {
    let terms = TermsChange {
        metadata_cache: Some(Some(false)),
        ceiling_iops: Some(Some(Iops(900))),
        ..TermsChange::default()
    };
    let otherwise = VolumeChange { terms, quota_bytes: Some(2 * TIB), ..VolumeChange::default() };
    for change in [VolumeChange::default(), otherwise] {
        catalog.change_volume(name, &change, None, Mode::Commit).unwrap();
    }
}

#[test]
fn a_volume_above_a_lowered_ceiling_is_changed_as_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let new = NewLevel { rate_per_tib: mib(32), volume_ceiling: Some(mib(50)) };
    catalog.create_level("own", new, Mode::Commit).unwrap();
    pool(&catalog, "m", "own", Qos::Manual);
    pool(&catalog, "s", "own", Qos::Shared);
    volume(&catalog, "manual", "m", 1, Some(50));
    volume(&catalog, "shared", "s", 1, Some(40));
    catalog.change_level("own", with_ceiling(20), Mode::Commit).unwrap();
    for name in ["manual", "shared"] {
        change_otherwise(&catalog, name);
        assert_eq!(limit(&catalog, name), 20.0, "{name}");
        // Another rate above the ceiling is refused; one below is not.
        let refused = catalog.change_volume(name, &rate(30), None, Mode::Commit).unwrap_err();
        assert_eq!(refused.code(), "throughput_out_of_bounds");
        assert!(refused.to_string().contains("request at most 20 MiB/s"), "{refused}");
    }
    // A pool that moves to a level with a lower ceiling takes its volumes along.
    let lower = NewLevel { rate_per_tib: mib(32), volume_ceiling: Some(mib(10)) };
    catalog.create_level("lower", lower, Mode::Commit).unwrap();
    let change = PoolChange { level: Some("lower".to_owned()), ..PoolChange::default() };
    catalog.change_pool("m", &change, Mode::Commit).unwrap();
    change_otherwise(&catalog, "manual");
    assert_eq!(limit(&catalog, "manual"), 10.0);
    // A volume that moves to another pool by itself needs a rate within the ceiling there.
    let refused = catalog.change_volume("manual", &to_pool("s"), None, Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "throughput_out_of_bounds");
    let moved = VolumeChange { pool: Some("s".to_owned()), ..rate(20) };
    catalog.change_volume("manual", &moved, None, Mode::Commit).unwrap();
    catalog.change_volume("shared", &rate(20), None, Mode::Commit).unwrap();
}

#[test]
fn a_volume_without_a_rate_is_told_no_more_than_its_level_allows() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let new = NewLevel { rate_per_tib: mib(32), volume_ceiling: Some(mib(50)) };
    catalog.create_level("own", new, Mode::Commit).unwrap();
    pool(&catalog, "m", "own", Qos::Manual);
    let (name, pool) = ("v".to_owned(), "m".to_owned());
    let new = NewVolume { name, pool, quota_bytes: TIB, ..NewVolume::default() };
    let missing = catalog.create_volume(&new, Mode::Commit).unwrap_err();
    let allowed = missing.allowed().map(|allowed| allowed.max);
    assert_eq!((missing.code(), allowed), ("throughput_missing", Some(Some(50 << 20))));
}

#[test]
fn a_level_too_slow_for_one_of_its_pools_is_refused_with_the_least_that_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_level("own", mib(32), Mode::Commit).unwrap();
    for (name, rate) in [("m", 100), ("n", 120), ("o", 7)] {
        pool(&catalog, name, "own", Qos::Manual);
        volume(&catalog, &format!("in-{name}"), name, 1, Some(rate));
    }
    let refused = catalog.change_level("own", mib(24), Mode::Commit).unwrap_err();
    assert_eq!((refused.code(), refused.fault()), ("level_below_throughput", Fault::Infeasible));
    assert!(refused.to_string().contains("pool \"n\""), "{refused}");
    assert!(refused.to_string().contains("30 MiB/s per TiB"), "{refused}");
    let allowed = refused.allowed().unwrap();
    assert_eq!((allowed.field, allowed.min), ("bytes_per_second_per_tib", Some(30 << 20)));
    let below = BytesPerSecond((30 << 20) - 1);
    assert!(catalog.change_level("own", below, Mode::Preview).is_err());
    catalog.change_level("own", mib(30), Mode::Commit).unwrap();
}

#[test]
fn published_levels_stay_and_levels_in_use_are_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let code = |outcome: weir_catalog::Result<_>| outcome.unwrap_err().code();
    let commit = Mode::Commit;
    for name in ["standard", "premium", "ultra", "extreme"] {
        assert_eq!(code(catalog.create_level(name, mib(1), commit)), "name_taken");
        assert_eq!(code(catalog.change_level(name, mib(1), commit)), "level_published");
        assert_eq!(code(catalog.delete_level(name, commit)), "level_published");
    }
    for rate in [BytesPerSecond::ZERO, BytesPerSecond((1 << 40) + 1)] {
        assert_eq!(code(catalog.create_level("own", rate, commit)), "level_rate_out_of_bounds");
    }
    assert_eq!(code(catalog.create_level("a b", mib(1), commit)), "bad_name");
    let unknown = catalog.delete_level("gold", commit).unwrap_err();
    assert_eq!((unknown.code(), unknown.fault()), ("no_such_level", Fault::NotFound));
    assert!(unknown.to_string().contains("standard, premium, ultra, extreme,"), "{unknown}");
    catalog.create_level("own", mib(1), commit).unwrap();
    pool(&catalog, "p", "own", Qos::Auto);
    assert_eq!(code(catalog.delete_level("own", commit)), "level_in_use");
    let faster = PoolChange { level: Some("extreme".to_owned()), ..PoolChange::default() };
    catalog.change_pool("p", &faster, commit).unwrap();
    catalog.delete_level("own", commit).unwrap();
    let gone = PoolChange { level: Some("own".to_owned()), ..PoolChange::default() };
    assert_eq!(code(catalog.change_pool("p", &gone, commit)), "no_such_level");
}

#[test]
fn a_volume_moves_with_its_files_and_gets_the_contract_of_its_new_pool() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "auto", "premium", Qos::Auto);
    pool(&catalog, "manual", "standard", Qos::Manual);
    volume(&catalog, "v", "auto", 1, None);
    catalog.change_volume("v", &to_pool("manual"), None, Mode::Preview).unwrap();
    assert!(tree_is_in(dir.path(), 1, 1));
    // The volume keeps its limit if the pool gives it one.
    let moved = catalog.change_volume("v", &to_pool("manual"), None, Mode::Commit).unwrap();
    assert!(moved.changes.is_empty());
    assert!(!tree_is_in(dir.path(), 1, 1) && tree_is_in(dir.path(), 2, 1));
    let slower = VolumeChange {
        terms: TermsChange { throughput: Some(mib(5)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &slower, None, Mode::Commit).unwrap();
    // The limit is what the quota buys in an auto pool.
    let back = catalog.change_volume("v", &to_pool("auto"), None, Mode::Commit).unwrap();
    assert_eq!((back.changes[0].before.rate, back.changes[0].after.rate), (mib(5), mib(64)));
    assert!(tree_is_in(dir.path(), 1, 1));
    let given = VolumeChange {
        terms: TermsChange { throughput: Some(mib(7)), ..TermsChange::default() },
        ..to_pool("manual")
    };
    catalog.change_volume("v", &given, None, Mode::Commit).unwrap();
    assert_eq!(limit(&catalog, "v"), 7.0);
    catalog.delete_pool("auto", Mode::Commit).unwrap();
    drop(catalog);
    assert!(check(dir.path(), None).unwrap().findings.is_empty());
}

#[test]
fn a_move_is_refused_where_the_new_pool_can_not_carry_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    pool(&catalog, "m", "standard", Qos::Manual);
    volume(&catalog, "v", "a", 2, None);
    volume(&catalog, "w", "m", 3, Some(1));
    let code = |change: &VolumeChange| {
        catalog.change_volume("v", change, None, Mode::Commit).unwrap_err().code()
    };
    assert_eq!(code(&to_pool("m")), "pool_capacity_exceeded");
    assert_eq!(code(&to_pool("nowhere")), "no_such_pool");
    let small = VolumeChange { quota_bytes: Some(TIB), ..VolumeChange::default() };
    catalog.change_volume("v", &small, Some(0), Mode::Commit).unwrap();
    assert_eq!(code(&to_pool("m")), "pool_throughput_exceeded");
    let rate = VolumeChange {
        terms: TermsChange { throughput: Some(mib(1)), ..TermsChange::default() },
        ..to_pool("a")
    };
    assert_eq!(code(&rate), "throughput_in_auto_pool");
    std::fs::remove_file(dir.path().join("pools/2/weir-pool")).unwrap();
    let given = VolumeChange {
        terms: TermsChange { throughput: Some(mib(1)), ..TermsChange::default() },
        ..to_pool("m")
    };
    assert_eq!(code(&given), "pool_away");
    assert!(tree_is_in(dir.path(), 1, 1));
}

/// A move that would have to copy is refused. `/dev/shm` is a file system of its own on Linux.
#[test]
fn a_move_to_another_file_system_is_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    let new = NewPool {
        name: "b".to_owned(),
        level: "premium".to_owned(),
        size_bytes: 4 * TIB,
        qos: Qos::Auto,
        directory: Some(other.path().join("pool")),
        ..NewPool::default()
    };
    catalog.create_pool(&new, Mode::Commit).unwrap();
    volume(&catalog, "v", "a", 1, None);
    for mode in [Mode::Preview, Mode::Commit] {
        let refused = catalog.change_volume("v", &to_pool("b"), None, mode).unwrap_err();
        assert_eq!((refused.code(), refused.fault()), ("other_file_system", Fault::Conflict));
        assert!(refused.to_string().contains("does not copy data"), "{refused}");
    }
    assert!(tree_is_in(dir.path(), 1, 1));
    assert_eq!(limit(&catalog, "v"), 64.0);
}

#[test]
fn a_tree_that_a_stop_left_elsewhere_is_put_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    pool(&catalog, "b", "premium", Qos::Auto);
    volume(&catalog, "v", "a", 1, None);
    let backup = catalog.backup().unwrap();
    std::fs::create_dir(dir.path().join("pools/1/volumes/1/meta")).unwrap();
    std::fs::write(dir.path().join("pools/1/volumes/1/meta/format"), "weir-volume 1\n").unwrap();
    catalog.change_volume("v", &to_pool("b"), None, Mode::Commit).unwrap();
    drop(catalog);
    // The move as it is where the server was stopped before it was on disk.
    restore(dir.path(), Path::new("b"), &backup, Replace::Kept).unwrap();
    assert!(tree_is_in(dir.path(), 2, 1));
    let findings = check(dir.path(), None).unwrap().findings;
    assert!(findings.iter().any(|one| one.code == "volume_misplaced"), "{findings:?}");
    assert!(findings.iter().all(|one| one.severity == Severity::Warning), "{findings:?}");
    let catalog = Catalog::open(dir.path()).unwrap();
    assert!(tree_is_in(dir.path(), 1, 1) && !tree_is_in(dir.path(), 2, 1));
    let snapshot = catalog.snapshot();
    snapshot.check_place(snapshot.volume_named("v").unwrap()).unwrap();
    drop(catalog);
    assert!(check(dir.path(), None).unwrap().findings.is_empty());
}

#[test]
fn a_pool_is_kept_while_a_tree_is_in_it_against_the_catalogues_word_and_deleting_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    pool(&catalog, "b", "premium", Qos::Auto);
    volume(&catalog, "v", "a", 1, None);
    let (home, stray) =
        (dir.path().join("pools/1/volumes/1"), dir.path().join("pools/2/volumes/1"));
    std::fs::create_dir(home.join("meta")).unwrap();
    std::fs::write(home.join("meta/format"), "weir-volume 1\n").unwrap();
    std::fs::create_dir(stray.parent().unwrap()).unwrap();
    std::fs::rename(&home, &stray).unwrap();
    let refused = catalog.delete_pool("b", Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "pool_not_empty");
    catalog.delete_volume("v", Mode::Commit).unwrap();
    assert_eq!(catalog.condemned().unwrap()[0].directory, stray);
}

#[test]
fn what_an_attempt_to_make_a_volume_left_is_nobodys_tree_and_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    pool(&catalog, "b", "premium", Qos::Auto);
    // This is the state after a stop before the commit; the id is given again.
    let left = dir.path().join("pools/2/volumes/1");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("new"), "").unwrap();
    volume(&catalog, "v", "a", 1, None);
    let home = dir.path().join("pools/1/volumes/1");
    std::fs::remove_dir_all(&home).unwrap();
    drop(catalog);
    let catalog = Catalog::open(dir.path()).unwrap();
    assert!(!home.exists() && left.exists(), "no empty volume is put in its place");
    let snapshot = catalog.snapshot();
    let lost = snapshot.check_place(snapshot.volume_named("v").unwrap()).unwrap_err();
    assert_eq!(lost.code(), "volume_away");
    // And a volume moves there.
    std::fs::create_dir(&home).unwrap();
    catalog.change_volume("v", &to_pool("b"), None, Mode::Commit).unwrap();
    assert!(!home.exists() && left.exists() && !left.join("new").exists());
}

#[test]
fn a_ceiling_lowers_what_the_contract_comes_to_and_goes_with_the_volume() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    pool(&catalog, "a", "premium", Qos::Auto);
    pool(&catalog, "m", "premium", Qos::Manual);
    volume(&catalog, "v", "a", 1, None);
    let commit = |change: &VolumeChange| catalog.change_volume("v", change, None, Mode::Commit);
    let (rate, iops) = (Some(Some(mib(10))), Some(Some(Iops(500))));
    let capped = VolumeChange {
        terms: TermsChange { ceiling_rate: rate, ceiling_iops: iops, ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let changed = commit(&capped).unwrap().changes;
    assert_eq!(changed[0].before, Limits::of(mib(64)));
    assert_eq!(changed[0].after, Limits { iops: Some(Iops(500)), ..Limits::of(mib(10)) });
    // The contract underneath goes on: it is what a manual pool has to give.
    commit(&to_pool("m")).unwrap();
    assert_eq!(limit(&catalog, "v"), 10.0);
    let free = VolumeChange {
        terms: TermsChange { ceiling_rate: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let changed = commit(&free).unwrap().changes;
    assert_eq!(changed[0].after, Limits { iops: Some(Iops(500)), ..Limits::of(mib(64)) });
    let high = VolumeChange {
        terms: TermsChange { ceiling_rate: Some(Some(mib(65))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    assert!(commit(&high).unwrap().changes.is_empty(), "it raises nothing");
    for (field, said, change) in [
        (
            "max_iops",
            "the IOPS ceiling of the volume cannot be 0 IOPS: the range is 1 IOPS to",
            VolumeChange {
                terms: TermsChange { ceiling_iops: Some(Some(Iops(0))), ..TermsChange::default() },
                ..VolumeChange::default()
            },
        ),
        (
            "max_throughput_bytes_per_second",
            "the throughput ceiling of the volume cannot be ≈16 EiB/s",
            VolumeChange {
                terms: TermsChange {
                    ceiling_rate: Some(Some(BytesPerSecond(u64::MAX))),
                    ..TermsChange::default()
                },
                ..to_pool("m")
            },
        ),
    ] {
        let refused = commit(&change).unwrap_err();
        assert_eq!((refused.code(), refused.fault()), ("ceiling_out_of_bounds", Fault::Invalid));
        assert_eq!(refused.allowed().unwrap().field, field);
        assert!(refused.to_string().starts_with(said), "{refused}");
    }
}
