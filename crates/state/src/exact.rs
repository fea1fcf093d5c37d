//! The byte ranges that opens hold on one file, as MS-FSA has them: each stays the range that it
//! was taken as, an open's ranges may overlap, and the same one can be held several times.

use crate::interval::Intervals;
use crate::owner::{OpenId, Owner};
use crate::range::{Mode, Range};
use crate::span::Span;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

/// An owner, and the last byte of one of its ranges.
type Key = (Owner, u64);

/// The ranges that opens hold on one file.
#[derive(Debug, Default)]
pub(crate) struct ExactRanges {
    /// How many times each is held: an owner's side by side.
    held: BTreeMap<(Owner, Span, Mode), usize>,
    /// Each range once, however many times it is held, as far as it conflicts with any.
    shared: Intervals<Key>,
    exclusive: Intervals<Key>,
    len: usize,
}

impl ExactRanges {
    /// The number of locks, those on the same range counted each.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A lock that conflicts with `owner` locking `range` in this mode (MS-FSA §2.1.4.10 with
    /// locking intent): an exclusive one of another owner, and for an exclusive lock any.
    pub(crate) fn conflict(&self, owner: &Owner, range: Range, mode: Mode) -> Option<Found<'_>> {
        match mode {
            Mode::Shared => self.exclusive_but(owner.open(), range),
            Mode::Exclusive => self.exclusive_but(None, range).or_else(|| self.shared(range)),
        }
    }

    /// An exclusive lock on some of `range` that is not this open's.
    pub(crate) fn exclusive_but(&self, open: Option<OpenId>, range: Range) -> Option<Found<'_>> {
        let (range, (owner, _)) = match open {
            Some(open) => self.exclusive.find_but(range, open),
            None => self.exclusive.find(range, &mut |_, _| true),
        }?;
        Some((range, Mode::Exclusive, owner))
    }

    /// A shared lock on some of `range`, whoever has it.
    pub(crate) fn shared(&self, range: Range) -> Option<Found<'_>> {
        let (range, (owner, _)) = self.shared.find(range, &mut |_, _| true)?;
        Some((range, Mode::Shared, owner))
    }

    /// `owner` holds `span` in `mode`, once more if it does already.
    pub(crate) fn add(&mut self, owner: &Owner, span: Span, mode: Mode) {
        self.len += 1;
        let times = self.held.entry((owner.clone(), span, mode)).or_default();
        *times += 1;
        if *times == 1
            && let Some(range) = span.range()
        {
            self.tree(mode).insert(range, (owner.clone(), range.last()));
        }
    }

    /// Takes back a lock of `owner` in this mode on exactly `span`; `false` if it has none.
    pub(crate) fn remove(&mut self, owner: &Owner, span: Span, mode: Mode) -> bool {
        let key = (owner.clone(), span, mode);
        let Some(times) = self.held.get_mut(&key) else { return false };
        *times -= 1;
        self.len -= 1;
        if *times == 0 {
            self.held.remove(&key);
            self.unlink(owner, span, mode);
        }
        true
    }

    /// Takes the lock in this mode on exactly `span` from `owner`; gives the number of times that
    /// it was held.
    pub(crate) fn remove_every(&mut self, owner: &Owner, span: Span, mode: Mode) -> usize {
        let Some(times) = self.held.remove(&(owner.clone(), span, mode)) else { return 0 };
        self.len -= times;
        self.unlink(owner, span, mode);
        times
    }

    /// Takes all locks from `owner`; gives their number.
    pub(crate) fn remove_all(&mut self, owner: &Owner) -> usize {
        let locks: Vec<_> = self.of(owner).collect();
        locks.into_iter().map(|(span, mode, _)| self.remove_every(owner, span, mode)).sum()
    }

    /// Does `owner` hold a lock in this mode on exactly `span`?
    pub(crate) fn has(&self, owner: &Owner, span: Span, mode: Mode) -> bool {
        self.held.contains_key(&(owner.clone(), span, mode))
    }

    /// The locks of `owner`, with the number of times that each is held.
    pub(crate) fn of(&self, owner: &Owner) -> impl Iterator<Item = (Span, Mode, usize)> {
        self.from(Some(owner))
            .take_while(move |((holder, ..), _)| holder == owner)
            .map(|((_, span, mode), times)| (*span, *mode, *times))
    }

    /// All owners from `from` on, in order, once for each lock.
    pub(crate) fn owners(&self, from: Option<&Owner>) -> impl Iterator<Item = &Owner> {
        self.from(from).map(|((owner, ..), _)| owner)
    }

    /// The locks after this one, in order, each once however many times it is held.
    pub(crate) fn after(
        &self,
        after: Bound<(Owner, Span, Mode)>,
    ) -> impl Iterator<Item = &(Owner, Span, Mode)> {
        self.held.range((after, Bound::Unbounded)).map(|(lock, _)| lock)
    }

    fn from(&self, from: Option<&Owner>) -> impl Iterator<Item = (&(Owner, Span, Mode), &usize)> {
        let from = from.map_or(Bound::Unbounded, |owner| {
            Bound::Included((owner.clone(), Span::LEAST, Mode::Shared))
        });
        self.held.range((from, Bound::Unbounded))
    }

    fn unlink(&mut self, owner: &Owner, span: Span, mode: Mode) {
        if let Some(range) = span.range() {
            self.tree(mode).remove(range.first(), &(owner.clone(), range.last()));
        }
    }

    fn tree(&mut self, mode: Mode) -> &mut Intervals<Key> {
        match mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.exclusive,
        }
    }
}

/// A lock that was found: its range and mode, and its owner.
pub(crate) type Found<'a> = (Range, Mode, &'a Owner);
