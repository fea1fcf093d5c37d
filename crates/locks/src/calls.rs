//! The calls under way that ask for locks: how many there are, and their order.

use crate::limits::{LOCK_CALLS_MAX, LOCK_CALLS_ORIGIN_MIN, LOCK_CALLS_ORIGIN_ONE_IN};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::task::Waker;
use weir_core::Origin;
use weir_core::origin::Counts;
use weir_state::File;

/// The calls of one address about one file are carried out in the order of their arrival, on
/// whatever connection or by datagram: an UNLOCK that a client sends after a LOCK must not overtake
/// it where the LOCK waits, or the client keeps a lock that it does not know of.
pub(crate) type Line = (IpAddr, File);

/// All calls under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: Counts,
    /// The calls of each line by their numbers; the first may be carried out. The waker is that of
    /// a call that waits for its turn.
    lines: HashMap<Line, BTreeMap<u64, Option<Waker>>>,
    serial: u64,
}

impl Calls {
    /// Begins a call from `address` at the end of `line`, unless [`LOCK_CALLS_MAX`] are under way
    /// or its origin has its part of them. Gives the call's number.
    pub(crate) fn begin(&mut self, address: IpAddr, line: Option<Line>) -> Option<u64> {
        let origin = Origin::of(address);
        let (one_in, least) = (LOCK_CALLS_ORIGIN_ONE_IN, LOCK_CALLS_ORIGIN_MIN);
        if !self.counts.have_room(origin, LOCK_CALLS_MAX, one_in, least) {
            return None;
        }
        self.counts.add(origin);
        self.serial += 1;
        if let Some(line) = line {
            self.lines.entry(line).or_default().insert(self.serial, None);
        }
        Some(self.serial)
    }

    /// Is it the turn of call `number` in `line`? If not, `waker` is woken then.
    pub(crate) fn is_first(&mut self, line: &Line, number: u64, waker: &Waker) -> bool {
        let Some(calls) = self.lines.get_mut(line) else { return true };
        if calls.first_key_value().is_none_or(|(first, _)| *first == number) {
            return true;
        }
        if let Some(place) = calls.get_mut(&number) {
            *place = Some(waker.clone());
        }
        false
    }

    /// Ends a call. Gives the waker of the one whose turn it is now.
    pub(crate) fn end(
        &mut self,
        address: IpAddr,
        line: Option<&Line>,
        number: u64,
    ) -> Option<Waker> {
        self.counts.remove(Origin::of(address));
        let line = line?;
        let calls = self.lines.get_mut(line)?;
        calls.remove(&number);
        match calls.first_entry() {
            Some(mut first) => first.get_mut().take(),
            None => {
                self.lines.remove(line);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_address_leave_room_for_others() {
        let mut calls = Calls::default();
        let [greedy, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let taken = (0..LOCK_CALLS_MAX).filter(|_| calls.begin(greedy, None).is_some()).count();
        assert_eq!(taken, LOCK_CALLS_MAX / LOCK_CALLS_ORIGIN_ONE_IN);
        for _ in 0..LOCK_CALLS_ORIGIN_MIN {
            assert!(calls.begin(other, None).is_some());
        }
        calls.end(greedy, None, 1);
        assert_eq!(calls.counts.total(), taken + LOCK_CALLS_ORIGIN_MIN - 1);
    }
}
