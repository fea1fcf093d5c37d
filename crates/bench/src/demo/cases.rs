//! What the demo measures: the seven rows of the published table, and two cases of its own.

/// Quotas, rates and latencies that Azure NetApp Files showed for one row (Standard level, NFSv3,
/// 8 KiB random write, 40 jobs × depth 32, 180 s, one virtual machine for each volume).
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// Throughput in MiB/s.
    pub(super) mibps: f64,
    /// Its error against the contract, in percent.
    pub(super) error_percent: f64,
    /// Mean latency in milliseconds.
    pub(super) mean_ms: f64,
    /// p5 and p95 of the latency in milliseconds.
    pub(super) spread_ms: (f64, f64),
}

/// A capacity pool of the demo. All are of the Standard level: 16 MiB/s per TiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// Its name.
    pub(super) name: &'static str,
    /// Its size in TiB.
    pub(super) tebibytes: u64,
    /// Is the rate of each volume set by hand?
    pub(super) manual: bool,
}

/// How clients load a volume, and what happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 40 jobs, each from a source address of its own.
    FortyClients,
    /// 40 jobs on 40 connections from one source address.
    OneClient,
    /// As [`Kind::FortyClients`]; the quota is changed under load, up, down and up again.
    Resized,
}

/// One volume, its load and its published row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Shown in tables.
    pub(super) name: &'static str,
    /// Its volume.
    pub(super) volume: &'static str,
    /// The volume's pool.
    pub(super) pool: &'static str,
    /// Its quota in GiB.
    pub(super) quota_gibibytes: u64,
    /// Its own rate in MiB/s, in a manual pool.
    pub(super) set_mibps: Option<u64>,
    /// What the contract promises, in MiB/s: in the measured part, for a quota that is changed.
    pub(super) contract_mibps: f64,
    /// The load.
    pub(super) kind: Kind,
    /// What was published, for the seven rows.
    pub(super) published: Option<Published>,
}

/// The pools, in the order they are made.
pub(super) const POOLS: [Pool; 3] = [
    Pool { name: "single", tebibytes: 16, manual: false },
    Pool { name: "pair-auto", tebibytes: 4, manual: false },
    Pool { name: "pair-manual", tebibytes: 4, manual: true },
];

const fn row(
    name: &'static str,
    volume: &'static str,
    pool: &'static str,
    quota_gibibytes: u64,
    contract_mibps: f64,
    published: Published,
) -> Case {
    let (set_mibps, kind) = (None, Kind::FortyClients);
    let published = Some(published);
    Case { name, volume, pool, quota_gibibytes, set_mibps, contract_mibps, kind, published }
}

const fn published(
    mibps: f64,
    error_percent: f64,
    mean_ms: f64,
    spread_ms: (f64, f64),
) -> Published {
    Published { mibps, error_percent, mean_ms, spread_ms }
}

/// The cases, in the order of the published table.
pub(super) const CASES: [Case; 9] = [
    row(
        "auto, 100 GiB",
        "a100g",
        "single",
        100,
        1.5625,
        published(1.6045, 2.68, 5410.0, (1590.0, 6280.0)),
    ),
    row("auto, 1 TiB", "a1t", "single", 1024, 16.0, published(16.05, 0.29, 614.0, (584.0, 634.0))),
    row("auto, 4 TiB", "a4t", "single", 4096, 64.0, published(65.73, 2.70, 152.0, (144.0, 163.0))),
    row(
        "auto, 1 of 4 TiB",
        "p1t",
        "pair-auto",
        1024,
        16.0,
        published(16.43, 2.69, 600.0, (600.0, 609.0)),
    ),
    row(
        "auto, 3 of 4 TiB",
        "p3t",
        "pair-auto",
        3072,
        48.0,
        published(49.29, 2.70, 202.0, (186.0, 230.0)),
    ),
    Case {
        set_mibps: Some(48),
        ..row(
            "manual, 1 TiB given 48",
            "m48",
            "pair-manual",
            1024,
            48.0,
            published(48.14, 0.29, 207.0, (197.0, 222.0)),
        )
    },
    Case {
        set_mibps: Some(16),
        ..row(
            "manual, 3 TiB given 16",
            "m16",
            "pair-manual",
            3072,
            16.0,
            published(16.05, 0.28, 613.0, (600.0, 634.0)),
        )
    },
    Case {
        name: "one address, 40 connections",
        volume: "one",
        pool: "single",
        quota_gibibytes: 1024,
        set_mibps: None,
        contract_mibps: 16.0,
        kind: Kind::OneClient,
        published: None,
    },
    Case {
        name: "quota changed under load",
        volume: "resized",
        pool: "single",
        quota_gibibytes: 1024,
        set_mibps: None,
        contract_mibps: 32.0,
        kind: Kind::Resized,
        published: None,
    },
];

/// The quotas that [`Kind::Resized`] is given one after the other, in GiB and MiB/s: up, down, up.
pub(super) const RESIZES: [(u64, f64); 3] = [(2048, 32.0), (1024, 16.0), (2048, 32.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_follow_from_quota_or_setting_and_pools_hold_them() {
        for case in &CASES {
            let auto = f64::from(u32::try_from(case.quota_gibibytes).unwrap()) / 1024.0 * 16.0;
            let set = case.set_mibps.map(|mibps| f64::from(u32::try_from(mibps).unwrap()));
            let expected = match case.kind {
                Kind::Resized => RESIZES[2].1,
                _ => set.unwrap_or(auto),
            };
            assert_eq!(case.contract_mibps, expected, "{}", case.name);
        }
        for pool in POOLS {
            let within = || CASES.iter().filter(|case| case.pool == pool.name);
            let quota = |case: &Case| match case.kind {
                Kind::Resized => RESIZES[0].0,
                _ => case.quota_gibibytes,
            };
            assert!(within().map(quota).sum::<u64>() <= pool.tebibytes * 1024, "{}", pool.name);
            assert!(within().filter_map(|case| case.set_mibps).sum::<u64>() <= pool.tebibytes * 16);
            assert!(within().all(|case| case.set_mibps.is_some() == pool.manual));
        }
    }

    #[test]
    fn the_published_errors_follow_from_the_published_rates() {
        for case in CASES {
            let Some(row) = case.published else { continue };
            let error = (row.mibps / case.contract_mibps - 1.0) * 100.0;
            assert!((error - row.error_percent).abs() < 0.1, "{}: {error}", case.name);
        }
    }
}
