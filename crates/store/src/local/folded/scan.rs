//! Listings of a whole directory, in the pool: to build its index, or to find one name.

use super::index::{Builder, Index, Matches};
use super::journal::Unusable;
use super::{Folded, State};
use crate::error::fs_error;
use crate::index_memory::{Charge, IndexMemory};
use crate::local::inode::Inode;
use crate::local::read_dir::position;
use crate::local::volume::Volume;
use crate::sync::Arc;
use rustix::fd::AsFd;
use rustix::fs::RawDir;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use weir_core::{FsError, FsResult};

/// The kernel's entries are read in pieces of this size.
const BUFFER_BYTES: usize = 256 << 10;

/// Calls `each` with every name of the directory, until it gives something.
fn list<T>(
    volume: &Volume,
    dir: &Inode,
    mut each: impl FnMut(&[u8]) -> Option<T>,
) -> FsResult<Option<T>> {
    if dir.is_gone() {
        return Ok(None);
    }
    let listing = position(volume, dir, 0)?;
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut raw = RawDir::new(listing.as_fd(), &mut buffer);
    while let Some(entry) = raw.next() {
        let entry = match entry {
            // Removed meanwhile.
            Err(Errno::NOENT) => break,
            entry => entry.map_err(fs_error)?,
        };
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..")
            && let Some(done) = each(name)
        {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// The names that `wanted` may mean.
pub(super) fn matches(volume: &Volume, dir: &Inode, wanted: &[u8]) -> FsResult<Matches> {
    let mut matches = Matches::default();
    list(volume, dir, |name| {
        matches.note(wanted, name);
        None::<()>
    })?;
    Ok(matches)
}

/// Builds the directory's index and puts it into use.
pub(super) fn build(volume: &Volume, dir: &Inode, folded: &Folded) {
    let unfinished = Unfinished(Some(folded));
    let built = listed(volume, dir, &folded.memory)
        .map(|listed| listed.and_then(|listed| folded.put_into_use(listed)));
    match built {
        Ok(Ok(())) => {}
        Ok(Err(Unusable::Full)) => folded.end_building(State::TooLarge { gone: 0 }, Ok(())),
        Ok(Err(Unusable::Incomplete | Unusable::NoMemory)) => {
            folded.end_building(State::None, Ok(()));
        }
        Err(error) => folded.end_building(State::None, Err(error)),
    }
    unfinished.finished();
}

/// The index of all names that a listing had.
pub(super) struct Listed {
    pub(super) index: Index,
    /// Covers the bytes of the index.
    pub(super) charge: Charge,
}

/// Lists the names of a directory into an index, which is accounted for in `memory` as it grows.
pub(super) fn listed(
    volume: &Volume,
    dir: &Inode,
    memory: &Arc<IndexMemory>,
) -> FsResult<Result<Listed, Unusable>> {
    let (mut builder, mut charge) = (Builder::default(), Charge::new(memory));
    let unusable = list(volume, dir, |name| match builder.add(name) {
        Ok(()) if builder.bytes() > memory.max() => Some(Unusable::Full),
        Ok(()) if charge.cover_with_room(builder.bytes()) => None,
        Ok(()) => Some(Unusable::NoMemory),
        Err(full) => Some(full.into()),
    })?;
    Ok(unusable.map_or_else(|| Ok(Listed { index: builder.finish(), charge }), Err))
}

/// Ends the building if it panics, so that no lookup waits for it forever.
struct Unfinished<'a>(Option<&'a Folded>);

impl Unfinished<'_> {
    /// The building has ended. The next one may have begun already, and must not be ended here.
    fn finished(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(folded) = self.0 {
            folded.end_building(State::None, Err(FsError::Io));
        }
    }
}
