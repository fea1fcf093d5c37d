//! The cluster of the demonstration, before anything happens to it: engines, gateways, addresses,
//! pools and volumes.

use super::client::Target;
use super::plan::{GATEWAYS, MOVE_S, POOLS, VOLUMES};
use crate::bed::{
    Engines, Gateway, Machine, NFS_PORT, Network, Operator, Programs, cluster_address,
};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_lab::stop::Stop;

/// Time between two looks at the addresses.
const LOOK: Duration = Duration::from_millis(50);

/// The cluster. Everything ends with it; the gateways first.
pub(super) struct Stage {
    /// The gateways, by their numbers from 1.
    pub(super) gateways: Vec<Gateway>,
    /// A client of each gateway's API.
    pub(super) operators: Vec<Operator>,
    /// etcd and Ceph.
    pub(super) engines: Engines,
    /// The volumes.
    pub(super) targets: Vec<Target>,
    _network: Network,
}

/// The gateway that serves each address; none if nobody does at present.
pub(super) type Homes = BTreeMap<Ipv4Addr, Option<Machine>>;

impl Stage {
    /// Starts everything, and creates volumes of `mibps` each. The directories: those of the
    /// program, for what goes away, and for logs.
    ///
    /// # Errors
    /// If a part does not come up.
    pub(super) fn set(
        (weir, work, out): (&Path, &Path, &Path),
        mibps: u64,
        stop: &Stop,
    ) -> Result<Self> {
        let network = Network::new(1..=GATEWAYS)?;
        weir_report::errln!("Starting three members of etcd, and a Ceph with three OSDs.");
        let engines = Engines::start(work)?;
        stop.check()?;
        weir_report::errln!("Starting {GATEWAYS} gateways.");
        let logs = campaign_logs(out)?;
        let programs = Programs { weir: weir.to_owned(), work: work.to_owned(), logs };
        let (mut gateways, mut operators) = (Vec::<Gateway>::new(), Vec::new());
        for number in 1..=GATEWAYS {
            let mut gateway = Gateway::create(&programs, &engines, number, gateways.first())?;
            operators.push(gateway.start()?);
            gateways.push(gateway);
            stop.check()?;
        }
        let targets = (1..=VOLUMES).map(target).collect();
        let stage = Self { gateways, operators, engines, targets, _network: network };
        stage.furnish(mibps)?;
        Ok(stage)
    }

    /// Creates addresses, pools and volumes, and waits until all gateways serve some.
    fn furnish(&self, mibps: u64) -> Result<()> {
        let operator = self.operators.first().context("there are no gateways")?;
        let conf = self.engines.ceph_conf();
        for (name, directory) in POOLS {
            operator.create_pool(name, &conf, directory)?;
        }
        for (target, (pool, _)) in self.targets.iter().zip(POOLS.iter().cycle()) {
            // One after the other: the weight of a volume counts where the next address goes.
            let address = cluster_address(u8::try_from(target.number)?);
            operator.add_address(address)?;
            operator.create_volume((&target.name, pool), address, mibps)?;
        }
        let all = |homes: &Homes| {
            let served: Vec<Machine> = homes.values().copied().flatten().collect();
            served.len() == usize::from(VOLUMES)
                && (1..=GATEWAYS).all(|number| served.contains(&Machine::Gateway(number)))
        };
        self.until(operator, "each address to have a gateway, and each gateway some", all)?;
        weir_report::errln!(
            "Created {} pools on CephFS, {VOLUMES} volumes of {mibps} MiB/s and their addresses.",
            POOLS.len()
        );
        Ok(())
    }

    /// The gateway of each address, according to one of them.
    ///
    /// # Errors
    /// In the server's own words.
    pub(super) fn homes(&self, operator: &Operator) -> Result<Homes> {
        let machine = |name: String| {
            let mut all = self.gateways.iter();
            all.find(|gateway| gateway.name() == name).map(Gateway::machine)
        };
        let addresses = operator.addresses()?.into_iter();
        let homes = addresses.map(|one| {
            let address = one.address.parse().with_context(|| format!("{:?}", one.address))?;
            Ok((address, one.gateway.and_then(machine)))
        });
        homes.collect()
    }

    /// Waits until the homes of addresses are as wanted.
    ///
    /// # Errors
    /// If they are not in time; the error has `what`, and the homes.
    pub(super) fn until(
        &self,
        operator: &Operator,
        what: &str,
        is_so: impl Fn(&Homes) -> bool,
    ) -> Result<Homes> {
        let begun = Instant::now();
        loop {
            let homes = self.homes(operator)?;
            if is_so(&homes) {
                return Ok(homes);
            }
            if begun.elapsed() > Duration::from_secs(MOVE_S) {
                bail!("waited {MOVE_S} s for {what}: the addresses are at {homes:?}");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The place of a gateway in the lists.
    pub(super) fn place(&self, machine: Machine) -> Result<usize> {
        let place = self.gateways.iter().position(|gateway| gateway.machine() == machine);
        place.with_context(|| format!("{} is no gateway", machine.name()))
    }
}

fn target(number: u8) -> Target {
    Target {
        number: number.into(),
        name: format!("volume-{number}"),
        address: (cluster_address(number), NFS_PORT).into(),
    }
}

/// A new directory for logs in `out`.
fn campaign_logs(out: &Path) -> Result<std::path::PathBuf> {
    let logs = out.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs)
            .with_context(|| format!("cannot remove {}", logs.display()))?;
    }
    weir_lab::campaign::work_directory(&logs)
}
