//! Watches: what happens to the rows below a prefix, from a revision on.
//!
//! A watch stays at the member that calls prefer. If that changes, or the member ends the watch, it
//! goes on at another one behind the last revision that it told, so no event is lost or told twice.

use super::connection::Connection;
use super::error::EtcdError;
use etcd_client::{WatchOptions, WatchResponse, WatchStream};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Longest answer of a watch, in bytes. Beyond: [`EtcdError::TooLong`].
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Time for a member to begin a watch.
const BEGIN_WITHIN: Duration = Duration::from_secs(1);
/// Time before a watch is begun again.
const AGAIN: Duration = Duration::from_millis(100);

/// A row was written or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value; none if it was removed.
    pub value: Option<Vec<u8>>,
    /// The revision at which that happened.
    pub revision: u64,
}

/// The events of one or more revisions, each complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The last of the revisions.
    pub revision: u64,
    /// The events in their order. There is at least one.
    pub events: Vec<Event>,
}

/// A watch over the rows below a prefix.
#[derive(Debug)]
pub struct Watch {
    connection: Connection,
    prefix: String,
    /// Everything up to this revision was told.
    told: u64,
    preferred: watch::Receiver<usize>,
    /// The member is so many places behind the preferred one.
    behind: usize,
    stream: Option<WatchStream>,
}

impl Connection {
    /// Watches the rows of which the keys begin with `prefix`, after the revision `after`.
    #[must_use]
    pub fn watch(&self, prefix: &str, after: u64) -> Watch {
        Watch {
            connection: self.clone(),
            prefix: prefix.to_owned(),
            told: after,
            preferred: self.preferred(),
            behind: 0,
            stream: None,
        }
    }
}

impl Watch {
    /// The next changes. Waits as long as there are none, and while no member is reached. A call
    /// that is dropped loses none.
    ///
    /// # Errors
    /// [`EtcdError::Compacted`] or [`EtcdError::TooLong`] if the next changes can't be had: the
    /// rows have to be read again. [`EtcdError::Refused`] if etcd refuses the watch.
    pub async fn next(&mut self) -> Result<Changes, EtcdError> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.begin().await?;
                continue;
            };
            let answer = tokio::select! {
                answer = stream.message() => answer,
                _ = self.preferred.changed() => {
                    (self.stream, self.behind) = (None, 0);
                    continue;
                }
            };
            let ended = match answer {
                Ok(Some(answer)) if answer.canceled() => cancelled(&answer),
                Ok(Some(answer)) => match self.changes(&answer) {
                    Some(changes) => return Ok(changes),
                    None => continue,
                },
                Ok(None) => EtcdError::Unanswered("the watch has ended".to_owned()),
                Err(error) => error.into(),
            };
            self.failed(ended).await?;
        }
    }

    /// Begins the watch at a member.
    async fn begin(&mut self) -> Result<(), EtcdError> {
        self.preferred.mark_unchanged();
        // At the last revision that was told, and not behind it: if the history is compacted at its
        // first revision, etcd 3.4 leaves a removal at that revision out without a word (etcd issue
        // 18089). So that is a revision whose events are known. 0 would be the present.
        let start = i64::try_from(self.told).unwrap_or(i64::MAX).max(1);
        let options = WatchOptions::new().with_prefix().with_start_revision(start);
        let beginning = async {
            let client = self.connection.client(self.behind).await?;
            let mut watching = client.watch_client().max_decoding_message_size(ANSWER_BYTES_MAX);
            Ok(watching.watch(self.prefix.as_str(), Some(options)).await?)
        };
        let late = |_| EtcdError::Unanswered("a member does not begin a watch".to_owned());
        match timeout(BEGIN_WITHIN, beginning).await.map_err(late).flatten() {
            Ok(stream) => {
                self.stream = Some(stream);
                Ok(())
            }
            Err(error) => self.failed(error).await,
        }
    }

    /// Ends the watch at its member, unless there is no use in another one.
    async fn failed(&mut self, error: EtcdError) -> Result<(), EtcdError> {
        self.stream = None;
        match error {
            EtcdError::Unreachable(_) | EtcdError::Unanswered(_) => {
                tracing::debug!(%error, "a watch of etcd goes on at another member");
                self.behind = self.behind.wrapping_add(1);
                sleep(AGAIN).await;
                Ok(())
            }
            error => Err(error),
        }
    }

    fn changes(&mut self, answer: &WatchResponse) -> Option<Changes> {
        let events = answer.events().iter().filter_map(event);
        let events: Vec<Event> = events.filter(|event| event.revision > self.told).collect();
        let revision = events.last()?.revision;
        self.told = revision;
        Some(Changes { revision, events })
    }
}

/// The reason for which etcd has ended a watch.
fn cancelled(answer: &WatchResponse) -> EtcdError {
    let reason = answer.cancel_reason();
    if answer.compact_revision() != 0 {
        EtcdError::Compacted
    } else if reason.contains("permission denied") {
        EtcdError::Refused(reason.to_owned())
    } else {
        EtcdError::Unanswered(reason.to_owned())
    }
}

fn event(event: &etcd_client::Event) -> Option<Event> {
    let row = event.kv()?;
    // Only a row that was removed has the version 0.
    let value = (row.version() != 0).then(|| row.value().to_vec());
    let revision = u64::try_from(row.mod_revision()).unwrap_or(0);
    Some(Event { key: row.key().to_vec(), value, revision })
}
