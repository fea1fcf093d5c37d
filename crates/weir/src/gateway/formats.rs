//! The format of the catalogue follows the version of the cluster's records: once all gateways have
//! agreed on a version, the catalogue may have what that version knows. Not here: when the version
//! of the records rises, which is a rule of `weir-cluster`.

use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use weir_catalog::Catalog;
use weir_cluster::Version;
use weir_gateway::Gateway;

/// Time before an attempt that failed is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Raises the format whenever the version of the records has risen, until the life has ended. Of
/// the gateways that live the one with the lowest number does it.
///
/// The order is what makes it safe: a gateway that does not know the version of the records can be
/// a member no more, so none of them meets a row of the catalogue that it cannot read.
pub(super) async fn keep(gateway: Arc<Gateway>, catalog: Arc<Catalog>) {
    let mut status = gateway.status();
    let mut agreed = None;
    loop {
        let view = Arc::clone(&status.borrow_and_update().view);
        let version = view.records.format;
        let is_mine = view.live().next() == Some(gateway.life());
        // Before the first view there is no version.
        if version > Version::default() {
            tell(agreed.replace(version), version);
        }
        let has_failed = is_mine && !raise(&catalog, version).await;
        let news = status.wait_for(|status| {
            let is_first = status.view.live().next() == Some(gateway.life());
            status.view.records.format != version || (is_first && !is_mine)
        });
        let within = if has_failed { AGAIN } else { Duration::MAX };
        if let Ok(Err(_)) = timeout(within, news).await {
            return;
        }
    }
}

/// Tells the operator when the version has risen.
fn tell(before: Option<Version>, version: Version) {
    if before.is_some_and(|before| before != version) {
        tracing::info!(
            %version,
            "all gateways know a newer version of the cluster's records, which are written in it from now on"
        );
    }
}

/// Raises the format, if it is below the one of this version. Returns whether it is not any more.
async fn raise(catalog: &Arc<Catalog>, version: Version) -> bool {
    let catalog = Arc::clone(catalog);
    match spawn_blocking(move || catalog.raise_cluster_format(version)).await {
        Ok(Ok(Some(format))) => {
            tracing::info!(format, "the catalogue is written in a newer format from now on");
            true
        }
        Ok(Ok(None)) => true,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the format of the catalogue is not raised yet");
            false
        }
        Err(_) => false,
    }
}
