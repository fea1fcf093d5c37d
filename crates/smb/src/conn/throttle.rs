//! Logins after failures: how long the answer to the next one is held back.
//!
//! Each failure makes the next answer to the same account from the same address later, and, less
//! so, every answer to that account and every answer to that address; each of the three by a count
//! and a time of its own. No account is ever locked: only the account from one address is refused
//! unseen, and its owner gets in from another one after [`LONGEST`] at most, or at once from where
//! the last logins came. Not here: the verdict on a login, and the clock.

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

/// Time after a login for which its account and address are known.
const KNOWN: Duration = Duration::from_secs(30 * 24 * 3600);

/// Accounts and addresses with failures, and those that are known. Beyond: the entries with
/// the oldest failures or logins are removed.
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
pub struct Throttle {
    failures: BTreeMap<Subject, Failures>,
    /// Pairs with the times of their last logins.
    known: BTreeMap<Subject, Mono>,
}

impl Throttle {
    /// The earliest time for the answer to a login of `account` from `address` that arrived at
    /// `now`; `None` if it is to be refused unseen, because so many of this account from this
    /// address are held back already.
    #[must_use]
    pub fn answer_at(&self, account: &str, address: IpAddr, now: Mono) -> Option<Mono> {
        let [pair, account, address] = subjects(account, address);
        let held = |subject: &Subject| {
            self.failures.get(subject).map_or(now, |failures| failures.held_until.max(now))
        };
        let own = held(&pair);
        if own.since(now) > LONGEST {
            return None;
        }
        let known = self.known.get(&pair).is_some_and(|login| now.since(*login) <= KNOWN);
        // The guesses of others do not keep the owner from where the owner always is.
        Some(if known { own } else { own.max(held(&account)).max(held(&address)) })
    }

    /// A login of `account` from `address` that arrived at `now` has failed.
    pub fn failed(&mut self, account: &str, address: IpAddr, now: Mono) {
        for subject in subjects(account, address) {
            let is_pair = matches!(subject, Subject::Pair(..));
            let new = Failures { count: 0, last: now, held_until: now };
            let failures = self.failures.entry(subject).or_insert(new);
            failures.count = failures.remembered(now).saturating_add(1);
            failures.last = now;
            let count =
                if is_pair { Some(failures.count) } else { failures.count.checked_div(WIDE) };
            let held_until = after(failures.held_until.max(now), hold(count.unwrap_or(0)));
            // Answers to the account from elsewhere, and to others from the address, are late, but
            // never later than this.
            let latest = if is_pair { held_until } else { after(now, LONGEST) };
            failures.held_until = held_until.min(latest);
        }
        forget(
            &mut self.failures,
            |failures| failures.last,
            |failures| failures.remembered(now) > 0,
        );
    }

    /// A login of `account` from `address` has succeeded at `now`.
    pub fn succeeded(&mut self, account: &str, address: IpAddr, now: Mono) {
        let pair = Subject::Pair(account.into(), Origin::of(address));
        self.failures.remove(&pair);
        self.known.insert(pair, now);
        forget(&mut self.known, |login| *login, |login| now.since(*login) <= KNOWN);
    }
}

/// Where there is too much, forgets all that does not count any more, and the older half if there
/// is still too much.
fn forget<T>(
    entries: &mut BTreeMap<Subject, T>,
    time: impl Fn(&T) -> Mono,
    counts: impl Fn(&T) -> bool,
) {
    if entries.len() <= ENTRIES_MAX {
        return;
    }
    entries.retain(|_, entry| counts(entry));
    if entries.len() <= ENTRIES_MAX {
        return;
    }
    let mut ages: Vec<Mono> = entries.values().map(&time).collect();
    let (_, middle, _) = ages.select_nth_unstable(ENTRIES_MAX / 2);
    let oldest = *middle;
    entries.retain(|_, entry| time(entry) > oldest);
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
            throttle.failed(account, address, now);
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
        assert_eq!(throttle.answer_at("ann", AWAY, ended), Some(ended));
        assert_eq!(throttle.answer_at("bob", HOME, ended), Some(ended));
    }

    #[test]
    fn guesses_at_once_are_answered_one_after_another_and_too_many_unseen() {
        let mut throttle = Throttle::default();
        fail(&mut throttle, "ann", HOME, 3);
        let (mut answers, now) = (Vec::new(), Mono::ZERO);
        while let Some(at) = throttle.answer_at("ann", HOME, now) {
            throttle.failed("ann", HOME, now);
            answers.push(at);
        }
        assert!(answers.is_sorted() && answers.len() < 8, "{answers:?}");
    }

    /// An address in a network of its own.
    fn elsewhere(number: u8) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::new(172, 16, 0, number))
    }

    #[test]
    fn guesses_from_one_address_do_not_delay_the_owner_at_another() {
        let (mut throttle, now) = (Throttle::default(), Mono::ZERO);
        while throttle.answer_at("ann", AWAY, now).is_some() {
            throttle.failed("ann", AWAY, now);
        }
        assert_eq!(throttle.answer_at("ann", HOME, now), Some(now));
        assert_eq!(throttle.answer_at("bob", AWAY, now), Some(now));
    }

    #[test]
    fn guesses_from_everywhere_delay_an_account_and_lock_it_nowhere() {
        let (mut throttle, now) = (Throttle::default(), Mono::ZERO);
        throttle.succeeded("ann", AWAY, now);
        for number in 0..250 {
            for _ in 0..5 {
                throttle.failed("ann", elsewhere(number), now);
            }
        }
        let answered = throttle.answer_at("ann", HOME, now).map(|at| at.since(now));
        assert_eq!(answered, Some(LONGEST), "late, but answered");
        assert_eq!(throttle.answer_at("ann", AWAY, now), Some(now), "the owner was there before");
        let later = now + KNOWN + Duration::from_secs(1);
        for number in 0..250 {
            throttle.failed("ann", elsewhere(number), later);
        }
        assert!(throttle.answer_at("ann", AWAY, later).unwrap() > later, "but long ago");
    }

    #[test]
    fn guesses_of_many_accounts_delay_their_address() {
        let (mut throttle, now) = (Throttle::default(), Mono::ZERO);
        for number in 0..1000 {
            throttle.failed(&format!("user{number}"), AWAY, now);
        }
        let answered = throttle.answer_at("ann", AWAY, now).map(|at| at.since(now));
        assert_eq!(answered, Some(LONGEST));
        assert_eq!(throttle.answer_at("user1", HOME, now), Some(now));
    }

    #[test]
    fn success_clears_the_pair_and_time_clears_all() {
        let mut throttle = Throttle::default();
        let ended = fail(&mut throttle, "ann", HOME, 6);
        throttle.succeeded("ann", HOME, ended);
        assert_eq!(throttle.answer_at("ann", HOME, ended), Some(ended));
        let ended = fail(&mut throttle, "bob", HOME, 6);
        let later = ended + FORGIVEN * 6;
        throttle.failed("bob", HOME, later);
        assert_eq!(throttle.answer_at("bob", HOME, later), Some(later), "as after the first");
    }

    #[test]
    fn the_number_of_accounts_is_bounded() {
        let mut throttle = Throttle::default();
        for number in 0..40_000u64 {
            let (account, now) = (format!("user{number}"), Mono(number));
            throttle.failed(&account, HOME, now);
            assert!(throttle.failures.len() <= ENTRIES_MAX + 3);
        }
        let (last, now) = ("user39999", Mono(40_000));
        throttle.failed(last, HOME, now);
        assert!(throttle.answer_at(last, HOME, now).unwrap() > now, "the newest are kept");
        for number in 0..40_000u64 {
            throttle.succeeded(&format!("user{number}"), HOME, Mono(number));
            assert!(throttle.known.len() <= ENTRIES_MAX);
        }
    }
}
