//! The state of a worker beside its connections, so that a connection and the rest can be borrowed
//! side by side: the bounds on a connection, and the way from its bytes to requests.
//!
//! Not here: the way of a request from its admission to its reply ([`super::operations`]).

use super::alarms::Alarms;
use super::buffers::Buffers;
use super::conn::Conn;
use super::gates::Gates;
use super::io::IoGenerations;
use super::latency::Uncounted;
use super::lent::Lent;
use super::load::Loads;
use super::memory::MemoryLine;
use super::receive::Taking;
use super::request::{Pending, Preparing};
use super::tasks::Tasks;
use super::to_gates::ToGates;
use super::{Close, Message};
use crate::engine::{Engine, View};
use crate::inbox::Inbox;
use crate::limits::{
    HELD_RETRY, IN_FLIGHT_MAX, REPLY_BYTES_MAX, SEND_EARLY_BYTES, TURN_REQUESTS_MAX,
    UNSENT_BYTES_MAX,
};
use crate::session::{Begun, Common, Cx, Operation, Preparation, Session};
use crate::sync::Arc;
use std::net::IpAddr;
use weir_core::{Clock, Mono, Shared};
use weir_gate::ConnId;

/// One pass of the worker over everything that became ready.
pub(super) struct Round {
    /// Its number.
    pub(super) number: u64,
    /// Requests of one origin that may be taken in it so far.
    pub(super) requests_max: usize,
    /// Time at which the requests being served were received.
    pub(super) received: Mono,
    /// Requests taken in it, and the connection of the last one.
    pub(super) requests: usize,
    pub(super) sender: u64,
}

/// A worker without its connections.
pub(super) struct WorkerState {
    pub(super) id: usize,
    pub(super) engine: Arc<Engine>,
    pub(super) inbox: Arc<Inbox<Message>>,
    pub(super) view: View,
    pub(super) tasks: Tasks<Operation, Pending, Message>,
    /// Requests that are prepared before they are admitted.
    pub(super) preparing: Tasks<Preparation, Preparing, Message>,
    /// The demands of operations and sessions on gates.
    pub(super) to_gates: ToGates,
    pub(super) buffers: Buffers,
    /// The state that the connections' sessions share.
    sessions: Common,
    pub(super) messages: Vec<Message>,
    pub(super) gates: Gates,
    pub(super) alarms: Alarms,
    /// Data operations under way.
    pub(super) io: IoGenerations,
    /// Replies for connections other than the one whose request was carried out.
    pub(super) replies: Vec<(ConnId, Vec<u8>)>,
    /// Connections to tidy before sleeping.
    pub(super) dirty: Vec<u64>,
    /// Dirty connections whose origin had no turn left for them: they come first in the next round.
    pub(super) passed_over: Vec<u64>,
    pub(super) round: Round,
    /// The present, as of the last look at the clock.
    pub(super) now: Mono,
    /// Operations that ended since, and for which the clock was not read.
    pub(super) uncounted: Uncounted,
    pub(super) loads: Loads,
    /// The server was told to stop.
    pub(super) draining: bool,
    /// Connections that wait for memory.
    pub(super) memory: MemoryLine,
    /// Receive buffers of closed connections that requests in flight hold.
    orphans: Vec<Lent>,
}

impl WorkerState {
    pub(super) fn new(id: usize, engine: Arc<Engine>, inbox: Arc<Inbox<Message>>) -> Self {
        let now = engine.clock.now();
        Self {
            id,
            view: engine.view(),
            tasks: Tasks::new(Arc::clone(&inbox), engine.clock, Message::Wake),
            preparing: Tasks::new(Arc::clone(&inbox), engine.clock, Message::Prepared),
            to_gates: ToGates::default(),
            inbox,
            buffers: Buffers::default(),
            sessions: Common::default(),
            messages: Vec::new(),
            gates: Gates::default(),
            alarms: Alarms::default(),
            io: IoGenerations::default(),
            replies: Vec::new(),
            dirty: Vec::new(),
            passed_over: Vec::new(),
            round: Round { number: 0, requests_max: 0, received: now, requests: 0, sender: 0 },
            now,
            uncounted: Uncounted::default(),
            loads: Loads::default(),
            draining: false,
            memory: MemoryLine::default(),
            orphans: Vec::new(),
            engine,
        }
    }

    /// Operations and preparations that wait.
    pub(super) fn under_way(&self) -> usize {
        self.tasks.len() + self.preparing.len()
    }

    /// Reads the clock, and counts the operations that ended since the last look at it.
    pub(super) fn read_clock(&mut self) {
        self.now = self.engine.clock.now();
        self.uncounted.count(self.id, self.now);
    }

    /// Reads the clock if operations ended since the last look at it.
    pub(super) fn catch_up(&mut self) {
        if !self.uncounted.is_empty() {
            self.read_clock();
        }
    }

    /// Is there something to do before sleeping?
    pub(super) fn has_work(&self) -> bool {
        !(self.dirty.is_empty()
            && self.passed_over.is_empty()
            && self.gates.is_empty()
            && self.to_gates.is_empty()
            && self.replies.is_empty())
    }

    /// Puts `conn` on the list of connections to tidy.
    pub(super) fn mark(&mut self, conn: &mut Conn) {
        if !conn.dirty {
            conn.dirty = true;
            self.dirty.push(conn.id.token);
        }
    }

    /// Ends the turn of `conn`, which `took` so many requests.
    fn end_turn(&mut self, conn: &mut Conn, took: usize) {
        conn.receiver.taking = Taking::TurnOver;
        if took == 0 && !conn.dirty {
            conn.dirty = true;
            self.passed_over.push(conn.id.token);
        } else {
            self.mark(conn);
        }
    }

    /// May one more request of `conn` be taken from its bytes?
    pub(super) fn may_take(&self, conn: &Conn) -> bool {
        conn.stopped.is_none()
            && conn.load.in_flight() < IN_FLIGHT_MAX
            && !conn.origin().may_not_read()
            && conn.receiver.lent.may_lend()
            && may_reply(conn)
    }

    /// Is there memory for what `conn` receives next? If not, `conn` is put in line for it.
    pub(super) fn has_memory(&mut self, conn: &mut Conn) -> bool {
        let growth = conn.receiver.growth();
        let token = conn.id.token;
        if growth == 0
            || self.draining
            || conn.origin().may_receive(growth)
            || self.memory.is_exempt(token)
        {
            return true;
        }
        conn.receiver.taking = Taking::NoMemory;
        self.memory.wait(token);
        false
    }

    /// Says to gates whether `conn` has room for replies, and polls those that found none.
    pub(super) fn open_room(&mut self, conn: &Conn) {
        let open = may_reply(conn);
        if conn.origin().may_not_read() {
            self.loads.wait(conn.origin());
        }
        conn.room.set_open(open);
        if !open || conn.parked.is_empty() || !conn.room.was_refused() {
            return;
        }
        for volume in conn.parked.volumes() {
            let Some(mounted) = self.view.load().by_id(volume) else { continue };
            let gate = &mounted.volume.gate;
            if gate.resume_connection(conn.id, self.now) {
                self.gates.poll(Arc::clone(gate), self.now);
            }
        }
    }

    /// Serves the whole records that `conn` holds, as far as bounds and its turn allow.
    pub(super) fn process(&mut self, conn: &mut Conn) -> Result<(), Close> {
        conn.receiver.taking = Taking::All;
        let (mut whole, mut took) = (false, 0);
        loop {
            if conn.send.bytes() >= SEND_EARLY_BYTES && conn.send.clogged().is_none() {
                self.flush(conn)?;
            }
            if !self.may_take(conn) {
                conn.receiver.taking = Taking::AtBound;
                break;
            }
            let round = &mut self.round;
            let origin = conn.load.origin();
            if took >= TURN_REQUESTS_MAX || origin.taken_in(round.number) >= round.requests_max {
                self.end_turn(conn, took);
                break;
            }
            match conn.receiver.next_record(&mut conn.session) {
                Ok(Some(record)) => {
                    whole = true;
                    round.sender = conn.id.token;
                    let requests = self.begin(conn, record)?;
                    took += requests;
                    self.round.requests += requests;
                    conn.origin().took_in(self.round.number, requests);
                }
                Ok(None) => break,
                Err(error) => return Err(self.misbehaved(conn, &error)),
            }
        }
        if whole || conn.receiver.taking != Taking::All {
            self.memory.ended(conn.id.token);
        }
        conn.receiver.settle(&mut self.buffers);
        conn.receiver.count_partial(&conn.session, whole, self.now);
        Ok(())
    }

    /// Does what the session makes of `record`. Gives the number of requests that it counts as.
    fn begin(&mut self, conn: &mut Conn, record: Shared) -> Result<usize, Close> {
        let mut counts = 1;
        let cx = Cx {
            engine: &self.engine,
            view: &mut self.view,
            buffers: &mut self.buffers,
            common: &mut self.sessions,
            connection: conn.id,
            socket: &conn.socket,
            to_gates: &self.to_gates,
            io: &self.io,
            parked: conn.parked.bytes(),
            peer: conn.peer,
            now: self.now,
            arrived: self.round.received,
        };
        match conn.session.begin(cx, record) {
            Ok(Begun::Nothing) => {}
            Ok(Begun::Reply(reply)) => conn.send.push(reply, &mut self.buffers),
            Ok(Begun::Request(request)) => self.admit(conn, request),
            Ok(Begun::Prepare(preparation)) => {
                let lookup = Some(conn.origin().count_lookup());
                self.prepare(conn, preparation, 0, lookup);
            }
            Ok(Begun::Await { reply, holds, requests }) => {
                counts = requests;
                self.prepare(conn, reply, holds, None);
            }
            Err(error) => return Err(self.misbehaved(conn, &error)),
        }
        self.set_alarm(conn);
        Ok(counts)
    }

    /// Sets the alarm of the session of `conn`, if it wants one sooner than the one that is set.
    pub(super) fn set_alarm(&mut self, conn: &mut Conn) {
        if let Some(at) = conn.session.alarm()
            && conn.alarm.is_none_or(|set| at < set)
        {
            conn.alarm = Some(at);
            self.alarms.set(at, conn.id.token);
        }
    }

    /// An alarm of `conn` is due: sends what its session owes the client, and what was held.
    pub(super) fn ring(&mut self, conn: &mut Conn) {
        if conn.retry.is_some_and(|at| at <= self.now) {
            conn.retry = None;
            self.mark(conn);
        }
        if conn.alarm.is_none_or(|at| at > self.now) {
            return;
        }
        conn.alarm = None;
        match conn.session.ring(self.now) {
            Some(records) => {
                records.into_iter().for_each(|record| conn.send.push(record, &mut self.buffers));
            }
            None => conn.broken = true,
        }
        self.mark(conn);
        self.set_alarm(conn);
    }

    /// A peer broke the protocol beyond what an error reply can say.
    pub(super) fn misbehaved(&self, conn: &Conn, what: &dyn std::fmt::Display) -> Close {
        self.engine.counters.misbehaved();
        tracing::warn!(peer = %conn.peer, error = %what, "connection closed: protocol error by the peer");
        Close
    }

    /// Are there receive buffers that requests of closed connections hold?
    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Takes back those of them that no request holds any more.
    pub(super) fn reclaim_orphans(&mut self) {
        for lent in &mut self.orphans {
            lent.reclaim(&mut self.buffers);
        }
        self.orphans.retain(|lent| !lent.is_empty());
    }

    /// Sends the records that wait on `conn`, as far as its socket and the right to reply allow.
    pub(super) fn flush(&mut self, conn: &mut Conn) -> Result<(), Close> {
        self.catch_up();
        let right = &self.engine.right;
        let sent = conn.send.flush(&conn.socket, &mut self.buffers, self.now, right);
        if conn.send.is_held() && conn.retry.is_none() {
            let at = self.now + HELD_RETRY;
            conn.retry = Some(at);
            self.alarms.set(at, conn.id.token);
        }
        if conn.send.has_gone() {
            self.read_clock();
            self.count_gone(conn);
        }
        sent.map_err(|_| Close)
    }

    fn count_gone(&self, conn: &mut Conn) {
        for (volume, count) in conn.send.take_gone() {
            volume.stats.sent(self.id, count, self.now);
        }
    }

    /// Cleans up after a connection that is gone. Requests of it that are in flight go on.
    pub(super) fn forget(&mut self, mut conn: Conn) {
        self.catch_up();
        for volume in conn.parked.volumes().chain(conn.stopped) {
            if let Some(mounted) = self.view.load().by_id(volume) {
                mounted.volume.gate.cancel(conn.id, self.now, &mut self.gates.resumed);
            }
        }
        conn.send.give_up();
        self.count_gone(&mut conn);
        conn.receiver.lent.reclaim(&mut self.buffers);
        let took_all = conn.took_all();
        let Conn { id, peer, receiver, session, load, .. } = conn;
        if let Some(rest) = session.close(&self.engine, &mut self.view, id, took_all) {
            self.clean_up(&load, id, rest);
        }
        self.engine.connections.closed(id);
        self.engine.connection_gone(self.id, peer);
        if !receiver.lent.is_empty() {
            self.orphans.push(receiver.lent);
        }
    }

    /// Closes a connection from `peer` that this worker does not serve.
    pub(super) fn turn_away(&mut self, peer: IpAddr, id: ConnId, session: Session) {
        // Nothing was read from it, so nothing is left to be done.
        drop(session.close(&self.engine, &mut self.view, id, false));
        self.engine.connection_gone(self.id, peer);
    }
}

/// Is there room for the reply to one more request of `conn`?
fn may_reply(conn: &Conn) -> bool {
    let (bytes, origin) = (conn.reply_bytes(), conn.origin());
    let fits = || bytes < REPLY_BYTES_MAX && conn.send.bytes() < UNSENT_BYTES_MAX;
    !origin.is_full() && (bytes == 0 || fits() && !origin.is_crowded())
}
