use super::*;
use crate::limits::Ceiling;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(qos: Qos, size_bytes: u64) -> Pool {
    let bought = Bought { rate: Some(mib(128)), iops: Some(Iops(2048)) };
    let model = Model::new(qos, Level::STANDARD, bought);
    assert_eq!(model.qos(), qos);
    Pool { size_bytes, model }
}

/// The same pool at another level.
fn at(level: Level, pool: Pool) -> Pool {
    Pool { model: pool.model.at(level), ..pool }
}

fn terms(quota_bytes: u64, rate: BytesPerSecond) -> Demand {
    Demand { rate: Some(rate), ..auto(quota_bytes) }
}

fn auto(quota_bytes: u64) -> Demand {
    Demand { quota_bytes, rate: None, iops: None }
}

#[test]
fn auto_limits_are_linear_and_exact() {
    let vectors = [
        (Level::STANDARD, 100 * GIB, BytesPerSecond(1_638_400)),
        (Level::STANDARD, TIB, mib(16)),
        (Level::STANDARD, 3 * TIB, mib(48)),
        (Level::STANDARD, 4 * TIB, mib(64)),
        (Level::PREMIUM, TIB, mib(64)),
        (Level::ULTRA, TIB, mib(128)),
        (Level::EXTREME, TIB, mib(128)),
        (Level::new(mib(32)).unwrap(), 3 * TIB, mib(96)),
        // Google states the same levels as KiB/s per GiB.
        (Level::STANDARD, GIB, BytesPerSecond(16 << 10)),
        (Level::PREMIUM, GIB, BytesPerSecond(64 << 10)),
        (Level::ULTRA, GIB, BytesPerSecond(128 << 10)),
        (Level::PREMIUM, 4500 * TIB / 64, mib(4500)),
        (Level::ULTRA, u64::MAX, BytesPerSecond(u64::MAX >> 13)),
    ];
    for (level, quota, limit) in vectors {
        let pool = at(level, pool(Qos::Auto, quota));
        assert_eq!(pool.limits(auto(quota)), Limits::of(limit), "{level:?} {quota}");
        assert_eq!(pool.budget(), Some(Limits::of(limit)), "{level:?} {quota}");
    }
}

#[test]
fn sizing_the_other_way_round() {
    // 70.3125 TiB.
    assert_eq!(Level::PREMIUM.size_for(mib(4500)), 70 * TIB + 320 * GIB);
    assert_eq!(Level::STANDARD.size_for(BytesPerSecond(1)), 65_536);
    assert_eq!(Level::STANDARD.size_for(BytesPerSecond(u64::MAX)), u64::MAX);
}

#[test]
fn a_level_is_never_nothing() {
    assert_eq!(Level::new(BytesPerSecond::ZERO), None);
    assert_eq!(Level::least(BytesPerSecond::ZERO, TIB).rate_per_tib(), BytesPerSecond(1));
    assert_eq!(Level::least(BytesPerSecond(u64::MAX), 0).rate_per_tib(), BytesPerSecond(u64::MAX));
}

#[test]
fn the_least_level_carries_the_volumes_and_none_below_it_does() {
    let volumes = [terms(TIB, mib(48)), terms(2 * TIB, mib(17))];
    for qos in [Qos::Auto, Qos::Manual] {
        let pool = pool(qos, 3 * TIB);
        let least = pool.least_level(volumes);
        let (rate, below) = (least.rate_per_tib(), BytesPerSecond(least.rate_per_tib().0 - 1));
        assert_eq!(at(least, pool).check(volumes), Ok(()), "{qos} {rate}");
        if let Some(level) = Level::new(below) {
            assert!(at(level, pool).check(volumes).is_err(), "{qos} {below}");
        }
    }
    // A level has no part in what is bought.
    assert_eq!(pool(Qos::Flexible, TIB).least_level(volumes).rate_per_tib(), BytesPerSecond(1));
    let pool = pool(Qos::Auto, TIB);
    assert_eq!(pool.least_level([auto(1 << 20)]).rate_per_tib(), BytesPerSecond(1 << 20));
    assert_eq!(pool.least_level([]).rate_per_tib(), BytesPerSecond(1));
}

#[test]
fn the_measured_table_is_feasible() {
    let manual = pool(Qos::Manual, 4 * TIB);
    assert_eq!(manual.budget(), Some(Limits::of(mib(64))));
    let (small, large) = (terms(TIB, mib(48)), terms(3 * TIB, mib(16)));
    assert_eq!(manual.check([small, large]), Ok(()));
    assert_eq!(manual.check_volume([small], large), Ok(()));
    assert_eq!((manual.limits(small).rate, manual.limits(large).rate), (mib(48), mib(16)));
    let auto_pool = pool(Qos::Auto, 4 * TIB);
    assert_eq!((auto_pool.limits(small).rate, auto_pool.limits(large).rate), (mib(16), mib(48)));
}

#[test]
fn a_volume_must_fit_by_quota() {
    let refused = pool(Qos::Auto, 4 * TIB).check_volume([auto(TIB), auto(2 * TIB)], auto(2 * TIB));
    let free =
        Infeasible::Quota { asked_bytes: 2 * TIB, free_bytes: TIB, size_needed_bytes: 5 * TIB };
    assert_eq!(refused, Err(free));
    assert_eq!(pool(Qos::Auto, 4 * TIB).check_volume([auto(3 * TIB)], auto(TIB)), Ok(()));
}

#[test]
fn a_manual_volume_must_fit_by_throughput() {
    let pool = pool(Qos::Manual, 4 * TIB);
    let refused = pool.check_volume([terms(TIB, mib(48))], terms(TIB, mib(17)));
    let error = Infeasible::Throughput {
        asked: mib(17),
        free: mib(16),
        remedy: Remedy::Size(4 * TIB + 64 * GIB),
    };
    assert_eq!(refused, Err(error));
    assert_eq!(
        error.to_string(),
        "17 MiB/s exceeds the free throughput of the pool: request at most 16 MiB/s, or \
         enlarge the pool to 4466765987840 bytes"
    );
    let enlarged = Pool { size_bytes: 4 * TIB + 64 * GIB, ..pool };
    assert_eq!(enlarged.check_volume([terms(TIB, mib(48))], terms(TIB, mib(17))), Ok(()));
}

#[test]
fn a_pool_must_carry_its_volumes() {
    let volumes = [terms(TIB, mib(48)), terms(2 * TIB, mib(16))];
    assert_eq!(
        pool(Qos::Manual, 2 * TIB).check(volumes),
        Err(Infeasible::PoolSize { asked_bytes: 2 * TIB, needed_bytes: 3 * TIB })
    );
    assert_eq!(
        pool(Qos::Manual, 3 * TIB).check(volumes),
        Err(Infeasible::PoolThroughput {
            budget: mib(48),
            needed: mib(64),
            remedy: Remedy::Size(4 * TIB)
        })
    );
    assert_eq!(pool(Qos::Auto, 3 * TIB).check(volumes), Ok(()));
    assert_eq!(pool(Qos::Manual, 4 * TIB).check(volumes), Ok(()));
    let fast = at(Level::PREMIUM, pool(Qos::Manual, 3 * TIB));
    assert_eq!(fast.check(volumes), Ok(()));
}

#[test]
fn a_volume_must_be_able_to_do_io() {
    let error = Infeasible::QuotaWithoutRate { asked_bytes: 65_535, least_bytes: 65_536 };
    assert_eq!(pool(Qos::Auto, TIB).check_volume([], auto(65_535)), Err(error));
    assert_eq!(pool(Qos::Auto, TIB).check_volume([], auto(65_536)), Ok(()));
    let manual = pool(Qos::Manual, TIB);
    assert_eq!(manual.check_volume([], auto(TIB)), Err(Infeasible::ZeroRate));
    assert_eq!(manual.check([terms(GIB, mib(1)), auto(GIB)]), Err(Infeasible::ZeroRate));
}

#[test]
fn sums_do_not_wrap() {
    let huge = terms(u64::MAX, BytesPerSecond(u64::MAX));
    assert_eq!(
        pool(Qos::Auto, u64::MAX).check_volume([huge, huge], huge),
        Err(Infeasible::Quota {
            asked_bytes: u64::MAX,
            free_bytes: 0,
            size_needed_bytes: u64::MAX
        })
    );
    assert_eq!(
        pool(Qos::Manual, u64::MAX).check([terms(1, BytesPerSecond(u64::MAX)); 2]),
        Err(Infeasible::PoolThroughput {
            budget: BytesPerSecond(u64::MAX >> 16),
            needed: BytesPerSecond(u64::MAX),
            remedy: Remedy::Size(u64::MAX)
        })
    );
}

#[test]
fn a_flexible_pool_buys_within_its_published_bounds() {
    let buys = |size_bytes, rate| Pool { size_bytes, model: Model::Flexible { rate } };
    let check = |size, rate| buys(size, rate).check_bought(Floors::default());
    // 128 MiB/s come with any size; 1 TiB buys 640, and 3 TiB 1,920.
    for (size, least, most) in [
        (TIB, mib(128), mib(640)),
        (3 * TIB, mib(128), mib(1920)),
        (TIB / 5 + 1, mib(128), mib(128)),
        (GIB, mib(128), mib(128)),
    ] {
        assert_eq!((check(size, least), check(size, most)), (Ok(()), Ok(())), "{size}");
        for asked in [BytesPerSecond(least.0 - 1), BytesPerSecond(most.0 + 1)] {
            let refused = Err(Infeasible::BoughtRate { asked, least, most });
            assert_eq!(check(size, asked), refused, "{size}");
        }
    }
    // The pool gives the rate it bought, whatever its size, level and operations.
    let pool = buys(TIB, mib(300));
    assert_eq!(pool.budget(), Some(Limits::of(mib(300))));
    let volume = terms(GIB, mib(200));
    assert_eq!(pool.limits(volume), Limits::of(mib(200)));
    let refused = pool.check_volume([volume], terms(GIB, mib(101)));
    let remedy = Remedy::Buy(mib(301));
    let error = Infeasible::Throughput { asked: mib(101), free: mib(100), remedy };
    assert_eq!(refused, Err(error));
    assert!(error.to_string().ends_with("raise the pool's throughput to 301 MiB/s"), "{error}");
    assert_eq!(pool.check([volume, terms(GIB, mib(100))]), Ok(()));
}

fn custom(rate: u64, iops: u64) -> Pool {
    Pool { size_bytes: TIB, model: Model::Custom { rate: mib(rate), iops: Iops(iops) } }
}

#[test]
fn a_custom_pool_buys_within_its_published_bounds_and_its_floors() {
    let floors = Floors::default();
    for (rate, iops) in [(64, 1024), (5120, 160_000), (64, 160_000), (5120, 1024)] {
        assert_eq!(custom(rate, iops).check_bought(floors), Ok(()), "{rate} {iops}");
    }
    for (rate, iops) in [(63, 1024), (5121, 1024)] {
        let refused = custom(rate, iops).check_bought(floors);
        assert!(matches!(refused, Err(Infeasible::BoughtRate { .. })), "{rate}: {refused:?}");
    }
    for (rate, iops) in [(64, 1023), (64, 160_001)] {
        let refused = custom(rate, iops).check_bought(floors);
        assert!(matches!(refused, Err(Infeasible::BoughtIops { .. })), "{iops}: {refused:?}");
    }
    let low = Floors { rate: mib(1), iops: Iops(16) };
    assert_eq!(custom(1, 16).check_bought(low), Ok(()));
    let defaults = [64, 100, 5120, 20_000].map(|rate| Model::iops_with(mib(rate)));
    assert_eq!(defaults, [Iops(1024), Iops(1600), Iops(81_920), Iops(160_000)]);
}

#[test]
fn a_custom_volume_has_operations_of_its_own_or_its_part_of_the_pools() {
    let pool = custom(100, 1600);
    let own = Demand { iops: Some(Iops(1000)), ..terms(GIB, mib(10)) };
    assert_eq!(pool.limits(terms(GIB, mib(10))).iops, Some(Iops(160)));
    assert_eq!(pool.limits(own), Limits { iops: Some(Iops(1000)), ..Limits::of(mib(10)) });
    assert_eq!(pool.check([own, terms(GIB, mib(37))]), Ok(()));
    let refused = pool.check_volume([own], terms(GIB, mib(38)));
    let error = Infeasible::Iops { asked: Iops(608), free: Iops(600), needed: Iops(1608) };
    assert_eq!(refused, Err(error));
    let fewer = custom(100, 1500).check([own, terms(GIB, mib(37)), own]);
    let needed = Iops(2 * 1000 + 1500 * 37 / 100);
    assert_eq!(fewer, Err(Infeasible::PoolIops { budget: Iops(1500), needed }));
    let nothing = Demand { iops: Some(Iops(0)), ..own };
    assert_eq!(pool.check_volume([], nothing), Err(Infeasible::ZeroIops));
    let least = BytesPerSecond(65_536);
    let tiny = terms(GIB, BytesPerSecond(65_535));
    let refused = Err(Infeasible::RateWithoutIops { asked: BytesPerSecond(65_535), least });
    assert_eq!(pool.check_volume([], tiny), refused);
    assert_eq!(pool.check_volume([], terms(GIB, least)), Ok(()));
}

#[test]
fn a_volume_provisions_within_the_published_bounds_and_zero_is_not_the_default() {
    let pool = pool(Qos::ProvisionedV2, TIB);
    let check = |rate, iops| pool.check_volume([], Demand { quota_bytes: GIB, rate, iops });
    let rate = |asked| {
        let (least, most) = burst::V2_RATE.into_inner();
        Err(Infeasible::ProvisionedRate { asked, least, most })
    };
    assert_eq!(check(None, None), Ok(()));
    assert_eq!(check(Some(mib(100)), Some(Iops(3_000))), Ok(()));
    assert_eq!(check(Some(BytesPerSecond::ZERO), None), rate(BytesPerSecond::ZERO));
    assert_eq!(check(Some(mib(99)), None), rate(mib(99)));
    for asked in [Iops(0), Iops(2_999), Iops(102_401)] {
        let (least, most) = burst::V2_IOPS.into_inner();
        let refused = Err(Infeasible::ProvisionedIops { asked, least, most });
        assert_eq!(check(None, Some(asked)), refused);
    }
}

#[test]
fn a_ceiling_lowers_and_never_raises() {
    let ceiling = |rate, iops| Ceiling { rate, iops };
    let limits = Limits::of(mib(16));
    assert_eq!(limits.under(Ceiling::default()), limits);
    assert_eq!(limits.under(ceiling(Some(mib(17)), None)), limits);
    assert_eq!(limits.under(ceiling(Some(mib(4)), None)), Limits::of(mib(4)));
    let counted = limits.under(ceiling(None, Some(Iops(500))));
    assert_eq!(counted, Limits { iops: Some(Iops(500)), ..limits });
    assert_eq!(counted.under(ceiling(None, Some(Iops(501)))), counted);
    assert_eq!(counted.under(ceiling(None, Some(Iops(499)))).iops, Some(Iops(499)));
}

#[test]
fn names_both_ways() {
    for qos in Qos::ALL {
        assert_eq!(qos.to_string().parse(), Ok(qos));
    }
    let error = "Auto".parse::<Qos>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown contract model: use one of auto, manual, flexible, custom, shared, provisioned-v1, provisioned-v2"
    );
}

proptest::proptest! {
    /// However rates divide what a custom pool buys, the parts of its operations fit.
    #[test]
    fn parts_of_the_operations_fit(
        rates in proptest::collection::vec(1_000_000..1_u64 << 28, 1..40),
        iops in 1024..160_000_u64,
    ) {
        let rate = BytesPerSecond(rates.iter().sum());
        let pool = Pool { size_bytes: TIB, model: Model::Custom { rate, iops: Iops(iops) } };
        let volumes: Vec<_> = rates.iter().map(|&rate| terms(1, BytesPerSecond(rate))).collect();
        let total: u64 = volumes.iter().map(|&volume| pool.limits(volume).iops.unwrap().0).sum();
        proptest::prop_assert!(total <= iops && total + rates.len() as u64 >= iops);
    }

    /// However the quotas divide a pool, the auto limits together never exceed its budget, so
    /// auto → manual is always possible.
    #[test]
    fn auto_limits_fit_the_budget(quotas in proptest::collection::vec(65_536..1_u64 << 50, 1..40)) {
        let auto_pool = pool(Qos::Auto, quotas.iter().sum());
        let kept = quotas.iter().map(|&quota| terms(quota, auto_pool.limits(auto(quota)).rate));
        let manual = pool(Qos::Manual, auto_pool.size_bytes);
        proptest::prop_assert_eq!(manual.check(kept.clone()), Ok(()));
        for volume in kept {
            proptest::prop_assert!(Level::STANDARD.size_for(volume.rate.unwrap()) <= volume.quota_bytes);
        }
    }
}
