//! Logins after failures: how long the answer to the next one is held back.
//!
//! Each failure makes the next answer to the same account from the same address later, and, less
//! so, every answer to that account and every answer to that address. No account is ever locked:
//! its owner gets in from another address after a short wait at most. Not here: the verdict on a
//! login, and the clock.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;
use weir_core::{Mono, Origin};

/// The answer after a second failure of an account from one address is held back this long, and
/// twice as long after each further one.
const FIRST: Duration = Duration::from_millis(250);

/// The longest time that an answer is held back.
pub const LONGEST: Duration = Duration::from_secs(8);

/// Failures of an account from anywhere, or of one address with any account, for each failure of
/// the account from one address that weighs as much.
const WIDE: u32 = 32;

/// Time without a failure after which one is forgotten.
const FORGIVEN: Duration = Duration::from_secs(60);

/// Accounts and addresses with failures. Beyond: those whose failures are oldest are forgotten.
const ENTRIES_MAX: usize = 16_384;

/// The subject of a count of failures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// An account, by its folded name, from an address.
    Pair(Box<str>, Origin),
    /// An account from anywhere.
    Account(Box<str>),
    /// An address with any account.
    Address(Origin),
}

/// The failures of a subject.
#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Mono,
    /// Answers are not given before this time.
    held_until: Mono,
}

/// The failures of logins.
#[derive(Debug, Default)]
pub struct Throttle(BTreeMap<Subject, Failures>);

impl Throttle {
    /// The earliest time for the answer to a login of `account` from `address` that arrived at
    /// `now`; `None` if it is to be refused unseen, because so many are held back already.
    #[must_use]
    pub fn answer_at(&self, account: &str, address: IpAddr, now: Mono) -> Option<Mono> {
        let held = |subject: Subject| self.0.get(&subject).map(|failures| failures.held_until);
        let held = subjects(account, address).into_iter().filter_map(held).max();
        let at = held.map_or(now, |held| held.max(now));
        (at.since(now) <= LONGEST).then_some(at)
    }

    /// A login of `account` from `address` has failed, and is answered at `answered`.
    pub fn failed(&mut self, account: &str, address: IpAddr, answered: Mono, now: Mono) {
        for subject in subjects(account, address) {
            let wide = if matches!(subject, Subject::Pair(..)) { 1 } else { WIDE };
            let new = Failures { count: 0, last: now, held_until: now };
            let failures = self.0.entry(subject).or_insert(new);
            failures.count = failures.remembered(now).saturating_add(1);
            failures.last = now;
            let hold = hold(failures.count.checked_div(wide).unwrap_or(0));
            failures.held_until = failures.held_until.max(after(answered, hold));
        }
        self.forget(now);
    }

    /// A login of `account` from `address` has succeeded.
    pub fn succeeded(&mut self, account: &str, address: IpAddr) {
        self.0.remove(&Subject::Pair(account.into(), Origin::of(address)));
    }

    /// Forgets what does not count any more, and the oldest if there is too much.
    fn forget(&mut self, now: Mono) {
        if self.0.len() <= ENTRIES_MAX {
            return;
        }
        self.0.retain(|_, failures| failures.remembered(now) > 0);
        if self.0.len() <= ENTRIES_MAX {
            return;
        }
        let mut ages: Vec<Mono> = self.0.values().map(|failures| failures.last).collect();
        let (_, middle, _) = ages.select_nth_unstable(ENTRIES_MAX / 2);
        let oldest = *middle;
        self.0.retain(|_, failures| failures.last > oldest);
    }
}

impl Failures {
    /// The failures that still count.
    fn remembered(&self, now: Mono) -> u32 {
        let forgiven = now.since(self.last).as_secs().checked_div(FORGIVEN.as_secs()).unwrap_or(0);
        self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// The time for which answers are held back after so many failures.
fn hold(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        more => {
            let doublings = more.saturating_sub(2).min(16);
            FIRST.saturating_mul(1u32.wrapping_shl(doublings)).min(LONGEST)
        }
    }
}

/// The time so long after another.
fn after(time: Mono, duration: Duration) -> Mono {
    Mono(time.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
}

fn subjects(account: &str, address: IpAddr) -> [Subject; 3] {
    let origin = Origin::of(address);
    [
        Subject::Pair(account.into(), origin),
        Subject::Account(account.into()),
        Subject::Address(origin),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const AWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    /// Fails `times` times, each as soon as the last was answered; gives the time of the end.
    fn fail(throttle: &mut Throttle, account: &str, address: IpAddr, times: usize) -> Mono {
        let mut now = Mono::ZERO;
        for _ in 0..times {
            now = throttle.answer_at(account, address, now).unwrap();
            throttle.failed(account, address, now, now);
        }
        now
    }

    #[test]
    fn a_mistyped_password_costs_nothing_and_guessing_ever_more() {
        let mut throttle = Throttle::default();
        assert_eq!(fail(&mut throttle, "ann", HOME, 2), Mono::ZERO);
        let answered = throttle.answer_at("ann", HOME, Mono::ZERO).unwrap();
        assert_eq!(answered.since(Mono::ZERO), FIRST);
        let mut throttle = Throttle::default();
        let ended = fail(&mut throttle, "ann", HOME, 12);
        assert!(ended.since(Mono::ZERO) > Duration::from_secs(30), "{ended:?}");
        assert_eq!(throttle.answer_at("ann", HOME, ended).unwrap().since(ended), LONGEST);
        // The owner of the account is elsewhere, and someone else here.
        assert!(throttle.answer_at("ann", AWAY, ended).unwrap().since(ended) < FIRST * 2);
        assert!(throttle.answer_at("bob", HOME, ended).unwrap().since(ended) < FIRST * 2);
    }

    #[test]
    fn guesses_at_once_are_answered_one_after_another_and_too_many_unseen() {
        let mut throttle = Throttle::default();
        fail(&mut throttle, "ann", HOME, 3);
        let (mut answers, now) = (Vec::new(), Mono::ZERO);
        while let Some(at) = throttle.answer_at("ann", HOME, now) {
            throttle.failed("ann", HOME, at, now);
            answers.push(at);
        }
        assert!(answers.is_sorted() && answers.len() < 8, "{answers:?}");
    }

    #[test]
    fn success_clears_the_pair_and_time_clears_all() {
        let mut throttle = Throttle::default();
        let ended = fail(&mut throttle, "ann", HOME, 6);
        throttle.succeeded("ann", HOME);
        assert_eq!(throttle.answer_at("ann", HOME, ended), Some(ended));
        let ended = fail(&mut throttle, "bob", HOME, 6);
        let later = ended + FORGIVEN * 6;
        throttle.failed("bob", HOME, later, later);
        assert_eq!(throttle.answer_at("bob", HOME, later), Some(later), "as after the first");
    }

    #[test]
    fn the_number_of_accounts_is_bounded() {
        let mut throttle = Throttle::default();
        for number in 0..40_000u64 {
            let (account, now) = (format!("user{number}"), Mono(number));
            throttle.failed(&account, HOME, now, now);
            assert!(throttle.0.len() <= ENTRIES_MAX + 3);
        }
        let (last, now) = ("user39999", Mono(40_000));
        throttle.failed(last, HOME, now, now);
        assert!(throttle.answer_at(last, HOME, now).unwrap() > now, "the newest are kept");
    }
}
