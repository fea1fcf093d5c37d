//! The checks of a step that contact no target: a dry run, the checks before a run and the run
//! itself refuse the same.

use super::{net, path, share};
use crate::error::BenchError;
use crate::target::{Target, Targets};
use crate::workload::Workload;
use std::net::{IpAddr, UdpSocket};

/// Checks that `loads` make sense, alone, together and on their targets. Nothing is contacted; of a
/// path, the list of mounts of this machine is read.
///
/// # Errors
/// [`BenchError`] says which setting to change.
pub fn check_step(targets: &Targets, loads: &[Workload]) -> Result<(), BenchError> {
    for load in loads {
        load.check()?;
        match targets.of(load)? {
            Target::Nfs(_) | Target::Smb(_) => net::check(load)?,
            Target::Path(target) => path::check(target, load)?,
        }
    }
    share::check(loads)
}

/// Checks that the source addresses of clients belong to this machine, which applies the loads.
///
/// # Errors
/// [`BenchError::Target`] names the address.
pub fn check_sources(targets: &Targets) -> Result<(), BenchError> {
    let own = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
    for (_, target) in targets.iter() {
        let sources = match target {
            Target::Nfs(nfs) => nfs.sources.as_slice(),
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
