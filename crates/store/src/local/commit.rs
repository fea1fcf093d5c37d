//! COMMIT and every other sync of one object, coalesced: whoever asks while a sync runs shares the
//! next one, so one sync covers all that was written before it began.
//!
//! Objects with uncommitted data are synced too before they are closed; see [`super::uncommitted`].
//!
//! A failed sync is reported to everybody who waits for it. Where it may have lost data that was
//! answered as UNSTABLE, those who have yet to ask for a sync of that are told too: the next one is
//! a failure all the same, since the kernel tells each descriptor of lost data only once, and we
//! have one for all clients. What nobody was answered for needs that not.
//! [`LocalStore::sync_failures`] counts failures, so that the server can change its write verifier
//! and make clients send again what may be lost.

use super::LocalStore;
use super::inode::{Inode, Reach};
use super::volume::Volume;
use crate::error::fs_error;
use crate::sync::{AcqRel, Arc, Mutex, Promise, Relaxed, now, promise};
use rustix::fs::{fdatasync, fsync, syncfs};
use rustix::io::Errno;
use weir_core::attr::Change;
use weir_core::{FileKind, FsError, FsResult};

/// The extent to which a sync makes an object stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// The data and what is needed to find it.
    #[default]
    Data,
    /// All attributes too.
    All,
}

impl From<FsError> for Failure {
    /// One that loses nothing but what it was asked for.
    fn from(error: FsError) -> Self {
        Self { error, uncommitted: false }
    }
}

/// The syncs of one object.
#[derive(Debug, Default)]
pub(super) struct SyncGroup(Mutex<Group>);

#[derive(Default)]
struct Group {
    running: bool,
    extent: Extent,
    waiting: Vec<Promise<FsResult<()>>>,
    /// The failure of earlier rounds that the next round has to report.
    failed: Option<FsError>,
}

/// A sync that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    error: FsError,
    /// Data that was answered as UNSTABLE may be lost with it.
    uncommitted: bool,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "running: {}, waiting: {}", self.running, self.waiting.len())
    }
}

impl SyncGroup {
    /// Adds a waiter; true if nobody is at work and the caller must start a round.
    pub(super) fn join(&self, waiter: Promise<FsResult<()>>, extent: Extent) -> bool {
        let mut group = self.0.lock();
        group.waiting.push(waiter);
        group.extent = group.extent.max(extent);
        !std::mem::replace(&mut group.running, true)
    }

    /// Does the next sync have to report a failure? Then the object must stay in memory.
    pub(super) fn has_failed(&self) -> bool {
        self.0.lock().failed.is_some()
    }

    /// Syncs once for all who wait now. True if more have come meanwhile.
    pub(super) fn round(&self, sync: impl FnOnce(Extent) -> Result<(), Failure>) -> bool {
        let mut group = self.0.lock();
        let waiting = std::mem::take(&mut group.waiting);
        let extent = std::mem::take(&mut group.extent);
        drop(group);
        let failure = sync(extent).err();
        let mut group = self.0.lock();
        let before = group.failed.take();
        let error = failure.map(|failure| failure.error).or(before);
        let more = !group.waiting.is_empty();
        // The kernel tells a failure once, and those who came while it was found out may have lost
        // data too.
        if failure.is_some_and(|failure| failure.uncommitted || before.is_some() || more) {
            group.failed = error;
        }
        group.running = more;
        drop(group);
        for waiter in waiting {
            waiter.give(error.map_or(Ok(()), Err));
        }
        more
    }
}

impl LocalStore {
    /// Answers when everything that was done to `inode` before this call is stable.
    pub(super) async fn settle(&self, inode: &Arc<Inode>, extent: Extent) -> FsResult<()> {
        let (waiter, answer) = promise();
        if inode.syncs.join(waiter, extent) {
            start(Arc::clone(&self.0), Arc::clone(inode));
        }
        answer.await.unwrap_or(Err(FsError::Io))
    }

    pub(super) async fn commit(&self, inode: &Arc<Inode>) -> FsResult<Change> {
        inode.need_file(false)?;
        let found = inode.attrs.peek();
        self.settle(inode, Extent::All).await?;
        let after = inode.attr()?;
        // Unchanged all the while if the generation is still the same.
        let mark = inode.attrs.peek().map(|(_, generation)| generation);
        let before = found.filter(|(_, generation)| mark == Some(*generation)).map(|(a, _)| a);
        Ok(Change { before, after: Some(after) })
    }
}

impl Volume {
    /// Syncs objects that nobody waits for, so that they may be closed.
    pub(super) fn settle_aside(&self, objects: Vec<Arc<Inode>>) {
        for inode in objects {
            let Some(volume) = self.this.upgrade() else { return };
            let (nobody, _) = promise();
            if inode.syncs.join(nobody, Extent::Data) {
                start(volume, inode);
            }
        }
    }

    /// Has some objects synced that have uncommitted data and are not in use, so that others may
    /// have some.
    pub(super) fn make_room(&self, near: &Inode) {
        self.settle_aside(self.table.uncommitted(&near.key));
    }
}

/// Queues rounds of syncs. At most one job for them is queued or running for an object, so the
/// bound of the table bounds them all.
fn start(volume: Arc<Volume>, inode: Arc<Inode>) {
    let lane = Arc::clone(&volume.lane);
    lane.run_rounds(move || inode.syncs.round(|extent| sync(&volume, &inode, extent)));
}

fn sync(volume: &Volume, inode: &Inode, extent: Extent) -> Result<(), Failure> {
    volume.syncs.fetch_add(1, Relaxed);
    volume.pace.sync_began();
    let uncommitted = inode.uncommitted.forget();
    let result = match (inode.kind, extent) {
        _ if inode.reach == Reach::Path => syncfs(&volume.root.fd),
        (FileKind::Regular, Extent::Data) => fdatasync(&inode.fd),
        (FileKind::Regular | FileKind::Directory, _) => fsync(&inode.fd),
        // Open by path only, which can't be synced.
        _ => syncfs(&volume.root.fd),
    };
    volume.pace.sync_ended(now());
    result.map_err(|errno| {
        volume.sync_failures.fetch_add(1, AcqRel);
        let (number, fileid) = (errno.raw_os_error(), inode.fileid);
        tracing::error!(errno = number, fileid, "sync failed; written data may be lost");
        // A write may have ended while the file was synced, and be noted only now.
        let uncommitted = uncommitted || inode.kind == FileKind::Regular;
        Failure { error: sync_error(errno), uncommitted }
    })
}

/// The error that a failed sync returns to its waiters. Most errors of the kernel concern the sync
/// and not the object; a lack of space on the device is reported as such.
fn sync_error(errno: Errno) -> FsError {
    match fs_error(errno) {
        room @ (FsError::NoSpace | FsError::QuotaExceeded | FsError::ReadOnly) => room,
        _ => FsError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn outcome<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_round_covers_all_who_wait_and_at_the_greatest_extent() {
        let group = SyncGroup::default();
        let (first, first_answer) = promise();
        let (second, second_answer) = promise();
        assert!(group.join(first, Extent::All));
        assert!(!group.join(second, Extent::Data), "somebody is at work");
        let more = group.round(|extent| {
            assert_eq!(extent, Extent::All);
            Ok(())
        });
        assert!(!more);
        assert_eq!(outcome(first_answer), Some(Some(Ok(()))));
        assert_eq!(outcome(second_answer), Some(Some(Ok(()))));
    }

    #[test]
    fn who_comes_during_a_round_waits_for_the_next() {
        let group = SyncGroup::default();
        let (first, _) = promise();
        let (late, mut late_answer) = promise();
        assert!(group.join(first, Extent::Data));
        let more = group.round(|_| {
            assert!(!group.join(late, Extent::Data));
            Ok(())
        });
        assert!(more);
        assert_eq!(outcome(&mut late_answer), None);
        assert!(!group.round(|_| Ok(())));
        assert_eq!(outcome(&mut late_answer), Some(Some(Ok(()))));
    }

    #[test]
    fn a_failure_is_reported_to_all_it_covered_and_to_the_next_round() {
        let group = SyncGroup::default();
        let round = |result: Result<(), Failure>| {
            let (a, a_answer) = promise();
            let (b, b_answer) = promise();
            group.join(a, Extent::Data);
            group.join(b, Extent::Data);
            group.round(|_| result);
            [outcome(a_answer).flatten(), outcome(b_answer).flatten()]
        };
        let [full, broken] = [FsError::NoSpace, FsError::Io];
        let lost = Failure { error: full, uncommitted: true };
        assert_eq!(round(Err(lost)), [Some(Err(full)); 2]);
        assert!(group.has_failed());
        assert_eq!(round(Ok(())), [Some(Err(full)); 2]);
        assert!(!group.has_failed());
        assert_eq!(round(Ok(())), [Some(Ok(())); 2]);
        // All who have an interest are told at once.
        let known = Failure { error: broken, uncommitted: false };
        assert_eq!(round(Err(known)), [Some(Err(broken)); 2]);
        assert_eq!(round(Ok(())), [Some(Ok(())); 2]);
        // Not by a second failure either is it forgotten that somebody is to be told.
        assert_eq!(round(Err(lost)), [Some(Err(full)); 2]);
        assert_eq!(round(Err(known)), [Some(Err(broken)); 2]);
        assert_eq!(round(Ok(())), [Some(Err(broken)); 2]);
    }

    #[test]
    fn who_came_while_a_failure_was_found_out_is_told_of_it() {
        let group = SyncGroup::default();
        let (first, first_answer) = promise();
        let (late, late_answer) = promise();
        group.join(first, Extent::Data);
        group.round(|_| {
            group.join(late, Extent::Data);
            Err(Failure { error: FsError::Io, uncommitted: false })
        });
        assert_eq!(outcome(first_answer).flatten(), Some(Err(FsError::Io)));
        // The kernel has told it, and finds nothing wrong any more.
        group.round(|_| Ok(()));
        assert_eq!(outcome(late_answer).flatten(), Some(Err(FsError::Io)));
        assert!(!group.has_failed());
    }
}
