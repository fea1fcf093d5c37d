//! The calls of one client that wait, are carried out or were answered: plain data, time as an
//! argument.

use super::key::{CallKey, Plain};
use crate::conn_id::ConnId;
use crate::limits::{ANSWER_BYTES_MAX, ANSWERS_CLIENT_MAX, ANSWERS_KEPT, ASKERS_MAX};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use weir_core::{Mono, VolumeId};

/// A request among those that are the same call; numbered within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The connections that a call came over, in the order in which they asked last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Askers {
    first: (ConnId, Ticket),
    more: Vec<(ConnId, Ticket)>,
}

impl Askers {
    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ConnId> {
        self.places().map(|(asker, _)| asker)
    }

    /// The one that asked last.
    pub(super) fn last(&self) -> ConnId {
        self.more.last().unwrap_or(&self.first).0
    }

    fn places(&self) -> impl Iterator<Item = (ConnId, Ticket)> {
        [self.first].into_iter().chain(self.more.iter().copied())
    }

    fn one(place: (ConnId, Ticket)) -> Self {
        Self { first: place, more: Vec::new() }
    }

    fn has(&self, asker: ConnId) -> bool {
        self.iter().any(|own| own == asker)
    }

    /// Makes `asker` the one that asked last; it keeps its ticket if it has one. False if there
    /// are too many for one more.
    fn add(&mut self, asker: ConnId, ticket: Ticket) -> bool {
        if self.last() == asker {
            return true;
        }
        if let Some(at) = self.more.iter().position(|place| place.0 == asker) {
            let own = self.more.remove(at);
            self.more.push(own);
        } else if self.first.0 == asker {
            // There is a second, or the first were the last.
            let own = std::mem::replace(&mut self.first, self.more.remove(0));
            self.more.push(own);
        } else if self.more.len() + 1 < ASKERS_MAX {
            self.more.push((asker, ticket));
        } else {
            return false;
        }
        true
    }

    fn holds(&self, ticket: Ticket) -> bool {
        self.places().any(|(_, own)| own == ticket)
    }

    /// Takes out the holder of `ticket`. False if nobody would be left.
    fn remove(&mut self, ticket: Ticket) -> bool {
        self.more.retain(|(_, own)| *own != ticket);
        if self.first.1 != ticket {
            return true;
        }
        if self.more.is_empty() {
            return false;
        }
        self.first = self.more.remove(0);
        true
    }
}

/// The place of a call that comes while the same call may be underway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The call has a place of its own among its likes.
    Its(Ticket),
    /// Drop it: its connection gets the reply to the one that is there.
    Shared,
    /// Carry it out by itself: so many have the same number and arguments that these are
    /// different clients behind one address, rather than one that repeats itself.
    Apart,
}

/// The treatment of a call that must not be repeated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<'a> {
    /// Carry it out; it is underway from now on.
    New(Ticket),
    /// Drop it: the reply to the call that is underway goes to this connection too.
    Underway,
    /// Carry it out and remember nothing ([`Place::Apart`]).
    Apart,
    /// Send this reply.
    Answered(&'a [u8]),
}

/// A call that has no answer yet. Before it is begun each of its askers has sent it by itself and
/// waits in its own place; the first whose turn comes begins it for all.
struct Underway {
    askers: Askers,
    begun_by: Option<Ticket>,
}

struct Answer {
    at: Mono,
    volume: VolumeId,
    connection: u64,
    reply: Vec<u8>,
}

/// The calls of one client.
#[derive(Default)]
pub(super) struct Calls {
    underway: HashMap<CallKey, Underway, Plain>,
    answers: HashMap<CallKey, Answer, Plain>,
    /// The answers, oldest first, with when they were given: what was given again stands twice.
    order: VecDeque<(CallKey, Mono)>,
    tickets: u64,
}

impl Calls {
    /// Answers remembered.
    pub(super) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// A call that must not be repeated came.
    pub(super) fn arrive(&mut self, key: CallKey, asker: ConnId, now: Mono) -> Arrival<'_> {
        let known = self.answers.get(&key);
        if known.is_none_or(|answer| now.since(answer.at) > ANSWERS_KEPT) {
            return match self.wait(key, asker) {
                Place::Its(ticket) if self.begin(key, ticket) => Arrival::New(ticket),
                Place::Apart => Arrival::Apart,
                Place::Its(_) | Place::Shared => Arrival::Underway,
            };
        }
        match self.answers.get_mut(&key) {
            Some(answer) => {
                answer.connection = asker.token;
                Arrival::Answered(&answer.reply)
            }
            None => Arrival::Underway,
        }
    }

    /// A call came that nothing is remembered of once it is answered. Nothing if it is not
    /// underway, otherwise what [`Self::wait`] says.
    pub(super) fn meet(&mut self, key: CallKey, asker: ConnId) -> Option<Place> {
        self.underway.contains_key(&key).then(|| self.wait(key, asker))
    }

    /// A call is about to wait. It shares the place of its like that waits already on the same
    /// connection, or is being carried out.
    pub(super) fn wait(&mut self, key: CallKey, asker: ConnId) -> Place {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        match self.underway.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Underway { askers: Askers::one((asker, ticket)), begun_by: None });
                Place::Its(ticket)
            }
            Entry::Occupied(mut call) => {
                let call = call.get_mut();
                let waits = call.begun_by.is_none() && !call.askers.has(asker);
                match call.askers.add(asker, ticket) {
                    false => Place::Apart,
                    true if waits => Place::Its(ticket),
                    true => Place::Shared,
                }
            }
        }
    }

    /// A call that waited may go. False if the same was carried out or is: drop it.
    pub(super) fn begin(&mut self, key: CallKey, ticket: Ticket) -> bool {
        match self.underway.get_mut(&key) {
            Some(call) if call.begun_by.is_none() && call.askers.holds(ticket) => {
                call.begun_by = Some(ticket);
                true
            }
            _ => false,
        }
    }

    /// A call that did not wait before is being carried out. Nothing if one of its likes has
    /// come to be underway meanwhile.
    pub(super) fn begin_new(&mut self, key: CallKey, asker: ConnId) -> Option<Ticket> {
        if self.underway.contains_key(&key) {
            return None;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let askers = Askers::one((asker, ticket));
        self.underway.insert(key, Underway { askers, begun_by: Some(ticket) });
        Some(ticket)
    }

    /// A call is given up unanswered, or its place in the queue is gone.
    pub(super) fn leave(&mut self, key: CallKey, ticket: Ticket) {
        let Some(call) = self.underway.get_mut(&key) else { return };
        let left = match call.begun_by {
            Some(beginner) => beginner != ticket,
            None => call.askers.remove(ticket),
        };
        if !left {
            self.underway.remove(&key);
        }
    }

    /// A call that was begun is answered. Gives the connections that want the reply.
    pub(super) fn answered(&mut self, key: CallKey) -> Option<Askers> {
        self.underway.remove(&key).map(|call| call.askers)
    }

    /// Remembers the reply to a call of `volume`, which goes to `connection`.
    pub(super) fn remember(
        &mut self,
        key: CallKey,
        (volume, connection): (VolumeId, u64),
        reply: &[u8],
        now: Mono,
    ) {
        if reply.len() > ANSWER_BYTES_MAX {
            return;
        }
        let mut kept = self.make_room(ANSWERS_CLIENT_MAX, now);
        kept.clear();
        kept.extend_from_slice(reply);
        self.order.push_back((key, now));
        self.answers.insert(key, Answer { at: now, volume, connection, reply: kept });
    }

    /// Forgets the oldest answers until fewer than `most` are left; gives a buffer of theirs.
    fn make_room(&mut self, most: usize, now: Mono) -> Vec<u8> {
        let mut buffer = Vec::new();
        while let Some((key, at)) = self.order.front()
            && (self.order.len() >= most || now.since(*at) > ANSWERS_KEPT)
        {
            if self.answers.get(key).is_some_and(|answer| answer.at == *at)
                && let Some(forgotten) = self.answers.remove(key)
            {
                buffer = forgotten.reply;
            }
            self.order.pop_front();
        }
        buffer
    }

    /// Forgets the oldest answer.
    pub(super) fn forget_oldest(&mut self) {
        let before = self.answers.len();
        while self.answers.len() == before
            && let Some((key, at)) = self.order.pop_front()
        {
            if self.answers.get(&key).is_some_and(|answer| answer.at == at) {
                self.answers.remove(&key);
            }
        }
    }

    /// Forgets the answers that are too old.
    pub(super) fn forget_old(&mut self, now: Mono) {
        self.make_room(usize::MAX, now);
    }

    /// Time until which the oldest answer is remembered.
    pub(super) fn due(&self) -> Option<Mono> {
        self.order.front().map(|(_, at)| *at + ANSWERS_KEPT)
    }

    /// Forgets the answers that went to `connection`: its client has them. Gives their calls.
    pub(super) fn forget(&mut self, connection: u64) -> Vec<(VolumeId, CallKey)> {
        let went = self.answers.extract_if(|_, answer| answer.connection == connection);
        let forgotten = went.map(|(key, answer)| (answer.volume, key)).collect();
        let answers = &self.answers;
        self.order.retain(|(key, at)| answers.get(key).is_some_and(|answer| answer.at == *at));
        forgotten
    }
}

#[cfg(test)]
mod tests;
