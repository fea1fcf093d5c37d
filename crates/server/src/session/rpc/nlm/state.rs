//! The tables of locks together with what NLM must keep in step with them: the hosts that hold
//! locks, and their state numbers.

use super::Proof;
use super::monitored::Monitored;
use crate::session::Waiter;
use crate::sync::{Arc, MutexGuard};
use std::net::IpAddr;
use weir_catalog::MonitoredHost;
use weir_core::Mono;
use weir_locks::LockedTables;
use weir_nfs::nlm::{Host, LockManager, Peer, Request, Served};
use weir_state::Grant;

/// The part of the state that is NLM's alone.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) monitored: Monitored,
    pub(super) manager: LockManager,
}

/// The whole state, locked. Grants are told once this is dropped.
pub(super) struct State<'a> {
    /// Dropped before the tables: who gets them finds this free.
    pub(super) beside: MutexGuard<'a, Beside>,
    pub(super) tables: LockedTables<'a, Waiter>,
}

impl State<'_> {
    /// Is a call carried out in a short time and without waiting for the disk?
    pub(super) fn is_quick(
        &self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
    ) -> bool {
        self.beside.manager.is_quick(&self.tables, peer, request, proof)
            && self.to_monitor(now, peer, request, proof).is_none()
    }

    /// The host to be recorded before a call is carried out, unless the grace period refuses the
    /// call anyway, or the volume is not served.
    pub(super) fn to_monitor(
        &self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
    ) -> Option<MonitoredHost> {
        let (file, host) = (proof.ok()?, request.monitors(peer)?);
        // The hosts of a volume that has left are its next home's.
        if !self.tables.is_open(file.volume)
            || LockManager::is_too_early(&self.tables, now, &host, request, &file)
        {
            return None;
        }
        let Host { address, name } = host;
        let host = MonitoredHost { address, name, local: peer.local };
        (!self.beside.monitored.contains(&host)).then_some(host)
    }

    /// Carries out a call whose host is monitored, if it is to be. A lock that may be waited for is
    /// waited for by `waiter`.
    pub(super) fn serve(
        &mut self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
        waiter: Option<Waiter>,
    ) -> Served<Waiter> {
        let tables = &mut self.tables;
        let served = self.beside.manager.serve(tables, now, peer, request, proof, waiter);
        if let Some(host) = request.monitors(peer) {
            self.beside.monitored.settle(&host, self.tables.has(&host.client()));
        }
        self.settle();
        served
    }

    /// The host at `address` says that it restarted.
    pub(super) fn rebooted(
        &mut self,
        address: IpAddr,
        name: &[u8],
        state: u32,
    ) -> Vec<Grant<Waiter>> {
        let grants = self.beside.manager.rebooted(&mut self.tables, address, name, state);
        self.settle();
        grants
    }

    /// Notes which hosts hold nothing any more.
    pub(super) fn settle(&mut self) {
        for client in self.tables.take_left() {
            if let Some(host) = Host::of(&client) {
                self.beside.monitored.settle(&host, self.tables.has(&client));
            }
        }
    }

    /// Has those of `hosts` that hold no locks monitored no longer, and gives them.
    pub(super) fn take_without_locks(
        &mut self,
        hosts: &[Arc<MonitoredHost>],
    ) -> Vec<Arc<MonitoredHost>> {
        let mut taken = Vec::new();
        for host in hosts {
            let known = Host::new(host.address, &host.name);
            if self.tables.has(&known.client()) {
                self.beside.monitored.settle(&known, true);
            } else {
                self.beside.monitored.remove(host);
                taken.push(Arc::clone(host));
            }
        }
        taken
    }
}
