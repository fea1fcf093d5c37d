//! The state of the cluster as it stands in etcd, and as a gateway follows it.
//!
//! [`Records`] are the rows that only [changes](crate::Change) alter, guarded by their generation.
//! Beside them stand two things of each gateway: the row that lives as long as its lease, and the
//! generation that it last acknowledged. A [`View`] is all of this at one moment. Not here: how
//! rows are encoded.

use crate::id::{Barrier, GatewayId, Generation, GroupId, Life, MachineId, SessionId, Version};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The rows of the cluster that are guarded by their generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The version in which all rows are written.
    pub format: Version,
    /// The number of changes so far.
    pub generation: Generation,
    /// The gateways that have joined and are not removed.
    pub gateways: BTreeMap<GatewayId, Gateway>,
    /// The groups of volumes that have a home or are to get one.
    pub groups: BTreeMap<GroupId, Group>,
}

/// A gateway that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The local state that its lives have in common.
    pub machine: MachineId,
    /// Whether it is a member.
    pub standing: Standing,
    /// Its groups are to move to other gateways, and it gets no new ones.
    pub draining: bool,
    /// Its ended lives that are not forgotten yet, the earliest first.
    pub fences: Vec<Fence>,
}

/// Whether a gateway belongs to the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A life of it is a member.
    In(Member),
    /// Its last life, of this number, was condemned.
    Out {
        /// The number of the life.
        number: u32,
    },
}

/// The life of a gateway that is a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The number of the life.
    pub number: u32,
    /// The generation since which lives of this gateway have been members without a gap.
    pub since: Generation,
    /// The newest version that this life understands.
    pub speaks: Version,
    /// Its sessions with Ceph. It uses no session that does not stand here.
    pub sessions: Vec<SessionId>,
}

/// A life that has ended, or whose end was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The number of the life.
    pub number: u32,
    /// The sessions that it had with Ceph.
    pub sessions: Vec<SessionId>,
    /// Since when the blocklist of its sessions is in force. Until then its groups have no new
    /// home.
    pub in_force: Option<Barrier>,
    /// Its process is known to have ended. Until then the blocklist is renewed.
    pub gone: bool,
}

/// Volumes and addresses that have one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The sum of the volumes' contracts, in any unit that all groups have in common.
    pub weight: u64,
    /// The home.
    pub home: Home,
}

/// The home of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// None yet: the group is new.
    Nowhere,
    /// A life of a gateway, which alone may serve the group.
    At {
        /// The life.
        life: Life,
        /// How the group came there.
        came: Came,
        /// The life that the group is to move to.
        to: Option<Life>,
    },
}

/// How a group came to its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It had none before.
    New,
    /// The life before gave it over with its locks and replies. No grace period.
    Handed {
        /// The life before.
        from: Life,
    },
    /// The life before was condemned, and the blocklist of its sessions is in force from this epoch
    /// on. A grace period begins.
    Taken {
        /// The life before.
        from: Life,
        /// The epoch that the new home's own sessions have to know before they are used for it.
        barrier: Barrier,
    },
}

/// Everything about the cluster that stands in etcd at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The revision of etcd, which grows with every write.
    pub revision: u64,
    /// The guarded rows.
    pub records: Arc<Records>,
    /// The rows that live as long as a lease: the number of the life that attached it.
    pub attached: BTreeMap<GatewayId, u32>,
    /// For each gateway, a generation that it knew when it said so.
    pub acknowledged: BTreeMap<GatewayId, Generation>,
}

impl Gateway {
    /// The number of its latest life.
    #[must_use]
    pub const fn number(&self) -> u32 {
        match &self.standing {
            Standing::In(member) => member.number,
            Standing::Out { number } => *number,
        }
    }

    /// Its life that is a member.
    #[must_use]
    pub const fn member(&self) -> Option<&Member> {
        match &self.standing {
            Standing::In(member) => Some(member),
            Standing::Out { .. } => None,
        }
    }
}

impl Records {
    /// The gateways whose life is a member here and no longer in `next`. The row that lives as long
    /// as its lease is removed with that change, so that nothing which is guarded by the row is
    /// carried out later.
    pub fn ended_in<'a>(&'a self, next: &'a Self) -> impl Iterator<Item = GatewayId> + 'a {
        let number = |row: &Gateway| row.member().map(|member| member.number);
        let ended = move |(gateway, row): &(&GatewayId, &Gateway)| {
            let after = next.gateways.get(gateway).and_then(number);
            number(row).is_some() && number(row) != after
        };
        self.gateways.iter().filter(ended).map(|(gateway, _)| *gateway)
    }
}

impl Home {
    /// The life that serves the group, and the one that it is to move to.
    #[must_use]
    pub const fn at(&self) -> Option<(Life, Option<Life>)> {
        match self {
            Self::Nowhere => None,
            Self::At { life, to, .. } => Some((*life, *to)),
        }
    }
}

impl View {
    /// The generation of the guarded rows.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.records.generation
    }

    /// The life of `gateway` that is a member.
    #[must_use]
    pub fn member(&self, gateway: GatewayId) -> Option<&Member> {
        self.records.gateways.get(&gateway)?.member()
    }

    /// The members.
    pub fn members(&self) -> impl Iterator<Item = (Life, &Member)> {
        self.records.gateways.iter().filter_map(|(&gateway, row)| {
            let member = row.member()?;
            Some((Life { gateway, number: member.number }, member))
        })
    }

    /// Is `life` a member?
    #[must_use]
    pub fn is_member(&self, life: Life) -> bool {
        self.member(life.gateway).is_some_and(|member| member.number == life.number)
    }

    /// Has `life` a lease?
    #[must_use]
    pub fn is_attached(&self, life: Life) -> bool {
        self.attached.get(&life.gateway) == Some(&life.number)
    }

    /// The members that have leases, in the order of their gateways.
    pub fn live(&self) -> impl Iterator<Item = Life> {
        self.members().map(|(life, _)| life).filter(move |life| self.is_attached(*life))
    }

    /// The ended lives that are not forgotten.
    pub fn fences(&self) -> impl Iterator<Item = (Life, &Fence)> {
        self.records.gateways.iter().flat_map(|(&gateway, row)| {
            let life = move |fence: &Fence| Life { gateway, number: fence.number };
            row.fences.iter().map(move |fence| (life(fence), fence))
        })
    }

    /// The fence of `life`.
    #[must_use]
    pub fn fence(&self, life: Life) -> Option<&Fence> {
        let row = self.records.gateways.get(&life.gateway)?;
        row.fences.iter().find(|fence| fence.number == life.number)
    }

    /// Whether `life` was condemned, replaced by a later one, or removed.
    #[must_use]
    pub fn is_over(&self, life: Life) -> bool {
        let row = self.records.gateways.get(&life.gateway);
        row.is_some_and(|row| row.number() >= life.number) && !self.is_member(life)
    }
}
