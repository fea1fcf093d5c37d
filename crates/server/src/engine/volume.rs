//! A volume as the data plane serves it.

use super::Workers;
use super::stats::Stats;
use crate::clock::SystemClock;
use crate::session::smb::NameLocks;
use crate::session::{Locks, NfsView};
use crate::sync::{Arc, AtomicU64};
use crate::worker::VolumeGate;
use weir_catalog::Volume;
use weir_core::{Mono, ObjectKey, VolumeId};
use weir_gate::Charged;
use weir_locks::VolumeFilters;
use weir_qos::Cost;
use weir_qos::verdict::Reading;
use weir_store::{StoreControl, VolumeStore};

/// The state that lasts while a volume is served: its store, its gate, its counters. It belongs to
/// no protocol.
pub(crate) struct ServedVolume {
    pub(crate) id: VolumeId,
    pub(crate) store: VolumeStore,
    /// The same store for protocols whose clients ask for stable names themselves.
    unsynced: VolumeStore,
    pub(crate) gate: Arc<VolumeGate>,
    pub(crate) stats: Stats,
    /// The locks of all volumes.
    pub(crate) locks: Arc<Locks>,
    /// Which files locks or deny modes may stand on.
    pub(crate) filters: Arc<VolumeFilters>,
    /// The order of renames and deletions over SMB.
    pub(crate) names: NameLocks,
    /// The workers, one of which polls the gate.
    pub(crate) workers: Arc<Workers>,
    /// Operations that it had answered when it was last examined for being idle.
    pub(super) operations_seen: AtomicU64,
}

impl ServedVolume {
    /// A volume that no client has used yet. Its table among `locks` begins.
    pub(super) fn new(
        id: VolumeId,
        store: VolumeStore,
        gate: VolumeGate,
        stats: Stats,
        workers: Arc<Workers>,
        locks: Arc<Locks>,
    ) -> Self {
        let filters = locks.volume_opened(id);
        let (gate, operations_seen) = (Arc::new(gate), AtomicU64::new(0));
        let unsynced = store.unsynced();
        let names = NameLocks::default();
        Self { id, store, unsynced, gate, stats, locks, filters, names, workers, operations_seen }
    }

    /// The store for protocols whose clients ask for stable names themselves.
    pub(crate) fn unsynced(&self) -> &VolumeStore {
        &self.unsynced
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

    /// The volume's counters `now`; nothing if no client ever used it.
    pub(crate) fn read(&self, now: Mono) -> Option<Reading> {
        let mut reading = self.stats.read(now)?;
        self.gate.read(&mut reading);
        Some(reading)
    }
}

/// A served volume, its views for protocols, and its configuration in one snapshot.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) volume: Arc<ServedVolume>,
    pub(crate) nfs: Arc<NfsView>,
    pub(crate) config: Arc<Volume>,
}
