//! Backups of a cluster's catalogue: taken from the shared store at one revision, and restored to
//! it, also where it was lost. The form of the file is in [`crate::backup`].
//!
//! Secrets stay sealed by the key of the cluster, so that whoever finds a backup has none. They
//! are bound to the name of the cluster they come from, and sealed anew for the one that they come
//! to.

use super::{LeftBehind, Replacement, create_cluster, memory};
use crate::backup::{self, BackupInfo, Held};
use crate::catalog::Catalog;
use crate::cluster::{self, ClusterKey, ClusterPlace, Secret, Vault};
use crate::error::{CatalogError, ClusterError, Result};
use crate::restore::{self, Replace};
use crate::snapshot::Snapshot;
use crate::{image, rows, schema};
use rusqlite::Connection;
use std::path::Path;

/// The secrets that every cluster has.
const ALWAYS: [Secret; 2] = [Secret::Handles, Secret::Passwords];

impl Catalog {
    /// A backup of this catalogue, as the content of a file. Changes wait meanwhile, requests
    /// don't. That of a cluster's catalogue comes from the store that its gateways share.
    ///
    /// # Errors
    /// `Database`; the errors of [`back_up_cluster`].
    pub fn backup(&self) -> Result<Vec<u8>> {
        match self.cluster() {
            Some(link) => back_up_cluster(link.place()),
            None => {
                let image = self.read(image::of)?;
                backup::finish(image, &Held::Handles(*self.handle_secret()))
            }
        }
    }
}

/// A backup of the catalogue of the cluster at `place`, as the content of a file: everything at
/// one revision of the store, with its secrets and tokens.
///
/// # Errors
/// `Missing`, `Row`, `Newer`, `WrongKey`, `Busy`, `Unreachable`, `Database`.
pub fn back_up_cluster(place: &ClusterPlace) -> Result<Vec<u8>> {
    let mut db = memory()?;
    let sealed = cluster::copy(place, &mut db)?;
    // A backup that its own cluster could not open would be found out too late.
    open_all(&place.cluster, &place.key, &sealed)?;
    backup::finish(image::of(&db)?, &Held::Sealed { cluster: place.cluster.clone(), sealed })
}

/// A backup of a cluster's catalogue that was read and can be restored.
pub struct ClusterBackup {
    info: BackupInfo,
    /// The catalogue, in the newest format, with ids that go on far ahead.
    image: Connection,
    secrets: Vec<(Secret, Vec<u8>)>,
}

/// The text omits the secrets.
impl std::fmt::Debug for ClusterBackup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterBackup").field("info", &self.info).finish_non_exhaustive()
    }
}

impl ClusterBackup {
    /// Reads the backup `bytes`, which came from `path`, with the key of the cluster.
    ///
    /// # Errors
    /// `NotOfCluster`, `WrongKey`, `NotBackup`, `NewerBackup`, `NewerFormat`, `DamagedBackup`.
    pub fn read(path: &Path, bytes: &[u8], key: &ClusterKey) -> Result<Self> {
        let backup = backup::read(path, bytes)?;
        let Held::Sealed { cluster, sealed } = backup.held else {
            return Err(ClusterError::NotOfCluster { path: path.to_owned() }.into());
        };
        let secrets = open_all(&cluster, key, &sealed).map_err(|error| match error {
            CatalogError::Cluster(ClusterError::WrongKey { .. }) => {
                CatalogError::from(ClusterError::OtherBackupKey { path: path.to_owned(), cluster })
            }
            CatalogError::Cluster(ClusterError::Row { key, what }) => {
                let (path, what) = (path.to_owned(), format!("{key}: {what}"));
                CatalogError::DamagedBackup { path, what }
            }
            error => error,
        })?;
        let image = schema::newest(&backup.image, path)?;
        backup::strip(&image)?;
        restore::advance(&image)?;
        Ok(Self { info: backup.info, image, secrets })
    }

    /// The information of the backup about itself.
    #[must_use]
    pub const fn info(&self) -> &BackupInfo {
        &self.info
    }

    /// The content of the backup.
    ///
    /// # Errors
    /// `Damaged`, `Database`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        rows::load(&self.image, Path::new("/"))
    }
}

/// Makes `backup` the catalogue of the cluster at `place`, and gives its content. Where the store
/// has no catalogue, or one that never had a gateway or an address, those of the backup come back;
/// otherwise the cluster keeps its own, as in [`import_into_cluster`](super::import_into_cluster),
/// and its tokens, so that a revoked one does not come back. Clients' file handles stay valid.
///
/// # Errors
/// `Exists` if the cluster has a pool, a level or a user and may not be replaced; those of a
/// change. Nothing was changed then, but for an empty catalogue that was created; unless it is
/// `InDoubt`.
pub fn restore_cluster(
    place: &ClusterPlace,
    backup: &ClusterBackup,
    replace: Replace,
) -> Result<Snapshot> {
    if !super::cluster_exists(&*place.store, &place.cluster)? {
        create_cluster(place)?;
    }
    let replacement = Replacement::prepare(
        place,
        &backup.image,
        (replace, LeftBehind::Undone),
        // The numbers of volumes are those of the same cluster. Pools of another one have its mark
        // in CephFS, so that no gateway serves them.
        |_, _| Ok(()),
    )?;
    let snapshot = replacement.snapshot()?;
    let has_tokens = Vault::of(place)?.read(Secret::Tokens)?.is_some();
    let kept = |which: Secret| which == Secret::Tokens && has_tokens;
    let secrets: Vec<_> =
        backup.secrets.iter().filter(|(which, _)| !kept(*which)).cloned().collect();
    replacement.send(&secrets)?;
    Ok(snapshot)
}

/// Opens the secrets of the cluster named `cluster`.
fn open_all(
    cluster: &str,
    key: &ClusterKey,
    sealed: &[(Secret, String)],
) -> Result<Vec<(Secret, Vec<u8>)>> {
    let prefix = cluster::prefix_of(cluster)?;
    let mut secrets = Vec::with_capacity(sealed.len());
    for (which, sealed) in sealed {
        secrets.push((*which, key.open(&format!("{prefix}{}", which.path()), sealed)?));
    }
    for which in ALWAYS {
        if !secrets.iter().any(|(found, _)| *found == which) {
            let what = "it is missing".to_owned();
            return Err(ClusterError::Row { key: which.path(), what }.into());
        }
    }
    Ok(secrets)
}
