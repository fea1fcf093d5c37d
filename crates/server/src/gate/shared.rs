//! The budget that the volumes of a pool share, and the turns of its volumes. Waiting requests stay
//! in each volume's own gate; the order and the arithmetic are `weir-qos`'s.

use super::{Gate, Queued, Released, Stopped};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, Weak, lock};
use std::collections::BTreeMap;
use weir_core::{Mono, VolumeId};
use weir_qos::{Limits, Meters, Share, Shares, Step};

/// The gate of a shared pool.
pub(crate) struct PoolGate<T> {
    pub(super) budget: Meters,
    /// Taken before the lock of any volume.
    pub(super) sharing: Mutex<Sharing<T>>,
    /// The worker that asks again; meaningful while somebody waits.
    pub(super) pumper: AtomicUsize,
    /// Time of the worker's next poll, as with a volume of its own.
    pub(super) armed: AtomicU64,
}

/// The gates of the volumes, and their order.
pub(super) struct Sharing<T> {
    pub(super) shares: Shares,
    gates: BTreeMap<u32, Weak<Gate<T>>>,
}

impl<T> Default for Sharing<T> {
    fn default() -> Self {
        Self { shares: Shares::new(), gates: BTreeMap::new() }
    }
}

impl<T> Sharing<T> {
    pub(super) fn add(&mut self, id: VolumeId, share: Share, gate: &Arc<Gate<T>>) {
        self.shares.set(id.0, share);
        self.gates.insert(id.0, Arc::downgrade(gate));
    }

    pub(super) fn remove(&mut self, budget: &Meters, id: VolumeId) {
        self.shares.remove(budget, id.0);
        self.gates.remove(&id.0);
    }
}

impl<T: Queued> PoolGate<T> {
    /// A pool without volumes.
    pub(crate) fn new(budget: Limits) -> Self {
        Self {
            budget: Meters::new(budget),
            sharing: Mutex::default(),
            pumper: AtomicUsize::new(0),
            armed: AtomicU64::new(u64::MAX),
        }
    }

    /// Puts another budget in force for the next decision. Pump it afterwards.
    pub(crate) fn set_budget(&self, budget: Limits, now: Mono) {
        let _sharing = lock(&self.sharing);
        self.budget.set(budget, now);
    }

    /// The worker that asks it again, and the gate of a volume by which to ask.
    pub(crate) fn door(&self) -> Option<(usize, Arc<Gate<T>>)> {
        let gate = lock(&self.sharing).gates.values().find_map(Weak::upgrade)?;
        Some((self.pumper.load(Ordering::Relaxed), gate))
    }

    pub(super) fn change(&self, id: VolumeId, share: Share) {
        lock(&self.sharing).shares.set(id.0, share);
    }

    /// Releases all that may go now, of any volume; answers when to ask again, if anybody still
    /// waits.
    pub(super) fn pump(
        &self,
        now: Mono,
        released: &mut Vec<Released<T>>,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Mono> {
        let mut sharing = lock(&self.sharing);
        let Sharing { shares, gates } = &mut *sharing;
        shares.poll(&self.budget, now, |id| match gates.get(&id).and_then(Weak::upgrade) {
            Some(gate) => gate.step(&self.budget, now, released, resumed),
            None => Step::Nothing,
        })
    }
}
