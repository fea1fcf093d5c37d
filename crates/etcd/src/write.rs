//! Changes of the records as transactions of etcd.

use crate::keys::{Key, Keys};
use crate::row;
use std::collections::BTreeMap;
use weir_cluster::{GatewayId, Generation, Life, Records, Transaction};

/// Operations that etcd allows in one transaction, unless it is configured otherwise
/// (`--max-txn-ops`).
pub const OPERATIONS_MAX: usize = 128;

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The row has this value.
    Is {
        /// Its key.
        key: String,
        /// The value.
        value: String,
    },
    /// There is no such row.
    Absent {
        /// Its key.
        key: String,
    },
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Write a row.
    Put {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Remove a row.
    Delete {
        /// Its key.
        key: String,
    },
}

/// A transaction: the operations happen together, if all guards hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// The guards.
    pub guards: Vec<Guard>,
    /// The operations.
    pub operations: Vec<Operation>,
}

/// A change that needs more operations than etcd allows in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a change of {0} rows; etcd allows {OPERATIONS_MAX} in a transaction")]
pub struct TooMany(pub usize);

impl Writes {
    /// The transaction that carries `transaction` out upon `records`, which have its generation.
    ///
    /// # Errors
    /// It would alter more rows than etcd allows.
    pub fn of(keys: &Keys, records: &Records, transaction: &Transaction) -> Result<Self, TooMany> {
        let next = records.with(&transaction.change);
        let mut guards = vec![generation_is(keys, transaction.generation)];
        guards.extend(transaction.writer.map(|life| attached(keys, life)));
        guards.extend(
            transaction.absent.map(|gateway| Guard::Absent { key: keys.text(Key::Life(gateway)) }),
        );
        let operations = altered(keys, records, &next);
        if operations.len() > OPERATIONS_MAX {
            return Err(TooMany(operations.len()));
        }
        Ok(Self { guards, operations })
    }

    /// The transaction that writes the row which lives as long as the lease of `life`, a member by
    /// `records`. The driver attaches the lease to the operation. It fails if the records have
    /// changed since, and may be tried again with the new ones.
    #[must_use]
    pub fn attach(keys: &Keys, records: &Records, life: Life) -> Self {
        let (key, value) = (keys.text(Key::Life(life.gateway)), life.number.to_string());
        Self {
            guards: vec![generation_is(keys, records.generation)],
            operations: vec![Operation::Put { key, value }],
        }
    }

    /// The unguarded write that `gateway` knows `generation`.
    #[must_use]
    pub fn acknowledge(keys: &Keys, gateway: GatewayId, generation: Generation) -> Self {
        let (key, value) = (keys.text(Key::Knows(gateway)), generation.0.to_string());
        Self { guards: Vec::new(), operations: vec![Operation::Put { key, value }] }
    }
}

/// The records have this generation. Before the first change there is no row of it.
fn generation_is(keys: &Keys, generation: Generation) -> Guard {
    let key = keys.text(Key::Generation);
    if generation == Generation::default() {
        Guard::Absent { key }
    } else {
        Guard::Is { key, value: generation.0.to_string() }
    }
}

fn attached(keys: &Keys, life: Life) -> Guard {
    Guard::Is { key: keys.text(Key::Life(life.gateway)), value: life.number.to_string() }
}

/// The rows that differ between two states of the records.
fn altered(keys: &Keys, before: &Records, after: &Records) -> Vec<Operation> {
    let put = |key, value| Operation::Put { key: keys.text(key), value };
    let mut operations = vec![put(Key::Generation, after.generation.0.to_string())];
    if after.format != before.format {
        operations.push(put(Key::Format, after.format.0.to_string()));
    }
    let format = after.format;
    let gateways = differences(&before.gateways, &after.gateways);
    operations.extend(gateways.map(|(gateway, row)| {
        let key = Key::Gateway(*gateway);
        match row {
            Some(row) => put(key, row::gateway_text(format, row)),
            None => Operation::Delete { key: keys.text(key) },
        }
    }));
    let groups = differences(&before.groups, &after.groups);
    operations.extend(groups.map(|(group, row)| {
        let key = Key::Group(*group);
        match row {
            Some(row) => put(key, row::group_text(format, *row)),
            None => Operation::Delete { key: keys.text(key) },
        }
    }));
    let ended = before.ended_in(after);
    operations
        .extend(ended.map(|gateway| Operation::Delete { key: keys.text(Key::Life(gateway)) }));
    // A gateway that has left knows nothing that is of use.
    let left = before.gateways.keys().filter(|gateway| !after.gateways.contains_key(gateway));
    operations
        .extend(left.map(|gateway| Operation::Delete { key: keys.text(Key::Knows(*gateway)) }));
    operations
}

/// The entries that are new or other in `after`, and those that are missing there.
fn differences<'a, K: Ord, V: PartialEq>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>)> {
    let new = after.iter().filter(|(key, row)| before.get(key) != Some(*row));
    let gone = before.keys().filter(|key| !after.contains_key(key));
    new.map(|(key, row)| (key, Some(row))).chain(gone.map(|key| (key, None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{etcd, life, registered};
    use weir_cluster::{Change, GroupId, Home};

    fn transaction(records: &Records, change: Change) -> Transaction {
        Transaction { generation: records.generation, writer: None, absent: None, change }
    }

    #[test]
    fn only_altered_rows_are_written() {
        let keys = Keys::new("a").unwrap();
        let records = Records::default();
        let first = transaction(&records, registered(1, 1));
        let writes = Writes::of(&keys, &records, &first).unwrap();
        let generation = "/weir/a/cluster/generation".to_owned();
        assert_eq!(writes.guards, [Guard::Absent { key: generation.clone() }]);
        assert_eq!(writes.operations.len(), 2, "{:?}", writes.operations);
        let records = records.with(&first.change);
        let place = transaction(&records, Change::Place { group: GroupId(4), weight: 9 });
        let writes = Writes::of(&keys, &records, &place).unwrap();
        assert_eq!(writes.guards, [Guard::Is { key: generation.clone(), value: "1".to_owned() }]);
        assert_eq!(
            writes.operations,
            [
                Operation::Put { key: generation, value: "2".to_owned() },
                Operation::Put {
                    key: "/weir/a/cluster/group/0000000004".to_owned(),
                    value: r#"{"version":1,"weight":9,"home":null}"#.to_owned(),
                },
            ]
        );
    }

    #[test]
    fn a_change_beyond_the_limit_of_etcd_is_refused() {
        let keys = Keys::new("a").unwrap();
        let mut records = Records::default();
        for group in 0..=128 {
            records = records.with(&Change::Place { group: GroupId(group), weight: 1 });
        }
        let home = Home::At { life: life(1, 1), came: weir_cluster::Came::New, to: None };
        let homes = |count| Change::Homes((0..count).map(|group| (GroupId(group), home)).collect());
        let most = Writes::of(&keys, &records, &transaction(&records, homes(127)));
        assert_eq!(most.unwrap().operations.len(), OPERATIONS_MAX);
        let more = Writes::of(&keys, &records, &transaction(&records, homes(128)));
        assert_eq!(more, Err(TooMany(129)));
    }

    #[test]
    fn guards_hold_for_the_writer_and_an_absent_gateway() {
        let keys = Keys::new("a").unwrap();
        let records = Records::default().with(&registered(1, 1));
        let mut store = etcd(&keys, &records);
        let mut guarded = transaction(&records, Change::Settle);
        guarded.writer = Some(life(1, 1));
        let writes = Writes::of(&keys, &records, &guarded).unwrap();
        assert!(!store.carry_out(&writes), "the writer has no lease");
        assert!(store.carry_out(&Writes::attach(&keys, &records, life(1, 1))));
        assert!(store.carry_out(&writes));
        assert!(!store.carry_out(&writes), "the generation is another");
        let records = records.with(&Change::Settle);
        guarded = Transaction {
            absent: Some(GatewayId(1)),
            writer: None,
            ..transaction(&records, Change::Settle)
        };
        assert!(!store.carry_out(&Writes::of(&keys, &records, &guarded).unwrap()));
        assert!(!store.carry_out(&Writes::attach(&keys, &Records::default(), life(1, 2))));
    }

    #[test]
    fn the_row_of_a_life_goes_with_its_membership() {
        let keys = Keys::new("a").unwrap();
        let records = Records::default().with(&registered(1, 1));
        for ends in [registered(1, 2), Change::Condemn { life: life(1, 1), gone: true }] {
            let mut store = etcd(&keys, &records);
            assert!(store.carry_out(&Writes::attach(&keys, &records, life(1, 1))));
            let row = "/weir/a/cluster/life/00001";
            assert!(store.0.contains_key(row));
            let settle = transaction(&records, Change::Settle);
            assert!(store.carry_out(&Writes::of(&keys, &records, &settle).unwrap()));
            let settled = records.with(&Change::Settle);
            assert!(store.0.contains_key(row), "another change");
            let end = Writes::of(&keys, &settled, &transaction(&settled, ends)).unwrap();
            assert!(store.carry_out(&end) && !store.0.contains_key(row));
        }
    }

    #[test]
    fn what_a_removed_gateway_knew_goes_with_it() {
        let keys = Keys::new("a").unwrap();
        let records = Records::default().with(&registered(1, 1));
        let mut store = etcd(&keys, &records);
        assert!(store.carry_out(&Writes::acknowledge(&keys, GatewayId(1), Generation(1))));
        assert!(store.0.contains_key("/weir/a/cluster/knows/00001"));
        let remove = transaction(&records, Change::Remove { gateway: GatewayId(1) });
        assert!(store.carry_out(&Writes::of(&keys, &records, &remove).unwrap()));
        let left: Vec<&String> = store.0.keys().collect();
        assert_eq!(left, ["/weir/a/cluster/generation"]);
    }
}
