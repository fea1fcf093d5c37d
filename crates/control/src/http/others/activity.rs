//! `/v1/activity` of all gateways.

use super::super::ControlState;
use super::super::failure::Failure;
use super::{Answers, WhoseQuery};
use axum::Json;
use axum::extract::State;
use weir_api::{Activity, Gateways, routes};

pub(in super::super) async fn activity(
    State(state): State<ControlState>,
    whose: WhoseQuery,
) -> Result<Json<Activity>, Failure> {
    let all = state.is_for_all(whose, Gateways::All)?;
    let own = state.0.watch.activity(&state.0.catalog.snapshot(), &*state.0.plane);
    if !all {
        return Ok(Json(own));
    }
    let empty = Activity { volumes: Vec::new(), ..own.clone() };
    let answers = state.ask_all(own, routes::ACTIVITY, super::json).await;
    Ok(Json(merged(empty, answers)))
}

/// The activity of all gateways in `all`, which has none yet. Gateways that have ended are not
/// missing: they have no volumes.
fn merged(mut all: Activity, answers: Answers<Activity>) -> Activity {
    for (gateway, answer) in answers {
        match answer {
            Ok(activity) => all.volumes.extend(activity.volumes.into_iter().map(|active| {
                // A gateway speaks for itself alone.
                weir_api::Active { gateway: Some(gateway.name.clone()), ..active }
            })),
            Err(_) if gateway.has_ended() => {}
            Err(error) => all.missing.push(gateway.missing(&error)),
        }
    }
    all.volumes.sort_by(|a, b| (&a.volume, &a.gateway).cmp(&(&b.volume, &b.gateway)));
    all
}

#[cfg(test)]
mod tests {
    use super::super::NoAnswer;
    use super::super::tests::known;
    use super::*;
    use weir_api::{Active, GatewayState, MissingGateway, Window};

    fn of(volumes: &[&str]) -> Activity {
        let active = |name: &&str| Active {
            volume: (*name).to_owned(),
            pool: "p".to_owned(),
            second: Window::default(),
            window: Window::default(),
            waiting: 0,
            clients: 0,
            connections: 0,
            operations_per_second: 0.0,
            kinds: Vec::new(),
            gateway: Some("other".to_owned()),
        };
        let volumes = volumes.iter().map(active).collect();
        Activity { at: 7, served: 9, volumes, missing: Vec::new() }
    }

    #[test]
    fn volumes_of_all_gateways_are_sorted_and_have_the_name_of_theirs() {
        let answers = vec![
            (known(1, GatewayState::Live), Ok(of(&["c", "b"]))),
            (known(2, GatewayState::Live), Ok(of(&["a", "d"]))),
            (known(3, GatewayState::Live), Err(NoAnswer::Late)),
            (known(4, GatewayState::Ended), Err(NoAnswer::Ended)),
        ];
        let all = merged(of(&[]), answers);
        let shown: Vec<_> = all
            .volumes
            .iter()
            .map(|one| (one.volume.as_str(), one.gateway.as_deref().unwrap()))
            .collect();
        assert_eq!(shown, [("a", "g2"), ("b", "g1"), ("c", "g1"), ("d", "g2")]);
        assert_eq!((all.at, all.served), (7, 9));
        let reason = "it did not answer within 3 s".to_owned();
        assert_eq!(all.missing, [MissingGateway { gateway: "g3".to_owned(), reason }]);
    }
}
