//! The promises of a catalogue that another gateway changed: the same that the rules of each change
//! keep on this one.

use crate::cluster::Reach;
use crate::error::{CatalogError, Result};
use crate::model::Pool;
use crate::snapshot::Snapshot;
use weir_core::VolumeId;

/// Checks that the pools that were reached carry their volumes.
///
/// # Errors
/// `Damaged` where one does not.
pub(crate) fn check(snapshot: &Snapshot, reach: Reach) -> Result<()> {
    let check = |pool: &Pool| {
        let demands = snapshot.volumes_of(pool.id).map(|volume| volume.demand());
        pool.contract().check(demands).map_err(|rule| {
            let broken = CatalogError::Infeasible { pool: pool.name.clone(), rule };
            CatalogError::Damaged(broken.to_string())
        })
    };
    match reach {
        Reach::Nothing | Reach::Accounts => Ok(()),
        Reach::Everything => snapshot.pools().try_for_each(|pool| check(pool)),
        Reach::Volume(id) => {
            let pool = snapshot.volume(VolumeId(id)).and_then(|volume| snapshot.pool(volume.pool));
            pool.map_or(Ok(()), |pool| check(pool))
        }
    }
}
