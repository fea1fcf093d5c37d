//! Answers about one volume that its home alone has: why it is as fast as it is, and its load.

use super::super::failure::Failure;
use super::super::watching::{self, find};
use super::super::{Control, ControlState};
use super::{Home, NoAnswer, no_answer};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use weir_api::{Load, Why, routes};

/// The explanation of a volume by its home.
pub(in super::super) async fn why(state: &ControlState, name: &str) -> Result<Why, Failure> {
    match asked(state, name, routes::WHY).await? {
        Some((gateway, why)) => Ok(Why { gateway: Some(gateway), ..why }),
        None => {
            let here = watching::own_why(State(state.clone()), Path(name.to_owned()));
            let Json(why) = here.await?;
            Ok(Why { gateway: state.0.own().map(|own| own.name), ..why })
        }
    }
}

/// The load of a volume at its home.
pub(in super::super) async fn load(state: &ControlState, name: &str) -> Result<Load, Failure> {
    match asked(state, name, routes::LOAD).await? {
        Some((_, load)) => Ok(load),
        None => {
            let here = watching::own_load(State(state.clone()), Path(name.to_owned()));
            here.await.map(|Json(load)| load)
        }
    }
}

/// The explanation for another gateway, if the volume is served here.
pub(super) async fn own_why(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Why>, Failure> {
    state.0.require_here(&name)?;
    watching::own_why(State(state), Path(name)).await
}

/// The load for another gateway, if the volume is served here.
pub(super) async fn own_load(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Load>, Failure> {
    state.0.require_here(&name)?;
    watching::own_load(State(state), Path(name)).await
}

impl Control {
    /// Refuses a volume that is not served here: the gateway that asks knows an earlier home, or a
    /// later one.
    fn require_here(&self, name: &str) -> Result<(), Failure> {
        let snapshot = self.catalog.snapshot();
        let volume = find(&snapshot, name)?;
        let is_here = self.plane.volume_live(volume.id).is_some() || self.plane.is_home_of(volume);
        if is_here { Ok(()) } else { Err(moving(name)) }
    }
}

fn moving(name: &str) -> Failure {
    let message = format!("no gateway serves volume {name:?} at present; try again");
    Failure::new(StatusCode::CONFLICT, "address_moving", message)
}

/// The answer of the home of a volume, if it is another gateway, and the name of that.
async fn asked<T: DeserializeOwned>(
    state: &ControlState,
    name: &str,
    route: &str,
) -> Result<Option<(String, T)>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    match state.0.home(&snapshot, find(&snapshot, name)?) {
        Home::Here => Ok(None),
        Home::At(home) => {
            let answer = state.ask(&home, &routes::path(route, name)).await;
            match answer.and_then(|body| super::json(&body)) {
                Ok(answer) => Ok(Some((home.name, answer))),
                Err(NoAnswer::Failed(409)) => Err(moving(name)),
                Err(error) => Err(no_answer(&home, name, &error)),
            }
        }
        Home::Nowhere => Err(moving(name)),
    }
}
