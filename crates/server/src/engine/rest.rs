//! Volumes that nobody uses any more let go of what they hold: descriptors, and the memory for objects and names.
//! What their clients ask for afterwards is opened again, as it is where a bound was reached.

use super::{Engine, ServedVolume};
use crate::sync::{Arc, Ordering};
use std::time::Duration;

/// Between two looks. What a volume holds is let go after one to two of these in which nothing was asked of it: long enough
/// for clients that come every few minutes, as those with a mount do who ask for its space.
const LOOK: Duration = Duration::from_secs(300);

impl Engine {
    /// Has each volume let go that nothing was asked of since the last look. Blocks.
    pub(crate) fn rest(&self) {
        for mounted in self.served.load_full().all() {
            mounted.volume.rest_if_idle();
        }
    }
}

impl ServedVolume {
    fn rest_if_idle(&self) {
        let operations = self.stats.operations();
        // One that was never used holds nothing.
        if operations == self.at_rest.swap(operations, Ordering::Relaxed) && operations > 0 {
            self.nfs.store.rest();
        }
    }
}

/// Looks until it is aborted.
pub(crate) async fn rest_on(engine: Arc<Engine>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let engine = Arc::clone(&engine);
        // One that panicked is nothing to the next.
        let _looked = tokio::task::spawn_blocking(move || engine.rest()).await;
    }
}
