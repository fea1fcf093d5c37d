//! Rows of etcd as records: all of them at first, then each one that a watch tells of.

use crate::keys::{Key, Keys};
use crate::row::{self, Fault};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_cluster::timing::{GATEWAYS_MAX, GROUPS_MAX};
use weir_cluster::{GatewayId, Generation, Records, Version, View};

/// A row that is refused, and why. Nothing of it is taken over.
#[derive(Debug, thiserror::Error)]
#[error("the row {key} of etcd cannot be used: {reason}")]
pub struct RowError {
    key: String,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("it is no row of a cluster of Weir; remove it if nothing else needs it")]
    Foreign,
    #[error("the cluster has as many rows of this kind as there may be")]
    TooMany,
    #[error("{0}")]
    Value(#[from] Fault),
}

impl RowError {
    /// Is the row refused because it is of a newer version? Then the cluster was upgraded to a
    /// version that this program is not of, and the row is whole.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self.reason, Reason::Value(Fault::Newer(_)))
    }
}

/// The rows of a cluster as far as they were read.
#[derive(Clone, Debug)]
pub struct Rows {
    keys: Keys,
    records: Records,
    attached: BTreeMap<GatewayId, u32>,
    acknowledged: BTreeMap<GatewayId, Generation>,
}

impl Rows {
    /// No rows yet, of the cluster with these keys.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            records: Records::default(),
            attached: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// Takes a row over: its value, or none if it was removed.
    ///
    /// # Errors
    /// The row is foreign, damaged, of a newer version, or one too many.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), RowError> {
        let refused = |reason| {
            // A key may be anything that somebody wrote.
            let key = String::from_utf8_lossy(key).escape_debug().take(KEY_CHARS_MAX).collect();
            RowError { key, reason }
        };
        let known = self.keys.parse(key).ok_or_else(|| refused(Reason::Foreign))?;
        match value {
            Some(value) => self.write(known, value).map_err(refused),
            None => {
                self.remove(known);
                Ok(())
            }
        }
    }

    fn write(&mut self, key: Key, value: &[u8]) -> Result<(), Reason> {
        match key {
            Key::Generation => self.records.generation = Generation(row::number(value)?),
            Key::Format => {
                let format = u16::try_from(row::number(value)?);
                let format = format.map_err(|_| Fault::Damaged("it is no version".to_owned()))?;
                self.records.format = Version(format);
            }
            Key::Gateway(gateway) => {
                let row = row::gateway(value)?;
                let gateways = &mut self.records.gateways;
                room(gateways, &gateway, GATEWAYS_MAX)?;
                gateways.insert(gateway, row);
            }
            Key::Group(group) => {
                let row = row::group(value)?;
                let groups = &mut self.records.groups;
                room(groups, &group, GROUPS_MAX)?;
                groups.insert(group, row);
            }
            Key::Life(gateway) => {
                let number = u32::try_from(row::number(value)?);
                let number = number.map_err(|_| Fault::Damaged("it is no life".to_owned()))?;
                room(&self.attached, &gateway, GATEWAYS_MAX)?;
                self.attached.insert(gateway, number);
            }
            Key::Knows(gateway) => {
                let generation = Generation(row::number(value)?);
                room(&self.acknowledged, &gateway, GATEWAYS_MAX)?;
                self.acknowledged.insert(gateway, generation);
            }
        }
        Ok(())
    }

    fn remove(&mut self, key: Key) {
        match key {
            Key::Generation => self.records.generation = Generation::default(),
            Key::Format => self.records.format = Version::default(),
            Key::Gateway(gateway) => drop(self.records.gateways.remove(&gateway)),
            Key::Group(group) => drop(self.records.groups.remove(&group)),
            Key::Life(gateway) => drop(self.attached.remove(&gateway)),
            Key::Knows(gateway) => drop(self.acknowledged.remove(&gateway)),
        }
    }

    /// The state that the rows of one revision of etcd are.
    #[must_use]
    pub fn view(&self, revision: u64) -> View {
        View {
            revision,
            records: Arc::new(self.records.clone()),
            attached: self.attached.clone(),
            acknowledged: self.acknowledged.clone(),
        }
    }
}

/// Characters of a key that an error shows.
const KEY_CHARS_MAX: usize = 200;

/// Is there room for the row `key`?
fn room<K: Ord, V>(rows: &BTreeMap<K, V>, key: &K, most: usize) -> Result<(), Reason> {
    if rows.len() < most || rows.contains_key(key) { Ok(()) } else { Err(Reason::TooMany) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Etcd, life, registered};
    use crate::write::Writes;
    use proptest::prelude::*;
    use weir_cluster::{Barrier, Came, Change, GroupId, Home, Transaction};

    fn read(keys: &Keys, store: &Etcd) -> Rows {
        let mut rows = Rows::new(keys.clone());
        for (key, value) in &store.0 {
            rows.take(key.as_bytes(), Some(value.as_bytes())).unwrap();
        }
        rows
    }

    fn homes() -> impl Strategy<Value = Home> {
        let lives = || (0_u16..4, 1_u32..5).prop_map(|(gateway, number)| life(gateway, number));
        let came = prop_oneof![
            Just(Came::New),
            lives().prop_map(|from| Came::Handed { from }),
            (lives(), any::<u64>())
                .prop_map(|(from, barrier)| Came::Taken { from, barrier: Barrier(barrier) }),
        ];
        (lives(), came, proptest::option::of(lives())).prop_map(|(life, came, to)| Home::At {
            life,
            came,
            to,
        })
    }

    fn changes() -> impl Strategy<Value = Change> {
        let gateway = || (0_u16..4).prop_map(GatewayId);
        let group = || (0_u32..6).prop_map(GroupId);
        let lives = || (0_u16..4, 1_u32..5).prop_map(|(gateway, number)| life(gateway, number));
        prop_oneof![
            (0_u16..4, 1_u32..5).prop_map(|(gateway, number)| registered(gateway, number)),
            (lives(), any::<bool>()).prop_map(|(life, gone)| Change::Condemn { life, gone }),
            (lives(), any::<u64>())
                .prop_map(|(life, barrier)| Change::InForce { life, barrier: Barrier(barrier) }),
            lives().prop_map(|life| Change::Gone { life }),
            lives().prop_map(|life| Change::Forget { life }),
            proptest::collection::vec((group(), homes()), 0..4).prop_map(Change::Homes),
            (gateway(), any::<bool>())
                .prop_map(|(gateway, draining)| Change::Drain { gateway, draining }),
            (group(), any::<u64>()).prop_map(|(group, weight)| Change::Place { group, weight }),
            group().prop_map(|group| Change::Withdraw { group }),
            gateway().prop_map(|gateway| Change::Remove { gateway }),
            Just(Change::Format(Version::CURRENT)),
            Just(Change::Settle),
        ]
    }

    proptest! {
        #[test]
        fn rows_follow_the_records_change_by_change(
            changes in proptest::collection::vec(changes(), 1..30),
        ) {
            let keys = Keys::new("a").unwrap();
            let (mut records, mut store) = (Records::default(), Etcd::default());
            let mut watched = Rows::new(keys.clone());
            for change in changes {
                let full = |row: &weir_cluster::Gateway| {
                    row.fences.len() >= weir_cluster::timing::FENCES_MAX
                };
                if records.gateways.values().any(full) {
                    break;
                }
                let (generation, writer, absent) = (records.generation, None, None);
                let transaction = Transaction { generation, writer, absent, change };
                let writes = Writes::of(&keys, &records, &transaction).unwrap();
                prop_assert!(store.carry_out(&writes));
                records = records.with(&transaction.change);
                for operation in &writes.operations {
                    let (key, value) = match operation {
                        crate::Operation::Put { key, value } => (key, Some(value.as_bytes())),
                        crate::Operation::Delete { key } => (key, None),
                    };
                    watched.take(key.as_bytes(), value).unwrap();
                }
                prop_assert_eq!(&*watched.view(1).records, &records);
                prop_assert_eq!(read(&keys, &store).view(1), watched.view(1));
            }
        }

        #[test]
        fn no_value_is_misread(value in ".{0,40}", key in 0_usize..6) {
            let below = ["generation", "format", "gateway/00001", "group/0000000001", "life/00001", "knows/00001"];
            let mut rows = Rows::new(Keys::new("a").unwrap());
            let before = rows.view(1);
            let key = format!("/weir/a/cluster/{}", below[key]);
            if rows.take(key.as_bytes(), Some(value.as_bytes())).is_err() {
                prop_assert_eq!(rows.view(1), before);
            }
        }
    }

    fn refused(key: &str, value: &str) -> String {
        let mut rows = Rows::new(Keys::new("a").unwrap());
        rows.take(key.as_bytes(), Some(value.as_bytes())).unwrap_err().to_string()
    }

    #[test]
    fn foreign_and_damaged_rows_are_refused_by_name() {
        let foreign = refused("/weir/a/cluster/else", "1");
        assert!(
            foreign.contains("/weir/a/cluster/else") && foreign.contains("no row"),
            "{foreign}"
        );
        for (key, value, word) in [
            ("gateway/00001", "{", "EOF"),
            ("gateway/00001", r#"{"version":1}"#, "missing field"),
            ("gateway/00001", r#"{"version":9,"x":1}"#, "install a newer version"),
            ("group/0000000001", r#"{"version":1,"weight":-1,"home":null}"#, "invalid value"),
            ("group/0000000001", r#"{"version":1,"weight":1}"#, "missing field `home`"),
            (
                "group/0000000001",
                r#"{"version":1,"weight":1,"home":null,"later":1}"#,
                "unknown field `later`",
            ),
            (
                "group/0000000001",
                r#"{"version":1,"weight":1,"home":{"at":{"gateway":1,"life":1,"x":1},"came":"new","to":null}}"#,
                "unknown field `x`",
            ),
            ("generation", "01", "no whole number"),
            ("generation", "{}", "no whole number"),
            ("format", "70000", "no version"),
            ("life/00001", "4294967296", "no life"),
        ] {
            let error = refused(&format!("/weir/a/cluster/{key}"), value);
            assert!(error.contains(key) && error.contains(word), "{error}");
        }
        let long = format!(r#"{{"version":1,"weight":1,"home":null{}}}"#, " ".repeat(64 << 10));
        assert!(refused("/weir/a/cluster/group/0000000001", &long).contains("bytes"));
    }

    #[test]
    fn a_row_of_a_gateway_stays_as_it_is() {
        let keys = Keys::new("a").unwrap();
        let records = Records::default().with(&registered(1, 1));
        let records = records.with(&Change::Condemn { life: life(1, 1), gone: false });
        let records = records.with(&registered(1, 2));
        let text = row::gateway_text(Version(1), &records.gateways[&GatewayId(1)]);
        let written = concat!(
            r#"{"version":1,"machine":"01000000000000ab","life":2,"#,
            r#""member":{"since":3,"speaks":1,"sessions":["10.0.0.1:0/2001"]},"draining":false,"#,
            r#""fences":[{"life":1,"sessions":["10.0.0.1:0/1001"],"in-force":null,"gone":true}]}"#
        );
        assert_eq!(text, written);
        let mut rows = Rows::new(keys);
        rows.take(b"/weir/a/cluster/gateway/00001", Some(written.as_bytes())).unwrap();
        assert_eq!(rows.view(1).records.gateways, records.gateways);
    }

    /// The rows of a cluster of commit db8735a3, as etcd had them: a key and a value on each line.
    const LANDED: &str = include_str!("../tests/fixtures/records-of-version-1.txt");

    fn landed() -> impl Iterator<Item = (&'static str, &'static str)> {
        LANDED.lines().filter_map(|line| line.split_once(' '))
    }

    #[test]
    fn the_rows_of_the_first_version_are_read_and_written_as_they_were() {
        let mut rows = Rows::new(Keys::new("demo").unwrap());
        for (key, value) in landed() {
            rows.take(key.as_bytes(), Some(value.as_bytes())).unwrap();
        }
        let records = rows.view(1).records;
        assert_eq!(records.format, Version(1));
        let gateways = records.gateways.iter().map(|(gateway, row)| {
            let key = rows.keys.text(Key::Gateway(*gateway));
            (key, row::gateway_text(Version(1), row))
        });
        let groups = records.groups.iter().map(|(group, row)| {
            (rows.keys.text(Key::Group(*group)), row::group_text(Version(1), *row))
        });
        let written: BTreeMap<String, String> = gateways.chain(groups).collect();
        let is_row = |key: &str| key.contains("/gateway/") || key.contains("/group/");
        let found = landed().filter(|(key, _)| is_row(key));
        let found: BTreeMap<String, String> =
            found.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(written, found);
        assert!(records.gateways.len() >= 2 && records.groups.len() >= 2, "{written:?}");
    }

    #[test]
    fn a_row_of_a_newer_version_is_refused_with_words_and_the_last_state_stays() {
        let mut rows = Rows::new(Keys::new("demo").unwrap());
        for (key, value) in landed() {
            rows.take(key.as_bytes(), Some(value.as_bytes())).unwrap();
        }
        let before = rows.view(1);
        let newer = format!("\"version\":{},\"more\":1,", Version::CURRENT.0 + 1);
        for (key, value) in landed().filter(|(_, value)| value.starts_with('{')) {
            let value = value.replacen("\"version\":1,", &newer, 1);
            let refused = rows.take(key.as_bytes(), Some(value.as_bytes())).unwrap_err();
            assert!(refused.is_newer() && refused.to_string().contains("install a newer version"));
            assert_eq!(rows.view(1), before);
        }
        let damaged = rows.take(b"/weir/demo/cluster/group/0000000001", Some(b"{")).unwrap_err();
        assert!(!damaged.is_newer(), "{damaged}");
    }

    #[test]
    fn rows_beyond_the_bounds_are_refused() {
        let mut rows = Rows::new(Keys::new("a").unwrap());
        for gateway in 0..=GATEWAYS_MAX {
            let key = format!("/weir/a/cluster/life/{gateway:05}");
            let taken = rows.take(key.as_bytes(), Some(b"1"));
            assert_eq!(taken.is_ok(), gateway < GATEWAYS_MAX);
        }
        rows.take(b"/weir/a/cluster/life/00000", None).unwrap();
        rows.take(b"/weir/a/cluster/life/09999", Some(b"1")).unwrap();
    }
}
