//! The file of the log of calls, `meta/calls`: made whole before it is used, written at its end,
//! and begun anew in its other half when one is full.

use super::format::{FRAME_MAX, Frames, HALF, HEAD, Record, SIZE};
use crate::creds::as_root;
use crate::descriptors::{Account, Share};
use crate::local::meta::DIRECTORY;
use crate::sync::Arc;
use crate::sys::{handle_of, is_witnessed, witness};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Advice, Mode, OFlags, fadvise, fstat, fsync, ftruncate, openat};
use rustix::io::{Errno, pread, pwrite};
use weir_core::ObjectKey;

/// Relative to the volume's root.
const META: &str = "../meta";
const FILE: &str = "calls";
/// Bytes that a new file is written by: as the kernel keeps it in memory in pieces of this size,
/// and a short write costs by the size of the piece that it goes to.
const PIECE: usize = 4096;

/// The file, open.
#[derive(Debug)]
pub(super) struct Log {
    fd: Arc<OwnedFd>,
    /// Covers `fd`.
    _share: Share,
    key: ObjectKey,
    generation: u64,
    half: usize,
    /// Where the next record goes. Nowhere before the first generation of this process.
    end: Option<usize>,
    witnessed: bool,
}

/// Has the kernel had the file in memory all the time since it was written?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Yes: nothing that was done before the last record is missing.
    Kept,
    /// Perhaps not: after a power cut, or a long time.
    Unknown,
}

impl Log {
    /// Opens the file if it is there and has its size.
    pub(super) fn open(root: impl AsFd, descriptors: &Arc<Account>) -> Result<Option<Self>, Errno> {
        as_root(|_| {
            let meta = openat(&root, META, DIRECTORY, Mode::empty())?;
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = match openat(&meta, FILE, flags, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(None),
                fd => fd?,
            };
            if usize::try_from(fstat(&fd)?.st_size) != Ok(SIZE) {
                return Ok(None);
            }
            Self::of(fd, descriptors.need()).map(Some)
        })
        .map_err(|_| Errno::PERM)?
    }

    /// Makes the file, or makes it anew. `stable`: it is to survive a power cut.
    pub(super) fn make(
        root: impl AsFd,
        stable: bool,
        descriptors: &Arc<Account>,
    ) -> Result<Self, Errno> {
        as_root(|_| {
            let meta = openat(&root, META, DIRECTORY, Mode::empty())?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = openat(&meta, FILE, flags, Mode::RUSR | Mode::WUSR)?;
            // All of its blocks, so that none is missing later.
            let filled =
                (0..SIZE).step_by(PIECE).try_for_each(|at| write_all(&fd, &[0; PIECE], at));
            if let Err(error) = filled {
                ftruncate(&fd, 0)?;
                return Err(error);
            }
            if stable {
                fsync(&fd)?;
                fsync(&meta)?;
            }
            Self::of(fd, descriptors.need())
        })
        .map_err(|_| Errno::PERM)?
    }

    fn of(fd: OwnedFd, share: Share) -> Result<Self, Errno> {
        // Without reading ahead, which would make large pieces of it.
        fadvise(&fd, 0, None, Advice::Random)?;
        let (key, _) = handle_of(&fd)?;
        let (fd, _share) = (Arc::new(fd), share);
        Ok(Self { fd, _share, key, generation: 0, half: 1, end: None, witnessed: false })
    }

    /// The key of the file, which its halves carry.
    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub(super) fn memory(&self) -> Memory {
        if is_witnessed(&self.fd) { Memory::Kept } else { Memory::Unknown }
    }

    /// Both halves as they are.
    pub(super) fn halves(&self) -> Result<[Vec<u8>; 2], Errno> {
        let half = |at: usize| {
            let mut bytes = vec![0; HALF];
            let mut filled = 0;
            while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match pread(&self.fd, rest, (at + filled) as u64)? {
                    0 => return Err(Errno::IO),
                    count => filled += count,
                }
            }
            Ok(bytes)
        };
        Ok([half(0)?, half(HALF)?])
    }

    /// Goes on behind these generation and half, which were found.
    pub(super) fn follow(&mut self, generation: u64, half: usize) {
        (self.generation, self.half) = (generation, half);
    }

    /// Adds records, if the half that is being filled has room for them.
    pub(super) fn append<'r>(
        &mut self,
        buffer: &mut Vec<u8>,
        records: impl Iterator<Item = Record<'r>>,
    ) -> Result<bool, Errno> {
        let Some(end) = self.end else { return Ok(false) };
        let mut frames = Frames::new(buffer, self.generation, end);
        records.for_each(|record| frames.push(&record));
        if end + buffer.len() > HALF - FRAME_MAX {
            return Ok(false);
        }
        write_all(&self.fd, buffer, self.half * HALF + end)?;
        self.end = Some(end + buffer.len());
        Ok(true)
    }

    /// Begins the next generation, in the other half, with these records.
    pub(super) fn begin<'r>(
        &mut self,
        buffer: &mut Vec<u8>,
        records: impl Iterator<Item = Record<'r>>,
    ) -> Result<(), Errno> {
        let (generation, half) = (self.generation + 1, 1 - self.half);
        let mut frames = Frames::new(buffer, generation, 0);
        frames.head(&self.key);
        records.chain([Record::Whole]).for_each(|record| frames.push(&record));
        if frames.len() > HALF - FRAME_MAX {
            return Err(Errno::FBIG);
        }
        write_all(&self.fd, buffer, half * HALF)?;
        (self.generation, self.half, self.end) = (generation, half, Some(buffer.len()));
        // The entries found are written again: they are valid for as long as they are in memory.
        if !self.witnessed {
            as_root(|_| witness(&self.fd, true)).map_err(|_| Errno::PERM)??;
            self.witnessed = true;
        }
        Ok(())
    }

    /// The file, to be synced.
    pub(super) fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// Takes all records away, and the space.
    pub(super) fn empty(&self) -> Result<(), Errno> {
        ftruncate(&self.fd, 0)
    }
}

const _: () = assert!(HEAD < PIECE && HALF.is_multiple_of(PIECE));

fn write_all(fd: &OwnedFd, mut bytes: &[u8], mut at: usize) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = match pwrite(fd, bytes, at as u64) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(other) => return Err(other),
        };
        bytes = bytes.get(count..).unwrap_or(&[]);
        at += count;
    }
    Ok(())
}
