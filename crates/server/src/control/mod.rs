//! The control plane: the API's handlers over the catalogue and the data plane.
//!
//! A handler is thin: read the request, change the catalogue, tell the data plane, answer. What is
//! decided is decided in `weir-catalog`; what is enforced is enforced by the data plane. An answer
//! to a change is sent when the change is in force.

mod auth;
mod backup;
mod change;
mod convert;
mod exports;
mod failure;
mod info;
mod levels;
mod listen;
mod pools;
mod router;
mod trash;
mod volumes;
mod watching;

#[cfg(test)]
mod tests;

use crate::config::ServerConfig;
use crate::plane::Plane;
use crate::sync::{Arc, Mutex, watch};
use crate::watch::{Recorder, Signer, Watch};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use tokio::task::JoinSet;
use trash::Trash;
use weir_catalog::Catalog;

/// What every handler works on; cheap to clone.
#[derive(Clone)]
pub struct ControlState(Arc<Control>);

struct Control {
    catalog: Arc<Catalog>,
    plane: Arc<dyn Plane>,
    nfs: Vec<SocketAddr>,
    /// Held from the change of the catalogue until the data plane follows, so that it never hears
    /// of two changes in the wrong order.
    turn: Mutex<()>,
    trash: Arc<Trash>,
    watch: Arc<Watch>,
    /// What signs reports, unless its key can't be had.
    signer: Option<Signer>,
}

impl ControlState {
    /// The control plane over `catalog` and `plane`; `nfs` is where NFS is served.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, plane: Arc<dyn Plane>, nfs: Vec<SocketAddr>) -> Self {
        let watch = Arc::new(Watch::new(Recorder::open(catalog.directory())));
        let secret = catalog.report_secret().inspect_err(|error| {
            tracing::warn!(%error, "reports can't be signed");
        });
        let signer = secret.ok().map(|secret| Signer::new(&secret));
        let (turn, trash) = (Mutex::new(()), Arc::default());
        Self(Arc::new(Control { catalog, plane, nfs, turn, trash, watch, signer }))
    }
}

/// Serves the API until `until`, on the socket in the data directory and on `bound` (TCP,
/// non-blocking), then answers what is in flight, within the shutdown's grace.
///
/// # Errors
/// If the socket can't be listened on, or the token can't be read or made; nothing
/// is served then.
pub async fn serve_control(
    config: &ServerConfig,
    bound: Vec<TcpListener>,
    state: ControlState,
    until: impl Future<Output = ()>,
) -> io::Result<()> {
    let catalog = Arc::clone(&state.0.catalog);
    let (stop, stopping) = watch::channel(false);
    let mut serving = JoinSet::new();
    let mut serve = |listener, router| {
        serving.spawn(listen::serve(listener, router, stopping.clone(), config.shutdown_grace));
    };
    let (local, _name) = listen::bind_socket(catalog.directory())?;
    if !bound.is_empty() {
        let token = catalog.api_token().map_err(io::Error::other)?;
        for listener in listen::adopt_tcp(bound)? {
            serve(listener, router::guarded(state.clone(), &token));
        }
    }
    let trash = Arc::clone(&state.0.trash);
    let (board, plane) = (Arc::clone(&state.0.watch), Arc::clone(&state.0.plane));
    let watching = tokio::spawn(crate::watch::run(board, plane, stopping.clone()));
    serve(local, router::open(state));
    trash.remove_condemned(catalog)?;
    until.await;
    // There is nobody to tell if all listeners have ended already.
    let _told = stop.send(true);
    while serving.join_next().await.is_some() {}
    watching.await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(move || trash.leave()).await.map_err(io::Error::other)
}
