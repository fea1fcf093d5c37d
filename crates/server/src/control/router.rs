//! Which handler answers which route.

use super::auth::{self, Token};
use super::failure::Failure;
use super::{ControlState, backup, exports, info, levels, pools, volumes, watching};
use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::time::Duration;
use tokio::time::timeout;
use weir_api::limits::REQUEST_BYTES_MAX;
use weir_api::routes;

/// Longest a request may take, its body included.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(60);

/// The API for whoever can reach the listener.
pub(super) fn open(state: ControlState) -> Router {
    handlers(state).layer(middleware::from_fn(noted))
}

/// The API for whoever has the token.
pub(super) fn guarded(state: ControlState, token: &str) -> Router {
    handlers(state)
        .layer(middleware::from_fn_with_state(Token::new(token), auth::require))
        .layer(middleware::from_fn(noted))
}

fn handlers(state: ControlState) -> Router {
    Router::new()
        .route(routes::SERVER, get(info::server))
        .route(routes::HEALTH, get(info::health))
        .route(routes::LIVENESS, get(info::liveness))
        .route(routes::READINESS, get(info::readiness))
        .route(routes::METRICS, get(info::metrics))
        .route(routes::LEVELS, get(levels::list).post(levels::create))
        .route(routes::LEVEL, get(levels::show).patch(levels::change).delete(levels::delete))
        .route(routes::POOLS, get(pools::list).post(pools::create))
        .route(routes::POOL, get(pools::show).patch(pools::change).delete(pools::delete))
        .route(routes::VOLUMES, get(volumes::list).post(volumes::create))
        .route(routes::VOLUME, get(volumes::show).patch(volumes::change).delete(volumes::delete))
        .route(routes::RESCAN, post(volumes::rescan))
        .route(
            routes::EXPORTS,
            get(exports::list).put(exports::set).post(exports::add).delete(exports::remove),
        )
        .route(routes::REPORT, get(watching::report))
        .route(routes::WHY, get(watching::why))
        .route(routes::ACTIVITY, get(watching::activity))
        .route(routes::CATALOG_BACKUP, get(backup::backup))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn(bounded))
        .with_state(state)
}

/// Notes each request in the log, without its headers: the token is in one.
async fn noted(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    tracing::debug!(%method, %path, status = response.status().as_u16(), "asked of the API");
    response
}

/// Refuses bodies that announce themselves too large, and ends requests that take too long. A
/// change that has begun is not undone by it.
async fn bounded(request: Request, next: Next) -> Response {
    let announced = request.body().size_hint().lower();
    if !usize::try_from(announced).is_ok_and(|bytes| bytes <= REQUEST_BYTES_MAX) {
        let message = format!("a request body may have {REQUEST_BYTES_MAX} bytes");
        return Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).into_response();
    }
    match timeout(REQUEST_WAIT_MAX, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let message = "the request took too long; a change that was asked for may be made yet";
            Failure::new(StatusCode::REQUEST_TIMEOUT, "timeout", message).into_response()
        }
    }
}

async fn unknown_route() -> Failure {
    Failure::new(
        StatusCode::NOT_FOUND,
        "no_such_route",
        "there is nothing at this path; the API is under /v1",
    )
}

async fn unknown_method() -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        "this path doesn't take that method",
    )
}
