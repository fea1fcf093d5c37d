//! The format of the catalogue follows the version of the cluster's records: once all gateways have
//! agreed on a version, the catalogue may have what that version knows. Not here: when the version
//! of the records rises, which is a rule of `weir-cluster`.

use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use weir_catalog::Catalog;
use weir_cluster::Version;
use weir_gateway::{Gateway, Status};

/// Time before an attempt that failed is made again.
const AGAIN: Duration = Duration::from_secs(1);
/// Time after which the next live gateway attempts it, too, if the one before has not succeeded.
const TURN: Duration = Duration::from_secs(5);
/// An operator is told of a format that could not be raised for this long.
const LATE: Duration = Duration::from_secs(60);

/// Raises the format whenever the version of the records has risen, until the life has ended. The
/// live gateway with the lowest number does it; if it does not, the next ones join in.
///
/// The order is what makes it safe: a gateway that does not know the version of the records can be
/// a member no more, so none of them meets a row of the catalogue that it cannot read.
pub(super) async fn keep(gateway: Arc<Gateway>, catalog: Arc<Catalog>) {
    let mut status = gateway.status();
    let mut agreed = Agreed::new(Version::default(), Instant::now());
    loop {
        let (version, rank) = seen(&status.borrow_and_update());
        if version != agreed.version {
            tell(agreed.version, version);
            agreed = Agreed::new(version, Instant::now());
        }
        if agreed.due(rank).is_some_and(|due| due <= Instant::now()) {
            let raised = raise(&catalog, version).await;
            agreed.attempted(raised, Instant::now());
        }
        let news = status.wait_for(|status| seen(status) != (version, rank));
        let within = agreed.due(rank).map(|due| due.saturating_duration_since(Instant::now()));
        if let Ok(Err(_)) = timeout(within.unwrap_or(Duration::MAX), news).await {
            return;
        }
    }
}

/// The version of the records, and how many live gateways come before this one.
fn seen(status: &Status) -> (Version, Option<usize>) {
    let rank = status.view.live().position(|life| life == status.life);
    (status.view.records.format, rank)
}

/// A version of the records, and what was done about it.
struct Agreed {
    version: Version,
    since: Instant,
    /// No attempt is made before.
    next: Instant,
    /// The catalogue has the format of the version.
    is_done: bool,
    is_told: bool,
}

impl Agreed {
    fn new(version: Version, now: Instant) -> Self {
        // Before the first view there is no version.
        let is_done = version == Version::default();
        Self { version, since: now, next: now, is_done, is_told: false }
    }

    /// When the live gateway of this rank attempts to raise the format; never if that is done.
    fn due(&self, rank: Option<usize>) -> Option<Instant> {
        let rank = u32::try_from(rank?).ok()?;
        let turn = self.since + TURN.saturating_mul(rank);
        (!self.is_done).then_some(turn.max(self.next))
    }

    /// Takes the outcome of an attempt, and tells the operator once that it takes long.
    fn attempted(&mut self, outcome: Result<(), String>, now: Instant) {
        match outcome {
            Ok(()) => self.is_done = true,
            Err(error) => {
                self.next = now + AGAIN;
                if self.is_late(now) {
                    tracing::warn!(
                        error,
                        version = %self.version,
                        "the catalogue could not be brought to the format of this version for a minute; new settings are refused until it is"
                    );
                } else {
                    tracing::debug!(error, "the format of the catalogue is not raised yet");
                }
            }
        }
    }

    /// Is it time to tell the operator? That is so once.
    fn is_late(&mut self, now: Instant) -> bool {
        let is_late = now >= self.since + LATE;
        is_late && !std::mem::replace(&mut self.is_told, is_late)
    }
}

/// Tells the operator when the version has risen.
fn tell(before: Version, version: Version) {
    if before != Version::default() {
        tracing::info!(
            %version,
            "all gateways know a newer version of the cluster's records, which are written in it from now on"
        );
    }
}

/// Raises the format, if it is below the one of this version.
///
/// # Errors
/// It is still below it, for this reason.
async fn raise(catalog: &Arc<Catalog>, version: Version) -> Result<(), String> {
    let catalog = Arc::clone(catalog);
    match spawn_blocking(move || catalog.raise_cluster_format(version)).await {
        Ok(Ok(raised)) => {
            if let Some(format) = raised {
                tracing::info!(format, "the catalogue is written in a newer format from now on");
            }
            Ok(())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_next_gateways_join_in_until_the_format_is_raised() {
        let now = Instant::now();
        let mut agreed = Agreed::new(Version(2), now);
        let due = |agreed: &Agreed| [0, 1, 2].map(|rank| agreed.due(Some(rank)));
        assert_eq!(due(&agreed), [0, 5, 10].map(|after| Some(now + after * SECOND)));
        assert_eq!(agreed.due(None), None, "it has no lease");
        agreed.attempted(Err("etcd is away".to_owned()), now + 6 * SECOND);
        assert_eq!(due(&agreed), [7, 7, 10].map(|after| Some(now + after * SECOND)));
        agreed.attempted(Ok(()), now + 7 * SECOND);
        assert_eq!(due(&agreed), [None; 3]);
        assert_eq!(Agreed::new(Version::default(), now).due(Some(0)), None, "nothing was seen yet");
    }

    #[test]
    fn an_operator_is_told_once_after_a_minute() {
        let now = Instant::now();
        let mut agreed = Agreed::new(Version(2), now);
        let told = [59, 60, 61, 3_600].map(|after| agreed.is_late(now + after * SECOND));
        assert_eq!(told, [false, true, false, false]);
    }
}
