//! The names by which the processes of a cluster address each other. Not here: how they prove them.

use std::fmt;
use weir_cluster::GatewayId;

/// The part that a process has in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A gateway: it has lives, and gives promises.
    Server,
    /// The helper on a gateway's machine: it says whether a life of that gateway runs.
    Helper,
}

/// The name of a process: its role and its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The role.
    pub role: Role,
    /// The gateway, or that whose machine the helper is on.
    pub gateway: GatewayId,
}

impl Name {
    /// The name in a certificate.
    #[cfg(feature = "net")]
    pub(crate) fn in_certificate(self) -> String {
        match self.role {
            Role::Server => format!("gateway-{}", self.gateway),
            Role::Helper => format!("helper-{}", self.gateway),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Role::Server => write!(f, "gateway {}", self.gateway),
            Role::Helper => write!(f, "the helper of gateway {}", self.gateway),
        }
    }
}
