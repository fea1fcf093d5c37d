//! The write verifiers that servers show (RFC 1813 §3.3.7): a server that lost writes which were
//! not committed shows another one from then on.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub(super) type Verifier = [u8; 8];

/// Earlier verifiers of an address that are remembered, to recognize late replies. A server with
/// more restarts during a load than that may show an older one as a change.
const EARLIER_MAX: usize = 64;

/// The meaning of a verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The server shows it as before.
    Same,
    /// The server shows it for the first time, and showed another one before.
    Changed,
    /// It is one from before a change, in a reply that was looked at late.
    Old,
}

/// The verifiers of the addresses of a load.
#[derive(Default)]
pub(super) struct Verifiers {
    by_address: Mutex<BTreeMap<SocketAddr, History>>,
    changes: AtomicUsize,
}

#[derive(Default)]
struct History {
    current: Option<Verifier>,
    earlier: VecDeque<Verifier>,
    changes: usize,
}

impl Verifiers {
    /// The server at `address` showed `verifier`.
    pub(super) fn see(&self, address: SocketAddr, verifier: Verifier) -> News {
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let history = all.entry(address).or_default();
        match history.current {
            Some(current) if current == verifier => News::Same,
            Some(_) if history.earlier.contains(&verifier) => News::Old,
            Some(current) => {
                if history.earlier.len() == EARLIER_MAX {
                    history.earlier.pop_front();
                }
                history.earlier.push_back(current);
                history.current = Some(verifier);
                history.changes += 1;
                self.changes.fetch_add(1, Ordering::Relaxed);
                News::Changed
            }
            None => {
                history.current = Some(verifier);
                News::Same
            }
        }
    }

    /// The number of changes at all addresses.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }

    /// How often each address changed its verifier, of those that did.
    pub(super) fn changes(&self) -> Vec<(SocketAddr, usize)> {
        let all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = all.iter().map(|(address, history)| (*address, history.changes));
        changes.filter(|(_, count)| *count > 0).collect()
    }

    /// Has any address shown one?
    pub(super) fn are_known(&self) -> bool {
        !self.by_address.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_address_and_late_replies_are_none() {
        let verifiers = Verifiers::default();
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert!(!verifiers.are_known());
        assert_eq!(verifiers.see(one, [1; 8]), News::Same);
        assert_eq!(verifiers.see(other, [9; 8]), News::Same);
        assert_eq!(verifiers.see(one, [2; 8]), News::Changed);
        assert_eq!(verifiers.see(one, [2; 8]), News::Same);
        assert_eq!(verifiers.see(one, [1; 8]), News::Old);
        assert_eq!(verifiers.see(one, [3; 8]), News::Changed);
        assert_eq!(verifiers.changes(), [(one, 2)]);
        assert_eq!(verifiers.count(), 2);
    }

    #[test]
    fn a_server_that_shows_another_verifier_each_time_takes_no_more_memory() {
        let (verifiers, one) = (Verifiers::default(), SocketAddr::from(([127, 0, 0, 1], 1)));
        for number in 0..10_000_u64 {
            verifiers.see(one, number.to_be_bytes());
        }
        assert_eq!(verifiers.changes(), [(one, 9999)]);
        let all = verifiers.by_address.lock().unwrap();
        assert_eq!(all[&one].earlier.len(), EARLIER_MAX);
    }
}
