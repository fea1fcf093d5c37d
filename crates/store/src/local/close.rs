//! Closing volumes, many at a time: a server has thousands, and most of them are idle.

use super::LocalStore;
use crate::sync::{AtomicUsize, Builder, Relaxed, scope};
use std::collections::HashMap;
use weir_core::{FsError, FsResult};

/// Records that are written at once: the file system makes them stable together.
const AT_ONCE: usize = 16;

/// See [`StoreControl::close_all`](crate::StoreControl::close_all).
pub(super) fn close_all(volumes: &[&LocalStore]) -> Vec<FsResult<()>> {
    for volume in volumes {
        volume.0.closing.store(true, Relaxed);
    }
    let synced = sync_all(volumes);
    let (next, part) = (AtomicUsize::new(0), AT_ONCE.min(volumes.len()));
    let close = || {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)));
        let mine = mine.map_while(|at| Some((at, volumes.get(at)?, synced.get(at)?)));
        let closed = |(at, volume, synced): (_, &&LocalStore, &FsResult<()>)| {
            (at, synced.and_then(|()| volume.record_all()))
        };
        mine.map(closed).collect::<Vec<_>>()
    };
    let closed = scope(|threads| {
        // Where there are no threads to be had, it takes longer.
        let start = |_| Builder::new().spawn_scoped(threads, close).ok();
        let others: Vec<_> = (1..part).filter_map(start).collect();
        let mut all = close();
        all.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
        all
    });
    // The result of a thread that panicked is unknown.
    let mut done = vec![Err(FsError::Io); volumes.len()];
    for (at, closed) in closed {
        if let Some(done) = done.get_mut(at) {
            *done = closed;
        }
    }
    done
}

/// See [`StoreControl::sync_all`](crate::StoreControl::sync_all).
pub(super) fn sync_all(volumes: &[&LocalStore]) -> Vec<FsResult<()>> {
    for volume in volumes {
        volume.0.calls.write_noted();
    }
    let mut synced = HashMap::new();
    let sync =
        |volume: &&LocalStore| *synced.entry(volume.0.device).or_insert_with(|| volume.sync());
    volumes.iter().map(sync).collect()
}

impl LocalStore {
    /// Records what was done: calls, and the usage.
    fn record_all(&self) -> FsResult<()> {
        if self.sync_failures() == 0 {
            self.close_calls();
        }
        self.record_usage()
    }

    /// Records the usage, if it has changed. The kernel tells each descriptor once of data that it
    /// could not write, and another volume's sync may have been told: so this one is asked, too.
    fn record_usage(&self) -> FsResult<()> {
        if self.sync_failures() > 0 {
            let volume = &self.0.label;
            tracing::warn!(
                volume,
                "an earlier sync failed: the usage will be recounted at the next start"
            );
            return Ok(());
        }
        self.0.usage.close(|| self.sync())
    }
}
