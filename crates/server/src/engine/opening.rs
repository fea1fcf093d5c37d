//! Opening volumes, many at a time: a server has thousands, and each waits for the disk at its
//! start.
//!
//! Here is who opens what and where failures go; what it takes to open one is the store's.

use super::stats::Stats;
use super::{Engine, ServedVolume};
use crate::gate::Gate;
use crate::plane::PlaneError;
use crate::sync::{Arc, AtomicUsize, Ordering, lock};
use std::collections::BTreeMap;
use std::thread::{Builder, scope};
use weir_catalog::{Snapshot, Volume};
use weir_core::{Clock, PoolId, Remembered};
use weir_nfs::v3;
use weir_store::LocalStore;

/// Volumes of one server differ in the low half of their fsid; this is the high half.
const FSID_PREFIX: u64 = 0x5745_4952 << 32;

/// Volumes that are opened at once: while some wait for the disk, others have the processors.
const AT_ONCE: usize = 8;

/// A volume that is open, or why not.
pub(super) type Opened = Result<Arc<ServedVolume>, PlaneError>;

/// The error of each pool, if it has one.
type Claims = BTreeMap<PoolId, Option<String>>;

impl Engine {
    /// Opens volumes of `snapshot`; gives them in the same order.
    pub(super) fn open_all(&self, snapshot: &Snapshot, specs: &[&Volume]) -> Vec<Opened> {
        let claims = claim_pools(snapshot, specs);
        let (next, part) = (AtomicUsize::new(0), AT_ONCE.min(specs.len()));
        let open = || {
            let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
            let mine = mine.map_while(|at| Some((at, *specs.get(at)?)));
            let opened = |(at, spec)| (at, self.open(snapshot, &claims, spec));
            mine.map(opened).collect::<Vec<_>>()
        };
        let opened = scope(|threads| {
            // Without more threads, opening takes longer.
            let start = |_| Builder::new().spawn_scoped(threads, open).ok();
            let others: Vec<_> = (1..part).filter_map(start).collect();
            let mut all = open();
            all.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
            all
        });
        // The volumes that a panicked thread had opened are unknown.
        let lost = |spec: &&Volume| Err(failed(spec, &"opening it failed with an internal error"));
        let mut all: Vec<_> = specs.iter().map(lost).collect();
        for (at, opened) in opened {
            if let Some(place) = all.get_mut(at) {
                *place = opened;
            }
        }
        all
    }

    /// Remembers the replies to calls that earlier processes have carried out on this volume.
    fn remember_calls(&self, volume: &v3::Volume<LocalStore>) {
        let now = self.clock.now();
        for Remembered { call, made } in volume.store.remembered() {
            let made = made.map(|key| volume.seal(key));
            let reply = v3::again(call.procedure, call.xid, made.as_ref(), Vec::new());
            if let Some(reply) = reply {
                self.clients.remember(&call, volume.id, &reply, now);
            }
        }
    }

    fn open(&self, snapshot: &Snapshot, claims: &Claims, spec: &Volume) -> Opened {
        if let Some(Some(wrong)) = claims.get(&spec.pool) {
            return Err(failed(spec, wrong));
        }
        snapshot.check_tree(spec).map_err(|error| failed(spec, &error))?;
        let options = weir_store::Options {
            quota_bytes: spec.quota_bytes,
            namespace_durability: self.settings.namespace_durability,
            metadata_cache: self.settings.metadata_cache,
            cached_objects_max: self.settings.cached_objects_max,
            descriptors: Arc::clone(&self.settings.descriptors),
            pool: Arc::clone(&self.settings.pool),
        };
        let store =
            LocalStore::open(&spec.directory, &options).map_err(|error| failed(spec, &error))?;
        let nfs = v3::Volume {
            id: spec.id,
            fsid: FSID_PREFIX | u64::from(spec.id.0),
            store,
            keys: self.keys.clone(),
            verifier: self.verifier,
        };
        if !nfs.store.handles_persist() {
            tracing::warn!(
                volume = %spec.name,
                "file handles are not persistent: run with CAP_DAC_READ_SEARCH for handles that survive a restart"
            );
        }
        self.remember_calls(&nfs);
        let gate = Gate::new(spec.id, spec.limits, Arc::clone(&self.parked));
        if let Some(left) = lock(&self.credits).remove(&spec.id) {
            gate.set_credits(left, self.clock.now());
        }
        let histograms = self.settings.histograms.contains(&spec.name);
        let stats = Stats::new(self.workers.count(), histograms);
        Ok(Arc::new(ServedVolume::new(nfs, gate, stats, Arc::clone(&self.workers))))
    }
}

/// Claims the pools of these volumes, each once.
fn claim_pools(snapshot: &Snapshot, specs: &[&Volume]) -> Claims {
    let mut claims = Claims::new();
    for spec in specs {
        let claim = || snapshot.claim_pool(spec.pool).err().map(|error| error.to_string());
        claims.entry(spec.pool).or_insert_with(claim);
    }
    claims
}

fn failed(spec: &Volume, reason: &impl ToString) -> PlaneError {
    PlaneError::Volume { name: spec.name.clone(), reason: reason.to_string() }
}
