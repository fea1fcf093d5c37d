//! Looking whether a catalogue and what belongs to it is as a server needs it. Mends nothing.

use crate::directory;
use crate::error::{CatalogError, Result};
use crate::finding::Finding;
use crate::model::{Pool, Volume};
use crate::sealer::Sealer;
use crate::snapshot::Snapshot;
use crate::{backup, image, owner, places, rows, schema, tokens};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use weir_core::VolumeId;

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The format of the catalogue.
    pub format: i64,
    /// The catalogue's content, as far as it can be read.
    pub snapshot: Snapshot,
    /// The faults.
    pub findings: Vec<Finding>,
}

/// Checks the catalogue of `directory`: its database, its secrets, and the directories of its pools
/// and volumes. `served` is a backup from the server that uses it, if one does.
///
/// # Errors
/// `Locked` if a server uses the directory and `served` is missing, `NoCatalog`, `ForeignOwner`,
/// `NewerFormat`, `Io`, `Database`.
pub fn check(directory: &Path, served: Option<&[u8]>) -> Result<Report> {
    let path = directory::existing_catalog(directory)?;
    let directory = &directory.canonicalize().map_err(directory::at(directory))?;
    let image = match served {
        Some(bytes) => backup::database(bytes)?,
        None => {
            // Opening it would leave files of ours among somebody else's.
            owner::check_directory(directory)?;
            let _lock = directory::Lock::take(directory)?;
            image::of(&schema::open_as_it_is(&path)?)?
        }
    };
    let format = schema::known_format(&image, &path)?;
    let mut findings = Vec::new();
    for damage in image::damages(&image)? {
        findings.push(Finding::error(
            "database_damaged",
            format!("weir.db: {damage}: restore a backup"),
        ));
    }
    if let Err(error) = directory::check_restored(directory) {
        findings.push(Finding::error(error.code(), error.to_string()));
    }
    findings.extend(owner::find(directory));
    findings.extend(find_secrets(directory));
    let content = schema::newest(&image, &path)
        .and_then(|newest| Ok((rows::load(&newest, directory)?, condemned(&newest)?)));
    let snapshot = match content {
        Ok((snapshot, condemned)) => {
            for pool in snapshot.pools() {
                findings.extend(find_in_pool(&snapshot, pool, &condemned));
            }
            findings.extend(find_in_passwords(directory, &snapshot));
            snapshot
        }
        Err(error) => {
            findings.push(Finding::error(error.code(), format!("{error}: restore a backup")));
            Snapshot::default()
        }
    };
    Ok(Report { format, snapshot, findings })
}

/// The volumes whose trees are still to be removed.
fn condemned(db: &Connection) -> Result<BTreeSet<VolumeId>> {
    let mut query = db.prepare("SELECT volume FROM condemned")?;
    let rows = query.query_map([], |row| row.get(0).map(VolumeId))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A move was cut short, or a backup from before one was restored.
fn misplaced(volume: &Volume, stray: &Path) -> Finding {
    let (name, stray) = (&volume.name, stray.display());
    let told = format!(
        "volume {name:?} is in {stray}, not in the directory of its pool: the server moves it at the next start"
    );
    Finding::warning("volume_misplaced", told)
}

fn find_in_pool(snapshot: &Snapshot, pool: &Pool, condemned: &BTreeSet<VolumeId>) -> Vec<Finding> {
    let finding = |error: CatalogError| Finding::error(error.code(), error.to_string());
    if let Err(error) = snapshot.check_pool(pool) {
        return vec![finding(error)];
    }
    let mut findings: Vec<_> = owner::find_in_pool(pool).into_iter().collect();
    let volumes = snapshot.volumes_of(pool.id);
    findings.extend(volumes.filter_map(|one| match places::stray(snapshot, one) {
        Some(stray) => Some(misplaced(one, &stray)),
        None => snapshot.check_place(one).err().map(finding),
    }));
    let known = |id: VolumeId| snapshot.volume(id).is_some() || condemned.contains(&id);
    for tree in directory::trees(&pool.directory).filter(|id| !known(*id)) {
        let (name, place) = (&pool.name, pool.directory.display());
        let told = format!(
            "pool {name}: {place}/volumes/{tree} belongs to no volume of this catalogue; it may belong to a volume created after the restored backup"
        );
        findings.push(Finding::warning("unknown_tree", told));
    }
    findings
}

/// The faults in the key of passwords, and the users whose passwords it does not open.
fn find_in_passwords(directory: &Path, snapshot: &Snapshot) -> Vec<Finding> {
    let sealer = Sealer::open_in(directory, snapshot.instance());
    let mut findings = Vec::new();
    if let Some(error) = sealer.fault().map(CatalogError::from) {
        findings.push(Finding::error(error.code(), error.to_string()));
    }
    if let Some((count, reason)) = sealer.shut(snapshot.users()) {
        let told = format!("{count} user(s) with a password cannot log in over SMB: {reason}");
        findings.push(Finding::warning("passwords_unreadable", told));
    }
    findings
}

/// The faults in the secrets of a data directory. A token that isn't there will be made.
fn find_secrets(directory: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    match directory::existing_secret(directory) {
        Ok(_) => {}
        Err(CatalogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let told = "handle.key is missing: restore it from a copy; otherwise the server creates a new one, and every client must remount";
            findings.push(Finding::error("no_secret", told.to_owned()));
        }
        Err(error) => findings.push(Finding::error(error.code(), error.to_string())),
    }
    let path = directory.join("api.token");
    if let Ok(bytes) = std::fs::read(&path)
        && directory::valid_token(bytes).is_none()
    {
        let error = CatalogError::BadToken { path };
        findings.push(Finding::error(error.code(), error.to_string()));
    }
    if let Err(error) = tokens::look(directory) {
        findings.push(Finding::error(error.code(), error.to_string()));
    }
    findings
}
