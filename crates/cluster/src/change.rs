//! Changes of the [records](Records): transactions of etcd, as data.
//!
//! Every change is guarded by the generation and makes a new one, so it happens upon exactly the
//! records that its author saw, or not at all. Not here: the decision to make a change.

use crate::id::{Barrier, GatewayId, Generation, GroupId, Life, MachineId, SessionId, Version};
use crate::records::{Fence, Gateway, Group, Home, Member, Records, Standing, View};
use alloc::vec::Vec;

/// A change with its guards. etcd carries it out if all of them hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The records have this generation. The change makes the next one.
    pub generation: Generation,
    /// The row that lives as long as a lease is there for this life.
    pub writer: Option<Life>,
    /// No row that lives as long as a lease is there for this gateway.
    pub absent: Option<GatewayId>,
    /// The change. The rows to write are those that [`Records::with`] alters.
    pub change: Change,
}

/// A change of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new life becomes a member. Earlier lives of its gateway have ended.
    Register(Registration),
    /// A life is no longer a member, for good: its groups are to get new homes.
    Condemn {
        /// The life.
        life: Life,
        /// Its process is known to have ended.
        gone: bool,
    },
    /// The blocklist of an ended life's sessions is in force.
    InForce {
        /// The life.
        life: Life,
        /// The epoch from which on it is.
        barrier: Barrier,
    },
    /// The processes of a life and of all earlier ones of its gateway have ended.
    Gone {
        /// The life.
        life: Life,
    },
    /// An ended life is forgotten.
    Forget {
        /// The life.
        life: Life,
    },
    /// Groups get these homes.
    Homes(Vec<(GroupId, Home)>),
    /// A gateway is to be drained, or no longer.
    Drain {
        /// The gateway.
        gateway: GatewayId,
        /// Whether it is.
        draining: bool,
    },
    /// A group is created, or its weight changes.
    Place {
        /// The group.
        group: GroupId,
        /// The weight.
        weight: u64,
    },
    /// A group is deleted.
    Withdraw {
        /// The group.
        group: GroupId,
    },
    /// A gateway that is out leaves the cluster.
    Remove {
        /// The gateway.
        gateway: GatewayId,
    },
    /// All rows are written in this version from now on.
    Format(Version),
    /// Nothing but the generation changes: what was guarded by the one before cannot happen any
    /// more.
    Settle,
}

/// A life that becomes a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The life.
    pub life: Life,
    /// Its local state.
    pub machine: MachineId,
    /// The newest version that it understands.
    pub speaks: Version,
    /// Its sessions with Ceph.
    pub sessions: Vec<SessionId>,
}

#[cfg(test)]
impl Change {
    /// The registration of a life without sessions, on a machine with the number of its gateway.
    pub(crate) fn registers(life: Life) -> Self {
        let machine = MachineId(life.gateway.0.into());
        Self::Register(Registration { life, machine, speaks: Version(1), sessions: Vec::new() })
    }
}

impl Transaction {
    /// Do all guards hold in `view`?
    #[must_use]
    pub fn is_current(&self, view: &View) -> bool {
        self.generation == view.generation()
            && self.writer.is_none_or(|life| view.is_attached(life))
            && self.absent.is_none_or(|gateway| !view.attached.contains_key(&gateway))
    }
}

impl Records {
    /// The records after `change`. A part of it that names no row alters none.
    #[must_use]
    pub fn with(&self, change: &Change) -> Self {
        let mut next = self.clone();
        next.generation = self.generation.next();
        next.alter(change);
        next
    }

    fn alter(&mut self, change: &Change) {
        match change {
            Change::Register(registration) => self.register(registration),
            Change::Condemn { life, gone } => {
                if let Some(row) = self.gateways.get_mut(&life.gateway) {
                    row.retire(*gone);
                }
            }
            Change::InForce { life, barrier } => {
                for fence in self.fences_mut(*life).filter(|fence| fence.number == life.number) {
                    fence.in_force = Some(*barrier);
                }
            }
            Change::Gone { life } => {
                for fence in self.fences_mut(*life).filter(|fence| fence.number <= life.number) {
                    fence.gone = true;
                }
            }
            Change::Forget { life } => {
                if let Some(row) = self.gateways.get_mut(&life.gateway) {
                    row.fences.retain(|fence| fence.number != life.number);
                }
            }
            Change::Homes(homes) => {
                for (group, home) in homes {
                    if let Some(group) = self.groups.get_mut(group) {
                        group.home = *home;
                    }
                }
            }
            Change::Drain { gateway, draining } => {
                if let Some(row) = self.gateways.get_mut(gateway) {
                    row.draining = *draining;
                }
            }
            Change::Place { group, weight } => {
                let new = Group { weight: *weight, home: Home::Nowhere };
                self.groups.entry(*group).or_insert(new).weight = *weight;
            }
            Change::Withdraw { group } => {
                self.groups.remove(group);
            }
            Change::Remove { gateway } => {
                self.gateways.remove(gateway);
            }
            Change::Format(version) => self.format = *version,
            Change::Settle => {}
        }
    }

    fn register(&mut self, new: &Registration) {
        let generation = self.generation;
        let row = self.gateways.entry(new.life.gateway).or_insert_with(|| Gateway {
            machine: new.machine,
            standing: Standing::Out { number: 0 },
            draining: false,
            fences: Vec::new(),
        });
        let since = row.member().map_or(generation, |member| member.since);
        row.retire(true);
        for fence in &mut row.fences {
            fence.gone = true;
        }
        row.machine = new.machine;
        row.standing = Standing::In(Member {
            number: new.life.number,
            since,
            speaks: new.speaks,
            sessions: new.sessions.clone(),
        });
    }

    fn fences_mut(&mut self, life: Life) -> impl Iterator<Item = &mut Fence> {
        self.gateways.get_mut(&life.gateway).into_iter().flat_map(|row| &mut row.fences)
    }
}

impl Gateway {
    /// Ends the membership of the present life, if there is one.
    fn retire(&mut self, gone: bool) {
        if let Standing::In(member) = &mut self.standing {
            let (number, sessions) = (member.number, core::mem::take(&mut member.sessions));
            self.fences.push(Fence { number, sessions, in_force: None, gone });
            self.standing = Standing::Out { number };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: GatewayId = GatewayId(1);

    fn session(nonce: u32) -> SessionId {
        SessionId { address: ([10, 0, 0, 1], 0).into(), nonce }
    }

    fn register(number: u32) -> Change {
        Change::Register(Registration {
            life: Life { gateway: A, number },
            machine: MachineId(7),
            speaks: Version(1),
            sessions: [session(number)].into(),
        })
    }

    #[test]
    fn a_life_that_replaces_a_member_is_one_since_the_same_generation() {
        let first = Records::default().with(&register(1));
        let second = first.with(&Change::Settle).with(&register(2));
        let since = |records: &Records| records.gateways[&A].member().unwrap().since;
        assert_eq!((since(&first), since(&second)), (Generation(1), Generation(1)));
        let condemned =
            first.with(&Change::Condemn { life: Life { gateway: A, number: 1 }, gone: false });
        assert_eq!(condemned.gateways[&A].standing, Standing::Out { number: 1 });
        assert_eq!(since(&condemned.with(&register(2))), Generation(3), "there was a gap");
    }

    #[test]
    fn sessions_of_ended_lives_stand_in_fences_until_they_are_forgotten() {
        let life = |number| Life { gateway: A, number };
        let records = Records::default().with(&register(1));
        let records = records.with(&Change::Condemn { life: life(1), gone: false });
        let fence = |records: &Records| records.gateways[&A].fences[0].clone();
        assert_eq!(fence(&records).sessions, [session(1)]);
        assert!(!fence(&records).gone);
        let records = records.with(&register(2));
        assert!(fence(&records).gone, "a later life of the same machine proves it");
        let records = records.with(&Change::InForce { life: life(1), barrier: Barrier(9) });
        assert_eq!(fence(&records).in_force, Some(Barrier(9)));
        assert_eq!(records.with(&Change::Forget { life: life(1) }).gateways[&A].fences, []);
    }

    #[test]
    fn a_transaction_holds_for_its_generation_its_writer_and_an_absent_gateway() {
        let life = Life { gateway: A, number: 1 };
        let mut view = View {
            records: Records::default().with(&register(1)).into(),
            attached: [(A, 1)].into(),
            ..View::default()
        };
        let mut transaction = Transaction {
            generation: Generation(1),
            writer: Some(life),
            absent: None,
            change: Change::Settle,
        };
        assert!(transaction.is_current(&view));
        transaction.absent = Some(A);
        assert!(!transaction.is_current(&view), "it is attached");
        view.attached.clear();
        assert!(!transaction.is_current(&view), "the writer has no lease");
        transaction.writer = None;
        assert!(transaction.is_current(&view));
        view.records = view.records.with(&Change::Settle).into();
        assert!(!transaction.is_current(&view), "the records have changed");
    }
}
