//! The worker's state except the connections themselves, so that a connection and the rest can be
//! borrowed side by side.

use super::buffers::Buffers;
use super::conn::Conn;
use super::holder::{Holder, Holders, LookingUp, UnderWay};
use super::lent::Lent;
use super::request::{Pending, Preparing, Request};
use super::tasks::Tasks;
use super::{Close, Message, Ticket, VolumeGate};
use crate::conn_id::ConnId;
use crate::engine::{Done, Engine, ServedVolume, Stages, View, is_judged};
use crate::gate::{Charged, Queued, Stopped};
use crate::inbox::Inbox;
use crate::limits::{
    IN_FLIGHT_MAX, RECORD_PROGRESS_BYTES, REPLY_BYTES_MAX, REPLY_BYTES_ORIGIN_CROWDED,
    REPLY_BYTES_WORKER_MAX, SEND_EARLY_BYTES, TURN_REQUESTS_MAX, UNSENT_BYTES_MAX,
};
use crate::session::{Begun, Cx, Operation, Outcome, Preparation, Prepared, Session, Unanswered};
use crate::sync::Arc;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::IpAddr;
use weir_core::{Clock, Mono, Shared};
use weir_qos::Cost;

/// A gate to ask again at a time; ordered by that alone.
struct Timer {
    at: Mono,
    gate: Arc<VolumeGate>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// A worker without its connections.
pub(crate) struct Core {
    pub(super) id: usize,
    pub(super) engine: Arc<Engine>,
    pub(super) inbox: Arc<Inbox<Message>>,
    pub(super) view: View,
    pub(super) tasks: Tasks<Operation, Pending, Message>,
    /// Requests that are prepared before they are admitted.
    pub(super) preparing: Tasks<Preparation, Preparing, Message>,
    pub(super) buffers: Buffers,
    pub(super) messages: Vec<Message>,
    /// Requests that gates released and that are not handed out yet.
    pub(super) released: VecDeque<Ticket>,
    pub(super) resumed: Vec<Stopped>,
    /// Replies for connections other than the one whose request was carried out.
    pub(super) replies: Vec<(ConnId, Vec<u8>)>,
    /// Connections to tidy before sleeping.
    pub(super) dirty: Vec<u64>,
    /// Dirty connections whose origin had no turn left for them: they come first in the next round.
    pub(super) passed_over: Vec<u64>,
    /// The number of this round, and how many requests of one origin may be taken in it so far.
    pub(super) round: u64,
    pub(super) round_max: usize,
    /// The present, as of the last look at the clock.
    pub(super) now: Mono,
    /// Time at which the requests being served were received.
    pub(super) batch: Mono,
    /// Records taken in this round, and the connection of the last one.
    pub(super) records: usize,
    pub(super) sender: u64,
    /// Connections of which part of a record is here, and the memory that holds those parts.
    pub(super) partials: usize,
    pub(super) partial_bytes: usize,
    /// The sums of each origin on this worker.
    pub(super) holders: Holders,
    /// Receive buffers of connections that are gone, which their requests in flight still hold.
    orphans: Vec<Lent>,
    timers: BinaryHeap<Reverse<Timer>>,
    reply_bytes: usize,
}

impl Core {
    pub(super) fn new(id: usize, engine: Arc<Engine>, inbox: Arc<Inbox<Message>>) -> Self {
        let now = engine.clock.now();
        Self {
            id,
            view: engine.view(),
            tasks: Tasks::new(Arc::clone(&inbox), engine.clock, Message::Wake),
            preparing: Tasks::new(Arc::clone(&inbox), engine.clock, Message::Prepared),
            inbox,
            buffers: Buffers::default(),
            messages: Vec::new(),
            released: VecDeque::new(),
            resumed: Vec::new(),
            replies: Vec::new(),
            dirty: Vec::new(),
            passed_over: Vec::new(),
            round: 0,
            round_max: 0,
            now,
            batch: now,
            records: 0,
            sender: 0,
            partials: 0,
            partial_bytes: 0,
            holders: Holders::default(),
            orphans: Vec::new(),
            timers: BinaryHeap::new(),
            reply_bytes: 0,
            engine,
        }
    }

    /// Time at which the next gate wants to be asked.
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.timers.peek().map(|Reverse(timer)| timer.at)
    }

    /// Does anybody wait, of any worker, at a gate that this one is to ask?
    pub(super) fn is_waited_for(&self) -> bool {
        self.timers.iter().any(|Reverse(timer)| timer.gate.waiting() > 0)
    }

    /// Operations and preparations that wait.
    pub(super) fn under_way(&self) -> usize {
        self.tasks.len() + self.preparing.len()
    }

    /// Is there something to do before sleeping?
    pub(super) fn has_work(&self) -> bool {
        !(self.dirty.is_empty()
            && self.passed_over.is_empty()
            && self.released.is_empty()
            && self.resumed.is_empty()
            && self.replies.is_empty())
    }

    /// Can it be that an origin holds more than it may?
    pub(super) fn may_be_crowded(&self) -> bool {
        self.reply_bytes >= REPLY_BYTES_ORIGIN_CROWDED
    }

    /// Do replies and requests in flight of all connections hold more than they may?
    pub(super) fn is_crowded(&self) -> bool {
        self.reply_bytes >= REPLY_BYTES_WORKER_MAX
    }

    /// The name of `conn`, which this worker owns.
    pub(super) fn id_of(&self, conn: &Conn) -> ConnId {
        ConnId { worker: self.id, token: conn.token }
    }

    /// Puts `conn` on the list of connections to tidy.
    pub(super) fn mark(&mut self, conn: &mut Conn) {
        if !conn.dirty {
            conn.dirty = true;
            self.dirty.push(conn.token);
        }
    }

    /// Ends the turn of `conn`, which `took` so many requests.
    fn end_turn(&mut self, conn: &mut Conn, took: usize) {
        (conn.blocked, conn.turn_over) = (true, true);
        if took == 0 && !conn.dirty {
            conn.dirty = true;
            self.passed_over.push(conn.token);
        } else {
            self.mark(conn);
        }
    }

    /// May one more request of `conn` be taken from its bytes?
    pub(super) fn may_take(&self, conn: &Conn) -> bool {
        conn.stopped.is_none()
            && conn.in_flight < IN_FLIGHT_MAX
            && !conn.holder.may_not_read()
            && conn.lent.may_lend(&self.buffers)
            && self.may_reply(conn)
    }

    /// Is there room for the reply to one more request of `conn`?
    fn may_reply(&self, conn: &Conn) -> bool {
        let bytes = conn.reply_bytes();
        let crowded = || self.is_crowded() || conn.holder.is_crowded();
        let fits = || bytes < REPLY_BYTES_MAX && conn.out_bytes() < UNSENT_BYTES_MAX;
        !conn.holder.is_full() && (bytes == 0 || fits() && !crowded())
    }

    /// Says to gates whether `conn` has room for replies, and has those asked that found none.
    pub(super) fn open_room(&mut self, conn: &Conn) {
        let open = self.may_reply(conn);
        if conn.holder.may_not_read() {
            self.holders.wait(&conn.holder);
        }
        conn.room.set_open(open);
        if !open || conn.parked.is_empty() || !conn.room.was_refused() {
            return;
        }
        for volume in conn.parked.keys() {
            let Some(mounted) = self.view.load().by_id(*volume) else { continue };
            let gate = Arc::clone(&mounted.volume.gate);
            if gate.resume_connection(self.id_of(conn), self.now) {
                self.pump(gate);
            }
        }
    }

    /// Serves the whole records that `conn` holds, as far as bounds and its turn allow.
    pub(super) fn process(&mut self, conn: &mut Conn) -> Result<(), Close> {
        (conn.blocked, conn.turn_over) = (false, false);
        let (mut whole, mut took) = (false, 0);
        loop {
            if conn.out_bytes() >= SEND_EARLY_BYTES && conn.clogged.is_none() {
                self.flush(conn)?;
            }
            if !self.may_take(conn) {
                conn.blocked = true;
                break;
            }
            if took == TURN_REQUESTS_MAX || conn.holder.taken_in(self.round) >= self.round_max {
                self.end_turn(conn, took);
                break;
            }
            match conn.next_record() {
                Ok(Some(record)) => {
                    whole = true;
                    took += 1;
                    conn.holder.took_in(self.round);
                    self.records += 1;
                    self.sender = conn.token;
                    self.begin(conn, record)?;
                }
                Ok(None) => break,
                Err(error) => return Err(self.misbehaved(conn, &error)),
            }
        }
        conn.settle(&mut self.buffers);
        self.account_partial(conn, whole);
        Ok(())
    }

    /// Keeps the sums of partial records true; `whole` says that one ended just now.
    fn account_partial(&mut self, conn: &mut Conn, whole: bool) {
        let bytes = conn.partial_bytes();
        if bytes == 0 && conn.partial_accounted == 0 {
            return;
        }
        self.partial_bytes = self.partial_bytes + bytes - conn.partial_accounted;
        conn.holder.add(Holder::PARTIAL_BYTES, bytes);
        conn.holder.remove(Holder::PARTIAL_BYTES, conn.partial_accounted);
        conn.partial_accounted = bytes;
        self.partials -= usize::from(conn.partial_since.is_some());
        self.partials += usize::from(bytes > 0);
        let received = conn.partial_received();
        let grown = received >= conn.partial_then.saturating_add(RECORD_PROGRESS_BYTES);
        conn.partial_since = match conn.partial_since {
            _ if bytes == 0 => None,
            Some(since) if !whole && !grown => Some(since),
            _ => {
                conn.partial_then = received;
                Some(self.now)
            }
        };
    }

    /// Does what the session makes of `record`.
    fn begin(&mut self, conn: &mut Conn, record: Shared) -> Result<(), Close> {
        let connection = self.id_of(conn);
        let cx = Cx {
            engine: &self.engine,
            view: &mut self.view,
            buffers: &mut self.buffers,
            connection,
            socket: &conn.socket,
            peer: conn.peer,
            now: self.now,
            arrived: self.batch,
        };
        match conn.session.begin(cx, record) {
            Ok(Begun::Nothing) => {}
            Ok(Begun::Reply(reply)) => conn.queue(reply),
            Ok(Begun::Awaited) => conn.in_flight += 1,
            Ok(Begun::Request(request)) => self.admit(conn, request),
            Ok(Begun::Prepare(preparation)) => self.prepare(conn, connection, preparation),
            Err(error) => return Err(self.misbehaved(conn, &error)),
        }
        Ok(())
    }

    /// Prepares a request before it is admitted.
    fn prepare(&mut self, conn: &mut Conn, connection: ConnId, preparation: Preparation) {
        conn.in_flight += 1;
        let preparing = Preparing { connection, _counted: LookingUp::new(&conn.holder) };
        if let Some((prepared, _)) = self.preparing.start(preparation, preparing, |_| {}) {
            self.prepared(conn, prepared);
        }
    }

    /// Takes up a request that is prepared.
    pub(super) fn prepared(&mut self, conn: &mut Conn, prepared: Prepared) {
        conn.in_flight -= 1;
        self.mark(conn);
        match prepared {
            Prepared::Admit(request) => self.admit(conn, request),
            Prepared::Refuse(mut request, reply) => {
                // Else another connection of the client sent it too, and its turn came first.
                if request.job.begin() {
                    let Request { connection, volume, job, .. } = request;
                    self.answer_others(&volume, connection, job.refused(), &reply);
                    conn.queue(reply);
                }
            }
        }
    }

    /// A peer broke the protocol beyond what an error reply can say.
    pub(super) fn misbehaved(&self, conn: &Conn, what: &dyn std::fmt::Display) -> Close {
        self.engine.counters.misbehaved();
        tracing::warn!(peer = %conn.peer, error = %what, "connection closed: protocol error by the peer");
        Close
    }

    /// Lets a request through the gate, or leaves it there.
    pub(super) fn admit(&mut self, conn: &mut Conn, mut request: Request) {
        let free = request.cost == Cost::ZERO;
        let file = request.file();
        let pass = || request.volume.gate.try_pass(request.cost, file, self.now);
        if let Some(charged) = if free { Some(Charged::default()) } else { pass() } {
            let (asked, judged) = (request.cost, is_judged(request.class, charged.volume));
            request.charge(charged, self.now);
            if judged {
                let queued = self.now.since(request.arrived);
                request.volume.stats.passed(self.id, asked, true, queued, self.now);
            }
            return self.start(conn, request);
        }
        if !conn.session.waits(&mut request) {
            // The reply to the request that it repeats will do for both.
            self.engine.counters.repetition_dropped();
            return self.dropped(&request.volume.gate);
        }
        let id = request.volume.id;
        *conn.parked.entry(id).or_default() += 1;
        let volume = Arc::clone(&request.volume);
        let parked = volume.gate.park(request, Arc::clone(&conn.room), self.now);
        let pinned = usize::try_from(parked.pinned).unwrap_or(0);
        conn.parked_bytes += pinned;
        conn.holder.add(Holder::PARKED_BYTES, pinned);
        if parked.full {
            conn.stopped = Some(id);
            self.engine.counters.reading_stopped();
            tracing::info!(
                peer = %conn.peer, volume = %volume.id, parked = volume.gate.parked(),
                "reading from a connection paused: too many of its requests wait for the contract \
                 of their volume; if other volumes on this connection are affected, use separate \
                 server addresses for volumes"
            );
        }
        if parked.ask {
            self.arm(Arc::clone(&volume.gate), self.now);
        }
    }

    /// Lets those profit who were refused because of a request that goes no further.
    fn dropped(&mut self, gate: &Arc<VolumeGate>) {
        if gate.took_back() {
            self.pump(Arc::clone(gate));
        }
    }

    /// Starts an admitted request, and ends it too if it needs no waiting.
    fn start(&mut self, conn: &mut Conn, mut request: Request) {
        if !request.job.begin() {
            // Another connection of the client sent it too, and its turn came first.
            return self.give_back(&request);
        }
        let reserved = request.held_bytes();
        let reply = self.buffers.reply(request.reply_room());
        let Request { connection, volume, class, cost, file, arrived, passed, job, .. } = request;
        let (operation, rest) = job.start(&volume, class, reply);
        let stages = Stages { arrived, started: self.now, woken: None };
        let pending = Pending {
            connection,
            volume,
            class,
            cost,
            file,
            charged_at: passed,
            stages,
            rest,
            reserved,
            under_way: None,
        };
        conn.in_flight += 1;
        conn.reserved += reserved;
        let (session, holder) = (&conn.session, &conn.holder);
        let waits = |pending: &mut Pending| {
            pending.under_way = Some(UnderWay::new(holder));
            session.under_way(&mut pending.rest, connection);
        };
        if let Some((outcome, pending)) = self.tasks.start(operation, pending, waits) {
            self.finish(Some(conn), outcome, pending);
        }
    }

    /// Settles an operation with its contract and queues its reply.
    pub(super) fn finish(&mut self, conn: Option<&mut Conn>, outcome: Outcome, pending: Pending) {
        self.now = self.engine.clock.now();
        let Outcome { reply, moved, ok } = outcome;
        let Pending { connection, volume, class, cost, file, stages, rest, reserved, .. } = pending;
        let (charged_at, under_way) = (pending.charged_at, pending.under_way);
        let bytes = cost.bytes.saturating_sub(moved);
        let operations = if ok { 0 } else { cost.operations };
        let file = file.and_then(|charge| charge.unused(moved, !ok));
        let unused = Charged { volume: Cost { bytes, operations }, file };
        self.refund(&volume.gate, unused, charged_at);
        let replied = conn.is_some();
        volume.stats.done(self.id, &Done { class, cost, moved, ok, replied, stages }, self.now);
        self.answer_others(&volume, connection, rest, &reply);
        if let Some(conn) = conn {
            conn.in_flight -= 1;
            conn.lent.reclaim(&mut self.buffers);
            conn.reserved -= reserved;
            if is_judged(class, cost) {
                conn.queue_of(reply, volume);
            } else {
                conn.queue(reply);
            }
            self.mark(conn);
        } else {
            // The operation's connection is gone; the memory was held until now.
            self.reply_bytes -= reserved;
            if let Some(under_way) = under_way {
                under_way.holder().remove(Holder::REPLY_BYTES, reserved);
            }
        }
    }

    /// Sends the reply to a request on `connection` to the other connections that asked for it.
    fn answer_others(
        &mut self,
        volume: &ServedVolume,
        connection: ConnId,
        rest: Unanswered,
        reply: &[u8],
    ) {
        for asker in rest.answered(volume, connection, reply, self.now) {
            self.replies.push((asker, reply.to_vec()));
        }
    }

    /// Queues the lock manager's reply to a call.
    pub(super) fn answered(&mut self, conn: &mut Conn, reply: Vec<u8>) {
        conn.in_flight -= 1;
        conn.queue(reply);
        self.mark(conn);
    }

    /// Takes up a request that its gate let go.
    pub(super) fn released(&mut self, conn: &mut Conn, ticket: Ticket) {
        let Ticket { request, since, pinned, holds, .. } = ticket;
        conn.room.arrived(holds);
        let pinned = usize::try_from(pinned).unwrap_or(0);
        conn.parked_bytes -= pinned;
        conn.holder.remove(Holder::PARKED_BYTES, pinned);
        if let Some(count) = conn.parked.get_mut(&request.volume.id) {
            *count -= 1;
            if *count == 0 {
                conn.parked.remove(&request.volume.id);
            }
        }
        let stats = &request.volume.stats;
        stats.delayed(self.id, self.now.since(since));
        if is_judged(request.class, request.cost) {
            let queued = self.now.since(request.passed);
            stats.passed(self.id, request.cost, false, queued, self.now);
        }
        self.mark(conn);
        self.start(conn, request);
    }

    /// Gives back all that a request was charged whose connection is gone since its gate let it go.
    pub(super) fn released_to_nobody(&mut self, ticket: Ticket) {
        let request = ticket.request;
        if is_judged(request.class, request.cost) {
            request.volume.stats.returned(self.id, request.cost, self.now);
        }
        self.refund(&request.volume.gate, request.charged(), request.passed);
    }

    /// Keeps the sums of reply bytes true.
    pub(super) fn account_out(&mut self, conn: &mut Conn) {
        let bytes = conn.reply_bytes();
        self.reply_bytes = self.reply_bytes + bytes - conn.accounted;
        conn.holder.add(Holder::REPLY_BYTES, bytes);
        conn.holder.remove(Holder::REPLY_BYTES, conn.accounted);
        conn.accounted = bytes;
    }

    /// Are there receive buffers that requests of connections that are gone hold?
    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Takes back those of them that are free.
    pub(super) fn reclaim_orphans(&mut self) {
        for lent in &mut self.orphans {
            lent.reclaim(&mut self.buffers);
        }
        self.orphans.retain(|lent| !lent.is_empty());
    }

    /// Asks every gate whose time has come.
    pub(super) fn pump_due(&mut self) {
        while self.next_deadline().is_some_and(|at| at <= self.now) {
            if let Some(Reverse(Timer { at, gate })) = self.timers.pop() {
                gate.fired(at);
                self.pump(gate);
            }
        }
    }

    /// Asks one gate who may go now, and remembers when to ask again.
    pub(super) fn pump(&mut self, gate: Arc<VolumeGate>) {
        let mut released = Vec::new();
        let next = gate.pump(self.now, &mut released, &mut self.resumed);
        self.released.extend(released);
        if let Some(at) = next {
            self.arm(gate, at);
        }
    }

    fn arm(&mut self, gate: Arc<VolumeGate>, at: Mono) {
        if gate.arm(at) {
            self.timers.push(Reverse(Timer { at, gate }));
        }
    }

    /// Gives back what a request was charged at `charged_at` and did not use; others may go sooner.
    fn refund(&mut self, gate: &Arc<VolumeGate>, unused: Charged, charged_at: Mono) {
        if gate.refund(unused, charged_at, self.now) {
            self.pump(Arc::clone(gate));
        }
    }

    /// Gives back all of a request that the gate let through and that is not carried out.
    fn give_back(&mut self, request: &Request) {
        if is_judged(request.class, request.cost) {
            request.volume.stats.dropped(self.id, request.cost, self.now);
        }
        self.refund(&request.volume.gate, request.charged(), request.passed);
    }

    /// Sends the replies that wait on `conn`, as far as its socket takes them.
    pub(super) fn flush(&mut self, conn: &mut Conn) -> Result<(), Close> {
        let sent = conn.flush(&mut self.buffers, self.now);
        if !conn.gone.is_empty() {
            self.now = self.engine.clock.now();
            self.count_gone(conn);
        }
        sent.map_err(|_| Close)
    }

    fn count_gone(&self, conn: &mut Conn) {
        for (volume, count) in conn.gone.drain(..) {
            volume.stats.sent(self.id, count, self.now);
        }
    }

    /// Cleans up after a connection that is gone.
    pub(super) fn forget(&mut self, mut conn: Conn) {
        let id = self.id_of(&conn);
        for volume in conn.parked.keys().chain(&conn.stopped) {
            if let Some(mounted) = self.view.load().by_id(*volume) {
                mounted.volume.gate.cancel(id, self.now, &mut self.resumed);
            }
        }
        conn.give_up_replies();
        self.count_gone(&mut conn);
        self.partial_bytes -= conn.partial_accounted;
        self.partials -= usize::from(conn.partial_since.is_some());
        let holder = &conn.holder;
        holder.remove(Holder::PARTIAL_BYTES, conn.partial_accounted);
        holder.remove(Holder::PARKED_BYTES, conn.parked_bytes);
        // The memory of its requests in flight stays counted until they are done.
        self.reply_bytes = self.reply_bytes - conn.accounted + conn.reserved;
        holder.add(Holder::REPLY_BYTES, conn.reserved);
        holder.remove(Holder::REPLY_BYTES, conn.accounted);
        conn.lent.reclaim(&mut self.buffers);
        let took_all = conn.took_all();
        let Conn { peer, lent, session, .. } = conn;
        session.close(&self.engine, &mut self.view, id, took_all);
        self.engine.connection_gone(self.id, peer);
        if !lent.is_empty() {
            self.orphans.push(lent);
        }
    }

    /// Closes a connection from `peer` that this worker does not serve.
    pub(super) fn turn_away(&mut self, peer: IpAddr, id: ConnId, session: Session) {
        session.close(&self.engine, &mut self.view, id, false);
        self.engine.connection_gone(self.id, peer);
    }
}
