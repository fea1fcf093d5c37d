//! The catalogue as the rules have to know it: the addresses with their weights, and where other
//! gateways and helpers are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use weir_catalog::{Catalog, Snapshot};
use weir_cluster::{Command, GroupId, View};
use weir_gateway::{Gateway, Places};

/// Time after which the records are compared with the catalogue again, whatever was told.
const AGAIN: Duration = Duration::from_secs(1);

/// The places of all gateways and helpers.
pub(super) fn places(snapshot: &Snapshot) -> Places {
    Places {
        gateways: snapshot.gateways().map(|one| (one.id, one.links)).collect(),
        helpers: snapshot.gateways().map(|one| (one.id, one.helper)).collect(),
    }
}

/// The addresses of the catalogue with their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Catalogued {
    generation: u64,
    weights: BTreeMap<GroupId, u64>,
}

impl Catalogued {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        // Addresses without volumes are spread too.
        let weights = snapshot.weights().into_iter().map(|(group, weight)| (group, weight.max(1)));
        Self { generation: snapshot.generation, weights: weights.collect() }
    }

    /// A command that makes the records more like the catalogue; none if they agree.
    fn next(&self, view: &View) -> Option<Command> {
        let groups = &view.records.groups;
        let place = |(&group, &weight): (&GroupId, &u64)| {
            let differs = groups.get(&group).is_none_or(|there| there.weight != weight);
            differs.then_some(Command::Place { group, weight })
        };
        let withdraw = |group: &GroupId| {
            (!self.weights.contains_key(group)).then_some(Command::Withdraw { group: *group })
        };
        self.weights.iter().find_map(place).or_else(|| groups.keys().find_map(withdraw))
    }
}

/// Keeps the groups of the records like the addresses of the catalogue. Of the gateways that live
/// the one with the lowest number does it.
pub(super) struct Groups {
    gateway: Arc<Gateway>,
    catalog: Arc<Catalog>,
    catalogued: watch::Receiver<Catalogued>,
}

impl Groups {
    pub(super) const fn new(
        gateway: Arc<Gateway>,
        catalog: Arc<Catalog>,
        catalogued: watch::Receiver<Catalogued>,
    ) -> Self {
        Self { gateway, catalog, catalogued }
    }

    /// The catalogue as it is in etcd now, if that answers.
    async fn newest(&self) -> Option<Catalogued> {
        let catalog = Arc::clone(&self.catalog);
        let read = move || {
            catalog.follow().ok()?;
            Some(Catalogued::of(&catalog.snapshot()))
        };
        spawn_blocking(read).await.ok()?
    }

    /// Runs until the catalogue is followed no more.
    pub(super) async fn keep(mut self) {
        let mut status = self.gateway.status();
        loop {
            let catalogued = self.catalogued.borrow_and_update().clone();
            let view = Arc::clone(&status.borrow_and_update().view);
            if view.live().next() == Some(self.gateway.life())
                && catalogued.next(&view).is_some()
                // An old catalogue would take groups away that others have just begun to serve.
                && let Some(newest) = self.newest().await
                && let Some(command) = newest.next(&view)
            {
                match self.gateway.command(command).await {
                    // The view that shows it may come later.
                    Ok(()) => {}
                    Err(refusal) => {
                        tracing::debug!(?command, %refusal, "the records do not follow the catalogue yet");
                    }
                }
            }
            let news = async {
                tokio::select! {
                    told = self.catalogued.changed() => told,
                    told = status.wait_for(|status| status.view.revision > view.revision) => told.map(drop),
                }
            };
            if let Ok(Err(_)) = timeout(AGAIN, news).await {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cluster::{Change, Records};

    fn view(weights: &[(u32, u64)]) -> View {
        let mut records = Records::default();
        for &(group, weight) in weights {
            records = records.with(&Change::Place { group: GroupId(group), weight });
        }
        View { records: Arc::new(records), ..View::default() }
    }

    #[test]
    fn each_difference_has_its_command() {
        let weights = BTreeMap::from([(GroupId(1), 5), (GroupId(2), 0)]);
        let catalogued = Catalogued { generation: 1, weights };
        let next = |weights: &[(u32, u64)]| catalogued.next(&view(weights));
        assert_eq!(next(&[]), Some(Command::Place { group: GroupId(1), weight: 5 }));
        assert_eq!(next(&[(1, 5)]), Some(Command::Place { group: GroupId(2), weight: 0 }));
        assert_eq!(next(&[(1, 4), (2, 0)]), Some(Command::Place { group: GroupId(1), weight: 5 }));
        assert_eq!(next(&[(1, 5), (2, 0)]), None);
        let withdrawn = Some(Command::Withdraw { group: GroupId(3) });
        assert_eq!(next(&[(1, 5), (2, 0), (3, 1)]), withdrawn);
    }
}
