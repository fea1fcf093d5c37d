//! A mounted file system as a target.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// A directory of a mounted file system, and further mounts of the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTarget {
    /// The directory. Files are laid out through it.
    pub root: PathBuf,
    /// The same directory through further mounts. Clients are dealt to all of them in turn, the
    /// first one first.
    pub more: Vec<PathBuf>,
}

impl<P: Into<PathBuf>> From<P> for PathTarget {
    fn from(root: P) -> Self {
        Self { root: root.into(), more: Vec::new() }
    }
}

impl PathTarget {
    /// The number of mounts.
    #[must_use]
    pub fn mounts(&self) -> usize {
        self.more.len() + 1
    }

    /// The directory by which client `index` reaches the files.
    #[must_use]
    pub fn of_client(&self, index: u32) -> &Path {
        let place = usize::try_from(index).unwrap_or(0) % self.mounts();
        let further = place.checked_sub(1).and_then(|place| self.more.get(place));
        further.unwrap_or(&self.root)
    }

    /// The directories of all mounts.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.root).chain(&self.more).map(PathBuf::as_path)
    }
}

impl fmt::Display for PathTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.display())?;
        self.more.iter().try_for_each(|path| write!(f, ",{}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_the_mounts_in_turn() {
        let target = PathTarget { root: "/a".into(), more: vec!["/b".into(), "/c".into()] };
        let of = [0, 1, 2, 3].map(|client| target.of_client(client).to_str().unwrap());
        assert_eq!(of, ["/a", "/b", "/c", "/a"]);
        assert_eq!(target.to_string(), "/a,/b,/c");
        assert_eq!(PathTarget::from("/a").of_client(7), Path::new("/a"));
    }
}
