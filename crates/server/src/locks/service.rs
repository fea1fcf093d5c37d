//! Calls to NLM and NSM, and what follows from them.

use super::counters::{count, gauge};
use super::hosts::{Hosts, NotMonitored};
use super::outgoing::{Datagram, Ended, Outgoing, Target, What};
use super::proof::{Proof, Proving, prove};
use super::{Asked, AskedBy, LockDoor, Message};
use crate::conn_id::ConnId;
use crate::engine::{Engine, View};
use crate::limits::MONITORED_HOSTS_MAX;
use crate::sync::Arc;
use crate::udp;
use crate::worker::{self, Tasks};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_core::{Clock, Mono, VolumeId};
use weir_nfs::nlm::{
    self, Callback, Delivery, Host, Locks, Next, Peer, Procedure, Request, Status,
};
use weir_nfs::nsm::wire::{HostName, NotifyArgs};
use weir_nfs::rpc::reply;
use weir_nfs::xdr::{Encode, Writer};
use weir_nfs::{PROGRAM_NLM, PROGRAM_NSM, nsm};
use weir_state::Limits;

/// Longest that one attempt to call a client back may take.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(20);
/// Pause before the next attempt.
const CALLBACK_PAUSE: Duration = Duration::from_secs(10);
/// Longest to try to tell a host of our restart, as others do.
const NOTICE_PATIENCE: Duration = Duration::from_mins(15);
/// Pause between the first notices to different hosts, so that many are no flood.
const NOTICE_PACE: Duration = Duration::from_millis(5);
/// Time between two sweeps for hosts without locks.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// The purpose of a call to a client.
#[derive(Debug)]
enum Purpose {
    Callback(Callback),
    Notice(Arc<MonitoredHost>),
}

/// A life of the lock manager, between two restarts, as the catalogue knows it.
pub(crate) struct Life {
    state: u32,
    hosts: Hosts,
    grace: Duration,
}

impl Life {
    /// Begins a new one: those who held locks in the last one have `grace` to take them again.
    ///
    /// # Errors
    /// The catalogue's errors.
    pub(crate) fn begin(catalog: Arc<Catalog>, grace: Duration) -> Result<Self, CatalogError> {
        Ok(Self { state: catalog.next_nsm_state()?, hosts: Hosts::load(catalog)?, grace })
    }
}

/// The lock manager, without its sockets.
pub(crate) struct Service {
    engine: Arc<Engine>,
    door: Arc<LockDoor>,
    view: View,
    locks: Locks,
    hosts: Hosts,
    /// Our NSM state number.
    state: u32,
    outgoing: Outgoing<Purpose>,
    /// Callbacks to be tried again.
    later: BTreeMap<(Mono, u64), Callback>,
    /// Notices to be begun.
    notices: BTreeMap<(Mono, u64), Arc<MonitoredHost>>,
    serial: u64,
    proving: Tasks<Proving, Asked, Message>,
    tidy_at: Mono,
    in_grace: bool,
    now: Mono,
    /// Datagrams to send.
    pub(super) out: Vec<Datagram>,
}

impl Service {
    /// The lock manager behind `door` in this `life`. `seed` is a number that nobody can guess.
    pub(crate) fn new(engine: Arc<Engine>, door: Arc<LockDoor>, life: Life, seed: u32) -> Self {
        let now = engine.clock.now();
        let mut service = Self {
            view: engine.view(),
            proving: Tasks::new(Arc::clone(&door.inbox), engine.clock, Message::Wake),
            engine,
            door,
            locks: Locks::new(Limits::SERVER),
            hosts: life.hosts,
            state: life.state,
            outgoing: Outgoing::new(seed),
            later: BTreeMap::new(),
            notices: BTreeMap::new(),
            serial: 0,
            tidy_at: now + TIDY_EVERY,
            in_grace: false,
            now,
            out: Vec::new(),
        };
        service.begin_grace(life.grace);
        service
    }

    fn begin_grace(&mut self, grace: Duration) {
        let known = self.hosts.owed();
        let hosts = known.iter().map(|host| Host::new(host.address, &host.name));
        self.locks.begin_grace(self.now + grace, hosts);
        self.in_grace = self.locks.grace_until(self.now).is_some();
        if !known.is_empty() {
            tracing::info!(
                hosts = known.len(),
                seconds = grace.as_secs(),
                "grace period started: locks held before the restart can be reclaimed; new locks are not granted"
            );
        }
        let mut at = self.now;
        for host in known {
            self.serial += 1;
            self.notices.insert((at, self.serial), host);
            at = at + NOTICE_PACE;
        }
        self.publish();
    }

    /// Time of the next work for [`Self::tick`].
    pub(super) fn next_due(&self) -> Mono {
        let first = |at: Option<(&(Mono, u64), _)>| at.map(|((at, _), ())| *at);
        let later = first(self.later.first_key_value().map(|(key, _)| (key, ())));
        let notice = first(self.notices.first_key_value().map(|(key, _)| (key, ())));
        let grace = self.locks.grace_until(self.now);
        let all = [later, notice, grace, self.outgoing.next_due()];
        all.into_iter().flatten().fold(self.tidy_at, Mono::min)
    }

    /// Does what is due: sends, gives up, tries again, tidies up.
    pub(super) fn tick(&mut self) {
        self.now = self.engine.clock.now();
        while let Some(entry) = self.notices.first_entry()
            && entry.key().0 <= self.now
        {
            let host = entry.remove();
            self.notify(host);
        }
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= self.now
        {
            let callback = entry.remove();
            self.call_back(vec![callback]);
        }
        let ended = self.outgoing.send_due(self.now, &mut self.out);
        for (purpose, ended) in ended {
            self.ended(purpose, &ended);
        }
        let grace = self.locks.grace_until(self.now).is_some();
        if self.in_grace && !grace {
            tracing::info!("the grace period has ended");
        }
        self.in_grace = grace;
        self.settle();
        if self.tidy_at <= self.now {
            self.tidy_at = self.now + TIDY_EVERY;
            self.tidy();
        }
        self.publish();
    }

    /// Tells the memory of hosts who of them holds nothing any more.
    fn settle(&mut self) {
        for host in self.locks.take_left() {
            self.hosts.settle(&host, self.locks.has(&host));
        }
    }

    /// Forgets hosts that hold nothing. In the grace period they may still reclaim.
    fn tidy(&mut self) {
        if !self.in_grace {
            let locks = &self.locks;
            self.hosts.tidy(|host| locks.has(host));
        }
    }

    /// The last act: what a restart need not tell anybody is forgotten.
    pub(super) fn stop(mut self) {
        self.tidy();
    }

    /// Takes up a call.
    pub(super) fn ask(&mut self, asked: Asked) {
        self.now = self.engine.clock.now();
        if asked.call.program == PROGRAM_NSM {
            return self.status_monitor(&asked);
        }
        let target = match Request::parse(&asked.call) {
            Ok(request) => request.target(),
            Err(error) => {
                let reply = reply::error(Vec::new(), asked.call.xid, error);
                return self.reply(&asked, reply);
            }
        };
        let Some(target) = target else { return self.carry_out(&asked, Err(Status::FAILED)) };
        match prove(&self.engine, self.view.load(), &asked, target) {
            Ok(proving) => {
                if let Some((proof, asked)) = self.proving.start(proving, asked, |_| {}) {
                    self.carry_out(&asked, proof);
                }
            }
            Err(status) => self.carry_out(&asked, Err(status)),
        }
    }

    /// A proof can make progress.
    pub(super) fn woken(&mut self, slot: usize) {
        if let Some((proof, asked)) = self.proving.wake(slot) {
            self.now = self.engine.clock.now();
            self.carry_out(&asked, proof);
        }
    }

    /// A volume is gone.
    pub(super) fn volume_gone(&mut self, volume: VolumeId) {
        self.locks.release_volume(volume);
    }

    /// A reply to a call of ours came from `from`.
    pub(super) fn answer(&mut self, from: SocketAddr, record: &[u8]) {
        self.now = self.engine.clock.now();
        if let Some((purpose, ended)) = self.outgoing.answer(from, record, self.now) {
            self.ended(purpose, &ended);
        }
    }

    fn carry_out(&mut self, asked: &Asked, mut proof: Proof) {
        let Ok(request) = Request::parse(&asked.call) else { return };
        let host = request.monitors(&asked.peer).filter(|_| proof.is_ok());
        if let Some(host) = &host
            && let Err(refused) = self.monitor(host, &request, &asked.peer)
        {
            proof = Err(refused);
        }
        let (xid, peer) = (asked.call.xid, &asked.peer);
        let served = self.locks.serve(self.now, peer, &request, proof, xid, Vec::new());
        self.settle();
        if let Some(host) = &host {
            self.hosts.settle(host, self.locks.has(host));
        }
        self.count(request.procedure(), served.status);
        self.reply(asked, served.reply);
        self.call_back(served.callbacks);
    }

    /// Has `host` monitored, unless the grace period refuses it what it asks anyway.
    fn monitor(&mut self, host: &Host, request: &Request<'_>, peer: &Peer) -> Result<(), Status> {
        let locks = &self.locks;
        if locks.is_too_early(self.now, host, request) {
            return Ok(());
        }
        let has = |host: &Host| locks.has(host);
        let Err(why) = self.hosts.monitor(host, peer, request.reclaims(), has) else {
            return Ok(());
        };
        count(&self.door.counters.hosts_refused);
        let peer = host.address;
        match why {
            NotMonitored::OriginFull => {
                tracing::warn!(%peer, "lock refused: its address has reached the maximum number of host names with locks");
            }
            NotMonitored::Full => {
                tracing::warn!(%peer, limit = MONITORED_HOSTS_MAX, "lock refused: the maximum number of hosts with locks is reached");
            }
            NotMonitored::Catalog(error) => {
                tracing::error!(%peer, %error, "lock refused: the host cannot be recorded for notification after a restart");
            }
        }
        Err(Status::DENIED_NOLOCKS)
    }

    fn count(&self, procedure: Procedure, status: Status) {
        if matches!(procedure, Procedure::Lock | Procedure::LockMsg | Procedure::NmLock) {
            let counters = &self.door.counters;
            match status {
                Status::GRANTED => count(&counters.granted),
                Status::BLOCKED => {}
                _ => count(&counters.refused),
            }
        }
    }

    fn status_monitor(&mut self, asked: &Asked) {
        let served = nsm::serve(&asked.call, self.state, Vec::new());
        let address = asked.peer.address;
        if let Some(procedure) = served.refused {
            tracing::info!(peer = %address, ?procedure, "refused a request to monitor a host on behalf of another");
        }
        let mut callbacks = Vec::new();
        // Whoever else says so has no locks, and is not worth looking for them.
        if let Some(notice) = served.notice
            && self.hosts.any_at(address)
        {
            tracing::info!(peer = %address, state = notice.state, "a host reports a restart");
            callbacks = self.locks.rebooted(address, notice.name, notice.state);
        }
        self.reply(asked, served.reply);
        self.call_back(callbacks);
    }

    fn reply(&mut self, asked: &Asked, reply: Vec<u8>) {
        match asked.by {
            AskedBy::Connection(ConnId { worker, token }) => {
                self.door.answered(asked.peer.address);
                self.engine.post(worker, worker::Message::Answer(token, reply));
            }
            AskedBy::Datagram { from, bytes } => {
                let reply = udp::bounded(reply, bytes, asked.call.xid);
                self.out.extend(udp::datagram(&reply, from, asked.peer.local));
            }
        }
    }

    fn call_back(&mut self, callbacks: Vec<Callback>) {
        let mut callbacks = callbacks;
        while let Some(callback) = callbacks.pop() {
            let target = Target { address: callback.peer.address, local: callback.peer.local };
            let args = callback.args.clone();
            let what = What {
                program: PROGRAM_NLM,
                version: nlm::VERSION,
                procedure: callback.procedure as u32,
                args: &args,
                answered: callback.procedure == Procedure::Granted,
            };
            let purpose = Purpose::Callback(callback);
            let begun = self.outgoing.begin(target, &what, purpose, self.now, CALLBACK_PATIENCE);
            if let Err(Purpose::Callback(callback)) = begun {
                callbacks.extend(self.delivered(callback, Delivery::NotHeard));
            }
        }
    }

    fn delivered(&mut self, callback: Callback, delivery: Delivery<'_>) -> Vec<Callback> {
        let counters = &self.door.counters;
        count(if matches!(delivery, Delivery::Answered(_)) {
            &counters.called_back
        } else {
            &counters.unheard
        });
        let peer = callback.peer.address;
        let (next, more) = self.locks.delivered(callback, delivery);
        if let Next::Again(callback) = next {
            tracing::debug!(%peer, "a lock callback to a client will be retried");
            self.serial += 1;
            self.later.insert((self.now + CALLBACK_PAUSE, self.serial), callback);
        }
        more
    }

    fn notify(&mut self, host: Arc<MonitoredHost>) {
        let name = host.local.to_string();
        let mut args = Writer::default();
        NotifyArgs { name: HostName(name.as_bytes()), state: self.state }.encode(&mut args);
        let what = What {
            program: PROGRAM_NSM,
            version: nsm::VERSION,
            procedure: nsm::Procedure::Notify as u32,
            args: args.as_bytes(),
            answered: true,
        };
        let target = Target { address: host.address, local: host.local };
        let purpose = Purpose::Notice(host);
        if let Err(purpose) = self.outgoing.begin(target, &what, purpose, self.now, NOTICE_PATIENCE)
        {
            self.ended(purpose, &Ended::Silent { heard: false });
        }
    }

    fn ended(&mut self, purpose: Purpose, ended: &Ended) {
        match purpose {
            Purpose::Callback(callback) => {
                let delivery = match ended {
                    Ended::Answered(results) => Delivery::Answered(results),
                    Ended::Silent { heard: true } => Delivery::Unknown,
                    Ended::Silent { heard: false } | Ended::Refused => Delivery::NotHeard,
                };
                let more = self.delivered(callback, delivery);
                self.call_back(more);
            }
            Purpose::Notice(host) => {
                match ended {
                    Ended::Answered(_) => {
                        tracing::info!(peer = %host.address, "a host was notified of the restart");
                    }
                    Ended::Refused | Ended::Silent { .. } => tracing::warn!(
                        peer = %host.address,
                        "a host could not be notified of the restart; it has lost its locks"
                    ),
                }
                self.hosts.notified(&host);
            }
        }
    }

    /// Brings the gauges up to date.
    fn publish(&self) {
        let (counters, used) = (&self.door.counters, self.locks.used());
        gauge(&counters.held, used.locks);
        gauge(&counters.waiting, used.waiters);
        gauge(&counters.hosts, self.hosts.monitored());
        gauge(&counters.grace, usize::from(self.in_grace));
    }
}
