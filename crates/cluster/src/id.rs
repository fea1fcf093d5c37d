//! Numbers that name things in a cluster. They carry no behaviour.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($of:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $of);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A gateway of the cluster: a name that its processes have one after the other.
    GatewayId(u16)
}
number! {
    /// The unit that moves between gateways: volumes and addresses that belong together. The
    /// catalogue says which they are. Never used again after it is withdrawn.
    GroupId(u32)
}
number! {
    /// The directory of a gateway's local state, by a random number in it. The process of the
    /// gateway holds a lock on it, so of two lives with the same one the earlier has ended.
    MachineId(u64)
}
number! {
    /// An epoch of Ceph's map of OSDs. A client whose map is this new acts after a blocklist that
    /// is part of it.
    Barrier(u64)
}
number! {
    /// The number of the cluster's records in etcd: one more with each change.
    Generation(u64)
}
number! {
    /// A request of this life to etcd.
    RequestId(u64)
}
number! {
    /// A version of the records in etcd and of the messages between gateways.
    Version(u16)
}

impl Version {
    /// The version that this program writes, and the newest that it understands. A version has one
    /// form of every record and message, and one format of the catalogue.
    pub const CURRENT: Self = Self(1 + Self::AHEAD);
    /// One in a program that was built with `WEIR_NEXT_VERSION=1` in the environment, else none:
    /// the campaign of upgrades needs a version after this one before there is any. It differs
    /// from this one in its numbers alone. No option of a program that runs leads here.
    pub const AHEAD: u16 = match option_env!("WEIR_NEXT_VERSION") {
        Some(text) if matches!(text.as_bytes(), b"1") => 1,
        _ => 0,
    };
}

impl Generation {
    /// The generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A session with Ceph, by the address that Ceph's monitors blocklist: `IP:PORT/NONCE`, such as
/// `10.0.1.2:0/3710147553`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// The address of the client. A client that accepts no connections has port 0.
    pub address: SocketAddr,
    /// The number that tells clients of one machine apart.
    pub nonce: u32,
}

/// Text that is no address of a session with Ceph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address of a session with Ceph has the form IP:PORT/NONCE")]
pub struct InvalidSession;

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.nonce)
    }
}

impl FromStr for SessionId {
    type Err = InvalidSession;

    fn from_str(text: &str) -> Result<Self, InvalidSession> {
        let (address, nonce) = text.split_once('/').ok_or(InvalidSession)?;
        let address = address.parse().map_err(|_| InvalidSession)?;
        let nonce = nonce.parse().map_err(|_| InvalidSession)?;
        Ok(Self { address, nonce })
    }
}

/// One process of a gateway, from its start to its end. Its number is greater than those of all
/// earlier lives of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Life {
    /// The gateway.
    pub gateway: GatewayId,
    /// The number of the life, from 1.
    pub number: u32,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gateway {}, life {}", self.gateway, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_session_is_read_as_it_is_written() {
        for text in ["10.0.1.2:0/3710147553", "[fd00::2]:0/7"] {
            assert_eq!(text.parse::<SessionId>().unwrap().to_string(), text);
        }
        for text in ["", "10.0.1.2:0", "10.0.1.2/7", "10.0.1.2:0/4294967296", "host:0/7"] {
            assert_eq!(text.parse::<SessionId>(), Err(InvalidSession), "{text:?}");
        }
    }
}
