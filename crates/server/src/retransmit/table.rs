//! The calls of one client that wait, are carried out or were answered: plain data, time as an
//! argument.

use super::key::{CallKey, Plain};
use crate::limits::{ANSWER_BYTES_MAX, ANSWERS_CLIENT_MAX, ANSWERS_CLIENT_MIN, ANSWERS_KEPT};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use weir_core::Mono;

/// A connection that wants the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The worker that owns it.
    pub(crate) worker: usize,
    /// Its token there.
    pub(crate) connection: u64,
}

/// One of the requests that are the same call; numbered within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The connections that a call came over: the last two, since a client has one left of those it
/// lost before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Askers {
    last: (Asker, Ticket),
    before: Option<(Asker, Ticket)>,
}

impl Askers {
    /// Each of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = Asker> {
        self.places().map(|(asker, _)| asker)
    }

    /// The one that asked last.
    pub(super) fn last(self) -> Asker {
        self.last.0
    }

    fn places(self) -> impl Iterator<Item = (Asker, Ticket)> {
        self.before.into_iter().chain([self.last])
    }

    fn one(place: (Asker, Ticket)) -> Self {
        Self { last: place, before: None }
    }

    fn has(self, asker: Asker) -> bool {
        self.iter().any(|own| own == asker)
    }

    /// Makes `asker` the one that asked last; it keeps its ticket if it has one.
    fn add(&mut self, asker: Asker, ticket: Ticket) {
        if self.last.0 != asker {
            let own = self.before.filter(|place| place.0 == asker).unwrap_or((asker, ticket));
            *self = Self { last: own, before: Some(self.last) };
        }
    }

    fn holds(self, ticket: Ticket) -> bool {
        self.places().any(|(_, own)| own == ticket)
    }

    /// Without the holder of `ticket`, if another is left.
    fn without(self, ticket: Ticket) -> Option<Self> {
        if !self.holds(ticket) {
            return Some(self);
        }
        self.places().find(|(_, own)| *own != ticket).map(Self::one)
    }
}

/// What to do with a call that must not be repeated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<'a> {
    /// Carry it out; it is underway from now on.
    New(Ticket),
    /// Drop it: the reply to the call that is underway goes to this connection too.
    Underway,
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
    /// Nothing underway and nothing remembered?
    pub(super) fn is_empty(&self) -> bool {
        self.underway.is_empty() && self.answers.is_empty()
    }

    /// Answers remembered.
    pub(super) fn answers(&self) -> usize {
        self.answers.len()
    }

    /// A call that must not be repeated came.
    pub(super) fn arrive(&mut self, key: CallKey, asker: Asker, now: Mono) -> Arrival<'_> {
        let known = self.answers.get(&key);
        if known.is_none_or(|answer| now.since(answer.at) > ANSWERS_KEPT) {
            return match self.wait(key, asker) {
                Some(ticket) if self.begin(key, ticket) => Arrival::New(ticket),
                _ => Arrival::Underway,
            };
        }
        match self.answers.get_mut(&key) {
            Some(answer) => {
                answer.connection = asker.connection;
                Arrival::Answered(&answer.reply)
            }
            None => Arrival::Underway,
        }
    }

    /// A call came that nothing is remembered of once it is answered. Nothing if it is not
    /// underway, otherwise what [`Self::wait`] says.
    pub(super) fn meet(&mut self, key: CallKey, asker: Asker) -> Option<Option<Ticket>> {
        self.underway.contains_key(&key).then(|| self.wait(key, asker))
    }

    /// A call is about to wait. Nothing if it is to be dropped: it waits already on the same
    /// connection, or is being carried out.
    pub(super) fn wait(&mut self, key: CallKey, asker: Asker) -> Option<Ticket> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        match self.underway.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Underway { askers: Askers::one((asker, ticket)), begun_by: None });
                Some(ticket)
            }
            Entry::Occupied(mut call) => {
                let call = call.get_mut();
                let waits = call.begun_by.is_none() && !call.askers.has(asker);
                call.askers.add(asker, ticket);
                waits.then_some(ticket)
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

    /// A call that did not wait before is being carried out.
    pub(super) fn begin_new(&mut self, key: CallKey, asker: Asker) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let new = Underway { askers: Askers::one((asker, ticket)), begun_by: None };
        let call = self.underway.entry(key).or_insert(new);
        call.askers.add(asker, ticket);
        call.begun_by = Some(ticket);
        ticket
    }

    /// A call is given up unanswered, or its place in the queue is gone.
    pub(super) fn leave(&mut self, key: CallKey, ticket: Ticket) {
        let Some(call) = self.underway.get_mut(&key) else { return };
        let left = match call.begun_by {
            Some(beginner) if beginner == ticket => None,
            Some(_) => return,
            None => call.askers.without(ticket),
        };
        match left {
            Some(askers) => call.askers = askers,
            None => drop(self.underway.remove(&key)),
        }
    }

    /// A call that was begun is answered. Gives the connections that want the reply.
    pub(super) fn answered(&mut self, key: CallKey) -> Option<Askers> {
        self.underway.remove(&key).map(|call| call.askers)
    }

    /// Remembers the reply to a call, which goes to `connection`. `room` says whether all clients
    /// together hold little enough for this one to remember more than it does.
    pub(super) fn remember(
        &mut self,
        key: CallKey,
        connection: u64,
        reply: &[u8],
        room: bool,
        now: Mono,
    ) {
        if reply.len() > ANSWER_BYTES_MAX {
            return;
        }
        let most = if room { ANSWERS_CLIENT_MAX } else { self.answers.len() };
        let mut kept = self.make_room(most.max(ANSWERS_CLIENT_MIN), now);
        kept.clear();
        kept.extend_from_slice(reply);
        self.order.push_back((key, now));
        self.answers.insert(key, Answer { at: now, connection, reply: kept });
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

    /// Forgets the answers that went to `connection`: its client has them.
    pub(super) fn forget(&mut self, connection: u64) {
        self.answers.retain(|_, answer| answer.connection != connection);
        let answers = &self.answers;
        self.order.retain(|(key, at)| answers.get(key).is_some_and(|answer| answer.at == *at));
    }
}

#[cfg(test)]
mod tests;
