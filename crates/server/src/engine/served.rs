//! The volumes being served at one moment: an immutable set, read without locks.

use super::volume::Served;
use crate::sync::Arc;
use arc_swap::{ArcSwap, Cache};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use weir_catalog::Snapshot;
use weir_core::VolumeId;

/// Volume ids are small numbers that the server chose, and a handle that names one was proved
/// before it is looked up: multiplying spreads them well enough.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The volumes of one snapshot that could be opened.
#[derive(Default)]
pub(crate) struct ServedSet {
    by_id: HashMap<VolumeId, Served, BuildHasherDefault<IdHasher>>,
    /// The catalogue's snapshot, which has the volumes' names.
    snapshot: Arc<Snapshot>,
    /// Volumes of the snapshot may be served by another server.
    shared: bool,
}

impl ServedSet {
    /// None yet of the volumes of `snapshot`, some of which are another server's if it is `shared`.
    pub(crate) fn new(snapshot: Arc<Snapshot>, shared: bool) -> Self {
        let mut by_id = HashMap::default();
        by_id.reserve(snapshot.volumes().len());
        Self { by_id, snapshot, shared }
    }

    /// Adds a volume of the snapshot.
    pub(crate) fn insert(&mut self, served: Served) {
        self.by_id.insert(served.config.id, served);
    }

    /// The volume with this id.
    pub(crate) fn by_id(&self, id: VolumeId) -> Option<&Served> {
        self.by_id.get(&id)
    }

    /// Is the volume served by another server, or about to be served by this one?
    pub(crate) fn is_elsewhere(&self, id: VolumeId) -> bool {
        self.shared && !self.by_id.contains_key(&id) && self.snapshot.volume(id).is_some()
    }

    /// The volume of this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Served> {
        self.by_id(self.snapshot.volume_named(name)?.id)
    }

    /// The catalogue's snapshot.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The volumes that are new since `old`, or whose catalogue entry differs.
    pub(crate) fn changed_since<'a>(&'a self, old: &'a Self) -> impl Iterator<Item = &'a Served> {
        let same = |served: &Served| {
            let before = old.by_id(served.config.id);
            before.is_some_and(|before| Arc::ptr_eq(&before.config, &served.config))
        };
        self.all().filter(move |served| !same(served))
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Served> {
        self.by_id.values()
    }
}

/// A worker's view of the set: one atomic load to see whether it changed.
pub(crate) struct View {
    cache: Cache<Arc<ArcSwap<ServedSet>>, Arc<ServedSet>>,
}

impl View {
    /// A view of `served`.
    pub(crate) fn new(served: Arc<ArcSwap<ServedSet>>) -> Self {
        Self { cache: Cache::new(served) }
    }

    /// The set as it is now.
    pub(crate) fn load(&mut self) -> &Arc<ServedSet> {
        self.cache.load()
    }
}
