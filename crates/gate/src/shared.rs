//! The budget that the volumes of a pool share, and the turns of its volumes. Waiting requests stay
//! in each volume's own gate; the order and the arithmetic are `weir-qos`'s.

use super::poller::Poller;
use super::{Gate, Queued, Released, Stopped};
use crate::sync::{Arc, Mutex, Weak, lock};
use std::collections::BTreeMap;
use weir_core::{Mono, ObjectKey, VolumeId};
use weir_qos::{Limits, Meters, Share, Shares, Step, WaitQueue};

/// The gate of a shared pool.
pub struct PoolGate<T> {
    pub(super) budget: Meters,
    /// Taken before the lock of any volume.
    pub(super) sharing: Mutex<Sharing<T>>,
    pub(super) poller: Poller,
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
    pub fn new(budget: Limits) -> Self {
        Self { budget: Meters::new(budget), sharing: Mutex::default(), poller: Poller::default() }
    }

    /// Puts another budget in force for the next decision. Poll it afterwards.
    pub fn set_budget(&self, budget: Limits, now: Mono) {
        let _sharing = lock(&self.sharing);
        self.budget.set(budget, now);
    }

    /// The worker that owns the pool's timer, and the gate of a volume by which to poll the pool.
    pub fn door(&self) -> Option<(usize, Arc<Gate<T>>)> {
        let gate = lock(&self.sharing).gates.values().find_map(Weak::upgrade)?;
        Some((self.poller.owner(), gate))
    }

    pub(super) fn change(&self, id: VolumeId, share: Share) {
        lock(&self.sharing).shares.set(id.0, share);
    }

    /// Notes that a volume may go earlier than its own limits said.
    pub(super) fn again(&self, id: VolumeId) {
        lock(&self.sharing).shares.again(&self.budget, id.0);
    }

    /// Releases all requests that may go now, of any volume; returns the time of the next poll, if
    /// requests still wait.
    pub(super) fn poll(
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

/// The membership of a volume in a pool, under the locks of both. A lone volume has none, and all
/// calls do nothing.
pub(super) struct Member<'a, T> {
    id: VolumeId,
    pool: Option<(&'a PoolGate<T>, &'a mut Shares)>,
}

impl<'a, T: Queued> Member<'a, T> {
    pub(super) fn new(id: VolumeId, pool: Option<(&'a PoolGate<T>, &'a mut Shares)>) -> Self {
        Self { id, pool }
    }

    pub(super) fn is_lone(&self) -> bool {
        self.pool.is_none()
    }

    /// The poller of the pool.
    pub(super) fn poller(&self) -> Option<&'a Poller> {
        self.pool.as_ref().map(|(pool, _)| &pool.poller)
    }

    /// See [`Shares::wake`].
    pub(super) fn wake(&mut self) -> bool {
        let Some((pool, shares)) = &mut self.pool else { return false };
        shares.wake(&pool.budget, self.id.0)
    }

    /// See [`Shares::again`].
    pub(super) fn again(&mut self) {
        if let Some((pool, shares)) = &mut self.pool {
            shares.again(&pool.budget, self.id.0);
        }
    }

    /// See [`Shares::pause`].
    pub(super) fn pause(&mut self) {
        if let Some((pool, shares)) = &mut self.pool {
            shares.pause(&pool.budget, self.id.0);
        }
    }

    /// Notes that the volume's own limits changed, so that they may hold it back no longer.
    pub(super) fn renew<W>(mut self, queue: &WaitQueue<ObjectKey, W>) {
        self.pause();
        if !queue.is_empty() {
            self.wake();
        }
    }
}
