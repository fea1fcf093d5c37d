//! `weir catalog backup` and `restore` on the machine of a gateway, whose catalogue is in etcd.

use super::machine::Machine;
use crate::cli::catalog;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use weir_catalog::{
    BackupInfo, CatalogError, ClusterBackup, ClusterError, ClusterPlace, Replace, Snapshot,
    back_up_cluster, cluster_exists, restore_cluster,
};

/// A catalogue that was restored.
pub(crate) struct Restored {
    pub(crate) info: BackupInfo,
    /// The backup of the one that was replaced.
    pub(crate) kept: Option<PathBuf>,
    /// The names of the gateways that the catalogue has now.
    pub(crate) gateways: Vec<String>,
    /// The reason why the gateway of this machine does not start with it, if there is one.
    pub(crate) stranger: Option<String>,
}

/// A backup of the catalogue of the cluster, which the gateways may change meanwhile; `None` if
/// `directory` is not that of a gateway.
///
/// # Errors
/// The errors of [`back_up_cluster`].
pub(crate) fn backup(directory: &Path) -> Result<Option<Vec<u8>>> {
    let Some(machine) = Machine::of(directory)? else { return Ok(None) };
    machine.with_shared(|shared| Ok(Some(back_up_cluster(&shared.place)?)))
}

/// Restores the backup `bytes`, which came from `file`; `None` if `directory` is not that of a
/// gateway.
///
/// # Errors
/// Gateways run; those of [`ClusterBackup::read`] and [`restore_cluster`].
pub(crate) fn restore(
    directory: &Path,
    (file, bytes): (&Path, &[u8]),
    replace: Replace,
) -> Result<Option<Restored>> {
    let Some(machine) = Machine::of(directory)? else { return Ok(None) };
    machine.with_shared(|shared| {
        let place = &shared.place;
        let backup = ClusterBackup::read(file, bytes, &place.key)?;
        let known: Vec<_> = backup.snapshot()?.gateways().cloned().collect();
        let _held = shared.hold(known.into_iter()).map_err(|error| damaged(error, place))?;
        let kept = keep(&machine, place, replace)?;
        let snapshot = restore_cluster(place, &backup, replace)?;
        Ok(Some(Restored {
            info: backup.info().clone(),
            kept,
            gateways: snapshot.gateways().map(|one| one.name.clone()).collect(),
            stranger: stranger(&machine, &snapshot),
        }))
    })
}

/// Keeps the catalogue that is to be replaced as a backup in the data directory, if there is one.
///
/// # Errors
/// The errors of [`back_up_cluster`]; the file cannot be written.
pub(crate) fn keep(
    machine: &Machine,
    place: &ClusterPlace,
    replace: Replace,
) -> Result<Option<PathBuf>> {
    if replace == Replace::Never || !cluster_exists(&*place.store, &place.cluster)? {
        return Ok(None);
    }
    let bytes = back_up_cluster(place)?;
    let paths = (1_u32..).map(|number| machine.directory.join(format!("replaced-{number}.backup")));
    let Some(path) = paths.into_iter().find(|path| path.symlink_metadata().is_err()) else {
        return Ok(None);
    };
    let named = || format!("can't write {}", path.display());
    catalog::write_whole(&path, &bytes).with_context(named)?;
    Ok(Some(path))
}

/// The way out where etcd has rows that cannot be read.
fn damaged(error: anyhow::Error, place: &ClusterPlace) -> anyhow::Error {
    match error.downcast_ref() {
        Some(CatalogError::Cluster(ClusterError::Row { .. })) => {
            let prefix = format!("/weir/{}/catalog/", place.cluster);
            error.context(format!(
                "the catalogue in etcd cannot be read, so nothing is kept of it: stop all gateways, delete it with `etcdctl del --prefix {prefix}`, and run the command again"
            ))
        }
        _ => error,
    }
}

/// Why the gateway of this machine is not one of the catalogue.
fn stranger(machine: &Machine, snapshot: &Snapshot) -> Option<String> {
    let (name, number) = (&machine.config.gateway, machine.config.number);
    let found = snapshot.gateway_named(name).map(|one| one.id.0);
    (found != Some(number)).then(|| {
        format!(
            "gateway {name}, number {number}, of this machine is not in the catalogue: delete gateway.toml in {} and run `weir gateway join`",
            machine.directory.display()
        )
    })
}
