//! Keeping the credits of volumes in the catalogue, so that a restart doesn't fill them up.
//!
//! What is kept while the server runs is what is left for certain when it is kept next, though all are
//! spent at full speed until then: after a crash there are never more than there were, and at most
//! [`AHEAD`] of a burst fewer. A clean stop keeps what is left. While no server runs none are earned. Not here: the credits
//! themselves, which are the gates'.

use crate::engine::Engine;
use crate::sync::Arc;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_catalog::Catalog;
use weir_core::VolumeId;

/// How often is looked whether a volume has credits that had none before.
const TICK: Duration = Duration::from_secs(1);
/// Credits are kept every so many ticks.
const TICKS: u32 = 10;
/// What is spent until they are kept next counts as spent for so long: twice as long as that takes, and a
/// disk on which it takes longer has other troubles.
const AHEAD: Duration = Duration::from_secs(20);

/// Keeps credits until it is aborted.
pub(crate) async fn keep_on(engine: Arc<Engine>, catalog: Arc<Catalog>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut kept, mut since) = (BTreeMap::new(), 0);
    loop {
        ticks.tick().await;
        let left = engine.credits(AHEAD);
        since += 1;
        if since < TICKS && left.keys().eq(kept.keys()) || left == kept {
            continue;
        }
        let (keep, to) = (left.clone(), Arc::clone(&catalog));
        let done = tokio::task::spawn_blocking(move || tell(&to, &keep)).await;
        if matches!(done, Ok(true)) {
            (kept, since) = (left, 0);
        }
    }
}

/// Keeps what is left, at a clean stop.
pub(crate) fn keep(engine: &Engine, catalog: &Catalog) {
    tell(catalog, &engine.credits(Duration::ZERO));
}

/// Says in the log if they can't be kept.
fn tell(catalog: &Catalog, left: &BTreeMap<VolumeId, u64>) -> bool {
    let kept = catalog.keep_credits(left);
    if let Err(error) = &kept {
        tracing::warn!(%error, "the credits of volumes can't be kept: a restart goes on with older ones");
    }
    kept.is_ok()
}
