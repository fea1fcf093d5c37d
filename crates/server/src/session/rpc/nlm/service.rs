//! The work of the lock thread: hosts on disk, calls to clients, notices of a restart, and the
//! calls that workers do not carry out themselves. Not here: sockets.

use super::counters::count;
use super::hosts::Hosts;
use super::monitored::NotMonitored;
use super::{Asked, Nlm, Proof};
use crate::limits::{MONITORED_HOSTS_MAX, NOTICES_MAX};
use crate::session::deliver;
use crate::sync::Arc;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_catalog::MonitoredHost;
use weir_core::{Clock, Mono};
use weir_nfs::client::{Datagram, Ended, Outgoing, Target, What};
use weir_nfs::limits::OUTGOING_MAX;
use weir_nfs::nlm::{
    self, Callback, Delivery, LockManager, Next, Peer, Procedure, Request, Status,
};
use weir_nfs::nsm::wire::{HostName, NotifyArgs};
use weir_nfs::rpc::{Call, reply};
use weir_nfs::xdr::{Encode, Writer};
use weir_nfs::{PROGRAM_NLM, PROGRAM_NSM, nsm};

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

const _: () = assert!(OUTGOING_MAX >= NOTICES_MAX);

/// The purpose of a call to a client.
#[derive(Debug)]
enum Purpose {
    Callback(Callback),
    Notice(Arc<MonitoredHost>),
}

/// A life of the lock manager, between two restarts, as the catalogue knows it.
pub(crate) struct Life {
    /// Our NSM state number.
    pub(super) state: u32,
    pub(super) hosts: Hosts,
}

/// The work of the lock thread, without its sockets.
pub(super) struct Service {
    pub(super) nlm: Arc<Nlm>,
    pub(super) hosts: Hosts,
    /// Our NSM state number.
    pub(super) state: u32,
    outgoing: Outgoing<Purpose>,
    /// Callbacks to be tried again.
    later: BTreeMap<(Mono, u64), Callback>,
    /// Notices to be begun.
    pub(super) notices: BTreeMap<(Mono, u64), Arc<MonitoredHost>>,
    serial: u64,
    tidy_at: Mono,
    in_grace: bool,
    now: Mono,
    /// Datagrams to send.
    pub(super) out: Vec<Datagram>,
}

impl Service {
    /// The work for `nlm` in this `life`. `seed` is a number that nobody can guess.
    pub(super) fn new(nlm: Arc<Nlm>, life: Life, seed: u32) -> Self {
        let now = nlm.clock.now();
        let mut service = Self {
            nlm,
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
        service.in_grace = service.grace_until().is_some();
        let owed = service.hosts.owed();
        service.begin_notices(owed);
        service
    }

    /// Has these hosts told, one after the other.
    pub(super) fn begin_notices(&mut self, hosts: impl IntoIterator<Item = Arc<MonitoredHost>>) {
        let mut at = self.now;
        for host in hosts {
            self.serial += 1;
            self.notices.insert((at, self.serial), host);
            at = at + NOTICE_PACE;
        }
    }

    fn grace_until(&self) -> Option<Mono> {
        self.nlm.locks.tables().grace_until(self.now)
    }

    /// Time of the next work for [`Self::tick`].
    pub(super) fn next_due(&self) -> Mono {
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        let notice = self.notices.first_key_value().map(|((at, _), _)| *at);
        let all = [later, notice, self.grace_until(), self.outgoing.next_due()];
        all.into_iter().flatten().fold(self.tidy_at, Mono::min)
    }

    /// Does what is due: sends, gives up, tries again, tidies up.
    pub(super) fn tick(&mut self) {
        self.now = self.nlm.clock.now();
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
            self.call_back(callback);
        }
        // The tables are locked for one call at a time, so that workers find them free.
        let wanted = |purpose: &Purpose| match purpose {
            Purpose::Callback(callback) => LockManager::is_due(&self.nlm.locks.tables(), callback),
            Purpose::Notice(_) => true,
        };
        let ended = self.outgoing.send_due(self.now, &mut self.out, wanted);
        for (purpose, ended) in ended {
            self.ended(purpose, &ended);
        }
        let grace = self.grace_until().is_some();
        if self.in_grace && !grace {
            tracing::info!("the grace period has ended");
        }
        self.in_grace = grace;
        if self.tidy_at <= self.now {
            self.tidy_at = self.now + TIDY_EVERY;
            self.tidy();
        }
    }

    /// Forgets hosts that hold nothing. In the grace period they may still reclaim.
    pub(super) fn tidy(&mut self) {
        if !self.in_grace {
            self.hosts.tidy(&self.nlm);
        }
    }

    /// The last act: what a restart need not tell anybody is forgotten.
    pub(super) fn stop(mut self) {
        self.tidy();
    }

    /// A reply to a call of ours came from `from`.
    pub(super) fn answer(&mut self, from: SocketAddr, record: &[u8]) {
        self.now = self.nlm.clock.now();
        if let Some((purpose, ended)) = self.outgoing.answer(from, record, self.now) {
            self.ended(purpose, &ended);
        }
    }

    /// Carries out a call, after its host is recorded if need be.
    pub(super) fn carry_out(&mut self, asked: Asked) {
        self.now = self.nlm.clock.now();
        let Asked { call, peer, proof, reply } = asked;
        let record = match call.program {
            PROGRAM_NSM => self.status_monitor(&call, peer.address),
            _ => self.lock_manager(&call, &peer, proof),
        };
        // Nobody is there any more to take it only at the end of the server.
        let _nobody = reply.send(record);
    }

    fn lock_manager(&mut self, call: &Call, peer: &Peer, proof: Proof) -> Vec<u8> {
        let request = match Request::parse(call) {
            Ok(request) => request,
            Err(error) => return reply::error(Vec::new(), call.xid, error),
        };
        let proof = self.monitor(peer, &request, proof);
        // The disk may have taken longer than what was left of the grace period.
        self.now = self.nlm.clock.now();
        self.nlm.serve(self.nlm.state(), self.now, peer, &request, proof)
    }

    /// Has the host of `request` recorded, if it is to be.
    fn monitor(&mut self, peer: &Peer, request: &Request<'_>, proof: Proof) -> Proof {
        let host = self.nlm.state().to_monitor(self.now, peer, request, proof);
        let Some(host) = host else { return proof };
        let Err(why) = self.hosts.monitor(&self.nlm, host, request.reclaims()) else {
            return proof;
        };
        count(&self.nlm.counters.hosts_refused);
        let peer = peer.address;
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

    fn status_monitor(&self, call: &Call, address: IpAddr) -> Vec<u8> {
        let served = nsm::serve(call, self.state, Vec::new());
        if let Some(procedure) = served.refused {
            tracing::info!(peer = %address, ?procedure, "refused a request to monitor a host on behalf of another");
        }
        if let Some(notice) = served.notice {
            let mut state = self.nlm.state();
            // A host without locks is not worth looking for.
            if state.beside.monitored.any_at(address) || self.hosts.any_at(address) {
                tracing::info!(peer = %address, state = notice.state, "a host reports a restart");
                let grants = state.rebooted(address, notice.name, notice.state);
                drop(state);
                deliver(grants);
            }
        }
        served.reply
    }

    /// Calls a client, unless the call is not due any more.
    pub(super) fn call_back(&mut self, callback: Callback) {
        self.now = self.nlm.clock.now();
        if !LockManager::is_due(&self.nlm.locks.tables(), &callback) {
            return;
        }
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
            self.delivered(callback, Delivery::NotHeard);
        }
    }

    /// Takes note of what came of an attempt to make `callback`. Those who get the lock instead are
    /// told.
    fn delivered(&mut self, callback: Callback, delivery: Delivery<'_>) {
        let counters = &self.nlm.counters;
        count(if matches!(delivery, Delivery::Answered(_)) {
            &counters.called_back
        } else {
            &counters.unheard
        });
        let peer = callback.peer.address;
        let mut state = self.nlm.state();
        let (next, grants) = LockManager::delivered(&mut state.tables, callback, delivery);
        state.settle();
        drop(state);
        if let Next::Again(callback) = next {
            tracing::debug!(%peer, "a lock callback to a client will be retried");
            self.serial += 1;
            self.later.insert((self.now + CALLBACK_PAUSE, self.serial), callback);
        }
        deliver(grants);
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
                self.delivered(callback, delivery);
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
}
