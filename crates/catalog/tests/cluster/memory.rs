//! A store in memory that behaves as etcd does: revisions, guards, limits, compaction.

use crate::faults::Shared;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use weir_catalog::{
    Changes, ClusterStore, Decision, Event, Guard, Listing, OPERATIONS_MAX, Operation, Pair,
    StoreError,
};

/// The bound of etcd (`--max-request-bytes`).
const REQUEST_BYTES_MAX: usize = 3 << 19;

#[derive(Clone, Debug)]
struct Kept {
    value: Vec<u8>,
    created: u64,
    modified: u64,
}

#[derive(Debug, Default)]
struct Content {
    revision: u64,
    keys: BTreeMap<String, Kept>,
    history: Vec<Event>,
    compacted: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    content: Mutex<Content>,
    news: Condvar,
}

impl Content {
    fn holds(&self, guard: &Guard) -> bool {
        match guard {
            Guard::At { key, revision } => {
                self.keys.get(key).map_or(0, |kept| kept.modified) == *revision
            }
            Guard::Since { key, revision } => {
                self.keys.get(key).is_some_and(|kept| kept.created == *revision)
            }
            Guard::Is { key, value } => self.keys.get(key).is_some_and(|kept| kept.value == *value),
        }
    }

    fn carry_out(&mut self, guards: &[Guard], operations: &[Operation]) -> Decision {
        if !guards.iter().all(|guard| self.holds(guard)) {
            return Decision::Refused;
        }
        let revision = self.revision + 1;
        let mut changed = false;
        for operation in operations {
            let (key, value) = match operation {
                Operation::Put { key, value } => {
                    let created = self.keys.get(key).map_or(revision, |kept| kept.created);
                    let kept = Kept { value: value.clone(), created, modified: revision };
                    self.keys.insert(key.clone(), kept);
                    (key, Some(value.clone()))
                }
                Operation::Delete { key } => match self.keys.remove(key) {
                    Some(_) => (key, None),
                    None => continue,
                },
            };
            changed = true;
            self.history.push(Event { key: key.clone(), value, revision });
        }
        // A transaction that writes nothing makes no revision.
        self.revision += u64::from(changed);
        Decision::At(self.revision)
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    fn carry_out(&self, guards: &[Guard], operations: &[Operation]) -> Decision {
        let decision = self.lock().carry_out(guards, operations);
        self.news.notify_all();
        decision
    }
}

impl Shared for Memory {
    fn compact(&self) {
        let mut content = self.lock();
        content.compacted = content.revision;
        content.history.clear();
    }

    fn put(&self, key: &str, value: &str) -> u64 {
        let put = Operation::Put { key: key.to_owned(), value: value.as_bytes().to_vec() };
        self.carry_out(&[], &[put]);
        self.lock().revision
    }

    fn delete(&self, key: &str) {
        self.carry_out(&[], &[Operation::Delete { key: key.to_owned() }]);
    }

    fn dump(&self, prefix: &str) -> BTreeMap<String, String> {
        let text = |kept: &Kept| String::from_utf8(kept.value.clone()).unwrap();
        let content = self.lock();
        let found = content.keys.iter().filter(|(key, _)| key.starts_with(prefix));
        found.map(|(key, kept)| (key.clone(), text(kept))).collect()
    }
}

impl ClusterStore for Memory {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        Ok(self.lock().keys.get(key).map(|kept| Pair {
            key: key.to_owned(),
            value: kept.value.clone(),
            revision: kept.modified,
        }))
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        let content = self.lock();
        let pairs = content.keys.iter().filter(|(key, _)| key.starts_with(prefix));
        let pair = |(key, kept): (&String, &Kept)| Pair {
            key: key.clone(),
            value: kept.value.clone(),
            revision: kept.modified,
        };
        Ok(Listing { revision: content.revision, pairs: pairs.map(pair).collect() })
    }

    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError> {
        assert!(guards.len() <= OPERATIONS_MAX && operations.len() <= OPERATIONS_MAX);
        let mut keys = BTreeSet::new();
        let mut bytes = 0;
        for operation in operations {
            let (key, length) = match operation {
                Operation::Put { key, value } => (key, value.len()),
                Operation::Delete { key } => (key, 0),
            };
            // Some for the framing of each.
            bytes += key.len() + length + 32;
            assert!(keys.insert(key), "etcd refuses a key that comes twice: {key}");
        }
        assert!(bytes <= REQUEST_BYTES_MAX, "{bytes}");
        Ok(self.carry_out(guards, operations))
    }

    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        let content = self.lock();
        if after < content.compacted {
            return Err(StoreError::Compacted);
        }
        let new = |event: &&Event| event.revision > after && event.key.starts_with(prefix);
        let events = content.history.iter().filter(new).cloned().collect();
        Ok(Changes { revision: content.revision, events })
    }

    fn wait(&self, prefix: &str, after: u64, within: Duration) {
        let is_quiet = |content: &mut Content| {
            let mut events = content.history.iter().rev();
            !events.any(|event| event.revision > after && event.key.starts_with(prefix))
        };
        drop(self.news.wait_timeout_while(self.lock(), within, is_quiet).unwrap());
    }
}
