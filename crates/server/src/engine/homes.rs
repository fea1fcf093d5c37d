//! The volumes that this server serves: all of the catalogue, or as a gateway of a cluster those of
//! the groups that have it as their home.
//!
//! Not here: which groups those are (`weir-cluster`), their addresses and their clients' locks
//! ([`crate::groups`]).

use super::credits::Credits;
use super::{Engine, Served, ServedVolume};
use crate::sync::{Arc, lock};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};
use weir_catalog::{Snapshot, Volume};
use weir_cluster::GroupId;
use weir_control::plane::PlaneError;
use weir_core::VolumeId;

/// Time between two looks whether requests still hold a volume that leaves.
const LOOK: Duration = Duration::from_millis(2);

/// Which of the catalogue's volumes are served.
#[derive(Clone, Debug)]
pub(crate) enum Homes {
    /// Every volume.
    All,
    /// The volumes of these groups.
    Of(BTreeSet<GroupId>),
}

impl Homes {
    /// Is the volume served here?
    pub(super) fn has(&self, config: &Volume) -> bool {
        match self {
            Self::All => true,
            Self::Of(_) => config.address.is_some_and(|group| self.has_group(group)),
        }
    }

    /// Are the volumes of `group` served here?
    pub(super) fn has_group(&self, group: GroupId) -> bool {
        match self {
            Self::All => true,
            Self::Of(groups) => groups.contains(&group),
        }
    }
}

impl Engine {
    /// Serves the volumes of `group` too. A volume that cannot be opened is not served; the next
    /// call tries again.
    ///
    /// # Errors
    /// The first volume of the group that is not served.
    pub(crate) fn adopt_group(&self, group: GroupId) -> Result<(), PlaneError> {
        let mut applied = lock(&self.applied);
        if let Homes::Of(groups) = &mut *lock(&self.homes) {
            groups.insert(group);
        }
        let snapshot = Arc::clone(self.served.load().snapshot());
        // Errors of other groups' volumes are not this one's.
        let _others = self.apply_to(&mut applied, &snapshot);
        let served = self.served.load();
        let missing = |config: &&Arc<Volume>| served.by_id(config.id).is_none();
        match volumes_of(served.snapshot(), group).find(missing) {
            None => Ok(()),
            Some(config) => Err(PlaneError::Volume {
                name: config.name.clone(),
                reason: "it could not be opened; the log says why".to_owned(),
            }),
        }
    }

    /// Serves the volumes of `group` no more: requests that come for them are dropped without a
    /// reply. Gives those that were open.
    pub(crate) fn release_group(&self, group: GroupId) -> Vec<Arc<ServedVolume>> {
        let mut applied = lock(&self.applied);
        let old = self.served.load_full();
        if let Homes::Of(groups) = &mut *lock(&self.homes) {
            groups.remove(&group);
        }
        let _others = self.apply_to(&mut applied, old.snapshot());
        let served = self.served.load();
        let gone = |one: &&Served| served.by_id(one.config.id).is_none();
        old.all().filter(gone).map(|one| Arc::clone(&one.volume)).collect()
    }

    /// Waits until no request holds any of `volumes`, which were released, at most for `patience`.
    /// Gives those that are free, and those that are still held.
    pub(crate) fn wait_for_requests(
        &self,
        mut volumes: Vec<Arc<ServedVolume>>,
        patience: Duration,
    ) -> (Vec<ServedVolume>, Vec<Arc<ServedVolume>>) {
        let mut free = Vec::new();
        let began = Instant::now();
        loop {
            // Views that nobody loads would keep the volumes.
            let mut all_there = self.roll_call();
            let _ended = all_there.blocking_recv();
            let mut held = Vec::new();
            for volume in volumes {
                match Arc::try_unwrap(volume) {
                    Ok(volume) => free.push(volume),
                    Err(volume) => held.push(volume),
                }
            }
            if held.is_empty() || began.elapsed() >= patience {
                return (free, held);
            }
            volumes = held;
            sleep(LOOK);
        }
    }

    /// Volumes that are opened from now on have the credits that `left` says, if it says any.
    pub(crate) fn take_credits(&self, mut left: Credits, volumes: &[VolumeId]) {
        left.retain(|id, _| volumes.contains(id));
        lock(&self.credits).extend(left);
    }

    /// The ids of the group's volumes in the snapshot that is served.
    pub(crate) fn volumes_of(&self, group: GroupId) -> Vec<VolumeId> {
        volumes_of(self.served.load().snapshot(), group).map(|config| config.id).collect()
    }
}

fn volumes_of(snapshot: &Snapshot, group: GroupId) -> impl Iterator<Item = &Arc<Volume>> {
    snapshot.volumes().filter(move |config| config.address == Some(group))
}
