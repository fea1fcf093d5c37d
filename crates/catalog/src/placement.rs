//! The file system of each pool, and the commitment of its capacity by contracts. The arithmetic is
//! in [`weir_qos::admission`].

use crate::calibration::{CALIBRATION_POOL, Calibration};
use crate::devices::Devices;
use crate::filesystem::{Filesystem, Place};
use crate::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_core::PoolId;
use weir_qos::Ceiling;
use weir_qos::admission::{Admission, Cell};

/// The snapshot with the file systems of its pools and calibrations.
pub(crate) fn placed(snapshot: Snapshot, devices: &Devices, admission: &Admission) -> Snapshot {
    let filesystems = filesystems(&snapshot, devices, admission);
    snapshot.with_filesystems(filesystems)
}

/// All file systems of `snapshot`: calibrated or with pools on them. Asks no disk. A pool that is
/// away or on CephFS stands by itself, and what was measured where something is away is left out.
fn filesystems(snapshot: &Snapshot, devices: &Devices, admission: &Admission) -> Vec<Filesystem> {
    let mut found: BTreeMap<Place, Filesystem> = BTreeMap::new();
    // The places of volumes that count by themselves.
    let mut places: BTreeMap<PoolId, Place> = BTreeMap::new();
    for pool in snapshot.pools() {
        let device = devices.of_pool(&pool.directory).filter(|_| pool.ceph.is_none());
        let place = device.map_or(Place::Away(pool.id), Place::Device);
        let there = found.entry(place).or_insert_with(|| Filesystem::new(place, &pool.directory));
        there.pools.push(pool.id);
        if pool.name == CALIBRATION_POOL {
            continue;
        }
        match pool.shared_budget() {
            Some(budget) => {
                there.committed = there.committed.with(budget, Ceiling::default());
            }
            None => {
                places.insert(pool.id, place);
            }
        }
    }
    for volume in snapshot.volumes() {
        if let Some(place) = places.get(&volume.pool)
            && let Some(there) = found.get_mut(place)
            && let Some(pool) = snapshot.pool(volume.pool)
        {
            let given = pool.gives(volume).under(pool.model.volume_ceiling());
            there.committed = there.committed.with(given, volume.terms.ceiling);
        }
    }
    for calibration in snapshot.calibrations() {
        let Some(device) = devices.of_calibration(&calibration.directory) else { continue };
        let place = Place::Device(device);
        let new = || Filesystem::new(place, &calibration.directory);
        let there = found.entry(place).or_insert_with(new);
        // Two of one file system can be where it isn't certain that they are of one: the one that
        // is certainly of this holds, and else the newer.
        let rank = |one: &Calibration| (devices.is_certain(snapshot, &one.directory), one.at);
        if there.calibration.as_ref().is_none_or(|other| rank(other) < rank(calibration)) {
            let cells: Vec<Cell> = calibration.cells.iter().map(|one| one.cell).collect();
            there.holds = admission.plan.holds(&cells);
            there.allowed = admission.allows(there.holds);
            there.directory.clone_from(&calibration.directory);
            there.calibration = Some(Arc::clone(calibration));
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort_by(|one, other| one.directory.cmp(&other.directory));
    all
}
