//! Machines for clients: network namespaces, each joined to the campaign's own namespace by a veth
//! pair, as by a cable of its own. The servers run in the campaign's namespace, which has
//! [`SERVER_ADDRESSES`]; a client reaches all of them through its cable.
//!
//! The namespaces end with the campaign: their names are in its private `/run`, and no process
//! outside holds them.

use crate::process::run;
use anyhow::{Result, ensure};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use weir_bench::cluster::{Launch, Patience, Program, Wanted, WorkerPlace};
use weir_bench::suite::Workers;
use weir_load::Target;

/// The addresses of the server machine.
pub(crate) const SERVER_ADDRESSES: [Ipv4Addr; 6] = [
    Ipv4Addr::new(10, 90, 0, 1),
    Ipv4Addr::new(10, 90, 0, 2),
    Ipv4Addr::new(10, 90, 0, 3),
    Ipv4Addr::new(10, 90, 0, 4),
    Ipv4Addr::new(10, 90, 0, 5),
    Ipv4Addr::new(10, 90, 0, 6),
];

/// The network of the server's addresses and of the clients'.
pub(crate) const CAMPAIGN_NETWORK: &str = "10.90.0.0/15";

/// The most machines: one subnetwork of 10.91.0.0/16 each.
const MACHINES_MAX: u8 = 250;

/// Stands for ssh: its arguments are options of ssh, which it ignores, then `--`, the machine, and
/// the command to run there.
const ON_MACHINE: &str = "while [ \"$1\" != -- ]; do shift; done; \
                          exec ip netns exec \"$2\" sh -c \"exec $3\"";

/// The client machines, made as they are needed.
#[derive(Debug, Default)]
pub(crate) struct Network {
    machines: u8,
}

impl Network {
    /// A network without clients. The campaign has to be in a network namespace of its own, with
    /// loopback up and a private `/run`.
    ///
    /// # Errors
    /// If the server's addresses cannot be added.
    pub(crate) fn new() -> Result<Self> {
        for address in SERVER_ADDRESSES {
            run(Command::new("ip").args(["addr", "add", &format!("{address}/32"), "dev", "lo"]))?;
        }
        Ok(Self::default())
    }

    /// Makes the machines that are missing for `count`. Returns the names of the first `count`.
    ///
    /// # Errors
    /// If `count` is above the limit, or a machine cannot be made.
    fn machines(&mut self, count: u32) -> Result<Vec<String>> {
        ensure!(
            count <= MACHINES_MAX.into(),
            "{count} client machines are needed, and the network has at most {MACHINES_MAX}"
        );
        let count = u8::try_from(count)?;
        while self.machines < count {
            add_machine(self.machines + 1)?;
            self.machines += 1;
        }
        Ok((1..=count).map(name).collect())
    }

    /// Launches `program` as a worker on each of the first `count` machines.
    ///
    /// # Errors
    /// If a machine cannot be made, or a worker cannot be launched; the error names it.
    pub(crate) fn workers(
        &mut self,
        count: u32,
        program: &Path,
        target: Target,
    ) -> Result<Workers> {
        let on_machine = |name: String| Wanted { place: WorkerPlace::Ssh(name.clone()), name };
        let wanted: Vec<Wanted> = self.machines(count)?.into_iter().map(on_machine).collect();
        let patience = Patience::default();
        let launch = Launch {
            ssh: ["sh", "-c", ON_MACHINE, "sh"].map(str::to_owned).to_vec(),
            program: Program::There(program.to_string_lossy().into_owned()),
            patience,
        };
        Ok(Workers::new(target, launch.all(&wanted)?, patience)?)
    }
}

fn name(number: u8) -> String {
    format!("client-{number}")
}

/// Makes the machine of this number, with its cable.
fn add_machine(number: u8) -> Result<()> {
    let name = name(number);
    let (near, far) = (format!("10.91.{number}.1"), format!("10.91.{number}.2"));
    let cable = format!("veth-{number}");
    let ip = |words: &str| run(Command::new("ip").args(words.split(' ')));
    ip(&format!("netns add {name}"))?;
    ip(&format!("link add {cable} type veth peer name eth0 netns {name}"))?;
    ip(&format!("addr add {near}/24 dev {cable}"))?;
    ip(&format!("link set {cable} up"))?;
    ip(&format!("-n {name} addr add {far}/24 dev eth0"))?;
    ip(&format!("-n {name} link set lo up"))?;
    ip(&format!("-n {name} link set eth0 up"))?;
    ip(&format!("-n {name} route add default via {near}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_command_for_a_machine_is_run_in_its_namespace() {
        let work = tempfile::tempdir().unwrap();
        let ip = work.path().join("ip");
        std::fs::write(&ip, "#!/bin/sh\nprintf '[%s]' \"$@\"\n").unwrap();
        std::fs::set_permissions(&ip, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new("/bin/sh")
            .args(["-c", ON_MACHINE, "sh", "-o", "BatchMode=yes", "--", "client-3"])
            .arg("'/a b/weir' bench worker --stdio")
            .env("PATH", work.path())
            .output()
            .unwrap();
        let arguments = String::from_utf8(output.stdout).unwrap();
        let command = "[exec '/a b/weir' bench worker --stdio]";
        assert_eq!(arguments, format!("[netns][exec][client-3][sh][-c]{command}"));
    }

    #[test]
    fn more_machines_than_the_network_has_are_refused() {
        let error = Network::default().machines(251).unwrap_err().to_string();
        assert!(error.contains("251 client machines"), "{error}");
        assert_eq!(Network { machines: 3 }.machines(2).unwrap(), ["client-1", "client-2"]);
    }
}
