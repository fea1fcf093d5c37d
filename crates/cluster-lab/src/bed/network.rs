//! Machines on a bridge: network namespaces, each with one interface. All of them are in the
//! network namespace of the campaign, and end with it.

use anyhow::{Context, Result, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use weir_lab::process::run;

/// The machine of etcd and Ceph.
pub(crate) const ENGINES: Machine = Machine::Engines;
/// The machine of all clients.
pub(crate) const CLIENTS: Machine = Machine::Clients;

/// The interface of each machine.
pub(crate) const INTERFACE: &str = "eth0";
/// The bridge.
const BRIDGE: &str = "bridge";
/// Length of the prefix of the network that all machines are in.
const PREFIX: u8 = 16;

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Machine {
    /// That of etcd and Ceph.
    Engines,
    /// That of the gateway with this number, from 1.
    Gateway(u8),
    /// That of all clients.
    Clients,
}

impl Machine {
    /// The name of its network namespace.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Engines => "engines".to_owned(),
            Self::Gateway(number) => format!("gateway-{number}"),
            Self::Clients => "clients".to_owned(),
        }
    }

    /// Its hardware address, by which its frames are told on the bridge.
    pub(crate) const fn hardware(self) -> [u8; 6] {
        let [_, _, kind, number] = address_of(self).octets();
        [0x02, 0, 0, 0, kind, number]
    }

    /// Does something in the network of the machine. Sockets that are made there, and processes
    /// that are started there, stay there.
    ///
    /// # Errors
    /// If the network cannot be entered; and those of `act`.
    pub(crate) fn within<T: Send>(self, act: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                self.enter()?;
                act()
            });
            there.join().map_err(|_| anyhow!("a thread ended abnormally"))?
        })
    }

    /// Moves this thread into the network of the machine, for good.
    ///
    /// # Errors
    /// If there is no such machine.
    pub(crate) fn enter(self) -> Result<()> {
        let path = Path::new("/run/netns").join(self.name());
        let namespace = File::open(&path).with_context(|| format!("no machine {}", self.name()))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("cannot enter {}", path.display()))
    }
}

/// The address of a machine.
pub(crate) const fn address_of(machine: Machine) -> Ipv4Addr {
    match machine {
        Machine::Engines => Ipv4Addr::new(10, 77, 1, 10),
        Machine::Gateway(number) => Ipv4Addr::new(10, 77, 2, number),
        Machine::Clients => Ipv4Addr::new(10, 77, 3, 1),
    }
}

/// The three parts that the addresses of the members of etcd begin with, on the machine of the
/// engines; they end with 1 to 3.
pub(crate) const ETCD_NET: &str = "10.77.1";

/// One of the addresses of the cluster, which move between gateways; the first has number 1.
pub(crate) const fn cluster_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 4, number)
}

/// An address of the cluster as the operator adds it, with the length of the prefix.
pub(crate) fn with_prefix(address: Ipv4Addr) -> String {
    format!("{address}/{PREFIX}")
}

/// The bridge and its machines.
#[derive(Debug)]
pub(crate) struct Network;

impl Network {
    /// Makes the bridge and the machines, with these gateways. The campaign has to be in a network
    /// namespace of its own, with a private `/run`.
    ///
    /// # Errors
    /// In the words of `ip`.
    pub(crate) fn new(gateways: impl IntoIterator<Item = u8>) -> Result<Self> {
        ip("link set lo up")?;
        ip(&format!("link add {BRIDGE} type bridge"))?;
        ip(&format!("link set {BRIDGE} up"))?;
        add(ENGINES, (1..=3).map(|member| format!("{ETCD_NET}.{member}")))?;
        add(CLIENTS, [])?;
        for number in gateways {
            add(Machine::Gateway(number), [])?;
        }
        Ok(Self)
    }
}

/// The machines from which a gateway's machine can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The members of etcd.
    Etcd,
    /// Ceph.
    Ceph,
    /// The machines of other gateways.
    Peers,
    /// All machines.
    All,
}

impl Side {
    /// The addresses in nftables' words; nothing for all frames.
    fn addresses(self) -> Option<String> {
        match self {
            Self::Etcd => Some(format!("{ETCD_NET}.1-{ETCD_NET}.3")),
            Self::Ceph => Some(address_of(ENGINES).to_string()),
            Self::Peers => Some(format!(
                "{}-{}",
                address_of(Machine::Gateway(1)),
                address_of(Machine::Gateway(254))
            )),
            Self::All => None,
        }
    }
}

/// The frames that a cut has dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The dropped frames that the machine sent.
    pub(crate) sent: u64,
    /// The dropped frames that were sent to it.
    pub(crate) received: u64,
}

/// A cut between machines: frames are dropped on the bridge, in both directions, and nobody is
/// told. It is mended when this goes away, if not before.
#[derive(Debug)]
pub(crate) struct Cut {
    machine: Machine,
    is_mended: bool,
}

impl Cut {
    /// Cuts a machine from others.
    ///
    /// # Errors
    /// In the words of `nft`.
    pub(crate) fn make(machine: Machine, side: Side) -> Result<Self> {
        let rules = ruleset(&machine.name(), side);
        run(Command::new("nft").arg(rules)).context("cannot cut a machine from others")?;
        Ok(Self { machine, is_mended: false })
    }

    /// Mends it. Returns how many frames it has dropped.
    ///
    /// # Errors
    /// In the words of `nft`.
    pub(crate) fn mend(mut self) -> Result<Dropped> {
        let dropped = self.dropped();
        self.is_mended = true;
        self.remove()?;
        dropped
    }

    fn dropped(&self) -> Result<Dropped> {
        let output = Command::new("nft").args(["list", "table", "bridge", &self.table()]).output();
        let output = output.context("cannot run nft")?;
        let listed = String::from_utf8_lossy(&output.stdout);
        counted(&listed).with_context(|| {
            format!("the counters of a cut: {listed}{}", String::from_utf8_lossy(&output.stderr))
        })
    }

    fn remove(&self) -> Result<()> {
        run(Command::new("nft").args(["delete", "table", "bridge", &self.table()]))
    }

    fn table(&self) -> String {
        format!("cut-{}", self.machine.name())
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        if self.is_mended {
            return;
        }
        if let Err(error) = self.remove() {
            weir_report::errln!("a cut from others stays: {error:#}");
        }
    }
}

/// The rules that drop the frames between the machine at this port of the bridge and others.
fn ruleset(port: &str, side: Side) -> String {
    let (from, to) = match side.addresses() {
        None => (String::new(), String::new()),
        Some(addresses) => (format!("ip daddr {addresses} "), format!("ip saddr {addresses} ")),
    };
    format!(
        "table bridge cut-{port} {{ chain forward {{ type filter hook forward priority 0; \
         iifname \"{port}\" {from}counter drop; \
         oifname \"{port}\" {to}counter drop; }}; }}"
    )
}

/// The counters of the two rules, as `nft` lists the table.
fn counted(listed: &str) -> Option<Dropped> {
    let of = |direction: &str| {
        let rule = listed.lines().find(|line| line.trim_start().starts_with(direction))?;
        let (_, count) = rule.split_once(" counter packets ")?;
        count.split(' ').next()?.parse().ok()
    };
    Some(Dropped { sent: of("iifname ")?, received: of("oifname ")? })
}

/// Takes the cable out of a machine, or puts it in again.
///
/// # Errors
/// In the words of `ip`.
pub(crate) fn cable(machine: Machine, is_in: bool) -> Result<()> {
    ip(&format!("link set {} {}", machine.name(), if is_in { "up" } else { "down" }))
}

/// Makes a machine, with more addresses than its own.
fn add(machine: Machine, more: impl IntoIterator<Item = String>) -> Result<()> {
    let name = machine.name();
    let hardware = machine.hardware().map(|byte| format!("{byte:02x}")).join(":");
    ip(&format!("netns add {name}"))?;
    ip(&format!(
        "link add {name} type veth peer name {INTERFACE} address {hardware} netns {name}"
    ))?;
    ip(&format!("link set {name} master {BRIDGE} up"))?;
    ip(&format!("-n {name} link set lo up"))?;
    ip(&format!("-n {name} link set {INTERFACE} up"))?;
    for address in std::iter::once(address_of(machine).to_string()).chain(more) {
        ip(&format!("-n {name} addr add {address}/{PREFIX} dev {INTERFACE}"))?;
    }
    Ok(())
}

fn ip(words: &str) -> Result<()> {
    run(Command::new("ip").args(words.split(' '))).with_context(|| format!("ip {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_interfaces_and_no_two_machines_are_alike() {
        let machines: Vec<Machine> =
            [ENGINES, CLIENTS].into_iter().chain((1..=16).map(Machine::Gateway)).collect();
        for (place, one) in machines.iter().enumerate() {
            assert!(one.name().len() <= 15, "{one:?}");
            assert_eq!(one.hardware()[0] & 3, 2, "{one:?}: local, and of one machine");
            for other in &machines[..place] {
                assert_ne!(one.name(), other.name());
                assert_ne!(one.hardware(), other.hardware());
                assert_ne!(address_of(*one), address_of(*other));
            }
        }
    }

    #[test]
    fn a_cut_names_the_port_and_both_directions() {
        let rules = ruleset("gateway-2", Side::Etcd);
        assert!(
            rules.contains("iifname \"gateway-2\" ip daddr 10.77.1.1-10.77.1.3 counter drop;"),
            "{rules}"
        );
        assert!(
            rules.contains("oifname \"gateway-2\" ip saddr 10.77.1.1-10.77.1.3 counter drop;"),
            "{rules}"
        );
        assert!(ruleset("gateway-2", Side::All).contains("iifname \"gateway-2\" counter drop;"));
        assert!(ruleset("gateway-2", Side::Peers).contains("10.77.2.1-10.77.2.254"));
    }

    #[test]
    fn counters_are_read_of_both_directions() {
        let listed = "table bridge cut-gateway-2 {\n\tchain forward {\n\
            \t\ttype filter hook forward priority filter; policy accept;\n\
            \t\tiifname \"gateway-2\" ip daddr 10.77.1.10 counter packets 41 bytes 2460 drop\n\
            \t\toifname \"gateway-2\" ip saddr 10.77.1.10 counter packets 0 bytes 0 drop\n\t}\n}\n";
        assert_eq!(counted(listed), Some(Dropped { sent: 41, received: 0 }));
        assert_eq!(counted("table bridge cut-gateway-2 {\n}\n"), None);
    }

    #[test]
    fn addresses_of_the_cluster_are_those_of_no_machine() {
        assert_eq!(with_prefix(cluster_address(6)), "10.77.4.6/16");
        let [a, b, c, _] = address_of(ENGINES).octets();
        assert_eq!(format!("{a}.{b}.{c}"), ETCD_NET);
        assert!(address_of(ENGINES).octets()[3] > 3, "the members of etcd have 1 to 3");
    }
}
