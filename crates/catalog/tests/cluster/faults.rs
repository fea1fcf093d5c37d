//! A store with faults on demand: it is out of reach, loses answers, and carries transactions out
//! late.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use weir_catalog::{Changes, ClusterStore, Decision, Guard, Listing, Operation, Pair, StoreError};
use weir_core::rng::Rng;

/// A store without faults, and the tools of its operator.
pub(crate) trait Shared: ClusterStore {
    /// Forgets the history.
    fn compact(&self);

    /// Writes a key. Gives its revision.
    fn put(&self, key: &str, value: &str) -> u64;

    fn delete(&self, key: &str);

    /// The values by their keys.
    fn dump(&self, prefix: &str) -> BTreeMap<String, String>;
}

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

#[derive(Default)]
struct Faults {
    down: bool,
    /// The fates of the next transactions; afterwards all are answered.
    fates: Vec<Fate>,
    /// With it, fates are drawn.
    rng: Option<Rng>,
    late: Vec<(Vec<Guard>, Vec<Operation>)>,
    /// The number of transactions until the store is down.
    left: Option<u64>,
    /// The act of somebody else before a transaction, and the number of those before it.
    between: Option<(usize, Act)>,
}

type Act = Box<dyn FnOnce() + Send>;

fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".to_owned())
}

impl Faults {
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
}

pub(crate) struct Store {
    inner: Box<dyn Shared>,
    faults: Mutex<Faults>,
}

impl Store {
    pub(crate) fn new(inner: Box<dyn Shared>) -> Self {
        Self { inner, faults: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    /// From now on fates are drawn from `seed`; without one, everything is answered, and late
    /// transactions arrive.
    pub(crate) fn draw(&self, seed: Option<u64>) {
        let mut faults = self.lock();
        faults.rng = seed.map(Rng::new);
        if seed.is_none() {
            for (guards, operations) in std::mem::take(&mut faults.late) {
                self.inner.commit(&guards, &operations).unwrap();
            }
        }
    }

    pub(crate) fn next(&self, fates: &[Fate]) {
        self.lock().fates = fates.to_vec();
    }

    /// Somebody acts before the next transaction but `later`.
    pub(crate) fn between(&self, later: usize, act: impl FnOnce() + Send + 'static) {
        self.lock().between = Some((later, Box::new(act)));
    }

    pub(crate) fn set_down(&self, down: bool) {
        let mut faults = self.lock();
        (faults.down, faults.left) = (down, None);
    }

    /// Is down after so many transactions.
    pub(crate) fn down_after(&self, transactions: u64) {
        self.lock().left = Some(transactions);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.lock().down
    }

    pub(crate) fn compact(&self) {
        self.inner.compact();
    }

    pub(crate) fn put(&self, key: &str, value: &str) -> u64 {
        self.inner.put(key, value)
    }

    pub(crate) fn delete(&self, key: &str) {
        self.inner.delete(key);
    }

    pub(crate) fn dump(&self, prefix: &str) -> BTreeMap<String, String> {
        self.inner.dump(prefix)
    }

    /// One of the late transactions may arrive now.
    fn arrive(&self) {
        let mut faults = self.lock();
        let Faults { rng: Some(rng), late, .. } = &mut *faults else { return };
        if !late.is_empty() && rng.below(3) == 0 {
            let at = usize::try_from(rng.below(late.len() as u64)).unwrap();
            let (guards, operations) = late.remove(at);
            self.inner.commit(&guards, &operations).unwrap();
        }
    }

    /// The act that comes before this transaction, if one does.
    fn act(&self) {
        let mut faults = self.lock();
        let act = match faults.between.take() {
            Some((0, act)) => act,
            other => {
                faults.between = other.map(|(later, act)| (later - 1, act));
                return;
            }
        };
        drop(faults);
        act();
    }

    fn reads(&self) -> Result<(), StoreError> {
        self.arrive();
        let mut faults = self.lock();
        let drawn = faults.rng.as_mut().is_some_and(|rng| rng.below(100) < 3);
        if faults.down || drawn { Err(unavailable()) } else { Ok(()) }
    }
}

impl ClusterStore for Store {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        self.reads()?;
        self.inner.get(key)
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.reads()?;
        self.inner.range(prefix)
    }

    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError> {
        self.arrive();
        self.act();
        let fate = self.lock().fate();
        let unknown = || StoreError::Unknown("deadline exceeded".to_owned());
        match fate {
            Fate::Answered => self.inner.commit(guards, operations),
            Fate::Refused => Err(unavailable()),
            Fate::Lost => Err(unknown()),
            Fate::Unanswered => {
                self.inner.commit(guards, operations)?;
                Err(unknown())
            }
            Fate::Late => {
                self.lock().late.push((guards.to_vec(), operations.to_vec()));
                Err(unknown())
            }
        }
    }

    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        self.reads()?;
        self.inner.changes(prefix, after)
    }

    fn wait(&self, prefix: &str, after: u64, within: Duration) {
        self.inner.wait(prefix, after, within);
    }
}
