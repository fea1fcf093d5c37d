//! Tests of the measured capacity of hardware, and of the promises on it.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use std::path::Path;
use weir_catalog::{
    Admission, Asked, BytesPerSecond, Calibration, Catalog, Cell, Iops, Load, Machine, Measured,
    Mix, Mode, NewPool, NewVolume, Outcome, Plan, Policy, PoolChange, Qos, Result, Snapshot, Terms,
    TermsChange, VolumeChange,
};

const TIB: u64 = 1 << 40;
const COMMIT: Mode = Mode::Commit;
const MEANT: Asked = Asked { mode: Mode::Commit, overcommit: true };

fn measured(read_percent: u8, block_kib: u32, mib: u64, iops: u64) -> Measured {
    let rate = BytesPerSecond::from_mib(mib);
    let cell = Cell { read_percent, block_bytes: block_kib << 10, rate, iops: Iops(iops) };
    let (mean_nanos, p99_nanos) = (1_000_000, 5_000_000);
    Measured { cell, mean_nanos, p99_nanos, server_cpu_nanos: Some(20_000), saturated: false }
}

/// 100 MiB/s and 5,000 IOPS by the default plan.
fn calibration(directory: &Path) -> Calibration {
    Calibration {
        directory: directory.canonicalize().unwrap(),
        at: 1_800_000_000,
        cells: vec![
            measured(100, 8, 300, 38_400),
            measured(100, 64, 900, 14_400),
            measured(0, 8, 40, 5_000),
            measured(0, 64, 100, 1_600),
        ],
        load: Load { jobs: 4, depth: 16, millis: 5000, data_bytes: 1 << 30, ..Load::default() },
        machine: Machine { host: "nas".into(), processors: 8, ..Machine::default() },
    }
}

fn pool(name: &str, qos: Qos) -> NewPool {
    NewPool {
        name: name.into(),
        level: "standard".into(),
        size_bytes: 100 * TIB,
        qos,
        ..NewPool::default()
    }
}

fn volume(name: &str, mib: u64) -> NewVolume {
    NewVolume {
        name: name.into(),
        pool: "p".into(),
        quota_bytes: TIB,
        terms: Terms { throughput: Some(BytesPerSecond::from_mib(mib)), ..Terms::default() },
        ..NewVolume::default()
    }
}

fn given(mib: u64) -> VolumeChange {
    let throughput = Some(BytesPerSecond::from_mib(mib));
    VolumeChange {
        terms: TermsChange { throughput, ..TermsChange::default() },
        ..VolumeChange::default()
    }
}

/// A manual pool on a file system that was calibrated.
fn calibrated(directory: &Path, admission: Admission) -> Catalog {
    let catalog = Catalog::open(directory).unwrap().admitting(admission);
    catalog.create_pool(&pool("p", Qos::Manual), COMMIT).unwrap();
    catalog.keep_calibration(&calibration(directory), COMMIT).unwrap();
    catalog
}

fn code<T: std::fmt::Debug>(refused: Result<T>) -> &'static str {
    refused.unwrap_err().code()
}

fn committed(catalog: &Catalog) -> BytesPerSecond {
    catalog.snapshot().filesystems()[0].committed.rate()
}

#[test]
fn what_was_measured_is_kept_with_its_conditions() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    let kept = calibration(dir.path());
    let name = kept.directory.to_str().unwrap();
    drop(catalog);
    let catalog = Catalog::open(dir.path()).unwrap();
    let snapshot = catalog.snapshot();
    assert_eq!(**snapshot.calibration_of(name).unwrap(), kept);
    let there = &snapshot.filesystems()[0];
    assert_eq!(there.holds.rate, Some(BytesPerSecond::from_mib(100)));
    assert_eq!(there.holds.iops, Some(Iops(5000)));
    assert_eq!(code(catalog.forget_calibration("/nowhere", COMMIT)), "no_such_calibration");
    catalog.forget_calibration(name, COMMIT).unwrap();
    assert_eq!(catalog.snapshot().calibrations().count(), 0);
    let again = Catalog::open(&dir.path().join("other")).unwrap();
    assert!(again.snapshot().filesystems().is_empty());
}

#[test]
fn what_can_not_have_been_measured_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    let good = calibration(dir.path());
    let with = |cells: Vec<Measured>| Calibration { cells, ..good.clone() };
    let wrong = [
        with(Vec::new()),
        with(vec![measured(101, 4, 1, 1)]),
        with(vec![measured(0, 0, 1, 1)]),
        with(vec![measured(0, 4, 0, 1)]),
        with(vec![measured(0, 4, 1, 0)]),
        with(vec![measured(0, 4, 1, 1), measured(0, 4, 2, 2)]),
        with(vec![Measured { p99_nanos: u64::MAX, ..measured(0, 4, 1, 1) }]),
    ];
    for wrong in wrong {
        assert_eq!(code(catalog.keep_calibration(&wrong, COMMIT)), "bad_calibration");
    }
    for directory in ["relative", "/a/../b", "/nowhere/at/all"] {
        let elsewhere = Calibration { directory: directory.into(), ..good.clone() };
        assert_eq!(code(catalog.keep_calibration(&elsewhere, COMMIT)), "bad_path");
    }
    assert_eq!(catalog.snapshot().calibrations().count(), 0);
}

#[test]
fn beyond_what_the_hardware_holds_nothing_is_made_or_grows() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    catalog.create_volume(&volume("v", 60), COMMIT).unwrap();
    assert_eq!(code(catalog.create_volume(&volume("w", 41), COMMIT)), "hardware_exceeded");
    assert_eq!(code(catalog.create_volume(&volume("w", 41), Mode::Preview)), "hardware_exceeded");
    assert!(!dir.path().join("pools/1/volumes/2").exists());
    catalog.create_volume(&volume("w", 40), COMMIT).unwrap();
    assert_eq!(code(catalog.change_volume("v", &given(61), None, COMMIT)), "hardware_exceeded");
    let bursts = NewPool { size_bytes: 20 * TIB, ..pool("b", Qos::ProvisionedV1) };
    catalog.create_pool(&bursts, COMMIT).unwrap();
    let share = NewVolume {
        pool: "b".into(),
        terms: Terms { throughput: None, ..volume("share", 0).terms },
        ..volume("share", 0)
    };
    assert_eq!(code(catalog.create_volume(&share, COMMIT)), "hardware_exceeded");
    // A shared pool promises its budget when it is made, and when it grows.
    assert_eq!(code(catalog.create_pool(&pool("s", Qos::Shared), COMMIT)), "hardware_exceeded");
    catalog.change_volume("w", &given(1), None, COMMIT).unwrap();
    let small = NewPool { size_bytes: TIB, ..pool("s", Qos::Shared) };
    catalog.create_pool(&small, COMMIT).unwrap();
    let grow = |size| PoolChange { size_bytes: Some(size), ..PoolChange::default() };
    assert_eq!(code(catalog.change_pool("s", &grow(3 * TIB), COMMIT)), "hardware_exceeded");
    catalog.change_pool("s", &grow(2 * TIB), COMMIT).unwrap();
    assert_eq!(committed(&catalog), BytesPerSecond::from_mib(60 + 1 + 32));
}

#[test]
fn levels_models_and_operations_count_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    let mib = BytesPerSecond::from_mib;
    catalog.create_level("own", mib(20), COMMIT).unwrap();
    catalog.create_pool(&NewPool { level: "own".into(), ..pool("a", Qos::Auto) }, COMMIT).unwrap();
    let auto = NewVolume {
        pool: "a".into(),
        terms: Terms { throughput: None, ..volume("auto", 0).terms },
        ..volume("auto", 0)
    };
    catalog.create_volume(&NewVolume { quota_bytes: 4 * TIB, ..auto }, COMMIT).unwrap();
    catalog.change_level("own", mib(25), COMMIT).unwrap();
    assert_eq!(code(catalog.change_level("own", mib(26), COMMIT)), "hardware_exceeded");
    // A shared pool would promise all of its 100 TiB; made smaller first, it may.
    let shared = PoolChange { qos: Some(Qos::Shared), ..PoolChange::default() };
    assert_eq!(code(catalog.change_pool("a", &shared, COMMIT)), "hardware_exceeded");
    let smaller = PoolChange { size_bytes: Some(4 * TIB), ..shared };
    catalog.change_pool("a", &smaller, COMMIT).unwrap();
    // Operations are promised apart from bytes.
    catalog.change_volume("auto", &given(0), None, COMMIT).unwrap();
    catalog.change_level("own", mib(5), COMMIT).unwrap();
    let custom =
        NewPool { throughput: Some(mib(100)), iops: Some(Iops(9000)), ..pool("c", Qos::Custom) };
    catalog.create_pool(&custom, COMMIT).unwrap();
    let log = |iops| NewVolume {
        pool: "c".into(),
        terms: Terms { iops: Some(Iops(iops)), ..volume("log", 10).terms },
        ..volume("log", 10)
    };
    let refused = catalog.create_volume(&log(5001), COMMIT).unwrap_err().to_string();
    assert!(
        refused.contains(
            "5001 IOPS (now 0 IOPS); its measured capacity is 5000 IOPS with blocks of 8 KiB"
        ),
        "{refused}"
    );
    catalog.create_volume(&log(5000), COMMIT).unwrap();
    // A ceiling takes of what is promised.
    let ceiling = VolumeChange {
        terms: TermsChange { ceiling_iops: Some(Some(Iops(100))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("log", &ceiling, None, COMMIT).unwrap();
    assert_eq!(catalog.snapshot().filesystems()[0].committed.iops(), Iops(100));
}

#[test]
fn with_the_policy_warn_it_is_made_and_said_and_with_off_only_made() {
    for policy in [Policy::Warn, Policy::Off] {
        let dir = tempfile::tempdir().unwrap();
        let catalog = calibrated(dir.path(), Admission { policy, ..Admission::default() });
        let within = catalog.create_volume(&volume("v", 100), COMMIT).unwrap();
        assert!(within.overcommitted.is_empty());
        let beyond = catalog.create_volume(&volume("w", 50), COMMIT).unwrap();
        assert_eq!(committed(&catalog), BytesPerSecond::from_mib(150));
        let told: Vec<_> = beyond.overcommitted.iter().map(ToString::to_string).collect();
        match policy {
            Policy::Off => assert!(told.is_empty()),
            _ => assert!(told[0].contains("150 MiB/s (now 100 MiB/s)"), "{told:?}"),
        }
    }
}

#[test]
fn a_change_that_is_meant_is_made_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    let shown = Asked { mode: Mode::Preview, overcommit: true };
    assert_eq!(catalog.create_volume(&volume("v", 150), shown).unwrap().overcommitted.len(), 1);
    assert!(catalog.snapshot().volume_named("v").is_none());
    let made = catalog.create_volume(&volume("v", 150), MEANT).unwrap();
    assert_eq!(made.overcommitted.len(), 1);
    // The permission is for that change alone.
    assert_eq!(code(catalog.change_volume("v", &given(151), None, COMMIT)), "hardware_exceeded");
    assert!(catalog.create_volume(&volume("w", 1), MEANT).unwrap().overcommitted.len() == 1);
}

#[test]
fn what_shrinks_or_concerns_something_else_is_never_refused() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    catalog.create_volume(&volume("v", 300), MEANT).unwrap();
    catalog.create_volume(&volume("w", 100), MEANT).unwrap();
    catalog.change_volume("v", &given(299), None, COMMIT).unwrap();
    let quota = VolumeChange { quota_bytes: Some(2 * TIB), ..VolumeChange::default() };
    catalog.change_volume("v", &quota, None, COMMIT).unwrap();
    let ceiling = Some(Some(BytesPerSecond::from_mib(250)));
    let lower = VolumeChange {
        terms: TermsChange { ceiling_rate: ceiling, ..TermsChange::default() },
        ..VolumeChange::default()
    };
    catalog.change_volume("v", &lower, None, COMMIT).unwrap();
    let lifted = VolumeChange {
        terms: TermsChange { ceiling_rate: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    assert_eq!(code(catalog.change_volume("v", &lifted, None, COMMIT)), "hardware_exceeded");
    catalog.create_level("own", BytesPerSecond::from_mib(1000), COMMIT).unwrap();
    catalog.create_pool(&pool("q", Qos::Auto), COMMIT).unwrap();
    let bigger = PoolChange { size_bytes: Some(200 * TIB), ..PoolChange::default() };
    catalog.change_pool("p", &bigger, COMMIT).unwrap();
    catalog.set_exports("v", &[], COMMIT).unwrap();
    catalog.delete_volume("w", COMMIT).unwrap();
    catalog.delete_pool("q", COMMIT).unwrap();
    // A measurement that shows less refuses nothing that is there.
    let slower = Calibration { cells: vec![measured(0, 64, 1, 16)], ..calibration(dir.path()) };
    catalog.keep_calibration(&slower, COMMIT).unwrap();
    assert_eq!(committed(&catalog), BytesPerSecond::from_mib(250));
}

#[test]
fn the_plan_decides_which_figures_count_and_the_factor_how_much_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { mix: Mix::Reads(100), ..Plan::default() };
    let admission = Admission { plan, overcommit_percent: 50, ..Admission::default() };
    let catalog = calibrated(dir.path(), admission);
    assert_eq!(code(catalog.create_volume(&volume("v", 451), COMMIT)), "hardware_exceeded");
    let refused = catalog.create_volume(&volume("v", 451), COMMIT).unwrap_err().to_string();
    for part in ["capacity is 900 MiB/s", "100 % reads", "450 MiB/s (50 %) may be committed"] {
        assert!(refused.contains(part), "{refused}");
    }
    catalog.create_volume(&volume("v", 450), COMMIT).unwrap();
}

#[test]
fn where_nothing_was_measured_nothing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(dir.path()).unwrap();
    catalog.create_pool(&pool("p", Qos::Manual), COMMIT).unwrap();
    let made = catalog.create_volume(&volume("v", 1600), COMMIT).unwrap();
    assert!(made.overcommitted.is_empty());
    let snapshot = catalog.snapshot();
    let there = &snapshot.filesystems()[0];
    assert!(there.calibration.is_none() && there.holds.rate.is_none());
    assert_eq!(there.committed.rate(), BytesPerSecond::from_mib(1600));
}

#[test]
fn a_ceiling_where_operations_are_not_counted_is_no_promise() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    catalog.create_volume(&volume("v", 50), COMMIT).unwrap();
    let most = |iops: Option<u64>| VolumeChange {
        terms: TermsChange { ceiling_iops: Some(iops.map(Iops)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    for ceiling in [Some(6000), Some(9000), Some(10), None] {
        catalog.change_volume("v", &most(ceiling), None, COMMIT).unwrap();
        assert_eq!(catalog.snapshot().filesystems()[0].committed.iops(), Iops(0));
    }
    let ceiling = weir_catalog::Ceiling { iops: Some(Iops(9000)), rate: None };
    catalog
        .create_volume(
            &NewVolume { terms: Terms { ceiling, ..volume("w", 50).terms }, ..volume("w", 50) },
            COMMIT,
        )
        .unwrap();
}

#[derive(Clone, Debug)]
enum Ask {
    Make(u8, u64),
    Give(u8, u64),
    Lower(u8, Option<u64>),
    LowerIops(u8, Option<u64>),
    Delete(u8),
    Level(u64),
    Auto(u8, u64),
    Model(Qos),
    Log(u8, u64, u64),
    Operations(u8, u64),
    Buy(u64),
    Size(&'static str, u64),
    Move(u8, &'static str),
}

fn ask() -> impl Strategy<Value = Ask> {
    let (volume, any, mib, iops) = (|| 0u8..4, || 0u8..10, || 1u64..80, || 1u64..6000);
    let models = vec![Qos::Auto, Qos::Manual, Qos::Shared];
    let pool = || prop::sample::select(vec!["p", "a", "c"]);
    prop_oneof![
        3 => (volume(), mib()).prop_map(|(v, m)| Ask::Make(v, m)),
        3 => (any(), mib()).prop_map(|(v, m)| Ask::Give(v, m)),
        2 => (any(), prop::option::of(mib())).prop_map(|(v, m)| Ask::Lower(v, m)),
        2 => (any(), prop::option::of(iops())).prop_map(|(v, i)| Ask::LowerIops(v, i)),
        1 => any().prop_map(Ask::Delete),
        2 => (1u64..40).prop_map(Ask::Level),
        3 => (4u8..8, 1u64..4).prop_map(|(v, t)| Ask::Auto(v, t)),
        1 => prop::sample::select(models).prop_map(Ask::Model),
        3 => (8u8..10, mib(), iops()).prop_map(|(v, m, i)| Ask::Log(v, m, i)),
        2 => (8u8..10, iops()).prop_map(|(v, i)| Ask::Operations(v, i)),
        1 => (5000u64..9000).prop_map(Ask::Buy),
        2 => (pool(), 1u64..120).prop_map(|(p, t)| Ask::Size(p, t)),
        2 => (any(), pool()).prop_map(|(v, p)| Ask::Move(v, p)),
    ]
}

fn name(number: u8) -> String {
    format!("v{number}")
}

fn carry_out(catalog: &Catalog, ask: &Ask, how: Asked) -> Result<Outcome> {
    let mib = BytesPerSecond::from_mib;
    let none = VolumeChange::default;
    let change = |number: &u8, change| catalog.change_volume(&name(*number), &change, None, how);
    match ask {
        Ask::Make(number, rate) => catalog.create_volume(&volume(&name(*number), *rate), how),
        Ask::Give(number, rate) => change(number, given(*rate)),
        Ask::Lower(number, most) => change(
            number,
            VolumeChange {
                terms: TermsChange { ceiling_rate: Some(most.map(mib)), ..TermsChange::default() },
                ..none()
            },
        ),
        Ask::LowerIops(number, most) => change(
            number,
            VolumeChange {
                terms: TermsChange { ceiling_iops: Some(most.map(Iops)), ..TermsChange::default() },
                ..none()
            },
        ),
        Ask::Delete(number) => catalog.delete_volume(&name(*number), how.mode),
        Ask::Level(rate) => catalog.change_level("own", mib(*rate), how),
        Ask::Auto(number, tebibytes) => {
            let auto = NewVolume {
                pool: "a".into(),
                terms: Terms { throughput: None, ..volume(&name(*number), 0).terms },
                ..volume(&name(*number), 0)
            };
            catalog.create_volume(&NewVolume { quota_bytes: tebibytes * TIB, ..auto }, how)
        }
        Ask::Model(qos) => {
            let change = PoolChange { qos: Some(*qos), ..PoolChange::default() };
            catalog.change_pool("a", &change, how)
        }
        Ask::Log(number, rate, iops) => {
            let iops = Some(Iops(*iops));
            let log = NewVolume {
                pool: "c".into(),
                terms: Terms { iops, ..volume(&name(*number), *rate).terms },
                ..volume(&name(*number), *rate)
            };
            catalog.create_volume(&log, how)
        }
        Ask::Operations(number, iops) => change(
            number,
            VolumeChange {
                terms: TermsChange { iops: Some(Some(Iops(*iops))), ..TermsChange::default() },
                ..none()
            },
        ),
        Ask::Buy(iops) => {
            let change = PoolChange { iops: Some(Iops(*iops)), ..PoolChange::default() };
            catalog.change_pool("c", &change, how)
        }
        Ask::Size(pool, tebibytes) => {
            let change = PoolChange { size_bytes: Some(tebibytes * TIB), ..PoolChange::default() };
            catalog.change_pool(pool, &change, how)
        }
        Ask::Move(number, pool) => {
            change(number, VolumeChange { pool: Some((*pool).into()), ..none() })
        }
    }
}

/// Is that less of something, or the same?
fn shrinks(now: &Snapshot, ask: &Ask) -> bool {
    let volume = |number: &u8| now.volume_named(&name(*number));
    let within = |most: Option<u64>, had: Option<u64>| {
        most.map_or(had.is_none(), |most| had.is_none_or(|had| most <= had))
    };
    match ask {
        Ask::Delete(_) => true,
        Ask::Give(number, mib) => volume(number)
            .and_then(|it| it.terms.throughput)
            .is_some_and(|had| BytesPerSecond::from_mib(*mib) <= had),
        Ask::Lower(number, most) => volume(number).is_some_and(|it| {
            within(most.map(|mib| mib << 20), it.terms.ceiling.rate.map(|rate| rate.0))
        }),
        Ask::LowerIops(number, most) => {
            volume(number).is_some_and(|it| within(*most, it.terms.ceiling.iops.map(|iops| iops.0)))
        }
        Ask::Operations(number, iops) => {
            volume(number).and_then(|it| it.terms.iops).is_some_and(|had| Iops(*iops) <= had)
        }
        Ask::Level(mib) => {
            let rate = now.level_named("own").unwrap().contract.rate_for(TIB);
            BytesPerSecond::from_mib(*mib) <= rate
        }
        Ask::Buy(iops) => Some(Iops(*iops)) <= now.pool_named("c").unwrap().model.bought().iops,
        Ask::Size(pool, tebibytes) => tebibytes * TIB <= now.pool_named(pool).unwrap().size_bytes,
        Ask::Move(number, pool) => {
            volume(number).is_some_and(|it| it.pool == now.pool_named(pool).unwrap().id)
        }
        Ask::Make(..) | Ask::Auto(..) | Ask::Log(..) | Ask::Model(_) => false,
    }
}

/// The contracts' promises, added up from the limits of volumes.
fn promised(now: &Snapshot) -> [u64; 2] {
    let mut sums = [0, 0];
    for pool in now.pools() {
        if pool.model.qos() == Qos::Shared {
            sums[0] += pool.level.contract.rate_for(pool.size_bytes).0;
            continue;
        }
        for volume in now.volumes_of(pool.id) {
            sums[0] += volume.limits.rate.0;
            let counted = volume.limits.iops.filter(|_| pool.model.qos() == Qos::Custom);
            sums[1] += counted.map_or(0, |iops| iops.0);
        }
    }
    sums
}

/// The capacity of [`calibration`]'s file system.
const HELD: [u64; 2] = [100 << 20, 5000];

fn follow(asks: &[(Ask, bool)]) -> std::result::Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let catalog = calibrated(dir.path(), Admission::default());
    catalog.create_level("own", BytesPerSecond::from_mib(5), COMMIT).unwrap();
    let own = NewPool { level: "own".into(), size_bytes: 8 * TIB, ..pool("a", Qos::Auto) };
    catalog.create_pool(&own, COMMIT).unwrap();
    let (throughput, iops) = (Some(BytesPerSecond::from_mib(200)), Some(Iops(9000)));
    let custom = NewPool { throughput, iops, ..pool("c", Qos::Custom) };
    catalog.create_pool(&custom, COMMIT).unwrap();
    let mut overcommitted = false;
    for (ask, meant) in asks {
        let before = catalog.snapshot();
        let had = promised(&before);
        let how = Asked { mode: COMMIT, overcommit: *meant };
        let grown = |has: [u64; 2], at: usize| has[at] > had[at] && has[at] > HELD[at];
        match carry_out(&catalog, ask, how) {
            Ok(outcome) => {
                let has = promised(&outcome.snapshot);
                let there = outcome.snapshot.filesystems()[0].committed;
                prop_assert_eq!(has, [there.rate().0, there.iops().0], "{:?}", ask);
                let beyond = (0..2).any(|at| grown(has, at));
                prop_assert_eq!(!outcome.overcommitted.is_empty(), beyond, "{:?}", ask);
                prop_assert!(*meant || !beyond, "{:?}", ask);
                overcommitted |= *meant;
                prop_assert!(overcommitted || (has[0] <= HELD[0] && has[1] <= HELD[1]));
                for volume in outcome.snapshot.volumes() {
                    std::fs::create_dir_all(volume.directory.join("root")).unwrap();
                }
            }
            Err(error) => {
                prop_assert_eq!(&*before, &*catalog.snapshot());
                if error.code() == "hardware_exceeded" {
                    prop_assert!(!meant && !shrinks(&before, ask), "{:?}: {}", ask, error);
                    let shown = Asked { mode: Mode::Preview, overcommit: true };
                    let has = promised(&carry_out(&catalog, ask, shown).unwrap().snapshot);
                    prop_assert!((0..2).any(|at| grown(has, at)), "{:?}: {}", ask, error);
                }
            }
        }
    }
    let last = promised(&catalog.snapshot());
    drop(catalog);
    let again = Catalog::open(dir.path()).unwrap();
    prop_assert_eq!(promised(&again.snapshot()), last);
    prop_assert_eq!(committed(&again).0, last[0]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is asked for, in whatever order, no more is promised than may be, and what is
    /// refused changes nothing.
    #[test]
    fn no_sequence_of_changes_promises_more_than_is_held(asks in prop::collection::vec(ask(), 1..40)) {
        let asks: Vec<_> = asks.into_iter().map(|ask| (ask, false)).collect();
        follow(&asks)?;
    }

    /// Also where more is promised already because it was meant, only what grows beyond is refused:
    /// no ceiling, no smaller pool, level, rate or IOPS.
    #[test]
    fn in_no_sequence_of_changes_what_shrinks_is_refused(
        asks in prop::collection::vec((ask(), prop::bool::weighted(0.3)), 1..40),
    ) {
        follow(&asks)?;
    }
}
