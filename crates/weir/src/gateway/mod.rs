//! `weir serve` as a gateway of a cluster: it puts together the driver of the rules, the helper of
//! the machine, Ceph, and the server with the catalogue of the cluster.
//!
//! The order of the start: files and sessions with Ceph are opened, addresses are bound, privileges
//! are given up, the catalogue is read from etcd, the server runs without a volume, the driver
//! begins. Volumes come when the rules give them. The stop goes the other way round: clients are
//! answered, volumes synced, and only then the lease is released, so that others take over what is
//! complete.
//!
//! A life that ends by itself, because its lease was lost or another gateway took over, ends the
//! process at once: its sessions with Ceph are refused, and nothing that it could still do counts.
//! The service manager starts the next life.
//!
//! Not here: the rules (`weir-cluster`), how they are run (`weir-gateway`), and the commands.

mod commands;
mod fencing;
mod formats;
mod groups;
mod machine;
mod peers;
mod volumes;

use crate::cluster;
use anyhow::{Context, Result, anyhow, bail};
use commands::Commands;
use fencing::Blocklist;
use groups::{Catalogued, Groups};
use machine::HelperLink;
use peers::Peers;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use volumes::Volumes;
use weir_catalog::{Catalog, Ceph, Follower, GatewayId};
use weir_cluster::SharedRight;
use weir_control::config::{CephConfig, GatewayConfig, ServerConfig};
use weir_etcd::{Connection, Keys};
use weir_gateway::{End, Gateway, LocalState, Parts, Places, RecordedError, Status};
use weir_links::KeyFile;
use weir_server::{Bound, CephSessions, Server, Supervision};

/// Threads for etcd, links and the rules. None of them waits for a disk.
const THREADS: usize = 2;
/// Mounts of CephFS, each with a lock of its own in libcephfs.
const MOUNTS: usize = 4;
/// Time between two looks whether Ceph has ended a session.
const LOOK: Duration = Duration::from_millis(200);
/// Time before etcd is asked again at the start.
const AGAIN: Duration = Duration::from_secs(1);
/// Longest time until a life is a member, before commands are answered.
const MEMBER: Duration = Duration::from_secs(5);
/// Longest wait at the stop for tasks of each runtime, which hold sessions with Ceph, and then for
/// these to end.
const STOP: Duration = Duration::from_secs(2);

/// Everything that is opened while the process may still open files and bind addresses.
struct Opened {
    connection: Connection,
    keys: Keys,
    key_file: KeyFile,
    state: LocalState,
    bound: Bound,
    ceph: CephSessions,
}

/// Serves as the gateway of `gateway` until a signal, or until this life ends.
///
/// # Errors
/// A part that cannot be opened or reached, with its cause.
pub(crate) fn serve(config: &ServerConfig, gateway: &GatewayConfig) -> Result<()> {
    let control = Builder::new_current_thread().enable_all().build()?;
    let mut supervision = {
        let _within = control.enter();
        Supervision::begin()?
    };
    let opened = Opened::open(config, gateway)?;
    weir_control::log::start()?;
    let threads = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("weir-gateway")
        .enable_all()
        .build()?;
    let asking = recorded(opened.connection.clone(), opened.keys.clone(), opened.state.gateway());
    let asking = threads.spawn(asking);
    let Some(recorded) = control.block_on(supervision.unless_stopped(asking)) else {
        tracing::info!("stopped before etcd answered");
        return Ok(());
    };
    let sessions = opened.ceph.clone();
    let served = Running::start(config, gateway, (opened, recorded??), &threads)
        .and_then(|running| control.block_on(running.run(config, supervision)));
    control.shutdown_timeout(STOP);
    threads.shutdown_timeout(STOP);
    sessions.end(STOP);
    served?;
    weir_control::log::flush();
    weir_server::ceph::exit(0)
}

impl Opened {
    /// Opens everything, and gives up privileges. Threads that come after it inherit what is left.
    fn open(config: &ServerConfig, gateway: &GatewayConfig) -> Result<Self> {
        let connection = cluster::connection(gateway)?;
        let (keys, key_file) = (cluster::keys(gateway)?, cluster::key_file(gateway)?);
        let state = LocalState::open(&config.data, GatewayId(gateway.number))?;
        let bound = Bound::open(config)?;
        let CephConfig { conf, user } = gateway.ceph.clone();
        let open = || CephSessions::connect(Ceph { conf, user }, MOUNTS);
        let ceph = weir_server::confine_around(config, open)??;
        Ok(Self { connection, keys, key_file, state, bound, ceph })
    }
}

/// A gateway that runs.
struct Running<'a> {
    server: Server,
    control: weir_control::http::ControlState,
    gateway: Arc<Gateway>,
    ceph: CephSessions,
    threads: &'a Runtime,
    /// Follows the catalogue as long as this is there.
    _follower: Follower,
}

impl<'a> Running<'a> {
    fn start(
        config: &ServerConfig,
        place: &GatewayConfig,
        (opened, recorded): (Opened, u32),
        threads: &'a Runtime,
    ) -> Result<Self> {
        let Opened { connection, keys, key_file, mut state, bound, ceph } = opened;
        let links = threads.block_on(listen(place.links))?;
        let life = state.begin(recorded)?;
        let shared = cluster::place(place, threads.handle().clone(), connection.clone(), &key_file);
        let catalog = Catalog::open_in_cluster(&config.data, config.minimums(), shared)?;
        check_place(&catalog, place)?;
        let right = Arc::<SharedRight>::default();
        let server =
            Server::start_shared(config, bound, catalog, Arc::clone(&right), Some(ceph.clone()))?;
        let catalog = Arc::clone(server.catalog());
        catalog.guard_by(cluster::life_guard(&keys, life));
        let (interface, socket) = (&place.addresses.interface, place.helper.socket.clone());
        let ports = server.addresses().iter().chain(server.smb_addresses()).map(SocketAddr::port);
        // If this process ends, the next home tickles the clients that are on record. The kernel
        // must not reset their connections before.
        let on_record = server.silencer(weir_address::SILENT_END_PRIORITY);
        let (etcd, ports) = (connection.clone(), ports.collect());
        let peers = Peers::new(etcd, &place.cluster, place.number, ports, on_record);
        let machine = HelperLink::new(socket, interface, life, Arc::clone(&catalog), peers)?;
        let groups = server.groups(config);
        let volumes = Volumes::new(life, groups, Arc::clone(&catalog), ceph.clone());
        let (tell_places, places) = watch::channel(Places::default());
        tell_places.send_replace(groups::places(&catalog.snapshot()));
        let parts = Parts {
            life,
            state,
            sessions: ceph.ids().context("asking Ceph for the sessions of this process")?,
            connection,
            keys,
            key_file,
            listener: links,
            places,
            machine: Arc::new(machine),
            fencing: Arc::new(Blocklist::new(ceph.clone())),
            service: Arc::new(volumes),
            right,
        };
        let gateway = {
            let _within = threads.enter();
            Arc::new(Gateway::start(parts)?)
        };
        tracing::info!(%life, cluster = %place.cluster, name = %place.gateway, "this life of the gateway begins");
        let commands = Arc::new(Commands::new(Arc::clone(&gateway)));
        let control = server.control(config)?.of_gateway(commands);
        let (tell_catalogued, catalogued) = watch::channel(Catalogued::of(&catalog.snapshot()));
        let follower = control.follow(move |snapshot| {
            tell_places.send_replace(groups::places(snapshot));
            tell_catalogued.send_replace(Catalogued::of(snapshot));
        })?;
        threads.spawn(formats::keep(Arc::clone(&gateway), Arc::clone(&catalog)));
        threads.spawn(Groups::new(Arc::clone(&gateway), catalog, catalogued).keep());
        Ok(Self { server, control, gateway, ceph, threads, _follower: follower })
    }

    /// Serves until a signal; or until the life ends, and the process with it.
    async fn run(self, config: &ServerConfig, supervision: Supervision) -> Result<()> {
        let Self { server, control, gateway, ceph, threads, _follower } = self;
        threads.spawn(watch_sessions(Arc::clone(&gateway), ceph));
        threads.spawn(end_with(Arc::clone(&gateway)));
        membership(&gateway).await;
        let until = supervision.attend(&server);
        server.run_as(config, control, until).await?;
        match gateway.end().await {
            End::Asked => Ok(()),
            end => Err(anyhow!("this life of the gateway ended while it stopped: {end}")),
        }
    }
}

/// Waits until the life is a member of the cluster, because its changes are refused before. A
/// gateway that does not become one has to answer its operator, too, so this ends after a while.
async fn membership(gateway: &Gateway) {
    let is_member = |status: &Arc<Status>| {
        let life = status.life;
        status.view.attached.get(&life.gateway) == Some(&life.number)
    };
    if timeout(MEMBER, gateway.status().wait_for(is_member)).await.is_err() {
        tracing::warn!(
            "this life is no member of the cluster yet: changes are refused until it is"
        );
    }
}

/// Listens for the links of other gateways.
async fn listen(address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.with_context(|| format!("listening for other gateways on {address}"))
}

/// The number of the latest life in the records, as soon as etcd answers.
///
/// # Errors
/// The records are newer than this program.
async fn recorded(connection: Connection, keys: Keys, gateway: GatewayId) -> Result<u32> {
    loop {
        match Gateway::recorded(&connection, &keys, gateway).await {
            Ok(number) => return Ok(number),
            Err(error @ RecordedError::Newer(_)) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "waiting for etcd, which a gateway needs to start");
                sleep(AGAIN).await;
            }
        }
    }
}

/// The catalogue has this gateway as `gateway.toml` does.
fn check_place(catalog: &Catalog, place: &GatewayConfig) -> Result<()> {
    let snapshot = catalog.snapshot();
    let Some(found) = snapshot.gateway_named(&place.gateway) else {
        bail!(
            "the cluster {} has no gateway {}: it was removed; delete gateway.toml and run `weir gateway join` to add it again",
            place.cluster,
            place.gateway
        );
    };
    if found.id.0 != place.number || found.links != place.links {
        bail!(
            "gateway {} of the cluster {} has the number {} and its links at {}, but gateway.toml says {} and {}",
            place.gateway,
            place.cluster,
            found.id.0,
            found.links,
            place.number,
            place.links
        );
    }
    Ok(())
}

/// Tells the rules when Ceph has ended a session of this process.
async fn watch_sessions(gateway: Arc<Gateway>, ceph: CephSessions) {
    while !ceph.is_lost() {
        sleep(LOOK).await;
    }
    tracing::error!("Ceph has ended a session of this gateway");
    gateway.blocklisted().await;
}

/// Ends the process when the rules end the life.
async fn end_with(gateway: Arc<Gateway>) {
    match gateway.ended().await {
        // The server has stopped, and the process ends by itself.
        End::Asked => {}
        end => {
            tracing::error!(%end, "this life of the gateway has ended: the process exits, to be started again");
            weir_control::log::flush();
            // Without the exit handlers of Ceph's libraries, which may wait for Ceph.
            std::process::abort();
        }
    }
}
