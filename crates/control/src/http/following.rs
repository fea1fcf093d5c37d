//! Following the catalogue of a cluster: what other gateways changed reaches the data plane, and a
//! change made here is in force on the others when it is answered.
//!
//! Not here: how the catalogue follows (`weir_catalog::Follower`).

use super::{Control, ControlState};
use crate::sync::{Arc, lock};
use std::io;
use weir_api::Warning;
use weir_catalog::{FOLLOWED_WITHIN, Follower, Snapshot};

/// The code of the warning that names gateways.
const NOT_FOLLOWED: &str = "not_followed";

impl ControlState {
    /// Starts to follow the cluster's catalogue, until what it returns is dropped: the data plane
    /// gets each snapshot, and after it `told`.
    ///
    /// # Errors
    /// There is no thread.
    pub fn follow(
        &self,
        mut told: impl FnMut(&Arc<Snapshot>) + Send + 'static,
    ) -> io::Result<Follower> {
        let control = Arc::clone(&self.0);
        let (catalog, tokens) = (Arc::clone(&control.catalog), Arc::clone(&control.tokens));
        Follower::start(catalog, tokens, move |catalog| {
            let _turn = lock(&control.turn);
            let snapshot = catalog.snapshot();
            control.follow(&snapshot);
            // Trees of volumes that others deleted are removed by their home.
            if catalog.condemned().is_ok_and(|condemned| !condemned.is_empty()) {
                control.remove_condemned();
            }
            told(&snapshot);
        })
    }
}

impl Control {
    /// Waits until the other gateways that live follow the catalogue up to now. Warns of those
    /// that do not in time: on them the change is in force as soon as they do, or when they start.
    pub(super) fn wait_for_followers(&self) -> Option<Warning> {
        let cluster = self.cluster.get()?;
        let (view, snapshot) = (cluster.view(), self.catalog.snapshot());
        let names = view.live().filter_map(|life| snapshot.gateway(life.gateway));
        let live: Vec<String> = names.map(|gateway| gateway.name.clone()).collect();
        let change = self.catalog.followed(&self.tokens);
        let message = match self.catalog.lagging(&live, change, FOLLOWED_WITHIN) {
            Ok(lagging) if lagging.is_empty() => return None,
            Ok(lagging) => {
                let names = lagging.join(", ");
                format!("the change is made, but not yet in force on these gateways: {names}")
            }
            Err(error) => format!(
                "the change is made, but it is not known whether it is in force on all gateways: {error}"
            ),
        };
        tracing::warn!(code = NOT_FOLLOWED, "{message}");
        Some(Warning { code: NOT_FOLLOWED.to_owned(), message })
    }
}
