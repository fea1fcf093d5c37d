//! A Weir server, as its API describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use weir_load::target::{Target, Targets};
use weir_results::Contract;

/// Asks the Weir server that the user named about itself and about the volumes of these names;
/// nothing if the user named none.
pub type Ask<'a> = dyn Fn(&BTreeSet<String>) -> Option<Served> + 'a;

/// A Weir server that the user named beside the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Where it listens for NFS and SMB; an unspecified address means all of the machine.
    pub addresses: Vec<SocketAddr>,
    /// Memory of its machine in bytes, if it is known.
    pub memory_bytes: Option<u64>,
    /// Contracts of the volumes that it has.
    pub contracts: Vec<Contract>,
}

impl Served {
    /// Are all targets on this server?
    pub(super) fn has_all(&self, targets: &Targets) -> bool {
        targets.iter().all(|(_, target)| self.is(target))
    }

    /// The contracts of the targets that are volumes of this server, by the name of the target.
    pub(super) fn contracts_of(&self, targets: &Targets) -> BTreeMap<String, Contract> {
        let of = |(name, target): (&str, &Target)| {
            let volume = volume(target).filter(|_| self.is(target))?;
            let contract = self.contracts.iter().find(|contract| contract.volume == volume)?;
            Some((name.to_owned(), contract.clone()))
        };
        targets.iter().filter_map(of).collect()
    }

    /// Is `target` this server? Ports decide where it listens at all addresses of its machine.
    fn is(&self, target: &Target) -> bool {
        let at = match target {
            Target::Nfs(nfs) => nfs.address,
            Target::Smb(smb) => smb.address,
            Target::Path(_) => return false,
        };
        self.addresses.iter().any(|own| {
            own.port() == at.port() && (own.ip() == at.ip() || own.ip().is_unspecified())
        })
    }
}

/// The names that the volumes of `targets` have if the server is a Weir server.
pub(super) fn volumes(targets: &Targets) -> BTreeSet<String> {
    targets.iter().filter_map(|(_, target)| volume(target)).map(str::to_owned).collect()
}

/// The volume of `target` on a Weir server: the first name of the export path, or the share.
fn volume(target: &Target) -> Option<&str> {
    match target {
        Target::Nfs(nfs) => nfs.export.split('/').find(|name| !name.is_empty()),
        Target::Smb(smb) => Some(&smb.share),
        Target::Path(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::target::{NfsTarget, SmbTarget};

    #[test]
    fn a_target_is_the_server_if_that_listens_there() {
        let target = Target::Nfs(NfsTarget::parse("nfs://192.0.2.1:2050/vol").unwrap());
        let served = |address: &str| Served {
            addresses: vec![address.parse().unwrap()],
            ..Served::default()
        };
        assert!(served("192.0.2.1:2050").is(&target) && served("0.0.0.0:2050").is(&target));
        assert!(!served("192.0.2.2:2050").is(&target) && !served("0.0.0.0:2049").is(&target));
        assert!(!served("0.0.0.0:2050").is(&Target::Path("/mnt".into())));
    }

    #[test]
    fn a_target_has_the_contract_of_its_volume_on_that_server() {
        let target = |url: &str| Target::Nfs(NfsTarget::parse(url).unwrap());
        let smb = Target::Smb(SmbTarget::parse("smb://u@192.0.2.1:4450/b/dir").unwrap());
        let targets: Targets = [
            ("one".to_owned(), target("nfs://192.0.2.1:2050/a/dir")),
            ("smb".to_owned(), smb),
            ("elsewhere".to_owned(), target("nfs://192.0.2.2:2050/a")),
            ("unknown".to_owned(), target("nfs://192.0.2.1:2050/c")),
        ]
        .into_iter()
        .collect();
        assert_eq!(volumes(&targets), ["a", "b", "c"].map(str::to_owned).into());
        let contract = |volume: &str| Contract { volume: volume.to_owned(), ..Contract::default() };
        let served = Served {
            addresses: ["192.0.2.1:2050", "192.0.2.1:4450"].map(|it| it.parse().unwrap()).into(),
            contracts: vec![contract("a"), contract("b")],
            ..Served::default()
        };
        let found = [("one", "a"), ("smb", "b")];
        let found = found.map(|(name, volume)| (name.to_owned(), contract(volume)));
        assert_eq!(served.contracts_of(&targets), found.into());
    }
}
