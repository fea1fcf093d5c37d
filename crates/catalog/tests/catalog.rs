//! The catalogue as its callers see it: rules, refusals, persistence.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::path::Path;
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, ExportRule, Fault, IpNetwork, Limits, Minimums, Mode,
    NewPool, NewVolume, PoolChange, Qos, Terms, TermsChange, VolumeChange,
};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn pool(name: &str, qos: Qos) -> NewPool {
    let (level, size_bytes) = ("standard".to_owned(), 4 * TIB);
    NewPool { name: name.to_owned(), level, size_bytes, qos, ..NewPool::default() }
}

fn volume(name: &str, quota_bytes: u64, mib: Option<u64>) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        pool: "p".to_owned(),
        quota_bytes,
        terms: Terms { throughput: mib.map(BytesPerSecond::from_mib), ..Terms::default() },
        ..NewVolume::default()
    }
}

fn with_pool(dir: &Path, qos: Qos) -> Catalog {
    let catalog = Catalog::open(dir).unwrap();
    catalog.create_pool(&pool("p", qos), Mode::Commit).unwrap();
    catalog
}

fn limit_mib(catalog: &Catalog, name: &str) -> f64 {
    catalog.snapshot().volume_named(name).unwrap().limits.rate.mib()
}

#[test]
fn limits_follow_the_published_table() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    for (name, quota, expected) in
        [("a", 100 * GIB, 1.5625), ("b", TIB, 16.0), ("c", 2 * TIB, 32.0)]
    {
        catalog.create_volume(&volume(name, quota, None), Mode::Commit).unwrap();
        assert_eq!(limit_mib(&catalog, name), expected);
    }
}

#[test]
fn a_new_volume_can_be_mounted_from_this_machine_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    let outcome = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    let made = outcome.snapshot.volume_named("v").unwrap();
    assert!(made.rule_for("127.0.0.9".parse().unwrap()).is_some());
    assert!(made.rule_for("::1".parse().unwrap()).is_some());
    assert!(made.rule_for("10.0.0.1".parse().unwrap()).is_none());
    assert!(made.directory.starts_with(catalog.directory()));
    assert!(made.directory.ends_with(format!("pools/1/volumes/{}", made.id)));
}

#[test]
fn every_refusal_says_what_would_be_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Manual);
    catalog.create_volume(&volume("v", TIB, Some(48)), Mode::Commit).unwrap();
    let ask = |new: &NewVolume| catalog.create_volume(new, Mode::Commit).unwrap_err();

    let error = ask(&volume("w", 4 * TIB, Some(1)));
    assert_eq!((error.code(), error.fault()), ("pool_capacity_exceeded", Fault::Infeasible));
    assert_eq!(error.allowed().unwrap().max, Some(3 * TIB));
    assert!(error.to_string().contains("4 TiB requested, 3 TiB left"), "{error}");

    let error = ask(&volume("w", TIB, Some(17)));
    assert_eq!(error.code(), "pool_throughput_exceeded");
    assert_eq!(error.allowed().unwrap().max, Some(16 << 20));

    let error = ask(&volume("w", TIB, None));
    assert_eq!(error.code(), "throughput_missing");
    assert_eq!(error.allowed().unwrap().max, Some(16 << 20));

    let error = ask(&volume("w", TIB, Some(0)));
    assert_eq!(error.code(), "zero_throughput");
    assert_eq!(ask(&volume("v", TIB, Some(1))).code(), "name_taken");
    assert_eq!(ask(&volume("w", 1, Some(1))).allowed().unwrap().min, Some(1 << 20));
    assert_eq!(ask(&volume("w", u64::MAX, Some(1))).code(), "size_out_of_bounds");

    let change = PoolChange { size_bytes: Some(2 * TIB), ..PoolChange::default() };
    let error = catalog.change_pool("p", &change, Mode::Commit).unwrap_err();
    assert_eq!(error.code(), "pool_below_throughput");
    assert_eq!(error.allowed().unwrap().min, Some(3 * TIB));

    let error = catalog.delete_pool("p", Mode::Commit).unwrap_err();
    assert_eq!(error.code(), "pool_not_empty");
    assert_eq!(catalog.snapshot().generation, 2);
}

#[test]
fn a_quota_shrinks_only_to_what_the_volume_holds() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    let shrink = |to, used| {
        let change = VolumeChange { quota_bytes: Some(to), ..VolumeChange::default() };
        catalog.change_volume("v", &change, used, Mode::Commit)
    };
    assert!(matches!(shrink(GIB, None), Err(CatalogError::UsageUnknown { .. })));
    assert!(matches!(shrink(GIB, Some(GIB + 1)), Err(CatalogError::QuotaBelowUsed { .. })));
    let changes = shrink(GIB, Some(GIB)).unwrap().changes;
    assert_eq!(
        (changes[0].before, changes[0].after),
        (Limits::of(BytesPerSecond(16 << 20)), Limits::of(BytesPerSecond(16 << 10)))
    );
    shrink(2 * TIB, None).unwrap();
    assert_eq!(limit_mib(&catalog, "v"), 32.0);
}

#[test]
fn going_manual_keeps_every_limit_and_going_back_restores_the_quotas_own() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    catalog.create_volume(&volume("w", 3 * TIB, None), Mode::Commit).unwrap();
    let to = |qos| PoolChange { qos: Some(qos), ..PoolChange::default() };
    let manual = catalog.change_pool("p", &to(Qos::Manual), Mode::Commit).unwrap();
    assert!(manual.changes.is_empty());
    for (name, mib) in [("w", 16), ("v", 48)] {
        let throughput = Some(BytesPerSecond::from_mib(mib));
        let change = VolumeChange {
            terms: TermsChange { throughput, ..TermsChange::default() },
            ..VolumeChange::default()
        };
        catalog.change_volume(name, &change, None, Mode::Commit).unwrap();
    }
    let planned = catalog.change_pool("p", &to(Qos::Auto), Mode::Preview).unwrap();
    assert_eq!((limit_mib(&catalog, "v"), limit_mib(&catalog, "w")), (48.0, 16.0));
    let done = catalog.change_pool("p", &to(Qos::Auto), Mode::Commit).unwrap();
    assert_eq!(planned.changes, done.changes);
    assert_eq!((limit_mib(&catalog, "v"), limit_mib(&catalog, "w")), (16.0, 48.0));
    let refused = VolumeChange {
        terms: TermsChange { throughput: Some(BytesPerSecond(1)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let error = catalog.change_volume("v", &refused, None, Mode::Commit).unwrap_err();
    assert_eq!(error.code(), "throughput_in_auto_pool");
}

#[test]
fn a_preview_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    let before = catalog.snapshot();
    let path = dir.path().join("elsewhere");
    let new = NewPool { directory: Some(path.clone()), ..pool("q", Qos::Auto) };
    let outside = tempfile::tempdir().unwrap();
    let new_outside = NewPool { directory: Some(outside.path().join("q")), ..new.clone() };
    assert!(
        catalog
            .create_pool(&new_outside, Mode::Preview)
            .unwrap()
            .snapshot
            .pool_named("q")
            .is_some()
    );
    catalog.create_volume(&volume("v", TIB, None), Mode::Preview).unwrap();
    catalog.delete_pool("p", Mode::Preview).unwrap();
    assert_eq!(catalog.snapshot(), before);
    assert!(!path.exists() && !outside.path().join("q").exists());
    let made = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    assert_eq!(made.snapshot.volume_named("v").unwrap().id.0, 1);
}

#[test]
fn ids_are_never_used_again_and_trees_of_the_deleted_are_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let first = {
        let catalog = with_pool(dir.path(), Qos::Auto);
        let made = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
        let first = made.snapshot.volume_named("v").unwrap().clone();
        catalog.delete_volume("v", Mode::Commit).unwrap();
        first
    };
    let catalog = Catalog::open(dir.path()).unwrap();
    let condemned = catalog.condemned().unwrap();
    assert_eq!((condemned[0].volume, &condemned[0].directory), (first.id, &first.directory));
    catalog.forget_condemned(first.id).unwrap();
    assert!(catalog.condemned().unwrap().is_empty());
    let again = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    assert!(again.snapshot.volume_named("v").unwrap().id > first.id);
}

#[test]
fn export_rules_match_the_most_specific_network_first() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    let net = |text: &str| text.parse::<IpNetwork>().unwrap();
    let rules = [ExportRule::open(net("10.0.0.0/8")), ExportRule::open(net("10.1.0.0/16"))];
    catalog.set_exports("v", &rules, Mode::Commit).unwrap();
    let host = ExportRule::open(net("10.1.1.1"));
    catalog.add_export("v", &host, Mode::Commit).unwrap();
    let matched = |addr: &str| {
        let snapshot = catalog.snapshot();
        let volume = snapshot.volume_named("v").unwrap();
        volume.rule_for(addr.parse().unwrap()).map(|rule| rule.network.to_string())
    };
    assert_eq!(matched("10.1.1.1").as_deref(), Some("10.1.1.1/32"));
    assert_eq!(matched("10.1.1.2").as_deref(), Some("10.1.0.0/16"));
    assert_eq!(matched("10.2.0.1").as_deref(), Some("10.0.0.0/8"));
    assert_eq!(matched("127.0.0.1"), None);
    assert_eq!(catalog.add_export("v", &host, Mode::Commit).unwrap_err().code(), "rule_exists");
    catalog.remove_export("v", host.network, Mode::Commit).unwrap();
    let gone = catalog.remove_export("v", host.network, Mode::Commit).unwrap_err();
    assert_eq!(gone.code(), "no_such_rule");
}

#[test]
fn a_second_server_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let first = Catalog::open(dir.path()).unwrap();
    assert!(matches!(Catalog::open(dir.path()), Err(CatalogError::Locked { pid: Some(_), .. })));
    drop(first);
    Catalog::open(dir.path()).unwrap();
}

#[test]
fn the_operators_minimums_hold_for_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    drop(with_pool(dir.path(), Qos::Auto));
    let minimums = Minimums { pool_bytes: 8 * TIB, volume_bytes: 2 * TIB, ..Minimums::default() };
    let catalog = Catalog::open_with(dir.path(), minimums).unwrap();
    let error = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap_err();
    assert_eq!(error.allowed().unwrap().min, Some(2 * TIB));
    assert_eq!(
        catalog.create_pool(&pool("q", Qos::Auto), Mode::Commit).unwrap_err().code(),
        "size_out_of_bounds"
    );
    let manual = PoolChange { qos: Some(Qos::Manual), ..PoolChange::default() };
    catalog.change_pool("p", &manual, Mode::Commit).unwrap();
}

#[test]
fn two_data_directories_never_share_a_pool() {
    let (one, two, shared) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = shared.path().join("pool");
    let new = NewPool { directory: Some(place.clone()), ..pool("s", Qos::Auto) };
    let first = Catalog::open(one.path()).unwrap();
    first.create_pool(&new, Mode::Commit).unwrap();
    let second = Catalog::open(two.path()).unwrap();
    assert_eq!(second.create_pool(&new, Mode::Commit).unwrap_err().code(), "bad_path");
    let inside = NewPool {
        name: "t".to_owned(),
        directory: Some(place.join("volumes/9")),
        ..pool("t", Qos::Auto)
    };
    assert_eq!(first.create_pool(&inside, Mode::Commit).unwrap_err().code(), "bad_path");
    first.delete_pool("s", Mode::Commit).unwrap();
    second.create_pool(&new, Mode::Commit).unwrap();
}

#[test]
fn a_volume_is_only_where_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    let snapshot = catalog.snapshot();
    let made = snapshot.volume_named("v").unwrap();
    let mark = dir.path().join("pools/1/weir-pool");
    snapshot.check_place(made).unwrap();

    // This is the state where the file system of the pool is not mounted.
    let own = std::fs::read_to_string(&mark).unwrap();
    std::fs::remove_file(&mark).unwrap();
    assert_eq!(snapshot.check_place(made).unwrap_err().code(), "pool_away");
    for mode in [Mode::Preview, Mode::Commit] {
        let refused = catalog.create_volume(&volume("w", TIB, None), mode).unwrap_err();
        assert_eq!((refused.code(), refused.fault()), ("pool_away", Fault::Internal));
        assert!(refused.to_string().contains("mount the file system"), "{refused}");
    }
    // Another pool's, and another data directory's.
    for foreign in [own.replace(" 1", " 2"), own.replace(&own[..4], "????")] {
        std::fs::write(&mark, foreign).unwrap();
        assert_eq!(snapshot.check_place(made).unwrap_err().code(), "pool_foreign");
    }
    std::fs::write(&mark, own).unwrap();
    std::fs::remove_dir_all(&made.directory).unwrap();
    let refused = snapshot.check_place(made).unwrap_err();
    assert_eq!(refused.code(), "volume_away");
    assert!(refused.to_string().contains("\"v\""), "{refused}");
}

#[test]
fn two_copies_of_a_data_directory_never_work_in_one_pool() {
    let dir = tempfile::tempdir().unwrap();
    let (original, copy) = (dir.path().join("original"), dir.path().join("copy"));
    let outside = dir.path().join("outside");
    let catalog = Catalog::open(&original).unwrap();
    let directory = Some(outside.clone());
    catalog.create_pool(&NewPool { directory, ..pool("p", Qos::Auto) }, Mode::Commit).unwrap();
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    catalog.create_volume(&volume("gone", TIB, None), Mode::Commit).unwrap();
    catalog.delete_volume("gone", Mode::Commit).unwrap();
    drop(catalog);
    std::fs::create_dir(&copy).unwrap();
    for name in ["weir.db", "handle.key"] {
        std::fs::copy(original.join(name), copy.join(name)).unwrap();
    }

    let (first, second) = (Catalog::open(&original).unwrap(), Catalog::open(&copy).unwrap());
    let claim = |catalog: &Catalog| {
        let snapshot = catalog.snapshot();
        snapshot.claim_pool(snapshot.volume_named("v").unwrap().pool)
    };
    claim(&first).unwrap();
    claim(&first).unwrap();
    let refused = claim(&second).unwrap_err();
    assert_eq!((refused.code(), refused.fault()), ("pool_busy", Fault::Internal));
    let refused = second.create_volume(&volume("w", TIB, None), Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "pool_busy");
    assert_eq!(second.snapshot().volumes().count(), 1);
    let taken = pool("mine", Qos::Auto);
    second.delete_volume("v", Mode::Commit).unwrap();
    second.delete_pool("p", Mode::Commit).unwrap();
    assert!(outside.join("weir-pool").exists(), "the other one's");
    let taken = NewPool { directory: Some(outside.clone()), ..taken };
    let refused = second.create_pool(&taken, Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "pool_busy");
    let condemned = second.condemned().unwrap();
    assert!(!second.may_remove(&condemned[0]), "the other one's");
    assert!(first.may_remove(&condemned[0]));
    // The kernel lets go when the process ends, as it does here.
    drop(first);
    second.create_pool(&taken, Mode::Commit).unwrap();
    // A mark that was put in the place of the one that is held is taken anew.
    let mark = outside.join("weir-pool");
    std::fs::copy(&mark, outside.join("copy")).unwrap();
    std::fs::rename(outside.join("copy"), &mark).unwrap();
    second
        .create_volume(&NewVolume { pool: "mine".into(), ..volume("w", TIB, None) }, Mode::Commit)
        .unwrap();
    assert!(std::fs::File::open(&mark).unwrap().try_lock().is_err());
}

#[test]
fn a_new_volume_gets_an_empty_directory_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_pool(dir.path(), Qos::Auto);
    let first = dir.path().join("pools/1/volumes/1");
    catalog.create_volume(&volume("v", TIB, None), Mode::Preview).unwrap();
    assert!(!first.exists());
    // A directory left by a stop before the commit is used; one that somebody else put there is
    // not.
    std::fs::create_dir_all(first.join("letters")).unwrap();
    let refused = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "bad_path");
    assert_eq!(catalog.snapshot().volumes().count(), 0);
    std::fs::remove_dir(first.join("letters")).unwrap();
    std::fs::write(first.join("new"), "somebody's").unwrap();
    catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap_err();
    assert_eq!(std::fs::read_to_string(first.join("new")).unwrap(), "somebody's");
    std::fs::write(first.join("new"), "").unwrap();
    let outcome = catalog.create_volume(&volume("v", TIB, None), Mode::Commit).unwrap();
    let made = outcome.snapshot.volume_named("v").unwrap();
    assert_eq!(made.directory, first);
    assert!(first.join("new").exists(), "marked for the store to fill");
    outcome.snapshot.check_place(made).unwrap();
}
