//! A client across its connections, and the claims of its requests on being answered.

use super::key::{CallKey, Prints};
use super::table::{Arrival, Asker, Askers, Calls, Place, Ticket};
use crate::limits::ANSWERS_MAX;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};
use weir_core::Mono;

/// What is known of one client's calls, shared by its connections.
pub(crate) struct Caller {
    calls: Mutex<Calls>,
    /// READs and WRITEs in `calls`.
    data: AtomicUsize,
    prints: Prints,
    /// Answers that all clients remember together.
    answers: Arc<AtomicUsize>,
}

/// What a call that must not be repeated is.
pub(crate) enum Came {
    /// New: to be carried out.
    New(Claim),
    /// To be carried out for itself, without a claim.
    Apart,
    /// Underway: to be dropped.
    Underway,
    /// Answered already: this is the reply.
    Answered(Vec<u8>),
}

impl Caller {
    /// A client of which nothing is known.
    pub(super) fn new(prints: Prints, answers: Arc<AtomicUsize>) -> Self {
        Self { calls: Mutex::default(), data: AtomicUsize::new(0), prints, answers }
    }

    /// How its calls are recognized.
    pub(crate) fn prints(&self) -> Prints {
        self.prints
    }

    /// Is nothing underway, and nothing remembered?
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.calls).is_empty()
    }

    /// A call that must not be repeated came; `copy` copies a reply that is remembered.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        key: CallKey,
        asker: Asker,
        now: Mono,
        copy: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Came {
        match lock(&self.calls).arrive(key, asker, now) {
            Arrival::New(ticket) => Came::New(Claim::new(self, key, ticket, Kind::Once)),
            Arrival::Apart => Came::Apart,
            Arrival::Underway => Came::Underway,
            Arrival::Answered(reply) => Came::Answered(copy(reply)),
        }
    }

    /// May a READ or WRITE be one that comes again? Cheap, and nearly always no.
    pub(crate) fn has_data_underway(&self) -> bool {
        self.data.load(Ordering::Relaxed) > 0
    }

    /// A WRITE came. Nothing if it is to be dropped, because it came before and is underway; with a
    /// claim if it waits elsewhere too.
    pub(crate) fn meet(self: &Arc<Self>, key: CallKey, asker: Asker) -> Option<Option<Claim>> {
        let place = lock(&self.calls).meet(key, asker);
        place.map_or(Some(None), |place| self.waiting(key, place))
    }

    /// A READ or WRITE has to wait for its contract. Nothing if it is to be dropped, because it
    /// came before and is underway.
    pub(crate) fn wait(self: &Arc<Self>, key: CallKey, asker: Asker) -> Option<Option<Claim>> {
        let place = lock(&self.calls).wait(key, asker);
        self.waiting(key, place)
    }

    fn waiting(self: &Arc<Self>, key: CallKey, place: Place) -> Option<Option<Claim>> {
        match place {
            Place::Its(ticket) => Some(Some(Claim::new(self, key, ticket, Kind::Waiting))),
            Place::Apart => Some(None),
            Place::Shared => None,
        }
    }

    /// A WRITE that did not wait for its contract waits for the disk.
    pub(crate) fn begun(self: &Arc<Self>, key: CallKey, asker: Asker) -> Option<Claim> {
        let ticket = lock(&self.calls).begin_new(key, asker)?;
        Some(Claim::new(self, key, ticket, Kind::Begun))
    }

    /// The client took every reply on `connection` and closed it in an orderly way. It asks for
    /// none of them again; but a client that begins to count its calls anew may be next.
    pub(crate) fn has_all_of(&self, connection: u64) {
        self.change(|calls| calls.forget(connection));
    }

    /// Changes the calls, and keeps the sum of all clients' answers true.
    fn change<T>(&self, act: impl FnOnce(&mut Calls) -> T) -> T {
        let mut calls = lock(&self.calls);
        let before = calls.answers();
        let result = act(&mut calls);
        let after = calls.answers();
        if after != before {
            self.answers.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
        result
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.answers.fetch_sub(lock(&self.calls).answers(), Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Must not be repeated; begun.
    Once,
    /// A READ or WRITE in a queue.
    Waiting,
    /// A READ or WRITE that was begun.
    Begun,
    /// Answered or given up.
    Ended,
}

/// A request's place among the calls of its client. Dropped, it is given up.
pub(crate) struct Claim {
    caller: Arc<Caller>,
    key: CallKey,
    ticket: Ticket,
    kind: Kind,
}

impl Claim {
    fn new(caller: &Arc<Caller>, key: CallKey, ticket: Ticket, kind: Kind) -> Self {
        if kind != Kind::Once {
            caller.data.fetch_add(1, Ordering::Relaxed);
        }
        Self { caller: Arc::clone(caller), key, ticket, kind }
    }

    /// The request may go. False if the same was carried out meanwhile, for another connection of
    /// the client, or is: drop it.
    pub(crate) fn begin(&mut self) -> bool {
        if self.kind == Kind::Waiting {
            if !lock(&self.caller.calls).begin(self.key, self.ticket) {
                return false;
            }
            self.kind = Kind::Begun;
        }
        true
    }

    /// The request is answered by `reply`. Gives the connections that want it.
    pub(crate) fn answered(mut self, reply: &[u8], now: Mono) -> Option<Askers> {
        let key = self.key;
        let askers = if self.kind == Kind::Once {
            let room = self.caller.answers.load(Ordering::Relaxed) < ANSWERS_MAX;
            self.caller.change(|calls| {
                let askers = calls.answered(key)?;
                calls.remember(key, askers.last().connection, reply, room, now);
                Some(askers)
            })
        } else {
            lock(&self.caller.calls).answered(key)
        };
        self.end();
        askers
    }

    fn end(&mut self) {
        if matches!(self.kind, Kind::Waiting | Kind::Begun) {
            self.caller.data.fetch_sub(1, Ordering::Relaxed);
        }
        self.kind = Kind::Ended;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.kind != Kind::Ended {
            lock(&self.caller.calls).leave(self.key, self.ticket);
            self.end();
        }
    }
}
