//! etcd as the store that the gateways share for their catalogue ([`ClusterStore`]).
//!
//! Calls block the thread that makes them: none comes from a worker of the server or from a thread
//! of the runtime that carries the connection.
//!
//! *Complete up to the moment of a call.* A watch comes from one member, which may lag behind; and
//! what etcd 3.4 says of a watch's progress may overtake events. So each transaction below the
//! prefix also writes the row `clock`. [`ClusterStore::changes`] reads at which revision that was
//! last, linearizably, and waits until the watch has told that revision.
//!
//! *The tail.* One watch runs for all callers and keeps its events until they were asked for
//! ([`tail`]). If they do not come, it is begun anew, at the member that answers.

mod tail;

use crate::client::{Condition, Connection, EtcdError, Write};
use std::fmt;
use std::future::Future;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tail::Tail;
use tokio::runtime::Handle;
use weir_catalog::{Changes, ClusterStore, Decision, Guard, Listing, Operation, Pair, StoreError};

/// Most bytes of keys and values under a prefix.
const RANGE_BYTES_MAX: usize = 256 << 20;
/// Time for events that have happened to be told.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// Time after which a watch that does not tell them is begun anew; then twice as long.
const PATIENCE: Duration = Duration::from_millis(300);
/// Time after a watch that has ended before the next one.
const PAUSE: Duration = Duration::from_millis(50);
/// The row that each transaction writes, below the prefix.
const CLOCK: &str = "clock";

/// The store of one cluster's catalogue.
pub struct EtcdStore {
    runtime: Handle,
    connection: Connection,
    /// The begin of all keys of the catalogue.
    prefix: String,
    clock: String,
    tail: Tail,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connection, prefix) = (&self.connection, &self.prefix);
        f.debug_tuple("EtcdStore").field(connection).field(prefix).finish()
    }
}

impl EtcdStore {
    /// The store of the cluster with this name, over a connection that is used within `runtime`.
    #[must_use]
    pub fn new(runtime: Handle, connection: Connection, cluster: &str) -> Self {
        let prefix = format!("/weir/{cluster}/catalog/");
        let tail = Tail::new(runtime.clone(), connection.clone(), prefix.clone());
        Self { runtime, connection, clock: format!("{prefix}{CLOCK}"), prefix, tail }
    }

    /// Makes a call within the runtime, and waits for its result.
    fn run<T, F>(&self, call: impl FnOnce(Connection) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, EtcdError>> + Send + 'static,
    {
        let (tell, told) = mpsc::sync_channel(1);
        let calling = call(self.connection.clone());
        self.runtime.spawn(async move {
            // The receiver waits as long as there is a sender.
            let _received = tell.send(calling.await);
        });
        let ended = |_| StoreError::Unknown("the program is ending".to_owned());
        told.recv().map_err(ended)?.map_err(|error| failure(&error))
    }

    /// The revision of the last transaction below the prefix; 0 if there was none.
    fn last(&self) -> Result<u64, StoreError> {
        let clock = self.clock.clone();
        let found = self.run(|connection| async move { connection.get(&clock).await })?;
        Ok(found.map_or(0, |clock| clock.modified))
    }

    /// The operation that belongs to these below the prefix.
    fn tick(&self, operations: &[Operation]) -> Option<Write> {
        let key = |operation: &Operation| match operation {
            Operation::Put { key, .. } | Operation::Delete { key } => key.starts_with(&self.prefix),
        };
        let tick = || Write::Put { key: self.clock.clone(), value: Vec::new(), lease: 0 };
        operations.iter().any(key).then(tick)
    }
}

impl ClusterStore for EtcdStore {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        let key = key.to_owned();
        let found = self.run(|connection| async move { connection.get(&key).await })?;
        Ok(found.map(pair))
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        let prefix = prefix.to_owned();
        let range = |connection: Connection| async move {
            connection.range(&prefix, RANGE_BYTES_MAX).await
        };
        let found = self.run(range)?;
        let pairs = found.pairs.into_iter().filter(|pair| pair.key != self.clock.as_bytes());
        Ok(Listing { revision: found.revision, pairs: pairs.map(pair).collect() })
    }

    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError> {
        let conditions: Vec<_> = guards.iter().map(condition).collect();
        let writes = operations.iter().map(write).chain(self.tick(operations));
        let writes: Vec<_> = writes.collect();
        let commit =
            |connection: Connection| async move { connection.commit(&conditions, &writes).await };
        let committed = self.run(commit)?;
        match committed.applied {
            true => Ok(Decision::At(committed.revision)),
            false => Ok(Decision::Refused),
        }
    }

    /// `prefix` is the catalogue's, or begins with it.
    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        let last = self.last()?;
        let (until, mut patience) = (Instant::now() + TOLD_WITHIN, PATIENCE);
        let mut changes = loop {
            if let Some(changes) = self.tail.take(after, last, patience)? {
                break changes;
            }
            if Instant::now() >= until {
                let words = "etcd does not tell what has happened in it";
                return Err(StoreError::Unavailable(words.to_owned()));
            }
            self.tail.begin_anew(after);
            patience *= 2;
        };
        changes.events.retain(|event| event.key.starts_with(prefix) && event.key != self.clock);
        Ok(changes)
    }

    fn wait(&self, _prefix: &str, after: u64, within: Duration) {
        if self.tail.wait(after, within).is_err() {
            // The next call of `changes` tells why the watch has ended.
            thread::sleep(PAUSE.min(within));
        }
    }
}

fn failure(error: &EtcdError) -> StoreError {
    match error {
        EtcdError::Unanswered(_) => StoreError::Unknown(error.to_string()),
        EtcdError::Compacted => StoreError::Compacted,
        EtcdError::Unreachable(_) | EtcdError::Refused(_) | EtcdError::TooLong => {
            StoreError::Unavailable(error.to_string())
        }
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn pair(pair: crate::client::Pair) -> Pair {
    Pair { key: text(&pair.key), value: pair.value, revision: pair.modified }
}

fn condition(guard: &Guard) -> Condition {
    match guard.clone() {
        Guard::At { key, revision: 0 } => Condition::Absent { key },
        Guard::At { key, revision } => Condition::At { key, revision },
        Guard::Since { key, revision } => Condition::Since { key, revision },
        Guard::Is { key, value } => Condition::Value { key, value },
    }
}

fn write(operation: &Operation) -> Write {
    match operation.clone() {
        Operation::Put { key, value } => Write::Put { key, value, lease: 0 },
        Operation::Delete { key } => Write::Delete { key },
    }
}
