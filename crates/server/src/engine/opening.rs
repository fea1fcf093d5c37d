//! Opening volumes, many at a time: a server has thousands, and each waits for the disk at its
//! start.
//!
//! Here is who opens what and where failures go; what it takes to open one is the store's.

use super::stats::Stats;
use super::{Engine, Served, ServedVolume};
use crate::ceph::CephSessions;
use crate::serve::random;
use crate::session::{nfs_view, remember_calls};
use crate::sync::{Arc, AtomicUsize, Ordering, lock};
use std::collections::BTreeMap;
use std::thread::{Builder, scope};
use weir_catalog::{Pool, Snapshot, Volume};
use weir_control::plane::PlaneError;
use weir_core::{Clock, PoolId};
use weir_gate::Gate;
use weir_store::{StoreControl, VolumeStore};

/// Volumes that are worked on at once: while some wait for the disk, others have the processors.
const AT_ONCE: usize = 8;

/// A volume that is open, or why not.
pub(super) type Opened = Result<Served, PlaneError>;

/// The error of each pool, if it has one.
type Claims = BTreeMap<PoolId, Option<String>>;

impl Engine {
    /// Opens volumes of `snapshot`; gives them in the same order.
    pub(super) fn open_all(&self, snapshot: &Snapshot, configs: &[&Arc<Volume>]) -> Vec<Opened> {
        let claims = self.claim_pools(snapshot, configs);
        let opened = at_once(configs, |config| self.open(snapshot, &claims, config));
        // The volumes that a panicked thread had opened are unknown.
        let lost =
            |config: &Arc<Volume>| failed(config, &"opening it failed with an internal error");
        let pairs = configs.iter().zip(opened);
        pairs.map(|(config, one)| one.unwrap_or_else(|| Err(lost(config)))).collect()
    }

    fn open(&self, snapshot: &Snapshot, claims: &Claims, config: &Arc<Volume>) -> Opened {
        if self.closed.load(Ordering::Relaxed) {
            return Err(failed(config, &"the server is stopping"));
        }
        if let Some(Some(wrong)) = claims.get(&config.pool) {
            return Err(failed(config, wrong));
        }
        let options = weir_store::Options {
            quota_bytes: config.quota_bytes,
            namespace_durability: self.settings.namespace_durability,
            metadata_cache: self.settings.caches_metadata_of(config),
            cached_objects_max: self.settings.cached_objects_max,
            descriptors: Arc::clone(&self.settings.descriptors),
            pool: Arc::clone(&self.settings.pool),
        };
        let pool = snapshot.pool(config.pool);
        let (store, verifier) = match pool.and_then(|pool| self.ceph_of(pool)) {
            // A volume may leave, lose what was not stable, and come back.
            Some(ceph) => (ceph.open(snapshot, config, &options), random()),
            None => (open_local(snapshot, config, &options), Ok(self.verifier)),
        };
        let store = store.map_err(|error| failed(config, &error))?;
        let verifier = verifier.map_err(|error| failed(config, &error))?;
        if !store.handles_persist() {
            tracing::warn!(
                volume = %config.name,
                "file handles are not persistent: run with CAP_DAC_READ_SEARCH for handles that survive a restart"
            );
        }
        let nfs = Arc::new(nfs_view(config.id, store.clone(), &self.keys, verifier));
        remember_calls(&nfs, &self.clients, self.clock.now());
        let gate = Gate::new(config.id, config.limits, Arc::clone(&self.parked));
        if let Some(left) = lock(&self.credits).remove(&config.id) {
            gate.set_credits(left, self.clock.now());
        }
        let histograms = self.settings.histograms.contains(&config.name);
        let stats = Stats::new(self.workers.count(), histograms);
        let workers = Arc::clone(&self.workers);
        let locks = Arc::clone(&self.locks);
        let volume = Arc::new(ServedVolume::new(config.id, store, gate, stats, workers, locks));
        Ok(Served { volume, nfs, config: Arc::clone(config) })
    }

    /// The sessions through which `pool` is reached, if it is on CephFS and there are any.
    fn ceph_of(&self, pool: &Pool) -> Option<&CephSessions> {
        self.ceph.as_ref().filter(|_| pool.ceph.is_some())
    }

    /// Claims the pools of these volumes, each once.
    fn claim_pools(&self, snapshot: &Snapshot, configs: &[&Arc<Volume>]) -> Claims {
        let mut claims = Claims::new();
        for config in configs {
            let claim = || {
                let pool = snapshot.pool(config.pool)?;
                match self.ceph_of(pool) {
                    Some(ceph) => ceph.claim(snapshot, pool).err(),
                    None => snapshot.claim_pool(pool.id).err().map(|error| error.to_string()),
                }
            };
            claims.entry(config.pool).or_insert_with(claim);
        }
        claims
    }

    /// Lets the tree of a volume on CephFS that is open follow it into another pool. The tree of
    /// one on this machine followed with the change in the catalogue.
    pub(super) fn follow_place(&self, snapshot: &Snapshot, old: &Volume, new: &Volume) {
        let pool = snapshot.pool(new.pool).filter(|_| old.directory != new.directory);
        if let Some(ceph) = pool.and_then(|pool| self.ceph_of(pool))
            && let Err(error) = ceph.settle(snapshot, new)
        {
            tracing::warn!(volume = %new.name, %error, "the files of a volume are moved when it is opened next");
        }
    }
}

/// The results of `work` for all `items`, in the same order, several at a time. None for those
/// that a panicked thread had.
pub(crate) fn at_once<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<Option<R>> {
    let (next, part) = (AtomicUsize::new(0), AT_ONCE.min(items.len()));
    let some = || {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
        let mine = mine.map_while(|at| Some((at, items.get(at)?)));
        mine.map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let done = scope(|threads| {
        // Without more threads, it takes longer.
        let start = |_| Builder::new().spawn_scoped(threads, some).ok();
        let others: Vec<_> = (1..part).filter_map(start).collect();
        let mut all = some();
        all.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
        all
    });
    let mut all: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for (at, result) in done {
        if let Some(place) = all.get_mut(at) {
            *place = Some(result);
        }
    }
    all
}

fn open_local(
    snapshot: &Snapshot,
    config: &Volume,
    options: &weir_store::Options,
) -> Result<VolumeStore, String> {
    snapshot.check_tree(config).map_err(|error| error.to_string())?;
    VolumeStore::open_local(&config.directory, options).map_err(|error| error.to_string())
}

fn failed(config: &Volume, reason: &impl ToString) -> PlaneError {
    PlaneError::Volume { name: config.name.clone(), reason: reason.to_string() }
}
