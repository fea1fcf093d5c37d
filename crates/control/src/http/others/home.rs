//! Answers about one volume that its home alone has: why it is as fast as it is, and its load.

use super::super::ControlState;
use super::super::failure::Failure;
use super::super::watching::{self, find};
use super::{Home, no_answer};
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
            let answer = answer.and_then(|body| super::json(&body));
            let answer = answer.map_err(|error| no_answer(&home, name, &error))?;
            Ok(Some((home.name, answer)))
        }
        Home::Nowhere => {
            let message = format!("no gateway serves volume {name:?} at present; try again");
            Err(Failure::new(StatusCode::CONFLICT, "address_moving", message))
        }
    }
}
