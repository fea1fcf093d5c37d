//! A client's part of the cache, shared by its connections, and the entry of a request in it.

use crate::clients::Register;
use crate::key::{CallKey, Fingerprints};
use crate::limits::CACHED_REPLIES_KEPT;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, Weak, lock};
use crate::table::{Arrival, Calls, Place, Taken, Ticket, Waiters};
use std::collections::BTreeSet;
use weir_core::{CallId, Mono, VolumeId};
use weir_gate::ConnId;
use weir_qos::ClientKey;

/// The connection of replies that another process has sent. No connection has this number.
const EARLIER: u64 = u64::MAX;

/// The cache of one client, shared by its connections.
pub struct DrcClient {
    calls: Mutex<Calls>,
    /// The number of READs and WRITEs in `calls`.
    data: AtomicUsize,
    fingerprints: Fingerprints,
    client: ClientKey,
    /// The number of cached replies of all clients.
    register: Weak<Register>,
}

/// The result of looking a non-idempotent call up.
pub enum Lookup {
    /// The call is new: execute it.
    New(DrcEntry),
    /// Execute the call without an entry: too many connections have sent the same one.
    Bypass,
    /// The same call is being executed: drop this one. Its connection gets the reply too.
    InProgress,
    /// The call was executed before: send this reply.
    Cached(Vec<u8>),
}

impl DrcClient {
    /// An empty cache.
    pub(super) fn new(
        fingerprints: Fingerprints,
        client: ClientKey,
        register: Weak<Register>,
    ) -> Self {
        Self { calls: Mutex::default(), data: AtomicUsize::new(0), fingerprints, client, register }
    }

    /// The fingerprints of the client's calls.
    #[inline]
    pub fn fingerprints(&self) -> Fingerprints {
        self.fingerprints
    }

    /// Looks a non-idempotent call up; `copy` copies a cached reply.
    #[inline]
    pub fn look_up(
        self: &Arc<Self>,
        key: CallKey,
        waiter: ConnId,
        now: Mono,
        copy: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Lookup {
        match lock(&self.calls).look_up(key, waiter, now) {
            Arrival::New(ticket) => {
                Lookup::New(DrcEntry::new(self, key, ticket, Kind::NonIdempotent))
            }
            Arrival::Bypass => Lookup::Bypass,
            Arrival::InProgress => Lookup::InProgress,
            Arrival::Cached(reply) => Lookup::Cached(copy(reply)),
        }
    }

    /// Is a READ or WRITE in progress, so that another may be its retransmission? Cheap, and nearly
    /// always false.
    #[inline]
    pub fn has_data_underway(&self) -> bool {
        self.data.load(Ordering::Relaxed) > 0
    }

    /// Enters a WRITE that arrived. `None` if it is a retransmission of one in progress: drop it.
    /// Without an entry if none is needed, because no such WRITE is in progress.
    #[inline]
    pub fn meet(self: &Arc<Self>, key: CallKey, waiter: ConnId) -> Option<Option<DrcEntry>> {
        let place = lock(&self.calls).meet(key, waiter);
        place.map_or(Some(None), |place| self.waiting(key, place))
    }

    /// Enters a READ or WRITE that is throttled. `None` if it is a retransmission of one in
    /// progress: drop it.
    #[inline]
    pub fn wait(self: &Arc<Self>, key: CallKey, waiter: ConnId) -> Option<Option<DrcEntry>> {
        let place = lock(&self.calls).wait(key, waiter);
        self.waiting(key, place)
    }

    fn waiting(self: &Arc<Self>, key: CallKey, place: Place) -> Option<Option<DrcEntry>> {
        match place {
            Place::Own(ticket) => Some(Some(DrcEntry::new(self, key, ticket, Kind::Queued))),
            Place::Bypass => Some(None),
            Place::Shared => None,
        }
    }

    /// Enters a WRITE that was not throttled and now waits for the disk.
    #[inline]
    pub fn begun(self: &Arc<Self>, key: CallKey, waiter: ConnId) -> Option<DrcEntry> {
        let ticket = lock(&self.calls).begin_new(key, waiter)?;
        Some(DrcEntry::new(self, key, ticket, Kind::Started))
    }

    /// Forgets the replies sent over `connection`, which the client has received and closed in an
    /// orderly way: it does not retransmit those calls, but the next client at its address may use
    /// their xids again. Returns the calls that volumes are to remove from their records.
    pub fn forget_connection(&self, connection: u64) -> Vec<(VolumeId, CallId)> {
        let forgotten = self.change(|calls| calls.forget(connection));
        let on_record = |(volume, key): (_, CallKey)| Some((volume, key.on_record(self.client)?));
        forgotten.into_iter().filter_map(on_record).collect()
    }

    /// Caches the reply to a call of a volume that another process has executed, until a time.
    pub(super) fn remember(
        &self,
        (key, volume): (CallKey, VolumeId),
        reply: (&[u8], Mono),
        now: Mono,
    ) {
        self.change(|calls| calls.remember(key, (volume, EARLIER), reply, now));
    }

    /// Takes the replies to calls of these volumes out, the oldest first.
    pub(super) fn take(&self, volumes: &BTreeSet<VolumeId>, now: Mono) -> Vec<Taken> {
        self.change(|calls| calls.take(volumes, now))
    }

    /// Evicts the oldest reply, because the bound on all clients is reached.
    pub(super) fn evict_oldest(&self) {
        self.change(Calls::forget_oldest);
    }

    /// Evicts expired replies.
    pub(super) fn forget_old(&self, now: Mono) {
        let mut calls = lock(&self.calls);
        calls.forget_old(now);
        self.register(&calls);
    }

    /// Changes the calls, and updates the number of cached replies of all clients.
    fn change<T>(&self, act: impl FnOnce(&mut Calls) -> T) -> T {
        let mut calls = lock(&self.calls);
        let before = calls.replies();
        let result = act(&mut calls);
        if calls.replies() != before {
            self.register(&calls);
        }
        result
    }

    /// Updates the number of cached replies of this client. The lock of `calls` is held, so that
    /// an older number never overwrites a newer one.
    fn register(&self, calls: &Calls) {
        if let Some(register) = self.register.upgrade() {
            register.holds(self.client, calls.replies(), calls.due());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A non-idempotent call that is being executed.
    NonIdempotent,
    /// An idempotent call, or a WRITE, that waits at the gate.
    Queued,
    /// Such a call that is being executed.
    Started,
    /// Answered or abandoned.
    Ended,
}

/// The entry of a request in the cache of its client. Dropping it abandons the request.
pub struct DrcEntry {
    owner: Arc<DrcClient>,
    key: CallKey,
    ticket: Ticket,
    kind: Kind,
}

impl DrcEntry {
    fn new(owner: &Arc<DrcClient>, key: CallKey, ticket: Ticket, kind: Kind) -> Self {
        if kind != Kind::NonIdempotent {
            owner.data.fetch_add(1, Ordering::Relaxed);
        }
        Self { owner: Arc::clone(owner), key, ticket, kind }
    }

    /// The request is about to be executed. False if a retransmission over another connection was
    /// executed in the meantime, or is being executed: drop the request.
    #[inline]
    pub fn begin(&mut self) -> bool {
        if self.kind == Kind::Queued {
            if !lock(&self.owner.calls).begin(self.key, self.ticket) {
                return false;
            }
            self.kind = Kind::Started;
        }
        true
    }

    /// The call as the volume's store records it, if it changes names.
    #[inline]
    pub fn on_record(&self) -> Option<CallId> {
        self.key.on_record(self.owner.client).filter(|_| self.kind == Kind::NonIdempotent)
    }

    /// The request of `volume` is answered by `reply`. Returns the connections that get the reply.
    pub fn answered(mut self, volume: VolumeId, reply: &[u8], now: Mono) -> Option<Waiters> {
        let key = self.key;
        let non_idempotent = self.kind == Kind::NonIdempotent;
        let waiters = if non_idempotent {
            self.owner.change(|calls| {
                let waiters = calls.answered(key)?;
                let until = now + CACHED_REPLIES_KEPT;
                calls.remember(key, (volume, waiters.last().token), (reply, until), now);
                Some(waiters)
            })
        } else {
            lock(&self.owner.calls).answered(key)
        };
        if non_idempotent && let Some(register) = self.owner.register.upgrade() {
            register.make_room(now);
        }
        self.end();
        waiters
    }

    fn end(&mut self) {
        if matches!(self.kind, Kind::Queued | Kind::Started) {
            self.owner.data.fetch_sub(1, Ordering::Relaxed);
        }
        self.kind = Kind::Ended;
    }
}

impl Drop for DrcEntry {
    fn drop(&mut self) {
        if self.kind != Kind::Ended {
            lock(&self.owner.calls).leave(self.key, self.ticket);
            self.end();
        }
    }
}
