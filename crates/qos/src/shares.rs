//! The turns of volumes that share one budget. Plain data, like [`Queue`](crate::Queue): the caller
//! holds the lock and the clock. Not here: the budget, which is a set of [`Meters`] of its own, and
//! the waiting requests, which are in each volume's own queue.
//!
//! # The order
//!
//! The budget is divided max–min fairly by weight among the volumes that demand it: the unused part
//! of one volume is available to the others at once, and is returned with its next request. The
//! order is that of a queue's clients, with served bytes divided by the weight.
//!
//! A volume may have a *floor*, a rate that it gets before the others get any. A volume behind its
//! floor goes first; its service by the floor counts as a part of its share, but it never has to
//! wait for more than one turn of the others because of that. So each volume gets its floor or its
//! share by weight, whichever is more.
//!
//! A volume that its own limits hold back is skipped until they admit its next request.

use alloc::collections::{BTreeMap, BTreeSet};

use weir_core::Mono;

use crate::fair_queue::{FairQueue, Place};
use crate::meter::CATCH_UP_NANOS;
use crate::meters::Meters;
use crate::queue::{Step, TURN_BYTES, TURN_NANOS, pause};
use crate::rate::BytesPerSecond;
use crate::two_limits::Weight;

/// A volume's part in the budget of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Beside those of others that want some, from 1 to [`Share::WEIGHT_MAX`].
    pub weight: u32,
    /// The rate that the volume has before the others have anything; zero for none.
    pub floor: BytesPerSecond,
}

impl Share {
    /// The default weight of a volume.
    pub const WEIGHT: u32 = 100;
    /// The most that a volume weighs.
    pub const WEIGHT_MAX: u32 = 1000;
}

impl Default for Share {
    fn default() -> Self {
        Self { weight: Self::WEIGHT, floor: BytesPerSecond::ZERO }
    }
}

/// The volumes of one pool, by a number of the caller's.
#[derive(Debug, Default)]
pub struct Shares {
    members: BTreeMap<u32, Member>,
    turns: FairQueue,
    /// The volumes with waiting requests and a floor, by the moment up to which they had it.
    floors: BTreeSet<(u64, u32)>,
    /// The volumes that their own limits hold back, by the end of that.
    held: BTreeSet<(Mono, u32)>,
}

#[derive(Debug)]
struct Member {
    share: Share,
    place: Place,
    state: State,
    /// The moment at which all that it had is paid for at its floor, in nanoseconds.
    floor_until: u64,
}

/// The bytes served to a volume.
#[derive(Clone, Copy, Debug)]
struct Went {
    bytes: u64,
    /// The size of the next waiting request.
    next: Option<u64>,
    /// Length of a turn, in bytes of a volume with the usual weight.
    turn: u64,
    by_floor: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The volume has no request waiting.
    Idle,
    /// The volume has requests waiting.
    Ready,
    /// The volume has requests waiting, and its own limits hold it back until then.
    Held(Mono),
}

impl Shares {
    /// No volumes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a volume, or changes its part for the next decision.
    pub fn set(&mut self, volume: u32, share: Share) {
        if let Some(member) = self.members.get_mut(&volume) {
            let ready = member.state == State::Ready;
            if ready {
                self.floors.remove(&(member.floor_until, volume));
            }
            if share.floor != member.share.floor {
                member.floor_until = 0;
            }
            member.share = share;
            if ready && share.floor > BytesPerSecond::ZERO {
                self.floors.insert((member.floor_until, volume));
            }
            return;
        }
        let place = self.turns.enter(volume as usize);
        let member = Member { share, place, state: State::Idle, floor_until: 0 };
        self.members.insert(volume, member);
    }

    /// Takes a volume out.
    pub fn remove(&mut self, budget: &Meters, volume: u32) {
        self.pause(budget, volume);
        if let Some(member) = self.members.remove(&volume) {
            self.turns.leave(member.place);
        }
    }

    /// A volume has something waiting; nothing happens if it had before. True if it goes before all
    /// others: [`poll`](Self::poll), as nobody may have been told when to come back, or not so
    /// soon.
    pub fn wake(&mut self, budget: &Meters, volume: u32) -> bool {
        let is_idle = |member: &Member| member.state == State::Idle;
        if self.members.get(&volume).is_some_and(is_idle) {
            self.ready(volume);
            budget.set_waiting(true);
            return self.turns.first(None) == Some(volume as usize) || !self.floors.is_empty();
        }
        false
    }

    /// A volume that its own limits hold back may go sooner than they said, as something was given
    /// back to it, or something else of it goes next: its turn comes with the others'.
    /// [`poll`](Self::poll) afterwards.
    pub fn again(&mut self, budget: &Meters, volume: u32) {
        let Some(&Member { state: State::Held(until), .. }) = self.members.get(&volume) else {
            return;
        };
        self.held.remove(&(until, volume));
        self.ready(volume);
        budget.set_waiting(true);
    }

    /// A volume has nothing waiting any more, as that was cancelled, or is to be
    /// [woken](Self::wake) again because its own limits changed.
    pub fn pause(&mut self, budget: &Meters, volume: u32) {
        self.rest(volume, State::Idle);
        budget.set_waiting(self.turns.is_ready());
    }

    /// Has volumes take their turns as far as `budget` and their own limits let them: `step` is to
    /// have one go on by [`Queue::step`](crate::Queue::step). Says when to ask again: `None` if
    /// nobody waits any more. What is said of [`Queue::poll`](crate::Queue::poll) holds here too;
    /// say first whose limits may let it go sooner ([`again`](Self::again)), as those that are held
    /// back aren't asked before their time.
    pub fn poll(
        &mut self,
        budget: &Meters,
        now: Mono,
        mut step: impl FnMut(u32) -> Step,
    ) -> Option<Mono> {
        while let Some(&(until, volume)) = self.held.first().filter(|(until, _)| *until <= now) {
            self.held.remove(&(until, volume));
            self.ready(volume);
        }
        let turn = budget.yields(TURN_NANOS).min(TURN_BYTES);
        let mut again = None;
        while let Some((volume, by_floor)) = self.first(now) {
            match step(volume) {
                Step::Went { bytes, next } => {
                    let went = Went { bytes, next, turn, by_floor };
                    self.served(volume, went, now);
                }
                Step::Nothing => self.rest(volume, State::Idle),
                Step::Held(until) => self.rest(volume, State::Held(until)),
                Step::Wait(until) => {
                    again = Some(until.max(pause(budget, now)));
                    break;
                }
            }
        }
        budget.set_waiting(self.turns.is_ready());
        let held = self.held.first().map(|&(until, _)| until);
        [again, held].into_iter().flatten().min()
    }

    /// The volume whose turn it is, and whether that is so by its floor.
    fn first(&self, now: Mono) -> Option<(u32, bool)> {
        if let Some(&(_, volume)) = self.floors.first().filter(|(until, _)| *until <= now.0) {
            return Some((volume, true));
        }
        let volume = u32::try_from(self.turns.first(None)?).ok()?;
        Some((volume, false))
    }

    /// A volume was served.
    fn served(&mut self, volume: u32, went: Went, now: Mono) {
        let Went { bytes, next, turn, by_floor } = went;
        let Some(member) = self.members.get_mut(&volume) else { return };
        let Share { weight, floor } = member.share;
        if floor > BytesPerSecond::ZERO {
            self.floors.remove(&(member.floor_until, volume));
            let takes = u128::from(bytes) * 1_000_000_000 / u128::from(floor.0);
            let from = member.floor_until.max(now.0.saturating_sub(CATCH_UP_NANOS));
            member.floor_until = from.saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
            if next.is_some() {
                self.floors.insert((member.floor_until, volume));
            }
        }
        let weigh = |bytes: u64| Weight::of(weighed(bytes, weight));
        let next = next.map(weigh);
        let served = weigh(bytes).bytes;
        let turn = next.map_or(0, |next| next.bytes.max(weigh(turn).bytes));
        member.place = self.turns.serve(member.place, served, next, || turn);
        if by_floor {
            member.place = self.turns.advance_at_most(member.place, served);
        }
        if next.is_none() {
            member.state = State::Idle;
        }
    }

    fn ready(&mut self, volume: u32) {
        let Some(member) = self.members.get_mut(&volume) else { return };
        member.state = State::Ready;
        member.place = self.turns.join(member.place, Weight::of(1));
        if member.share.floor > BytesPerSecond::ZERO {
            self.floors.insert((member.floor_until, volume));
        }
    }

    fn rest(&mut self, volume: u32, state: State) {
        let Some(member) = self.members.get_mut(&volume) else { return };
        match member.state {
            State::Idle => {}
            State::Held(until) => {
                self.held.remove(&(until, volume));
            }
            State::Ready => {
                member.place = self.turns.pause(member.place);
                self.floors.remove(&(member.floor_until, volume));
            }
        }
        member.state = state;
        if let State::Held(until) = state {
            self.held.insert((until, volume));
        }
    }
}

/// The weight of `bytes` for a volume of this weight.
fn weighed(bytes: u64, weight: u32) -> u64 {
    let product = bytes.saturating_mul(u64::from(Share::WEIGHT));
    product.div_ceil(u64::from(weight.max(1)))
}
