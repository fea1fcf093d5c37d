//! Starting and stopping the server as a whole.
//!
//! Order of the start: data directory locked, catalogue open, listeners bound, privileges given up,
//! volumes open, workers running, control plane answering. The stop goes the other way round: no
//! new connections, what is in flight answered, volumes synced, and only then the lock released.

use crate::acceptor;
use crate::bound::Bound;
use crate::clock::SystemClock;
use crate::engine::credits::{self, CreditStore};
use crate::engine::{Bounds, Engine, Environment, StoreSettings, release_idle_volumes};
use crate::error::ServeError;
use crate::inbox::Inbox;
use crate::locks::LockDoor;
use crate::session::Locks;
use crate::session::rpc::nlm::{Life, LockThread, Nlm};
use crate::session::rpc::udp::Sockets;
use crate::session::smb::SmbServer;
use crate::stop::Stop;
use crate::sync::Arc;
use crate::worker::{Message, Worker};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use weir_catalog::{Catalog, Snapshot};
use weir_control::config::{NamespaceDurability, RpcbindMode, ServerConfig, SmbSigning};
use weir_control::http::{self, ControlState, Listens};
use weir_control::plane::{Plane, PlaneError};
use weir_core::HandleKey;
use weir_process::{GroupDirectory, ServiceManager, confine};
use weir_rpcbind::{Portmap, Registration};

/// Serves until SIGTERM or SIGINT, then stops gracefully. A second of them ends at once.
///
/// # Errors
/// [`ServeError`]; nothing is left running.
pub fn serve(config: &ServerConfig) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let manager = ServiceManager::from_environment()?;
        let bound = Bound::open(config)?;
        // Threads, which come next, inherit what is left.
        confine(config)?;
        weir_control::log::start()?;
        let server = Server::start_bound(config, bound)?;
        let asked = async move {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
                _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
            }
            tokio::spawn(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                tracing::warn!("second signal received: exiting immediately");
                weir_control::log::flush();
                std::process::exit(1);
            });
        };
        let (engine, what) = (Arc::clone(&server.engine), server.in_words());
        server
            .run(config, async move {
                manager.attend(&what, || engine.roll_call(), asked).await;
            })
            .await
    })
}

/// A data plane that runs, with its catalogue.
pub struct Server {
    engine: Arc<Engine>,
    catalog: Arc<Catalog>,
    addresses: Vec<SocketAddr>,
    smb_addresses: Vec<SocketAddr>,
    api: Vec<TcpListener>,
    stop: Stop,
    acceptor: JoinHandle<()>,
    workers: Vec<JoinHandle<()>>,
    locks: Option<(Stop, JoinHandle<()>)>,
    registration: Option<Registration>,
    grace: Duration,
}

impl Server {
    /// Opens the data directory and begins to serve its volumes.
    ///
    /// # Errors
    /// [`ServeError`]; a volume that can't be opened is logged and not served, but no reason not
    /// to serve the others.
    pub fn start(config: &ServerConfig) -> Result<Self, ServeError> {
        Self::start_bound(config, Bound::open(config)?)
    }

    /// Begins to serve with what is open already.
    fn start_bound(config: &ServerConfig, bound: Bound) -> Result<Self, ServeError> {
        let Bound {
            catalog,
            listeners,
            addresses,
            smb_addresses,
            services,
            sockets,
            portmap,
            api,
            descriptors,
        } = bound;
        let count = worker_count(config.workers);
        let inboxes = (0..count).map(|_| Inbox::new()).collect::<Result<Vec<_>, _>>()?;
        let clock = SystemClock::start();
        let locks = Arc::new(LockDoor::new(weir_state::Limits::SERVER));
        let nlm = match config.rpcbind {
            RpcbindMode::Off => None,
            RpcbindMode::Register | RpcbindMode::Serve => {
                Some(Nlm::open(&catalog, clock, Arc::clone(&locks))?)
            }
        };
        let manager = nlm.as_ref().map(|(nlm, _)| Arc::clone(nlm));
        let smb = SmbServer::new(Arc::clone(&catalog), config.smb_signing == SmbSigning::Required);
        let smb = Arc::new(smb.map_err(std::io::Error::other)?);
        let around = Around { clock, portmap, locks, nlm: manager, smb };
        let engine = Arc::new(engine(config, descriptors, &catalog, &inboxes, around)?);
        if let Err(PlaneError::Volume { .. }) = engine.apply(catalog.snapshot()) {
            tracing::warn!("some volumes are not served");
        }
        let snapshot = catalog.snapshot();
        warn_of(config, &snapshot);
        let registration = match config.rpcbind {
            RpcbindMode::Register => Some(Registration::make(services.entries())?),
            RpcbindMode::Off | RpcbindMode::Serve => None,
        };
        if let Some((nlm, life)) = &nlm {
            nlm.begin_grace(life, snapshot.volumes().map(|spec| spec.id), config.grace_period);
        }
        let mut workers = Vec::new();
        for (id, inbox) in inboxes.into_iter().enumerate() {
            let shared = Arc::clone(&engine);
            let run = move || Worker::new(id, shared, inbox)?.run();
            workers.push(spawn(format!("weir-worker-{id}"), run)?);
        }
        let stop = Stop::new()?;
        let (shared, stopping) = (Arc::clone(&engine), stop.clone());
        let accept = move || acceptor::run(&shared, &listeners, &stopping);
        let acceptor = spawn("weir-acceptor".to_owned(), accept)?;
        let locks = match nlm {
            Some((nlm, life)) => Some(start_locks(&engine, nlm, life, sockets)?),
            None => None,
        };
        let grace = config.shutdown_grace;
        Ok(Self {
            engine,
            catalog,
            addresses,
            smb_addresses,
            api,
            stop,
            acceptor,
            workers,
            locks,
            registration,
            grace,
        })
    }

    /// The data plane, for tests that bring their own connections.
    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The addresses that NFS is served on, with the ports the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The addresses that SMB is served on, with the ports the kernel chose.
    #[must_use]
    pub fn smb_addresses(&self) -> &[SocketAddr] {
        &self.smb_addresses
    }

    /// The data plane, for the code that decides what it serves.
    #[must_use]
    pub fn plane(&self) -> Arc<dyn Plane> {
        Arc::clone(&self.engine) as Arc<dyn Plane>
    }

    /// The catalogue it serves from.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The services, for people.
    fn in_words(&self) -> String {
        let snapshot = self.catalog.snapshot();
        let served = snapshot.volumes().filter(|one| self.engine.volume_live(one.id).is_some());
        let (served, all) = (served.count(), snapshot.volumes().count());
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        format!("serving {served} of {all} volumes on {}", addresses.join(", "))
    }

    /// Serves the control plane until `until`, then stops everything.
    ///
    /// # Errors
    /// [`ServeError`] where the API can't be served or a thread ended by itself.
    pub async fn run(
        mut self,
        config: &ServerConfig,
        until: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let catalog = Arc::clone(&self.catalog);
        let listens = Listens { nfs: self.addresses.clone(), smb: self.smb_addresses.clone() };
        let state = ControlState::open(catalog, self.plane(), listens, config);
        for address in &self.addresses {
            tracing::info!(%address, "serving NFSv3 and MOUNT");
        }
        for address in &self.smb_addresses {
            tracing::info!(%address, "serving SMB 3.1.1");
        }
        if config.rpcbind == RpcbindMode::Off {
            tracing::info!(
                "network locking is disabled (clients must mount with nolock); enable it with --rpcbind register or serve"
            );
        }
        let saver = tokio::spawn(credits::save_periodically(Arc::clone(&self.engine)));
        let idle = tokio::spawn(release_idle_volumes(Arc::clone(&self.engine)));
        let api = std::mem::take(&mut self.api);
        let outcome = match state {
            Ok(state) => http::serve(config, api, state, until).await,
            Err(error) => Err(error),
        };
        saver.abort();
        idle.abort();
        let stopped = tokio::task::spawn_blocking(move || self.stop()).await;
        outcome.map_err(ServeError::Control)?;
        stopped.unwrap_or(Err(ServeError::Thread("stopping")))
    }

    /// Answers what is in flight, syncs every volume and ends all threads.
    ///
    /// # Errors
    /// [`ServeError::Thread`] if a thread had ended before.
    pub fn stop(self) -> Result<(), ServeError> {
        drop(self.registration);
        self.stop.stop();
        let mut outcome = join(self.acceptor, "acceptor");
        self.engine.drain(self.grace);
        for worker in self.workers {
            outcome = outcome.and(join(worker, "worker"));
        }
        if let Some((stop, locks)) = self.locks {
            stop.stop();
            outcome = outcome.and(join(locks, "lock manager"));
        }
        credits::save_all(&self.engine);
        self.engine.close_volumes();
        tracing::info!("stopped");
        outcome
    }
}

/// Random bytes from the kernel.
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Says in the log what an operator should know of the catalogue.
fn warn_of(config: &ServerConfig, snapshot: &Snapshot) {
    for there in snapshot.filesystems().iter().filter(|it| it.is_overcommitted()) {
        let directory = there.directory.display();
        tracing::warn!(%directory, "contracts on this file system commit more than its measured capacity: see `weir capacity`");
    }
    let there = |name: &String| snapshot.volume_named(name).is_some();
    for name in config.metrics_histograms.iter().filter(|name| !there(name)) {
        tracing::warn!(
            volume = %name,
            "metrics.histograms names a volume that does not exist: it will have histograms once it is created"
        );
    }
}

/// The parts of the engine that are there before it.
struct Around {
    clock: SystemClock,
    portmap: Portmap,
    locks: Arc<Locks>,
    nlm: Option<Arc<Nlm>>,
    smb: Arc<SmbServer>,
}

fn engine(
    config: &ServerConfig,
    descriptors: usize,
    catalog: &Arc<Catalog>,
    inboxes: &[Arc<Inbox<Message>>],
    Around { clock, portmap, locks, nlm, smb }: Around,
) -> Result<Engine, ServeError> {
    let verifier = random()?;
    let settings = StoreSettings {
        pool: weir_store::Pool::new(config.blocking_threads)?,
        namespace_durability: match config.namespace_durability {
            NamespaceDurability::Power => weir_store::Durability::Power,
            NamespaceDurability::Process => weir_store::Durability::Process,
        },
        metadata_cache: config.metadata_cache,
        cached_objects_max: config.cached_objects_max.min(descriptors),
        descriptors: weir_store::Descriptors::new(descriptors),
        histograms: config.metrics_histograms.clone(),
    };
    let keys = HandleKey::new(catalog.handle_secret());
    let bounds = Bounds {
        parked_bytes_max: config.parked_total_mib << 20,
        connections_max: config.connections_max,
        connections_per_client_max: config.connections_per_client_max,
        keepalive: config.keepalive,
    };
    let groups = config.manage_gids.then(|| GroupDirectory::of_machine(clock)).transpose()?;
    let credits = catalog.credits()?;
    let credit_store = CreditStore::new(Arc::clone(catalog));
    let environment =
        Environment { clock, groups, portmap, locks, nlm, smb, credits, credit_store };
    Ok(Engine::new(keys, verifier, settings, &bounds, inboxes, environment))
}

/// Starts the lock thread, which tells clients of the restart at once.
fn start_locks(
    engine: &Arc<Engine>,
    nlm: Arc<Nlm>,
    life: Life,
    sockets: Sockets,
) -> Result<(Stop, JoinHandle<()>), ServeError> {
    let seed = u32::from_ne_bytes(random()?);
    let stop = Stop::new()?;
    let (engine, stopping) = (Arc::clone(engine), stop.clone());
    let run = move || LockThread::new(engine, nlm, life, sockets, seed).run(&stopping);
    Ok((stop, spawn("weir-locks".to_owned(), run)?))
}

fn worker_count(configured: usize) -> usize {
    match configured {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    }
}

/// Starts a thread without which the server is no server: if it fails, the process ends at once,
/// so that the supervisor starts it again and clients go on. Nothing acknowledged is lost.
fn spawn(
    name: String,
    run: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let body = move || {
        if let Err(error) = run() {
            tracing::error!(%error, "a thread of the data plane failed: the server exits");
            weir_control::log::flush();
            std::process::abort();
        }
    };
    std::thread::Builder::new().name(name).spawn(body)
}

fn join(thread: JoinHandle<()>, name: &'static str) -> Result<(), ServeError> {
    thread.join().map_err(|_| ServeError::Thread(name))
}
