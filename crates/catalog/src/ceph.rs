//! The CephFS that a pool is on, as the operator names it. Nothing here reaches it: each gateway
//! opens it with its own copy of the configuration file.

use crate::cephfs::Ceph;
use crate::error::{CatalogError, ClusterError, Result};
use crate::limits::PATH_BYTES_MAX;
use crate::model::Pool;
use std::path::{Component, Path, PathBuf};

/// Longest name of a user of Ceph, in characters.
const USER_CHARS_MAX: usize = 64;

impl Ceph {
    /// Checks the path of the configuration file and the name of the user.
    ///
    /// # Errors
    /// `BadPath`, `BadCephUser`.
    pub(crate) fn check(&self) -> Result<()> {
        check_text(&self.conf)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let user = &self.user;
        let is_name = (1..=USER_CHARS_MAX).contains(&user.len()) && user.chars().all(plain);
        if is_name && !user.starts_with("client.") {
            return Ok(());
        }
        let name = user.chars().take(USER_CHARS_MAX).collect();
        Err(ClusterError::BadCephUser { name }.into())
    }
}

/// Checks the directory in CephFS that a new pool asks for, against those of the `others`.
///
/// # Errors
/// `BadPath`, `BadCephUser`.
pub(crate) fn check_pool<'a>(
    ceph: &Ceph,
    directory: &Path,
    mut others: impl Iterator<Item = &'a Pool>,
) -> Result<()> {
    ceph.check()?;
    check_text(directory)?;
    if directory.parent().is_none() {
        return Err(bad(
            directory,
            "the root of CephFS has directories of Ceph's own; use one below",
        ));
    }
    let is_same = |pool: &&Pool| pool.ceph.as_ref().is_some_and(|other| other.conf == ceph.conf);
    let nested = |pool: &&Pool| {
        directory.starts_with(&pool.directory) || pool.directory.starts_with(directory)
    };
    match others.find(|pool| is_same(pool) && nested(pool)) {
        None => Ok(()),
        Some(Pool { name, .. }) => {
            let reason =
                format!("it is inside, or contains, pool {name:?}; pools cannot be nested");
            Err(bad(directory, &reason))
        }
    }
}

/// Checks that a path is one way to write it: absolute and without detours.
fn check_text(path: &Path) -> Result<()> {
    let plain: PathBuf = path.components().collect();
    if !path.is_absolute()
        || path.components().any(|part| part == Component::ParentDir)
        || plain.as_os_str() != path.as_os_str()
    {
        return Err(bad(
            path,
            "the path must be absolute, without \"..\", \".\", \"//\" or a \"/\" at its end",
        ));
    }
    if path.as_os_str().len() > PATH_BYTES_MAX
        || path.to_str().is_none_or(|text| text.chars().any(char::is_control))
    {
        return Err(bad(path, "the path is too long, or has characters that are not printed"));
    }
    Ok(())
}

fn bad(path: &Path, reason: &str) -> CatalogError {
    CatalogError::BadPath { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for good in ["/etc/ceph/ceph.conf", "/weir", "/weir/größer"] {
            assert!(check_text(Path::new(good)).is_ok(), "{good}");
        }
        for refused in ["", "weir", "/a/../b", "/a/./b", "/a//b", "/a/", "/a\n", "/a\0"] {
            assert!(check_text(Path::new(refused)).is_err(), "{refused:?}");
        }
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        assert!(check_text(Path::new(&long)).is_err());
    }

    #[test]
    fn a_user_is_named_without_its_type() {
        let check = |user: &str| Ceph { conf: "/c".into(), user: user.to_owned() }.check();
        assert!(check("admin").is_ok() && check("weir.nas-1").is_ok());
        for refused in ["", "client.admin", "a b", "a/b", &"a".repeat(65)] {
            assert_eq!(check(refused).unwrap_err().code(), "bad_ceph_user", "{refused}");
        }
    }
}
