//! Closing volumes, many at a time: a server has thousands, and most of them are idle.

use super::LocalStore;
use crate::sync::{AtomicUsize, Builder, Relaxed, scope};
use std::collections::HashMap;
use weir_core::FsResult;

/// Records that are written at once: the file system makes them stable together.
const AT_ONCE: usize = 16;

impl LocalStore {
    /// Makes the volume stable and records that its usage is exact, so that nothing is counted at
    /// the next start. Blocks. Nothing may use the volume afterwards.
    ///
    /// # Errors
    /// If the device failed or the record can't be written; then the next start counts.
    pub fn close(&self) -> FsResult<()> {
        Self::close_all(&[self]).into_iter().collect()
    }

    /// Closes `volumes` as [`close`](Self::close) does each, with one sync for each file system
    /// and a record for those alone that have changed. Their results, in the same order.
    #[must_use]
    pub fn close_all(volumes: &[&Self]) -> Vec<FsResult<()>> {
        for volume in volumes {
            volume.0.closing.store(true, Relaxed);
        }
        let mut done = Self::sync_all(volumes);
        let (next, part) = (AtomicUsize::new(0), AT_ONCE.min(volumes.len()));
        let record = || {
            let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)));
            let mine = mine.map_while(|at| Some((at, volumes.get(at)?)));
            mine.map(|(at, volume)| (at, volume.0.usage.close())).collect::<Vec<_>>()
        };
        let recorded = scope(|threads| {
            // Where there are no threads to be had, it takes longer.
            let start = |_| Builder::new().spawn_scoped(threads, record).ok();
            let others: Vec<_> = (1..part).filter_map(start).collect();
            let mut all = record();
            // One that panicked recorded nothing more, and those volumes are counted.
            all.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
            all
        });
        for (at, recorded) in recorded {
            if let Some(done) = done.get_mut(at) {
                *done = done.and(recorded);
            }
        }
        done
    }

    /// Makes everything on the file systems of `volumes` stable, each of them once. Blocks. Their
    /// results, in the same order.
    #[must_use]
    pub fn sync_all(volumes: &[&Self]) -> Vec<FsResult<()>> {
        let mut synced = HashMap::new();
        let sync = |volume: &&Self| *synced.entry(volume.0.device).or_insert_with(|| volume.sync());
        volumes.iter().map(sync).collect()
    }
}
