//! etcd and Ceph of the simulated world.

use super::machine::clock;
use crate::change::{Change, Transaction};
use crate::event::{Kept, LeaseRequest};
use crate::id::{Barrier, GatewayId, Generation, Life, SessionId};
use crate::records::View;
use crate::timing::LEASE;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use weir_core::Mono;

/// A request to etcd.
#[derive(Clone)]
pub(super) enum Request {
    Lease(Life, LeaseRequest),
    /// A life that ends in order ends its lease.
    Release(Life),
    Change(Transaction),
    Acknowledge(GatewayId, Generation),
}

/// An answer of etcd.
pub(super) enum Answer {
    Lease(Kept),
    Changed(bool),
    None,
}

pub(super) struct Etcd {
    pub(super) view: Arc<View>,
    expiries: BTreeMap<GatewayId, Mono>,
    rate: i64,
    pub(super) lease: Duration,
    /// It carries nothing out until then.
    pub(super) down_until: u64,
    /// Requests take long until then.
    pub(super) slow_until: u64,
}

impl Etcd {
    pub(super) fn new(rate: i64) -> Self {
        Self {
            view: Arc::default(),
            expiries: BTreeMap::new(),
            rate,
            lease: LEASE,
            down_until: 0,
            slow_until: 0,
        }
    }

    /// Carries a request out. The change that happened is returned beside the answer.
    pub(super) fn carry_out(&mut self, now: u64, request: Request) -> (Answer, Option<Change>) {
        let local = Mono(clock(self.rate, now));
        match request {
            Request::Lease(life, LeaseRequest::Attach) => {
                if !self.view.is_member(life) {
                    return (Answer::Lease(Kept::No), None);
                }
                self.expiries.insert(life.gateway, local + self.lease);
                self.write(|view| {
                    view.attached.insert(life.gateway, life.number);
                });
                (Answer::Lease(Kept::Yes), None)
            }
            Request::Lease(life, LeaseRequest::Renew) => {
                let expiry = self.expiries.get_mut(&life.gateway).filter(|expiry| **expiry > local);
                let Some(expiry) = expiry.filter(|_| self.view.is_attached(life)) else {
                    return (Answer::Lease(Kept::No), None);
                };
                *expiry = local + self.lease;
                (Answer::Lease(Kept::Yes), None)
            }
            Request::Release(life) => {
                if self.view.is_attached(life) {
                    self.expiries.remove(&life.gateway);
                    self.write(|view| {
                        view.attached.remove(&life.gateway);
                    });
                }
                (Answer::None, None)
            }
            Request::Change(transaction) => {
                if !transaction.is_current(&self.view) {
                    return (Answer::Changed(false), None);
                }
                self.change(&transaction.change);
                (Answer::Changed(true), Some(transaction.change))
            }
            Request::Acknowledge(gateway, generation) => {
                self.write(|view| {
                    view.acknowledged.insert(gateway, generation);
                });
                (Answer::None, None)
            }
        }
    }

    pub(super) fn change(&mut self, change: &Change) {
        let records = self.view.records.with(change);
        let ended: Vec<GatewayId> = self.view.records.ended_in(&records).collect();
        self.write(|view| {
            view.records = records.into();
            view.attached.retain(|gateway, _| !ended.contains(gateway));
        });
    }

    fn write(&mut self, alter: impl FnOnce(&mut View)) {
        let view = Arc::make_mut(&mut self.view);
        view.revision += 1;
        alter(view);
    }

    /// Removes the rows whose leases are over; whether any was. `spare` may leave one for later.
    pub(super) fn expire(&mut self, now: u64, mut spare: impl FnMut() -> bool) -> bool {
        let local = Mono(clock(self.rate, now));
        let expiries = &self.expiries;
        let due = |gateway: &GatewayId| expiries.get(gateway).is_none_or(|expiry| *expiry <= local);
        let over = self.view.attached.keys().filter(|gateway| due(gateway));
        let over: Vec<GatewayId> = over.copied().filter(|_| !spare()).collect();
        if !over.is_empty() {
            self.write(|view| view.attached.retain(|gateway, _| !over.contains(gateway)));
        }
        !over.is_empty()
    }

    /// A new leader gives every lease its whole length again.
    pub(super) fn elect(&mut self, now: u64) {
        let until = Mono(clock(self.rate, now)) + self.lease;
        for expiry in self.expiries.values_mut() {
            *expiry = until;
        }
    }
}

/// The sessions of gateways and their blocklist.
#[derive(Default)]
pub(super) struct Ceph {
    epoch: u64,
    sessions: u32,
    blocklist: Vec<SessionId>,
}

impl Ceph {
    pub(super) fn mount(&mut self) -> SessionId {
        self.sessions += 1;
        SessionId { address: ([10, 0, 0, 1], 0).into(), nonce: self.sessions }
    }

    /// The blocklist of `sessions` is in force from now on.
    pub(super) fn blocklist(&mut self, sessions: &[SessionId]) {
        self.epoch += 1;
        self.blocklist.extend(sessions);
    }

    pub(super) fn barrier(&self) -> Barrier {
        Barrier(self.epoch)
    }

    pub(super) fn refuses(&self, sessions: &[SessionId]) -> bool {
        sessions.iter().all(|session| self.blocklist.contains(session))
    }
}
