//! The queue of SMB logins between the data plane, which reports them without ever waiting, and the
//! audit log, which records them. The queue has a bound and a rate, so that no client can fill the
//! memory or the disk; logins beyond them are counted. Not here: the records.

use crate::limits::{
    LOGIN_RECORDS_MINUTE_MAX, LOGIN_REFUSALS_MINUTE_MAX, LOGINS_WAITING_MAX, USER_CHARS_MAX,
};
use crate::per_minute::PerMinute;
use crate::sync::{Mutex, Notify, lock};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A login, a refused one, or the end of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user's name, or the name that a refused client gave; `None` if the client gave none.
    pub account: Option<String>,
    /// The client's address.
    pub client: IpAddr,
    /// The outcome.
    pub event: LoginEvent,
}

/// The outcome of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginEvent {
    /// The user logged in.
    LoggedIn {
        /// The session's ID.
        session: u64,
        /// The login renewed an existing session.
        renewed: bool,
    },
    /// The login was refused.
    Refused {
        /// The reason as a word of the audit log.
        reason: &'static str,
    },
    /// The user logged off.
    LoggedOff {
        /// The session's ID.
        session: u64,
    },
}

/// A login to record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoginToRecord {
    pub(crate) login: Login,
    /// The number of logins of the same kind that were left out since the last recorded one.
    pub(crate) suppressed: Option<u64>,
}

/// The numbers of logins that were left out and that no later record has counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) refused: Option<u64>,
    pub(crate) others: Option<u64>,
}

/// The queue of logins to record.
#[derive(Debug)]
pub struct Logins {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Debug)]
struct Waiting {
    logins: VecDeque<Login>,
    refused: PerMinute,
    others: PerMinute,
}

impl Waiting {
    fn rate(&mut self, event: LoginEvent) -> &mut PerMinute {
        match event {
            LoginEvent::Refused { .. } => &mut self.refused,
            LoginEvent::LoggedIn { .. } | LoginEvent::LoggedOff { .. } => &mut self.others,
        }
    }
}

impl Default for Logins {
    /// An empty queue.
    fn default() -> Self {
        let waiting = Waiting {
            logins: VecDeque::new(),
            refused: PerMinute::new(LOGIN_REFUSALS_MINUTE_MAX),
            others: PerMinute::new(LOGIN_RECORDS_MINUTE_MAX),
        };
        Self { waiting: Mutex::new(waiting), added: Notify::new() }
    }
}

impl Logins {
    /// Queues a login, or counts it if the queue is full or the rate is exceeded. Never waits.
    pub fn report(&self, login: Login) {
        self.report_at(seconds(), login);
    }

    fn report_at(&self, now: u64, mut login: Login) {
        if let Some(account) = &mut login.account
            && let Some((end, _)) = account.char_indices().nth(USER_CHARS_MAX)
        {
            account.truncate(end);
        }
        let mut waiting = lock(&self.waiting);
        let has_room = waiting.logins.len() < LOGINS_WAITING_MAX;
        let rate = waiting.rate(login.event);
        if !has_room {
            return rate.suppress();
        }
        if rate.take(now) {
            waiting.logins.push_back(login);
            drop(waiting);
            self.added.notify_one();
        }
    }

    /// The next login to record, once there is one.
    pub(crate) async fn next(&self) -> LoginToRecord {
        loop {
            if let Some(login) = self.try_next() {
                return login;
            }
            // A login queued since is not missed: `Notify` keeps its permit.
            self.added.notified().await;
        }
    }

    /// The next login to record, if there is one.
    pub(crate) fn try_next(&self) -> Option<LoginToRecord> {
        let mut waiting = lock(&self.waiting);
        let login = waiting.logins.pop_front()?;
        let suppressed = waiting.rate(login.event).take_suppressed();
        Some(LoginToRecord { login, suppressed })
    }

    /// The numbers left out in past minutes.
    pub(crate) fn overdue(&self) -> LeftOut {
        self.overdue_at(seconds())
    }

    fn overdue_at(&self, now: u64) -> LeftOut {
        let mut waiting = lock(&self.waiting);
        let Waiting { refused, others, .. } = &mut *waiting;
        LeftOut { refused: refused.take_overdue(now), others: others.take_overdue(now) }
    }

    /// The numbers left out until now, at the end.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut waiting = lock(&self.waiting);
        let Waiting { refused, others, .. } = &mut *waiting;
        LeftOut { refused: refused.take_suppressed(), others: others.take_suppressed() }
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(account: &str, event: LoginEvent) -> Login {
        Login { account: Some(account.to_owned()), client: IpAddr::from([192, 0, 2, 7]), event }
    }

    const REFUSED: LoginEvent = LoginEvent::Refused { reason: "wrong_password" };
    const IN: LoginEvent = LoginEvent::LoggedIn { session: 7, renewed: false };

    #[test]
    fn refusals_beyond_the_rate_are_counted_and_leave_room_for_logins() {
        let logins = Logins::default();
        (0..1000).for_each(|_| logins.report_at(60, login("ann", REFUSED)));
        logins.report_at(60, login("ben", IN));
        let queued: Vec<LoginToRecord> = std::iter::from_fn(|| logins.try_next()).collect();
        assert_eq!(queued.len(), LOGIN_REFUSALS_MINUTE_MAX as usize + 1);
        let most = u64::from(LOGIN_REFUSALS_MINUTE_MAX);
        assert_eq!(queued[0].suppressed, Some(1000 - most));
        assert_eq!(
            queued[queued.len() - 1],
            LoginToRecord { login: login("ben", IN), suppressed: None }
        );
        logins.report_at(61, login("ann", REFUSED));
        assert_eq!(logins.overdue_at(119), LeftOut::default());
        assert_eq!(logins.overdue_at(120), LeftOut { refused: Some(1), others: None });
    }

    #[test]
    fn logins_that_are_not_recorded_take_no_more_than_the_queue() {
        let logins = Logins::default();
        for minute in 0..100 {
            (0..1000).for_each(|_| logins.report_at(60 * minute, login("ann", IN)));
        }
        assert_eq!(std::iter::from_fn(|| logins.try_next()).count(), LOGINS_WAITING_MAX);
    }

    #[test]
    fn a_long_account_is_cut_between_letters() {
        let logins = Logins::default();
        logins.report_at(0, login(&"é".repeat(10_000), REFUSED));
        let account = logins.try_next().unwrap().login.account.unwrap();
        assert_eq!(account, "é".repeat(USER_CHARS_MAX));
    }

    #[tokio::test]
    async fn a_reader_of_the_empty_queue_gets_the_next_login() {
        let logins = std::sync::Arc::new(Logins::default());
        let waiting = tokio::spawn({
            let logins = std::sync::Arc::clone(&logins);
            async move { logins.next().await }
        });
        tokio::task::yield_now().await;
        logins.report(login("ann", IN));
        assert_eq!(waiting.await.unwrap().login, login("ann", IN));
    }
}
