//! Workers: threads that each own their connections and serve them from socket to reply.
//!
//! A request that needs no waiting never leaves the thread it came to. What does wait is plain
//! data at a gate, or a future whose waker posts to the worker's inbox.

mod buffers;
mod conn;
mod core;
mod holder;
mod lent;
mod message;
mod request;
mod spin;
mod tasks;

pub(crate) use buffers::Buffers;
pub(crate) use message::Message;
pub(crate) use request::Request;
pub(crate) use tasks::Tasks;

/// The gate of one volume.
pub(crate) type VolumeGate = crate::gate::Gate<Request>;

/// A request that its gate released.
pub(crate) type Ticket = crate::gate::Ticket<Request>;

use self::core::Core;
use crate::admission::{Origin, Shed};
use crate::conn_id::ConnId;
use crate::engine::Engine;
use crate::inbox::Inbox;
use crate::limits::{
    CROWDED_SECONDS, LINGER_SECONDS, PARTIAL_BYTES_ORIGIN_MAX, PARTIAL_BYTES_ORIGIN_MIN,
    PARTIAL_BYTES_WORKER_MAX, RECORD_SECONDS, RECV_ROUNDS_MAX, REPLY_BYTES_MAX,
    ROUND_REQUESTS_ORIGIN_MAX,
};
use crate::session::{Outcome, Session};
use crate::sync::Arc;
use conn::{Conn, Received};
use holder::Holder;
use request::Pending;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;
use spin::{POLL_GAP_MAX, POLL_MAX, Spin};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use weir_core::{Clock, Mono};

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
    core: Core,
    /// Set once told to stop: leave then, whatever is not done.
    drain_until: Option<Mono>,
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
        let core = Core::new(id, engine, inbox);
        Ok(Self {
            epoll,
            conns: Slab::new(),
            core,
            drain_until: None,
            sweep_at: Mono::ZERO,
            lingering: false,
            spin: Spin::new(),
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
            events.clear();
            self.wait(&mut events)?;
            self.core.batch = self.core.now;
            self.core.records = 0;
            self.core.round += 1;
            self.core.round_max = ROUND_REQUESTS_ORIGIN_MAX / 2;
            for event in &events {
                let Event { flags, data } = *event;
                match data.u64() {
                    INBOX => self.messages(),
                    token => self.ready(token, flags),
                }
            }
            self.core.pump_due();
            self.hand_out();
            self.core.round_max = ROUND_REQUESTS_ORIGIN_MAX;
            self.tidy_dirty();
            self.sweep();
            self.relieve();
            self.note_round();
        }
        if self.core.under_way() > 0 {
            self.core.engine.left_unfinished();
        }
        Ok(())
    }

    /// Waits for events or the time of the next task. Polls at first where the next request is
    /// likely to come at once.
    fn wait(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        let clock = self.core.engine.clock;
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
        self.core.now = clock.now();
        if let Some(began) = began {
            self.spin.pause_ended(self.core.now.since(began));
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
        let core = &self.core;
        self.one_by_one = core.records == 1 && core.under_way() == 0 && !core.has_work();
        if core.records == 0 {
            return;
        }
        if !self.one_by_one || core.sender != self.sender {
            self.spin.interrupt();
        }
        self.sender = core.sender;
    }

    fn timeout(&self) -> Option<Timespec> {
        if self.core.has_work() {
            return Some(Timespec::default());
        }
        let sweep = self.has_to_sweep().then_some(self.sweep_at);
        // Nobody tells a worker that is to stop that no gate needs it any more.
        let look = self.drain_until.map(|end| end.min(self.core.now + DRAIN_LOOK));
        let next = self.core.next_deadline().into_iter().chain(look).chain(sweep);
        let next = next.min()?;
        let now = self.core.engine.clock.now();
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
        if self.core.now >= deadline {
            return true;
        }
        // Requests of other workers may wait at a gate that this one is to ask.
        let answered = self.core.under_way() == 0
            && !self.core.is_waited_for()
            && self.conns.iter().all(|(_, conn)| conn.half_closed);
        if answered && !self.lingering {
            self.lingering = true;
            self.drain_until =
                Some(deadline.min(self.core.now + Duration::from_secs(LINGER_SECONDS)));
        }
        answered && self.conns.is_empty()
    }

    fn messages(&mut self) {
        let mut messages = std::mem::take(&mut self.core.messages);
        self.core.inbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Connection(socket, peer, session) => self.adopt(socket, peer, session),
                Message::Wake(slot) => {
                    let woken = self.core.tasks.woken(slot);
                    if let Some((outcome, mut pending)) = self.core.tasks.wake(slot) {
                        pending.stages.woken = woken;
                        self.finish(outcome, pending);
                    }
                }
                Message::Prepared(slot) => self.prepared(slot),
                Message::Released(ticket) => self.released(*ticket),
                Message::Pump(gate) => self.core.pump(gate),
                Message::Resume(token) => self.resume(token),
                Message::Reply(token, reply) => self.reply(token, reply),
                Message::Answer(token, reply) => {
                    if let Some(conn) = find(&mut self.conns, token) {
                        self.core.answered(conn, reply);
                    }
                }
                Message::Shed(shed) => self.shed(&shed),
                Message::RollCall(absent) => drop(absent),
                Message::Drain(grace) => self.drain(grace),
            }
        }
        self.core.messages = messages;
    }

    fn adopt(&mut self, socket: TcpStream, peer: SocketAddr, session: Session) {
        let entry = self.conns.vacant_entry();
        // The slot finds the connection; the serial number proves that it is the same one, and
        // tells it apart from other workers' at a gate. INBOX can't come about: slots are few.
        let token = self.core.engine.connection_serial() << 32 | entry.key() as u64;
        let (id, from) = (ConnId { worker: self.core.id, token }, peer.ip());
        if self.drain_until.is_some() {
            return self.core.turn_away(from, id, session);
        }
        let interest = EventFlags::IN;
        if let Err(error) = epoll::add(&self.epoll, &socket, EventData::new_u64(token), interest) {
            tracing::warn!(peer = %from, %error, "connection refused: cannot add it to epoll");
            return self.core.turn_away(from, id, session);
        }
        let (now, peer) = (self.core.now, from.to_canonical());
        let holder = self.core.holders.of(Origin::of(peer));
        entry.insert(Box::new(Conn::new(socket, peer, session, holder, token, now)));
    }

    fn ready(&mut self, token: u64, flags: EventFlags) {
        let Some(conn) = find(&mut self.conns, token) else { return };
        let gone = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let read = flags.contains(EventFlags::IN);
        let outcome = if gone {
            Err(Close)
        } else if read && conn.has_all() {
            Self::discard(&mut self.core, conn)
        } else if read {
            Self::read(&mut self.core, conn)
        } else {
            Ok(())
        };
        let outcome = outcome.and_then(|()| Self::tidy(&self.epoll, &mut self.core, conn));
        if outcome.is_err() {
            self.close(token);
        }
    }

    /// Receives and serves what a connection sent, some rounds of it.
    fn read(core: &mut Core, conn: &mut Conn) -> Result<(), Close> {
        conn.active = core.now;
        if conn.blocked {
            core.process(conn)?;
        }
        for round in 0..RECV_ROUNDS_MAX {
            if round > 0 {
                core.batch = core.now;
            }
            let all = conn.has_all();
            if !all && (conn.blocked || !core.may_take(conn)) {
                break;
            }
            let received =
                if all { conn.discard(&mut core.buffers) } else { conn.receive(&mut core.buffers) };
            if received == Received::Closed {
                return Err(Close);
            }
            core.process(conn)?;
            if received == Received::Drained {
                break;
            }
        }
        Ok(())
    }

    /// Drops what a connection sends after the server was told to stop.
    fn discard(core: &mut Core, conn: &mut Conn) -> Result<(), Close> {
        match conn.discard(&mut core.buffers) {
            Received::Closed => Err(Close),
            Received::More | Received::Drained => Ok(()),
        }
    }

    /// Brings a connection to rest after anything happened to it: sends, takes up what had to
    /// wait for that, and tells epoll what to watch for.
    fn tidy(epoll: &OwnedFd, core: &mut Core, conn: &mut Conn) -> Result<(), Close> {
        conn.dirty = false;
        loop {
            core.flush(conn)?;
            if conn.blocked && !conn.turn_over && core.may_take(conn) {
                core.process(conn)?;
            }
            if !conn.fresh {
                break;
            }
        }
        core.account_out(conn);
        core.open_room(conn);
        conn.end_if_answered().map_err(|_| Close)?;
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, conn.has_all() || core.may_take(conn));
        interest.set(EventFlags::OUT, conn.out_bytes() > 0);
        if interest != conn.interest {
            conn.interest = interest;
            epoll::modify(epoll, &conn.socket, EventData::new_u64(conn.token), interest)
                .map_err(|_| Close)?;
        }
        Ok(())
    }

    fn tidy_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.core.passed_over);
        dirty.append(&mut self.core.dirty);
        for token in dirty.drain(..) {
            let Some(conn) = find(&mut self.conns, token) else { continue };
            conn.turn_over = false;
            if Self::tidy(&self.epoll, &mut self.core, conn).is_err() {
                self.close(token);
            }
        }
        // Connections that became dirty meanwhile are kept for the next round, which comes at once.
        dirty.append(&mut self.core.dirty);
        self.core.dirty = dirty;
    }

    fn finish(&mut self, outcome: Outcome, pending: Pending) {
        let conn = find(&mut self.conns, pending.connection.token);
        self.core.finish(conn, outcome, pending);
    }

    /// Gives released requests to the workers that own their connections.
    fn hand_out(&mut self) {
        while let Some(ticket) = self.core.released.pop_front() {
            let worker = ticket.request.connection.worker;
            if worker == self.core.id {
                self.released(ticket);
            } else {
                self.core.engine.post(worker, Message::Released(Box::new(ticket)));
            }
        }
        while let Some(stopped) = self.core.resumed.pop() {
            let ConnId { worker, token } = stopped.connection;
            if worker == self.core.id {
                self.resume(token);
            } else {
                self.core.engine.post(worker, Message::Resume(token));
            }
        }
        while let Some((ConnId { worker, token }, reply)) = self.core.replies.pop() {
            if worker == self.core.id {
                self.reply(token, reply);
            } else {
                self.core.engine.post(worker, Message::Reply(token, reply));
            }
        }
    }

    /// Takes up a request that is prepared.
    fn prepared(&mut self, slot: usize) {
        let Some((prepared, preparing)) = self.core.preparing.wake(slot) else { return };
        if let Some(conn) = find(&mut self.conns, preparing.connection.token) {
            self.core.prepared(conn, prepared);
        }
    }

    fn reply(&mut self, token: u64, reply: Vec<u8>) {
        if let Some(conn) = find(&mut self.conns, token) {
            conn.queue(reply);
            self.core.mark(conn);
        }
    }

    fn released(&mut self, ticket: Ticket) {
        match find(&mut self.conns, ticket.request.connection.token) {
            Some(conn) => self.core.released(conn, ticket),
            None => self.core.released_to_nobody(ticket),
        }
    }

    fn resume(&mut self, token: u64) {
        if let Some(conn) = find(&mut self.conns, token) {
            conn.stopped = None;
            self.core.mark(conn);
        }
    }

    /// Closes the connection of an origin that was idle the longest, to make room for another.
    fn shed(&mut self, shed: &Shed) {
        let of_origin = |conn: &Conn| Origin::of(conn.peer) == shed.origin && conn.is_idle();
        let idle = self.conns.iter().filter(|(_, conn)| of_origin(conn));
        let longest = idle.min_by_key(|(_, conn)| conn.active).map(|(_, conn)| conn.token);
        if let Some(token) = longest
            && shed.claim()
        {
            self.core.engine.counters.shed();
            self.close(token);
        }
    }

    /// Resumes connections whose origin is below its bounds again.
    fn relieve(&mut self) {
        while let Some(holder) = self.core.holders.relieved() {
            for (_, conn) in &mut self.conns {
                if Rc::ptr_eq(&conn.holder, &holder) {
                    self.core.mark(conn);
                }
            }
        }
    }

    /// Is there any connection that may take too long?
    fn has_to_sweep(&self) -> bool {
        self.core.partials > 0 || self.core.has_orphans() || self.core.may_be_crowded()
    }

    /// Closes connections without progress, sooner where they hold too much meanwhile.
    fn sweep(&mut self) {
        let now = self.core.now;
        if now < self.sweep_at || !self.has_to_sweep() {
            return;
        }
        self.sweep_at = now + SWEEP;
        self.core.reclaim_orphans();
        self.sweep_records(now);
        self.sweep_replies(now);
    }

    /// Closes connections whose records do not grow.
    fn sweep_records(&mut self, now: Mono) {
        let crowded = Duration::from_secs(CROWDED_SECONDS);
        let mut stalled = Vec::new();
        for (_, conn) in &mut self.conns {
            let Some(since) = &mut conn.partial_since else { continue };
            if !conn.interest.contains(EventFlags::IN) {
                // The server itself does not read.
                *since = now;
            } else if now.since(*since) > crowded {
                stalled.push((*since, conn.token, Rc::clone(&conn.holder)));
            }
        }
        stalled.sort_unstable_by_key(|(since, token, _)| (*since, *token));
        for (since, token, holder) in stalled {
            let most = match self.core.partial_bytes > PARTIAL_BYTES_WORKER_MAX {
                true => PARTIAL_BYTES_ORIGIN_MIN,
                false => PARTIAL_BYTES_ORIGIN_MAX,
            };
            if now.since(since) > Duration::from_secs(RECORD_SECONDS) {
                self.give_up(token, "an RPC record takes too long to arrive");
            } else if holder.get(Holder::PARTIAL_BYTES) > most {
                let why = "too many incomplete RPC records from this address, and this one makes no progress";
                self.give_up(token, why);
            }
        }
    }

    /// Closes connections whose peers take no replies while their origin holds too much.
    fn sweep_replies(&mut self, now: Mono) {
        let mut stalled = Vec::new();
        for (_, conn) in &self.conns {
            let Some(since) = conn.clogged else { continue };
            if now.since(since) > Duration::from_secs(CROWDED_SECONDS) {
                stalled.push((since, conn.token, Rc::clone(&conn.holder)));
            }
        }
        stalled.sort_unstable_by_key(|(since, token, _)| (*since, *token));
        for (_, token, holder) in stalled {
            let holds = holder.get(Holder::REPLY_BYTES);
            if holder.is_crowded() || self.core.is_crowded() && holds > REPLY_BYTES_MAX {
                self.give_up(
                    token,
                    "too many unsent replies for this address, and this connection accepts none",
                );
            }
        }
    }

    fn give_up(&mut self, token: u64, why: &'static str) {
        if let Some(conn) = find(&mut self.conns, token) {
            let Close = self.core.misbehaved(conn, &why);
            self.close(token);
        }
    }

    fn drain(&mut self, grace: Duration) {
        self.drain_until = Some(self.core.now + grace);
        for (_, conn) in &mut self.conns {
            conn.take_no_more();
            self.core.mark(conn);
        }
    }

    fn close(&mut self, token: u64) {
        let Some(slot) = slot_of(&self.conns, token) else { return };
        let conn = self.conns.remove(slot);
        self.core.forget(*conn);
    }
}

fn slot_of(conns: &Slab<Box<Conn>>, token: u64) -> Option<usize> {
    let slot = usize::try_from(token & u64::from(u32::MAX)).ok()?;
    conns.get(slot).filter(|conn| conn.token == token).map(|_| slot)
}

fn find(conns: &mut Slab<Box<Conn>>, token: u64) -> Option<&mut Conn> {
    let slot = slot_of(conns, token)?;
    conns.get_mut(slot).map(|conn| &mut **conn)
}
