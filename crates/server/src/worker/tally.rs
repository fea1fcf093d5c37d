//! Sums of memory and requests, kept by guards: an amount counts from the creation of its guard
//! until the guard is dropped, on every path.
//!
//! A tally may belong to a larger one, as the sum of an origin belongs to the sum of its worker.
//! Not here: the bounds on the sums, which [`super::load`] compares.

use std::cell::Cell;
use std::rc::Rc;

/// A sum of amounts on one worker.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sum: Cell<usize>,
    within: Option<Rc<Tally>>,
}

impl Tally {
    /// A sum whose amounts count in `whole` too.
    pub(super) fn within(whole: &Rc<Self>) -> Rc<Self> {
        Rc::new(Self { sum: Cell::new(0), within: Some(Rc::clone(whole)) })
    }

    /// The sum.
    pub(super) fn get(&self) -> usize {
        self.sum.get()
    }

    /// Replaces one of the amounts. For guards alone.
    pub(super) fn replace(&self, old: usize, new: usize) {
        debug_assert!(self.sum.get() >= old, "an amount left the sum twice");
        self.sum.set(self.sum.get() - old + new);
        if let Some(whole) = &self.within {
            whole.replace(old, new);
        }
    }
}

/// An amount that counts in a tally until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    tally: Rc<Tally>,
    amount: usize,
}

impl Counted {
    /// Counts `amount` in `tally`.
    pub(super) fn new(tally: &Rc<Tally>, amount: usize) -> Self {
        tally.replace(0, amount);
        Self { tally: Rc::clone(tally), amount }
    }

    /// The amount.
    pub(super) fn amount(&self) -> usize {
        self.amount
    }

    /// Changes the amount.
    pub(super) fn set(&mut self, amount: usize) {
        if amount != self.amount {
            self.tally.replace(self.amount, amount);
            self.amount = amount;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.tally.replace(self.amount, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_counts_in_every_sum_until_it_is_dropped() {
        let worker = Rc::new(Tally::default());
        let (one, other) = (Tally::within(&worker), Tally::within(&worker));
        let mut large = Counted::new(&one, 70);
        let small = Counted::new(&other, 3);
        assert_eq!((one.get(), other.get(), worker.get()), (70, 3, 73));
        large.set(7);
        assert_eq!((large.amount(), one.get(), worker.get()), (7, 7, 10));
        drop((large, small));
        assert_eq!((one.get(), other.get(), worker.get()), (0, 0, 0));
    }
}
