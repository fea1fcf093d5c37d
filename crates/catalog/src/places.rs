//! Moving a volume's tree from the directory of one pool to that of another: on one file system
//! that is a rename, which whoever has the volume open doesn't notice.
//!
//! The tree follows the catalogue. Where a stop came between the two, the tree is found by the
//! volume's id, which no other volume ever has, and put in its place at the next start.

use crate::directory::{self, at};
use crate::error::{CatalogError, Result};
use crate::model::{Pool, Volume};
use crate::snapshot::Snapshot;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Could `volume`, which is in `from`, move into the directory of `to` without a copy?
///
/// # Errors
/// `PoolAway`, `PoolForeign`, `VolumeAway`, `OtherFileSystem`, `BadPath`, `Io`.
pub(crate) fn check(now: &Snapshot, volume: &Volume, from: &Pool, to: &Pool) -> Result<()> {
    now.check_place(volume)?;
    now.check_pool(to)?;
    let target = to.place_of(volume.id);
    // The directory of volumes may be a mount of its own.
    let parent = target.parent().filter(|volumes| volumes.exists()).unwrap_or(&to.directory);
    if mount(&volume.directory)? != mount(parent)? {
        return Err(elsewhere(volume, from, to));
    }
    directory::check_unfilled(&target)
}

/// Could `volume`, which is in `from`, move to `to` without a copy in a cluster: are both in one
/// CephFS?
///
/// # Errors
/// `OtherFileSystem`.
pub(crate) fn check_ceph(volume: &Volume, from: &Pool, to: &Pool) -> Result<()> {
    let conf = |pool: &Pool| pool.ceph.as_ref().map(|ceph| ceph.conf.clone());
    match (conf(from), conf(to)) {
        (Some(one), Some(other)) if one == other => Ok(()),
        _ => Err(elsewhere(volume, from, to)),
    }
}

/// The file system that `path` is on, and by which mount: between two mounts of one file system
/// nothing is renamed (rename(2), `EXDEV`).
fn mount(path: &Path) -> Result<(u64, u64)> {
    let failed = |errno: rustix::io::Errno| at(path)(errno.into());
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).map_err(failed)?;
    let device = path.metadata().map_err(at(path))?.dev();
    Ok((device, found.stx_mnt_id))
}

/// Moves the tree; [`sync`] is to follow. [`check`] was asked before.
///
/// # Errors
/// `PoolBusy`, `OtherFileSystem` where two mounts of one file system are in the way, `Io`.
pub(crate) fn carry_out(now: &Snapshot, volume: &Volume, from: &Pool, to: &Pool) -> Result<()> {
    now.hold(from)?;
    now.hold(to)?;
    let target = to.place_of(volume.id);
    directory::clear_unfilled(&target)?;
    put(&volume.directory, &target).map_err(|error| match error {
        CatalogError::Io { source, .. } if source.kind() == ErrorKind::CrossesDevices => {
            elsewhere(volume, from, to)
        }
        error => error,
    })
}

/// Puts a tree in its place, for good.
pub(crate) fn rename(tree: &Path, target: &Path) -> Result<()> {
    put(tree, target)?;
    sync(tree, target)
}

/// Puts a tree in its place, with the directory that it is to be in.
fn put(tree: &Path, target: &Path) -> Result<()> {
    if let Some(volumes) = target.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(volumes).map_err(at(volumes))?;
    }
    std::fs::rename(tree, target).map_err(at(tree))
}

/// Makes it stable that a tree is at `target` and no longer where it was.
pub(crate) fn sync(tree: &Path, target: &Path) -> Result<()> {
    // The new parents are synced first: a power cut must not leave the tree in neither place.
    for parent in target.ancestors().skip(1).take(2).chain(tree.parent()) {
        File::open(parent).and_then(|dir| dir.sync_all()).map_err(at(parent))?;
    }
    Ok(())
}

/// The place of a volume's tree that isn't in its own place: in another pool of ours.
pub(crate) fn stray(now: &Snapshot, volume: &Volume) -> Option<PathBuf> {
    find_stray(now, volume).map(|(_, place)| place)
}

fn find_stray<'a>(now: &'a Snapshot, volume: &Volume) -> Option<(&'a Pool, PathBuf)> {
    let home = now.pool(volume.pool)?;
    // First: the directory of a pool on CephFS means nothing on this machine.
    if now.check_pool(home).is_err() || volume.directory.exists() {
        return None;
    }
    let others = now.pools().filter(|pool| pool.id != volume.pool && now.check_pool(pool).is_ok());
    let mut places = others.map(|pool| (pool.as_ref(), pool.place_of(volume.id)));
    // A directory without a volume is what an attempt to make one left; its id was given again.
    places.find(|(_, place)| directory::is_volume(place))
}

/// Is the tree of `volume`, which isn't in its place, in the directory of `pool` instead?
pub(crate) fn is_stray_in(now: &Snapshot, volume: &Volume, pool: &Pool) -> bool {
    find_stray(now, volume).is_some_and(|(there, _)| there.id == pool.id)
}

/// Puts every tree where the catalogue says that it is. One that can't be is not served, and the
/// log says where it is.
pub(crate) fn settle(now: &Snapshot) {
    for volume in now.volumes() {
        if let (Some((from, stray)), Some(home)) = (find_stray(now, volume), now.pool(volume.pool))
        {
            let ours = now.hold(from).and_then(|()| now.hold(home));
            let settled = ours.and_then(|()| rename(&stray, &volume.directory));
            if let Err(error) = settled {
                let (name, stray, place) =
                    (&volume.name, stray.display(), volume.directory.display());
                tracing::error!(volume = name, %stray, %place, %error, "a volume is in the wrong directory and cannot be moved: do not delete it");
            }
        }
    }
}

fn elsewhere(volume: &Volume, from: &Pool, to: &Pool) -> CatalogError {
    CatalogError::OtherFileSystem {
        volume: volume.name.clone(),
        pool: to.name.clone(),
        from: from.directory.clone(),
        to: to.directory.clone(),
    }
}
