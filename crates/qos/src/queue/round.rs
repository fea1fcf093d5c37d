//! Whose turn it is among parties that compete: start-time fair queueing (Goyal, Vin and Cheng,
//! SIGCOMM 1996). Not here: what the parties are and what they have waiting.
//!
//! Every party has a *start*: the bytes it would have been served by now, had it always had its
//! equal share. The least start goes next and moves on by what was served. The *clock* is the
//! start of whoever was served last. A party that comes, or comes back, starts at the clock, or
//! where its last request ended if that is further on. So it can neither save up a share that it
//! did not use, nor gain by leaving and coming back.

use alloc::collections::BTreeSet;

/// Where a party stands. Equal starts go in the order in which they were reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
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
    ready: BTreeSet<Place>,
    /// Parties with nothing waiting, remembered while their start is ahead of the clock.
    idle: BTreeSet<Place>,
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
        self.idle.insert(place);
        place
    }

    /// An idle party has something waiting from now on.
    pub(super) fn join(&mut self, from: Place) -> Place {
        self.idle.remove(&from);
        let place = self.place(from.start.max(self.clock), from.party);
        self.ready.insert(place);
        place
    }

    /// A ready party was served `bytes`; `more` if it still has something waiting.
    pub(super) fn serve(&mut self, from: Place, bytes: u64, more: bool) -> Place {
        self.ready.remove(&from);
        self.clock = from.start;
        // A request that costs nothing still ends its turn.
        let place = self.place(from.start.saturating_add(bytes.max(1)), from.party);
        if more {
            self.ready.insert(place)
        } else {
            self.idle.insert(place)
        };
        place
    }

    /// What a ready party had waiting is gone, unserved.
    pub(super) fn pause(&mut self, place: Place) {
        self.ready.remove(&place);
        self.idle.insert(place);
    }

    /// A party is gone for good.
    pub(super) fn leave(&mut self, place: Place) {
        self.ready.remove(&place);
        self.idle.remove(&place);
    }

    /// Takes out an idle party that a newcomer would stand level with, so that nothing is lost by
    /// forgetting it.
    pub(super) fn forget(&mut self) -> Option<usize> {
        let settled = *self.idle.first().filter(|place| place.start <= self.clock)?;
        self.idle.remove(&settled);
        Some(settled.party)
    }

    /// The parties with nothing waiting.
    pub(super) fn idle(&self) -> impl Iterator<Item = usize> {
        self.idle.iter().map(|place| place.party)
    }

    fn place(&mut self, start: u64, party: usize) -> Place {
        self.serial += 1;
        Place { start, serial: self.serial, party }
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
            present = round.serve(present, 100, true);
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
    fn only_who_has_nothing_ahead_is_forgotten() {
        let mut round = Round::new();
        let [first, second] = [1, 2].map(|party| round.enter(party));
        let (first, second) = (round.join(first), round.join(second));
        round.serve(first, 100, false);
        assert_eq!(round.forget(), None, "100 bytes ahead of the clock");
        let second = round.serve(second, 100, true);
        assert_eq!(round.forget(), None);
        round.serve(second, 100, true);
        assert_eq!(round.forget(), Some(1));
        assert_eq!(round.forget(), None, "the other still waits");
    }
}
