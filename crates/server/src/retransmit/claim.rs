//! A client across its connections, and the claims of its requests on being answered.

use super::clients::Register;
use super::key::{CallKey, Prints};
use super::table::{Arrival, Askers, Calls, Place, Ticket};
use crate::conn_id::ConnId;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, Weak, lock};
use weir_core::{CallId, Mono, VolumeId};
use weir_qos::ClientKey;

/// Stands for the connections of earlier processes. No connection has this number.
const EARLIER: u64 = u64::MAX;

/// The server's knowledge of one client's calls, shared by its connections.
pub(crate) struct Caller {
    calls: Mutex<Calls>,
    /// READs and WRITEs in `calls`.
    data: AtomicUsize,
    prints: Prints,
    client: ClientKey,
    /// The count of all clients' answers.
    register: Weak<Register>,
}

/// The duplicate request cache's verdict on a call that must not be repeated.
pub(crate) enum Came {
    /// New: to be carried out.
    New(Claim),
    /// The call is carried out for itself, without a claim.
    Apart,
    /// Underway: to be dropped.
    Underway,
    /// Answered already: this is the reply.
    Answered(Vec<u8>),
}

impl Caller {
    /// A client of which nothing is known.
    pub(super) fn new(prints: Prints, client: ClientKey, register: Weak<Register>) -> Self {
        Self { calls: Mutex::default(), data: AtomicUsize::new(0), prints, client, register }
    }

    /// The key maker for its calls.
    pub(crate) fn prints(&self) -> Prints {
        self.prints
    }

    /// A call that must not be repeated came; `copy` copies a reply that is remembered.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        key: CallKey,
        asker: ConnId,
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
    pub(crate) fn meet(self: &Arc<Self>, key: CallKey, asker: ConnId) -> Option<Option<Claim>> {
        let place = lock(&self.calls).meet(key, asker);
        place.map_or(Some(None), |place| self.waiting(key, place))
    }

    /// A READ or WRITE has to wait for its contract. Nothing if it is to be dropped, because it
    /// came before and is underway.
    pub(crate) fn wait(self: &Arc<Self>, key: CallKey, asker: ConnId) -> Option<Option<Claim>> {
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
    pub(crate) fn begun(self: &Arc<Self>, key: CallKey, asker: ConnId) -> Option<Claim> {
        let ticket = lock(&self.calls).begin_new(key, asker)?;
        Some(Claim::new(self, key, ticket, Kind::Begun))
    }

    /// The client took every reply on `connection` and closed it in an orderly way. It asks for
    /// none of them again; but a client that begins to count its calls anew may be next. Gives the
    /// calls that are to be forgotten where they are on record.
    pub(crate) fn has_all_of(&self, connection: u64) -> Vec<(VolumeId, CallId)> {
        let forgotten = self.change(|calls| calls.forget(connection));
        let on_record = |(volume, key): (_, CallKey)| Some((volume, key.on_record(self.client)?));
        forgotten.into_iter().filter_map(on_record).collect()
    }

    /// Remembers the reply to a call of `volume` that an earlier process has carried out.
    pub(super) fn remember(&self, call: &CallId, volume: VolumeId, reply: &[u8], now: Mono) {
        let key = CallKey::of_record(call);
        self.change(|calls| calls.remember(key, (volume, EARLIER), reply, now));
    }

    /// Forgets the oldest answer, because all clients together have too many.
    pub(super) fn give_way(&self) {
        self.change(Calls::forget_oldest);
    }

    /// Forgets the answers that are too old.
    pub(super) fn forget_old(&self, now: Mono) {
        let mut calls = lock(&self.calls);
        calls.forget_old(now);
        self.register(&calls);
    }

    /// Changes the calls, and keeps the register of all clients' answers true.
    fn change<T>(&self, act: impl FnOnce(&mut Calls) -> T) -> T {
        let mut calls = lock(&self.calls);
        let before = calls.answers();
        let result = act(&mut calls);
        if calls.answers() != before {
            self.register(&calls);
        }
        result
    }

    /// Has it counted how many answers `calls` remember, whose lock is held so that no count is
    /// overtaken by an older one.
    fn register(&self, calls: &Calls) {
        if let Some(register) = self.register.upgrade() {
            register.holds(self.client, calls.answers(), calls.due());
        }
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

    /// The call as the volume's store is to keep it on record, if it is one that changes names.
    pub(crate) fn on_record(&self) -> Option<CallId> {
        self.key.on_record(self.caller.client).filter(|_| self.kind == Kind::Once)
    }

    /// The request of `volume` is answered by `reply`. Gives the connections that want it.
    pub(crate) fn answered(mut self, volume: VolumeId, reply: &[u8], now: Mono) -> Option<Askers> {
        let key = self.key;
        let once = self.kind == Kind::Once;
        let askers = if once {
            self.caller.change(|calls| {
                let askers = calls.answered(key)?;
                calls.remember(key, (volume, askers.last().token), reply, now);
                Some(askers)
            })
        } else {
            lock(&self.caller.calls).answered(key)
        };
        if once && let Some(register) = self.caller.register.upgrade() {
            register.make_room(now);
        }
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
