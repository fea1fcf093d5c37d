//! Starting and stopping the server as a whole.
//!
//! Order of the start: data directory locked, catalogue open, listeners bound, privileges given up,
//! volumes open, workers running, control plane answering. The stop goes the other way round: no
//! new connections, what is in flight answered, volumes synced, and only then the lock released.

use crate::acceptor;
use crate::bound::Bound;
use crate::ceph::CephSessions;
use crate::clock::SystemClock;
use crate::engine::credits::{self, CreditStore, Credits};
use crate::engine::{Bounds, Engine, Environment, Homes, StoreSettings, release_idle_volumes};
use crate::error::ServeError;
use crate::groups::Groups;
use crate::inbox::Inbox;
use crate::right::ReplyRight;
use crate::session::Locks;
use crate::session::rpc::nlm::{Life, LockThread, Nlm};
use crate::session::rpc::udp::Sockets;
use crate::session::smb::SmbServer;
use crate::stop::Stop;
use crate::sync::Arc;
use crate::worker::{ByServer, Message, Silent, Worker};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_catalog::{Catalog, CatalogError, Snapshot};
use weir_cluster::SharedRight;
use weir_control::config::{NamespaceDurability, RpcbindMode, ServerConfig, SmbSigning};
use weir_control::http::{self, ControlState, Listens};
use weir_control::plane::{Plane, PlaneError};
use weir_core::HandleKey;
use weir_locks::LockDoor;
use weir_process::{GroupDirectory, ServiceManager, confine};
use weir_rpcbind::{Portmap, Registration};

/// Serves until SIGTERM or SIGINT, then stops gracefully. A second of them ends at once.
///
/// # Errors
/// [`ServeError`]; nothing is left running.
pub fn serve(config: &ServerConfig) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let supervision = Supervision::begin()?;
        let catalog = open_catalog(config)?;
        let bound = Bound::open(config)?;
        // Threads, which come next, inherit what is left.
        confine(config)?;
        weir_control::log::start()?;
        let server = Server::start_bound(config, bound, catalog, None, None)?;
        let until = supervision.attend(&server);
        let state = server.control(config).map_err(ServeError::Control)?;
        server.run_as(config, state, until).await
    })
}

fn open_catalog(config: &ServerConfig) -> Result<Catalog, CatalogError> {
    Catalog::open_with(&config.data, config.minimums())
}

/// The signals and the service manager, which may end the process of a server.
pub struct Supervision {
    terminate: Signal,
    interrupt: Signal,
    manager: ServiceManager,
}

impl Supervision {
    /// Takes SIGTERM and SIGINT from now on, within a runtime of tokio.
    ///
    /// # Errors
    /// The signals cannot be taken, or the socket of the service manager cannot be used.
    pub fn begin() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            manager: ServiceManager::from_environment()?,
        })
    }

    /// Waits for `work`, which a server needs before it serves. Nothing if a signal comes first.
    pub async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            _ = self.terminate.recv() => None,
            _ = self.interrupt.recv() => None,
            done = work => Some(done),
        }
    }

    /// Tells the service manager that `server` serves, and as long as it is polled that it is
    /// alive, until a signal. A second signal ends the process at once.
    pub fn attend(self, server: &Server) -> impl Future<Output = ()> + use<> {
        let Self { mut terminate, mut interrupt, manager } = self;
        let (engine, what) = (Arc::clone(&server.engine), server.in_words());
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
                crate::ceph::exit(1);
            });
        };
        async move { manager.attend(&what, || engine.roll_call(), asked).await }
    }
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
        let catalog = open_catalog(config)?;
        Self::start_bound(config, Bound::open(config)?, catalog, None, None)
    }

    /// Begins to serve as one of several servers that share `catalog`: at first no volume
    /// ([`Self::groups`]), and replies leave only while `right` allows it, whose instants are
    /// nanoseconds of `CLOCK_BOOTTIME`. Pools on CephFS are reached by the sessions `ceph`, and new
    /// ones have to be on that CephFS.
    ///
    /// # Errors
    /// [`ServeError`]
    pub fn start_shared(
        config: &ServerConfig,
        bound: Bound,
        catalog: Catalog,
        right: Arc<SharedRight>,
        ceph: Option<CephSessions>,
    ) -> Result<Self, ServeError> {
        let catalog = match ceph.as_ref().map(|ceph| ceph.place().clone()) {
            Some(place) => catalog.on_ceph(place),
            None => catalog,
        };
        Self::start_bound(config, bound, catalog, Some(right), ceph)
    }

    /// Begins to serve with what is open already.
    fn start_bound(
        config: &ServerConfig,
        bound: Bound,
        catalog: Catalog,
        right: Option<Arc<SharedRight>>,
        ceph: Option<CephSessions>,
    ) -> Result<Self, ServeError> {
        let Bound {
            listeners,
            addresses,
            smb_addresses,
            services,
            sockets,
            portmap,
            api,
            descriptors,
        } = bound;
        let catalog = Arc::new(catalog.admitting(config.admission));
        let count = worker_count(config.workers);
        let inboxes = (0..count).map(|_| Inbox::new()).collect::<Result<Vec<_>, _>>()?;
        let clock = SystemClock::start();
        let locks = Arc::new(LockDoor::new(weir_state::Limits::SERVER));
        let nlm = match (config.rpcbind, &right) {
            (RpcbindMode::Off, _) => None,
            (_, None) => Some(Nlm::open(&catalog, clock, Arc::clone(&locks))?),
            (_, Some(_)) => Some(Nlm::open_alone(&catalog, clock, Arc::clone(&locks))?),
        };
        let manager = nlm.as_ref().map(|(nlm, _)| Arc::clone(nlm));
        let smb = SmbServer::new(Arc::clone(&catalog), config.smb_signing == SmbSigning::Required);
        let smb = Arc::new(smb.map_err(std::io::Error::other)?);
        let around = Around { clock, portmap, locks, nlm: manager, smb, right, ceph };
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
        let workers = start_workers(&engine, inboxes)?;
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

    /// The groups of volumes that have this server as their home, if it is one of several.
    #[must_use]
    pub fn groups(&self, config: &ServerConfig) -> Groups {
        let (engine, catalog) = (Arc::clone(&self.engine), Arc::clone(&self.catalog));
        Groups::new(engine, catalog, config.grace_period, config.shutdown_grace)
    }

    /// A function that makes connections of this server silent, listed by the server's address and
    /// port, and all others not silent. If the process ends, a silent connection ends with a reset
    /// of this priority (socket(7), `SO_PRIORITY`), which a rule of the machine has to drop. If the
    /// server ends it, the client gets a FIN as usual.
    pub fn silencer(&self, priority: u32) -> impl Fn(ByServer) + Send + Sync + 'static {
        let engine = Arc::clone(&self.engine);
        move |connections| engine.silence(Silent { connections, priority })
    }

    /// The services, for people.
    fn in_words(&self) -> String {
        let snapshot = self.catalog.snapshot();
        let served = snapshot.volumes().filter(|one| self.engine.volume_live(one.id).is_some());
        let (served, all) = (served.count(), snapshot.volumes().count());
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        format!("serving {served} of {all} volumes on {}", addresses.join(", "))
    }

    /// The control plane of this server.
    ///
    /// # Errors
    /// As [`ControlState::open`].
    pub fn control(&self, config: &ServerConfig) -> std::io::Result<ControlState> {
        let listens = Listens { nfs: self.addresses.clone(), smb: self.smb_addresses.clone() };
        ControlState::open(Arc::clone(&self.catalog), self.plane(), listens, config)
    }

    /// Serves the control plane until `until`, then stops everything.
    ///
    /// # Errors
    /// [`ServeError`] where the API can't be served or a thread ended by itself.
    pub async fn run(
        self,
        config: &ServerConfig,
        until: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        match self.control(config) {
            Ok(state) => self.run_as(config, state, until).await,
            Err(error) => {
                let stopped = tokio::task::spawn_blocking(move || self.stop()).await;
                stopped.unwrap_or(Err(ServeError::Thread("stopping")))?;
                Err(ServeError::Control(error))
            }
        }
    }

    /// As [`Self::run`], with a control plane that [`Self::control`] gave.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn run_as(
        mut self,
        config: &ServerConfig,
        state: ControlState,
        until: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
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
        let outcome = http::serve(config, api, state, until).await;
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
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
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
    /// The right to reply of one of several servers.
    right: Option<Arc<SharedRight>>,
    /// The sessions with CephFS, if there are any.
    ceph: Option<CephSessions>,
}

fn engine(
    config: &ServerConfig,
    descriptors: usize,
    catalog: &Arc<Catalog>,
    inboxes: &[Arc<Inbox<Message>>],
    Around { clock, portmap, locks, nlm, smb, right, ceph }: Around,
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
    // The credits of a volume that is shared come with its group.
    let (right, homes, credits) = match right {
        None => (ReplyRight::Always, Homes::All, catalog.credits()?),
        Some(right) => (ReplyRight::Until(right), Homes::Of(BTreeSet::new()), Credits::new()),
    };
    let credit_store = CreditStore::new(Arc::clone(catalog));
    let environment = Environment {
        clock,
        groups,
        portmap,
        locks,
        nlm,
        smb,
        right,
        homes,
        ceph,
        credits,
        credit_store,
    };
    Ok(Engine::new(keys, verifier, settings, &bounds, inboxes, environment))
}

fn start_workers(
    engine: &Arc<Engine>,
    inboxes: Vec<Arc<Inbox<Message>>>,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    let start = |(id, inbox)| {
        let shared = Arc::clone(engine);
        spawn(format!("weir-worker-{id}"), move || Worker::new(id, shared, inbox)?.run())
    };
    inboxes.into_iter().enumerate().map(start).collect()
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
