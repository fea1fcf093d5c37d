//! The locks of all volumes and the hosts that hold them: the state under the one mutex.

use super::{Proof, Waiter, callbacks};
use crate::session::rpc::nlm::{LockCounters, Monitored};
use crate::sync::Arc;
use std::net::IpAddr;
use weir_catalog::MonitoredHost;
use weir_core::Mono;
use weir_nfs::nlm::{Callback, Delivery, Host, LockManager, Next, Peer, Request};
use weir_state::{Limits, Tables};

pub(crate) struct LockState {
    pub(crate) tables: Tables<Waiter>,
    pub(crate) monitored: Monitored,
    manager: LockManager,
}

/// A call that was carried out: its reply, and the calls to make of clients.
pub(crate) type Served = (Vec<u8>, Vec<Callback>);

impl LockState {
    pub(crate) fn new(limits: Limits) -> Self {
        let (tables, monitored) = (Tables::new(limits), Monitored::default());
        Self { tables, monitored, manager: LockManager::default() }
    }

    /// Is a call carried out in a short time and without waiting for the disk?
    pub(crate) fn is_quick(
        &self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
    ) -> bool {
        self.manager.is_quick(&self.tables, peer, request, proof)
            && self.to_monitor(now, peer, request, proof).is_none()
    }

    /// The host to be recorded before a call is carried out, unless the grace period refuses the
    /// call anyway.
    pub(crate) fn to_monitor(
        &self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
    ) -> Option<MonitoredHost> {
        let (file, host) = (proof.ok()?, request.monitors(peer)?);
        if LockManager::is_too_early(&self.tables, now, &host, request, &file) {
            return None;
        }
        let Host { address, name } = host;
        let host = MonitoredHost { address, name, local: peer.local };
        (!self.monitored.contains(&host)).then_some(host)
    }

    /// Carries out a call whose host is monitored, if it is to be.
    pub(crate) fn serve(
        &mut self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
        xid: u32,
        counters: &LockCounters,
    ) -> Served {
        let tables = &mut self.tables;
        let served = self.manager.serve(tables, now, peer, request, proof, xid);
        if let Some(host) = request.monitors(peer) {
            self.monitored.settle(&host, self.tables.has(&host.client()));
        }
        self.settle();
        counters.served(request.procedure(), served.status);
        let calls = served.answer.into_iter().chain(callbacks(served.grants));
        (served.reply, calls.collect())
    }

    /// The host at `address` says that it restarted.
    pub(crate) fn rebooted(&mut self, address: IpAddr, name: &[u8], state: u32) -> Vec<Callback> {
        let grants = self.manager.rebooted(&mut self.tables, address, name, state);
        self.settle();
        callbacks(grants)
    }

    /// Takes note of what came of an attempt to make `callback`.
    pub(crate) fn delivered(
        &mut self,
        callback: Callback,
        delivery: Delivery<'_>,
    ) -> (Next, Vec<Callback>) {
        let (next, grants) = LockManager::delivered(&mut self.tables, callback, delivery);
        self.settle();
        (next, callbacks(grants))
    }

    /// Notes which hosts hold nothing any more.
    pub(crate) fn settle(&mut self) {
        for client in self.tables.take_left() {
            if let Some(host) = Host::of(&client) {
                self.monitored.settle(&host, self.tables.has(&client));
            }
        }
    }

    /// Has those of `hosts` that hold no locks monitored no longer, and gives them.
    pub(crate) fn take_without_locks(
        &mut self,
        hosts: &[Arc<MonitoredHost>],
    ) -> Vec<Arc<MonitoredHost>> {
        let mut taken = Vec::new();
        for host in hosts {
            let known = Host::new(host.address, &host.name);
            if self.tables.has(&known.client()) {
                self.monitored.settle(&known, true);
            } else {
                self.monitored.remove(host);
                taken.push(Arc::clone(host));
            }
        }
        taken
    }
}
