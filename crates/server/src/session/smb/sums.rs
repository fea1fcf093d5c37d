//! Bounds in sum on the memory that clients make their sessions hold: bytes of one kind, of all
//! clients together and of each. Not here: the bounds themselves, which are in `limits.rs`.

use crate::limits::SumBounds;
use crate::sync::{Arc, Mutex, lock};
use std::collections::BTreeMap;
use weir_core::Origin;
use weir_core::origin::part;

/// Bytes that count together.
pub(super) struct Sum {
    bounds: SumBounds,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: usize,
    /// By holder, unless it holds nothing.
    of: BTreeMap<Holder, usize>,
}

/// The holder of bytes that count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A user at an origin: neither more sessions nor more addresses of a network give a user more.
    Client {
        /// The user's relative identifier.
        user: u32,
        origin: Origin,
    },
    /// All clients that rename files which other clients have open. The bytes do not count for the
    /// client that has the open: they could keep it from opening files. They do not count for the
    /// client that renames either, which does not decide how many opens there are, or for how long.
    Renames,
}

/// A sum as one holder sees it.
pub(super) struct SumAccount {
    holder: Holder,
    sum: Arc<Sum>,
}

/// Bytes that count for a holder until they are given up, at the latest when this is dropped.
pub(super) struct Charge {
    bytes: usize,
    account: Arc<SumAccount>,
    /// They count for [`Holder::Renames`] instead of the holder of the account.
    by_rename: bool,
}

impl Sum {
    /// No bytes.
    pub(super) fn new(bounds: SumBounds) -> Self {
        Self { bounds, held: Mutex::default() }
    }

    /// Counts `to` instead of `from` bytes of `holder`. False, and nothing changes, if these are
    /// more and would pass a bound, unless the change is `forced`.
    fn change(&self, holder: Holder, from: usize, to: usize, forced: bool) -> bool {
        if from == to {
            return true;
        }
        let mut held = lock(&self.held);
        let (own, total) = held.after(holder, from, to);
        if to > from && !forced && self.passes(own, total) {
            return false;
        }
        held.total = total;
        match own {
            0 => held.of.remove(&holder),
            own => held.of.insert(holder, own),
        };
        true
    }

    /// Do these bytes of a holder, which are among `total`, pass a bound?
    fn passes(&self, own: usize, total: usize) -> bool {
        let SumBounds { most, one_in, least } = self.bounds;
        total > most || own > part(most, total.saturating_sub(own), one_in, least)
    }
}

impl Held {
    /// The bytes of `holder` and of all with `to` instead of `from` of them.
    fn after(&self, holder: Holder, from: usize, to: usize) -> (usize, usize) {
        let own = self.of.get(&holder).copied().unwrap_or(0);
        let after = |bytes: usize| bytes.saturating_sub(from).saturating_add(to);
        (after(own), after(self.total))
    }
}

impl SumAccount {
    /// The account of `holder` in `sum`.
    pub(super) fn new(holder: Holder, sum: &Arc<Sum>) -> Arc<Self> {
        Arc::new(Self { holder, sum: Arc::clone(sum) })
    }

    /// May the holder have one byte more?
    pub(super) fn has_room(&self) -> bool {
        let (own, total) = lock(&self.sum.held).after(self.holder, 0, 1);
        !self.sum.passes(own, total)
    }
}

impl Charge {
    /// No bytes.
    pub(super) fn new(account: &Arc<SumAccount>) -> Self {
        Self { bytes: 0, account: Arc::clone(account), by_rename: false }
    }

    fn holder(&self) -> Holder {
        if self.by_rename { Holder::Renames } else { self.account.holder }
    }

    fn change(&mut self, bytes: usize, forced: bool) -> bool {
        let changed = self.account.sum.change(self.holder(), self.bytes, bytes, forced);
        if changed {
            self.bytes = bytes;
        }
        changed
    }

    /// Counts with `bytes` instead, whatever the bounds.
    pub(super) fn set(&mut self, bytes: usize) {
        let _always = self.change(bytes, true);
    }

    /// Counts with `bytes` instead. False, and nothing changes, if these are more and would pass a
    /// bound.
    #[must_use]
    pub(super) fn try_set(&mut self, bytes: usize) -> bool {
        self.change(bytes, false)
    }

    /// Counts with `bytes` instead, because a client renames. If these are more, and the client is
    /// not the holder, they count for [`Holder::Renames`]. False, and nothing changes, if they
    /// would pass a bound.
    #[must_use]
    pub(super) fn try_rename(&mut self, bytes: usize, by: &SumAccount) -> bool {
        if bytes <= self.bytes || self.by_rename || by.holder == self.account.holder {
            return self.try_set(bytes);
        }
        let moved = self.account.sum.change(Holder::Renames, 0, bytes, false);
        if moved {
            self.set(0);
            (self.by_rename, self.bytes) = (true, bytes);
        }
        moved
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(most: usize, one_in: usize, least: usize) -> Arc<Sum> {
        Arc::new(Sum::new(SumBounds { most, one_in, least }))
    }

    fn client(user: u32, sum: &Arc<Sum>) -> Arc<SumAccount> {
        SumAccount::new(Holder::Client { user, origin: Origin::default() }, sum)
    }

    fn total(sum: &Sum) -> usize {
        lock(&sum.held).total
    }

    #[test]
    fn bytes_count_for_their_client_and_for_all_until_they_are_dropped() {
        let sum = sum(100, 2, 0);
        let (one, other) = (client(1, &sum), client(2, &sum));
        // Another session of the client has the same part.
        let (mut first, mut again) = (Charge::new(&one), Charge::new(&client(1, &sum)));
        assert!(first.try_set(30) && again.try_set(20));
        assert!(!first.try_set(31) && !again.try_set(21), "half of what the others leave");
        assert!(!one.has_room() && other.has_room());
        let mut second = Charge::new(&other);
        assert!(!second.try_set(26) && second.try_set(25));
        assert_eq!(total(&sum), 75);
        // Less always has room, also where a bound is passed.
        second.set(70);
        assert!(second.try_set(65) && first.try_set(10));
        assert!(!second.try_set(66));
        assert_eq!(total(&sum), 95);
        drop((first, second, again));
        assert_eq!(total(&sum), 0);
        assert!(lock(&sum.held).of.is_empty());
    }

    #[test]
    fn a_client_has_its_least_part_until_the_sum_is_full() {
        let sum = sum(100, 4, 10);
        let mut greedy: Vec<Charge> = (0..5).map(|user| Charge::new(&client(user, &sum))).collect();
        for charge in &mut greedy {
            while charge.try_set(charge.bytes + 1) {}
            assert!(charge.bytes >= 10);
        }
        let mut late = Charge::new(&client(9, &sum));
        let left = 100 - total(&sum);
        assert!(left > 0 && late.try_set(left.min(10)));
    }

    #[test]
    fn bytes_that_another_client_names_count_for_neither() {
        let sum = sum(100, 4, 0);
        let (ann, bob) = (client(1, &sum), client(2, &sum));
        let mut charge = Charge::new(&ann);
        assert!(charge.try_set(5));
        assert!(charge.try_rename(20, &bob) && charge.by_rename);
        assert!(!charge.try_rename(26, &bob), "all renames have one part");
        let of = |holder| lock(&sum.held).of.get(&holder).copied();
        assert_eq!((of(ann.holder), of(bob.holder), of(Holder::Renames)), (None, None, Some(20)));
        assert!(charge.try_rename(3, &ann));
        let mut own = Charge::new(&ann);
        assert!(own.try_set(5) && own.try_rename(10, &ann) && own.try_rename(8, &bob));
        assert_eq!((of(ann.holder), of(Holder::Renames)), (Some(8), Some(3)));
        drop((charge, own));
        assert_eq!(total(&sum), 0);
    }
}
