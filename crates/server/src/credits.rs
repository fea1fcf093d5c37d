//! Keeping the credits of volumes in the catalogue, so that a restart doesn't fill them up.
//!
//! While the server runs, it keeps the credits that are certainly left at the next time of keeping,
//! even if all are spent at full speed until then: after a crash there are never more than there
//! were, and at most [`AHEAD`] of a burst fewer. Limits that would spend credits faster come into
//! force after the credits are kept by them. A clean stop keeps the credits that are left. While no
//! server runs none are earned. Not here: the credits themselves, which belong to the gates.

use crate::engine::Engine;
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_catalog::Catalog;
use weir_core::VolumeId;

/// Time between two looks for volumes that have credits and had none before.
const TICK: Duration = Duration::from_secs(1);
/// Credits are kept every so many ticks.
const TICKS: u32 = 10;
/// Time of spending at full speed that is subtracted in advance: twice the time until credits are
/// kept next, because a disk on which that takes longer has other troubles.
pub(crate) const AHEAD: Duration = Duration::from_secs(20);

/// The credits of volumes.
pub(crate) type Credits = BTreeMap<VolumeId, u64>;

/// The store of credits, used by one caller at a time.
pub(crate) struct Keeper {
    catalog: Arc<Catalog>,
    /// The credits kept last.
    kept: Mutex<Credits>,
}

impl Keeper {
    /// Keeps them in `catalog`.
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, kept: Mutex::default() }
    }

    /// Takes the right to keep credits, which nobody else has until it is dropped. Read the credits
    /// that are left after this call, or older ones may be kept last.
    pub(crate) fn begin(&self) -> Keeping<'_> {
        Keeping { catalog: &self.catalog, kept: lock(&self.kept) }
    }
}

/// The right to keep credits.
pub(crate) struct Keeping<'a> {
    catalog: &'a Catalog,
    kept: MutexGuard<'a, Credits>,
}

impl Keeping<'_> {
    /// Keeps what is `left`, and says whether that could be done; the log says it if not.
    pub(crate) fn keep(&mut self, left: Credits) -> bool {
        let done = self.catalog.keep_credits(&left);
        match &done {
            Ok(()) => *self.kept = left,
            Err(error) => tracing::warn!(
                %error,
                "cannot store the burst credits of volumes: after a restart, older values are used"
            ),
        }
        done.is_ok()
    }

    /// Keeps the credits like [`Self::keep`] if that is `due`, or if other volumes have some than
    /// before. False if there was nothing to keep.
    fn keep_if(&mut self, left: Credits, due: bool) -> bool {
        let wanted = left != *self.kept && (due || !left.keys().eq(self.kept.keys()));
        wanted && self.keep(left)
    }
}

/// Keeps credits until it is aborted.
pub(crate) async fn keep_on(engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut since = 0;
    loop {
        ticks.tick().await;
        since += 1;
        let (engine, due) = (Arc::clone(&engine), since >= TICKS);
        let keep = move || {
            let mut keeping = engine.keeper.begin();
            keeping.keep_if(engine.credits(AHEAD), due)
        };
        if matches!(tokio::task::spawn_blocking(keep).await, Ok(true)) {
            since = 0;
        }
    }
}

/// Keeps what is left, at a clean stop.
pub(crate) fn keep(engine: &Engine) {
    let mut keeping = engine.keeper.begin();
    keeping.keep(engine.credits(Duration::ZERO));
}
