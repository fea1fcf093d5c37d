//! The rules that every load has, whatever happens to the cluster: answers, data, and who sent the
//! replies. Not here: the rules of one campaign.

use super::course::Refusals;
use super::ledger::Found;
use super::wire::{Seen, Senders};
use crate::bed::Machine;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Instant;
use weir_api::ClientError;
use weir_lab::judge::Check;

/// The code with which a gateway refuses a change while etcd is away.
pub(crate) const UNREACHABLE: &str = "cluster_unreachable";

/// The gateways that served an address, in order, each time that they changed: `None` for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    noted: Vec<Option<Machine>>,
    /// Gateways that may have served it without a reply.
    brief: BTreeSet<Machine>,
}

impl Owners {
    /// Notes the gateway that serves the address now.
    pub(crate) fn note(&mut self, owner: Option<Machine>) {
        if self.noted.last() != Some(&owner) {
            self.noted.push(owner);
        }
    }

    /// Notes that the address leaves this gateway too soon for a reply to be sure.
    pub(crate) fn is_briefly_at(&mut self, machine: Machine) {
        self.brief.insert(machine);
    }

    /// The gateway that serves it now.
    pub(crate) fn last(&self) -> Option<Machine> {
        self.noted.last().copied().flatten()
    }

    /// The gateways that served it, without the times of none.
    pub(crate) fn served(&self) -> Vec<Machine> {
        self.served_but(&BTreeSet::new())
    }

    fn served_but(&self, others: &BTreeSet<Machine>) -> Vec<Machine> {
        let served = self.noted.iter().copied().flatten();
        let mut served: Vec<Machine> = served.filter(|one| !others.contains(one)).collect();
        served.dedup();
        served
    }
}

/// The rule that no request was refused for other reasons than `expected`, and all were answered.
pub(crate) fn answers(refusals: &Refusals, expected: &[&str], unanswered: u64) -> Check {
    let (refused, first) = refusals.but(expected);
    let mut words = format!("{refused} refused, {unanswered} without an answer");
    if let Some(first) = first {
        words += &format!("; the first {first}");
    }
    Check::new("every request answered, none refused", words, refused == 0 && unanswered == 0)
}

/// The rule about acknowledged data.
pub(crate) fn data(found: &Found) -> Check {
    let words = match (&found.first, &found.unread) {
        (None, None) => format!("{} blocks right", found.checked),
        (Some(first), _) => format!("{} of {} lost; {first}", found.lost, found.checked),
        (None, Some(why)) => format!("{} blocks right, others not read; {why}", found.checked),
    };
    let passed = found.lost == 0 && found.checked > 0 && found.unread.is_none();
    Check::new("no acknowledged data lost", words, passed)
}

/// The rule that a gateway's replies end when the address moves: those seen on the bridge came from
/// the gateways that served the address, in this order.
pub(crate) fn replies(senders: &Senders, address: Ipv4Addr, owners: &Owners) -> Check {
    let words = |machines: &[Machine]| {
        let names: Vec<String> = machines.iter().map(|one| one.name()).collect();
        if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
    };
    let seen = senders.get(&address).map(Vec::as_slice).unwrap_or_default();
    let served = owners.served();
    let expected = [&served, &owners.served_but(&owners.brief)];
    let passed = !seen.is_empty() && expected.iter().any(|expected| seen == *expected);
    let found = match passed {
        true => format!("from {}", words(seen)),
        false => format!("from {}, while served by {}", words(seen), words(&served)),
    };
    Check::new("no reply from a gateway after its address moved", found, passed)
}

/// The rule that the machine of the first gateway of an address sent no FIN and no reset from it
/// after `death`, when the gateway's server was killed: its clients were on record, so the next
/// gateway makes them connect anew.
pub(crate) fn silent_death(seen: &Seen, address: Ipv4Addr, death: Instant) -> Check {
    let late = seen.ended.get(&(address, 1)).and_then(|end| end.checked_duration_since(death));
    let found = match late {
        None => "no FIN or reset".to_owned(),
        Some(after) => format!("a FIN or reset {} ms after the kill", after.as_millis()),
    };
    Check::new("a killed gateway ends no connection on record", found, late.is_none())
}

/// The rule that a change was refused with this code.
pub(crate) fn refused(rule: &str, code: &str, asked: &Result<(), ClientError>) -> Check {
    match asked {
        Ok(()) => Check::new(rule, "it was accepted", false),
        Err(ClientError::Refused { error, .. }) => {
            let passed = error.code == code;
            let words =
                if passed { error.code.clone() } else { format!("{}: {error}", error.code) };
            Check::new(rule, words, passed)
        }
        Err(error) => Check::new(rule, error.to_string(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_api::ApiError;

    #[test]
    fn only_the_refusal_that_names_the_cause_is_one() {
        let refused = |code: &str| {
            let error = ApiError::new(code, "words");
            refused("r", UNREACHABLE, &Err(ClientError::Refused { status: 503, error }))
        };
        assert!(refused(UNREACHABLE).passed);
        assert!(!refused("internal").passed && refused("internal").worst.contains("words"));
        assert!(!super::refused("r", UNREACHABLE, &Ok(())).passed);
        let late = Err(ClientError::Timeout("a".to_owned()));
        assert!(!super::refused("r", UNREACHABLE, &late).passed);
    }

    #[test]
    fn a_death_is_silent_if_no_connection_ended_after_it() {
        let address = Ipv4Addr::new(10, 77, 4, 1);
        let death = Instant::now();
        let later = death + Duration::from_millis(1);
        let passed = |place, at| {
            let ended = [((address, place), at)].into();
            silent_death(&Seen { ended, ..Seen::default() }, address, death).passed
        };
        assert!(!passed(1, later));
        assert!(passed(2, later), "at the next gateway");
        assert!(silent_death(&Seen::default(), address, death).passed);
        let ended = [((address, 1), death)].into();
        let seen = Seen { ended, ..Seen::default() };
        assert!(silent_death(&seen, address, later).passed, "before the death");
    }

    #[test]
    fn refusals_and_lost_blocks_are_told_with_the_first() {
        let mut refusals = Refusals::default();
        assert!(answers(&refusals, &[], 0).passed && !answers(&refusals, &[], 1).passed);
        refusals.note("STALE".to_owned(), 1.0);
        let check = answers(&refusals, &[], 0);
        assert!(!check.passed && check.worst.contains("STALE"));
        assert!(answers(&refusals, &["STALE"], 0).passed);
        let found = |checked, lost| {
            let first = (lost > 0).then(|| "zeros".to_owned());
            data(&Found { checked, lost, first, ..Found::default() }).passed
        };
        assert!(found(10, 0) && !found(10, 1) && !found(0, 0));
        let unread = Some("no route".to_owned());
        let check = data(&Found { checked: 9, unread, ..Found::default() });
        assert!(!check.passed && check.worst.contains("no route"));
    }

    #[test]
    fn replies_come_from_the_owners_in_their_order() {
        let [one, two] = [1, 2].map(Machine::Gateway);
        let address = Ipv4Addr::new(10, 77, 4, 1);
        let mut owners = Owners::default();
        for owner in [Some(one), Some(one), None, Some(two)] {
            owners.note(owner);
        }
        assert_eq!((owners.last(), owners.served()), (Some(two), vec![one, two]));
        let check =
            |seen: &[Machine]| replies(&[(address, seen.to_vec())].into(), address, &owners);
        assert!(check(&[one, two]).passed);
        let late = check(&[one, two, one, two]);
        assert!(!late.passed && late.worst.contains("while served by"), "{late:?}");
        assert!(!check(&[two]).passed && !check(&[]).passed);
        let mut again = Owners::default();
        again.note(Some(one));
        again.note(None);
        again.note(Some(one));
        assert_eq!(again.served(), [one]);
    }

    #[test]
    fn a_gateway_that_served_briefly_may_have_sent_no_reply() {
        let [one, two] = [1, 2].map(Machine::Gateway);
        let address = Ipv4Addr::new(10, 77, 4, 1);
        let mut owners = Owners::default();
        for owner in [one, two, one] {
            owners.note(Some(owner));
        }
        let check = |owners: &Owners, seen: &[Machine]| {
            replies(&[(address, seen.to_vec())].into(), address, owners).passed
        };
        assert!(check(&owners, &[one, two, one]) && !check(&owners, &[one]));
        owners.is_briefly_at(two);
        assert!(check(&owners, &[one, two, one]) && check(&owners, &[one]));
        assert!(!check(&owners, &[one, two]) && !check(&owners, &[two]));
        assert_eq!(owners.served(), [one, two, one]);
    }
}
