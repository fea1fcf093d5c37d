//! A store in memory that behaves as etcd does: revisions, guards, limits, compaction. On demand it
//! is out of reach, loses answers, and carries transactions out late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use weir_catalog::{
    Changes, ClusterStore, Decision, Event, Guard, Listing, OPERATIONS_MAX, Operation, Pair,
    StoreError,
};
use weir_core::rng::Rng;

/// The bound of etcd (`--max-request-bytes`).
const REQUEST_BYTES_MAX: usize = 3 << 19;

/// The fate of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered.
    Answered,
    /// The store is out of reach.
    Refused,
    /// It does not arrive, and there is no answer.
    Lost,
    /// It is carried out, and the answer is lost.
    Unanswered,
    /// There is no answer, and it is carried out later.
    Late,
}

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
    down: bool,
    /// The fates of the next transactions; afterwards all are answered.
    fates: Vec<Fate>,
    /// With it, fates are drawn.
    rng: Option<Rng>,
    late: Vec<(Vec<Guard>, Vec<Operation>)>,
    /// The number of transactions until the store is down.
    left: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Content>);

fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".to_owned())
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

    fn fate(&mut self) -> Fate {
        if let Some(left) = &mut self.left {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None => self.down = true,
            }
        }
        if self.down {
            return Fate::Refused;
        }
        if !self.fates.is_empty() {
            return self.fates.remove(0);
        }
        let Some(rng) = &mut self.rng else { return Fate::Answered };
        match rng.below(100) {
            0..5 => Fate::Refused,
            5..10 => Fate::Lost,
            10..15 => Fate::Unanswered,
            15..20 => Fate::Late,
            _ => Fate::Answered,
        }
    }

    fn reads(&mut self) -> Result<(), StoreError> {
        let drawn = self.rng.as_mut().is_some_and(|rng| rng.below(100) < 3);
        if self.down || drawn { Err(unavailable()) } else { Ok(()) }
    }

    /// One of the late transactions may arrive now.
    fn arrive(&mut self) {
        let Some(rng) = &mut self.rng else { return };
        if !self.late.is_empty() && rng.below(3) == 0 {
            let at = usize::try_from(rng.below(self.late.len() as u64)).unwrap();
            let (guards, operations) = self.late.remove(at);
            self.carry_out(&guards, &operations);
        }
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    /// From now on fates are drawn from `seed`; without one, everything is answered, and late
    /// transactions arrive.
    pub(crate) fn draw(&self, seed: Option<u64>) {
        let mut content = self.lock();
        content.rng = seed.map(Rng::new);
        if seed.is_none() {
            for (guards, operations) in std::mem::take(&mut content.late) {
                content.carry_out(&guards, &operations);
            }
        }
    }

    pub(crate) fn next(&self, fates: &[Fate]) {
        self.lock().fates = fates.to_vec();
    }

    pub(crate) fn set_down(&self, down: bool) {
        let mut content = self.lock();
        (content.down, content.left) = (down, None);
    }

    /// Is down after so many transactions.
    pub(crate) fn down_after(&self, transactions: u64) {
        self.lock().left = Some(transactions);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.lock().down
    }

    pub(crate) fn compact(&self) {
        let mut content = self.lock();
        content.compacted = content.revision;
        content.history.clear();
    }

    /// Writes a key, as an operator would.
    pub(crate) fn put(&self, key: &str, value: &str) -> u64 {
        let put = Operation::Put { key: key.to_owned(), value: value.as_bytes().to_vec() };
        self.lock().carry_out(&[], &[put]);
        self.lock().revision
    }

    pub(crate) fn delete(&self, key: &str) {
        self.lock().carry_out(&[], &[Operation::Delete { key: key.to_owned() }]);
    }

    /// The values by their keys.
    pub(crate) fn dump(&self) -> BTreeMap<String, String> {
        let text = |kept: &Kept| String::from_utf8(kept.value.clone()).unwrap();
        self.lock().keys.iter().map(|(key, kept)| (key.clone(), text(kept))).collect()
    }
}

impl ClusterStore for Memory {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        let mut content = self.lock();
        content.arrive();
        content.reads()?;
        Ok(content.keys.get(key).map(|kept| Pair {
            key: key.to_owned(),
            value: kept.value.clone(),
            revision: kept.modified,
        }))
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        let mut content = self.lock();
        content.arrive();
        content.reads()?;
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
        let mut content = self.lock();
        content.arrive();
        let unknown = || StoreError::Unknown("deadline exceeded".to_owned());
        match content.fate() {
            Fate::Answered => Ok(content.carry_out(guards, operations)),
            Fate::Refused => Err(unavailable()),
            Fate::Lost => Err(unknown()),
            Fate::Unanswered => {
                content.carry_out(guards, operations);
                Err(unknown())
            }
            Fate::Late => {
                content.late.push((guards.to_vec(), operations.to_vec()));
                Err(unknown())
            }
        }
    }

    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        let mut content = self.lock();
        content.arrive();
        content.reads()?;
        if after < content.compacted {
            return Err(StoreError::Compacted);
        }
        let new = |event: &&Event| event.revision > after && event.key.starts_with(prefix);
        let events = content.history.iter().filter(new).cloned().collect();
        Ok(Changes { revision: content.revision, events })
    }
}
