//! Test support: etcd in memory, and records.

use crate::keys::Keys;
use crate::write::{Guard, Operation, Writes};
use std::collections::BTreeMap;
use weir_cluster::{
    Change, GatewayId, Life, MachineId, Records, Registration, SessionId, Transaction, Version,
};

/// The rows of an etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Etcd(pub(crate) BTreeMap<String, String>);

impl Etcd {
    /// Carries a transaction out if its guards hold; whether they did.
    pub(crate) fn carry_out(&mut self, writes: &Writes) -> bool {
        let holds = |guard: &Guard| match guard {
            Guard::Is { key, value } => self.0.get(key) == Some(value),
            Guard::Absent { key } => !self.0.contains_key(key),
        };
        let hold = writes.guards.iter().all(holds);
        for operation in writes.operations.iter().filter(|_| hold) {
            match operation {
                Operation::Put { key, value } => {
                    self.0.insert(key.clone(), value.clone());
                }
                Operation::Delete { key } => {
                    self.0.remove(key);
                }
            }
        }
        hold
    }
}

/// An etcd that has the rows of `records`, which are one change of none.
pub(crate) fn etcd(keys: &Keys, records: &Records) -> Etcd {
    let (mut store, none) = (Etcd::default(), Records::default());
    let gateways: Vec<Change> = records
        .gateways
        .iter()
        .filter_map(|(gateway, row)| Some(registered(gateway.0, row.member()?.number)))
        .collect();
    let [change] = gateways.as_slice() else { panic!("records of one gateway") };
    let (writer, absent) = (None, None);
    let first = Transaction { generation: none.generation, writer, absent, change: change.clone() };
    assert!(store.carry_out(&Writes::of(keys, &none, &first).unwrap()));
    store
}

pub(crate) fn life(gateway: u16, number: u32) -> Life {
    Life { gateway: GatewayId(gateway), number }
}

/// A life becomes a member.
pub(crate) fn registered(gateway: u16, number: u32) -> Change {
    Change::Register(Registration {
        life: life(gateway, number),
        machine: MachineId(u64::from(gateway) << 56 | 0xab),
        speaks: Version::CURRENT,
        sessions: vec![SessionId {
            address: ([10, 0, 0, 1], 0).into(),
            nonce: number * 1000 + u32::from(gateway),
        }],
    })
}
