//! The requests that wait for locks on one file, in the order of their arrival.

use crate::ask::Ask;
use crate::file::File;
use crate::interval::Intervals;
use crate::owner::Owner;
use crate::range::{Mode, Range};
use alloc::collections::BTreeMap;
use core::ops::Bound;

/// A request that waits; `W` is what the caller needs to tell its client.
#[derive(Debug)]
pub(crate) struct Waiter<W> {
    pub(crate) owner: Owner,
    pub(crate) range: Range,
    pub(crate) mode: Mode,
    pub(crate) token: W,
}

impl<W> Waiter<W> {
    /// Does it wait for exactly this?
    pub(crate) fn is(&self, ask: &Ask) -> bool {
        (self.range, self.mode) == (ask.range, ask.mode) && self.owner == ask.owner
    }

    /// The request that waits.
    pub(crate) fn ask(&self, file: &File) -> Ask {
        Ask { file: *file, owner: self.owner.clone(), range: self.range, mode: self.mode }
    }
}

/// All that wait, by number; a lower number came earlier.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    waiters: BTreeMap<u64, Waiter<W>>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self { waiters: BTreeMap::new() }
    }
}

impl<W> Queue<W> {
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn push(&mut self, number: u64, waiter: Waiter<W>) {
        self.waiters.insert(number, waiter);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Waiter<W>> {
        self.waiters.get(&number)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Waiter<W>> {
        self.waiters.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Waiter<W>> {
        self.waiters.remove(&number)
    }

    /// The requests in the order of arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Waiter<W>)> {
        self.waiters.iter().map(|(number, waiter)| (*number, waiter))
    }

    /// The first that came after `number`.
    pub(crate) fn after(&self, number: u64) -> Option<(u64, &Waiter<W>)> {
        self.all_after(number).next()
    }

    /// The requests that came after `number`, in the order of arrival; none has the number 0.
    pub(crate) fn all_after(&self, number: u64) -> impl Iterator<Item = (u64, &Waiter<W>)> {
        let after = (Bound::Excluded(number), Bound::Unbounded);
        self.waiters.range(after).map(|(number, waiter)| (*number, waiter))
    }

    /// Does a request that came before `number` wait for something in conflict with this?
    pub(crate) fn earlier(&self, number: u64, ask: &Ask) -> bool {
        self.waiters.range(..number).any(|(_, waiter)| {
            waiter.range.overlaps(ask.range)
                && waiter.mode.conflicts(ask.mode)
                && can_conflict(&waiter.owner, &ask.owner)
        })
    }
}

/// Can requests of these two conflict? Those of one open can.
fn can_conflict(one: &Owner, other: &Owner) -> bool {
    one != other || one.open().is_some()
}

/// The requests passed over while the queue is gone through, searched fast for one that must not be
/// overtaken.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    shared: Intervals<(Owner, u64)>,
    exclusive: Intervals<(Owner, u64)>,
}

impl Ahead {
    pub(crate) fn push<W>(&mut self, number: u64, waiter: &Waiter<W>) {
        let tree = match waiter.mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.exclusive,
        };
        tree.insert(waiter.range, (waiter.owner.clone(), number));
    }

    /// Must `waiter` not overtake one of them?
    pub(crate) fn stands_against<W>(&self, waiter: &Waiter<W>) -> bool {
        let mut other = |_, key: &(Owner, u64)| can_conflict(&key.0, &waiter.owner);
        self.exclusive.find(waiter.range, &mut other).is_some()
            || (waiter.mode == Mode::Exclusive
                && self.shared.find(waiter.range, &mut other).is_some())
    }
}
