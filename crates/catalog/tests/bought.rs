//! Pools that buy throughput and IOPS apart from their size.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_catalog::{
    BytesPerSecond, Catalog, Ceiling, Fault, Floors, Iops, Limits, Minimums, Mode, NewPool,
    NewVolume, PoolChange, Qos, Terms, TermsChange, VolumeChange,
};

const TIB: u64 = 1 << 40;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(qos: Qos) -> NewPool {
    let (name, level) = ("p".to_owned(), "standard".to_owned());
    NewPool { name, level, size_bytes: TIB, qos, ..NewPool::default() }
}

fn volume(name: &str, rate: u64, iops: Option<u64>) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        pool: "p".to_owned(),
        quota_bytes: TIB / 8,
        terms: Terms { throughput: Some(mib(rate)), iops: iops.map(Iops), ..Terms::default() },
        ..NewVolume::default()
    }
}

fn limits(catalog: &Catalog, name: &str) -> Limits {
    catalog.snapshot().volume_named(name).unwrap().limits
}

fn both(rate: u64, iops: u64) -> Limits {
    Limits { iops: Some(Iops(iops)), ..Limits::of(mib(rate)) }
}

#[test]
fn a_flexible_pool_gives_what_it_buys_whatever_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    let too_much = NewPool { throughput: Some(mib(641)), ..pool(Qos::Flexible) };
    let refused = catalog.create_pool(&too_much, commit).unwrap_err();
    assert_eq!(refused.code(), "pool_throughput_out_of_bounds");
    let allowed = refused.allowed().unwrap();
    assert_eq!((allowed.min, allowed.max), (Some(128 << 20), Some(640 << 20)));
    // Without a word it has the 128 MiB/s that come with any size.
    catalog.create_pool(&pool(Qos::Flexible), commit).unwrap();
    catalog.create_volume(&volume("v", 100, None), commit).unwrap();
    let refused = catalog.create_volume(&volume("w", 29, None), commit).unwrap_err();
    assert_eq!(refused.code(), "pool_throughput_exceeded");
    assert!(refused.to_string().contains("would have to purchase 129 MiB/s"), "{refused}");
    let buy = |rate| PoolChange { throughput: Some(mib(rate)), ..PoolChange::default() };
    catalog.change_pool("p", &buy(500), commit).unwrap();
    catalog.create_volume(&volume("w", 400, None), commit).unwrap();
    let refused = catalog.change_pool("p", &buy(499), commit).unwrap_err();
    assert_eq!((refused.code(), refused.fault()), ("pool_below_throughput", Fault::Infeasible));
    let field = "throughput_bytes_per_second";
    assert_eq!(refused.allowed().map(|a| (a.field, a.min)), Some((field, Some(500 << 20))));
    // A smaller pool may not have bought so much.
    let smaller = PoolChange { size_bytes: Some(TIB / 2), ..PoolChange::default() };
    let refused = catalog.change_pool("p", &smaller, commit).unwrap_err();
    assert_eq!(refused.code(), "pool_throughput_out_of_bounds");
    assert_eq!(limits(&catalog, "w"), Limits::of(mib(400)));
}

#[test]
fn a_custom_pool_has_size_throughput_and_iops_apart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    let bought = NewPool { throughput: Some(mib(100)), ..pool(Qos::Custom) };
    catalog.create_pool(&bought, commit).unwrap();
    assert_eq!(catalog.snapshot().pool_named("p").unwrap().model.bought().iops, Some(Iops(1600)));
    catalog.create_volume(&volume("v", 10, None), commit).unwrap();
    catalog.create_volume(&volume("w", 10, Some(1000)), commit).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 160));
    assert_eq!(limits(&catalog, "w"), both(10, 1000));
    let refused = catalog.create_volume(&volume("x", 10, Some(441)), commit).unwrap_err();
    assert_eq!((refused.code(), refused.allowed().unwrap().max), ("pool_iops_exceeded", Some(440)));
    // More operations are in force at once for those that have a part of them.
    let more = PoolChange { iops: Some(Iops(3200)), ..PoolChange::default() };
    let planned = catalog.change_pool("p", &more, Mode::Preview).unwrap();
    let done = catalog.change_pool("p", &more, commit).unwrap();
    assert_eq!(planned.changes, done.changes);
    assert_eq!((done.changes.len(), done.changes[0].after), (1, both(10, 320)));
    let fewer = PoolChange { iops: Some(Iops(1100)), ..PoolChange::default() };
    let refused = catalog.change_pool("p", &fewer, commit).unwrap_err();
    assert_eq!(refused.code(), "pool_below_iops");
    let own = VolumeChange {
        terms: TermsChange { iops: Some(Some(Iops(50))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("w", &own, None, commit).unwrap();
    catalog.change_pool("p", &fewer, commit).unwrap();
    assert_eq!((limits(&catalog, "v"), limits(&catalog, "w")), (both(10, 110), both(10, 50)));
}

#[test]
fn models_change_online_and_every_volume_keeps_its_throughput() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    catalog.create_pool(&pool(Qos::Auto), commit).unwrap();
    let auto = NewVolume {
        terms: Terms { throughput: None, ..volume("v", 0, None).terms },
        ..volume("v", 0, None)
    };
    catalog.create_volume(&auto, commit).unwrap();
    assert_eq!(limits(&catalog, "v"), Limits::of(mib(2)));
    let to = |qos| PoolChange { qos: Some(qos), ..PoolChange::default() };
    for (qos, then) in [
        (Qos::Flexible, Limits::of(mib(2))),
        (Qos::Custom, both(2, 32)),
        (Qos::Manual, Limits::of(mib(2))),
        (Qos::Custom, both(2, 32)),
        (Qos::Auto, Limits::of(mib(2))),
    ] {
        catalog.change_pool("p", &to(qos), commit).unwrap();
        assert_eq!(limits(&catalog, "v"), then, "{qos}");
    }
    drop(catalog);
    assert_eq!(limits(&Catalog::open(dir.path()).unwrap(), "v"), Limits::of(mib(2)));
}

#[test]
fn what_a_model_does_not_sell_can_not_be_bought() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let code = |new: &NewPool| catalog.create_pool(new, Mode::Commit).unwrap_err().code();
    for qos in [Qos::Auto, Qos::Manual] {
        assert_eq!(code(&NewPool { throughput: Some(mib(128)), ..pool(qos) }), "not_bought");
    }
    for qos in [Qos::Auto, Qos::Manual, Qos::Flexible] {
        assert_eq!(code(&NewPool { iops: Some(Iops(2000)), ..pool(qos) }), "not_bought");
    }
    catalog.create_pool(&pool(Qos::Flexible), Mode::Commit).unwrap();
    let refused = catalog.create_volume(&volume("v", 1, Some(7)), Mode::Commit).unwrap_err();
    assert_eq!((refused.code(), refused.fault()), ("iops_not_given", Fault::Invalid));
}

#[test]
fn the_floors_of_custom_pools_are_the_operators() {
    let dir = tempfile::tempdir().unwrap();
    let custom = Floors { rate: mib(1), iops: Iops(100) };
    let minimums = Minimums { custom, ..Minimums::default() };
    let catalog = Catalog::open_with(dir.path(), minimums).unwrap();
    catalog.create_pool(&pool(Qos::Custom), Mode::Commit).unwrap();
    let snapshot = catalog.snapshot();
    let made = snapshot.pool_named("p").unwrap();
    assert_eq!(
        (made.model.bought().rate, made.model.bought().iops),
        (Some(mib(1)), Some(Iops(100)))
    );
}

#[test]
fn operations_that_come_with_the_throughput_follow_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    catalog
        .create_pool(&NewPool { throughput: Some(mib(100)), ..pool(Qos::Custom) }, commit)
        .unwrap();
    catalog.create_volume(&volume("v", 10, None), commit).unwrap();
    let buy = |rate, iops: Option<u64>| {
        let (throughput, iops) = (Some(mib(rate)), iops.map(Iops));
        let change = PoolChange { throughput, iops, ..PoolChange::default() };
        catalog.change_pool("p", &change, commit).unwrap();
        (
            catalog.snapshot().pool_named("p").unwrap().model.bought().iops.unwrap().0,
            limits(&catalog, "v"),
        )
    };
    assert_eq!(buy(200, None), (3200, both(10, 160)), "none are lost");
    assert_eq!(buy(64, None), (1024, both(10, 160)));
    assert_eq!(buy(128, Some(4000)), (4000, both(10, 312)));
    assert_eq!(buy(200, None).0, 4000, "chosen, so they stay");
}

#[test]
fn a_volume_keeps_its_operations_between_custom_pools_if_they_fit() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    for (name, qos, iops) in
        [("p", Qos::Custom, 1600), ("q", Qos::Custom, 1500), ("m", Qos::Flexible, 0)]
    {
        let name = name.to_owned();
        let iops = (iops > 0).then_some(Iops(iops));
        let new = NewPool { name, throughput: Some(mib(128)), iops, ..pool(qos) };
        catalog.create_pool(&new, commit).unwrap();
    }
    catalog.create_volume(&volume("v", 10, Some(1000)), commit).unwrap();
    let go = |pool: &str, iops: Option<u64>| {
        let iops = iops.map(|iops| Some(Iops(iops)));
        let change = VolumeChange {
            pool: Some(pool.to_owned()),
            terms: TermsChange { iops, ..TermsChange::default() },
            ..VolumeChange::default()
        };
        catalog.change_volume("v", &change, None, commit)
    };
    go("q", None).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 1000));
    go("p", Some(1600)).unwrap();
    let refused = go("q", None).unwrap_err();
    assert_eq!(
        (refused.code(), refused.allowed().unwrap().max),
        ("pool_iops_exceeded", Some(1500))
    );
    go("q", Some(7)).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 7));
    assert_eq!(go("m", Some(7)).unwrap_err().code(), "iops_not_given");
    go("m", None).unwrap();
    go("p", None).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 125), "its part of the pool's");
}

#[test]
fn operations_of_a_volume_can_be_taken_away_again() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let commit = Mode::Commit;
    catalog
        .create_pool(&NewPool { throughput: Some(mib(100)), ..pool(Qos::Custom) }, commit)
        .unwrap();
    catalog.create_volume(&volume("v", 10, Some(50)), commit).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 50));
    let auto = VolumeChange {
        terms: TermsChange { iops: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &auto, None, commit).unwrap();
    assert_eq!(limits(&catalog, "v"), both(10, 160));
    assert_eq!(catalog.snapshot().volume_named("v").unwrap().terms.iops, None);
}

#[test]
fn what_no_pool_can_buy_is_refused_with_what_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    for rate in [0, 1 << 63, u64::MAX] {
        for qos in [Qos::Flexible, Qos::Custom] {
            let new = NewPool { throughput: Some(BytesPerSecond(rate)), ..pool(qos) };
            let refused = catalog.create_pool(&new, Mode::Commit).unwrap_err();
            assert_eq!(refused.code(), "pool_throughput_out_of_bounds", "{rate} {qos}");
        }
        let new = NewPool { iops: Some(Iops(rate)), ..pool(Qos::Custom) };
        let refused = catalog.create_pool(&new, Mode::Commit).unwrap_err();
        assert_eq!(refused.code(), "pool_iops_out_of_bounds", "{rate}");
    }
}

#[test]
fn raised_floors_are_for_what_is_bought_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let commit = Mode::Commit;
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::Custom), commit).unwrap();
    drop(catalog);
    let custom = Floors { rate: mib(100), iops: Iops(2000) };
    let minimums = Minimums { custom, ..Minimums::default() };
    let catalog = Catalog::open_with(dir.path(), minimums).unwrap();
    let change = |throughput: Option<u64>, iops: Option<u64>, size_bytes| {
        let (throughput, iops) = (throughput.map(mib), iops.map(Iops));
        let change = PoolChange { throughput, iops, size_bytes, ..PoolChange::default() };
        catalog.change_pool("p", &change, commit).map_err(|error| error.code())
    };
    assert!(change(None, None, Some(2 * TIB)).is_ok(), "of 64 MiB/s and 1,024 IOPS still");
    assert_eq!(change(Some(99), None, None).unwrap_err(), "pool_throughput_out_of_bounds");
    assert_eq!(change(None, Some(1999), None).unwrap_err(), "pool_iops_out_of_bounds");
    assert!(change(None, Some(2000), None).is_ok(), "with the throughput that it has");
    assert!(change(Some(100), None, None).is_ok());
}

#[test]
fn what_is_given_is_not_lowered_by_a_ceiling() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::Custom), Mode::Commit).unwrap();
    let ceiling = Ceiling { rate: Some(mib(1)), iops: Some(Iops(2)) };
    let new = NewVolume {
        terms: Terms { ceiling, ..volume("v", 10, None).terms },
        ..volume("v", 10, None)
    };
    catalog.create_volume(&new, Mode::Commit).unwrap();
    let snapshot = catalog.snapshot();
    let (pool, volume) = (snapshot.pool_named("p").unwrap(), snapshot.volume_named("v").unwrap());
    assert_eq!((pool.gives(volume), volume.limits), (both(10, 160), both(1, 2)));
}
