//! Everything on one file: what is held, who waits, what is reserved, and which grants may still
//! have to be taken back.

mod by_place;
mod moving;
mod of_opens;

use crate::accounts::{Accounts, Claim};
use crate::amounts::Use;
use crate::ask::{Ask, Grant, GrantId, Locked};
use crate::books::Books;
use crate::error::{Holder, Limit, Refused, Scope};
use crate::exact::ExactRanges;
use crate::file::File;
use crate::owner::Owner;
use crate::queue::{Ahead, Queue, Waiter};
use crate::range::{Mode, Range};
use crate::ranges::{Plan, Ranges};
use crate::share::{Share, Shares};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The locks, waiters and shares of one file.
#[derive(Debug)]
pub(crate) struct FileLocks<W> {
    ranges: Ranges,
    exact: ExactRanges,
    queue: Queue<W>,
    shares: Shares,
    granted: BTreeMap<(Owner, GrantId), Granted>,
}

/// A grant that may have to be taken back.
#[derive(Debug)]
struct Granted {
    range: Range,
    mode: Mode,
    /// The ranges that the owner held of it before.
    before: Vec<(Range, Mode)>,
}

impl<W> Default for FileLocks<W> {
    fn default() -> Self {
        Self {
            ranges: Ranges::default(),
            exact: ExactRanges::default(),
            queue: Queue::default(),
            shares: Shares::default(),
            granted: BTreeMap::new(),
        }
    }
}

impl<W> FileLocks<W> {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges_held() == 0 && self.queue.len() == 0 && self.shares.len() == 0
    }

    /// The number of waiters, and of grants that may still have to be taken back.
    pub(crate) fn waiters_and_grants(&self) -> usize {
        self.queue.len() + self.granted.len()
    }

    /// The number of ranges that all owners hold.
    pub(crate) fn ranges_held(&self) -> usize {
        self.ranges.len() + self.exact.len()
    }

    /// The ranges of named owners.
    pub(crate) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The ranges of opens.
    pub(crate) fn exact(&self) -> &ExactRanges {
        &self.exact
    }

    /// The requests that wait.
    pub(crate) fn queue(&self) -> &Queue<W> {
        &self.queue
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The holder of a range that `ask` conflicts with.
    pub(crate) fn holder(&self, ask: &Ask) -> Option<Holder> {
        let exact = || self.exact.conflict(&ask.owner, ask.range, ask.mode);
        let ranges = self.ranges.conflict(Some(&ask.owner), ask.range, ask.mode, &mut |_| true);
        let (range, mode, owner) = ranges.or_else(exact)?;
        Some(Holder { owner: owner.clone(), range, mode })
    }

    /// The number under which exactly this waits already.
    pub(crate) fn waiting(&self, ask: &Ask) -> Option<u64> {
        let same = |(number, waiter): (u64, &Waiter<W>)| waiter.is(ask).then_some(number);
        self.queue.iter().find_map(same)
    }

    /// The request that waits as `number`.
    pub(crate) fn asked(&self, file: &File, number: u64) -> Option<Ask> {
        self.queue.get(number).map(|waiter| waiter.ask(file))
    }

    /// Would it overtake somebody whom it must not?
    pub(crate) fn must_queue(&self, ask: &Ask, waiting: Option<u64>, accounts: &Accounts) -> bool {
        !accounts.holds(&ask.owner) && self.queue.earlier(waiting.unwrap_or(u64::MAX), ask)
    }

    /// Takes what nobody else holds.
    pub(crate) fn take(
        &mut self,
        ask: &Ask,
        waiting: Option<u64>,
        claim: Claim,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<Locked, Limit> {
        let plan = self.ranges.plan(&ask.owner, ask.range, Some(ask.mode));
        let more = Use { locks: plan.growth().0, ..Use::default() };
        self.check(&ask.file, &ask.owner, &more, claim, books)?;
        self.change(&ask.file, &ask.owner, &plan, books);
        if let Some(number) = waiting {
            self.leave(&ask.file, number, books);
        }
        self.settle_within(&ask.owner, ask.range, books);
        if plan.frees() {
            self.wake(&ask.file, ask.range, books, grants);
        }
        Ok(Locked::Granted)
    }

    /// Puts a request at the end of the queue, or gives the one that waits there the new token.
    pub(crate) fn wait(
        &mut self,
        ask: &Ask,
        waiting: Option<u64>,
        token: W,
        books: &mut Books,
    ) -> Result<Locked, Limit> {
        if let Some(waiter) = waiting.and_then(|number| self.queue.get_mut(number)) {
            waiter.token = token;
            return Ok(Locked::Waits);
        }
        let one = Use { waiters: 1, ..Use::default() };
        self.check(&ask.file, &ask.owner, &one, Claim::New, books)?;
        self.enqueue(ask, token, books);
        Ok(Locked::Waits)
    }

    /// Puts a request at the end of the queue; gives its number.
    fn enqueue(&mut self, ask: &Ask, token: W, books: &mut Books) -> u64 {
        let number = books.number();
        let Ask { file, owner, range, mode } = ask.clone();
        books.accounts.add(&owner, &file, &Use { waiters: 1, ..Use::default() });
        books.accounts.waits(&owner, &file, number, true);
        self.queue.push(number, Waiter { owner, range, mode, token });
        number
    }

    pub(crate) fn unlock(
        &mut self,
        file: &File,
        owner: &Owner,
        range: Range,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Result<(), Limit> {
        let plan = self.ranges.plan(owner, range, None);
        let more = Use { locks: plan.growth().0, ..Use::default() };
        self.check(file, owner, &more, Claim::Old, books)?;
        self.change(file, owner, &plan, books);
        self.settle_within(owner, range, books);
        if plan.frees() {
            self.wake(file, range, books, grants);
        }
        Ok(())
    }

    pub(crate) fn cancel(
        &mut self,
        ask: &Ask,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> bool {
        if let Some(number) = self.waiting(ask) {
            self.leave(&ask.file, number, books);
            self.wake(&ask.file, ask.range, books, grants);
            return true;
        }
        let same = |granted: &Granted| (granted.range, granted.mode) == (ask.range, ask.mode);
        let grant = self.granted_to(&ask.owner).find(|(_, granted)| same(granted));
        let Some((grant, _)) = grant else { return false };
        self.take_back(&ask.file, &ask.owner, grant, books, grants);
        true
    }

    /// The grant stays as it is.
    pub(crate) fn settle(&mut self, owner: &Owner, grant: GrantId) {
        self.granted.remove(&(owner.clone(), grant));
    }

    /// Undoes a grant: `owner` holds again what it held, but nothing it holds gets stronger, since
    /// others may hold it too by now.
    pub(crate) fn take_back(
        &mut self,
        file: &File,
        owner: &Owner,
        grant: GrantId,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) {
        books.granted.remove(&grant);
        let Some(granted) = self.granted.remove(&(owner.clone(), grant)) else { return };
        let plan = self.ranges.plan(owner, granted.range, None);
        self.change(file, owner, &plan, books);
        for (range, mode) in granted.before {
            let plan = self.ranges.plan(owner, range, Some(mode.min(granted.mode)));
            self.change(file, owner, &plan, books);
        }
        self.wake(file, granted.range, books, grants);
    }

    pub(crate) fn share(
        &mut self,
        file: &File,
        owner: &Owner,
        share: Share,
        claim: Claim,
        books: &mut Books,
    ) -> Result<(), Refused> {
        if self.shares.conflict(owner, share) {
            return Err(Refused::Shared);
        }
        let one = Use { shares: usize::from(!self.shares.has(owner)), ..Use::default() };
        self.check(file, owner, &one, claim, books).map_err(Refused::Full)?;
        self.shares.set(owner, Some(share));
        books.accounts.add(owner, file, &one);
        Ok(())
    }

    pub(crate) fn unshare(&mut self, file: &File, owner: &Owner, books: &mut Books) {
        if self.shares.set(owner, None) {
            books.accounts.sub(owner, file, &Use { shares: 1, ..Use::default() });
        }
    }

    /// Takes everything from the owners from `first` on, as far as they are `meant`. Gives the
    /// tokens of their requests that waited.
    pub(crate) fn release(
        &mut self,
        file: &File,
        first: Option<&Owner>,
        meant: &dyn Fn(&Owner) -> bool,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Vec<W> {
        let leaving: Vec<u64> = self
            .queue
            .iter()
            .filter(|(_, waiter)| meant(&waiter.owner))
            .map(|(number, _)| number)
            .collect();
        let left = leaving.into_iter().filter_map(|number| self.leave(file, number, books));
        let left: Vec<W> = left.map(|waiter| waiter.token).collect();
        let holding: BTreeSet<Owner> =
            self.ranges.owners(first).take_while(|owner| meant(owner)).cloned().collect();
        for owner in &holding {
            let plan = self.ranges.plan(owner, Range::ALL, None);
            self.change(file, owner, &plan, books);
            self.settle_within(owner, Range::ALL, books);
        }
        let opens: BTreeSet<Owner> =
            self.exact.owners(first).take_while(|owner| meant(owner)).cloned().collect();
        for owner in &opens {
            let locks = self.exact.remove_all(owner);
            books.accounts.sub(owner, file, &Use { locks, ..Use::default() });
        }
        let sharing: Vec<Owner> =
            self.shares.owners(first).take_while(|owner| meant(owner)).cloned().collect();
        for owner in sharing {
            self.unshare(file, &owner, books);
        }
        if !left.is_empty() || !holding.is_empty() || !opens.is_empty() {
            self.wake(file, Range::ALL, books, grants);
        }
        left
    }

    fn granted_to(&self, owner: &Owner) -> impl Iterator<Item = (GrantId, &Granted)> {
        let all = (owner.clone(), GrantId(0))..=(owner.clone(), GrantId(u64::MAX));
        self.granted.range(all).map(|((_, grant), granted)| (*grant, granted))
    }

    /// Settles the grants to `owner` within `range`, which it knows by now.
    fn settle_within(&mut self, owner: &Owner, range: Range, books: &mut Books) {
        for grant in self.supersede_within(owner, range) {
            books.granted.remove(&grant);
        }
    }

    /// Has the grants to `owner` within `range` no longer taken back, and gives them.
    fn supersede_within(&mut self, owner: &Owner, range: Range) -> Vec<GrantId> {
        let superseded: Vec<GrantId> = self
            .granted_to(owner)
            .filter(|(_, granted)| granted.range.overlaps(range))
            .map(|(grant, _)| grant)
            .collect();
        for grant in &superseded {
            self.settle(owner, *grant);
        }
        superseded
    }

    fn check(
        &self,
        file: &File,
        owner: &Owner,
        more: &Use,
        claim: Claim,
        books: &Books,
    ) -> Result<(), Limit> {
        let used = Use {
            locks: self.ranges_held(),
            waiters: self.queue.len(),
            shares: self.shares.len(),
            ..Use::default()
        };
        match used.passes(more, &books.limits.file) {
            Some(counted) => Err(Limit { counted, scope: Scope::File }),
            None => books.accounts.check(owner, file.volume, more, claim, &books.limits),
        }
    }

    fn change(&mut self, file: &File, owner: &Owner, plan: &Plan, books: &mut Books) {
        self.ranges.apply(owner, plan);
        let (more, fewer) = plan.growth();
        books.accounts.add(owner, file, &Use { locks: more, ..Use::default() });
        books.accounts.sub(owner, file, &Use { locks: fewer, ..Use::default() });
    }

    /// Takes a request out of the queue.
    fn leave(&mut self, file: &File, number: u64, books: &mut Books) -> Option<Waiter<W>> {
        let waiter = self.queue.remove(number)?;
        books.accounts.waits(&waiter.owner, file, number, false);
        books.accounts.sub(&waiter.owner, file, &Use { waiters: 1, ..Use::default() });
        Some(waiter)
    }

    /// Grants what has become free, where `freed` was held or waited for, in the order of coming. A
    /// grant that weakens what its owner held frees that too: the first in the queue may have it.
    fn wake(&mut self, file: &File, freed: Range, books: &mut Books, grants: &mut Vec<Grant<W>>) {
        let mut freed = Vec::from([freed]);
        while let Some(more) = self.wake_within(file, &freed, books, grants) {
            freed.push(more);
        }
    }

    /// Goes through the queue once, or until a grant frees something in turn, which is given.
    fn wake_within(
        &mut self,
        file: &File,
        freed: &[Range],
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> Option<Range> {
        let mut ahead = Ahead::default();
        let mut last = 0;
        while let Some((number, waiter)) = self.queue.after(last) {
            last = number;
            let ask = waiter.ask(file);
            let may = freed.iter().any(|range| ask.range.overlaps(*range))
                && self.holder(&ask).is_none()
                && (books.accounts.holds(&ask.owner) || !ahead.stands_against(waiter));
            if !may {
                ahead.push(number, waiter);
                continue;
            }
            if self.grant(number, &ask, books, grants) {
                return Some(ask.range);
            }
            // Nobody else can have any of it; only to the same owner it is no obstacle.
            let covers = freed.iter().all(|range| ask.range.covers(*range));
            let all = ask.mode == Mode::Exclusive && covers;
            if all && !books.accounts.waits_of(&ask.owner).any(|(at, _)| at == file) {
                break;
            }
        }
        None
    }

    /// Gives a waiter what it waits for; `true` if that weakens what its owner held.
    fn grant(
        &mut self,
        number: u64,
        ask: &Ask,
        books: &mut Books,
        grants: &mut Vec<Grant<W>>,
    ) -> bool {
        if ask.owner.open().is_some() {
            self.grant_exact(number, ask, books, grants);
            return false;
        }
        let before = self
            .ranges
            .own(&ask.owner, ask.range)
            .filter_map(|(held, mode)| Some((held.common(ask.range)?, mode)))
            .collect();
        let plan = self.ranges.plan(&ask.owner, ask.range, Some(ask.mode));
        // Changed before it leaves the queue, so that its owner is not forgotten in between.
        self.change(&ask.file, &ask.owner, &plan, books);
        // Earlier grants within the range can't be taken back any more, but their requests still
        // wait to be told.
        self.supersede_within(&ask.owner, ask.range);
        if let Some(waiter) = self.leave(&ask.file, number, books) {
            let id = GrantId(number);
            let granted = Granted { range: ask.range, mode: ask.mode, before };
            self.granted.insert((ask.owner.clone(), id), granted);
            books.granted.insert(id, (ask.file, ask.owner.clone()));
            grants.push(Grant { id, ask: ask.clone(), waiter: waiter.token });
        }
        plan.frees()
    }
}
