//! The API over HTTP: its listeners and its handlers over the catalogue and the data plane.
//!
//! A handler is thin: read the request, change the catalogue, tell the data plane, answer. What is
//! decided is decided in `weir-catalog`; what is enforced is enforced by the data plane. An answer
//! to a change is sent when the change is in force.

mod access;
mod audit;
mod backup;
mod body;
mod calibrations;
mod change;
mod clients;
mod connections;
mod convert;
mod exports;
mod failure;
mod following;
mod gateways;
mod groups;
mod info;
mod levels;
mod listen;
mod machine;
mod operations;
mod others;
mod page;
mod pools;
mod preconditions;
mod router;
mod shares;
mod sizing;
mod time_of_day;
mod tls;
mod tokens;
mod top;
mod trash;
mod users;
mod volumes;
mod watching;

#[cfg(test)]
mod tests;

use crate::cluster::Cluster;
use crate::config::{NamespaceDurability, ServerConfig};
use crate::plane::Plane;
use crate::sync::{Arc, Mutex, OnceLock, watch};
use crate::watch::{Recorder, Signer, Watch};
use audit::Audit;
use failure::Failure;
use operations::Operations;
use others::Others;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use tls::Tls;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use trash::Trash;
use weir_catalog::{Catalog, Tokens};

/// The state that every handler works on; cheap to clone.
#[derive(Clone)]
pub struct ControlState(Arc<Control>);

struct Control {
    catalog: Arc<Catalog>,
    plane: Arc<dyn Plane>,
    listens: Listens,
    /// Held from the change of the catalogue until the data plane follows, so that it never hears
    /// of two changes in the wrong order.
    turn: Mutex<()>,
    trash: Arc<Trash>,
    watch: Arc<Watch>,
    /// The signer of reports, unless its key cannot be read.
    signer: Option<Signer>,
    tokens: Arc<Tokens>,
    audit: Audit,
    operations: Mutex<Operations>,
    others: Others,
    /// The durability of answered changes of names, for measurements.
    durability: NamespaceDurability,
    /// The TLS state, if some listener speaks TLS.
    tls: OnceLock<Tls>,
    /// The cluster, if the server is a gateway of one.
    cluster: OnceLock<Arc<dyn Cluster>>,
}

/// The addresses on which clients are served, with the ports that the kernel chose.
#[derive(Clone, Debug, Default)]
pub struct Listens {
    /// Over NFS.
    pub nfs: Vec<SocketAddr>,
    /// Over SMB.
    pub smb: Vec<SocketAddr>,
}

impl ControlState {
    /// The control plane over `catalog` and `plane`, which serves clients on `listens`, of a server
    /// that is configured by `config`.
    ///
    /// # Errors
    /// If the tokens can't be read or made, or the audit log can't be read or written.
    pub fn open(
        catalog: Arc<Catalog>,
        plane: Arc<dyn Plane>,
        listens: Listens,
        config: &ServerConfig,
    ) -> io::Result<Self> {
        let tokens = Arc::new(catalog.tokens().map_err(io::Error::other)?);
        let audit = Audit::open(Arc::clone(&catalog))?;
        let watch =
            Arc::new(Watch::new(Recorder::open(catalog.directory()), config.metadata_cache));
        let secret = catalog.report_secret().inspect_err(|error| {
            tracing::warn!(%error, "reports can't be signed");
        });
        let signer = secret.ok().and_then(|secret| Signer::new(&secret));
        let (turn, trash, tls) = (Mutex::new(()), Arc::default(), OnceLock::new());
        let (operations, others) = (Mutex::default(), Others::default());
        Ok(Self(Arc::new(Control {
            catalog,
            plane,
            listens,
            turn,
            trash,
            watch,
            signer,
            tokens,
            audit,
            operations,
            others,
            durability: config.namespace_durability,
            tls,
            cluster: OnceLock::new(),
        })))
    }

    /// The control plane of a gateway of `cluster`, whose catalogue is that of the cluster.
    #[must_use]
    pub fn of_gateway(self, cluster: Arc<dyn Cluster>) -> Self {
        // Only the first call has an effect, and a server belongs to one cluster.
        self.0.cluster.get_or_init(|| cluster);
        self
    }
}

/// An address of the API can't be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for the API on {address}: {source}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The kernel's error.
    pub source: io::Error,
}

/// Listens on the `addresses` of the API, for [`serve`].
///
/// # Errors
/// [`BindError`] of the first address that can't be listened on.
pub fn bind(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, BindError> {
    let listen = |address: &SocketAddr| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let with_address = |address: &SocketAddr| {
        listen(address).map_err(|source| BindError { address: *address, source })
    };
    addresses.iter().map(with_address).collect()
}

/// Serves the API until `until`, on the socket in the data directory and on `bound` (TCP,
/// non-blocking), then answers what is in flight, within the shutdown's grace.
///
/// # Errors
/// If the socket can't be listened on, or there is no certificate for TLS; nothing is served then.
pub async fn serve(
    config: &ServerConfig,
    bound: Vec<TcpListener>,
    state: ControlState,
    until: impl Future<Output = ()>,
) -> io::Result<()> {
    let catalog = Arc::clone(&state.0.catalog);
    let (stop, stopping) = watch::channel(false);
    let mut serving = JoinSet::new();
    let grace = config.shutdown_grace;
    let (local, _name) = listen::bind_socket(catalog.directory())?;
    let bound_to: Vec<_> = bound.iter().filter_map(|socket| socket.local_addr().ok()).collect();
    let router = router::router(state.clone());
    #[cfg(test)]
    let router = router.layer(axum::middleware::from_fn(tests::document::checked));
    let acceptor = state.0.acceptor(config, &bound_to)?;
    let shared = listen::Shared::new();
    for door in listen::adopt_tcp(bound, config.api_tls, acceptor.as_ref())? {
        let (router, stopping) = (router.clone(), stopping.clone());
        serving.spawn(listen::serve_tcp(door, shared.clone(), router, stopping, grace));
    }
    let trash = Arc::clone(&state.0.trash);
    let (board, plane) = (Arc::clone(&state.0.watch), Arc::clone(&state.0.plane));
    let watching = tokio::spawn(crate::watch::run(board, Arc::clone(&plane), stopping.clone()));
    serving.spawn(listen::serve_socket(local, router, stopping.clone(), grace));
    serving.spawn(others::answer(state.clone(), stopping.clone()));
    trash.remove_condemned(catalog, plane)?;
    let recording = tokio::spawn(audit::record_logins(state.clone(), stopping.clone()));
    let mut hangups = signal(SignalKind::hangup())?;
    let mut until = std::pin::pin!(until);
    loop {
        tokio::select! {
            () = &mut until => break,
            _ = hangups.recv() => state.0.reload(),
        }
    }
    // The listeners may have ended already.
    let _told = stop.send(true);
    while serving.join_next().await.is_some() {}
    watching.await.map_err(io::Error::other)?;
    let stop_recording = recording.abort_handle();
    let recorded = async {
        let _ended = recording.await;
        state.0.audit.finish().await;
    };
    if timeout(config.shutdown_grace, recorded).await.is_err() {
        stop_recording.abort();
        tracing::warn!("a change was still under way at shutdown, and has no record");
    }
    tokio::task::spawn_blocking(move || trash.leave()).await.map_err(io::Error::other)
}

/// Runs what may wait for the disk or for a lock.
async fn blocking<T: Send + 'static>(
    state: &ControlState,
    work: impl FnOnce(&Control) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let control = Arc::clone(&state.0);
    match tokio::task::spawn_blocking(move || work(&control)).await {
        Ok(done) => done,
        Err(_) => Err(Failure::internal("failed", "the request failed with an internal error")),
    }
}

impl Control {
    /// The acceptor for TLS, if some of the `addresses` speak it.
    fn acceptor(
        &self,
        config: &ServerConfig,
        addresses: &[SocketAddr],
    ) -> io::Result<Option<TlsAcceptor>> {
        let spoken = |address: &&SocketAddr| tls::is_spoken(config.api_tls, address.ip());
        let spoken: Vec<_> = addresses.iter().filter(spoken).map(SocketAddr::ip).collect();
        if spoken.is_empty() {
            return Ok(None);
        }
        let opened = Tls::open(config, self.catalog.directory(), &spoken)?;
        let tls = self.tls.get_or_init(|| opened);
        tracing::info!(fingerprint = tls.fingerprint(), "the API's certificate");
        Ok(Some(tls.acceptor()))
    }

    /// Takes what a file may have brought anew: the certificate.
    fn reload(&self) {
        match self.tls.get().map(|tls| (tls.reload(), tls.fingerprint())) {
            None => tracing::info!("SIGHUP: there is nothing to reload"),
            Some((Ok(()), fingerprint)) => {
                tracing::info!(fingerprint, "SIGHUP: certificate reloaded");
            }
            Some((Err(error), _)) => {
                tracing::error!(%error, "SIGHUP: the certificate stays as it was");
            }
        }
    }
}
