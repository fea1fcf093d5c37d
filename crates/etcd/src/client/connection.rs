//! One connection to all members of an etcd.
//!
//! A call begins at the member that answered last. If it is silent for [`NEXT_MEMBER`], or fails,
//! the next member is asked beside it, and so on; the first answer counts. So a member that is down
//! or stopped costs little, and one that is slow loses nothing.

use super::error::EtcdError;
use super::settings::{Endpoint, Settings, SettingsError};
use etcd_client::{Client, Compare, CompareOp, ConnectOptions, PutOptions, Txn, TxnOp};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Time for a call, of which its caller has given no other.
pub const CALL_WITHIN: Duration = Duration::from_secs(5);
/// A member that is silent for this long is not waited for alone.
pub const NEXT_MEMBER: Duration = Duration::from_millis(250);
/// Time before a member that failed is asked once more in one call.
const AGAIN: Duration = Duration::from_millis(50);

/// A connection to an etcd, over which several users may call at once. Clones share it. It is to be
/// used within one runtime of tokio.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    members: Vec<Member>,
    /// The index of the member that answered last.
    preferred: watch::Sender<usize>,
}

struct Member {
    address: String,
    options: ConnectOptions,
    client: OnceCell<Client>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The row has this value.
    Value {
        /// Its key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
    /// There is no such row.
    Absent {
        /// Its key.
        key: String,
    },
    /// The row was last written at this revision.
    At {
        /// Its key.
        key: String,
        /// The revision.
        revision: u64,
    },
    /// The row exists without a break since this revision.
    Since {
        /// Its key.
        key: String,
        /// The revision.
        revision: u64,
    },
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Write a row.
    Put {
        /// Its key.
        key: String,
        /// Its value.
        value: Vec<u8>,
        /// The lease with which it ends; 0 for none.
        lease: i64,
    },
    /// Remove a row, if it is there.
    Delete {
        /// Its key.
        key: String,
    },
}

/// The answer to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The conditions held, and the operations happened. Otherwise nothing did.
    pub applied: bool,
    /// The revision of etcd then: that of the operations, if there were any.
    pub revision: u64,
    /// The term of etcd's leader.
    pub(super) term: u64,
}

/// Whether a call may be carried out more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    /// Any number of times. The first answer counts.
    Harmless,
    /// At most once, because of its conditions. That they did not hold is an answer only if no
    /// other attempt may have been carried out.
    Conditional,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.0.members.iter().map(|member| &member.address);
        f.debug_list().entries(members).finish()
    }
}

impl Member {
    /// The client of this member. The first call logs in, if there is a user.
    async fn client(&self) -> Result<Client, EtcdError> {
        let connecting = || Client::connect([&self.address], Some(self.options.clone()));
        Ok(self.client.get_or_try_init(connecting).await?.clone())
    }
}

impl Connection {
    /// The connection with these settings. Connects with the first call.
    ///
    /// # Errors
    /// The settings are wrong, or a file cannot be read.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let member =
            |Endpoint { address, options }| Member { address, options, client: OnceCell::new() };
        let members = settings.endpoints()?.into_iter().map(member).collect();
        Ok(Self(Arc::new(Shared { members, preferred: watch::Sender::new(0) })))
    }

    /// Carries out a transaction within [`CALL_WITHIN`]. It has at most
    /// [`OPERATIONS_MAX`](crate::OPERATIONS_MAX) conditions and as many operations, none of which
    /// name one key twice.
    ///
    /// # Errors
    /// [`EtcdError`]: only after [`EtcdError::Unanswered`] it may have been carried out.
    pub async fn commit(
        &self,
        conditions: &[Condition],
        writes: &[Write],
    ) -> Result<Committed, EtcdError> {
        self.commit_within(CALL_WITHIN, Repeats::Conditional, conditions, writes).await
    }

    pub(super) async fn commit_within(
        &self,
        within: Duration,
        repeats: Repeats,
        conditions: &[Condition],
        writes: &[Write],
    ) -> Result<Committed, EtcdError> {
        let transaction = transaction(conditions, writes);
        let attempt = move |mut client: Client| {
            let transaction = transaction.clone();
            async move { committed(&client.txn(transaction).await?) }
        };
        self.call(within, repeats, |committed: &Committed| committed.applied, attempt).await
    }

    /// Calls the members until there is a result: `attempt` carries the call out at one of them.
    /// `happened` tells the answer that something was done from the one that nothing was.
    pub(super) async fn call<T, F>(
        &self,
        within: Duration,
        repeats: Repeats,
        happened: impl Fn(&T) -> bool,
        attempt: impl Fn(Client) -> F + Clone + Send + 'static,
    ) -> Result<T, EtcdError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, EtcdError>> + Send + 'static,
    {
        let deadline = Instant::now() + within;
        let members = self.0.members.len();
        let first = *self.0.preferred.borrow();
        let mut running = JoinSet::new();
        let (mut started, mut next) = (0, Instant::now());
        let mut outcome = Outcome::default();
        loop {
            let may_start = running.len() < members && outcome.negative.is_none();
            tokio::select! {
                biased;
                Some(ended) = running.join_next() => {
                    let (member, result) = ended.map_err(|error| lost(&error.to_string()))?;
                    match result {
                        Ok(value) if repeats == Repeats::Harmless || happened(&value) => {
                            self.prefer(member);
                            return Ok(value);
                        }
                        Ok(value) => {
                            self.prefer(member);
                            outcome.negative = Some(value);
                        }
                        Err(error) => outcome.failed(error),
                    }
                    if let Some(result) = outcome.result(repeats, running.is_empty()) {
                        return result;
                    }
                    next = Instant::now();
                    if started % members == 0 {
                        next += AGAIN;
                    }
                }
                () = sleep_until(next), if may_start => {
                    let member = (first + started) % members;
                    let (shared, attempt) = (Arc::clone(&self.0), attempt.clone());
                    running.spawn(async move {
                        let result = match shared.members.get(member) {
                            Some(member) => match member.client().await {
                                Ok(client) => attempt(client).await,
                                Err(error) => Err(error),
                            },
                            None => Err(lost("there is no such member")),
                        };
                        (member, result)
                    });
                    started += 1;
                    next = Instant::now() + NEXT_MEMBER;
                }
                () = sleep_until(deadline) => return Err(outcome.late(running.is_empty())),
            }
        }
    }

    /// The index of the member to begin at, and news of it.
    pub(super) fn preferred(&self) -> watch::Receiver<usize> {
        self.0.preferred.subscribe()
    }

    /// The client of the member that is so many places behind the preferred one.
    pub(super) async fn client(&self, behind: usize) -> Result<Client, EtcdError> {
        let index = *self.0.preferred.borrow() + behind;
        let member = self.0.members.get(index % self.0.members.len());
        member.ok_or_else(|| lost("there is no such member"))?.client().await
    }

    fn prefer(&self, member: usize) {
        self.0.preferred.send_if_modified(|preferred| {
            let is_other = *preferred != member;
            *preferred = member;
            is_other
        });
    }
}

/// The knowledge of a call's outcome from the attempts that ended.
struct Outcome<T> {
    /// The answer that nothing was done.
    negative: Option<T>,
    /// An attempt has ended without an answer.
    is_in_doubt: bool,
    refusal: Option<EtcdError>,
    last: Option<EtcdError>,
}

impl<T> Default for Outcome<T> {
    fn default() -> Self {
        Self { negative: None, is_in_doubt: false, refusal: None, last: None }
    }
}

impl<T> Outcome<T> {
    fn failed(&mut self, error: EtcdError) {
        match error {
            EtcdError::Unreachable(_) => {}
            EtcdError::Unanswered(_) => self.is_in_doubt = true,
            EtcdError::Refused(_) | EtcdError::Compacted | EtcdError::TooLong => {
                self.refusal = Some(error.clone());
            }
        }
        self.last = Some(error);
    }

    /// The result, as soon as there is one. `is_last`: no attempt is under way.
    fn result(&mut self, repeats: Repeats, is_last: bool) -> Option<Result<T, EtcdError>> {
        if repeats == Repeats::Harmless {
            return self.refusal.take().map(Err);
        }
        if !is_last {
            return None;
        }
        if self.is_in_doubt && (self.negative.is_some() || self.refusal.is_some()) {
            return Some(Err(lost("another attempt had no answer")));
        }
        let negative = self.negative.take().map(Ok);
        negative.or_else(|| self.refusal.take().map(Err))
    }

    /// The result when the time is over.
    fn late(self, none_runs: bool) -> EtcdError {
        match self.last {
            Some(EtcdError::Unreachable(words)) if none_runs && !self.is_in_doubt => {
                EtcdError::Unreachable(words)
            }
            Some(error) => EtcdError::Unanswered(error.to_string()),
            None => lost("no member answers"),
        }
    }
}

fn lost(words: &str) -> EtcdError {
    EtcdError::Unanswered(words.to_owned())
}

pub(super) fn committed(answer: &etcd_client::TxnResponse) -> Result<Committed, EtcdError> {
    let header = answer.header().ok_or_else(|| lost("an answer without a header"))?;
    Ok(Committed {
        applied: answer.succeeded(),
        revision: u64::try_from(header.revision()).unwrap_or(0),
        term: header.raft_term(),
    })
}

pub(super) fn transaction(conditions: &[Condition], writes: &[Write]) -> Txn {
    let revision = |revision: u64| i64::try_from(revision).unwrap_or(i64::MAX);
    let compare = |condition: &Condition| match condition {
        Condition::Value { key, value } => {
            Compare::value(key.as_str(), CompareOp::Equal, value.clone())
        }
        Condition::Absent { key } => Compare::version(key.as_str(), CompareOp::Equal, 0),
        Condition::At { key, revision: at } => {
            Compare::mod_revision(key.as_str(), CompareOp::Equal, revision(*at))
        }
        Condition::Since { key, revision: since } => {
            Compare::create_revision(key.as_str(), CompareOp::Equal, revision(*since))
        }
    };
    let operation = |write: &Write| match write {
        Write::Put { key, value, lease } => {
            let options = PutOptions::new().with_lease(*lease);
            TxnOp::put(key.as_str(), value.clone(), Some(options))
        }
        Write::Delete { key } => TxnOp::delete(key.as_str(), None),
    };
    let conditions: Vec<Compare> = conditions.iter().map(compare).collect();
    let operations: Vec<TxnOp> = writes.iter().map(operation).collect();
    Txn::new().when(conditions).and_then(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(repeats: Repeats, is_last: bool, failures: &[EtcdError], negative: bool) -> String {
        let mut outcome = Outcome { negative: negative.then_some(false), ..Outcome::default() };
        for failure in failures {
            outcome.failed(failure.clone());
        }
        match outcome.result(repeats, is_last) {
            None => "open".to_owned(),
            Some(Ok(_)) => "nothing done".to_owned(),
            Some(Err(error)) => format!("{error:?}"),
        }
    }

    #[test]
    fn nothing_done_is_an_answer_only_if_no_other_attempt_may_have_done_something() {
        let (lost, refused) = (lost("x"), EtcdError::Refused("y".to_owned()));
        let unreachable = EtcdError::Unreachable("z".to_owned());
        let conditional = Repeats::Conditional;
        assert_eq!(outcome(conditional, true, &[], true), "nothing done");
        assert_eq!(
            outcome(conditional, true, std::slice::from_ref(&unreachable), true),
            "nothing done"
        );
        assert_eq!(outcome(conditional, false, &[], true), "open", "another may succeed yet");
        let doubt = "Unanswered(\"another attempt had no answer\")";
        assert_eq!(outcome(conditional, true, std::slice::from_ref(&lost), true), doubt);
        assert_eq!(outcome(conditional, true, &[lost.clone(), refused.clone()], false), doubt);
        assert_eq!(
            outcome(conditional, true, std::slice::from_ref(&lost), false),
            "open",
            "it is tried again"
        );
        assert_eq!(
            outcome(conditional, true, std::slice::from_ref(&refused), false),
            "Refused(\"y\")"
        );
        assert_eq!(outcome(Repeats::Harmless, false, &[lost, refused], false), "Refused(\"y\")");
    }

    #[test]
    fn only_a_call_that_reached_nobody_has_done_nothing() {
        let late = |failures: &[EtcdError], none_runs| {
            let mut outcome = Outcome::<bool>::default();
            failures.iter().for_each(|failure| outcome.failed(failure.clone()));
            matches!(outcome.late(none_runs), EtcdError::Unreachable(_))
        };
        let unreachable = EtcdError::Unreachable("z".to_owned());
        assert!(late(std::slice::from_ref(&unreachable), true));
        assert!(!late(std::slice::from_ref(&unreachable), false), "one was asked");
        assert!(!late(&[lost("x"), unreachable], true), "one was asked before");
        assert!(!late(&[], true));
    }
}
