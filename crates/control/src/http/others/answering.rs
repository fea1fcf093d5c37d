//! The answers of this gateway to other gateways of its cluster: for itself alone, and nothing that
//! changes anything or is secret. The other gateway has proved that it is one; it checks the roles
//! of its clients.

use super::super::failure::Failure;
use super::super::listen::{self, Peer};
use super::super::{ControlState, watching};
use super::{health, history, home, metrics, volumes};
use crate::cluster::Stream;
use crate::limits::{ANSWERING_MAX, ANSWERING_WAIT};
use crate::sync::{Arc, watch};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_api::routes;

/// The volumes that a gateway serves and does not serve.
pub(super) const HEALTH: &str = "/v1/gateway/health";
/// The live figures of volumes that a gateway serves.
pub(super) const VOLUMES: &str = "/v1/gateway/volumes";
/// The history that a gateway recorded of a volume.
pub(super) const HISTORY: &str = "/v1/gateway/history";

/// The questions of other gateways. None of them is a route of the API.
fn router(state: ControlState) -> Router {
    Router::new()
        .route(HEALTH, get(health::own))
        .route(VOLUMES, get(volumes::own))
        .route(HISTORY, get(history::own))
        .route(routes::ACTIVITY, get(watching::own_activity))
        .route(routes::METRICS, get(metrics::own))
        .route(routes::WHY, get(home::own_why))
        .route(routes::LOAD, get(home::own_load))
        .fallback(unknown)
        .with_state(state)
}

async fn unknown(State(_): State<ControlState>) -> Failure {
    let message = "this gateway does not know the question";
    Failure::new(StatusCode::NOT_FOUND, "no_such_route", message)
}

/// Answers other gateways until `stopping`. Returns at once if the server is alone.
pub(in super::super) async fn answer(state: ControlState, mut stopping: watch::Receiver<bool>) {
    let Some(cluster) = state.0.cluster.get().map(Arc::clone) else { return };
    let (router, mut tasks) = (router(state), JoinSet::new());
    let mut stop = stopping.clone();
    let accepting = async {
        loop {
            while tasks.len() >= ANSWERING_MAX {
                tasks.join_next().await;
            }
            while tasks.try_join_next().is_some() {}
            let Some(stream) = cluster.asked().await else { break };
            tasks.spawn(converse(stream, router.clone(), stopping.clone()));
        }
    };
    tokio::select! {
        () = accepting => {}
        () = listen::stopped(&mut stop) => return,
    }
    listen::stopped(&mut stopping).await;
}

/// Answers the questions of one connection, which may not take long.
async fn converse(stream: Stream, router: Router, stopping: watch::Receiver<bool>) {
    let conversation = listen::converse(stream, Peer::Gateway, None, router, stopping);
    if timeout(ANSWERING_WAIT, conversation).await.is_err() {
        tracing::debug!("cut off a gateway that did not take its answer");
    }
}
