//! `/v1/health` of all gateways.

use super::super::failure::Failure;
use super::super::{Control, ControlState, convert};
use super::answering::HEALTH;
use super::{Answers, Known, NoAnswer, WhoseQuery};
use crate::cluster::NotAsked;
use crate::sync::Arc;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_api::{GatewayHealth, GatewayState, Gateways, Health, UnservedVolume};
use weir_catalog::Volume;

/// The state of a gateway, in its own words.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Told {
    /// The volumes that it has open, by their IDs.
    served: BTreeSet<u32>,
    /// Whether it may reply to clients.
    #[serde(default = "yes")]
    may_reply: bool,
}

const fn yes() -> bool {
    true
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
        let may_reply = self.cluster.get().is_none_or(|cluster| cluster.may_reply());
        Told { served: served.map(|volume| volume.id.0).collect(), may_reply }
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

/// The health of the cluster with these volumes. A volume is served if any gateway says so that may
/// reply to clients; one whose home does not answer may be.
fn merged(volumes: &[Listed], answers: Answers<Told>) -> Health {
    let (mut served, mut unknown, mut gateways) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (gateway, answer) in answers {
        let Known { name, state, .. } = gateway.clone();
        let is_home = volumes.iter().any(|one| one.home.as_ref() == Some(&name));
        let fault = fault(&gateway, is_home, &answer);
        let (volumes_served, no_answer) = match answer {
            Ok(_) if fault.is_some() => {
                unknown.insert(name.clone());
                (Some(0), None)
            }
            Ok(told) => {
                let count = volumes.iter().filter(|one| told.served.contains(&one.id)).count();
                served.extend(told.served);
                (Some(count), None)
            }
            Err(error) => {
                if !gateway.has_ended() {
                    unknown.insert(name.clone());
                }
                (None, Some(error.to_string()))
            }
        };
        gateways.push(GatewayHealth { name, state, volumes_served, no_answer, fault });
    }
    let may_be = |one: &Listed| one.home.as_ref().is_some_and(|home| unknown.contains(home));
    let missing = volumes.iter().filter(|one| !served.contains(&one.id) && !may_be(one));
    let named = |one: &Listed| UnservedVolume { name: one.name.clone(), gateway: one.home.clone() };
    let unserved: Vec<_> = missing.map(named).collect();
    Health {
        ready: unserved.is_empty() && gateways.iter().all(|gateway| gateway.fault.is_none()),
        volumes_served: volumes.iter().filter(|one| served.contains(&one.id)).count(),
        unserved,
        gateways,
    }
}

/// The fault of a gateway, which is the home of volumes or not. One of an older version that holds
/// its lease has none: it cannot answer, while versions are mixed.
fn fault(gateway: &Known, is_home: bool, answer: &Result<Told, NoAnswer>) -> Option<String> {
    let is_silent = gateway.state == GatewayState::Silent;
    match answer {
        Err(_) if gateway.has_ended() => None,
        Err(NoAnswer::NotAsked(NotAsked::Older)) if !is_silent => None,
        Err(error) => Some(format!("does not answer: {error}")),
        Ok(_) if !is_home => None,
        Ok(_) if is_silent => {
            Some("has volumes and does not hold its lease, so that it may not reply".to_owned())
        }
        Ok(told) if !told.may_reply => {
            Some("has volumes and may not reply to clients at present".to_owned())
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::known;
    use super::*;
    use weir_api::GatewayState::{Ended, Live, Silent};

    fn told(served: &[u32]) -> Told {
        Told { served: served.iter().copied().collect(), may_reply: true }
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
        let fault = "does not answer: it did not answer within 3 s";
        assert_eq!(row.fault.as_deref(), Some(fault));
    }

    #[test]
    fn one_of_an_older_version_that_lives_is_shown_and_is_no_fault() {
        let of = |state| {
            let own = (known(1, Live), Ok(told(&[1, 4])));
            merged(&volumes(), vec![own, (known(2, state), Err(NotAsked::Older.into()))])
        };
        let health = of(Live);
        assert_eq!((health.ready, health.volumes_served, unserved(&health).len()), (true, 2, 0));
        let row = &health.gateways[1];
        assert!(row.no_answer.as_ref().unwrap().starts_with("it runs an older version"));
        assert_eq!(row.fault, None);
        assert!(!of(Silent).ready, "it does not hold its lease");
    }

    #[test]
    fn a_home_that_may_not_reply_serves_nothing() {
        let of = |(state, may_reply), served: &[u32]| {
            let own = (known(1, Live), Ok(told(&[1, 4])));
            let other = Told { may_reply, ..told(served) };
            merged(&volumes(), vec![own, (known(2, state), Ok(other))])
        };
        assert!(of((Live, true), &[2, 3]).ready);
        for (state, may_reply) in [(Silent, true), (Live, false)] {
            let health = of((state, may_reply), &[2, 3]);
            assert_eq!((health.ready, health.volumes_served), (false, 2));
            assert_eq!(health.gateways[1].volumes_served, Some(0));
            assert!(health.gateways[1].fault.as_ref().unwrap().contains("may not reply"));
            assert!(unserved(&health).is_empty(), "the fault says it");
        }
        let mut others = volumes();
        others.retain(|one| one.home.as_deref() != Some("g2"));
        let own = (known(1, Live), Ok(told(&[1, 4])));
        let idle = (known(2, Live), Ok(Told { may_reply: false, ..told(&[]) }));
        assert!(merged(&others, vec![own, idle]).ready, "it is the home of none");
        let before: Told = serde_json::from_str("{\"served\":[7]}").unwrap();
        assert!(before.may_reply, "a version that does not say so");
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
