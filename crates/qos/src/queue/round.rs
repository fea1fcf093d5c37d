//! Whose turn it is among parties that compete: start-time fair queueing (Goyal, Vin and Cheng,
//! SIGCOMM 1996). Not here: what the parties are and what they have waiting.
//!
//! Every party has a *start*: the bytes it would have been served by now, had it always had its
//! equal share. The least start goes next; when its *turn* ends it moves on by what was served in
//! it. The *clock* is the start of whoever was served last. A party that comes, or comes back, starts at the clock, or
//! where its last request ended if that is further on. So it can neither save up a share that it
//! did not use, nor gain by leaving and coming back.

use alloc::collections::BTreeSet;

/// Where a party stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    order: Order,
    /// What it was served in a turn that has not ended.
    served: u64,
}

/// Equal starts go in the order in which they were reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    start: u64,
    serial: u64,
    party: usize,
}

/// The parties of one competition, named by index.
#[derive(Debug)]
pub(super) struct Round {
    clock: u64,
    serial: u64,
    /// Parties with something waiting.
    ready: BTreeSet<Order>,
    /// Parties with nothing waiting, remembered while their start is ahead of the clock.
    idle: BTreeSet<Order>,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { clock: 0, serial: 0, ready: BTreeSet::new(), idle: BTreeSet::new() }
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<usize> {
        self.ready.first().map(|place| place.party)
    }

    /// Whether any party has something waiting.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A new party, with nothing waiting yet.
    pub(super) fn enter(&mut self, party: usize) -> Place {
        let place = self.place(self.clock, party);
        self.idle.insert(place.order);
        place
    }

    /// An idle party has something waiting from now on.
    pub(super) fn join(&mut self, from: Place) -> Place {
        self.idle.remove(&from.order);
        let place = self.place(from.order.start.max(self.clock), from.order.party);
        self.ready.insert(place.order);
        place
    }

    /// A ready party was served `bytes`, and what waits `next` costs that much. Its turn ends when
    /// nothing waits, or when that would make it more than `turn` bytes.
    pub(super) fn serve(&mut self, from: Place, bytes: u64, next: Option<u64>, turn: u64) -> Place {
        self.clock = from.order.start;
        // A request that costs nothing counts too.
        let served = from.served.saturating_add(bytes.max(1));
        let from = Place { served, ..from };
        match next {
            Some(next) if served.saturating_add(next.max(1)) <= turn => from,
            _ => self.end_turn(from, next.is_some()),
        }
    }

    /// What a ready party had waiting is gone, unserved.
    pub(super) fn pause(&mut self, from: Place) -> Place {
        self.end_turn(from, false)
    }

    /// A party is gone for good.
    pub(super) fn leave(&mut self, from: Place) {
        self.ready.remove(&from.order);
        self.idle.remove(&from.order);
    }

    /// Takes out an idle party that a newcomer would stand level with, so that nothing is lost by
    /// forgetting it.
    pub(super) fn forget(&mut self) -> Option<usize> {
        let settled = *self.idle.first().filter(|order| order.start <= self.clock)?;
        self.idle.remove(&settled);
        Some(settled.party)
    }

    /// The parties with nothing waiting.
    pub(super) fn idle(&self) -> impl Iterator<Item = usize> {
        self.idle.iter().map(|place| place.party)
    }

    fn end_turn(&mut self, from: Place, more: bool) -> Place {
        self.ready.remove(&from.order);
        let place = self.place(from.order.start.saturating_add(from.served), from.order.party);
        if more {
            self.ready.insert(place.order)
        } else {
            self.idle.insert(place.order)
        };
        place
    }

    fn place(&mut self, start: u64, party: usize) -> Place {
        self.serial += 1;
        Place { order: Order { start, serial: self.serial, party }, served: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_stands_level_with_a_newcomer_and_behind_those_who_waited() {
        let mut round = Round::new();
        let [away, mut present, waiting] = [1, 2, 3].map(|party| round.enter(party));
        present = round.join(present);
        for _ in 0..10 {
            present = round.serve(present, 100, Some(100), 0);
        }
        // The clock is at 900, where a party begins that joins now.
        round.join(waiting);
        round.join(away);
        let newcomer = round.enter(4);
        round.join(newcomer);
        let order = [3, 1, 4, 2];
        let mut places: Vec<_> = round.ready.iter().copied().collect();
        assert_eq!(places.iter().map(|place| place.party).collect::<Vec<_>>(), order);
        places.retain(|place| place.party != 2);
        assert!(places.iter().all(|place| place.start == 900), "{places:?}");
    }

    #[test]
    fn a_turn_goes_on_until_its_bytes_are_served_or_nothing_waits() {
        let mut round = Round::new();
        let [mut first, second, late] = [1, 2, 3].map(|party| round.enter(party));
        first = round.join(first);
        let second = round.join(second);
        for _ in 0..2 {
            first = round.serve(first, 100, Some(100), 300);
            assert_eq!(round.first(), Some(1), "its turn has not ended");
        }
        first = round.serve(first, 100, Some(100), 300);
        assert_eq!(round.first(), Some(2));
        let late = round.join(late);
        round.serve(second, 100, None, 300);
        assert_eq!(round.first(), Some(3));
        let late = round.serve(late, 100, Some(100), 300);
        assert_eq!(round.first(), Some(3));
        round.pause(late);
        assert_eq!(round.first(), Some(1));
        assert_eq!(first.order.start, 300);
        // Who went before the end of a turn is charged for what it was served, no more.
        assert_eq!(round.idle.iter().map(|order| order.start).collect::<Vec<_>>(), [100, 100]);
    }

    #[test]
    fn only_who_has_nothing_ahead_is_forgotten() {
        let mut round = Round::new();
        let [first, second] = [1, 2].map(|party| round.enter(party));
        let (first, second) = (round.join(first), round.join(second));
        round.serve(first, 100, None, 0);
        assert_eq!(round.forget(), None, "100 bytes ahead of the clock");
        let second = round.serve(second, 100, Some(100), 0);
        assert_eq!(round.forget(), None);
        round.serve(second, 100, Some(100), 0);
        assert_eq!(round.forget(), Some(1));
        assert_eq!(round.forget(), None, "the other still waits");
    }
}
