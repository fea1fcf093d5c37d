use super::*;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

fn mib(rate: u64) -> BytesPerSecond {
    BytesPerSecond::from_mib(rate)
}

fn pool(qos: Qos, size_bytes: u64) -> Pool {
    Pool { level: Level::STANDARD, qos, size_bytes }
}

fn terms(quota_bytes: u64, manual_rate: BytesPerSecond) -> Terms {
    Terms { quota_bytes, manual_rate }
}

fn auto(quota_bytes: u64) -> Terms {
    terms(quota_bytes, BytesPerSecond::ZERO)
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
        let pool = Pool { level, qos: Qos::Auto, size_bytes: quota };
        assert_eq!(pool.limit(auto(quota)), limit, "{level:?} {quota}");
        assert_eq!(pool.budget(), limit, "{level:?} {quota}");
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
    for qos in Qos::ALL {
        let pool = pool(qos, 3 * TIB);
        let least = pool.least_level(volumes);
        let (at, below) = (least.rate_per_tib(), BytesPerSecond(least.rate_per_tib().0 - 1));
        assert_eq!(Pool { level: least, ..pool }.check(volumes), Ok(()), "{qos} {at}");
        if let Some(level) = Level::new(below) {
            assert!(Pool { level, ..pool }.check(volumes).is_err(), "{qos} {below}");
        }
    }
    let pool = pool(Qos::Auto, TIB);
    assert_eq!(pool.least_level([auto(1 << 20)]).rate_per_tib(), BytesPerSecond(1 << 20));
    assert_eq!(pool.least_level([]).rate_per_tib(), BytesPerSecond(1));
}

#[test]
fn the_measured_table_is_feasible() {
    let manual = pool(Qos::Manual, 4 * TIB);
    assert_eq!(manual.budget(), mib(64));
    let (small, large) = (terms(TIB, mib(48)), terms(3 * TIB, mib(16)));
    assert_eq!(manual.check([small, large]), Ok(()));
    assert_eq!(manual.check_volume([small], large), Ok(()));
    assert_eq!((manual.limit(small), manual.limit(large)), (mib(48), mib(16)));
    let auto_pool = pool(Qos::Auto, 4 * TIB);
    assert_eq!((auto_pool.limit(small), auto_pool.limit(large)), (mib(16), mib(48)));
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
        size_needed_bytes: 4 * TIB + 64 * GIB,
    };
    assert_eq!(refused, Err(error));
    assert_eq!(
        error.to_string(),
        "17 MiB/s is more than the pool has left of its throughput: ask for at most 16 MiB/s, or \
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
            size_needed_bytes: 4 * TIB
        })
    );
    assert_eq!(pool(Qos::Auto, 3 * TIB).check(volumes), Ok(()));
    assert_eq!(pool(Qos::Manual, 4 * TIB).check(volumes), Ok(()));
    let fast = Pool { level: Level::PREMIUM, ..pool(Qos::Manual, 3 * TIB) };
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
            size_needed_bytes: u64::MAX
        })
    );
}

#[test]
fn auto_to_manual_keeps_every_rate() {
    let volumes = [("a", auto(TIB)), ("b", auto(3 * TIB))];
    let changes = plan(pool(Qos::Auto, 4 * TIB), Qos::Manual, volumes).unwrap();
    assert_eq!(
        changes,
        [
            Change { volume: "a", before: mib(16), after: mib(16) },
            Change { volume: "b", before: mib(48), after: mib(48) },
        ]
    );
}

#[test]
fn manual_to_auto_follows_the_quotas() {
    let volumes = [("a", terms(TIB, mib(48))), ("b", terms(3 * TIB, mib(16)))];
    let changes = plan(pool(Qos::Manual, 4 * TIB), Qos::Auto, volumes).unwrap();
    assert_eq!(
        changes,
        [
            Change { volume: "a", before: mib(48), after: mib(16) },
            Change { volume: "b", before: mib(16), after: mib(48) },
        ]
    );
}

#[test]
fn to_the_same_model_changes_nothing() {
    let volumes = [(1, terms(TIB, mib(48)))];
    for qos in Qos::ALL {
        let changes = plan(pool(qos, 4 * TIB), qos, volumes).unwrap();
        assert_eq!(changes[0].before, changes[0].after, "{qos}");
    }
}

#[test]
fn an_infeasible_plan_is_refused() {
    let volumes = [((), terms(65_535, mib(1)))];
    assert!(matches!(
        plan(pool(Qos::Manual, TIB), Qos::Auto, volumes),
        Err(Infeasible::QuotaWithoutRate { .. })
    ));
}

#[test]
fn names_both_ways() {
    for qos in Qos::ALL {
        assert_eq!(qos.to_string().parse(), Ok(qos));
    }
    let error = "Auto".parse::<Qos>().unwrap_err();
    assert_eq!(error.to_string(), "unknown QoS model: use one of auto, manual");
}

proptest::proptest! {
    /// However the quotas divide a pool, the auto limits together never exceed its budget, so
    /// auto → manual is always possible.
    #[test]
    fn auto_limits_fit_the_budget(quotas in proptest::collection::vec(65_536..1_u64 << 50, 1..40)) {
        let pool = pool(Qos::Auto, quotas.iter().sum());
        let volumes = quotas.iter().map(|&quota| (quota, auto(quota)));
        let changes = plan(pool, Qos::Manual, volumes).unwrap();
        for change in changes {
            proptest::prop_assert_eq!(change.before, change.after);
            proptest::prop_assert!(Level::STANDARD.size_for(change.after) <= change.volume);
        }
    }
}
