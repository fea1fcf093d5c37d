//! The catalogue of a cluster as a stand-alone data directory.

use super::memory;
use crate::cluster::{self, ClusterPlace, Secret};
use crate::directory::{self, Lock};
use crate::error::{CatalogError, ClusterError, Result};
use crate::snapshot::Snapshot;
use crate::{image, merge, restore, rows};
use rusqlite::{Connection, params};
use std::path::Path;

/// Writes the catalogue of a cluster to `directory`, as a stand-alone data directory with its
/// secrets and tokens, without gateways and addresses. Ids go on far ahead, as in a restore. Each
/// pool gets the directory `pools_in/NAME`, or one in the data directory, in which its volumes are
/// empty: their files stay in CephFS. The result is what a server will serve.
///
/// If it is interrupted, no server starts with what is there, and it can be repeated.
///
/// # Errors
/// `CatalogExists` if there is a catalogue; `SecretExists`, `Locked`, `NotDataDirectory`,
/// `ForeignOwner`, `BadPath`, `Io`; of the cluster those of
/// [`Catalog::open_in_cluster`](crate::Catalog::open_in_cluster).
pub fn export_cluster(
    place: &ClusterPlace,
    directory: &Path,
    pools_in: Option<&Path>,
) -> Result<Snapshot> {
    let mut db = memory()?;
    let secrets = unsealed(place, &mut db)?;
    let image = image::of(&db)?;
    let handles = secrets.iter().find(|(which, _)| *which == Secret::Handles);
    let no_key = || ClusterError::WrongKey { key: Secret::Handles.path() };
    let handles = handles.and_then(|(_, handles)| <[u8; 16]>::try_from(&**handles).ok());
    let handles = handles.ok_or_else(no_key)?;
    merge::leave_cluster(&image)?;
    let directory = directory::prepare(directory)?;
    let _lock = Lock::take(&directory)?;
    if !restore::present(&directory)?.is_empty() {
        return Err(CatalogError::CatalogExists { directory });
    }
    place_pools(&image, &directory, pools_in)?;
    let snapshot = rows::load(&image, &directory)?;
    make_trees(&snapshot)?;
    let others: Vec<_> = secrets.iter().filter(|(which, _)| *which != Secret::Handles).collect();
    for (which, content) in &others {
        let found = directory::read_if_there(&directory, which.file())?;
        if found.is_some_and(|found| found != *content) {
            return Err(ClusterError::SecretExists { path: directory.join(which.file()) }.into());
        }
    }
    // No server starts with a part of it.
    directory::write_whole(&directory, directory::RESTORING, b"")?;
    for (which, content) in others {
        directory::write_whole(&directory, which.file(), content)?;
    }
    // Last, because a server starts with it.
    restore::put(&directory, &image, &handles)?;
    Ok(snapshot)
}

/// Fills `db` with the catalogue of a cluster, and gives its secrets, all at one generation.
fn unsealed(place: &ClusterPlace, db: &mut Connection) -> Result<Vec<(Secret, Vec<u8>)>> {
    let prefix = place.prefix()?;
    let open = |(which, sealed): (Secret, String)| {
        Ok((which, place.key.open(&format!("{prefix}{}", which.path()), &sealed)?))
    };
    cluster::copy(place, db)?.into_iter().map(open).collect()
}

/// Gives all pools directories of this machine.
fn place_pools(image: &Connection, directory: &Path, pools_in: Option<&Path>) -> Result<()> {
    image.execute_batch(
        "UPDATE pools SET directory = NULL, ceph_conf = NULL, ceph_user = NULL, ceph_path = NULL;
         DELETE FROM condemned;
         DELETE FROM calibrations;",
    )?;
    let Some(parent) = pools_in else { return Ok(()) };
    for pool in rows::load(image, directory)?.pools() {
        let path = parent.join(&pool.name);
        directory::check_pool_path(&path, std::iter::empty())?;
        let sql = "UPDATE pools SET directory = ?2 WHERE id = ?1";
        image.execute(sql, params![pool.id.0, path.to_string_lossy()])?;
    }
    Ok(())
}

/// Makes the directories of pools and volumes, as the creation of each would.
fn make_trees(snapshot: &Snapshot) -> Result<()> {
    for pool in snapshot.pools() {
        // A mark of this catalogue was left by an export that was interrupted.
        directory::check_vacant(&pool.directory, snapshot.instance(), |_| false)?;
    }
    for pool in snapshot.pools() {
        directory::claim_pool(&pool.directory, snapshot.instance(), pool.id.0)?;
    }
    snapshot.volumes().try_for_each(|volume| directory::make_volume(&volume.directory))
}
