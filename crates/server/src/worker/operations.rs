//! The way of a request from its admission to its reply: past the gate of its volume or through its
//! queue, into the operation, and to the connections that want the reply.
//!
//! The charge of a request belongs to its [`Permit`], its memory to its
//! [`InFlight`], so every path ends with both returned.

use super::conn::Conn;
use super::load::{ConnLoad, InFlight};
use super::part::{Part, Permits};
use super::request::{Admitted, GateEntry, Pending, Preparing, Request};
use super::state::WorkerState;
use super::tally::Counted;
use super::to_gates::AtGate;
use super::{Released, Ticket, VolumeGate};
use crate::engine::{Ended, Permit, ServedVolume, Settled, is_judged};
use crate::session::{Outcome, Preparation, Prepared, Start, Unanswered};
use crate::sync::Arc;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use weir_gate::ConnId;
use weir_gate::Room;

/// The work that a closed connection left to be done.
pub(super) type Rest = Pin<Box<dyn Future<Output = ()>>>;

impl WorkerState {
    /// Prepares a request before it is admitted, or a reply before it is sent, for which `holds`
    /// bytes are held.
    pub(super) fn prepare(
        &mut self,
        conn: &mut Conn,
        preparation: Preparation,
        holds: usize,
        lookup: Option<Counted>,
    ) {
        let in_flight = InFlight::new(&conn.load, holds);
        let preparing = Preparing { connection: conn.id, in_flight, _lookup: lookup };
        if let Some((prepared, preparing)) = self.preparing.start(preparation, preparing, |_| {}) {
            self.prepared(conn, prepared, preparing);
        }
    }

    /// Takes up a request that is prepared.
    pub(super) fn prepared(&mut self, conn: &mut Conn, prepared: Prepared, preparing: Preparing) {
        drop(preparing.in_flight);
        conn.receiver.lent.reclaim(&mut self.buffers);
        self.mark(conn);
        match prepared {
            Prepared::Admit(request) => self.admit(conn, request),
            Prepared::Reply(reply) => conn.send.push(reply, &mut self.buffers),
            Prepared::Nothing => {}
            Prepared::Broken => conn.broken = true,
            Prepared::Refuse(mut request, reply) => {
                // Else another connection of the client sent it too, and its turn came first.
                if request.job.begin() {
                    let Request { connection, volume, job, .. } = request;
                    self.answer_others(&volume, connection, job.refused(), &reply);
                    conn.send.push(reply, &mut self.buffers);
                }
            }
        }
    }

    /// Lets a request pass the gate of its volume, or parks it there.
    pub(super) fn admit(&mut self, conn: &mut Conn, mut request: Request) {
        if is_judged(request.class, request.cost) {
            self.catch_up();
        }
        let (cost, file) = (request.cost, request.job.file(request.class));
        if let Some(charged) = request.volume.try_pass(cost, file, self.now) {
            let mut admitted = request.admitted(charged, self.now);
            admitted.permit.begin(cost, self.now);
            return self.start(conn, admitted);
        }
        if !conn.session.waits(&mut request, self.now) {
            // The reply to the request that it repeats will do for both.
            self.engine.counters.repetition_dropped();
            return self.poll_after_take_back(&request.volume.gate);
        }
        let room = Arc::clone(&conn.room);
        self.park(conn, request.into(), Some(room));
    }

    /// Carries out what a closed connection left to be done.
    pub(super) fn clean_up(&mut self, load: &Rc<ConnLoad>, connection: ConnId, rest: Rest) {
        let rest: Preparation = Box::pin(async move {
            rest.await;
            Prepared::Nothing
        });
        let in_flight = InFlight::new(load, 0);
        let preparing = Preparing { connection, in_flight, _lookup: None };
        // Nothing is to be done at its end, now or later.
        drop(self.preparing.start(rest, preparing, |_| {}));
    }

    /// Parks an entry at the gate of its volume.
    fn park(&mut self, conn: &mut Conn, entry: GateEntry, room: Option<Arc<Room>>) {
        let (volume, cancellable) = (Arc::clone(entry.volume()), entry.cancellable());
        let parked = match volume.gate.park(entry, room, self.now) {
            Ok(parked) => parked,
            Err(entry) => return self.refuse(conn, entry),
        };
        conn.parked.add(volume.id, parked.pinned);
        if let Some(request) = cancellable {
            let (volume, connection, id) = (Arc::clone(&volume), conn.id, parked.id);
            request.parked(AtGate { volume, connection, id });
        }
        if parked.full {
            conn.stopped = Some(volume.id);
            self.engine.counters.reading_stopped();
            tracing::info!(
                peer = %conn.peer, volume = %volume.id, parked = volume.gate.parked(),
                "reading from a connection paused: too many of its requests wait for the contract \
                 of their volume; if other volumes on this connection are affected, use separate \
                 server addresses for volumes"
            );
        }
        if parked.must_poll {
            self.gates.poll_at(Arc::clone(&volume.gate), self.now);
        }
    }

    /// Refuses an entry for which there is no memory at its gate.
    fn refuse(&mut self, conn: &mut Conn, entry: GateEntry) {
        self.engine.counters.request_refused();
        let gate = Arc::clone(&entry.volume().gate);
        match entry {
            GateEntry::Request(mut request) => {
                // Else another connection of the client sent it too, and its turn came first.
                if request.job.begin() {
                    self.answer_busy(conn, request);
                }
            }
            GateEntry::Part(part) => part.refused(),
        }
        self.poll_after_take_back(&gate);
    }

    /// Tells the client of a request that there is no room for it.
    fn answer_busy(&mut self, conn: &mut Conn, request: Request) {
        let Some(reply) = request.job.busy() else {
            conn.broken = true;
            return self.mark(conn);
        };
        let Request { connection, volume, job, .. } = request;
        let rest = job.refused();
        conn.session.ended(&rest);
        self.answer_others(&volume, connection, rest, &reply);
        conn.send.push(reply, &mut self.buffers);
    }

    /// Polls a gate where a request that is not carried out was charged for a moment. Because of
    /// that charge other requests were told to wait, and they may go sooner.
    fn poll_after_take_back(&mut self, gate: &Arc<VolumeGate>) {
        if gate.took_back() {
            self.gates.poll(Arc::clone(gate), self.now);
        }
    }

    /// Parks an operation within a request, which asked for a permit.
    pub(super) fn park_part(&mut self, conn: &mut Conn, part: Part) {
        self.park(conn, GateEntry::Part(part), None);
    }

    /// Takes a request, or a part of one, out of its gate, because its client has cancelled it. One
    /// that was released comes, and is dropped then.
    pub(super) fn cancel(&mut self, conn: &mut Conn, at: AtGate) {
        let AtGate { volume, id, .. } = at;
        let resumed = &mut self.gates.resumed;
        let Some(ticket) = volume.gate.cancel_one(id, self.now, resumed) else { return };
        conn.parked.remove(volume.id, ticket.pinned);
        self.mark(conn);
        self.gates.poll(Arc::clone(&volume.gate), self.now);
    }

    /// Starts an admitted request, and ends it too if it needs no waiting.
    fn start(&mut self, conn: &mut Conn, admitted: Admitted) {
        let Admitted { connection, client, class, mut permit, mut job } = admitted;
        if !job.begin() {
            // Another connection of the client sent it too, and its turn came first.
            return self.give_back(permit);
        }
        if job.waits_for_others() {
            permit.set_aside(self.now);
        }
        let Some(volume) = permit.volume() else { return };
        let cost = permit.cost();
        let in_flight = InFlight::new(&conn.load, job.held_bytes(class, cost));
        let reply = self.buffers.reply(job.reply_room(class, cost));
        let permits = || Permits { connection, client, to_gates: self.to_gates.clone() };
        let (operation, rest) =
            job.start(Start { volume, class, reply, io: &self.io, permits: &permits });
        let (task, io, woken) = (None, None, None);
        let pending = Pending { connection, permit, rest, in_flight, task, io, woken };
        let (session, load) = (&mut conn.session, &conn.load);
        let (io, now) = (&self.io, self.now);
        let waits = |pending: &mut Pending| {
            pending.task = Some(load.origin().count_task());
            pending.io = pending.rest.enters_as_a_whole().then(|| io.enter());
            session.under_way(&mut pending.rest, connection, now);
        };
        match self.tasks.start(operation, pending, waits) {
            Some((outcome, pending)) => self.finish(Some(conn), outcome, pending),
            None => self.set_alarm(conn),
        }
    }

    /// Settles an operation with its contract and queues its reply.
    pub(super) fn finish(
        &mut self,
        mut conn: Option<&mut Conn>,
        outcome: Outcome,
        pending: Pending,
    ) {
        let Outcome { reply, moved, ok } = outcome;
        let Pending { connection, permit, rest, in_flight, woken, io, .. } = pending;
        // A lock may be answered from here on: the data is read, or written.
        drop(io);
        let ended = Ended { moved, ok, replied: conn.is_some(), woken };
        let Some(settled) = self.settle(permit, ended) else { return };
        if let Some(conn) = &mut conn {
            conn.session.ended(&rest);
        }
        if settled.poll {
            self.gates.poll(Arc::clone(&settled.volume.gate), self.now);
        }
        let Some(reply) = reply else {
            if let Some(conn) = conn {
                conn.broken = true;
                self.mark(conn);
            }
            return;
        };
        self.answer_others(&settled.volume, connection, rest, &reply);
        drop(in_flight);
        if let Some(conn) = conn {
            conn.receiver.lent.reclaim(&mut self.buffers);
            if settled.judged {
                conn.send.push_judged(reply, settled.volume, &mut self.buffers);
            } else {
                conn.send.push(reply, &mut self.buffers);
            }
            self.mark(conn);
        }
    }

    /// Ends an operation now.
    fn settle(&mut self, permit: Permit, ended: Ended) -> Option<Settled> {
        if !permit.is_free() {
            self.read_clock();
            return permit.settle(ended, self.now);
        }
        let (volume, connection, arrived) = permit.settle_free(ended.ok)?;
        if !self.uncounted.fits(&volume, arrived) {
            self.read_clock();
        }
        self.uncounted.add(&volume, connection, arrived);
        Some(Settled { volume, judged: false, poll: false })
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

    /// Takes up an entry that its gate released.
    pub(super) fn released(&mut self, conn: &mut Conn, released: Released) {
        let Released { ticket, charged, charged_at } = released;
        let Ticket { request: entry, since, pinned, holds, .. } = ticket;
        self.catch_up();
        conn.parked.remove(entry.volume().id, pinned);
        match entry {
            GateEntry::Request(request) => {
                conn.room.arrived(holds);
                let mut admitted = request.admitted(charged, charged_at);
                admitted.permit.begin_delayed(since, self.now);
                self.mark(conn);
                self.start(conn, admitted);
            }
            GateEntry::Part(part) => part.admitted(charged, charged_at, since, self.now),
        }
    }

    /// Returns the charge of an entry whose connection is gone since its gate released it.
    pub(super) fn released_to_nobody(&mut self, released: Released) {
        self.catch_up();
        let Released { ticket, charged, charged_at } = released;
        match ticket.request {
            GateEntry::Request(request) => {
                self.give_back(request.admitted(charged, charged_at).permit);
            }
            GateEntry::Part(part) => self.give_back(part.permit(charged, charged_at)),
        }
    }

    /// Returns all of a charge: its operation is not carried out.
    fn give_back(&mut self, permit: Permit) {
        if let Some(volume) = permit.give_back(self.now) {
            self.gates.poll(Arc::clone(&volume.gate), self.now);
        }
    }
}
