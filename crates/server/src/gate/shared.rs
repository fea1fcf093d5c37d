//! The budget that the volumes of a pool share, and the turns of its volumes. Waiting requests stay
//! in each volume's own gate; the order and the arithmetic are `weir-qos`'s.

use super::{Stopped, Ticket};
use crate::engine::ServedVolume;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering, Weak, lock};
use std::collections::BTreeMap;
use weir_core::{Mono, VolumeId};
use weir_qos::{Limits, Meters, Share, Shares, Step};

/// The gate of a shared pool.
pub(crate) struct PoolGate {
    pub(super) budget: Meters,
    /// Taken before the lock of any volume.
    pub(super) sharing: Mutex<Sharing>,
    /// The worker that asks again; meaningful while somebody waits.
    pub(super) pumper: AtomicUsize,
    /// Time of the worker's next poll, as with a volume of its own.
    pub(super) armed: AtomicU64,
}

/// The volumes and their order.
#[derive(Default)]
pub(super) struct Sharing {
    pub(super) shares: Shares,
    volumes: BTreeMap<u32, Weak<ServedVolume>>,
}

impl Sharing {
    pub(super) fn add(&mut self, id: VolumeId, share: Share, volume: &Arc<ServedVolume>) {
        self.shares.set(id.0, share);
        self.volumes.insert(id.0, Arc::downgrade(volume));
    }

    pub(super) fn remove(&mut self, budget: &Meters, id: VolumeId) {
        self.shares.remove(budget, id.0);
        self.volumes.remove(&id.0);
    }
}

impl PoolGate {
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

    /// The worker that asks it again, and a volume by which to ask.
    pub(crate) fn door(&self) -> Option<(usize, Arc<ServedVolume>)> {
        let volume = lock(&self.sharing).volumes.values().find_map(Weak::upgrade)?;
        Some((self.pumper.load(Ordering::Relaxed), volume))
    }

    pub(super) fn change(&self, id: VolumeId, share: Share) {
        lock(&self.sharing).shares.set(id.0, share);
    }

    /// Releases all that may go now, of any volume; answers when to ask again, if anybody still
    /// waits.
    pub(super) fn pump(
        &self,
        now: Mono,
        released: &mut Vec<Ticket>,
        resumed: &mut Vec<Stopped>,
    ) -> Option<Mono> {
        let mut sharing = lock(&self.sharing);
        let Sharing { shares, volumes } = &mut *sharing;
        shares.poll(&self.budget, now, |id| match volumes.get(&id).and_then(Weak::upgrade) {
            Some(volume) => volume.gate.step(&self.budget, now, released, resumed),
            None => Step::Nothing,
        })
    }
}
