//! The record of a volume's usage, `meta/usage`: one line, replaced as a whole and stable before
//! anything relies on it.
//!
//! `weir-usage 2 clean USED` is exact. `weir-usage 2 open USED MOST` was written while the volume
//! changed: its usage was `USED`, and is at most `MOST`. No file, or one that this version can't
//! read, means that only counting tells. The first version, a bare number, was counted by other
//! rules and is taken for an open record.
//!
//! A file system that writes its journal in order (ext4, XFS) makes what was freed before a record
//! stable with it, so `MOST` holds after a power cut too.

use super::meta::{DIRECTORY, read_file, replace_file};
use crate::creds::as_root;
use crate::error::fs_error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, fsync, openat, syncfs, unlinkat};
use rustix::io::Errno;
use std::fmt::{Debug, Display, Formatter};
use weir_core::FsResult;

pub(super) const FILE: &str = "usage";
/// The directory `meta`, as seen from the volume's root.
const BESIDE_ROOT: &str = "../meta";
const FILE_BESIDE_ROOT: &str = "../meta/usage";
const WORD: &str = "weir-usage";
const VERSION: &str = "2";

/// The recorded usage of a volume, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is exactly this.
    Clean { used: u64 },
    /// It was `used`, and is no more than `most`.
    Open { used: u64, most: u64 },
    /// Nothing.
    Missing,
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clean { used } => writeln!(f, "{WORD} {VERSION} clean {used}"),
            Self::Open { used, most } => writeln!(f, "{WORD} {VERSION} open {used} {most}"),
            Self::Missing => Ok(()),
        }
    }
}

/// A descriptor of the volume's root, which is open for as long as the volume is.
pub(super) trait Root: AsFd + Debug + Send + Sync {}

impl<T: AsFd + Debug + Send + Sync> Root for T {}

/// The file, to be written. It is reached from the volume's root each time, because a server of
/// ten thousand volumes has no descriptors to keep for what is seldom written.
#[derive(Debug)]
pub(super) struct Record {
    root: Box<dyn Root>,
    /// The recorded state; nothing while that is in doubt.
    says: Option<State>,
}

impl Record {
    /// The record of the volume with this root, where `found` was read.
    pub(super) fn new(root: impl Root + 'static, found: State) -> Self {
        Self { root: Box::new(root), says: Some(found) }
    }

    /// Is this on record, and stable?
    pub(super) fn says(&self, state: State) -> bool {
        self.says == Some(state)
    }

    /// The record in `meta`.
    pub(super) fn read(meta: &OwnedFd) -> State {
        read_file(meta, FILE).ok().and_then(|text| parse(text.trim_end())).unwrap_or(State::Missing)
    }

    /// Replaces the record. Where that can't be (the disk is full), removes it, which leaves it to
    /// counting: so what frees space goes on.
    ///
    /// # Errors
    /// If the old record can't be got rid of.
    pub(super) fn write(&mut self, state: State) -> FsResult<()> {
        self.says = None;
        as_root(|_| {
            let meta = match openat(&self.root, BESIDE_ROOT, DIRECTORY, Mode::empty()) {
                // Operations that free descriptors continue, too.
                Err(Errno::MFILE | Errno::NFILE) => return self.remove_by_path(),
                meta => meta?,
            };
            match replace_file(&meta, FILE, &state.to_string()) {
                Ok(()) => self.says = Some(state),
                Err(errno) => {
                    tracing::warn!(%errno, "cannot write meta/usage; the usage will be recounted after an unclean shutdown");
                    remove(&meta)?;
                }
            }
            Ok(())
        })?
        .map_err(fs_error)
    }
}

impl Record {
    /// Removes the record without a descriptor for its directory.
    fn remove_by_path(&self) -> Result<(), Errno> {
        match unlinkat(&self.root, FILE_BESIDE_ROOT, AtFlags::empty()) {
            Ok(()) => syncfs(&self.root),
            Err(Errno::NOENT) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

fn remove(meta: &OwnedFd) -> Result<(), Errno> {
    match unlinkat(meta, FILE, AtFlags::empty()) {
        Ok(()) => fsync(meta),
        Err(Errno::NOENT) => Ok(()),
        Err(other) => Err(other),
    }
}

fn parse(text: &str) -> Option<State> {
    if let Ok(used) = text.parse() {
        return Some(State::Open { used, most: used });
    }
    let words: Vec<_> = text.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().ok();
    match words[..] {
        [WORD, VERSION, "clean", used] => Some(State::Clean { used: number(used)? }),
        [WORD, VERSION, "open", used, most] => {
            Some(State::Open { used: number(used)?, most: number(most)? })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_version_wrote_is_believed() {
        assert_eq!(parse("weir-usage 2 clean 8192"), Some(State::Clean { used: 8192 }));
        let open = State::Open { used: 1, most: 20 };
        assert_eq!(parse("weir-usage 2 open 1 20"), Some(open));
        assert_eq!(parse(open.to_string().trim_end()), Some(open));
        assert_eq!(parse("8192"), Some(State::Open { used: 8192, most: 8192 }), "by other rules");
        for other in ["", "weir-usage 3 clean 1", "weir-usage 2 clean", "weir-usage 2 open 1", "-1"]
        {
            assert_eq!(parse(other), None, "{other:?}");
        }
    }
}
