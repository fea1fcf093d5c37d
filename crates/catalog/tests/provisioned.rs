//! Pools whose volumes provision for themselves, with credits for bursts.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use weir_catalog::{
    BytesPerSecond, Catalog, Ceiling, Iops, Limits, Mode, NewPool, NewVolume, PoolChange, Qos,
    Terms, TermsChange, VolumeChange,
};
use weir_qos::burst::{v1, v2};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const COMMIT: Mode = Mode::Commit;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(qos: Qos) -> NewPool {
    let (name, level) = ("p".to_owned(), "standard".to_owned());
    NewPool { name, level, size_bytes: 100 * TIB, qos, ..NewPool::default() }
}

fn volume(name: &str, gib: u64) -> NewVolume {
    let (name, pool) = (name.to_owned(), "p".to_owned());
    NewVolume { name, pool, quota_bytes: gib * GIB, ..NewVolume::default() }
}

fn limits(catalog: &Catalog, name: &str) -> Limits {
    catalog.snapshot().volume_named(name).unwrap().limits
}

/// Base IOPS, those of bursts, credits and MiB/s.
fn figures(limits: Limits) -> (u64, u64, u64, u64) {
    let burst = limits.burst.unwrap();
    (burst.base.0, limits.iops.unwrap().0, burst.credits, limits.rate.0 >> 20)
}

#[test]
fn everything_follows_from_the_quota_under_v1() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::ProvisionedV1), COMMIT).unwrap();
    catalog.create_volume(&volume("v", 1_024), COMMIT).unwrap();
    assert_eq!(figures(limits(&catalog, "v")), (4_024, 10_000, 21_513_600, 203));
    let grown = VolumeChange { quota_bytes: Some(10_240 * GIB), ..VolumeChange::default() };
    let planned = catalog.change_volume("v", &grown, None, Mode::Preview).unwrap();
    assert_eq!(figures(planned.changes[0].after), (13_240, 30_720, 62_928_000, 1_125));
    let done = catalog.change_volume("v", &grown, None, COMMIT).unwrap();
    assert_eq!(planned.changes, done.changes);
    // Nothing of it is chosen, except a ceiling over it.
    let rate = VolumeChange {
        terms: TermsChange { throughput: Some(mib(200)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let refused = catalog.change_volume("v", &rate, None, COMMIT).unwrap_err();
    assert_eq!(refused.code(), "throughput_in_auto_pool");
    let iops = VolumeChange {
        terms: TermsChange { iops: Some(Some(Iops(4000))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let refused = catalog.change_volume("v", &iops, None, COMMIT).unwrap_err();
    assert_eq!(refused.code(), "iops_not_given");
    let lower = VolumeChange {
        terms: TermsChange { ceiling_iops: Some(Some(Iops(20_000))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &lower, None, COMMIT).unwrap();
    assert_eq!(figures(limits(&catalog, "v")), (13_240, 20_000, 62_928_000, 1_125));
    // Many of them are no more than the pool's size.
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        catalog.create_volume(&volume(name, 10_240), COMMIT).unwrap();
    }
    let refused = catalog.create_volume(&volume("i", 10_241), COMMIT).unwrap_err();
    assert_eq!(refused.code(), "pool_capacity_exceeded");
}

#[test]
fn a_volume_provisions_its_own_under_v2() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::ProvisionedV2), COMMIT).unwrap();
    // The volume has the limits recommended for its size, and follows it, unless others are asked
    // for.
    catalog.create_volume(&volume("v", 1_024), COMMIT).unwrap();
    assert_eq!(limits(&catalog, "v"), v2(mib(203), Iops(4_024)));
    let grown = VolumeChange { quota_bytes: Some(2_048 * GIB), ..VolumeChange::default() };
    catalog.change_volume("v", &grown, None, COMMIT).unwrap();
    assert_eq!(limits(&catalog, "v"), v2(mib(305), Iops(5_048)));
    for (iops, burst, credits) in
        [(3_000, 10_000, 25_200_000), (25_000, 75_000, 180_000_000), (50_000, 102_400, 188_640_000)]
    {
        let own = VolumeChange {
            terms: TermsChange { iops: Some(Some(Iops(iops))), ..TermsChange::default() },
            ..VolumeChange::default()
        };
        catalog.change_volume("v", &own, None, COMMIT).unwrap();
        assert_eq!(figures(limits(&catalog, "v")), (iops, burst, credits, 305));
    }
    let auto = VolumeChange {
        terms: TermsChange { iops: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &auto, None, COMMIT).unwrap();
    assert_eq!(limits(&catalog, "v").burst.unwrap().base, Iops(5_048));
}

#[test]
fn what_v2_does_not_provision_is_refused_with_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::ProvisionedV2), COMMIT).unwrap();
    for rate in [0, (100 << 20) - 1, (10_340 << 20) + 1, 1 << 63, u64::MAX] {
        let new = NewVolume {
            terms: Terms { throughput: Some(BytesPerSecond(rate)), ..volume("v", 64).terms },
            ..volume("v", 64)
        };
        let refused = catalog.create_volume(&new, COMMIT).unwrap_err();
        assert_eq!(refused.code(), "throughput_out_of_bounds", "{rate}");
        let allowed = refused.allowed().unwrap();
        assert_eq!((allowed.min, allowed.max), (Some(100 << 20), Some(10_340 << 20)));
    }
    for iops in [0, 2_999, 102_401, 1 << 63, u64::MAX] {
        let new = NewVolume {
            terms: Terms { iops: Some(Iops(iops)), ..volume("v", 64).terms },
            ..volume("v", 64)
        };
        let refused = catalog.create_volume(&new, COMMIT).unwrap_err();
        assert_eq!(refused.code(), "iops_out_of_bounds", "{iops}");
        let allowed = refused.allowed().unwrap();
        assert_eq!((allowed.min, allowed.max), (Some(3_000), Some(102_400)));
    }
    let new = NewPool { throughput: Some(mib(500)), name: "q".into(), ..pool(Qos::ProvisionedV2) };
    assert_eq!(catalog.create_pool(&new, COMMIT).unwrap_err().code(), "not_bought");
}

#[test]
fn pools_come_to_provision_and_stop_to_online() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool(Qos::Auto), COMMIT).unwrap();
    let ceiling = Ceiling { iops: Some(Iops(9_000)), ..Ceiling::default() };
    catalog
        .create_volume(
            &NewVolume {
                terms: Terms { ceiling, ..volume("v", 1_024).terms },
                ..volume("v", 1_024)
            },
            COMMIT,
        )
        .unwrap();
    let to = |qos| {
        let change = PoolChange { qos: Some(qos), ..PoolChange::default() };
        catalog.change_pool("p", &change, COMMIT).unwrap();
        limits(&catalog, "v")
    };
    assert_eq!(to(Qos::ProvisionedV1), v1(1_024 * GIB).under(ceiling));
    assert_eq!(to(Qos::ProvisionedV2), v2(mib(203), Iops(4_024)).under(ceiling));
    let own = VolumeChange {
        terms: TermsChange { iops: Some(Some(Iops(25_000))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &own, None, COMMIT).unwrap();
    // The rate stays, without bursts; IOPS of another kind of pool do not come along.
    assert_eq!(to(Qos::Manual), Limits { burst: None, ..v1(1_024 * GIB).under(ceiling) });
    assert_eq!(to(Qos::ProvisionedV2), v2(mib(203), Iops(4_024)).under(ceiling));
    assert_eq!(to(Qos::Auto), Limits::of(mib(16)).under(ceiling));
    drop(catalog);
    let catalog = Catalog::open(dir.path()).unwrap();
    assert_eq!(limits(&catalog, "v"), Limits::of(mib(16)).under(ceiling));
}
