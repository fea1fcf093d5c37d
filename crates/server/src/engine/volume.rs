//! A volume as the data plane serves it, and what a caller may do with it.

use super::Workers;
use super::stats::Stats;
use crate::clock::SystemClock;
use crate::drc::DrcEntry;
use crate::gate::Charged;
use crate::sync::{Arc, AtomicU64};
use crate::worker::VolumeGate;
use std::net::IpAddr;
use weir_catalog::{Access, ExportRule, Squash, Volume};
use weir_core::{Mono, ObjectKey, Rights, VolumeId};
use weir_nfs::rpc::Credential;
use weir_qos::Cost;
use weir_qos::verdict::Reading;
use weir_store::LocalStore;

/// The state that lasts while a volume is served: its store, its gate, its counters.
pub(crate) struct ServedVolume {
    pub(crate) id: VolumeId,
    pub(crate) nfs: Arc<weir_nfs::v3::Volume<LocalStore>>,
    pub(crate) gate: Arc<VolumeGate>,
    pub(crate) stats: Stats,
    /// The workers, one of which polls the gate.
    pub(super) workers: Arc<Workers>,
    /// Operations that it had answered when it was looked at whether it rests.
    pub(super) at_rest: AtomicU64,
}

impl ServedVolume {
    /// A volume that nobody has used yet.
    pub(super) fn new(
        nfs: weir_nfs::v3::Volume<LocalStore>,
        gate: VolumeGate,
        stats: Stats,
        workers: Arc<Workers>,
    ) -> Self {
        let (gate, at_rest) = (Arc::new(gate), AtomicU64::new(0));
        Self { id: nfs.id, nfs: Arc::new(nfs), gate, stats, workers, at_rest }
    }

    /// The volume for the request with this entry: a non-idempotent call is kept on
    /// record with its change.
    pub(crate) fn nfs_for(
        &self,
        entry: Option<&DrcEntry>,
    ) -> Arc<weir_nfs::v3::Volume<LocalStore>> {
        match entry.and_then(DrcEntry::on_record) {
            Some(call) => Arc::new(self.nfs.with_store(self.nfs.store.for_call(call))),
            None => Arc::clone(&self.nfs),
        }
    }

    /// The clock of the server.
    pub(crate) fn clock(&self) -> SystemClock {
        self.workers.clock()
    }

    /// Charges an operation of `cost`, which reads or writes `file` if it names one, if the
    /// contract admits it at once. An operation that costs nothing always goes.
    pub(crate) fn try_pass(
        &self,
        cost: Cost,
        file: Option<&ObjectKey>,
        now: Mono,
    ) -> Option<Charged> {
        if cost == Cost::ZERO {
            return Some(Charged::default());
        }
        self.gate.try_pass(cost, file, now)
    }

    /// The volume's counters `now`; nothing if nobody ever used it.
    pub(crate) fn read(&self, now: Mono) -> Option<Reading> {
        let mut reading = self.stats.read(now)?;
        self.gate.read(&mut reading);
        Some(reading)
    }
}

/// A served volume with the rules of one snapshot.
#[derive(Clone)]
pub(crate) struct Mounted {
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) spec: Arc<Volume>,
}

impl Mounted {
    /// The rights of a caller from `peer`, or none if no export rule names that address or the
    /// credential is of a flavor not spoken here.
    pub(crate) fn rights(&self, peer: IpAddr, credential: &Credential) -> Option<Rights> {
        rights(self.spec.rule_for(peer)?, credential)
    }

    /// The user whose groups are to be looked up for a caller from `peer`, and the rule that then
    /// decides about its rights. Nobody's for those whose groups decide nothing.
    pub(crate) fn managed(
        &self,
        peer: IpAddr,
        credential: &Credential,
    ) -> Option<(u32, &ExportRule)> {
        let rule = self.spec.rule_for(peer)?;
        match credential {
            Credential::Sys(auth) if !rule.identity(&auth.credentials).is_root() => {
                (rule.squash != Squash::All).then_some((auth.credentials.uid, rule))
            }
            _ => None,
        }
    }
}

/// The identity and rights that `rule` leaves to a caller.
pub(crate) fn rights(rule: &ExportRule, credential: &Credential) -> Option<Rights> {
    Some(Rights { cred: identity(rule, credential)?, read_only: rule.access == Access::ReadOnly })
}

fn identity(rule: &ExportRule, credential: &Credential) -> Option<weir_core::Credentials> {
    match credential {
        Credential::Sys(auth) => Some(rule.identity(&auth.credentials)),
        Credential::None => Some(rule.anonymous()),
        Credential::Other(_) => None,
    }
}
