//! Pools whose volumes share the pool's rate.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_catalog::{
    BytesPerSecond, Catalog, Ceiling, Limits, Mode, NewPool, NewVolume, PoolChange, Qos, Terms,
    TermsChange, VolumeChange,
};
use weir_qos::Share;

const TIB: u64 = 1 << 40;
const COMMIT: Mode = Mode::Commit;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(name: &str, qos: Qos) -> NewPool {
    let (name, level) = (name.to_owned(), "standard".to_owned());
    NewPool { name, level, size_bytes: 4 * TIB, qos, ..NewPool::default() }
}

fn volume(name: &str, throughput: Option<u64>, weight: Option<u32>) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        pool: "p".to_owned(),
        quota_bytes: TIB,
        terms: Terms { throughput: throughput.map(mib), weight, ..Terms::default() },
        ..NewVolume::default()
    }
}

fn share(catalog: &Catalog, name: &str) -> Option<(u32, BytesPerSecond)> {
    let snapshot = catalog.snapshot();
    snapshot.volume_named(name).unwrap().share.map(|Share { weight, floor }| (weight, floor))
}

fn limits(catalog: &Catalog, name: &str) -> Limits {
    catalog.snapshot().volume_named(name).unwrap().limits
}

#[test]
fn volumes_share_what_the_pool_has_and_have_some_of_it_for_certain() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool("p", Qos::Shared), COMMIT).unwrap();
    catalog.create_volume(&volume("v", None, None), COMMIT).unwrap();
    catalog.create_volume(&volume("w", Some(40), Some(300)), COMMIT).unwrap();
    assert_eq!(limits(&catalog, "v"), Limits::of(mib(64)), "all of it, if nobody else wants any");
    assert_eq!(share(&catalog, "v"), Some((100, mib(0))));
    assert_eq!(share(&catalog, "w"), Some((300, mib(40))));
    // For certain is never more than there is.
    let refused = catalog.create_volume(&volume("x", Some(25), None), COMMIT).unwrap_err();
    let allowed = (refused.code(), refused.allowed().unwrap().max);
    assert_eq!(allowed, ("pool_throughput_exceeded", Some(24 << 20)));
    let smaller = PoolChange { size_bytes: Some(2 * TIB), ..PoolChange::default() };
    let refused = catalog.change_pool("p", &smaller, COMMIT).unwrap_err();
    assert_eq!(refused.code(), "pool_below_throughput");
    let none = VolumeChange {
        terms: TermsChange { throughput: Some(mib(0)), weight: Some(7), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("w", &none, None, COMMIT).unwrap();
    assert_eq!(share(&catalog, "w"), Some((7, mib(0))));
    // More or less for all of them at once.
    let done = catalog.change_pool("p", &smaller, COMMIT).unwrap();
    assert_eq!(done.changes.len(), 2);
    assert_eq!(limits(&catalog, "w"), Limits::of(mib(32)));
    let ceiling = VolumeChange {
        terms: TermsChange { ceiling_rate: Some(Some(mib(5))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("w", &ceiling, None, COMMIT).unwrap();
    assert_eq!(limits(&catalog, "w"), Limits::of(mib(5)));
    drop(catalog);
    let catalog = Catalog::open(dir.path()).unwrap();
    assert_eq!(share(&catalog, "w"), Some((7, mib(0))));
}

#[test]
fn weights_are_for_shared_pools_and_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool("p", Qos::Shared), COMMIT).unwrap();
    for weight in [0, 1001, u32::MAX] {
        let refused = catalog.create_volume(&volume("v", None, Some(weight)), COMMIT).unwrap_err();
        assert_eq!(refused.code(), "weight_out_of_bounds", "{weight}");
        assert_eq!(refused.allowed().map(|a| (a.min, a.max)), Some((Some(1), Some(1000))));
    }
    catalog.create_volume(&volume("v", None, Some(1000)), COMMIT).unwrap();
    catalog.create_pool(&pool("m", Qos::Manual), COMMIT).unwrap();
    let mut move_ = VolumeChange {
        pool: Some("m".to_owned()),
        terms: TermsChange { throughput: Some(mib(10)), weight: Some(5), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    assert_eq!(catalog.change_volume("v", &move_, None, COMMIT).unwrap_err().code(), "not_shared");
    move_.terms.weight = None;
    catalog.change_volume("v", &move_, None, COMMIT).unwrap();
    assert_eq!((share(&catalog, "v"), limits(&catalog, "v")), (None, Limits::of(mib(10))));
    // Back, what it had is what it has for certain; what it weighed is forgotten.
    let back = VolumeChange { pool: Some("p".to_owned()), ..VolumeChange::default() };
    catalog.change_volume("v", &back, None, COMMIT).unwrap();
    assert_eq!(share(&catalog, "v"), Some((100, mib(10))));
}

#[test]
fn pools_come_to_share_and_stop_to_online() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool("p", Qos::Auto), COMMIT).unwrap();
    let ceiling = Ceiling { rate: Some(mib(60)), iops: None };
    catalog
        .create_volume(
            &NewVolume {
                terms: Terms { ceiling, ..volume("v", None, None).terms },
                ..volume("v", None, None)
            },
            COMMIT,
        )
        .unwrap();
    let to = |qos| {
        let change = PoolChange { qos: Some(qos), ..PoolChange::default() };
        catalog.change_pool("p", &change, COMMIT).map_err(|error| error.code())
    };
    to(Qos::Shared).unwrap();
    assert_eq!(share(&catalog, "v"), Some((100, mib(16))), "what its quota bought");
    assert_eq!(limits(&catalog, "v"), Limits::of(mib(60)));
    catalog.create_volume(&volume("w", None, Some(3)), COMMIT).unwrap();
    assert_eq!(to(Qos::Manual).unwrap_err(), "zero_throughput", "w has nothing of its own");
    let give = VolumeChange {
        terms: TermsChange { throughput: Some(mib(48)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("w", &give, None, COMMIT).unwrap();
    to(Qos::Manual).unwrap();
    assert_eq!(
        (limits(&catalog, "v"), limits(&catalog, "w")),
        (Limits::of(mib(16)), Limits::of(mib(48)))
    );
    to(Qos::Shared).unwrap();
    assert_eq!(share(&catalog, "w"), Some((100, mib(48))));
    to(Qos::Auto).unwrap();
    assert_eq!(limits(&catalog, "w"), Limits::of(mib(16)));
}
