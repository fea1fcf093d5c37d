//! Changes of a file's size and holes for callers that have decided the right to write, and where a
//! file holds data.

use super::LocalStore;
use super::inode::Inode;
use super::set_attr::CUT_INLINE_MAX;
use super::volume::{Step, Stop, Volume, Waiting};
use super::write::strip_set_id;
use crate::error::fs_error;
use crate::sync::Arc;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::store::Allocated;
use weir_core::{FsError, FsResult};

impl LocalStore {
    pub(super) async fn set_size(&self, inode: &Arc<Inode>, size: u64) -> FsResult<Change> {
        inode.need_file(true)?;
        if size > FILE_BYTES_MAX {
            return Err(FsError::TooLarge);
        }
        if let Some(done) = self.inline_in_turn(inode, |v, w| set_size(v, inode, size, w)) {
            return done;
        }
        let own = Arc::clone(inode);
        self.pooled_change_in_turn(inode, move |v, w| set_size(v, &own, size, w)).await
    }

    /// Always in the pool: before it takes blocks away, the kernel writes down what is in memory of
    /// them. That says nothing of how long a write would take.
    pub(super) async fn zero_range(
        &self,
        inode: &Arc<Inode>,
        from: u64,
        to: u64,
    ) -> FsResult<Change> {
        inode.need_file(true)?;
        let own = Arc::clone(inode);
        self.in_turn(inode, move |v| zero_range(v, &own, (from, to)).map_err(Stop::error)).await
    }

    pub(super) async fn allocated_ranges(
        &self,
        inode: &Arc<Inode>,
        from: u64,
        to: u64,
        ranges_max: usize,
    ) -> FsResult<Allocated> {
        inode.need_file(false)?;
        let to = to.min(inode.attr()?.size);
        if from >= to {
            return Ok(Allocated::default());
        }
        if ranges_max > 0 && self.0.is_dense(inode, to) {
            return Ok(Allocated { ranges: vec![from..to; 1], more: false });
        }
        let own = Arc::clone(inode);
        self.pooled(move |_| allocated(&own, (from, to), ranges_max)).await
    }
}

impl Volume {
    /// Is all of the file up to `to` known to be data?
    fn is_dense(&self, inode: &Inode, to: u64) -> bool {
        let whole = |shape: &super::shape::Shape| {
            let all = shape.solid || !self.unit.has_smaller_blocks();
            all && shape.covers(self.unit, shape.size) && to <= shape.size
        };
        self.shape(inode, Waiting::Never).is_ok_and(|shape| whole(&shape))
    }
}

fn set_size(volume: &Volume, inode: &Inode, size: u64, waiting: Waiting) -> Step<Change> {
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    if size.saturating_add(CUT_INLINE_MAX) < found.size {
        waiting.or_stop()?;
    }
    volume.resize(inode, size, waiting)?;
    strip_set_id(inode, found.mode)?;
    Ok(inode.end(mutation)?)
}

fn zero_range(volume: &Volume, inode: &Inode, range: (u64, u64)) -> Step<Change> {
    let mut mutation = inode.begin();
    let found = mutation.found(&inode.fd)?;
    if volume.punch(inode, range, Waiting::Allowed)? {
        strip_set_id(inode, found.mode)?;
    }
    Ok(inode.end(mutation)?)
}

/// Two system calls for each range.
fn allocated(inode: &Inode, (from, to): (u64, u64), ranges_max: usize) -> FsResult<Allocated> {
    let (mut at, mut found) = (from, Allocated::default());
    // Nothing else uses the descriptor's position.
    let look = |from| match seek(&inode.fd, from) {
        // Cut meanwhile.
        Err(Errno::NXIO) => Ok(to),
        done => done.map_err(fs_error),
    };
    while at < to {
        let start = look(SeekFrom::Data(at))?;
        if start >= to {
            break;
        }
        if found.ranges.len() >= ranges_max {
            found.more = true;
            break;
        }
        at = look(SeekFrom::Hole(start))?.min(to);
        if at <= start {
            break;
        }
        found.ranges.push(start..at);
    }
    Ok(found)
}
