//! The byte ranges held on one file, as POSIX has them: an owner's ranges never overlap and those
//! that touch in the same mode are one; to lock again changes the mode; to unlock the middle
//! leaves two (IEEE 1003.1, `fcntl`, `F_SETLK`).

use crate::interval::Intervals;
use crate::owner::Owner;
use crate::range::{Mode, Range};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

/// The ranges held on one file.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// The ranges by owner and first byte: an owner's ranges side by side.
    by_owner: BTreeMap<(Owner, u64), Held>,
    shared: Intervals<Owner>,
    exclusive: Intervals<Owner>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    last: u64,
    mode: Mode,
}

/// The ranges that a change of an owner's ranges would take out and put in.
#[derive(Debug)]
pub(crate) struct Plan {
    remove: Vec<(Range, Mode)>,
    insert: Vec<(Range, Mode)>,
    frees: bool,
}

impl Plan {
    /// The number of additional ranges held afterwards, and the number of removed ones.
    pub(crate) fn growth(&self) -> (usize, usize) {
        let (more, fewer) = (self.insert.len(), self.remove.len());
        (more.saturating_sub(fewer), fewer.saturating_sub(more))
    }

    /// Does some byte get free, or at least shared?
    pub(crate) fn frees(&self) -> bool {
        self.frees
    }
}

impl Ranges {
    pub(crate) fn len(&self) -> usize {
        self.by_owner.len()
    }

    /// A range of an owner other than `owner` that conflicts with holding `range` in this mode, and
    /// that is wanted.
    pub(crate) fn conflict<'a>(
        &'a self,
        owner: Option<&Owner>,
        range: Range,
        mode: Mode,
        want: &mut dyn FnMut(&'a Owner) -> bool,
    ) -> Option<(Range, Mode, &'a Owner)> {
        let mut others = |_, holder: &'a Owner| Some(holder) != owner && want(holder);
        if let Some((range, holder)) = self.exclusive.find(range, &mut others) {
            return Some((range, Mode::Exclusive, holder));
        }
        if mode == Mode::Shared {
            return None;
        }
        let (range, holder) = self.shared.find(range, &mut others)?;
        Some((range, Mode::Shared, holder))
    }

    /// The ranges of `owner` that overlap `range`, in order.
    pub(crate) fn own(&self, owner: &Owner, range: Range) -> impl Iterator<Item = (Range, Mode)> {
        let (first, last) = ((owner.clone(), range.first()), (owner.clone(), range.last()));
        let before = self.by_owner.range(..=&first).next_back();
        let rest = self.by_owner.range((Bound::Excluded(first), Bound::Included(last)));
        before
            .filter(|((holder, _), held)| holder == owner && held.last >= range.first())
            .into_iter()
            .chain(rest)
            .map(|((_, first), held)| (Range::between(*first, held.last), held.mode))
    }

    /// The range of `owner` whose first byte is `first`.
    pub(crate) fn beginning(&self, owner: &Owner, first: u64) -> Option<(Range, Mode)> {
        let held = self.by_owner.get(&(owner.clone(), first))?;
        Some((Range::between(first, held.last), held.mode))
    }

    /// The change by which `owner` holds `range` in `mode`, or not at all.
    pub(crate) fn plan(&self, owner: &Owner, range: Range, mode: Option<Mode>) -> Plan {
        let (mut first, mut last) = (range.first(), range.last());
        let (mut remove, mut insert, mut frees) = (Vec::new(), Vec::new(), false);
        let touching = Range::between(first.saturating_sub(1), last.saturating_add(1));
        for (held, as_held) in self.own(owner, touching) {
            if mode == Some(as_held) {
                first = first.min(held.first());
                last = last.max(held.last());
            } else if !held.overlaps(range) {
                continue;
            } else {
                frees |= mode.is_none_or(|mode| mode < as_held);
                if held.first() < range.first() {
                    insert.push((Range::between(held.first(), range.first() - 1), as_held));
                }
                if held.last() > range.last() {
                    insert.push((Range::between(range.last() + 1, held.last()), as_held));
                }
            }
            remove.push((held, as_held));
        }
        insert.extend(mode.map(|mode| (Range::between(first, last), mode)));
        Plan { remove, insert, frees }
    }

    /// Carries out a plan just made for `owner`.
    pub(crate) fn apply(&mut self, owner: &Owner, plan: &Plan) {
        for (range, mode) in &plan.remove {
            self.by_owner.remove(&(owner.clone(), range.first()));
            self.tree(*mode).remove(range.first(), owner);
        }
        for (range, mode) in &plan.insert {
            let held = Held { last: range.last(), mode: *mode };
            self.by_owner.insert((owner.clone(), range.first()), held);
            self.tree(*mode).insert(*range, owner.clone());
        }
    }

    /// All owners from `from` on, in order, once for each range.
    pub(crate) fn owners(&self, from: Option<&Owner>) -> impl Iterator<Item = &Owner> {
        let from = from.map_or(Bound::Unbounded, |owner| Bound::Included((owner.clone(), 0)));
        self.by_owner.range((from, Bound::Unbounded)).map(|((owner, _), _)| owner)
    }

    /// The ranges after the one of this owner with this first byte, in order.
    pub(crate) fn after(
        &self,
        after: Bound<(Owner, u64)>,
    ) -> impl Iterator<Item = (&Owner, Range, Mode)> {
        self.by_owner
            .range((after, Bound::Unbounded))
            .map(|((owner, first), held)| (owner, Range::between(*first, held.last), held.mode))
    }

    fn tree(&mut self, mode: Mode) -> &mut Intervals<Owner> {
        match mode {
            Mode::Shared => &mut self.shared,
            Mode::Exclusive => &mut self.exclusive,
        }
    }
}
