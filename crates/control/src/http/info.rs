//! The server's information about itself: version and health.

use super::tls::Tls;
use super::{Control, ControlState, machine};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use weir_api::{Health, ServerInfo, UnservedVolume};

pub(super) async fn server(State(state): State<ControlState>) -> Json<ServerInfo> {
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        nfs: state.0.listens.nfs.iter().map(ToString::to_string).collect(),
        smb: state.0.listens.smb.iter().map(ToString::to_string).collect(),
        locks: state.0.plane.totals().locks.served,
        generation: state.0.catalog.snapshot().generation,
        memory_bytes: machine::memory(),
        report_key: state
            .0
            .signer
            .as_ref()
            .map(crate::watch::Signer::public_key)
            .unwrap_or_default(),
        tls_fingerprint: state.0.tls.get().map(Tls::fingerprint),
    })
}

/// Answers as long as the process does.
pub(super) async fn liveness() -> &'static str {
    "ok\n"
}

/// 200 while every volume is being served, 503 otherwise. It says how many, not which: probes
/// need no token.
pub(super) async fn readiness(State(state): State<ControlState>) -> Response {
    let health = state.0.health();
    if health.ready {
        return "ready\n".into_response();
    }
    let text = format!("not ready: {} volume(s) not served\n", health.unserved.len());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// The OpenAPI document of this version.
pub(super) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], weir_api::OPENAPI).into_response()
}

impl Control {
    /// The health of this server.
    pub(super) fn health(&self) -> Health {
        let snapshot = self.catalog.snapshot();
        let (mut volumes_served, mut unserved) = (0, Vec::new());
        for volume in snapshot.volumes() {
            if self.plane.volume_live(volume.id).is_some() {
                volumes_served += 1;
            } else if self.plane.is_home_of(volume) {
                unserved.push(UnservedVolume { name: volume.name.clone(), gateway: None });
            }
        }
        Health { ready: unserved.is_empty(), volumes_served, unserved, gateways: Vec::new() }
    }
}
