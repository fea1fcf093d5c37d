//! Catalogues into a cluster and out of it: looking for one, creating one, importing a stand-alone
//! catalogue or a backup, exporting a data directory.
//!
//! An import replaces everything in one change: it is valid as a whole or not at all. Running
//! gateways notice and must be restarted, because handles, SIDs and passwords are those of the
//! imported catalogue. The cluster keeps its gateways and its addresses ([`merge`]).

use crate::cluster::{
    self, ClusterPlace, ClusterStore, Decision, Guard, Head, Link, Operation, Secret, StoreError,
    Vault,
};
use crate::directory::{self, Lock};
use crate::error::{ClusterError, Result};
use crate::gateway::secret;
use crate::restore::{self, Replace};
use crate::sealer::Sealer;
use crate::{backup, image, merge, owner, rows, schema};
use rusqlite::Connection;
use std::path::Path;

/// How often creating a cluster is tried while answers are lost.
const TRIES: usize = 8;

/// A catalogue to import.
pub struct Import {
    /// The catalogue, in the newest format, in memory.
    image: Connection,
    secrets: Vec<(Secret, Vec<u8>)>,
}

/// The text omits the secrets.
impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").finish_non_exhaustive()
    }
}

impl Import {
    /// The catalogue of the data directory `directory`, which no server uses, with its secrets and
    /// tokens. Changes nothing there.
    ///
    /// # Errors
    /// `Locked`, `NoCatalog`, `ForeignOwner`, `RestoreInterrupted`, `NewerFormat`, `BadSecret`,
    /// `Damaged`, `Io`, `Database`.
    pub fn of_directory(directory: &Path) -> Result<Self> {
        let path = directory::existing_catalog(directory)?;
        owner::check_directory(directory)?;
        directory::check_restored(directory)?;
        let _lock = Lock::take(directory)?;
        let image = schema::newest(&schema::open_as_it_is(&path)?, &path)?;
        let handles = directory::existing_secret(directory)?.to_vec();
        let mut secrets = vec![(Secret::Handles, handles)];
        for which in [Secret::Reports, Secret::Passwords, Secret::Tokens] {
            let found = directory::read_if_there(directory, which.file())?;
            secrets.extend(found.map(|found| (which, found)));
        }
        // Pools without a path of their own are in the data directory.
        let directory = directory.canonicalize().map_err(directory::at(directory))?;
        let pools = directory.join("pools");
        image.execute(
            "UPDATE pools SET directory = ?1 || '/' || id WHERE directory IS NULL
                AND ceph_path IS NULL",
            [pools.to_string_lossy()],
        )?;
        rows::load(&image, &directory)?;
        Ok(Self { image, secrets })
    }

    /// The catalogue in the backup `bytes`, which came from `path`. Its ids go on far ahead, as in
    /// a restore. Passwords are as they were if the cluster still has the key that sealed them.
    ///
    /// # Errors
    /// `NotBackup`, `NewerBackup`, `NewerFormat`, `DamagedBackup`.
    pub fn of_backup(path: &Path, bytes: &[u8]) -> Result<Self> {
        let backup = backup::read(path, bytes)?;
        let image = schema::newest(&backup.image, path)?;
        image.execute_batch("DROP TABLE backup")?;
        restore::advance(&image)?;
        Ok(Self { image, secrets: vec![(Secret::Handles, backup.key.to_vec())] })
    }
}

/// Creates the catalogue of a new cluster, empty and with new secrets.
///
/// # Errors
/// `Exists`, `BadName`, `Unreachable`, `InDoubt`, `Io`.
pub fn create_cluster(place: &ClusterPlace) -> Result<()> {
    let prefix = place.prefix()?;
    let db = schema::in_memory()?;
    let instance = rows::instance(&db)?;
    let head = Head::first(schema::newest_format(), instance.clone(), cluster::counters(&db)?);
    let head = Operation::Put { key: format!("{prefix}head"), value: cluster::write(&head)? };
    let (vault, mut operations) = (Vault::of(place)?, vec![head]);
    for (which, content) in new_secrets()? {
        operations.push(vault.seal(which, &content)?);
    }
    let absent = Guard::At { key: format!("{prefix}head"), revision: 0 };
    for _ in 0..TRIES {
        match place.store.commit(std::slice::from_ref(&absent), &operations) {
            Ok(Decision::At(_)) => return Ok(()),
            Ok(Decision::Refused) => {
                // An attempt whose answer was lost may have made it.
                let found = Link::open(place.clone(), &mut memory()?, |tx, _| rows::instance(tx))?;
                return match found.1 == instance {
                    true => Ok(()),
                    false => Err(ClusterError::Exists { cluster: place.cluster.clone() }.into()),
                };
            }
            Err(StoreError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ClusterError::InDoubt.into())
}

/// Whether the store has a catalogue of the cluster `cluster`.
///
/// # Errors
/// `BadName`, `Unreachable`.
pub fn cluster_exists(store: &dyn ClusterStore, cluster: &str) -> Result<bool> {
    let prefix = cluster::prefix_of(cluster)?;
    Ok(store.get(&format!("{prefix}head"))?.is_some())
}

/// Random secrets for a catalogue that has none.
fn new_secrets() -> Result<[(Secret, Vec<u8>); 3]> {
    Ok([
        (Secret::Handles, directory::random::<16>()?),
        (Secret::Reports, directory::random::<32>()?),
        (Secret::Passwords, Sealer::new_key()?),
    ])
}

fn memory() -> Result<Connection> {
    let db = schema::in_memory()?;
    cluster::install(&db)?;
    Ok(db)
}

/// Makes `import` the catalogue of a cluster, in the place of what it has. The cluster keeps its
/// gateways and addresses; addresses of the import that it lacks are added with new groups. Volumes
/// without an address get one, if there is any: the heaviest first, that with the least weight.
///
/// # Errors
/// `Exists` if it has a pool, a level or a user and may not be replaced; those of a change.
pub fn import_into_cluster(place: &ClusterPlace, import: &Import, replace: Replace) -> Result<()> {
    let mut db = memory()?;
    let (link, ()) = Link::open(place.clone(), &mut db, |_, _| Ok(()))?;
    while link.resolve()? {
        link.follow(&mut db, |_, _| Ok(()))?;
    }
    let state = link.state();
    let mut documents = cluster::whole(&db)?;
    let guarded = ["levels", "pools", "accounts"];
    if replace == Replace::Never
        && documents.values().any(|(place, _)| guarded.contains(&place.table.name))
    {
        return Err(ClusterError::Exists { cluster: place.cluster.clone() }.into());
    }
    documents.values_mut().for_each(|(_, document)| *document = None);
    let mut image = image::of(&import.image)?;
    merge::keep_cluster(&mut image, &db)?;
    documents.extend(cluster::whole(&image)?);
    let mut operations = link.operations(&documents, state.head.format)?;
    for (which, content) in &import.secrets {
        operations.push(link.vault().seal(*which, content)?);
    }
    let find = "SELECT generation FROM meta";
    let generation: u64 = image.query_row(find, [], |row| row.get(0))?;
    let head = Head {
        generation: generation.max(state.head.generation).saturating_add(1),
        instance: rows::instance(&image)?,
        counters: cluster::counters(&image)?,
        ..state.head.clone()
    };
    link.send(&state, &head, operations)?;
    // It is valid. If opening it does not complete it, the first gateway does.
    let _completed_later = Link::open(place.clone(), &mut memory()?, |_, _| Ok(()));
    Ok(())
}

/// Writes the catalogue of a cluster to `directory`, as a stand-alone data directory with its
/// secrets and tokens, without gateways and addresses. Ids go on far ahead, as in a restore. Pools
/// on CephFS stay there, where only gateways serve them.
///
/// # Errors
/// `CatalogExists` if there is a catalogue; `Locked`, `NotDataDirectory`, `ForeignOwner`, `Io`; of
/// the cluster those of [`Catalog::open_in_cluster`](crate::Catalog::open_in_cluster).
pub fn export_cluster(place: &ClusterPlace, directory: &Path) -> Result<()> {
    let mut db = memory()?;
    let (link, ()) = Link::open(place.clone(), &mut db, |_, _| Ok(()))?;
    let handles = secret(&link, Secret::Handles)?;
    let no_key = |_| ClusterError::WrongKey { key: Secret::Handles.path() };
    let handles: [u8; 16] = handles.try_into().map_err(no_key)?;
    let mut others = Vec::new();
    for which in [Secret::Reports, Secret::Passwords, Secret::Tokens] {
        others.extend(link.vault().read(which)?.map(|(content, _)| (which, content)));
    }
    let image = image::of(&db)?;
    merge::leave_cluster(&image)?;
    let bytes = backup::finish(image, &handles)?;
    restore::restore(directory, Path::new("the catalogue of the cluster"), &bytes, Replace::Never)?;
    for (which, content) in others {
        directory::write_whole(directory, which.file(), &content)?;
    }
    Ok(())
}
