//! Whatever sequence of changes is asked for, the promises of every pool hold, a preview tells
//! what the change then does, and opening the catalogue again gives the same.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use std::collections::BTreeSet;
use weir_catalog::{
    BytesPerSecond, Catalog, ExportRule, Floors, Iops, Limits, Mode, NewPool, NewVolume, Outcome,
    Pool, PoolChange, Qos, Result, Snapshot, Terms, TermsChange, Volume, VolumeChange,
};
use weir_qos::burst;

const GIB: u64 = 1 << 30;

#[derive(Clone, Debug)]
enum Ask {
    CreateLevel(u8, u64),
    ChangeLevel(u8, u64),
    DeleteLevel(u8),
    CreatePool(u8, &'static str, u64, Qos),
    ChangePool(u8, Option<&'static str>, Option<u64>, Option<Qos>),
    Buy(u8, Option<Qos>, Option<u64>, Option<u64>),
    GiveIops(u8, u64),
    DeletePool(u8),
    CreateVolume(u8, u8, u64, Option<u64>),
    ChangeVolume(u8, Option<u64>, Option<u64>, u64),
    MoveVolume(u8, u8, Option<u64>, Option<u64>),
    SetCeiling(u8, Option<Option<u64>>, Option<Option<u64>>),
    DeleteVolume(u8),
    AddExport(u8, u32, u8),
}

fn ask() -> impl Strategy<Value = Ask> {
    let levels = ["standard", "premium", "ultra", "extreme", "level0", "level1"];
    let level = move || prop::sample::select(levels.to_vec());
    let per_tib = || (0u64..2000).prop_map(|n| n << 16);
    let qos = || prop::sample::select(Qos::ALL.to_vec());
    let size = || (1u64..64).prop_map(|n| n * 16 * GIB);
    let rate = || {
        prop_oneof![
            4 => (0u64..20).prop_map(|n| n << 17),
            1 => (90u64..200).prop_map(|n| n << 20),
        ]
    };
    let (pool, volume) = (|| 0u8..3, || 0u8..5);
    prop_oneof![
        1 => (0u8..2, per_tib()).prop_map(|(l, r)| Ask::CreateLevel(l, r)),
        2 => (0u8..2, per_tib()).prop_map(|(l, r)| Ask::ChangeLevel(l, r)),
        1 => (0u8..2).prop_map(Ask::DeleteLevel),
        3 => (volume(), pool(), prop::option::of(size()), prop::option::of(rate()))
            .prop_map(|(v, p, s, r)| Ask::MoveVolume(v, p, s, r)),
        2 => (pool(), level(), size(), qos()).prop_map(|(p, l, s, q)| Ask::CreatePool(p, l, s, q)),
        2 => (pool(), prop::option::of(level()), prop::option::of(size()), prop::option::of(qos()))
            .prop_map(|(p, l, s, q)| Ask::ChangePool(p, l, s, q)),
        2 => (pool(), prop::option::of(qos()), prop::option::of(50u64..700), prop::option::of(1000u64..12_000))
            .prop_map(|(p, q, r, i)| Ask::Buy(p, q, r, i)),
        1 => (volume(), 0u64..9000).prop_map(|(v, i)| Ask::GiveIops(v, i)),
        1 => pool().prop_map(Ask::DeletePool),
        5 => (volume(), pool(), size(), prop::option::of(rate()))
            .prop_map(|(v, p, s, r)| Ask::CreateVolume(v, p, s, r)),
        3 => (volume(), prop::option::of(size()), prop::option::of(rate()), 0..512 * GIB)
            .prop_map(|(v, s, r, used)| Ask::ChangeVolume(v, s, r, used)),
        2 => (volume(), prop::option::of(prop::option::of(rate())), prop::option::of(prop::option::of(0u64..900)))
            .prop_map(|(v, r, i)| Ask::SetCeiling(v, r, i)),
        1 => volume().prop_map(Ask::DeleteVolume),
        1 => (volume(), any::<u32>(), 0u8..=32).prop_map(|(v, a, p)| Ask::AddExport(v, a, p)),
    ]
}

fn carry_out(catalog: &Catalog, ask: &Ask, mode: Mode) -> Result<Outcome> {
    let (pool, volume) = (|n: &u8| format!("pool{n}"), |n: &u8| format!("vol{n}"));
    let level = |n: &u8| format!("level{n}");
    let throughput = |rate: &Option<u64>| TermsChange {
        throughput: rate.map(BytesPerSecond),
        ..TermsChange::default()
    };
    let change_volume = |v: &u8, change: VolumeChange, used: u64| {
        catalog.change_volume(&volume(v), &change, Some(used), mode)
    };
    match ask {
        Ask::CreateLevel(l, rate) => catalog.create_level(&level(l), BytesPerSecond(*rate), mode),
        Ask::ChangeLevel(l, rate) => catalog.change_level(&level(l), BytesPerSecond(*rate), mode),
        Ask::DeleteLevel(l) => catalog.delete_level(&level(l), mode),
        Ask::CreatePool(p, level, size_bytes, qos) => {
            let (level, size_bytes, qos) = ((*level).to_owned(), *size_bytes, *qos);
            let new = NewPool { name: pool(p), level, size_bytes, qos, ..NewPool::default() };
            catalog.create_pool(&new, mode)
        }
        Ask::ChangePool(p, level, size_bytes, qos) => {
            let level = level.map(str::to_owned);
            let (size_bytes, qos) = (*size_bytes, *qos);
            let change = PoolChange { level, size_bytes, qos, ..PoolChange::default() };
            catalog.change_pool(&pool(p), &change, mode)
        }
        Ask::Buy(p, qos, mib, iops) => {
            let (throughput, iops) = (mib.map(BytesPerSecond::from_mib), iops.map(Iops));
            let change = PoolChange { qos: *qos, throughput, iops, ..PoolChange::default() };
            catalog.change_pool(&pool(p), &change, mode)
        }
        Ask::GiveIops(v, iops) => {
            let terms = TermsChange { iops: Some(Some(Iops(*iops))), ..TermsChange::default() };
            change_volume(v, VolumeChange { terms, ..VolumeChange::default() }, 0)
        }
        Ask::DeletePool(p) => catalog.delete_pool(&pool(p), mode),
        Ask::CreateVolume(v, p, quota_bytes, rate) => {
            let (name, pool, quota_bytes) = (volume(v), pool(p), *quota_bytes);
            let mut new = NewVolume { name, pool, quota_bytes, ..NewVolume::default() };
            new.terms.throughput = rate.map(BytesPerSecond);
            catalog.create_volume(&new, mode)
        }
        Ask::ChangeVolume(v, quota_bytes, rate, used) => {
            let (quota_bytes, terms) = (*quota_bytes, throughput(rate));
            change_volume(v, VolumeChange { quota_bytes, terms, ..VolumeChange::default() }, *used)
        }
        Ask::MoveVolume(v, p, quota_bytes, rate) => {
            let (pool, quota_bytes, terms) = (Some(pool(p)), *quota_bytes, throughput(rate));
            change_volume(
                v,
                VolumeChange { pool, quota_bytes, terms, ..VolumeChange::default() },
                0,
            )
        }
        Ask::SetCeiling(v, rate, iops) => {
            let terms = TermsChange {
                ceiling_rate: rate.map(|most| most.map(BytesPerSecond)),
                ceiling_iops: iops.map(|most| most.map(Iops)),
                ..TermsChange::default()
            };
            change_volume(v, VolumeChange { terms, ..VolumeChange::default() }, 0)
        }
        Ask::DeleteVolume(v) => catalog.delete_volume(&volume(v), mode),
        Ask::AddExport(v, addr, prefix) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
            let network = format!("{}/{prefix}", std::net::Ipv4Addr::from_bits(addr & mask));
            catalog.add_export(&volume(v), &ExportRule::open(network.parse().unwrap()), mode)
        }
    }
}

/// Limits with bursts are those of the quota, or what was asked for within the published bounds.
fn provisions_within_bounds(pool: &Pool, volume: &Volume) {
    let limits = pool.gives(volume);
    assert_eq!(volume.limits, limits.under(volume.terms.ceiling));
    if pool.model.qos() == Qos::ProvisionedV1 {
        assert_eq!((volume.terms.throughput, volume.terms.iops), (None, None), "{}", volume.name);
        assert_eq!(limits, burst::v1(volume.quota_bytes));
        return;
    }
    let (rate, iops) = burst::v2_recommended(volume.quota_bytes);
    let (rate, iops) = (volume.terms.throughput.unwrap_or(rate), volume.terms.iops.unwrap_or(iops));
    assert!(burst::V2_RATE.contains(&rate) && burst::V2_IOPS.contains(&iops), "{}", volume.name);
    assert_eq!(limits, burst::v2(rate, iops));
}

fn promises_hold(snapshot: &Snapshot) {
    for pool in snapshot.pools() {
        let volumes: Vec<_> = snapshot.volumes_of(pool.id).collect();
        let quotas: u64 = volumes.iter().map(|volume| volume.quota_bytes).sum();
        assert!(quotas <= pool.size_bytes, "{}: {quotas} > {}", pool.name, pool.size_bytes);
        let (contract, qos) = (pool.contract(), pool.model.qos());
        contract.check_bought(Floors::default()).unwrap();
        assert_eq!(pool.model.bought().rate.is_some(), matches!(qos, Qos::Flexible | Qos::Custom));
        assert_eq!(pool.model.bought().iops.is_some(), qos == Qos::Custom);
        let (mut rates, mut iops) = (0, 0);
        for volume in volumes {
            assert!(volume.limits.rate.0 > 0, "{}", volume.name);
            assert_ne!(volume.limits.iops, Some(Iops(0)));
            if matches!(qos, Qos::ProvisionedV1 | Qos::ProvisionedV2) {
                provisions_within_bounds(pool, volume);
                continue;
            }
            assert_eq!(volume.share.is_some(), qos == Qos::Shared, "{}", volume.name);
            if qos == Qos::Shared {
                let whole = Limits::of(pool.level.contract.rate_for(pool.size_bytes));
                assert_eq!(volume.limits, whole.under(volume.terms.ceiling));
                rates += volume.terms.throughput.unwrap_or_default().0;
                continue;
            }
            assert_eq!(volume.terms.throughput.is_some(), qos != Qos::Auto, "{}", volume.name);
            assert!(volume.terms.iops.is_none() || qos == Qos::Custom, "{}", volume.name);
            let rate = match volume.terms.throughput {
                Some(rate) => rate,
                None => pool.level.contract.rate_for(volume.quota_bytes),
            };
            let limits = contract.limits(volume.demand());
            assert_eq!((limits.rate, limits.iops.is_some()), (rate, qos == Qos::Custom));
            assert_eq!(volume.limits, limits.under(volume.terms.ceiling));
            (rates, iops) = (rates + rate.0, iops + limits.iops.unwrap_or_default().0);
        }
        let budget =
            pool.model.bought().rate.unwrap_or(pool.level.contract.rate_for(pool.size_bytes));
        assert!(
            rates <= budget.0 && iops <= pool.model.bought().iops.unwrap_or_default().0,
            "{}",
            pool.name
        );
    }
    // The volume's tree, with the file put into it, is where the catalogue says, and nowhere else.
    for volume in snapshot.volumes() {
        snapshot.check_place(volume).unwrap();
        let own = volume.directory.join("own");
        assert_eq!(std::fs::read_to_string(&own).unwrap(), volume.id.to_string());
        let places = snapshot.pools().map(|pool| pool.directory.join("volumes"));
        let trees = places.filter(|place| place.join(volume.id.to_string()).exists());
        assert_eq!(trees.count(), 1, "{}", volume.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_keeps_the_promises(asks in prop::collection::vec(ask(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut catalog = Catalog::open(dir.path()).unwrap();
        let mut ids = BTreeSet::new();
        for (step, ask) in asks.iter().enumerate() {
            let before = catalog.snapshot();
            let planned = carry_out(&catalog, ask, Mode::Preview);
            prop_assert_eq!(catalog.snapshot(), before.clone());
            let done = carry_out(&catalog, ask, Mode::Commit);
            let after = catalog.snapshot();
            match (planned, done) {
                (Ok(planned), Ok(done)) => {
                    prop_assert_eq!(planned.snapshot, done.snapshot);
                    prop_assert_eq!(planned.changes, done.changes);
                    prop_assert_eq!(after.generation, before.generation + 1);
                }
                (Err(planned), Err(done)) => {
                    prop_assert_eq!(planned.to_string(), done.to_string());
                    prop_assert_eq!(&after, &before);
                }
                (planned, done) => panic!("{ask:?}: planned {planned:?}, did {done:?}"),
            }
            for volume in after.volumes().filter(|volume| before.volume(volume.id).is_none()) {
                std::fs::write(volume.directory.join("own"), volume.id.to_string()).unwrap();
                prop_assert!(ids.insert(volume.id), "id {} came twice", volume.id);
            }
            promises_hold(&after);
            if step % 8 == 7 {
                drop(catalog);
                catalog = Catalog::open(dir.path()).unwrap();
                prop_assert_eq!(catalog.snapshot(), after);
            }
        }
    }

    #[test]
    fn what_a_refusal_allows_is_granted(quota in 1u64..40, rate in 1u64..2000, held in 1u64..8) {
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(dir.path()).unwrap();
        let new = |name: &str, quota_bytes: u64, rate: u64| {
            let terms = Terms { throughput: Some(BytesPerSecond(rate)), ..Terms::default() };
            NewVolume { name: name.to_owned(), pool: "p".to_owned(), quota_bytes, terms, ..NewVolume::default() }
        };
        let pool = NewPool {
            name: "p".to_owned(),
            level: "standard".to_owned(),
            size_bytes: 10 * GIB + 12_345,
            qos: Qos::Manual,
            ..NewPool::default()
        };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        catalog.create_volume(&new("held", held * GIB, held * 10_000), Mode::Commit).unwrap();
        let (mut quota_bytes, mut rate) = (quota * GIB, rate * 1000);
        while let Err(refused) = catalog.create_volume(&new("v", quota_bytes, rate), Mode::Preview) {
            let allowed = refused.allowed().unwrap();
            let field = if allowed.field == "quota_bytes" { &mut quota_bytes } else { &mut rate };
            prop_assert!(allowed.max.unwrap() < *field, "{refused}");
            *field = allowed.max.unwrap();
        }
    }
}
