//! The lease of one life: taking it with the row that lives with it, and renewing it.
//!
//! A life has one number for its lease and never another. So a request that arrives late, from the
//! socket of a member that was stopped, can't put the row under a lease that ends earlier.

use super::connection::{Condition, Connection, Repeats, Write, committed, transaction};
use super::error::{EtcdError, is_lease_there, is_no_lease};
use super::read::found;
use etcd_client::{Client, LeaseGrantOptions};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use weir_cluster::timing::LEASE;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseId(pub(super) i64);

/// The state of a lease, according to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It is there, and the row with it, for its whole length from after the call began.
    Yes,
    /// There is no such row, it is another's, or a condition does not hold.
    No,
}

impl LeaseId {
    /// A number that no other lease has.
    pub(super) fn new() -> Self {
        let random = RandomState::new().hash_one("lease of a gateway");
        // Positive, and not 0, which is none.
        Self(i64::try_from(random >> 1).unwrap_or(1).max(1))
    }
}

impl Connection {
    /// Takes the lease and writes a row that ends with it, if the conditions hold.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub(super) async fn attach(
        &self,
        within: Duration,
        lease: LeaseId,
        conditions: &[Condition],
        (key, value): (&str, &str),
    ) -> Result<Held, EtcdError> {
        let value = value.as_bytes().to_vec();
        let write = Write::Put { key: key.to_owned(), value, lease: lease.0 };
        let writing = transaction(conditions, &[write]);
        let attempt = move |mut client: Client| {
            let writing = writing.clone();
            async move {
                let term = taken(client.clone(), lease).await?;
                let answer = committed(&client.txn(writing).await?)?;
                match term {
                    Some(term) if term != answer.term => Err(undecided()),
                    _ if answer.applied => Ok(Held::Yes),
                    _ => Ok(Held::No),
                }
            }
        };
        self.call(within, Repeats::Harmless, |_| true, attempt).await
    }

    /// Renews the lease. The answer is that of the leader of a quorum: the row is read afterwards,
    /// linearizably, and both answers have one term.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub(super) async fn renew(
        &self,
        within: Duration,
        lease: LeaseId,
        (key, value): (&str, &str),
    ) -> Result<Held, EtcdError> {
        let (key, value) = (key.to_owned(), value.as_bytes().to_vec());
        let attempt = move |client: Client| {
            let (key, value) = (key.clone(), value.clone());
            async move {
                let renewed = renewed(client.clone(), lease).await?;
                let found = found(client, &key).await?;
                let is_own = |row: &super::Pair| row.value == value && row.lease == lease.0;
                match renewed {
                    _ if !found.pair.as_ref().is_some_and(is_own) => Ok(Held::No),
                    Some(term) if term == found.term => Ok(Held::Yes),
                    // The leader was changing.
                    _ => Err(undecided()),
                }
            }
        };
        self.call(within, Repeats::Harmless, |_| true, attempt).await
    }

    /// Ends the lease, and the row with it.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub(super) async fn revoke(&self, within: Duration, lease: LeaseId) -> Result<(), EtcdError> {
        let attempt = move |client: Client| async move {
            match client.lease_client().revoke(lease.0).await {
                Err(error) if !is_no_lease(&error) => Err(error.into()),
                _ => Ok(()),
            }
        };
        self.call(within, Repeats::Harmless, |()| true, attempt).await
    }
}

/// Takes the lease at one member. If there is one of this number already it is renewed, and the
/// term of the renewal returned: a new one has been agreed upon by a quorum.
async fn taken(client: Client, lease: LeaseId) -> Result<Option<u64>, EtcdError> {
    let seconds = i64::try_from(LEASE.as_secs()).unwrap_or(i64::MAX);
    let options = LeaseGrantOptions::new().with_id(lease.0);
    match client.lease_client().grant(seconds, Some(options)).await {
        Ok(granted) if granted.ttl() >= seconds => Ok(None),
        Ok(_) => {
            Err(EtcdError::Refused("etcd gives shorter leases than were asked for".to_owned()))
        }
        Err(error) if is_lease_there(&error) => match renewed(client, lease).await? {
            Some(term) => Ok(Some(term)),
            // It has just ended.
            None => Err(undecided()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Renews the lease at one member: the term of the answer, or none if there is no such lease.
async fn renewed(client: Client, lease: LeaseId) -> Result<Option<u64>, EtcdError> {
    // Opening the stream renews the lease too, but does not tell the term.
    let (mut keeper, mut answers) = match client.lease_client().keep_alive(lease.0).await {
        Ok(opened) => opened,
        Err(error) if is_no_lease(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    keeper.keep_alive().await?;
    let answer = answers.message().await?.ok_or_else(undecided)?;
    let term = answer.header().map(etcd_client::ResponseHeader::raft_term);
    Ok(term.filter(|_| answer.ttl() > 0))
}

fn undecided() -> EtcdError {
    EtcdError::Unanswered("its leader is changing".to_owned())
}
