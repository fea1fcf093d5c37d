//! The cases of the demo: the seven rows of the published table, four cases of its own, and one for
//! each of the other contract models.

use crate::operator::Limits;
use weir_api::{Protocol, Qos};

/// Quotas, rates and latencies that Azure NetApp Files showed for one row (Standard level, NFSv3,
/// 8 KiB random write, 40 jobs × depth 32, 180 s, one virtual machine for each volume).
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// Throughput in MiB/s.
    pub(super) mibps: f64,
    /// Writes a second.
    pub(super) iops: u32,
    /// The row's error against the contract, in percent.
    pub(super) error_percent: f64,
    /// Mean latency in milliseconds.
    pub(super) mean_ms: f64,
    /// p5 and p95 of the latency in milliseconds.
    pub(super) spread_ms: (f64, f64),
}

/// A capacity pool of the demo. All are of the Standard level, where the model has levels: 16 MiB/s
/// per TiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    /// The pool's name.
    pub(super) name: &'static str,
    /// The pool's size in TiB.
    pub(super) tebibytes: u64,
    /// The pool's contract model.
    pub(super) qos: Qos,
}

/// One of the loads on a case's volume. All write at random places of files of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// The protocol of its clients.
    pub(super) protocol: Protocol,
    /// Bytes of each write.
    pub(super) block_bytes: u32,
    /// Streams of requests, dealt to the clients in turn.
    pub(super) jobs: u32,
    /// Clients, each with a source address of its own.
    pub(super) clients: u32,
    /// Connections of each client.
    pub(super) connections: u32,
}

/// 40 jobs, each from a source address of its own.
const FORTY_CLIENTS: Load =
    Load { protocol: Protocol::Nfs, block_bytes: 8 << 10, jobs: 40, clients: 40, connections: 1 };
/// 40 jobs on 40 connections from one source address.
const ONE_CLIENT: Load = Load { clients: 1, connections: 40, ..FORTY_CLIENTS };

impl Load {
    /// The load of one client with eight connections.
    const fn client(protocol: Protocol, kibibytes: u32) -> Self {
        Self { protocol, block_bytes: kibibytes << 10, jobs: 8, clients: 1, connections: 8 }
    }

    /// Protocol and size, in words.
    pub(super) fn name(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Nfs => "NFS",
            Protocol::Smb => "SMB",
        };
        format!("{protocol} {} KiB", self.block_bytes >> 10)
    }
}

/// One volume, its loads and its published row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Shown in tables.
    pub(super) name: &'static str,
    /// The case's volume.
    pub(super) volume: &'static str,
    /// The volume's pool.
    pub(super) pool: &'static str,
    /// The volume's quota in GiB.
    pub(super) quota_gibibytes: u64,
    /// The volume's settings beside that.
    pub(super) limits: Limits,
    /// The rate that the contract promises, in MiB/s: in the measured part, for a quota that is
    /// changed.
    pub(super) contract_mibps: f64,
    /// The loads, which are applied at the same time.
    pub(super) loads: &'static [Load],
    /// Whether the quota is changed under load, as [`RESIZES`] says.
    pub(super) resized: bool,
    /// The published figures, for the seven rows.
    pub(super) published: Option<Published>,
}

impl Case {
    /// The name of one of the loads: that of the case, if there is no other.
    pub(super) fn label(&self, load: &Load) -> String {
        let others = self.loads.iter().filter(|other| *other != load).map(Load::name);
        match others.collect::<Vec<_>>().as_slice() {
            [] => self.name.to_owned(),
            others => format!("{} beside {}", load.name(), others.join(" and ")),
        }
    }

    /// The fair part of one of the loads, in MiB/s: an equal share for each of its clients. The
    /// contracts of volumes with several loads limit bytes alone, so shares are of bytes.
    pub(super) fn due_mibps(&self, load: &Load) -> f64 {
        let clients: u32 = self.loads.iter().map(|load| load.clients).sum();
        self.contract_mibps * f64::from(load.clients) / f64::from(clients)
    }
}

/// The pools, in the order they are made.
pub(super) const POOLS: [Pool; 8] = [
    Pool { name: "single", tebibytes: 16, qos: Qos::Auto },
    Pool { name: "pair-auto", tebibytes: 4, qos: Qos::Auto },
    Pool { name: "pair-manual", tebibytes: 4, qos: Qos::Manual },
    Pool { name: "flexible", tebibytes: 1, qos: Qos::Flexible },
    Pool { name: "custom", tebibytes: 1, qos: Qos::Custom },
    Pool { name: "shared", tebibytes: 1, qos: Qos::Shared },
    Pool { name: "provisioned", tebibytes: 1, qos: Qos::ProvisionedV1 },
    Pool { name: "provisioned2", tebibytes: 1, qos: Qos::ProvisionedV2 },
];

/// Operations of 8 KiB a second, in MiB/s.
const fn eights(iops: u32) -> f64 {
    iops as f64 / 128.0
}

const fn row(
    name: &'static str,
    volume: &'static str,
    pool: &'static str,
    quota_gibibytes: u64,
    contract_mibps: f64,
    published: Published,
) -> Case {
    let own = own(name, volume, quota_gibibytes, contract_mibps);
    Case { pool, published: Some(published), ..own }
}

/// A case of our own, in a pool with the model auto.
const fn own(
    name: &'static str,
    volume: &'static str,
    quota_gibibytes: u64,
    contract_mibps: f64,
) -> Case {
    Case {
        name,
        volume,
        pool: "single",
        quota_gibibytes,
        limits: Limits::NONE,
        contract_mibps,
        loads: &[FORTY_CLIENTS],
        resized: false,
        published: None,
    }
}

/// A case of another model, with half a TiB.
const fn model(
    name: &'static str,
    volume: &'static str,
    pool: &'static str,
    limits: Limits,
    contract_mibps: f64,
) -> Case {
    Case { pool, limits, ..own(name, volume, 512, contract_mibps) }
}

const fn published(
    (mibps, iops): (f64, u32),
    error_percent: f64,
    mean_ms: f64,
    spread_ms: (f64, f64),
) -> Published {
    Published { mibps, iops, error_percent, mean_ms, spread_ms }
}

/// The cases: first those of the published table, in its order.
pub(super) const CASES: [Case; 20] = [
    row(
        "auto, 100 GiB",
        "a100g",
        "single",
        100,
        1.5625,
        published((1.6045, 205), 2.68, 5410.0, (1590.0, 6280.0)),
    ),
    row(
        "auto, 1 TiB",
        "a1t",
        "single",
        1024,
        16.0,
        published((16.05, 2053), 0.29, 614.0, (584.0, 634.0)),
    ),
    row(
        "auto, 4 TiB",
        "a4t",
        "single",
        4096,
        64.0,
        published((65.73, 8413), 2.70, 152.0, (144.0, 163.0)),
    ),
    row(
        "auto, 1 of 4 TiB",
        "p1t",
        "pair-auto",
        1024,
        16.0,
        published((16.43, 2103), 2.69, 600.0, (600.0, 609.0)),
    ),
    row(
        "auto, 3 of 4 TiB",
        "p3t",
        "pair-auto",
        3072,
        48.0,
        published((49.29, 6309), 2.70, 202.0, (186.0, 230.0)),
    ),
    Case {
        limits: Limits { mibps: Some(48), ..Limits::NONE },
        ..row(
            "manual, 1 TiB given 48",
            "m48",
            "pair-manual",
            1024,
            48.0,
            published((48.14, 6162), 0.29, 207.0, (197.0, 222.0)),
        )
    },
    Case {
        limits: Limits { mibps: Some(16), ..Limits::NONE },
        ..row(
            "manual, 3 TiB given 16",
            "m16",
            "pair-manual",
            3072,
            16.0,
            published((16.05, 2053), 0.28, 613.0, (600.0, 634.0)),
        )
    },
    Case { loads: &[ONE_CLIENT], ..own("one address, 40 connections", "one", 1024, 16.0) },
    Case { resized: true, ..own("quota changed under load", "resized", 1024, 32.0) },
    Case {
        loads: &[Load::client(Protocol::Nfs, 8), Load::client(Protocol::Smb, 64)],
        ..own("NFS 8 KiB and SMB 64 KiB", "both", 2048, 32.0)
    },
    Case {
        loads: &[Load::client(Protocol::Nfs, 64), Load::client(Protocol::Smb, 8)],
        ..own("NFS 64 KiB and SMB 8 KiB", "reverse", 2048, 32.0)
    },
    model(
        "auto, at most 6 MiB/s",
        "capped",
        "single",
        Limits { max_mibps: Some(6), ..Limits::NONE },
        6.0,
    ),
    model(
        "auto, at most 500 IOPS",
        "counted",
        "single",
        Limits { max_iops: Some(500), ..Limits::NONE },
        eights(500),
    ),
    model(
        "auto, files at most 24 IOPS",
        "filed",
        "single",
        Limits { max_file_iops: Some(24), ..Limits::NONE },
        eights(40 * 24),
    ),
    model(
        "flexible, given 24",
        "flexible",
        "flexible",
        Limits { mibps: Some(24), ..Limits::NONE },
        24.0,
    ),
    model(
        "custom, 32 and 1,000 IOPS",
        "custom",
        "custom",
        Limits { mibps: Some(32), iops: Some(1000), ..Limits::NONE },
        eights(1000),
    ),
    model(
        "shared, 3 of 4 parts",
        "three",
        "shared",
        Limits { weight: Some(300), ..Limits::NONE },
        12.0,
    ),
    model(
        "shared, 1 of 4 parts",
        "quarter",
        "shared",
        Limits { weight: Some(100), ..Limits::NONE },
        4.0,
    ),
    model("provisioned-v1, in a burst", "burst", "provisioned", Limits::NONE, eights(10_000)),
    model(
        "provisioned-v2, at most its base",
        "base",
        "provisioned2",
        Limits { mibps: Some(100), iops: Some(3000), max_iops: Some(3000), ..Limits::NONE },
        eights(3000),
    ),
];

/// The number of [`CASES`] that are published, and of our own that follow them.
pub(super) const PUBLISHED: usize = 7;
pub(super) const OWN: usize = 4;

/// The quotas that a [`Case::resized`] volume is given one after the other, in GiB and MiB/s: up,
/// down, up.
pub(super) const RESIZES: [(u64, f64); 3] = [(2048, 32.0), (1024, 16.0), (2048, 32.0)];

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate (MiB/s) that a limit of `iops` and `mibps` comes to at 8 KiB.
    fn tighter(mibps: f64, iops: Option<u64>) -> f64 {
        iops.map_or(mibps, |iops| mibps.min(eights(u32::try_from(iops).unwrap())))
    }

    fn whole(number: u64) -> f64 {
        f64::from(u32::try_from(number).unwrap())
    }

    #[test]
    fn contracts_follow_from_the_models_and_pools_hold_them() {
        for case in &CASES {
            let pool = POOLS.iter().find(|pool| pool.name == case.pool).unwrap();
            let within = || CASES.iter().filter(|other| other.pool == case.pool);
            let Limits { mibps, iops, max_mibps, max_iops, max_file_iops, weight } = case.limits;
            let by_level = |gibibytes: u64| whole(gibibytes) / 1024.0 * 16.0;
            let weights: u32 = within().filter_map(|other| other.limits.weight).sum();
            let limit = match pool.qos {
                Qos::Auto if case.resized => RESIZES[2].1,
                Qos::Auto => by_level(case.quota_gibibytes),
                Qos::Manual | Qos::Flexible => whole(mibps.unwrap()),
                Qos::Custom => tighter(whole(mibps.unwrap()), iops),
                Qos::Shared => {
                    by_level(pool.tebibytes * 1024) * f64::from(weight.unwrap())
                        / f64::from(weights)
                }
                // 100 and a tenth of the GiB, and the least burst there is.
                Qos::ProvisionedV1 => tighter(152.0, Some(10_000)),
                Qos::ProvisionedV2 => {
                    tighter(whole(mibps.unwrap()), Some((3 * iops.unwrap()).max(10_000)))
                }
            };
            let limit = tighter(max_mibps.map_or(limit, |most| limit.min(whole(most))), max_iops);
            // Each job has a file of its own.
            let limit = tighter(limit, max_file_iops.map(|iops| 40 * iops));
            assert_eq!(case.contract_mibps, limit, "{}", case.name);
            let given = [Qos::Manual, Qos::Flexible, Qos::Custom, Qos::ProvisionedV2];
            assert_eq!(mibps.is_some(), given.contains(&pool.qos), "{}", case.name);
        }
        for pool in POOLS {
            let within = || CASES.iter().filter(|case| case.pool == pool.name);
            let quota =
                |case: &Case| if case.resized { RESIZES[0].0 } else { case.quota_gibibytes };
            assert!(within().map(quota).sum::<u64>() <= pool.tebibytes * 1024, "{}", pool.name);
            let budget = match pool.qos {
                Qos::Flexible => 128,
                Qos::Custom => 64,
                Qos::ProvisionedV2 => 10_340,
                _ => pool.tebibytes * 16,
            };
            assert!(within().filter_map(|case| case.limits.mibps).sum::<u64>() <= budget);
        }
        for case in CASES.iter().filter(|case| case.loads.len() > 1) {
            let Limits { iops, max_iops, max_file_iops, .. } = case.limits;
            assert_eq!((iops, max_iops, max_file_iops), (None, None, None), "{}", case.name);
        }
        let published = |case: &Case| case.published.is_some();
        assert!(CASES[..PUBLISHED].iter().all(published));
        assert!(!CASES[PUBLISHED..].iter().any(published));
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
