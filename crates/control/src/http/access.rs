//! Authentication and authorization: a process at the other end of the socket may do everything,
//! because the socket's directory lets nobody in but its owner; over TCP the token decides.

use super::failure::Failure;
use super::listen::Peer;
use super::{Control, ControlState, time_of_day};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use weir_api::Role;
use weir_api::routes;
use weir_catalog::NotAdmitted;

/// The client that sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A process of this machine, at the socket.
    Socket {
        /// The process's user, if the kernel tells it.
        uid: Option<u32>,
    },
    /// Somebody with a token.
    Token {
        /// The token's name.
        name: String,
        /// The token's role.
        role: Role,
        /// The client's address.
        from: SocketAddr,
    },
    /// Somebody without one that is good.
    Nobody {
        /// The name of a token that has expired.
        name: Option<String>,
        /// The client's address, if it is known.
        from: Option<SocketAddr>,
    },
}

impl Caller {
    /// The client's role.
    pub(super) const fn role(&self) -> Option<Role> {
        match self {
            Self::Socket { .. } => Some(Role::Admin),
            Self::Token { role, .. } => Some(*role),
            Self::Nobody { .. } => None,
        }
    }
}

/// Lets a request pass whose caller has the role that its route asks for, and tells what comes
/// next who that is.
pub(super) async fn require(
    State(state): State<ControlState>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = state.0.caller(&request);
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let least = match &path {
        // A route without a handler tells only that there is none.
        None => Some(Role::Viewer),
        Some(path) => routes::find(request.method().as_str(), path)
            .map_or(Some(Role::Admin), |route| route.least),
    };
    if caller.role() >= least {
        request.extensions_mut().insert(caller);
        return next.run(request).await;
    }
    let failure = denial(&caller, least, &request);
    let record = state.0.audit.denial(&caller, path, &request, &failure);
    drop(request);
    if let Some(record) = record {
        state.0.audit.note(record).await;
    }
    let mut response = failure.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn denial(caller: &Caller, least: Option<Role>, request: &Request) -> Failure {
    let least = least.unwrap_or(Role::Viewer);
    match caller {
        Caller::Nobody { name: None, .. } => Failure::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "this listener requires a token, sent as \"Authorization: Bearer TOKEN\": create one \
             with `weir token create`, or use the file api.token in the server's data directory",
        ),
        Caller::Nobody { name: Some(name), .. } => {
            let message = format!(
                "the token {name:?} has expired: create a new one with `weir token create`"
            );
            Failure::new(StatusCode::UNAUTHORIZED, "token_expired", message)
        }
        Caller::Socket { .. } | Caller::Token { .. } => {
            let has = caller.role().map(Role::word).unwrap_or_default();
            let (method, path) = (request.method(), request.uri().path());
            let message =
                format!("{method} {path} requires the role {least}; the token has the role {has}");
            Failure::new(StatusCode::FORBIDDEN, "forbidden", message)
        }
    }
}

impl Control {
    fn caller(&self, request: &Request) -> Caller {
        let from = match request.extensions().get::<Peer>() {
            Some(Peer::Socket { uid }) => return Caller::Socket { uid: *uid },
            Some(Peer::Tcp(from)) => *from,
            // Other gateways ask nothing that clients do.
            Some(Peer::Gateway) | None => return Caller::Nobody { name: None, from: None },
        };
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let Some(secret) = given.and_then(|value| value.strip_prefix(b"Bearer ")) else {
            return Caller::Nobody { name: None, from: Some(from) };
        };
        match self.tokens.admit(secret, time_of_day::seconds()) {
            Ok(token) => {
                let role = super::convert::role(token.role);
                Caller::Token { name: token.name, role, from }
            }
            Err(NotAdmitted::Expired(token)) => {
                Caller::Nobody { name: Some(token.name), from: Some(from) }
            }
            Err(NotAdmitted::Unknown) => Caller::Nobody { name: None, from: Some(from) },
        }
    }
}
