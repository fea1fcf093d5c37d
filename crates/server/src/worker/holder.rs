//! The memory and requests that one origin has on a worker: the sums over its connections, and over
//! its requests in flight whose connections are gone.
//!
//! Bounds for each origin lie well below those for all together, so that one origin at its bounds
//! leaves the others theirs. Not here: how many connections an origin may have, which
//! [`crate::admission`] counts over all workers.

use crate::admission::Origin;
use crate::limits::{
    GROUP_LOOKUPS_ORIGIN_MAX, LENT_BYTES_ORIGIN_MAX, PARKED_BYTES_ORIGIN_MAX,
    REPLY_BYTES_ORIGIN_CROWDED, REPLY_BYTES_ORIGIN_MAX, TASKS_ORIGIN_MAX,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The sums of one origin.
#[derive(Debug, Default)]
pub(super) struct Holder {
    /// Bytes of replies and of requests in flight.
    reply_bytes: Cell<usize>,
    /// Operations that wait for the disk.
    tasks: Cell<usize>,
    /// Bytes of requests that wait at gates.
    parked_bytes: Cell<usize>,
    /// Bytes of receive buffers that requests in flight keep from being used again.
    lent_bytes: Cell<usize>,
    /// Bytes that hold parts of records.
    partial_bytes: Cell<usize>,
    /// Requests whose callers' groups are looked up.
    lookups: Cell<usize>,
    /// Requests taken in a round of the worker, and which round that was.
    taken: Cell<usize>,
    round: Cell<u64>,
    /// A connection is not read because the origin is at a bound.
    waits: Cell<bool>,
}

/// An accessor of one of a holder's sums.
pub(super) type Sum = fn(&Holder) -> &Cell<usize>;

impl Holder {
    pub(super) const REPLY_BYTES: Sum = |holder| &holder.reply_bytes;
    pub(super) const PARKED_BYTES: Sum = |holder| &holder.parked_bytes;
    pub(super) const LENT_BYTES: Sum = |holder| &holder.lent_bytes;
    pub(super) const PARTIAL_BYTES: Sum = |holder| &holder.partial_bytes;

    /// The value of a sum.
    pub(super) fn get(&self, sum: Sum) -> usize {
        sum(self).get()
    }

    /// Adds to a sum.
    pub(super) fn add(&self, sum: Sum, more: usize) {
        sum(self).set(self.get(sum) + more);
    }

    /// Subtracts from a sum.
    pub(super) fn remove(&self, sum: Sum, less: usize) {
        sum(self).set(self.get(sum) - less);
    }

    /// Requests taken in `round` so far.
    pub(super) fn taken_in(&self, round: u64) -> usize {
        if self.round.get() == round { self.taken.get() } else { 0 }
    }

    /// Counts one more request taken in `round`.
    pub(super) fn took_in(&self, round: u64) {
        self.taken.set(self.taken_in(round) + 1);
        self.round.set(round);
    }

    /// Do replies and requests in flight hold so much that each connection gets one at a time?
    pub(super) fn is_crowded(&self) -> bool {
        self.reply_bytes.get() >= REPLY_BYTES_ORIGIN_CROWDED
    }

    /// May no request of the origin be started?
    pub(super) fn is_full(&self) -> bool {
        self.reply_bytes.get() >= REPLY_BYTES_ORIGIN_MAX
            || self.lent_bytes.get() >= LENT_BYTES_ORIGIN_MAX
            || self.tasks.get() >= TASKS_ORIGIN_MAX
    }

    /// May no request of the origin be read? Requests that wait at gates may go on.
    pub(super) fn may_not_read(&self) -> bool {
        self.is_full()
            || self.parked_bytes.get() >= PARKED_BYTES_ORIGIN_MAX
            || self.lookups.get() >= GROUP_LOOKUPS_ORIGIN_MAX
    }

    /// Is enough free again for connections to go on? The marks lie below the bounds, so that
    /// connections don't stop again at once.
    fn is_relieved(&self) -> bool {
        let below = |sum: &Cell<usize>, bound: usize| sum.get() < bound / 4 * 3;
        below(&self.reply_bytes, REPLY_BYTES_ORIGIN_MAX)
            && below(&self.lent_bytes, LENT_BYTES_ORIGIN_MAX)
            && below(&self.tasks, TASKS_ORIGIN_MAX)
            && below(&self.parked_bytes, PARKED_BYTES_ORIGIN_MAX)
            && below(&self.lookups, GROUP_LOOKUPS_ORIGIN_MAX)
    }
}

/// An operation that waits for the disk; it counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Rc<Holder>);

impl UnderWay {
    pub(super) fn new(holder: &Rc<Holder>) -> Self {
        holder.tasks.set(holder.tasks.get() + 1);
        Self(Rc::clone(holder))
    }

    /// The sums of the operation's origin.
    pub(super) fn holder(&self) -> &Holder {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.tasks.set(self.0.tasks.get() - 1);
    }
}

/// A request whose caller's groups are looked up; it counts until this value is dropped.
#[derive(Debug)]
pub(crate) struct LookingUp(Rc<Holder>);

impl LookingUp {
    pub(super) fn new(holder: &Rc<Holder>) -> Self {
        holder.lookups.set(holder.lookups.get() + 1);
        Self(Rc::clone(holder))
    }
}

impl Drop for LookingUp {
    fn drop(&mut self) {
        self.0.lookups.set(self.0.lookups.get() - 1);
    }
}

/// The origins of one worker.
#[derive(Debug, Default)]
pub(super) struct Holders {
    of: HashMap<Origin, Weak<Holder>>,
    /// Number of origins at which those without connections are forgotten.
    room: usize,
    /// The origins whose connections wait for a bound of the origin.
    waiting: Vec<Rc<Holder>>,
}

impl Holders {
    /// The sums of `origin`, which are forgotten when no reference is left.
    pub(super) fn of(&mut self, origin: Origin) -> Rc<Holder> {
        if let Some(holder) = self.of.get(&origin).and_then(Weak::upgrade) {
            return holder;
        }
        if self.of.len() >= self.room {
            self.of.retain(|_, holder| holder.strong_count() > 0);
            self.room = 2 * self.of.len() + 64;
        }
        let holder = Rc::new(Holder::default());
        self.of.insert(origin, Rc::downgrade(&holder));
        holder
    }

    /// Remembers that a connection waits until its origin is below its bounds.
    pub(super) fn wait(&mut self, holder: &Rc<Holder>) {
        if !holder.waits.replace(true) {
            self.waiting.push(Rc::clone(holder));
        }
    }

    /// An origin whose connections may go on, if there is one.
    pub(super) fn relieved(&mut self) -> Option<Rc<Holder>> {
        let at = self.waiting.iter().position(|holder| holder.is_relieved())?;
        let holder = self.waiting.swap_remove(at);
        holder.waits.set(false);
        Some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn origin(last: u8) -> Origin {
        Origin::of(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn what_an_origin_holds_is_summed_over_its_connections_and_forgotten_with_them() {
        let mut holders = Holders::default();
        let (one, same, other) =
            (holders.of(origin(1)), holders.of(origin(1)), holders.of(origin(2)));
        one.add(Holder::REPLY_BYTES, REPLY_BYTES_ORIGIN_CROWDED);
        assert!(same.is_crowded() && !same.is_full() && !other.is_crowded());
        drop((one, same));
        assert!(!holders.of(origin(1)).is_crowded());
        let _kept: Vec<_> = (0..=255).map(|last| holders.of(origin(last))).collect();
        drop(_kept);
        (0..100).for_each(|last| drop(holders.of(origin(last))));
        assert!(holders.of.len() < 1000);
    }

    #[test]
    fn an_operation_counts_until_it_is_dropped_and_then_relieves() {
        let mut holders = Holders::default();
        let holder = holders.of(origin(1));
        let mut tasks: Vec<_> = (0..TASKS_ORIGIN_MAX).map(|_| UnderWay::new(&holder)).collect();
        assert!(holder.is_full() && holder.may_not_read());
        holders.wait(&holder);
        holders.wait(&holder);
        tasks.truncate(TASKS_ORIGIN_MAX / 4 * 3);
        assert!(holders.relieved().is_none(), "not yet far below the bound");
        tasks.pop();
        assert!(holders.relieved().is_some_and(|relieved| Rc::ptr_eq(&relieved, &holder)));
        assert!(holders.relieved().is_none(), "once");
    }

    #[test]
    fn requests_at_gates_stop_reading_and_not_what_goes() {
        let holder = Holders::default().of(origin(1));
        holder.add(Holder::PARKED_BYTES, PARKED_BYTES_ORIGIN_MAX);
        assert!(holder.may_not_read() && !holder.is_full());
        holder.remove(Holder::PARKED_BYTES, 1);
        assert!(!holder.may_not_read());
    }
}
