//! Saving the burst credits of volumes in the catalogue, so that a restart does not refill them.
//!
//! While the server runs, it saves the credits that are certainly left at the next save, even if
//! volumes spend them at full speed until then. So after a crash a volume never has more credits
//! than it had, and at most [`AHEAD`] of a burst fewer. Limits that spend credits faster come into
//! force only after the credits have been saved for them. A clean stop saves the credits that are
//! left. No credits are earned while no server runs. One of several servers saves those of the
//! volumes that it serves, while it may reply. Not here: the credits themselves, which belong to
//! the gates.

use super::Engine;
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_catalog::Catalog;
use weir_core::VolumeId;

/// Time between two checks for volumes that have credits and had none before.
const TICK: Duration = Duration::from_secs(1);
/// Credits are saved every so many ticks.
const TICKS: u32 = 10;
/// Time of spending at full speed that is subtracted in advance: twice the time between two saves,
/// in case the disk is slow.
pub(crate) const AHEAD: Duration = Duration::from_secs(20);

/// The credits of volumes.
pub(crate) type Credits = BTreeMap<VolumeId, u64>;

/// Credits to save.
#[derive(Debug)]
pub(crate) struct Left {
    /// The credits.
    pub(crate) credits: Credits,
    /// The volumes whose credits they are; none if they are those of all volumes.
    pub(crate) of: Option<BTreeSet<VolumeId>>,
}

/// The saved credits, written by one thread at a time.
pub(crate) struct CreditStore {
    catalog: Arc<Catalog>,
    saved: Mutex<Credits>,
}

impl CreditStore {
    /// A store in `catalog`.
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, saved: Mutex::default() }
    }

    /// Locks the store. Read the credits that are left after this call, or older ones could be
    /// saved last.
    pub(crate) fn lock(&self) -> CreditLock<'_> {
        CreditLock { catalog: &self.catalog, saved: lock(&self.saved) }
    }
}

/// The locked store of credits.
pub(crate) struct CreditLock<'a> {
    catalog: &'a Catalog,
    saved: MutexGuard<'a, Credits>,
}

impl CreditLock<'_> {
    /// Saves the credits that are `left`. False if that failed, which is logged.
    pub(crate) fn save(&mut self, Left { credits, of }: Left) -> bool {
        let done = match &of {
            None => self.catalog.keep_credits(&credits),
            Some(of) => self.catalog.keep_credits_of(of, &credits),
        };
        match &done {
            Ok(()) => *self.saved = credits,
            Err(error) => tracing::warn!(
                %error,
                "cannot store the burst credits of volumes: after a restart, older values are used"
            ),
        }
        done.is_ok()
    }

    /// Saves the credits if a save is `due`, or if other volumes than before have credits. False if
    /// nothing was saved.
    fn save_if(&mut self, left: Left, due: bool) -> bool {
        let credits = &left.credits;
        let wanted = *credits != *self.saved && (due || !credits.keys().eq(self.saved.keys()));
        wanted && self.save(left)
    }
}

/// Saves credits until it is aborted.
pub(crate) async fn save_periodically(engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut since = 0;
    loop {
        ticks.tick().await;
        since += 1;
        let (engine, due) = (Arc::clone(&engine), since >= TICKS);
        let save = move || {
            let mut credits = engine.credit_store.lock();
            engine.left(AHEAD).is_some_and(|left| credits.save_if(left, due))
        };
        if matches!(tokio::task::spawn_blocking(save).await, Ok(true)) {
            since = 0;
        }
    }
}

/// Saves the credits that are left, at a clean stop.
pub(crate) fn save_all(engine: &Engine) {
    let mut credits = engine.credit_store.lock();
    if let Some(left) = engine.left(Duration::ZERO) {
        credits.save(left);
    }
}
