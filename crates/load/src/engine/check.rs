//! The checks of a step that contact no target: a dry run, the checks before a run and the run
//! itself refuse the same.

use super::net::{self, PRIVILEGED, Pair};
use super::{path, share};
use crate::error::BenchError;
use crate::target::{Target, Targets};
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};

/// Checks that `loads` make sense, alone, together and on their targets. Nothing is contacted; of a
/// path, the list of mounts of this machine is read.
///
/// # Errors
/// [`BenchError`] says which setting to change.
pub fn check_step(targets: &Targets, loads: &[Workload]) -> Result<(), BenchError> {
    let mut privileged = BTreeMap::new();
    for load in loads {
        load.check()?;
        match targets.of(load)? {
            Target::Nfs(target) => {
                net::check(load)?;
                if target.resvport {
                    add(&mut privileged, net::pairs(load, &target.addresses()));
                }
            }
            Target::Smb(_) => net::check(load)?,
            Target::Path(target) => path::check(target, load)?,
        }
    }
    check_ports(&privileged)?;
    share::check(loads)
}

fn add(sum: &mut BTreeMap<Pair, u64>, connections: BTreeMap<Pair, u64>) {
    for (pair, count) in connections {
        *sum.entry(pair).or_default() += count;
    }
}

/// Source ports that the connections of the load leave to those that make and remove its files.
const SESSIONS: u64 = 8;

/// Checks that there are enough [`PRIVILEGED`] source ports for the connections. Processes that
/// apply parts of a load are checked each by itself.
fn check_ports(connections: &BTreeMap<Pair, u64>) -> Result<(), BenchError> {
    let ports = (PRIVILEGED.count() as u64).saturating_sub(SESSIONS);
    match connections.iter().max_by_key(|(_, count)| **count) {
        Some(((source, address), count)) if *count > ports => {
            let from = source.map_or_else(|| "this machine".to_owned(), |ip| ip.to_string());
            Err(BenchError::Target(format!(
                "{count} connections from {from} to {address} need as many source ports, but \
                 resvport leaves them {ports} (of {} to {}): use fewer connections, or more \
                 addresses with --source",
                PRIVILEGED.start(),
                PRIVILEGED.end()
            )))
        }
        _ => Ok(()),
    }
}

/// Checks that the source addresses of clients belong to this machine, which applies the loads, and
/// that this process may use their ports.
///
/// # Errors
/// [`BenchError::Target`] names the address, or the missing privilege.
pub fn check_sources(targets: &Targets) -> Result<(), BenchError> {
    let own = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
    for (_, target) in targets.iter() {
        let sources = match target {
            Target::Nfs(nfs) => {
                if nfs.resvport {
                    net::check_privileged()?;
                }
                nfs.sources.as_slice()
            }
            Target::Smb(smb) => smb.sources.as_slice(),
            Target::Path(_) => &[],
        };
        if let Some(foreign) = sources.iter().find(|ip| !own(ip)) {
            return Err(BenchError::Target(format!(
                "the source address {foreign} does not belong to this machine: add it to an \
                 interface (ip address add), or change --source"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::NfsTarget;

    #[test]
    fn sources_must_be_addresses_of_this_machine() {
        let with = |source: &str| {
            let sources = vec![source.parse().unwrap()];
            let address = "192.0.2.1:2049".parse().unwrap();
            let target = NfsTarget { sources, ..NfsTarget::new(address, "/vol") };
            check_sources(&Target::Nfs(target).into())
        };
        with("127.0.0.1").unwrap();
        let error = with("192.0.2.77").unwrap_err().to_string();
        assert!(error.contains("192.0.2.77") && error.contains("--source"), "{error}");
    }

    #[test]
    fn more_connections_than_privileged_ports_are_refused_for_each_source_address() {
        let address = "192.0.2.1:2049".parse().unwrap();
        let target = |sources: &[&str]| NfsTarget {
            resvport: true,
            sources: sources.iter().map(|source| source.parse().unwrap()).collect(),
            ..NfsTarget::new(address, "/vol")
        };
        let load = Workload { jobs: 400, clients: 40, connections: 10, ..Workload::default() };
        let check = |target: &NfsTarget, loads: &[Workload]| {
            check_step(&Target::Nfs(target.clone()).into(), loads)
        };
        let error = check(&target(&[]), std::slice::from_ref(&load)).unwrap_err().to_string();
        assert!(error.contains("400 connections from this machine to 192.0.2.1:2049"), "{error}");
        assert!(error.contains("leaves them 351 (of 665 to 1023)"), "{error}");
        let two = target(&["192.0.2.7", "192.0.2.8"]);
        check(&two, std::slice::from_ref(&load)).unwrap();
        check(&NfsTarget { resvport: false, ..target(&[]) }, std::slice::from_ref(&load)).unwrap();
        let other = Workload { directory: "other".to_owned(), ..load.clone() };
        let error = check(&two, &[load, other]).unwrap_err().to_string();
        assert!(error.contains("400 connections from 192.0.2.8"), "{error}");
    }

    #[test]
    fn what_no_connection_can_carry_is_refused_before_anything_is_contacted() {
        let target = Target::Nfs(NfsTarget::new("192.0.2.1:2049".parse().unwrap(), "/vol"));
        let load = Workload { jobs: 4, depth: 2000, ..Workload::default() };
        let check = |load: Workload| check_step(&target.clone().into(), &[load]);
        let error = check(load.clone()).unwrap_err().to_string();
        assert!(error.contains("8000 requests in flight on one connection"), "{error}");
        check(Workload { connections: 4, ..load.clone() }).unwrap();
        let elsewhere = Workload { target: "b".to_owned(), depth: 1, ..load };
        assert!(check(elsewhere).unwrap_err().to_string().contains("--target b="));
    }
}
