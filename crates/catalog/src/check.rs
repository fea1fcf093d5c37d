//! Looking whether a catalogue and what belongs to it is as a server needs it. Mends nothing.

use crate::directory;
use crate::error::{CatalogError, Result};
use crate::model::{Pool, Snapshot, Volume};
use crate::{backup, image, owner, places, restore, rows, schema};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::Path;
use weir_core::VolumeId;

/// The maximum number of reported errors in the database.
const DAMAGES_MAX: usize = 20;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The catalogue serves all the same.
    Warning,
    /// A volume is not served, or lost.
    Error,
}

/// A fault in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The finding's severity.
    pub severity: Severity,
    /// A word for programs, which never changes.
    pub code: &'static str,
    /// The fault, and its remedy.
    pub message: String,
}

impl Finding {
    /// A fault because of which a volume is not served, or lost.
    #[must_use]
    pub const fn error(code: &'static str, message: String) -> Self {
        Self { severity: Severity::Error, code, message }
    }

    /// A fault that keeps nothing from being served.
    #[must_use]
    pub const fn warning(code: &'static str, message: String) -> Self {
        Self { severity: Severity::Warning, code, message }
    }
}

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
    for damage in damages(&image)? {
        findings.push(Finding::error(
            "database_damaged",
            format!("weir.db: {damage}: restore a backup"),
        ));
    }
    if let Err(error) = restore::check_finished(directory) {
        findings.push(Finding::error(error.code(), error.to_string()));
    }
    findings.extend(owner::find(directory));
    findings.extend(directory::find_secrets(directory));
    let content = schema::newest(&image, &path)
        .and_then(|newest| Ok((rows::load(&newest, directory)?, condemned(&newest)?)));
    let snapshot = match content {
        Ok((snapshot, condemned)) => {
            for pool in snapshot.pools() {
                findings.extend(find_in_pool(&snapshot, pool, &condemned));
            }
            snapshot
        }
        Err(error) => {
            findings.push(Finding::error(error.code(), format!("{error}: restore a backup")));
            Snapshot::default()
        }
    };
    Ok(Report { format, snapshot, findings })
}

/// The damages that SQLite finds in a database, and references that lead nowhere.
pub(crate) fn damages(db: &Connection) -> Result<Vec<String>> {
    let mut damages = Vec::new();
    let mut query = db.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    for line in query.query_map([], |row| row.get::<_, String>(0))? {
        match line {
            Ok(line) if line == "ok" => {}
            Ok(line) => damages.push(line),
            // The pages that say what there is are damaged themselves.
            Err(error) => damages.push(error.to_string()),
        }
    }
    if !damages.is_empty() {
        return Ok(damages);
    }
    let mut query = db.prepare("PRAGMA foreign_key_check")?;
    let told = query.query_map([], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of {table} refers to a missing row of {parent}"))
    })?;
    for line in told.take(DAMAGES_MAX) {
        damages.push(line?);
    }
    Ok(damages)
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
