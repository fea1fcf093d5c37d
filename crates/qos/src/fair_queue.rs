//! The turns of competing parties: fair queueing by virtual time, with the clock of start-time fair
//! queueing (Goyal, Vin and Cheng, SIGCOMM 1996) and the order of finish times (Demers, Keshav and
//! Shenker, SIGCOMM 1989). Not here: what the parties are, and their waiting requests.
//!
//! Every party has a *start*: the bytes it would have been served by now, had it always had its
//! equal share. A *turn* is the number of bytes that it is going to be served in one go. The party
//! whose turn ends first in virtual time is next, and when the turn has ended, its start has moved
//! on by the bytes served. So a party with short turns goes before those with long turns, until it
//! has been served as much as they have.
//!
//! The *clock* is the least start of the ready parties when one of them was last served. A party
//! that joins starts at the clock, or where its last turn ended if that is later. So it can neither
//! save up an unused share, nor gain by leaving and joining again.
//!
//! # Assertions
//!
//! `debug_assert!` checks that the clock never goes back, that no [joining](FairQueue::join) party
//! starts before the clock, that a party is ready or idle but never both, and that each ready party
//! has one turn and one start.

use alloc::collections::BTreeSet;

use crate::two_limits::{Resource, Turn, Turns, Weight};

/// Distance behind the clock up to which a party is remembered: the longest turn of small requests.
pub(crate) const KEPT_BYTES: u64 = 64 << 10;

/// The position of a party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u64,
    turn: Turn,
    /// Bytes served to the party in a turn that has not ended.
    served: u64,
    /// The distance of `start` before the party's real start, because it [jumped the
    /// queue](FairQueue::rejoin_first). The party pays it back when its turn ends.
    lent: u64,
}

impl Place {
    /// The party's real start, which includes the bytes served in this turn and excludes those
    /// lent.
    fn real_start(self) -> u64 {
        self.start.saturating_add(self.served).saturating_add(self.lent)
    }
}

/// The parties of one competition, named by index.
#[derive(Debug)]
pub(crate) struct FairQueue {
    clock: u64,
    serial: u64,
    /// The turns of the ready parties: those with requests waiting.
    turns: Turns,
    /// The starts of those parties.
    starts: BTreeSet<(u64, usize)>,
    /// The starts of idle parties, remembered until they are [`KEPT_BYTES`] behind the clock.
    idle: BTreeSet<(u64, usize)>,
}

impl Default for FairQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl FairQueue {
    pub(crate) const fn new() -> Self {
        Self {
            clock: 0,
            serial: 0,
            turns: Turns::new(),
            starts: BTreeSet::new(),
            idle: BTreeSet::new(),
        }
    }

    /// The party whose turn it is, with regard to the `preferred` resource ([`Turns::first`]).
    pub(crate) fn first(&self, preferred: Option<Resource>) -> Option<usize> {
        self.turns.first(preferred).map(|turn| turn.party)
    }

    /// Whether any party is ready.
    pub(crate) fn is_ready(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Adds a party without waiting requests.
    pub(crate) fn enter(&mut self, party: usize) -> Place {
        self.rest(self.clock, party)
    }

    /// Makes an idle party ready, for a turn of that weight.
    pub(crate) fn join(&mut self, from: Place, turn: Weight) -> Place {
        self.idle.remove(&(from.start, from.turn.party));
        self.stand(from.start.max(self.clock), from.turn.party, turn)
    }

    /// Makes a party ready whose turn had come before it paused: it keeps its start, but at most
    /// [`KEPT_BYTES`] behind the clock. A party that was `forgotten` meanwhile was further behind.
    pub(crate) fn rejoin(&mut self, from: Place, turn: Weight, forgotten: bool) -> Place {
        self.idle.remove(&(from.start, from.turn.party));
        let start = if forgotten { 0 } else { from.start };
        let start = start.max(self.clock.saturating_sub(KEPT_BYTES));
        self.stand(start, from.turn.party, turn)
    }

    /// Puts a party before the others: its next turn ends at the clock at the latest. It is charged
    /// from its real start, so it gains no more than the earlier turn. `forgotten` is as in
    /// [`rejoin`](Self::rejoin).
    pub(crate) fn rejoin_first(&mut self, from: Place, turn: Weight, forgotten: bool) -> Place {
        self.leave(from);
        let real = match forgotten {
            true => self.clock.saturating_sub(KEPT_BYTES),
            false => from.real_start(),
        };
        let start = real.min(self.clock.saturating_sub(turn.bytes));
        let lent = real.saturating_sub(start);
        Place { lent, ..self.stand(start, from.turn.party, turn) }
    }

    /// Undoes the service of `bytes` to a party, because the request did not go. The party waits
    /// for its `turn` again at its earlier start.
    pub(crate) fn unserve(&mut self, from: Place, bytes: u64, turn: Weight) -> Place {
        self.leave(from);
        let start = from.real_start().saturating_sub(bytes.max(1));
        self.stand(start, from.turn.party, turn)
    }

    /// Undoes the service of `bytes` to a party whose request did not go and does not wait here.
    /// The party gets back its earlier start, but not behind the clock, so that it saves up no
    /// share. `turn` is the party's waiting turn, if any.
    pub(crate) fn give_back(&mut self, from: Place, bytes: u64, turn: Option<Weight>) -> Place {
        self.leave(from);
        let real = from.real_start();
        let start = real.saturating_sub(bytes.max(1)).max(self.clock.min(real));
        match turn {
            Some(turn) => self.stand(start, from.turn.party, turn),
            None => self.rest(start, from.turn.party),
        }
    }

    /// Notes that a ready party was served `bytes`, and that its next request weighs `next`. Its
    /// turn ends if no request waits or if the next one would exceed it; then `turn` returns the
    /// length of its next turn in bytes.
    pub(crate) fn serve(
        &mut self,
        from: Place,
        bytes: u64,
        next: Option<Weight>,
        turn: impl FnOnce() -> u64,
    ) -> Place {
        if let Some(&(least, _)) = self.starts.first() {
            self.clock = self.clock.max(least);
        }
        // A request that costs nothing counts too.
        let served = from.served.saturating_add(bytes.max(1));
        let after = from.start.saturating_add(served);
        let Some(next) = next else {
            self.leave(from);
            return self.rest(after.saturating_add(from.lent), from.turn.party);
        };
        if after.saturating_add(next.bytes.max(1)) <= from.turn.end {
            let turn = Turn { resource: next.resource, ..from.turn };
            if turn != from.turn {
                self.turns.remove(&from.turn);
                self.turns.insert(turn);
            }
            return Place { served, turn, ..from };
        }
        self.withdraw(from);
        let after = after.saturating_add(from.lent);
        self.stand(after, from.turn.party, Weight { bytes: turn(), ..next })
    }

    /// Makes a ready party idle whose waiting requests were removed unserved.
    pub(crate) fn pause(&mut self, from: Place) -> Place {
        self.leave(from);
        self.rest(from.real_start(), from.turn.party)
    }

    /// Takes a party out of the competition because its requests can't go at present. It is
    /// remembered until it [joins](Self::join) again.
    pub(crate) fn stall(&mut self, from: Place) -> Place {
        self.leave(from);
        let start = from.real_start();
        let turn = no_turn(start, from.turn.party);
        Place { start, turn, served: 0, lent: 0 }
    }

    /// Bounds a party's lead over the clock by this number of bytes, whatever it was served.
    pub(crate) fn advance_at_most(&mut self, from: Place, bytes: u64) -> Place {
        let most = self.clock.saturating_add(bytes);
        if from.start <= most {
            return from;
        }
        let (party, turn) = (from.turn.party, from.turn);
        if self.starts.contains(&(from.start, party)) {
            self.withdraw(from);
            let bytes = turn.end.saturating_sub(from.start);
            let place = self.stand(most, party, Weight { bytes, resource: turn.resource });
            return Place { served: from.served, ..place };
        }
        self.leave(from);
        self.rest(most, party)
    }

    /// Removes a party.
    pub(crate) fn leave(&mut self, from: Place) {
        self.withdraw(from);
        self.idle.remove(&(from.start, from.turn.party));
    }

    /// Removes an idle party that is so far behind the clock that it would start no differently as
    /// a new one.
    pub(crate) fn forget(&mut self) -> Option<usize> {
        let settled = |start: u64| start.saturating_add(KEPT_BYTES) <= self.clock;
        let settled = *self.idle.first().filter(|(start, _)| settled(*start))?;
        self.idle.remove(&settled);
        Some(settled.1)
    }

    /// The idle parties.
    pub(crate) fn idle(&self) -> impl Iterator<Item = usize> {
        self.idle.iter().map(|&(_, party)| party)
    }

    /// Puts a party among the ready ones.
    fn stand(&mut self, start: u64, party: usize, weight: Weight) -> Place {
        self.serial += 1;
        let Weight { bytes, resource } = weight;
        let end = start.saturating_add(bytes.max(1));
        let turn = Turn { end, serial: self.serial, party, start, resource };
        self.turns.insert(turn);
        self.starts.insert((start, party));
        debug_assert!(!self.idle.contains(&(start, party)), "a ready party is not idle");
        debug_assert_eq!(self.turns.len(), self.starts.len(), "a ready party has one turn");
        Place { start, turn, served: 0, lent: 0 }
    }

    /// Puts a party among the idle ones.
    fn rest(&mut self, start: u64, party: usize) -> Place {
        self.idle.insert((start, party));
        debug_assert!(!self.starts.contains(&(start, party)), "an idle party is not ready");
        Place { start, turn: no_turn(start, party), served: 0, lent: 0 }
    }

    fn withdraw(&mut self, from: Place) {
        self.turns.remove(&from.turn);
        self.starts.remove(&(from.start, from.turn.party));
        debug_assert_eq!(self.turns.len(), self.starts.len(), "a ready party has one turn");
    }
}

/// The turn of a party that has none.
const fn no_turn(start: u64, party: usize) -> Turn {
    Turn { end: start, serial: 0, party, start, resource: Resource::Bytes }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn of(bytes: u64) -> Weight {
        Weight::of(bytes)
    }

    /// Serves 100 bytes of a party's waiting requests in portions of 100.
    fn serve(queue: &mut FairQueue, from: Place, more: bool, turn: u64) -> Place {
        queue.serve(from, 100, more.then_some(of(100)), || turn)
    }

    #[test]
    fn who_was_away_stands_level_with_a_newcomer_and_behind_those_who_waited() {
        let mut queue = FairQueue::new();
        let [away, mut present, waiting] = [1, 2, 3].map(|party| queue.enter(party));
        present = queue.join(present, of(100));
        for _ in 0..10 {
            present = serve(&mut queue, present, true, 100);
        }
        // The clock is at 900, where a party begins that joins now.
        queue.join(waiting, of(100));
        queue.join(away, of(100));
        let newcomer = queue.enter(4);
        queue.join(newcomer, of(100));
        let order: Vec<_> =
            queue.turns.of(Resource::Bytes).map(|turn| (turn.party, turn.end)).collect();
        assert_eq!(order, [(3, 1000), (1, 1000), (4, 1000), (2, 1100)]);
    }

    #[test]
    fn a_turn_goes_on_until_what_it_is_of_is_served() {
        let mut queue = FairQueue::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(300))
        });
        for _ in 0..2 {
            assert_eq!(queue.first(None), Some(1));
            first = serve(&mut queue, first, true, 300);
        }
        assert_eq!(queue.first(None), Some(1), "its turn has not ended");
        first = serve(&mut queue, first, true, 300);
        assert_eq!((queue.first(None), first.start), (Some(2), 300));
        // A party whose next request does not fit its turn has had it.
        second = queue.serve(second, 100, Some(of(201)), || 201);
        assert_eq!((queue.first(None), second.start), (Some(2), 100), "ends at 301");
        second = queue.serve(second, 201, Some(of(100)), || 100);
        assert_eq!((queue.first(None), second.start), (Some(2), 301), "ends at 401");
        // The served bytes count also if a turn is cut short, and no more than those.
        first = serve(&mut queue, first, true, 300);
        assert_eq!(queue.pause(first).start, 400);
        assert_eq!(serve(&mut queue, second, false, 0).start, 401);
        assert!(!queue.is_ready());
    }

    #[test]
    fn who_wants_little_goes_first_until_it_had_as_much_as_the_others() {
        let mut queue = FairQueue::new();
        for party in 2..10 {
            let place = queue.enter(party);
            queue.join(place, of(1000));
        }
        let mut little = queue.enter(1);
        for served in 0..9 {
            little = queue.join(little, of(100));
            assert_eq!(queue.first(None), Some(1), "{served}");
            little = serve(&mut queue, little, false, 0);
        }
        queue.join(little, of(101));
        assert_eq!(queue.first(None), Some(2), "its turn ends further on than the others'");
    }

    #[test]
    fn one_that_is_mostly_alone_saves_nothing_up_for_newcomers() {
        let mut queue = FairQueue::new();
        let mut alone = queue.enter(1);
        for _ in 0..10 {
            alone = queue.join(alone, of(100));
            alone = serve(&mut queue, alone, false, 0);
        }
        assert_eq!((alone.start, queue.enter(2).start), (1000, 900));
    }

    #[test]
    fn only_who_is_far_behind_is_forgotten() {
        let mut queue = FairQueue::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        serve(&mut queue, first, false, 0);
        assert_eq!(queue.forget(), None, "100 bytes ahead of the clock");
        while queue.clock < 100 + KEPT_BYTES {
            assert_eq!(queue.forget(), None);
            second = serve(&mut queue, second, true, 100);
        }
        assert_eq!(queue.forget(), Some(1));
        assert_eq!(queue.forget(), None, "the other still waits");
    }

    #[test]
    fn who_paused_in_its_turn_stands_where_it_did() {
        let mut queue = FairQueue::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        let first = queue.pause(first);
        second = serve(&mut queue, second, true, 100);
        second = serve(&mut queue, second, true, 100);
        // The clock is at 100; a newcomer would be level with the other, and after it.
        let back = queue.rejoin(first, of(100), false);
        assert_eq!((back.start, queue.first(None)), (0, Some(1)));
        let first = queue.pause(back);
        for _ in 0..2 * KEPT_BYTES / 100 {
            second = serve(&mut queue, second, true, 100);
        }
        let back = queue.rejoin(first, of(100), false);
        assert_eq!(back.start, queue.clock - KEPT_BYTES);
        queue.pause(back);
        let new = queue.enter(3);
        let back = queue.rejoin(new, of(100), true);
        assert_eq!(back.start, queue.clock - KEPT_BYTES, "it was forgotten meanwhile");
    }

    #[test]
    fn who_is_let_in_first_pays_from_where_it_really_stands() {
        let mut queue = FairQueue::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        for _ in 0..9 {
            second = serve(&mut queue, second, true, 100);
        }
        let mut first = serve(&mut queue, first, true, 100);
        first = serve(&mut queue, first, true, 100);
        assert_eq!((first.start, second.start, queue.clock), (200, 900, 100));
        second = queue.rejoin_first(second, of(100), false);
        assert_eq!((queue.first(None), second.start), (Some(2), 0));
        second = serve(&mut queue, second, true, 100);
        assert_eq!((queue.first(None), second.start), (Some(1), 1000));
        // The party is charged from its real start too if nothing more waits, or if its request is
        // gone unserved.
        second = queue.rejoin_first(second, of(100), false);
        second = queue.pause(second);
        assert_eq!(second.start, 1000);
        second = queue.rejoin_first(second, of(100), false);
        assert_eq!(serve(&mut queue, second, false, 0).start, 1100);
    }

    #[test]
    fn what_was_served_and_did_not_go_is_given_back() {
        let mut queue = FairQueue::new();
        let [first, _] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        let idle = serve(&mut queue, first, false, 0);
        assert_eq!(queue.first(None), Some(2));
        let back = queue.unserve(idle, 100, of(100));
        assert_eq!(back.start, 0);
        let ready = serve(&mut queue, back, true, 100);
        assert_eq!(queue.unserve(ready, 100, of(100)).start, 0);
    }

    #[test]
    fn what_is_given_back_is_no_share_saved_up() {
        let mut queue = FairQueue::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        first = serve(&mut queue, first, true, 100);
        first = serve(&mut queue, first, true, 100);
        second = serve(&mut queue, second, true, 100);
        assert_eq!((first.start, second.start, queue.clock), (200, 100, 0));
        first = queue.give_back(first, 100, Some(of(100)));
        assert_eq!(first.start, 100);
        second = serve(&mut queue, second, true, 100);
        assert_eq!((second.start, queue.clock), (200, 100));
        // The refund would put the party behind the clock.
        first = queue.give_back(first, 100, Some(of(100)));
        assert_eq!((first.start, queue.first(None)), (100, Some(1)));
        first = queue.give_back(first, 100, None);
        assert_eq!((first.start, queue.first(None)), (100, Some(2)));
        assert_eq!(Vec::from_iter(queue.idle()), [1]);
    }

    #[test]
    fn a_party_that_was_let_in_first_and_stalls_is_where_it_really_stands() {
        let mut queue = FairQueue::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(100))
        });
        for _ in 0..3 {
            first = serve(&mut queue, first, true, 100);
        }
        second = serve(&mut queue, second, true, 100);
        second = serve(&mut queue, second, true, 100);
        assert_eq!((second.start, queue.clock), (200, 100));
        first = queue.rejoin_first(first, of(100), false);
        assert_eq!((queue.first(None), first.start), (Some(1), 0));
        first = queue.stall(first);
        assert_eq!((queue.first(None), first.start), (Some(2), 300));
        serve(&mut queue, second, true, 100);
        assert_eq!(queue.join(first, of(100)).start, 300);
    }

    #[test]
    fn a_kind_that_is_wanted_goes_first_as_far_as_shares_allow() {
        let mut queue = FairQueue::new();
        let few = Weight { bytes: 100, resource: Resource::Operations };
        let mut large = [1, 2].map(|party| {
            let place = queue.enter(party);
            queue.join(place, of(1000))
        });
        let small = queue.enter(3);
        let mut small = queue.join(small, few);
        assert_eq!(queue.first(None), Some(3));
        assert_eq!(queue.first(Some(Resource::Operations)), Some(3));
        // Ahead of its place in the order, once.
        assert_eq!(queue.first(Some(Resource::Bytes)), Some(1));
        large[0] = queue.serve(large[0], 1000, Some(of(1000)), || 1000);
        assert_eq!(queue.first(Some(Resource::Bytes)), Some(2));
        large[1] = queue.serve(large[1], 1000, Some(of(1000)), || 1000);
        // Both are ahead by their turn: not again until the other had as much.
        for _ in 0..10 {
            assert_eq!(queue.first(Some(Resource::Bytes)), Some(3));
            small = queue.serve(small, 100, Some(few), || 100);
        }
        assert_eq!(queue.first(Some(Resource::Bytes)), Some(1));
        assert_eq!(large.map(|place| place.start), [1000, 1000]);
    }

    #[test]
    fn a_turn_is_of_the_kind_of_what_waits_next() {
        let mut queue = FairQueue::new();
        let place = queue.enter(1);
        let place = queue.join(place, of(1000));
        let few = Weight { bytes: 10, resource: Resource::Operations };
        let place = queue.serve(place, 100, Some(few), || 0);
        assert!(
            queue.turns.of(Resource::Bytes).count() == 0 && queue.turns.len() == 1,
            "the same turn"
        );
        queue.leave(place);
        assert!(!queue.is_ready() && queue.turns.len() == 0);
    }
}
