//! The turns of parties that compete: fair queueing by virtual time, with the clock of start-time
//! fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996) and the order of finish times (Demers, Keshav
//! and Shenker, SIGCOMM 1989). Not here: the nature of the parties and of their waiting requests.
//!
//! Every party has a *start*: the bytes it would have been served by now, had it always had its
//! equal share. What it is going to be served in one go is its *turn*. Whose turn ends least far
//! from zero goes next, and when the turn has ended its start has moved on by what was served. So
//! who wants little goes before those whose turns are long, until it had as much as they.
//!
//! The *clock* is the least start of those that had something waiting when one of them was last
//! served. A party that comes, or comes back, starts at the clock, or where its last turn ended if
//! that is further on. So it can neither save up a share that it did not use, nor gain by leaving
//! and coming back.

use alloc::collections::BTreeSet;

use crate::meters::{Kind, Weight};

/// Distance behind the clock up to which a party is remembered: the longest turn of small requests.
pub(crate) const KEPT_BYTES: u64 = 64 << 10;

/// The position of a party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    start: u64,
    turn: Turn,
    /// Bytes served to the party in a turn that has not ended.
    served: u64,
    /// The distance of `start` from the party's real start, because it was [let in
    /// first](Round::rejoin_first). The party pays it back when its turn ends.
    lent: u64,
}

impl Place {
    /// The party's real start: the bytes served in this turn count, and the lent ones do not.
    fn real_start(self) -> u64 {
        self.start.saturating_add(self.served).saturating_add(self.lent)
    }
}

/// Equal ends go in the order in which the turns were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    end: u64,
    serial: u64,
    party: usize,
    start: u64,
    kind: Kind,
}

/// The parties of one competition, named by index.
#[derive(Debug, Default)]
pub(crate) struct Round {
    clock: u64,
    serial: u64,
    /// The turns of parties with something waiting, by its kind.
    turns: [BTreeSet<Turn>; 2],
    /// The starts of those parties.
    starts: BTreeSet<(u64, usize)>,
    /// The starts of parties with nothing waiting, remembered until they are [`KEPT_BYTES`] behind
    /// the clock.
    idle: BTreeSet<(u64, usize)>,
}

impl Round {
    pub(crate) const fn new() -> Self {
        Self {
            clock: 0,
            serial: 0,
            turns: [BTreeSet::new(), BTreeSet::new()],
            starts: BTreeSet::new(),
            idle: BTreeSet::new(),
        }
    }

    /// The party whose turn it is; of the `wanted` kind, if one of that kind may go by now.
    pub(crate) fn first(&self, wanted: Option<Kind>) -> Option<usize> {
        let next = self.turns.iter().filter_map(BTreeSet::first).min()?;
        let of_kind = wanted.and_then(|kind| self.turns[kind as usize].first());
        let first = of_kind.filter(|turn| turn.start < next.end).unwrap_or(next);
        Some(first.party)
    }

    /// Whether any party has something waiting.
    pub(crate) fn is_ready(&self) -> bool {
        !self.starts.is_empty()
    }

    /// A new party, with nothing waiting yet.
    pub(crate) fn enter(&mut self, party: usize) -> Place {
        self.rest(self.clock, party)
    }

    /// An idle party has something waiting from now on, for a turn of that weight.
    pub(crate) fn join(&mut self, from: Place, turn: Weight) -> Place {
        self.idle.remove(&(from.start, from.turn.party));
        self.stand(from.start.max(self.clock), from.turn.party, turn)
    }

    /// Joins a party whose turn had come before it paused: it stands where it did, as far as that
    /// is no more than [`KEPT_BYTES`] behind the clock. A party that was `forgotten` meanwhile was
    /// further behind.
    pub(crate) fn rejoin(&mut self, from: Place, turn: Weight, forgotten: bool) -> Place {
        self.idle.remove(&(from.start, from.turn.party));
        let start = if forgotten { 0 } else { from.start };
        let start = start.max(self.clock.saturating_sub(KEPT_BYTES));
        self.stand(start, from.turn.party, turn)
    }

    /// Puts a party in front of the others: its next turn ends at the clock at the latest. It is
    /// charged from its real start, so it gains no more than the earlier turn. `forgotten` is as in
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

    /// Takes back `bytes` that a party was served, because the request did not go. The party waits
    /// for its `turn` again where it stood before.
    pub(crate) fn unserve(&mut self, from: Place, bytes: u64, turn: Weight) -> Place {
        self.leave(from);
        let start = from.real_start().saturating_sub(bytes.max(1));
        self.stand(start, from.turn.party, turn)
    }

    /// Takes back `bytes` that a party was served, whose request did not go and does not wait here.
    /// The party stands where it did before, but not behind the clock, so that it saves up no
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

    /// A ready party was served `bytes`, and the cost of its next request is `next`. Its turn ends
    /// when nothing waits or when that would exceed it; then `turn` says of how many bytes its next
    /// is.
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
            let turn = Turn { kind: next.kind, ..from.turn };
            if turn != from.turn {
                self.turns[from.turn.kind as usize].remove(&from.turn);
                self.turns[turn.kind as usize].insert(turn);
            }
            return Place { served, turn, ..from };
        }
        self.withdraw(from);
        let after = after.saturating_add(from.lent);
        self.stand(after, from.turn.party, Weight { bytes: turn(), ..next })
    }

    /// The waiting requests of a ready party are gone, unserved.
    pub(crate) fn pause(&mut self, from: Place) -> Place {
        self.leave(from);
        self.rest(from.real_start(), from.turn.party)
    }

    /// Takes a party out of the competition whose requests can't go for a reason of their own. It
    /// is remembered until it [joins](Self::join) again.
    pub(crate) fn stall(&mut self, from: Place) -> Place {
        self.leave(from);
        let start = from.real_start();
        let turn = Turn { end: start, serial: 0, start, kind: Kind::Bytes, ..from.turn };
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
            let place = self.stand(most, party, Weight { bytes, kind: turn.kind });
            return Place { served: from.served, ..place };
        }
        self.leave(from);
        self.rest(most, party)
    }

    /// A party is gone for good.
    pub(crate) fn leave(&mut self, from: Place) {
        self.withdraw(from);
        self.idle.remove(&(from.start, from.turn.party));
    }

    /// Takes out an idle party that is so far behind the clock that nothing is lost by forgetting
    /// it.
    pub(crate) fn forget(&mut self) -> Option<usize> {
        let settled = |start: u64| start.saturating_add(KEPT_BYTES) <= self.clock;
        let settled = *self.idle.first().filter(|(start, _)| settled(*start))?;
        self.idle.remove(&settled);
        Some(settled.1)
    }

    /// The parties with nothing waiting.
    pub(crate) fn idle(&self) -> impl Iterator<Item = usize> {
        self.idle.iter().map(|&(_, party)| party)
    }

    /// Puts a party among those with something waiting.
    fn stand(&mut self, start: u64, party: usize, weight: Weight) -> Place {
        self.serial += 1;
        let Weight { bytes, kind } = weight;
        let end = start.saturating_add(bytes.max(1));
        let turn = Turn { end, serial: self.serial, party, start, kind };
        self.turns[kind as usize].insert(turn);
        self.starts.insert((start, party));
        Place { start, turn, served: 0, lent: 0 }
    }

    /// Puts a party among those with nothing waiting.
    fn rest(&mut self, start: u64, party: usize) -> Place {
        self.idle.insert((start, party));
        let turn = Turn { end: start, serial: 0, party, start, kind: Kind::Bytes };
        Place { start, turn, served: 0, lent: 0 }
    }

    fn withdraw(&mut self, from: Place) {
        self.turns[from.turn.kind as usize].remove(&from.turn);
        self.starts.remove(&(from.start, from.turn.party));
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn of(bytes: u64) -> Weight {
        Weight { bytes, kind: Kind::Bytes }
    }

    /// Serves 100 bytes of a party's waiting requests in portions of 100.
    fn serve(round: &mut Round, from: Place, more: bool, turn: u64) -> Place {
        round.serve(from, 100, more.then_some(of(100)), || turn)
    }

    #[test]
    fn who_was_away_stands_level_with_a_newcomer_and_behind_those_who_waited() {
        let mut round = Round::new();
        let [away, mut present, waiting] = [1, 2, 3].map(|party| round.enter(party));
        present = round.join(present, of(100));
        for _ in 0..10 {
            present = serve(&mut round, present, true, 100);
        }
        // The clock is at 900, where a party begins that joins now.
        round.join(waiting, of(100));
        round.join(away, of(100));
        let newcomer = round.enter(4);
        round.join(newcomer, of(100));
        let order: Vec<_> = round.turns[0].iter().map(|turn| (turn.party, turn.end)).collect();
        assert_eq!(order, [(3, 1000), (1, 1000), (4, 1000), (2, 1100)]);
    }

    #[test]
    fn a_turn_goes_on_until_what_it_is_of_is_served() {
        let mut round = Round::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(300))
        });
        for _ in 0..2 {
            assert_eq!(round.first(None), Some(1));
            first = serve(&mut round, first, true, 300);
        }
        assert_eq!(round.first(None), Some(1), "its turn has not ended");
        first = serve(&mut round, first, true, 300);
        assert_eq!((round.first(None), first.start), (Some(2), 300));
        // A party whose next request does not fit its turn has had it.
        second = round.serve(second, 100, Some(of(201)), || 201);
        assert_eq!((round.first(None), second.start), (Some(2), 100), "ends at 301");
        second = round.serve(second, 201, Some(of(100)), || 100);
        assert_eq!((round.first(None), second.start), (Some(2), 301), "ends at 401");
        // The served bytes count also if a turn is cut short, and no more than those.
        first = serve(&mut round, first, true, 300);
        assert_eq!(round.pause(first).start, 400);
        assert_eq!(serve(&mut round, second, false, 0).start, 401);
        assert!(!round.is_ready());
    }

    #[test]
    fn who_wants_little_goes_first_until_it_had_as_much_as_the_others() {
        let mut round = Round::new();
        for party in 2..10 {
            let place = round.enter(party);
            round.join(place, of(1000));
        }
        let mut little = round.enter(1);
        for served in 0..9 {
            little = round.join(little, of(100));
            assert_eq!(round.first(None), Some(1), "{served}");
            little = serve(&mut round, little, false, 0);
        }
        round.join(little, of(101));
        assert_eq!(round.first(None), Some(2), "its turn ends further on than the others'");
    }

    #[test]
    fn one_that_is_mostly_alone_saves_nothing_up_for_newcomers() {
        let mut round = Round::new();
        let mut alone = round.enter(1);
        for _ in 0..10 {
            alone = round.join(alone, of(100));
            alone = serve(&mut round, alone, false, 0);
        }
        assert_eq!((alone.start, round.enter(2).start), (1000, 900));
    }

    #[test]
    fn only_who_is_far_behind_is_forgotten() {
        let mut round = Round::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        serve(&mut round, first, false, 0);
        assert_eq!(round.forget(), None, "100 bytes ahead of the clock");
        while round.clock < 100 + KEPT_BYTES {
            assert_eq!(round.forget(), None);
            second = serve(&mut round, second, true, 100);
        }
        assert_eq!(round.forget(), Some(1));
        assert_eq!(round.forget(), None, "the other still waits");
    }

    #[test]
    fn who_paused_in_its_turn_stands_where_it_did() {
        let mut round = Round::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        let first = round.pause(first);
        second = serve(&mut round, second, true, 100);
        second = serve(&mut round, second, true, 100);
        // The clock is at 100; a newcomer would be level with the other, and after it.
        let back = round.rejoin(first, of(100), false);
        assert_eq!((back.start, round.first(None)), (0, Some(1)));
        let first = round.pause(back);
        for _ in 0..2 * KEPT_BYTES / 100 {
            second = serve(&mut round, second, true, 100);
        }
        let back = round.rejoin(first, of(100), false);
        assert_eq!(back.start, round.clock - KEPT_BYTES);
        round.pause(back);
        let new = round.enter(3);
        let back = round.rejoin(new, of(100), true);
        assert_eq!(back.start, round.clock - KEPT_BYTES, "it was forgotten meanwhile");
    }

    #[test]
    fn who_is_let_in_first_pays_from_where_it_really_stands() {
        let mut round = Round::new();
        let [first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        for _ in 0..9 {
            second = serve(&mut round, second, true, 100);
        }
        let mut first = serve(&mut round, first, true, 100);
        first = serve(&mut round, first, true, 100);
        assert_eq!((first.start, second.start, round.clock), (200, 900, 100));
        second = round.rejoin_first(second, of(100), false);
        assert_eq!((round.first(None), second.start), (Some(2), 0));
        second = serve(&mut round, second, true, 100);
        assert_eq!((round.first(None), second.start), (Some(1), 1000));
        // The party is charged from its real start too if nothing more waits, or if its request is
        // gone unserved.
        second = round.rejoin_first(second, of(100), false);
        second = round.pause(second);
        assert_eq!(second.start, 1000);
        second = round.rejoin_first(second, of(100), false);
        assert_eq!(serve(&mut round, second, false, 0).start, 1100);
    }

    #[test]
    fn what_was_served_and_did_not_go_is_given_back() {
        let mut round = Round::new();
        let [first, _] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        let idle = serve(&mut round, first, false, 0);
        assert_eq!(round.first(None), Some(2));
        let back = round.unserve(idle, 100, of(100));
        assert_eq!(back.start, 0);
        let ready = serve(&mut round, back, true, 100);
        assert_eq!(round.unserve(ready, 100, of(100)).start, 0);
    }

    #[test]
    fn what_is_given_back_is_no_share_saved_up() {
        let mut round = Round::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        first = serve(&mut round, first, true, 100);
        first = serve(&mut round, first, true, 100);
        second = serve(&mut round, second, true, 100);
        assert_eq!((first.start, second.start, round.clock), (200, 100, 0));
        first = round.give_back(first, 100, Some(of(100)));
        assert_eq!(first.start, 100);
        second = serve(&mut round, second, true, 100);
        assert_eq!((second.start, round.clock), (200, 100));
        // The refund would put the party behind the clock.
        first = round.give_back(first, 100, Some(of(100)));
        assert_eq!((first.start, round.first(None)), (100, Some(1)));
        first = round.give_back(first, 100, None);
        assert_eq!((first.start, round.first(None)), (100, Some(2)));
        assert_eq!(Vec::from_iter(round.idle()), [1]);
    }

    #[test]
    fn a_party_that_was_let_in_first_and_stalls_is_where_it_really_stands() {
        let mut round = Round::new();
        let [mut first, mut second] = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(100))
        });
        for _ in 0..3 {
            first = serve(&mut round, first, true, 100);
        }
        second = serve(&mut round, second, true, 100);
        second = serve(&mut round, second, true, 100);
        assert_eq!((second.start, round.clock), (200, 100));
        first = round.rejoin_first(first, of(100), false);
        assert_eq!((round.first(None), first.start), (Some(1), 0));
        first = round.stall(first);
        assert_eq!((round.first(None), first.start), (Some(2), 300));
        serve(&mut round, second, true, 100);
        assert_eq!(round.join(first, of(100)).start, 300);
    }

    #[test]
    fn a_kind_that_is_wanted_goes_first_as_far_as_shares_allow() {
        let mut round = Round::new();
        let few = Weight { bytes: 100, kind: Kind::Operations };
        let mut large = [1, 2].map(|party| {
            let place = round.enter(party);
            round.join(place, of(1000))
        });
        let small = round.enter(3);
        let mut small = round.join(small, few);
        assert_eq!(round.first(None), Some(3));
        assert_eq!(round.first(Some(Kind::Operations)), Some(3));
        // Ahead of its place in the order, once.
        assert_eq!(round.first(Some(Kind::Bytes)), Some(1));
        large[0] = round.serve(large[0], 1000, Some(of(1000)), || 1000);
        assert_eq!(round.first(Some(Kind::Bytes)), Some(2));
        large[1] = round.serve(large[1], 1000, Some(of(1000)), || 1000);
        // Both are ahead by their turn: not again until the other had as much.
        for _ in 0..10 {
            assert_eq!(round.first(Some(Kind::Bytes)), Some(3));
            small = round.serve(small, 100, Some(few), || 100);
        }
        assert_eq!(round.first(Some(Kind::Bytes)), Some(1));
        assert_eq!(large.map(|place| place.start), [1000, 1000]);
    }

    #[test]
    fn a_turn_is_of_the_kind_of_what_waits_next() {
        let mut round = Round::new();
        let place = round.enter(1);
        let place = round.join(place, of(1000));
        let few = Weight { bytes: 10, kind: Kind::Operations };
        let place = round.serve(place, 100, Some(few), || 0);
        assert!(round.turns[0].is_empty() && round.turns[1].len() == 1, "the same turn");
        round.leave(place);
        assert!(!round.is_ready() && round.turns[1].is_empty());
    }
}
