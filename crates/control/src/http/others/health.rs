//! `/v1/health` of all gateways.

use super::super::failure::Failure;
use super::super::{Control, ControlState, convert};
use super::answering::HEALTH;
use super::{Answers, Known, WhoseQuery};
use crate::sync::Arc;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_api::{GatewayHealth, Gateways, Health, UnservedVolume};
use weir_catalog::Volume;

/// The volumes that a gateway serves, by their IDs.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Told {
    served: BTreeSet<u32>,
}

/// A volume of the catalogue, and its home.
struct Listed {
    id: u32,
    name: String,
    home: Option<String>,
}

pub(in super::super) async fn health(
    State(state): State<ControlState>,
    whose: WhoseQuery,
) -> Result<Json<Health>, Failure> {
    let all = state.is_for_all(whose, Gateways::All)?;
    if !all {
        return Ok(Json(state.0.health()));
    }
    let answers = state.ask_all(state.0.told(), HEALTH, super::json).await;
    Ok(Json(merged(&state.0.listed(), answers)))
}

/// The answer to another gateway.
pub(super) async fn own(State(state): State<ControlState>) -> Json<Told> {
    Json(state.0.told())
}

impl Control {
    fn told(&self) -> Told {
        let snapshot = self.catalog.snapshot();
        let served = snapshot.volumes().filter(|one| self.plane.volume_live(one.id).is_some());
        Told { served: served.map(|volume| volume.id.0).collect() }
    }

    fn listed(&self) -> Vec<Listed> {
        let (snapshot, view) = (self.catalog.snapshot(), self.cluster.get().map(|it| it.view()));
        let home = |volume: &Volume| {
            let id = convert::home(view.as_deref()?, volume.address?)?;
            Some(convert::gateway_name(&snapshot, id))
        };
        let volumes = snapshot.volumes();
        let listed = |volume: &Arc<Volume>| Listed {
            id: volume.id.0,
            name: volume.name.clone(),
            home: home(volume),
        };
        volumes.map(listed).collect()
    }
}

/// The health of the cluster with these volumes. A volume is served if any gateway says so; one
/// whose home does not answer may be.
fn merged(volumes: &[Listed], answers: Answers<Told>) -> Health {
    let (mut served, mut silent, mut gateways) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (gateway, answer) in answers {
        let has_ended = gateway.has_ended();
        let Known { name, state, .. } = gateway;
        let (volumes_served, no_answer) = match answer {
            Ok(told) => {
                let count = volumes.iter().filter(|one| told.served.contains(&one.id)).count();
                served.extend(told.served);
                (Some(count), None)
            }
            Err(error) => {
                if !has_ended {
                    silent.insert(name.clone());
                }
                (None, Some(error.to_string()))
            }
        };
        gateways.push(GatewayHealth { name, state, volumes_served, no_answer });
    }
    let may_be = |one: &Listed| one.home.as_ref().is_some_and(|home| silent.contains(home));
    let missing = volumes.iter().filter(|one| !served.contains(&one.id) && !may_be(one));
    let named = |one: &Listed| UnservedVolume { name: one.name.clone(), gateway: one.home.clone() };
    let unserved: Vec<_> = missing.map(named).collect();
    Health {
        ready: unserved.is_empty() && silent.is_empty(),
        volumes_served: volumes.iter().filter(|one| served.contains(&one.id)).count(),
        unserved,
        gateways,
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoAnswer;
    use super::super::tests::known;
    use super::*;
    use weir_api::GatewayState::{Ended, Live, Silent};

    fn told(served: &[u32]) -> Told {
        Told { served: served.iter().copied().collect() }
    }

    /// Volumes 1 to 4, called `v1` to `v4`: those of `g1` and `g2`, and one without a home.
    fn volumes() -> Vec<Listed> {
        let homes = [Some("g1"), Some("g2"), Some("g2"), None];
        let listed = |(id, home): (u32, Option<&str>)| Listed {
            id,
            name: format!("v{id}"),
            home: home.map(str::to_owned),
        };
        (1..).zip(homes).map(listed).collect()
    }

    fn unserved(health: &Health) -> Vec<(&str, Option<&str>)> {
        health.unserved.iter().map(|one| (one.name.as_str(), one.gateway.as_deref())).collect()
    }

    #[test]
    fn each_volume_that_nobody_serves_is_named_with_its_home() {
        let own = (known(1, Live), Ok(told(&[1])));
        let health = merged(&volumes(), vec![own, (known(2, Live), Ok(told(&[2, 77])))]);
        assert_eq!((health.ready, health.volumes_served), (false, 2));
        assert_eq!(unserved(&health), [("v3", Some("g2")), ("v4", None)]);
        let counts: Vec<_> = health.gateways.iter().map(|row| row.volumes_served).collect();
        assert_eq!(counts, [Some(1), Some(1)], "one that is not in the catalogue does not count");
    }

    #[test]
    fn a_gateway_that_does_not_answer_is_a_finding_and_its_volumes_are_none() {
        let own = (known(1, Live), Ok(told(&[1, 4])));
        let health = merged(&volumes(), vec![own, (known(2, Silent), Err(NoAnswer::Late))]);
        assert_eq!((health.ready, unserved(&health).len()), (false, 0));
        let row = &health.gateways[1];
        assert_eq!((row.name.as_str(), row.state, row.volumes_served), ("g2", Silent, None));
        assert_eq!(row.no_answer.as_deref(), Some("it did not answer within 3 s"));
    }

    #[test]
    fn one_that_has_ended_is_shown_and_its_volumes_must_be_elsewhere() {
        let ended = || (known(2, Ended), Err(NoAnswer::Ended));
        let own = |served: &[u32]| (known(1, Live), Ok(told(served)));
        let health = merged(&volumes(), vec![own(&[1, 2, 3, 4]), ended()]);
        assert_eq!((health.ready, health.volumes_served), (true, 4));
        assert_eq!(health.gateways[1].no_answer.as_deref(), Some("it has ended"));
        let health = merged(&volumes(), vec![own(&[1, 2, 4]), ended()]);
        assert_eq!(unserved(&health), [("v3", Some("g2"))]);
    }
}
