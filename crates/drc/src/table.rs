//! The calls of one client that are in progress, and its cached replies: plain data, time as an
//! argument.

use crate::key::{CallKey, Plain};
use crate::limits::{
    CACHED_REPLIES_CLIENT_MAX, CACHED_REPLIES_KEPT, CACHED_REPLY_BYTES_MAX, WAITERS_MAX,
};
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use weir_core::{Mono, VolumeId};
use weir_gate::ConnId;

/// The number of a request within its client; retransmissions of a call have different numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The connections that wait for the reply to a call, the one that sent the call last at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiters {
    first: (ConnId, Ticket),
    more: Vec<(ConnId, Ticket)>,
}

impl Waiters {
    /// All connections.
    pub fn iter(&self) -> impl Iterator<Item = ConnId> {
        self.places().map(|(waiter, _)| waiter)
    }

    /// The connection that sent the call last.
    pub(super) fn last(&self) -> ConnId {
        self.more.last().unwrap_or(&self.first).0
    }

    fn places(&self) -> impl Iterator<Item = (ConnId, Ticket)> {
        [self.first].into_iter().chain(self.more.iter().copied())
    }

    fn one(place: (ConnId, Ticket)) -> Self {
        Self { first: place, more: Vec::new() }
    }

    fn has(&self, waiter: ConnId) -> bool {
        self.iter().any(|own| own == waiter)
    }

    /// Moves `waiter` to the end, with the ticket that it has, or adds it. False if there are too
    /// many.
    fn add(&mut self, waiter: ConnId, ticket: Ticket) -> bool {
        if self.last() == waiter {
            return true;
        }
        if let Some(at) = self.more.iter().position(|place| place.0 == waiter) {
            let own = self.more.remove(at);
            self.more.push(own);
        } else if self.first.0 == waiter {
            // There is a second, or the first were the last.
            let own = std::mem::replace(&mut self.first, self.more.remove(0));
            self.more.push(own);
        } else if self.more.len() + 1 < WAITERS_MAX {
            self.more.push((waiter, ticket));
        } else {
            return false;
        }
        true
    }

    fn holds(&self, ticket: Ticket) -> bool {
        self.places().any(|(_, own)| own == ticket)
    }

    /// Removes the holder of `ticket`. False if it is the only waiter.
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

/// The place of a call of which a retransmission may be in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The call waits by itself; the first of its retransmissions to be admitted is executed.
    Own(Ticket),
    /// Drop the call: its connection gets the reply to the one in progress.
    Shared,
    /// Execute the call by itself: with so many connections that send the same xid and arguments,
    /// these are different clients behind one address, not retransmissions.
    Bypass,
}

/// The result of looking a non-idempotent call up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<'a> {
    /// Execute the call; it is in progress from now on.
    New(Ticket),
    /// Drop the call: its connection gets the reply to the one in progress.
    InProgress,
    /// Execute the call and cache nothing ([`Place::Bypass`]).
    Bypass,
    /// Send this reply.
    Cached(&'a [u8]),
}

/// A call without a reply yet. Before it is started, each waiter's request is queued by itself; the
/// first that is admitted starts the call for all.
struct InProgress {
    waiters: Waiters,
    started_by: Option<Ticket>,
}

struct CachedReply {
    until: Mono,
    volume: VolumeId,
    connection: u64,
    reply: Vec<u8>,
}

/// A reply that moves: the volume, the call, and the reply with its age.
pub(super) type Taken = (VolumeId, CallKey, (Duration, Vec<u8>));

/// The calls of one client.
#[derive(Default)]
pub(super) struct Calls {
    in_progress: HashMap<CallKey, InProgress, Plain>,
    replies: HashMap<CallKey, CachedReply, Plain>,
    /// The keys of cached replies, oldest first, with the times until which they are kept. A key
    /// whose reply was replaced is here twice.
    order: VecDeque<(CallKey, Mono)>,
    tickets: u64,
}

impl Calls {
    /// The number of cached replies.
    pub(super) fn replies(&self) -> usize {
        self.replies.len()
    }

    /// Looks a non-idempotent call up.
    pub(super) fn look_up(&mut self, key: CallKey, waiter: ConnId, now: Mono) -> Arrival<'_> {
        let known = self.replies.get(&key);
        if known.is_none_or(|cached| now > cached.until) {
            return match self.wait(key, waiter) {
                Place::Own(ticket) if self.begin(key, ticket) => Arrival::New(ticket),
                Place::Bypass => Arrival::Bypass,
                Place::Own(_) | Place::Shared => Arrival::InProgress,
            };
        }
        match self.replies.get_mut(&key) {
            Some(cached) => {
                cached.connection = waiter.token;
                Arrival::Cached(&cached.reply)
            }
            None => Arrival::InProgress,
        }
    }

    /// Enters an idempotent call that arrived. `None` if no such call is in progress, otherwise the
    /// result of [`Self::wait`].
    pub(super) fn meet(&mut self, key: CallKey, waiter: ConnId) -> Option<Place> {
        self.in_progress.contains_key(&key).then(|| self.wait(key, waiter))
    }

    /// Enters a call that is about to be queued. It shares the place of a retransmission that is
    /// queued from the same connection, or is being executed.
    pub(super) fn wait(&mut self, key: CallKey, waiter: ConnId) -> Place {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        match self.in_progress.entry(key) {
            Entry::Vacant(place) => {
                place.insert(InProgress {
                    waiters: Waiters::one((waiter, ticket)),
                    started_by: None,
                });
                Place::Own(ticket)
            }
            Entry::Occupied(mut call) => {
                let call = call.get_mut();
                let waits = call.started_by.is_none() && !call.waiters.has(waiter);
                match call.waiters.add(waiter, ticket) {
                    false => Place::Bypass,
                    true if waits => Place::Own(ticket),
                    true => Place::Shared,
                }
            }
        }
    }

    /// Starts a call that was queued. False if a retransmission was executed or is being executed:
    /// drop the call.
    pub(super) fn begin(&mut self, key: CallKey, ticket: Ticket) -> bool {
        match self.in_progress.get_mut(&key) {
            Some(call) if call.started_by.is_none() && call.waiters.holds(ticket) => {
                call.started_by = Some(ticket);
                true
            }
            _ => false,
        }
    }

    /// Enters a call that is being executed and was never queued. `None` if a retransmission has
    /// been entered in the meantime.
    pub(super) fn begin_new(&mut self, key: CallKey, waiter: ConnId) -> Option<Ticket> {
        if self.in_progress.contains_key(&key) {
            return None;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let waiters = Waiters::one((waiter, ticket));
        self.in_progress.insert(key, InProgress { waiters, started_by: Some(ticket) });
        Some(ticket)
    }

    /// Removes a call that was abandoned, or a place in its queue.
    pub(super) fn leave(&mut self, key: CallKey, ticket: Ticket) {
        let Some(call) = self.in_progress.get_mut(&key) else { return };
        let left = match call.started_by {
            Some(beginner) => beginner != ticket,
            None => call.waiters.remove(ticket),
        };
        if !left {
            self.in_progress.remove(&key);
        }
    }

    /// Removes a call that was answered. Returns the connections that get the reply.
    pub(super) fn answered(&mut self, key: CallKey) -> Option<Waiters> {
        self.in_progress.remove(&key).map(|call| call.waiters)
    }

    /// Caches the reply to a call of `volume`, which is sent to `connection`, until a time. A reply
    /// that is older than all others is not cached if there is no room, nor one that would take the
    /// place of a younger one.
    pub(super) fn remember(
        &mut self,
        key: CallKey,
        (volume, connection): (VolumeId, u64),
        (reply, until): (&[u8], Mono),
        now: Mono,
    ) {
        let is_full = self.order.len() >= CACHED_REPLIES_CLIENT_MAX;
        let no_room = is_full && self.order.front().is_some_and(|(_, oldest)| until < *oldest);
        let younger = self.replies.get(&key).is_some_and(|cached| until < cached.until);
        if reply.len() > CACHED_REPLY_BYTES_MAX || no_room || younger {
            return;
        }
        let mut kept = self.make_room(CACHED_REPLIES_CLIENT_MAX, now);
        kept.clear();
        kept.extend_from_slice(reply);
        let place = match self.order.back() {
            Some((_, newest)) if until < *newest => {
                self.order.partition_point(|(_, other)| *other <= until)
            }
            _ => self.order.len(),
        };
        self.order.insert(place, (key, until));
        self.replies.insert(key, CachedReply { until, volume, connection, reply: kept });
    }

    /// Evicts the oldest replies until fewer than `most` are left; returns a buffer of one.
    fn make_room(&mut self, most: usize, now: Mono) -> Vec<u8> {
        let mut buffer = Vec::new();
        while let Some((key, until)) = self.order.front()
            && (self.order.len() >= most || now > *until)
        {
            if self.replies.get(key).is_some_and(|cached| cached.until == *until)
                && let Some(forgotten) = self.replies.remove(key)
            {
                buffer = forgotten.reply;
            }
            self.order.pop_front();
        }
        buffer
    }

    /// Evicts the oldest reply.
    pub(super) fn forget_oldest(&mut self) {
        let before = self.replies.len();
        while self.replies.len() == before
            && let Some((key, until)) = self.order.pop_front()
        {
            if self.replies.get(&key).is_some_and(|cached| cached.until == until) {
                self.replies.remove(&key);
            }
        }
    }

    /// Evicts expired replies.
    pub(super) fn forget_old(&mut self, now: Mono) {
        self.make_room(usize::MAX, now);
    }

    /// The expiry of the oldest reply.
    pub(super) fn due(&self) -> Option<Mono> {
        self.order.front().map(|(_, until)| *until)
    }

    /// Takes the replies to calls of these volumes out, the oldest first, without expired ones.
    pub(super) fn take(&mut self, volumes: &BTreeSet<VolumeId>, now: Mono) -> Vec<Taken> {
        self.forget_old(now);
        let (mut taken, replies) = (Vec::new(), &mut self.replies);
        self.order.retain(|(key, until)| {
            let is_here = |cached: &CachedReply| cached.until == *until;
            let moves = |cached: &CachedReply| is_here(cached) && volumes.contains(&cached.volume);
            if replies.get(key).is_some_and(moves)
                && let Some(CachedReply { volume, reply, .. }) = replies.remove(key)
            {
                let age = CACHED_REPLIES_KEPT.saturating_sub(until.since(now));
                taken.push((volume, *key, (age, reply)));
            }
            replies.get(key).is_some_and(is_here)
        });
        taken
    }

    /// Forgets the replies that were sent to `connection`: the client has them. Returns their
    /// calls.
    pub(super) fn forget(&mut self, connection: u64) -> Vec<(VolumeId, CallKey)> {
        let went = self.replies.extract_if(|_, cached| cached.connection == connection);
        let forgotten = went.map(|(key, cached)| (cached.volume, key)).collect();
        let replies = &self.replies;
        self.order
            .retain(|(key, until)| replies.get(key).is_some_and(|cached| cached.until == *until));
        forgotten
    }
}

#[cfg(test)]
mod tests;
