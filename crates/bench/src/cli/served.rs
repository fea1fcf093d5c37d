//! A Weir server, as its API describes it.

use std::net::SocketAddr;
use weir_load::target::{Target, Targets};

/// A Weir server that the user named beside the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Where it listens for NFS and SMB; an unspecified address means all of the machine.
    pub addresses: Vec<SocketAddr>,
    /// Memory of its machine in bytes, if it is known.
    pub memory_bytes: Option<u64>,
}

impl Served {
    /// Are all targets on this server?
    pub(super) fn has_all(&self, targets: &Targets) -> bool {
        targets.iter().all(|(_, target)| self.is(target))
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::target::NfsTarget;

    #[test]
    fn a_target_is_the_server_if_that_listens_there() {
        let target = Target::Nfs(NfsTarget::parse("nfs://192.0.2.1:2050/vol").unwrap());
        let served = |address: &str| Served {
            addresses: vec![address.parse().unwrap()],
            memory_bytes: None,
        };
        assert!(served("192.0.2.1:2050").is(&target) && served("0.0.0.0:2050").is(&target));
        assert!(!served("192.0.2.2:2050").is(&target) && !served("0.0.0.0:2049").is(&target));
        assert!(!served("0.0.0.0:2050").is(&Target::Path("/mnt".into())));
    }
}
