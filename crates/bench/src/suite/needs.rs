//! The demands of a published rate on the machine that applies the load, said before it starts and
//! in the results: the speed of its links to the server, and processors.

use super::wanted::Wanted;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use weir_load::target::{Target, Targets};
use weir_results::MIBPS_PER_MBITPS;
use weir_scenario::scenario::{Scenario, Step};

/// Processor time of the generator for an operation, in microseconds, and for each KiB of payload:
/// what `docs/performance/client-cost.md` has for 32 connections with one request each.
const US_PER_OPERATION: f64 = 8.0;
const US_PER_KIB: f64 = 0.1;

/// The capacity of this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The links to the servers, each with its speed in Mbit/s; empty if one of them is unknown or
    /// the server is on this machine.
    links: BTreeMap<String, u32>,
    processors: u32,
}

impl Machine {
    /// A machine with these links to the servers, with their speeds in Mbit/s, and processors.
    pub(super) const fn new(links: BTreeMap<String, u32>, processors: u32) -> Self {
        Self { links, processors }
    }

    /// This machine, on its way to `targets`.
    #[must_use]
    pub fn this(targets: &Targets) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let processors = u32::try_from(processors).unwrap_or(u32::MAX);
        Self::new(links(targets).unwrap_or_default(), processors)
    }

    /// Sentences about the steps of `scenario` whose published rates this machine cannot apply by
    /// itself.
    #[must_use]
    pub fn falls_short(&self, scenario: &Scenario) -> Vec<String> {
        let steps: Vec<Wanted<'_>> = scenario.steps.iter().filter_map(Wanted::of).collect();
        let fastest = steps.iter().max_by(|a, b| a.one_way_mibps.total_cmp(&b.one_way_mibps));
        let dearest = steps.iter().max_by(|a, b| processors(a).total_cmp(&processors(b)));
        let link = fastest.and_then(|step| self.over_links(step));
        let processors = dearest.and_then(|step| self.over_processors(step));
        let all = link.into_iter().chain(processors);
        all.map(|sentence| format!("{}: {sentence}", scenario.name)).collect()
    }

    /// Sentences about the published rate of `step`, if this machine cannot apply it by itself.
    #[must_use]
    pub fn falls_short_in(&self, step: &Step) -> Vec<String> {
        let Some(wanted) = Wanted::of(step) else { return Vec::new() };
        let all = [self.over_links(&wanted), self.over_processors(&wanted)];
        all.into_iter().flatten().collect()
    }

    /// The links to the servers, each with its speed in Mbit/s; none if one of them is unknown or
    /// the server is on this machine.
    #[must_use]
    pub const fn links(&self) -> &BTreeMap<String, u32> {
        &self.links
    }

    fn over_links(&self, wanted: &Wanted<'_>) -> Option<String> {
        let speed: f64 = self.links.values().map(|mbit| f64::from(*mbit)).sum();
        let most = speed * MIBPS_PER_MBITPS;
        (most > 0.0 && wanted.one_way_mibps > most).then(|| {
            format!(
                "{:.0} MiB/s in one direction were published for step {}, and this machine's link \
                 to the server ({}) carries at most {most:.0} MiB/s: apply the load from more \
                 machines with --worker",
                wanted.one_way_mibps,
                wanted.name,
                self.links_in_words()
            )
        })
    }

    fn over_processors(&self, wanted: &Wanted<'_>) -> Option<String> {
        let needed = processors(wanted);
        (needed > f64::from(self.processors)).then(|| {
            format!(
                "{:.0} operations a second were published for step {}, which take the load \
                 generator about {:.0} processors, and this machine has {}: apply the load from \
                 more machines with --worker",
                wanted.iops,
                wanted.name,
                needed.ceil(),
                self.processors
            )
        })
    }

    fn links_in_words(&self) -> String {
        let all = self.links.iter().map(|(name, mbit)| format!("{name}, {mbit} Mbit/s"));
        all.collect::<Vec<_>>().join("; ")
    }
}

/// The processors that the load generator needs for a rate.
fn processors(wanted: &Wanted<'_>) -> f64 {
    (wanted.iops * US_PER_OPERATION + wanted.mibps * 1024.0 * US_PER_KIB) / 1e6
}

/// The links to `targets`; `None` if there is one of which nothing is known.
fn links(targets: &Targets) -> Option<BTreeMap<String, u32>> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (routes4, routes6) = (read("/proc/net/route"), read("/proc/net/ipv6_route"));
    let mut links = BTreeMap::new();
    for ip in addresses(targets)? {
        let is_here = ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok();
        let device = match ip {
            _ if is_here => return None,
            IpAddr::V4(ip) => route4(&routes4, ip)?,
            IpAddr::V6(ip) => route6(&routes6, ip)?,
        };
        let speed = read(&format!("/sys/class/net/{device}/speed"));
        // A device that does not know its speed has -1, or nothing.
        let mbit = speed.trim().parse::<u32>().ok().filter(|mbit| *mbit > 0)?;
        links.insert(device, mbit);
    }
    Some(links)
}

/// The addresses of all servers; `None` if a target is a path.
fn addresses(targets: &Targets) -> Option<Vec<IpAddr>> {
    let mut all = Vec::new();
    for (_, target) in targets.iter() {
        let (first, more) = match target {
            Target::Nfs(nfs) => (nfs.address, &nfs.more),
            Target::Smb(smb) => (smb.address, &smb.more),
            Target::Path(_) => return None,
        };
        all.push(first.ip());
        all.extend(more.iter().map(std::net::SocketAddr::ip));
    }
    Some(all)
}

/// The device of the most specific route to `ip` in `/proc/net/route`: device, destination,
/// gateway, flags, three counts, mask, with addresses as numbers in the machine's order of bytes.
fn route4(routes: &str, ip: Ipv4Addr) -> Option<String> {
    let ip = u32::from_ne_bytes(ip.octets());
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (destination, mask) = (number(1)?, number(7)?);
        (ip & mask == destination)
            .then(|| Some((mask.count_ones(), (*fields.first()?).to_owned())))?
    };
    routes.lines().skip(1).filter_map(route).max_by_key(|(bits, _)| *bits).map(|(_, name)| name)
}

/// The device of the most specific route to `ip` in `/proc/net/ipv6_route`: destination, its bits,
/// six fields more, flags, device.
fn route6(routes: &str, ip: Ipv6Addr) -> Option<String> {
    let ip = u128::from(ip);
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let destination = u128::from_str_radix(fields.first()?, 16).ok()?;
        let bits = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let device = (*fields.get(9)?).to_owned();
        (ip & mask == destination && device != "lo").then_some((bits, device))
    };
    routes.lines().filter_map(route).max_by_key(|(bits, _)| *bits).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::super::testing::scenario;
    use super::*;
    use weir_load::workload::{MixOp, OpShare, Operation, Pattern};
    use weir_scenario::scenario::Published;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
ib0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
";
    const ROUTES6: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
";

    #[test]
    fn the_most_specific_route_leads_to_an_address() {
        let to = |ip: &str| route4(ROUTES, ip.parse().unwrap()).unwrap();
        assert_eq!([to("10.0.0.4"), to("192.168.1.7"), to("192.0.2.1")], ["ib0", "eth0", "eth0"]);
        assert_eq!(route4("", Ipv4Addr::LOCALHOST), None);
        let to = |ip: &str| route6(ROUTES6, ip.parse().unwrap()).unwrap();
        assert_eq!([to("fd00::7"), to("2001:db8::1")], ["eth1", "eth0"]);
        assert_eq!(route6("nonsense\n", Ipv6Addr::LOCALHOST), None);
    }

    fn published(published: Published, block_bytes: u32) -> Scenario {
        let mut one = scenario(&["small", "large"]);
        one.steps[1].loads[0].block_bytes = block_bytes;
        one.steps[1].published = Some(published);
        one
    }

    fn machine(mbit: &[u32], processors: u32) -> Machine {
        let links = (0..).zip(mbit).map(|(at, mbit)| (format!("eth{at}"), *mbit));
        Machine::new(links.collect(), processors)
    }

    #[test]
    fn a_rate_over_the_link_is_told_with_what_to_do() {
        let fast = published(Published { mibps: Some(4500.0), ..Published::default() }, 65_536);
        let told = machine(&[10_000], 64).falls_short(&fast);
        assert_eq!(told.len(), 1, "{told:?}");
        for part in ["test: 4500 MiB/s", "step large", "eth0, 10000 Mbit/s", "1192", "--worker"] {
            assert!(told[0].contains(part), "{part}: {told:?}");
        }
        assert_eq!(machine(&[100_000], 64).falls_short(&fast), [""; 0]);
        assert_eq!(machine(&[25_000, 25_000], 64).falls_short(&fast), [""; 0]);
        assert_eq!(machine(&[], 64).falls_short(&fast), [""; 0], "nothing is known of the link");
    }

    #[test]
    fn a_step_has_its_own_sentences_and_one_without_published_figures_has_none() {
        let rates = Published { mibps: Some(4500.0), ..Published::default() };
        let fast = published(rates, 4096);
        let told = machine(&[10_000], 2).falls_short_in(&fast.steps[1]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("4500 MiB/s") && told[1].starts_with("1152000 op"), "{told:?}");
        assert_eq!(machine(&[10_000], 2).falls_short_in(&fast.steps[0]), [""; 0]);
    }

    #[test]
    fn operations_count_by_their_size_and_by_the_processors_they_take() {
        let rates = Published {
            read_iops: Some(400_000.0),
            write_iops: Some(100_000.0),
            ..Published::default()
        };
        let small = published(rates, 4096);
        // 400,000 × 4 KiB are 1562 MiB/s one way; 500,000 × 8.4 µs are 4.2 processors.
        let told = machine(&[10_000], 2).falls_short(&small);
        assert!(
            told[0].contains("1562 MiB/s") && told[1].contains("about 5 processors"),
            "{told:?}"
        );
        assert!(told[1].contains("500000 operations") && told[1].contains("--worker"), "{told:?}");
        assert_eq!(machine(&[100_000], 8).falls_short(&small), [""; 0]);
        assert_eq!(machine(&[14_000], 8).falls_short(&small), [""; 0], "1669 MiB/s each way");
        assert_eq!(machine(&[1], 1).falls_short(&scenario(&["a"])), [""; 0]);
    }

    #[test]
    fn a_link_carries_a_total_by_what_loads_read_and_write() {
        let mut mixed =
            published(Published { mibps: Some(2000.0), ..Published::default() }, 65_536);
        let told = |one: &Scenario| machine(&[10_000], 64).falls_short(one).len();
        assert_eq!(told(&mixed), 1, "all of it is read");
        let load = &mut mixed.steps[1].loads[0];
        load.operation = Operation::Data { pattern: Pattern::Sequential, read_percent: 50 };
        assert_eq!(told(&mixed), 0, "1000 MiB/s each way");
        let share = |op, percent| OpShare { op, percent };
        let load = &mut mixed.steps[1].loads[0];
        load.operation = Operation::Mix;
        load.mix = vec![share(MixOp::ReadSequential, 75), share(MixOp::WriteSequential, 25)];
        assert_eq!(told(&mixed), 1, "1500 MiB/s are read");
    }
}
