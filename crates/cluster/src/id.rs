//! Numbers that name things in a cluster. They carry no behaviour.

use core::fmt;

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
    /// A session with Ceph that can be blocklisted.
    SessionId(u64)
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
    /// The version that this program writes, and the newest that it understands.
    pub const CURRENT: Self = Self(1);
}

impl Generation {
    /// The generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
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
