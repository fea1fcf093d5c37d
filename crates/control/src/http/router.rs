//! Which handler answers which route.

use super::failure::Failure;
use super::{
    ControlState, access, audit, backup, body, calibrations, clients, exports, gateways, groups,
    info, levels, operations, others, pools, shares, sizing, tokens, users, volumes, watching,
};
use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use std::time::Duration;
use tokio::time::timeout;
use weir_api::limits::REQUEST_BYTES_MAX;
use weir_api::routes;

/// Longest a request may take, its body included.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(60);

/// A route and what answers it.
type Answered = (&'static str, &'static str, MethodRouter<ControlState>);

/// Rows of method, path and handler; [`weir_api::routes::ROUTES`] says who may use them.
macro_rules! answered {
    ($($method:ident $path:ident $handler:path;)+) => {
        [$((stringify!($method), routes::$path, $method($handler))),+]
    };
}

fn answered() -> impl Iterator<Item = Answered> {
    of_every_server().into_iter().chain(of_gateways())
}

/// The routes that only gateways of a cluster answer without an error.
fn of_gateways() -> impl IntoIterator<Item = Answered> {
    answered! {
        get VOLUME_HOME gateways::home;
        put VOLUME_HOME gateways::move_home;
        get GATEWAYS gateways::list;
        delete GATEWAY gateways::remove;
        put GATEWAY_DRAIN gateways::drain;
        delete GATEWAY_DRAIN gateways::undrain;
        put GATEWAY_GONE gateways::declare_gone;
        get ADDRESSES gateways::addresses;
        post ADDRESSES gateways::add_address;
        delete ADDRESS gateways::remove_address;
    }
}

fn of_every_server() -> impl IntoIterator<Item = Answered> {
    answered! {
        get LIVENESS info::liveness;
        get READINESS info::readiness;
        get METRICS others::metrics;
        get OPENAPI info::openapi;
        get SERVER info::server;
        get HEALTH others::health;
        get LEVELS levels::list;
        post LEVELS levels::create;
        get LEVEL levels::show;
        patch LEVEL levels::change;
        delete LEVEL levels::delete;
        get POOLS pools::list;
        post POOLS pools::create;
        get POOL pools::show;
        patch POOL pools::change;
        delete POOL pools::delete;
        get VOLUMES volumes::list;
        post VOLUMES volumes::create;
        get VOLUME volumes::show;
        patch VOLUME volumes::change;
        delete VOLUME volumes::delete;
        get CAPACITY calibrations::capacity;
        get SIZING sizing::sizing;
        get CALIBRATIONS calibrations::list;
        get CALIBRATION calibrations::show;
        put CALIBRATION calibrations::keep;
        delete CALIBRATION calibrations::forget;
        get EXPORTS exports::list;
        put EXPORTS exports::set;
        post EXPORTS exports::add;
        delete EXPORTS exports::remove;
        get SHARE_RULES shares::list;
        put SHARE_RULES shares::set;
        post SHARE_RULES shares::add;
        delete SHARE_RULES shares::remove;
        get USERS users::list;
        post USERS users::create;
        get USER users::show;
        patch USER users::change;
        delete USER users::delete;
        put PASSWORD users::set_password;
        get GROUPS groups::list;
        post GROUPS groups::create;
        get GROUP groups::show;
        delete GROUP groups::delete;
        post MEMBERS groups::add_member;
        delete MEMBERS groups::remove_member;
        get SMB_SESSIONS clients::sessions;
        delete SMB_SESSION clients::close_session;
        get SMB_OPENS clients::opens;
        delete SMB_OPEN clients::close_open;
        get LOCKS clients::locks;
        delete LOCK clients::close_lock;
        get REPORT watching::report;
        get WHY watching::why;
        get LOAD watching::load;
        get ACTIVITY others::activity;
        post RESCAN volumes::rescan;
        get OPERATIONS operations::list;
        get OPERATION operations::show;
        get CATALOG_BACKUP backup::backup;
        get TOKENS tokens::list;
        post TOKENS tokens::create;
        delete TOKEN tokens::revoke;
        get AUDIT audit::read;
    }
}

/// The API. Each request is noted, bounded, let in, recorded if it is a change, and answered, in
/// this order.
pub(super) fn router(state: ControlState) -> Router {
    let add =
        |router: Router<ControlState>, (_, path, handler): Answered| router.route(path, handler);
    answered()
        .fold(Router::new(), add)
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .layer(middleware::from_fn_with_state(state.clone(), audit::recorded))
        .layer(middleware::from_fn_with_state(state.clone(), access::require))
        .layer(middleware::from_fn(bounded))
        .layer(middleware::from_fn(noted))
        .with_state(state)
}

/// Notes each request in the log, without its headers: the token is in one.
async fn noted(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    tracing::debug!(%method, %path, status = response.status().as_u16(), "API request");
    response
}

/// Refuses bodies that announce themselves too large, and ends requests that take too long. A
/// change that has begun is not undone by it.
async fn bounded(request: Request, next: Next) -> Response {
    let announced = request.body().size_hint().lower();
    if !usize::try_from(announced).is_ok_and(|bytes| bytes <= REQUEST_BYTES_MAX) {
        return body::too_large().into_response();
    }
    match timeout(REQUEST_WAIT_MAX, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let message = "the request took too long; a requested change may still be made";
            Failure::new(StatusCode::REQUEST_TIMEOUT, "timeout", message).into_response()
        }
    }
}

async fn unknown_route() -> Failure {
    Failure::new(
        StatusCode::NOT_FOUND,
        "no_such_route",
        "no resource exists at this path; the API is under /v1",
    )
}

async fn unknown_method() -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        "this path does not support the method",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_of_the_table_is_answered_and_no_other() {
        let named = |method: &str, path: &str| format!("{} {path}", method.to_uppercase());
        let table: BTreeSet<_> =
            routes::ROUTES.iter().map(|route| named(route.method, route.path)).collect();
        let answered: BTreeSet<_> =
            answered().map(|(method, path, _)| named(method, path)).collect();
        assert_eq!(answered, table);
        assert_eq!(table.len(), routes::ROUTES.len());
    }
}
