//! The cluster of a campaign, before anything happens to it: engines, gateways, addresses, pools
//! and volumes.

use crate::bed::{
    Engines, Gateway, Machine, NFS_PORT, Network, Operator, Programs, clock, cluster_address,
};
use crate::load::Target;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_lab::stop::Stop;

/// Longest time in which addresses must have moved.
const MOVE: Duration = Duration::from_secs(30);
/// Time between two looks at the addresses.
const LOOK: Duration = Duration::from_millis(50);

/// How many of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Gateways.
    pub(crate) gateways: u8,
    /// Volumes, each with an address of its own.
    pub(crate) volumes: u8,
    /// The pools: their names and directories in CephFS. Volumes are dealt to them in turn.
    pub(crate) pools: &'static [(&'static str, &'static str)],
    /// Throughput of each volume, in MiB/s.
    pub(crate) mibps: u64,
    /// Machines beside those of the gateways, numbered after them.
    pub(crate) others: u8,
    /// Size of each OSD, in GiB. Its file is sparse, but reaches that size with time, because an
    /// OSD gives nothing back.
    pub(crate) osd_gib: u8,
    /// Settings for all clients of Ceph, as lines of its configuration.
    pub(crate) clients: &'static str,
    /// Further options of the servers.
    pub(crate) serve: &'static [&'static str],
    /// Do the servers have clocks of their own?
    pub(crate) own_clocks: bool,
}

impl Plan {
    /// Nothing, to be filled in: no machines, no volumes, and no settings but those of every
    /// campaign.
    pub(crate) const EMPTY: Self = Self {
        gateways: 0,
        volumes: 0,
        pools: &[],
        mibps: 1,
        others: 0,
        osd_gib: 8,
        clients: "",
        serve: &[],
        own_clocks: false,
    };
}

/// The cluster. Everything ends with it; the gateways first.
pub(crate) struct Stage {
    /// The gateways, by their numbers from 1.
    pub(crate) gateways: Vec<Gateway>,
    /// A client of each gateway's API.
    pub(crate) operators: Vec<Operator>,
    /// etcd and Ceph.
    pub(crate) engines: Engines,
    /// The volumes.
    pub(crate) targets: Vec<Target>,
    /// The programs of a campaign with several: first the one that everything began with.
    pub(crate) programs: Vec<PathBuf>,
    _network: Network,
}

/// The gateway that serves each address; none if nobody does at present.
pub(crate) type Homes = BTreeMap<Ipv4Addr, Option<Machine>>;

impl Stage {
    /// Starts everything, and creates the volumes. The directories: those of the program, for what
    /// goes away, and for logs.
    ///
    /// # Errors
    /// If a part does not come up.
    pub(crate) fn set(
        (weir, work, out): (&Path, &Path, &Path),
        plan: Plan,
        stop: &Stop,
    ) -> Result<Self> {
        let network = Network::new(1..=plan.gateways + plan.others)?;
        weir_report::errln!("Starting three members of etcd, and a Ceph with three OSDs.");
        let engines = Engines::start(work, plan.osd_gib, plan.clients)?;
        stop.check()?;
        weir_report::errln!("Starting {} gateways.", plan.gateways);
        let logs = campaign_logs(out)?;
        let clock = plan.own_clocks.then(|| clock::build(work)).transpose()?;
        let (weir, work) = (weir.to_owned(), work.to_owned());
        let programs = Programs { weir, work, logs, serve: plan.serve, clock };
        let (mut gateways, mut operators) = (Vec::<Gateway>::new(), Vec::new());
        for number in 1..=plan.gateways {
            let mut gateway = Gateway::create(&programs, &engines, number, gateways.first())?;
            operators.push(gateway.start()?);
            gateways.push(gateway);
            stop.check()?;
        }
        let targets = (1..=plan.volumes).map(target).collect();
        let programs = vec![programs.weir];
        let stage = Self { gateways, operators, engines, targets, programs, _network: network };
        stage.furnish(plan)?;
        Ok(stage)
    }

    /// Creates addresses, pools and volumes, and waits until all gateways serve some.
    fn furnish(&self, plan: Plan) -> Result<()> {
        let operator = self.operators.first().context("there are no gateways")?;
        let conf = self.engines.ceph_conf();
        for (name, directory) in plan.pools {
            operator.create_pool(name, &conf, directory)?;
        }
        for (target, (pool, _)) in self.targets.iter().zip(plan.pools.iter().cycle()) {
            // One after the other: the weight of a volume counts where the next address goes.
            let address = cluster_address(u8::try_from(target.number)?);
            operator.add_address(address)?;
            operator.create_volume((&target.name, pool), address, plan.mibps)?;
        }
        let all = |homes: &Homes| {
            let served: Vec<Machine> = homes.values().copied().flatten().collect();
            served.len() == usize::from(plan.volumes)
                && (1..=plan.gateways).all(|number| served.contains(&Machine::Gateway(number)))
        };
        self.until(operator, "each address to have a gateway, and each gateway some", all)?;
        weir_report::errln!(
            "Created {} pools on CephFS, {} volumes of {} MiB/s and their addresses.",
            plan.pools.len(),
            plan.volumes,
            plan.mibps
        );
        Ok(())
    }

    /// The gateway of each address, according to one of them.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn homes(&self, operator: &Operator) -> Result<Homes> {
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
    pub(crate) fn until(
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
            if begun.elapsed() > MOVE {
                bail!("waited {} s for {what}: the addresses are at {homes:?}", MOVE.as_secs());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The program at this place of the list.
    pub(crate) fn program(&self, place: usize) -> Result<&Path> {
        let program = self.programs.get(place).map(PathBuf::as_path);
        program.with_context(|| format!("the campaign has no program {place}"))
    }

    /// The place of a gateway in the lists.
    pub(crate) fn place(&self, machine: Machine) -> Result<usize> {
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
fn campaign_logs(out: &Path) -> Result<PathBuf> {
    let logs = out.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs)
            .with_context(|| format!("cannot remove {}", logs.display()))?;
    }
    weir_lab::campaign::work_directory(&logs)
}
