//! Workers: threads that each own their connections and serve them from socket to reply.
//!
//! A request that needs no waiting never leaves the thread it came to. What does wait is plain
//! data at a gate, or a future whose waker posts to the worker's inbox.

mod alarms;
mod buffers;
mod conn;
mod gates;
mod io;
mod latency;
mod lent;
mod load;
mod memory;
mod message;
mod operations;
mod part;
mod receive;
mod request;
#[cfg(test)]
#[cfg(feature = "schedules")]
mod schedules;
mod send;
mod socket;
mod state;
mod tally;
mod tasks;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod to_gates;

pub(crate) use buffers::Buffers;
pub(crate) use io::{Barrier, IoGenerations, IoGuard};
pub(crate) use message::Message;
pub(crate) use part::{NoPermit, Permits};
pub(crate) use request::{GateEntry, Request};
pub(crate) use socket::{ByServer, Silent};
pub(crate) use tasks::{Tasks, give_way};
pub(crate) use to_gates::{AtGate, Cancellable, ToGates};

/// The gate of one volume.
pub(crate) type VolumeGate = weir_gate::Gate<GateEntry>;

/// An entry of a gate's queue that waits.
type Ticket = weir_gate::Ticket<GateEntry>;

/// An entry that its gate released.
pub(crate) type Released = weir_gate::Released<GateEntry>;

use crate::admission::{Eviction, Origin};
use crate::engine::Engine;
use crate::inbox::Inbox;
use crate::limits::{
    CROWDED_SECONDS, LINGER_SECONDS, PARTIAL_BYTES_ORIGIN_MAX, PARTIAL_BYTES_ORIGIN_MIN,
    PARTIAL_BYTES_WORKER_MAX, RECORD_SECONDS, RECV_ROUNDS_MAX, ROUND_REQUESTS_ORIGIN_MAX,
};
use crate::session::{Outcome, Session};
use crate::sync::Arc;
use conn::Conn;
use load::OriginLoad;
use memory::MemoryLine;
use part::Part;
use receive::{Received, Taking};
use request::Pending;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;
use state::WorkerState;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use to_gates::Asked;
use weir_core::{Clock, Mono};
use weir_gate::{ConnId, Peer, Queued};
use weir_process::spin::{POLL_GAP_MAX, POLL_MAX, Spin};

const INBOX: u64 = u64::MAX;
const EVENTS: usize = 256;

/// Time between looks for records that take too long to arrive.
const SWEEP: Duration = Duration::from_secs(1);
/// Time between two checks of a stopping worker whether it may end.
const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// Close this connection.
#[derive(Clone, Copy, Debug)]
struct Close;

/// One worker: the connections, and everything needed to serve them.
pub(crate) struct Worker {
    epoll: OwnedFd,
    conns: Slab<Box<Conn>>,
    state: WorkerState,
    /// Set once told to stop: leave then, whatever is not done.
    drain_until: Option<Mono>,
    /// The connections that are to be silent, also those that are accepted later.
    silent: Arc<Silent>,
    /// Time of the next look for records that take too long to arrive.
    sweep_at: Mono,
    /// All requests are answered; the worker only waits until the peers have closed.
    lingering: bool,
    spin: Spin,
    /// The last round had one request, and no request was under way after it.
    one_by_one: bool,
    /// The connection that the last request came from.
    sender: u64,
}

impl Worker {
    /// A worker that takes its messages from `inbox`.
    ///
    /// # Errors
    /// The kernel gives no epoll instance.
    pub(crate) fn new(
        id: usize,
        engine: Arc<Engine>,
        inbox: Arc<Inbox<Message>>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*inbox, EventData::new_u64(INBOX), EventFlags::IN)?;
        let state = WorkerState::new(id, engine, inbox);
        Ok(Self {
            epoll,
            conns: Slab::new(),
            state,
            drain_until: None,
            silent: Arc::default(),
            sweep_at: Mono::ZERO,
            lingering: false,
            spin: Spin::default(),
            one_by_one: false,
            sender: INBOX,
        })
    }

    /// Serves until told to drain, and then until all that was received is answered.
    ///
    /// # Errors
    /// The epoll fails, which it does only if this code is wrong.
    pub(crate) fn run(mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.finished() {
            self.round(&mut events)?;
        }
        self.end_sessions(&mut events)?;
        if self.state.under_way() > 0 {
            self.state.engine.left_unfinished();
        }
        // A lock of another worker waits for nothing here any more.
        self.state.inbox.close();
        Ok(())
    }

    /// Closes the connections that are left, and does what their sessions leave to be done: opens
    /// are closed, and files deleted that are to be.
    fn end_sessions(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        let left: Vec<u64> = self.conns.iter().map(|(_, conn)| conn.id.token).collect();
        left.into_iter().for_each(|token| self.close(token));
        let until = self.state.now + Duration::from_secs(LINGER_SECONDS);
        self.drain_until = Some(until);
        while self.state.under_way() > 0 && self.state.now < until {
            self.round(events)?;
        }
        Ok(())
    }

    /// Waits for something to do, and does it.
    fn round(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        events.clear();
        self.wait(events)?;
        self.begin_round();
        for event in &*events {
            let Event { flags, data } = *event;
            match data.u64() {
                INBOX => self.messages(),
                token => self.ready(token, flags),
            }
        }
        self.state.catch_up();
        self.tell_gates();
        self.state.gates.poll_due(self.state.now);
        self.ring();
        self.hand_out();
        self.state.round.requests_max = ROUND_REQUESTS_ORIGIN_MAX;
        self.tidy_dirty();
        self.sweep();
        self.relieve();
        self.release_memory();
        self.note_round();
        Ok(())
    }

    fn begin_round(&mut self) {
        let round = &mut self.state.round;
        round.number += 1;
        round.requests_max = ROUND_REQUESTS_ORIGIN_MAX / 2;
        round.received = self.state.now;
        round.requests = 0;
    }

    /// Parks the operations within requests that asked for permits in this round, and takes out of
    /// their gates what was cancelled in it.
    fn tell_gates(&mut self) {
        let Asked { parts, cancelled } = self.state.to_gates.take();
        for part in parts.into_iter().filter(Part::is_awaited) {
            if let Some(conn) = find(&mut self.conns, part.connection().token) {
                self.state.park_part(conn, part);
            }
        }
        for at in cancelled {
            if let Some(conn) = find(&mut self.conns, at.connection.token) {
                self.state.cancel(conn, at);
            }
        }
    }

    /// Waits for events or the time of the next task. Polls at first where the next request is
    /// likely to come at once.
    fn wait(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        let clock = self.state.engine.clock;
        let began = self.one_by_one.then(|| clock.now());
        if let Some(began) = began
            && self.spin.polls()
        {
            let mut last = began;
            while events.is_empty() && last.since(began) <= POLL_MAX {
                self.take_events(events, Some(Timespec::default()))?;
                let now = clock.now();
                if now.since(last) > POLL_GAP_MAX {
                    break;
                }
                last = now;
            }
        }
        if events.is_empty() {
            self.take_events(events, self.timeout())?;
        }
        self.state.read_clock();
        if let Some(began) = began {
            self.spin.pause_ended(self.state.now.since(began));
        }
        Ok(())
    }

    fn take_events(&self, into: &mut Vec<Event>, wait: Option<Timespec>) -> std::io::Result<()> {
        match epoll::wait(&self.epoll, spare_capacity(into), wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes whether the requests of a round came one by one.
    fn note_round(&mut self) {
        let state = &self.state;
        let requests = state.round.requests;
        self.one_by_one = requests == 1 && state.under_way() == 0 && !state.has_work();
        if requests == 0 {
            return;
        }
        if !self.one_by_one || state.round.sender != self.sender {
            self.spin.interrupt();
        }
        self.sender = state.round.sender;
    }

    fn timeout(&self) -> Option<Timespec> {
        if self.state.has_work() {
            return Some(Timespec::default());
        }
        let sweep = self.has_to_sweep().then_some(self.sweep_at);
        // Nobody tells a worker that is to stop that no gate needs it any more.
        let look = self.drain_until.map(|end| end.min(self.state.now + DRAIN_LOOK));
        let alarm = self.state.alarms.next();
        let next = self.state.gates.next_deadline().into_iter().chain(alarm);
        let next = next.chain(look).chain(sweep);
        let next = next.min()?;
        let now = self.state.engine.clock.now();
        if next <= now {
            return Some(Timespec::default());
        }
        let wait = next.since(now);
        // Rounded up, so that it is not asked for a moment too early again and again.
        let wait = Duration::from_millis(u64::try_from(wait.as_millis()).unwrap_or(0) + 1);
        Timespec::try_from(wait).ok()
    }

    fn finished(&mut self) -> bool {
        let Some(deadline) = self.drain_until else { return false };
        if self.state.now >= deadline {
            return true;
        }
        // Requests of other workers may wait at a gate that this one is to ask.
        let answered = self.state.under_way() == 0
            && !self.state.gates.are_waited_at()
            && self.conns.iter().all(|(_, conn)| conn.half_closed);
        if answered && !self.lingering {
            self.lingering = true;
            self.drain_until =
                Some(deadline.min(self.state.now + Duration::from_secs(LINGER_SECONDS)));
        }
        answered && self.conns.is_empty()
    }

    fn messages(&mut self) {
        let mut messages = std::mem::take(&mut self.state.messages);
        self.state.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Connection(socket, peer, session) => self.adopt(socket, peer, session),
                Message::Wake(slot) => {
                    let woken = self.state.tasks.woken(slot);
                    if let Some((outcome, mut pending)) = self.state.tasks.wake(slot) {
                        pending.woken = woken;
                        self.finish(outcome, pending);
                    }
                }
                Message::Prepared(slot) => self.prepared(slot),
                Message::Released(released) => self.released(*released),
                Message::Poll(gate) => self.state.gates.poll(gate, self.state.now),
                Message::Resume(token) => self.resume(token),
                Message::Send(token, record) => self.send(token, record),
                Message::Evict(eviction) => self.evict(&eviction),
                Message::Barrier(token) => self.state.io.end(token),
                Message::RollCall(absent) => {
                    // A view that nobody loads would keep volumes that are served no more.
                    self.state.view.load();
                    drop(absent);
                }
                Message::Drain(grace) => self.drain(grace),
                Message::Silence(silent) => self.silence(silent),
            }
        }
        self.state.messages = messages;
    }

    fn adopt(&mut self, socket: TcpStream, peer: SocketAddr, session: Session) {
        let entry = self.conns.vacant_entry();
        // The slot finds the connection; the serial number proves that it is the same one, and
        // tells it apart from other workers' at a gate. INBOX can't come about: slots are few.
        let token = self.state.engine.connection_serial() << 32 | entry.key() as u64;
        let (id, from) = (ConnId { worker: self.state.id, token }, peer.ip());
        if self.drain_until.is_some() {
            return self.state.turn_away(from, id, session);
        }
        let interest = EventFlags::IN;
        if let Err(error) = epoll::add(&self.epoll, &socket, EventData::new_u64(token), interest) {
            tracing::warn!(peer = %from, %error, "connection refused: cannot add it to epoll");
            return self.state.turn_away(from, id, session);
        }
        let (now, peer) = (self.state.now, from.to_canonical());
        let (engine, protocol) = (&self.state.engine, session.protocol());
        engine.connections.opened(id, Peer { address: peer, protocol });
        let origin = self.state.loads.of(Origin::of(peer));
        let mut conn = Conn::new(id, socket, peer, session, &origin, now);
        silence(&mut conn, &self.silent);
        entry.insert(Box::new(conn));
    }

    fn ready(&mut self, token: u64, flags: EventFlags) {
        let Some(conn) = find(&mut self.conns, token) else { return };
        let gone = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let read = flags.contains(EventFlags::IN);
        let outcome = if gone {
            Err(Close)
        } else if read {
            Self::read(&mut self.state, conn)
        } else {
            Ok(())
        };
        let outcome = outcome.and_then(|()| Self::tidy(&self.epoll, &mut self.state, conn));
        if outcome.is_err() {
            self.close(token);
        }
    }

    /// Receives and serves what a connection sent, some rounds of it. After the server was told to
    /// stop, what arrives is dropped.
    fn read(state: &mut WorkerState, conn: &mut Conn) -> Result<(), Close> {
        if conn.receiver.has_all() {
            return match conn.receive(&mut state.buffers) {
                Received::Closed => Err(Close),
                Received::More | Received::Drained => Ok(()),
            };
        }
        conn.active = state.now;
        if conn.receiver.taking != Taking::All {
            state.process(conn)?;
        }
        for round in 0..RECV_ROUNDS_MAX {
            if round > 0 {
                state.catch_up();
                state.round.received = state.now;
            }
            let all = conn.receiver.has_all();
            if !all && (conn.receiver.taking != Taking::All || !state.may_take(conn)) {
                break;
            }
            if !all && !state.has_memory(conn) {
                break;
            }
            let received = conn.receive(&mut state.buffers);
            if received == Received::Closed {
                return Err(Close);
            }
            state.process(conn)?;
            if received == Received::Drained {
                break;
            }
        }
        Ok(())
    }

    /// Follows up on anything that happened to a connection: sends, takes the requests that had to
    /// wait for that, and tells epoll which events to watch for.
    fn tidy(epoll: &OwnedFd, state: &mut WorkerState, conn: &mut Conn) -> Result<(), Close> {
        conn.dirty = false;
        if conn.broken {
            return Err(Close);
        }
        loop {
            state.flush(conn)?;
            if conn.receiver.taking == Taking::AtBound && state.may_take(conn) {
                state.process(conn)?;
            }
            if !conn.send.is_fresh() {
                break;
            }
        }
        conn.send.count();
        state.open_room(conn);
        conn.end_if_answered().map_err(|_| Close)?;
        let mut interest = EventFlags::empty();
        let reads = conn.receiver.taking != Taking::NoMemory && state.may_take(conn);
        interest.set(EventFlags::IN, conn.receiver.has_all() || reads);
        interest.set(EventFlags::OUT, conn.send.clogged().is_some());
        if interest != conn.interest {
            conn.interest = interest;
            epoll::modify(epoll, &*conn.socket, EventData::new_u64(conn.id.token), interest)
                .map_err(|_| Close)?;
        }
        Ok(())
    }

    fn tidy_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.state.passed_over);
        dirty.append(&mut self.state.dirty);
        for token in dirty.drain(..) {
            let Some(conn) = find(&mut self.conns, token) else { continue };
            if conn.receiver.taking == Taking::TurnOver {
                conn.receiver.taking = Taking::AtBound;
            }
            if Self::tidy(&self.epoll, &mut self.state, conn).is_err() {
                self.close(token);
            }
        }
        // Connections that became dirty meanwhile are kept for the next round, which comes at once.
        dirty.append(&mut self.state.dirty);
        self.state.dirty = dirty;
    }

    fn finish(&mut self, outcome: Outcome, pending: Pending) {
        let conn = find(&mut self.conns, pending.connection.token);
        self.state.finish(conn, outcome, pending);
    }

    /// Gives released requests to the workers that own their connections.
    fn hand_out(&mut self) {
        while let Some(released) = self.state.gates.released.pop_front() {
            let worker = released.ticket.request.connection().worker;
            if worker == self.state.id {
                self.released(released);
            } else {
                self.state.engine.post(worker, Message::Released(Box::new(released)));
            }
        }
        while let Some(stopped) = self.state.gates.resumed.pop() {
            let ConnId { worker, token } = stopped.connection;
            if worker == self.state.id {
                self.resume(token);
            } else {
                self.state.engine.post(worker, Message::Resume(token));
            }
        }
        while let Some((ConnId { worker, token }, reply)) = self.state.replies.pop() {
            if worker == self.state.id {
                self.send(token, reply);
            } else {
                self.state.engine.post(worker, Message::Send(token, reply));
            }
        }
    }

    /// Has the sessions whose time has come send what they owe their clients.
    fn ring(&mut self) {
        while let Some(token) = self.state.alarms.due(self.state.now) {
            if let Some(conn) = find(&mut self.conns, token) {
                self.state.ring(conn);
            }
        }
    }

    /// Goes on with the preparation of a request, and takes the request up once it is prepared.
    fn prepared(&mut self, slot: usize) {
        let ended = self.state.preparing.wake(slot);
        let preparing = ended.as_ref().map(|(_, preparing)| preparing);
        let Some(preparing) = preparing.or_else(|| self.state.preparing.meta(slot)) else { return };
        let Some(conn) = find(&mut self.conns, preparing.connection.token) else { return };
        match ended {
            Some((prepared, preparing)) => self.state.prepared(conn, prepared, preparing),
            // A part of it may have begun to wait.
            None => self.state.set_alarm(conn),
        }
    }

    fn send(&mut self, token: u64, record: Vec<u8>) {
        if let Some(conn) = find(&mut self.conns, token) {
            conn.send.push(record, &mut self.state.buffers);
            self.state.mark(conn);
        }
    }

    fn released(&mut self, released: Released) {
        match find(&mut self.conns, released.ticket.request.connection().token) {
            Some(conn) => self.state.released(conn, released),
            None => self.state.released_to_nobody(released),
        }
    }

    fn resume(&mut self, token: u64) {
        if let Some(conn) = find(&mut self.conns, token) {
            conn.stopped = None;
            self.state.mark(conn);
        }
    }

    /// Closes the connection of an origin that was idle the longest, to make room for another. One
    /// whose client would lose opens and locks with it is closed only if there is no other.
    fn evict(&mut self, eviction: &Eviction) {
        let may_go = |conn: &Conn| {
            let of_origin = Origin::of(conn.peer) == eviction.origin;
            of_origin && conn.is_idle() && (eviction.takes_state || !conn.session.holds_state())
        };
        let idle = self.conns.iter().map(|(_, conn)| conn).filter(|conn| may_go(conn));
        let longest = idle.min_by_key(|conn| conn.active);
        let Some((token, peer)) = longest.map(|conn| (conn.id.token, conn.peer)) else {
            let engine = &self.state.engine;
            if let Some(last_resort) = eviction.unable(engine.worker_count()) {
                engine.evict(&last_resort);
            }
            return;
        };
        if eviction.claim() {
            self.state.engine.counters.shed();
            if eviction.takes_state {
                tracing::warn!(
                    %peer,
                    "an idle connection with open files was closed, since connections_max is reached"
                );
            }
            self.close(token);
        }
    }

    /// Resumes connections whose origin is below its bounds again.
    fn relieve(&mut self) {
        while let Some(origin) = self.state.loads.relieved() {
            for (_, conn) in &mut self.conns {
                if Rc::ptr_eq(conn.origin(), &origin) {
                    self.state.mark(conn);
                }
            }
        }
    }

    /// Reads connections again for which there is memory now.
    fn release_memory(&mut self) {
        if self.state.memory.is_empty() {
            return;
        }
        let conns = &self.conns;
        let conn = |token| slot_of(conns, token).and_then(|slot| conns.get(slot));
        let fits = |token, promised| {
            let conn = conn(token)?;
            let growth = conn.receiver.growth();
            Some(conn.origin().may_receive(growth + promised).then_some(growth))
        };
        for token in self.state.memory.released(fits) {
            if let Some(conn) = find(&mut self.conns, token) {
                conn.receiver.taking = Taking::All;
                self.state.mark(conn);
            }
        }
    }

    /// Is there any connection that may take too long?
    fn has_to_sweep(&self) -> bool {
        let load = self.state.loads.worker();
        load.partial_bytes() > 0 || self.state.has_orphans() || load.may_be_crowded()
    }

    /// Closes connections without progress, sooner where they hold too much meanwhile.
    fn sweep(&mut self) {
        let now = self.state.now;
        if now < self.sweep_at || !self.has_to_sweep() {
            return;
        }
        self.sweep_at = now + SWEEP;
        self.state.reclaim_orphans();
        self.sweep_records(now);
        self.sweep_replies(now);
    }

    /// Closes connections whose records do not grow.
    fn sweep_records(&mut self, now: Mono) {
        let crowded = Duration::from_secs(CROWDED_SECONDS);
        let mut stalled = Vec::new();
        for (_, conn) in &mut self.conns {
            let Some(since) = conn.receiver.stalled_since() else { continue };
            if !conn.interest.contains(EventFlags::IN) {
                // The server itself does not read.
                conn.receiver.excuse(now);
            } else if now.since(since) > crowded {
                stalled.push((since, conn.id.token, Rc::clone(conn.origin())));
            }
        }
        sort(&mut stalled);
        for (since, token, origin) in stalled {
            let partial_bytes = self.state.loads.worker().partial_bytes();
            let most = match partial_bytes > PARTIAL_BYTES_WORKER_MAX {
                true => PARTIAL_BYTES_ORIGIN_MIN,
                false => PARTIAL_BYTES_ORIGIN_MAX,
            };
            if now.since(since) > Duration::from_secs(RECORD_SECONDS) {
                self.give_up(token, "a record takes too long to arrive");
            } else if origin.partial_bytes() > most {
                let why =
                    "too many incomplete records from this address, and this one makes no progress";
                self.give_up(token, why);
            }
        }
    }

    /// Closes connections whose peers accept no replies while their origin holds too much.
    fn sweep_replies(&mut self, now: Mono) {
        let mut stalled = Vec::new();
        for (_, conn) in &self.conns {
            let Some(since) = conn.send.clogged() else { continue };
            if now.since(since) > Duration::from_secs(CROWDED_SECONDS) {
                stalled.push((since, conn.id.token, Rc::clone(conn.origin())));
            }
        }
        sort(&mut stalled);
        for (_, token, origin) in stalled {
            if origin.must_accept_replies() {
                let why =
                    "too many unsent replies for this address, and this connection accepts none";
                self.give_up(token, why);
            }
        }
    }

    fn give_up(&mut self, token: u64, why: &'static str) {
        if let Some(conn) = find(&mut self.conns, token) {
            let Close = self.state.misbehaved(conn, &why);
            self.close(token);
        }
    }

    fn drain(&mut self, grace: Duration) {
        self.drain_until = Some(self.state.now + grace);
        self.state.draining = true;
        self.state.memory = MemoryLine::default();
        for (_, conn) in &mut self.conns {
            if conn.receiver.taking == Taking::NoMemory {
                conn.receiver.taking = Taking::All;
            }
            conn.take_no_more();
            conn.session.drain();
            self.state.mark(conn);
        }
    }

    fn silence(&mut self, silent: Arc<Silent>) {
        self.conns.iter_mut().for_each(|(_, conn)| silence(conn, &silent));
        self.silent = silent;
    }

    fn close(&mut self, token: u64) {
        let Some(slot) = slot_of(&self.conns, token) else { return };
        let conn = self.conns.remove(slot);
        self.state.forget(*conn);
    }
}

/// Sorts stalled connections: the one without progress for the longest time comes first.
fn sort(stalled: &mut [(Mono, u64, Rc<OriginLoad>)]) {
    stalled.sort_unstable_by_key(|(since, token, _)| (*since, *token));
}

/// Makes the connection silent if it is listed.
fn silence(conn: &mut Conn, silent: &Silent) {
    if let Err(error) = conn.socket.silence(silent) {
        tracing::debug!(peer = %conn.peer, %error, "cannot set the options of a socket for a silent end");
    }
}

fn slot_of(conns: &Slab<Box<Conn>>, token: u64) -> Option<usize> {
    let slot = usize::try_from(token & u64::from(u32::MAX)).ok()?;
    conns.get(slot).filter(|conn| conn.id.token == token).map(|_| slot)
}

fn find(conns: &mut Slab<Box<Conn>>, token: u64) -> Option<&mut Conn> {
    let slot = slot_of(conns, token)?;
    conns.get_mut(slot).map(|conn| &mut **conn)
}
