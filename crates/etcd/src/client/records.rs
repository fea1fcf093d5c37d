//! The records of a cluster over a connection: the requests of the rules as calls of etcd.

use super::connection::{Condition, Connection, Repeats, Write};
use super::error::EtcdError;
use super::lease::{Held, LeaseId};
use super::watch::Watch;
use crate::keys::Keys;
use crate::read::{RowError, Rows};
use crate::write::{Guard, Operation, TooMany, Writes};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use weir_cluster::timing::ANSWER_WITHIN;
use weir_cluster::{GatewayId, Generation, Kept, LeaseRequest, Life, Records, Transaction, View};

/// Most bytes of all rows of a cluster.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Time before rows that could not be read, or were refused, are read again.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// A call about the records without a result.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// etcd gave none.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// A row cannot be used.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A change is too large.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

impl RecordsError {
    /// Is a row refused because it is of a newer version ([`RowError::is_newer`])?
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Row(error) if error.is_newer())
    }
}

/// The records of a cluster, for one life of a gateway. Clones are of the same life.
#[derive(Clone, Debug)]
pub struct RecordsClient {
    connection: Connection,
    keys: Keys,
    lease: LeaseId,
}

impl RecordsClient {
    /// The records with these keys, for a life that has just begun.
    #[must_use]
    pub fn new(connection: Connection, keys: Keys) -> Self {
        Self { connection, keys, lease: LeaseId::new() }
    }

    /// The complete state, not older than the call.
    ///
    /// # Errors
    /// etcd gives no answer, or a row is refused.
    pub async fn view(&self) -> Result<View, RecordsError> {
        let (rows, revision) = self.read().await?;
        Ok(rows.view(revision))
    }

    async fn read(&self) -> Result<(Rows, u64), RecordsError> {
        let listing = self.connection.range(self.keys.prefix(), ROWS_BYTES_MAX).await?;
        let mut rows = Rows::new(self.keys.clone());
        for pair in &listing.pairs {
            rows.take(&pair.key, Some(&pair.value))?;
        }
        Ok((rows, listing.revision))
    }

    /// Carries out a change that was decided upon `records`, within
    /// [`ANSWER_WITHIN`]: whether its guards held and it
    /// happened.
    ///
    /// # Errors
    /// Only after an error of etcd that is no [`EtcdError::Unanswered`], and after
    /// [`RecordsError::TooMany`], it is known that it did not and will not happen.
    pub async fn change(
        &self,
        records: &Records,
        transaction: &Transaction,
    ) -> Result<bool, RecordsError> {
        let writes = Writes::of(&self.keys, records, transaction)?;
        let (conditions, operations) = of(&writes);
        let committing = self.connection.commit_within(
            ANSWER_WITHIN,
            Repeats::Conditional,
            &conditions,
            &operations,
        );
        Ok(committing.await?.applied)
    }

    /// Carries out a request about the lease of `life`, within
    /// [`ANSWER_WITHIN`]. `records` are the newest that are
    /// known.
    ///
    /// # Errors
    /// etcd gives no answer, or a row is refused.
    pub async fn lease(
        &self,
        kind: LeaseRequest,
        life: Life,
        records: &Records,
    ) -> Result<Kept, RecordsError> {
        let asking = async {
            match kind {
                LeaseRequest::Attach => self.attach(life, records).await,
                LeaseRequest::Renew => self.renew(life).await,
            }
        };
        let late = |_| EtcdError::Unanswered("the lease took too long".to_owned());
        timeout(ANSWER_WITHIN, asking).await.map_err(late)?
    }

    async fn renew(&self, life: Life) -> Result<Kept, RecordsError> {
        let row = self.keys.life_row(life);
        let held = self.connection.renew(ANSWER_WITHIN, self.lease, (&row.0, &row.1)).await?;
        Ok(kept(held))
    }

    async fn attach(&self, life: Life, records: &Records) -> Result<Kept, RecordsError> {
        let mut newer;
        let mut records = records;
        loop {
            let member =
                records.gateways.get(&life.gateway).and_then(weir_cluster::Gateway::member);
            if member.is_none_or(|member| member.number != life.number) {
                return Ok(Kept::No);
            }
            let (conditions, _) = of(&Writes::attach(&self.keys, records, life));
            let row = self.keys.life_row(life);
            let attaching =
                self.connection.attach(ANSWER_WITHIN, self.lease, &conditions, (&row.0, &row.1));
            if attaching.await? == Held::Yes {
                return Ok(Kept::Yes);
            }
            // The records have changed since.
            newer = self.view().await?.records;
            records = &newer;
        }
    }

    /// Writes that `gateway` knows `generation`.
    ///
    /// # Errors
    /// etcd gives no answer.
    pub async fn acknowledge(
        &self,
        gateway: GatewayId,
        generation: Generation,
    ) -> Result<(), RecordsError> {
        let (_, operations) = of(&Writes::acknowledge(&self.keys, gateway, generation));
        let writing =
            self.connection.commit_within(ANSWER_WITHIN, Repeats::Harmless, &[], &operations);
        writing.await?;
        Ok(())
    }

    /// Ends the lease of a life that replies no more, so that others need not wait for its end.
    ///
    /// # Errors
    /// etcd gives no answer.
    pub async fn release(&self) -> Result<(), RecordsError> {
        Ok(self.connection.revoke(ANSWER_WITHIN, self.lease).await?)
    }

    /// Every state of the records from now on.
    #[must_use]
    pub fn follow(&self) -> Follower {
        Follower { client: self.clone(), state: State::Unread { from: Instant::now() } }
    }
}

/// The states of the records, one after the other.
#[derive(Debug)]
pub struct Follower {
    client: RecordsClient,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All rows are to be read, not before this time.
    Unread { from: Instant },
    /// These rows were read, and are watched.
    Watched(Box<Watched>),
}

#[derive(Debug)]
struct Watched {
    rows: Rows,
    watch: Watch,
}

impl Follower {
    /// The next state: the present one first, then each later one. States that follow each other
    /// quickly may be left out. It is complete: after compaction, and if a watch can't go on, all
    /// rows are read again. A call that is dropped loses none.
    ///
    /// # Errors
    /// The rows could not be read, or one is refused; the last state holds on. The next call tries
    /// again after a pause.
    pub async fn next(&mut self) -> Result<Arc<View>, RecordsError> {
        loop {
            match &mut self.state {
                State::Unread { from } => {
                    sleep_until(*from).await;
                    return self.read().await;
                }
                State::Watched(watched) => {
                    let Watched { rows, watch } = &mut **watched;
                    let changes = match watch.next().await {
                        Ok(changes) => changes,
                        Err(EtcdError::Compacted | EtcdError::TooLong) => {
                            self.state = State::Unread { from: Instant::now() };
                            continue;
                        }
                        Err(error) => {
                            self.state = State::Unread { from: Instant::now() + READ_AGAIN };
                            return Err(error.into());
                        }
                    };
                    let mut taking = changes.events.iter();
                    let taken =
                        taking.try_for_each(|event| rows.take(&event.key, event.value.as_deref()));
                    if let Err(error) = taken {
                        self.state = State::Unread { from: Instant::now() + READ_AGAIN };
                        return Err(error.into());
                    }
                    return Ok(Arc::new(rows.view(changes.revision)));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Arc<View>, RecordsError> {
        match self.client.read().await {
            Ok((rows, revision)) => {
                let view = Arc::new(rows.view(revision));
                let watch = self.client.connection.watch(self.client.keys.prefix(), revision);
                self.state = State::Watched(Box::new(Watched { rows, watch }));
                Ok(view)
            }
            Err(error) => {
                self.state = State::Unread { from: Instant::now() + READ_AGAIN };
                Err(error)
            }
        }
    }
}

fn kept(held: Held) -> Kept {
    match held {
        Held::Yes => Kept::Yes,
        Held::No => Kept::No,
    }
}

/// Rows and their guards in the terms of a connection.
fn of(writes: &Writes) -> (Vec<Condition>, Vec<Write>) {
    let condition = |guard: &Guard| match guard {
        Guard::Is { key, value } => {
            Condition::Value { key: key.clone(), value: value.clone().into_bytes() }
        }
        Guard::Absent { key } => Condition::Absent { key: key.clone() },
    };
    let write = |operation: &Operation| match operation {
        Operation::Put { key, value } => {
            Write::Put { key: key.clone(), value: value.clone().into_bytes(), lease: 0 }
        }
        Operation::Delete { key } => Write::Delete { key: key.clone() },
    };
    let conditions = writes.guards.iter().map(condition).collect();
    (conditions, writes.operations.iter().map(write).collect())
}
