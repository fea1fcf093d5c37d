//! Changes of how much data a file holds, each settled with the volume's usage: writes that reach
//! where no data was, new sizes, and the loss of a name.
//!
//! Locks are taken in this order: a directory's names, the books, a file's shape.

use super::inode::Inode;
use super::shape::Shape;
use super::usage::{Books, Change, signed};
use super::volume::{Step, Volume, Waiting};
use crate::creds::as_root;
use crate::error::fs_error;
use crate::sync::WriteGuard;
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use weir_core::{Attr, FileKind, FsResult};

/// A file that is about to lose a name.
pub(super) struct Departure<'a> {
    change: Change<'a>,
    shape: WriteGuard<'a, Shape>,
}

impl Volume {
    /// Carries out a write to `offset..end`, not all of which is data yet. `put` says how many
    /// bytes it has written.
    pub(super) fn write_new(
        &self,
        inode: &Inode,
        (offset, end): (u64, u64),
        put: impl FnOnce() -> FsResult<usize>,
        waiting: Waiting,
    ) -> Step<usize> {
        self.mend(inode, waiting)?;
        let (fd, unit, books) = (inode.fd(), self.unit, self.usage.books());
        let mut shape = self.shape_to_change(inode, waiting)?;
        let missing = shape.missing(fd, unit, (offset, end))?;
        let growth = if shape.linked { missing } else { 0 };
        let announced = (growth > 0)
            .then(|| books.announce(inode.fileid, shape.counts(), growth, waiting))
            .transpose()?;
        let gap = shape.gap(fd, unit, unit.down(offset))?;
        let before = *shape;
        let done = put();
        if done.as_ref().is_ok_and(|&count| u64::try_from(count) == Ok(end - offset)) {
            shape.data += missing;
            shape.solid &= !unit.leaves_a_block(shape.size, offset);
            shape.size = shape.size.max(end);
        } else {
            // Part of it may be there all the same.
            let Attr { size, .. } = super::attrs::stat(fd)?;
            let touched = unit.up(end) - unit.down(offset);
            let holds = unit.data(fd, offset, end.min(size))?;
            shape.data += holds.saturating_sub(touched - missing);
            (shape.size, shape.solid) = (size, false);
        }
        if let Some(announced) = announced {
            announced.settle(signed(shape.counts()) - signed(before.counts()));
        }
        if let Some(gap) = gap.filter(|_| shape.size > before.size) {
            gap.keep(fd, unit)?;
        }
        Ok(done?)
    }

    /// Cuts a file, or grows it with a hole.
    pub(super) fn resize(&self, inode: &Inode, size: u64, waiting: Waiting) -> Step<()> {
        self.mend(inode, waiting)?;
        let books = self.usage.books();
        let mut shape = self.shape_to_change(inode, waiting)?;
        // As root, so that the kernel's own rule for set-id bits doesn't depend on whose identity
        // the thread has kept.
        let resize = || as_root(|_| ftruncate(inode.fd(), size))?.map_err(fs_error);
        if size < shape.size {
            return self.cut(inode, &mut shape, &books, size, resize, waiting);
        }
        let gap = shape.gap(inode.fd(), self.unit, self.unit.up(size))?;
        resize()?;
        shape.solid &= size <= self.unit.block_end(shape.size);
        shape.size = size;
        Ok(gap.map_or(Ok(()), |gap| gap.keep(inode.fd(), self.unit))?)
    }

    fn cut(
        &self,
        inode: &Inode,
        shape: &mut Shape,
        books: &Books<'_>,
        size: u64,
        resize: impl FnOnce() -> FsResult<()>,
        waiting: Waiting,
    ) -> Step<()> {
        let (fd, unit) = (inode.fd(), self.unit);
        let before = *shape;
        let dense = shape.covers(unit, shape.size);
        let kept = match size {
            _ if dense => unit.up(size),
            0 => 0,
            _ => shape.data.saturating_sub(unit.data(fd, unit.up(size), shape.size)?),
        };
        let doubtful = shape.doubtful(fd, unit, size)?;
        let change = books.announce(inode.fileid, shape.counts(), 0, waiting)?;
        let done = resize();
        if done.is_ok() {
            // The unit's data may all have been behind the cut.
            let stays = shape.doubtful(fd, unit, size).unwrap_or(doubtful);
            (shape.size, shape.data) = (size, kept.saturating_sub(doubtful.saturating_sub(stays)));
            shape.solid |= size == 0;
        } else {
            shape.load(fd, unit, waiting)?;
        }
        change.settle(signed(shape.counts()) - signed(before.counts()));
        Ok(done?)
    }

    /// Makes a hole of the whole blocks of `from..to`, as far as the file reaches, and zeros of the
    /// rest. Was there anything to do?
    pub(super) fn punch(
        &self,
        inode: &Inode,
        (from, to): (u64, u64),
        waiting: Waiting,
    ) -> Step<bool> {
        self.mend(inode, waiting)?;
        let (fd, unit, books) = (inode.fd(), self.unit, self.usage.books());
        let mut shape = self.shape_to_change(inode, waiting)?;
        // Behind its end there is nothing to be kept, so the last block goes whole.
        let to = if to >= shape.size { unit.up(shape.size) } else { to };
        if from >= to.min(shape.size) {
            return Ok(false);
        }
        let before = if shape.covers(unit, shape.size) {
            unit.up(to) - unit.down(from)
        } else {
            unit.data(fd, from, to)?
        };
        let counted = shape.counts();
        let change = books.announce(inode.fileid, counted, 0, waiting)?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // As root, as in `resize`.
        let done = as_root(|_| fallocate(fd, hole, from, to - from))?.map_err(fs_error);
        shape.data = (shape.data + unit.data(fd, from, to)?).saturating_sub(before);
        shape.solid = false;
        change.settle(signed(shape.counts()) - signed(counted));
        done?;
        Ok(true)
    }

    /// Prepares for taking a name off `target`, which may be its last. It was mended before the
    /// books were opened.
    pub(super) fn departing<'a>(
        &self,
        books: &'a Books<'a>,
        target: &'a Inode,
        waiting: Waiting,
    ) -> Step<Option<Departure<'a>>> {
        if target.kind != FileKind::Regular {
            return Ok(None);
        }
        let shape = self.shape_to_change(target, waiting)?;
        let change = books.announce(target.fileid, shape.counts(), 0, waiting)?;
        Ok(Some(Departure { change, shape }))
    }

    /// Tells a recount under way of an object that is about to get another name. It was mended
    /// before the books were opened.
    pub(super) fn moving(&self, books: &Books<'_>, inode: &Inode, waiting: Waiting) -> Step<()> {
        match inode.kind {
            _ if !books.recounting() => {}
            FileKind::Directory => books.moves(inode.fileid, inode.key),
            FileKind::Regular => {
                let shape = self.shape_to_change(inode, waiting)?;
                books.visit(inode.fileid, shape.counts());
            }
            _ => {}
        }
        Ok(())
    }
}

impl Departure<'_> {
    /// The name is gone, and the file has `nlink` left.
    pub(super) fn left(mut self, nlink: u32) {
        if nlink == 0 {
            let freed = signed(self.shape.counts());
            self.shape.linked = false;
            self.change.settle(-freed);
        }
    }
}
