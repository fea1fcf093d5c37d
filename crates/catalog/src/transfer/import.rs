//! A stand-alone catalogue as that of a cluster.
//!
//! Names, ids, terms, rules, users, groups and SIDs stay. The places of volumes do not: a gateway
//! serves CephFS alone, so every pool has to be given a directory there, and its files are copied
//! by the operator. What belongs to the old machine's disks is left out: what was measured of
//! them, and the trees of deleted volumes.

use super::{LeftBehind, Replacement};
use crate::cephfs::Ceph;
use crate::cluster::{ClusterPlace, Secret, Vault};
use crate::directory::{self, Lock};
use crate::error::{CatalogError, ClusterError, Result};
use crate::members::InterfaceAddress;
use crate::restore::{self, Replace};
use crate::sealer::Sealer;
use crate::snapshot::Snapshot;
use crate::{backup, ceph, merge, owner, rows, schema, tokens};
use rusqlite::{Connection, params};
use std::path::Path;

/// Length of the secret that signs reports, in bytes.
const REPORT_KEY_BYTES: usize = 32;
/// Removes the rows that belong to the machine that the catalogue comes from.
const OF_MACHINE: &str = "
    DELETE FROM condemned WHERE ceph_conf IS NULL;
    DELETE FROM calibrations;
";

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
    /// `BadReportKey`, `DamagedTokens`, `Damaged`, `Io`, `Database`.
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
        tokens::look(directory)?;
        let is_bad = |(which, content): &(Secret, Vec<u8>)| {
            *which == Secret::Reports && content.len() != REPORT_KEY_BYTES
        };
        if secrets.iter().any(is_bad) {
            return Err(CatalogError::BadReportKey { path: directory.join("report.key") });
        }
        image.execute_batch(OF_MACHINE)?;
        rows::load(&image, directory)?;
        Ok(Self { image, secrets })
    }

    /// The catalogue in the backup `bytes`, which came from `path`. Its ids go on far ahead, as in
    /// a restore. The backup has neither tokens nor the key of passwords
    /// ([`Self::with_password_key`]).
    ///
    /// # Errors
    /// `OfCluster`, `NotBackup`, `NewerBackup`, `NewerFormat`, `DamagedBackup`.
    pub fn of_backup(path: &Path, bytes: &[u8]) -> Result<Self> {
        let backup = backup::read(path, bytes)?;
        let handles = backup.handles(path)?;
        let image = schema::newest(&backup.image, path)?;
        backup::strip(&image)?;
        restore::advance(&image)?;
        image.execute_batch(OF_MACHINE)?;
        Ok(Self { image, secrets: vec![(Secret::Handles, handles.to_vec())] })
    }

    /// The import with this content of `smb.key`, the key of its passwords.
    #[must_use]
    pub fn with_password_key(mut self, text: Vec<u8>) -> Self {
        self.secrets.retain(|(which, _)| *which != Secret::Passwords);
        self.secrets.push((Secret::Passwords, text));
        self
    }

    /// The import without the passwords of its users.
    ///
    /// # Errors
    /// `Database`.
    pub fn without_passwords(mut self) -> Result<Self> {
        self.secrets.retain(|(which, _)| *which != Secret::Passwords);
        self.image.execute("UPDATE accounts SET nt_hash = NULL", [])?;
        Ok(self)
    }

    /// The import with each pool that is in a directory of its machine in the directory
    /// `parent/NAME` of `ceph` instead, where NAME is the pool's name.
    ///
    /// # Errors
    /// `BadPath`, `BadCephUser`, `Database`.
    pub fn on_ceph(self, ceph: &Ceph, parent: &Path) -> Result<Self> {
        let snapshot = self.snapshot()?;
        let conf = ceph.conf.to_string_lossy();
        for pool in snapshot.pools().filter(|pool| pool.ceph.is_none()) {
            let path = parent.join(&pool.name);
            let others = snapshot.pools().filter(|other| other.ceph.is_some());
            ceph::check_pool(ceph, &path, others.map(AsRef::as_ref))?;
            let sql = "UPDATE pools SET directory = NULL, ceph_conf = ?2, ceph_user = ?3,
                ceph_path = ?4 WHERE id = ?1";
            self.image.execute(sql, params![pool.id.0, conf, ceph.user, path.to_string_lossy()])?;
        }
        Ok(self)
    }

    /// The import with these addresses for the cluster, beside those that it has.
    ///
    /// # Errors
    /// `Database`.
    pub fn at_addresses(self, addresses: &[InterfaceAddress]) -> Result<Self> {
        for at in addresses {
            let sql = "INSERT OR IGNORE INTO addresses (address, prefix) VALUES (?1, ?2)";
            self.image.execute(sql, params![at.ip.to_string(), at.prefix])?;
        }
        Ok(self)
    }

    /// The content to import.
    ///
    /// # Errors
    /// `Damaged`, `Database`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        rows::load(&self.image, Path::new("/"))
    }

    /// The replacement of what the cluster has.
    fn prepare(
        &self,
        place: &ClusterPlace,
        how: (Replace, LeftBehind),
    ) -> Result<(Replacement, Snapshot)> {
        let replacement = Replacement::prepare(place, &self.image, how, merge::check_numbers)?;
        let snapshot = replacement.snapshot()?;
        let local = snapshot.pools().filter(|pool| pool.ceph.is_none());
        let pools: Vec<_> = local.map(|pool| pool.name.clone()).collect();
        if !pools.is_empty() {
            return Err(ClusterError::LocalPools { pools }.into());
        }
        let without = snapshot.volumes().filter(|volume| volume.address.is_none()).count();
        if without > 0 {
            return Err(ClusterError::VolumesWithoutAddress { volumes: without }.into());
        }
        self.check_passwords(place, &snapshot)?;
        Ok((replacement, snapshot))
    }

    /// Checks that the key of passwords, which comes along or which the cluster has, opens them.
    fn check_passwords(&self, place: &ClusterPlace, snapshot: &Snapshot) -> Result<()> {
        let own = self.secrets.iter().find(|(which, _)| *which == Secret::Passwords);
        let key = match own {
            Some((_, key)) => key.clone(),
            None => Vault::of(place)?.read(Secret::Passwords)?.unwrap_or_default().0,
        };
        let sealer = Sealer::with_key(Path::new(""), snapshot.instance(), &key);
        if let Some(fault) = sealer.fault() {
            return Err(fault.into());
        }
        match sealer.shut(snapshot.users()) {
            None => Ok(()),
            Some((users, _)) => Err(ClusterError::PasswordsShut { users }.into()),
        }
    }
}

/// Makes `import` the catalogue of a cluster, in the place of what it has, and gives its content.
/// The cluster keeps its gateways and addresses; addresses of the import that it lacks are added
/// with new groups. Volumes without an address get one: the heaviest first, that with the least
/// weight.
///
/// # Errors
/// `Exists` if it has a pool, a level or a user and may not be replaced; `LocalPools`,
/// `NumbersTaken`, `VolumesWithoutAddress`, `PasswordsShut`, `BadSmbKey`; those of a change.
/// Nothing was changed then, unless it is `InDoubt`.
pub fn import_into_cluster(
    place: &ClusterPlace,
    import: &Import,
    replace: Replace,
) -> Result<Snapshot> {
    let (replacement, snapshot) = import.prepare(place, (replace, LeftBehind::Undone))?;
    replacement.send(&import.secrets)?;
    Ok(snapshot)
}

/// Checks whether [`import_into_cluster`] would be carried out, while no gateway runs. Nothing is
/// changed but that a large change is undone that a gateway left behind when it ended.
///
/// # Errors
/// The errors of [`import_into_cluster`].
pub fn check_import(place: &ClusterPlace, import: &Import, replace: Replace) -> Result<()> {
    import.prepare(place, (replace, LeftBehind::Undone)).map(drop)
}

/// The content that a cluster would have after [`import_into_cluster`], which is not carried out.
/// Gateways may run.
///
/// # Errors
/// The errors of [`import_into_cluster`], and `Busy` while a gateway makes a large change.
pub fn preview_import(place: &ClusterPlace, import: &Import, replace: Replace) -> Result<Snapshot> {
    Ok(import.prepare(place, (replace, LeftBehind::Kept))?.1)
}
