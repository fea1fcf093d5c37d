//! Checks that secrets belong to their owner alone, also if they exist already: loose modes are
//! mended with a warning, a foreign owner is refused.

use crate::error::{CatalogError, Result};
use crate::finding::Finding;
use crate::model::Pool;
use rustix::process::geteuid;
use std::fs::{Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The files in a data directory beside pools and the API's socket, which is made anew at each
/// start. `.new` is left behind where a crash cut the making of a file short.
const FILES: [&str; 21] = [
    "weir.lock",
    "weir.db",
    "weir.db-wal",
    "weir.db-shm",
    "weir.db.new",
    "handle.key",
    "handle.key.new",
    "api.token",
    "api.token.new",
    "report.key",
    "report.key.new",
    "smb.key",
    "smb.key.new",
    "history.db",
    "history.db-wal",
    "history.db-shm",
    "api.pem",
    "api.pem.new",
    "api.tokens",
    "api.tokens.new",
    "audit.log",
];
/// The bits of the group and of others.
const NOT_OWNER: u32 = 0o077;
/// Writing by the group and by others.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_WARNING: &str = "other users can write to this pool's directory and replace its volumes: restrict it to the server's user (chown, chmod 700)";

/// Checks who owns the data directory.
pub(crate) fn check_directory(directory: &Path) -> Result<()> {
    own(directory, &metadata(directory)?)
}

/// Checks every file of the data directory that is there, and makes sure that the database, when
/// it is made, is its owner's alone: SQLite would go by the umask.
pub(crate) fn protect_files(directory: &Path) -> Result<()> {
    let database = directory.join("weir.db");
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&database);
    match made {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(source) => return Err(CatalogError::Io { path: database, source }),
    }
    for name in FILES {
        let path = directory.join(name);
        match metadata(&path) {
            Ok(meta) => {
                own(&path, &meta)?;
                mend(&path, &meta, 0o600)?;
            }
            Err(CatalogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Keeps users of this machine out of the trees of a pool's volumes, and warns where they could
/// still put others in their place.
pub(crate) fn protect_pool(pool: &Pool) -> Result<()> {
    if pool.ceph.is_some() {
        return Ok(());
    }
    // A pool whose file system isn't mounted is for its volumes to report.
    let Ok(meta) = metadata(&pool.directory) else { return Ok(()) };
    if others_write(&meta) {
        tracing::warn!(pool = pool.name, directory = %pool.directory.display(), "{OTHERS_WARNING}");
    }
    let volumes = pool.directory.join("volumes");
    match metadata(&volumes) {
        Ok(meta) if meta.uid() == geteuid().as_raw() => mend(&volumes, &meta, 0o700),
        _ => Ok(()),
    }
}

fn others_write(meta: &Metadata) -> bool {
    meta.uid() != geteuid().as_raw() || meta.mode() & OTHERS_WRITE != 0
}

/// The faults in owners and modes of a data directory and the files in it.
pub(crate) fn find(directory: &Path) -> Vec<Finding> {
    let paths = FILES.iter().map(|name| directory.join(name)).chain([directory.to_owned()]);
    let mut findings = Vec::new();
    for path in paths {
        let Ok(meta) = metadata(&path) else { continue };
        if let Err(error) = own(&path, &meta) {
            findings.push(Finding::error(error.code(), error.to_string()));
        }
        if meta.mode() & NOT_OWNER != 0 {
            let (shown, mode) = (path.display(), meta.mode() & 0o7777);
            let told = format!(
                "{shown} has mode {mode:o}: other users can access it; the server corrects this at the next start"
            );
            findings.push(Finding::warning("loose_mode", told));
        }
    }
    findings
}

/// The fault in owner and mode of a pool's directory.
pub(crate) fn find_in_pool(pool: &Pool) -> Option<Finding> {
    let meta = metadata(&pool.directory).ok().filter(others_write)?;
    let (name, place, mode) = (&pool.name, pool.directory.display(), meta.mode() & 0o7777);
    let told = format!("pool {name}, {place}, mode {mode:o}: {OTHERS_WARNING}");
    Some(Finding::warning("pool_exposed", told))
}

fn metadata(path: &Path) -> Result<Metadata> {
    path.metadata().map_err(|source| CatalogError::Io { path: path.to_owned(), source })
}

/// Refuses a file of another user, who could read and replace it.
fn own(path: &Path, meta: &Metadata) -> Result<()> {
    let (owner, server) = (meta.uid(), geteuid().as_raw());
    if owner == server {
        return Ok(());
    }
    Err(CatalogError::ForeignOwner { path: path.to_owned(), owner, server })
}

/// Takes the rights of group and others away.
fn mend(path: &Path, meta: &Metadata, mode: u32) -> Result<()> {
    if meta.mode() & NOT_OWNER == 0 {
        return Ok(());
    }
    tracing::warn!(
        path = %path.display(),
        mode = format!("{:o}", meta.mode() & 0o7777),
        "other users could access this file; its mode was restricted to the owner"
    );
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|source| CatalogError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    fn loosen(path: &Path) {
        std::fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
    }

    #[test]
    fn every_file_is_its_owners_alone_and_loose_ones_are_mended() {
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("data");
        let catalog = Catalog::open(&data).unwrap();
        catalog.tokens().unwrap();
        let present = || FILES.iter().map(|name| data.join(name)).filter(|path| path.exists());
        assert!(present().count() >= 5, "{:?}", present().collect::<Vec<_>>());
        assert!(present().all(|path| mode(&path) == 0o600));
        drop(catalog);
        let left: Vec<_> = present().collect();
        left.iter().for_each(|path| loosen(path));
        drop(Catalog::open(&data).unwrap());
        assert!(left.iter().filter(|path| path.exists()).all(|path| mode(path) == 0o600));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !geteuid().is_root() {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("data");
        drop(Catalog::open(&data).unwrap());
        for name in ["handle.key", "weir.db", ""] {
            let path = if name.is_empty() { data.clone() } else { data.join(name) };
            std::os::unix::fs::chown(&path, Some(1001), None).unwrap();
            let refused = Catalog::open(&data).unwrap_err().to_string();
            assert!(refused.contains("is owned by user 1001"), "{refused}");
            assert!(refused.contains("chown 0 "), "{refused}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        Catalog::open(&data).unwrap();
    }
}
