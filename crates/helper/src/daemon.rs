//! The process of the helper: its sockets, its privileges, and its end. Not here: how one server is
//! served (`session.rs`).

use crate::knowledge::Knowledge;
use crate::seat::Seat;
use crate::session;
use rustix::fs::Mode;
use rustix::process::umask;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use weir_address::{Hook, ServerProcess, confine};
use weir_cluster::{GatewayId, Life};
use weir_links::{Identity, KeyFile, Mesh, VERSION_OLDEST, Word};

/// Connections to the socket for the server. Beyond: a further one is closed.
const CONNECTIONS_MAX: usize = 16;
/// Time between two words that a life has ended, until the next one is announced: any of them may
/// be lost.
const SPEAK_EVERY: Duration = Duration::from_secs(1);
/// Time before the next attempt to accept a connection, if the system has no room for one.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The users that may connect to the socket for the server, by its mode. Of these the helper serves
/// [`Options::server_uid`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketMode {
    /// The user of the helper: 0600.
    Owner,
    /// Its group, too: 0660.
    Group,
}

/// The options of a helper.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway of this machine.
    pub gateway: GatewayId,
    /// The cluster's key.
    pub key: KeyFile,
    /// The address for the questions of other gateways.
    pub listen: SocketAddr,
    /// The socket for the server.
    pub socket: PathBuf,
    /// The mode of that socket.
    pub socket_mode: SocketMode,
    /// The user whose processes may be the server.
    pub server_uid: u32,
    /// A program that is run when an address comes and goes.
    pub hook: Option<Hook>,
}

/// A helper that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The system has no threads, timers or signals for it.
    #[error("the helper cannot begin: {0}")]
    System(#[source] io::Error),
    /// Its key and certificate cannot be made.
    #[error("the helper has no identity: {0}")]
    Identity(#[source] io::Error),
    /// The socket for the server cannot be made.
    #[error("the socket {} cannot be used: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another helper listens at the socket for the server.
    #[error("another helper listens at {}: a machine has one", .0.display())]
    Another(PathBuf),
    /// The address for other gateways cannot be used.
    #[error("the helper cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The privileges are not those that it needs, or cannot be given up.
    #[error("the helper cannot confine itself: {0}")]
    Confine(#[source] io::Error),
}

/// The state of a helper, which its tasks share.
pub(crate) struct Machine {
    pub(crate) server_uid: u32,
    pub(crate) hook: Option<Hook>,
    knowledge: Arc<Mutex<Knowledge>>,
    seat: Mutex<Seat<Arc<ServerProcess>>>,
    mesh: Mutex<Mesh>,
    /// The link of a process has ended, and its addresses are gone.
    pub(crate) left: Notify,
    /// A life has ended.
    pub(crate) ended: Notify,
}

impl Machine {
    pub(crate) fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seat(&self) -> MutexGuard<'_, Seat<Arc<ServerProcess>>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn mesh(&self) -> MutexGuard<'_, Mesh> {
        self.mesh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the helper until the process gets `SIGTERM` or `SIGINT`; then it removes all addresses, and
/// says nothing more. To be called before the process has other threads: it gives up all
/// capabilities but `CAP_NET_ADMIN` and `CAP_NET_RAW`.
///
/// # Errors
/// [`ServeError`]; the helper did not begin.
pub fn serve(options: Options) -> Result<(), ServeError> {
    // One thread, beside that of the addresses: threads that exist keep their capabilities.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::System)?;
    runtime.block_on(serve_until_signal(options))
}

async fn serve_until_signal(options: Options) -> Result<(), ServeError> {
    let stopping = |kind| signal(kind).map_err(ServeError::System);
    let mut terminated = stopping(SignalKind::terminate())?;
    let mut interrupted = stopping(SignalKind::interrupt())?;
    let identity =
        Identity::of_helper(&options.key, options.gateway).map_err(ServeError::Identity)?;
    let (listen, socket) = (options.listen, options.socket.clone());
    let network = TcpListener::bind(listen)
        .await
        .map_err(|source| ServeError::Listen { address: listen, source })?;
    let listener = listen_at(&socket, options.socket_mode)?;
    confine().map_err(ServeError::Confine)?;
    let machine = Arc::new(begin(options, identity, network));
    let (stop, stopped) = watch::channel(false);
    let mut serving = tokio::spawn(accept(listener, Arc::clone(&machine), stopped));
    tracing::info!(socket = %socket.display(), address = %listen, "the helper is ready");
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
        never = speak(&machine) => match never {},
        // It ends when it is told to.
        _ = &mut serving => {}
    }
    tracing::info!("the helper ends, and removes all addresses");
    stop.send_replace(true);
    if !serving.is_finished()
        && let Err(error) = serving.await
    {
        tracing::error!(%error, "the helper did not end as it should");
    }
    if let Err(error) = std::fs::remove_file(&socket) {
        tracing::warn!(%error, socket = %socket.display(), "cannot remove the socket");
    }
    Ok(())
}

fn begin(options: Options, identity: Identity, network: TcpListener) -> Machine {
    let knowledge = Arc::new(Mutex::new(Knowledge::new(options.gateway)));
    let known = Arc::clone(&knowledge);
    let reply = move |from: Life, word| match word {
        Word::Question { version, by, at } if by == from => {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.answer(version, by, at).map(Word::Helper)
        }
        _ => None,
    };
    let mut mesh = Mesh::answering(identity, Arc::new(reply));
    mesh.listen(network);
    Machine {
        server_uid: options.server_uid,
        hook: options.hook,
        knowledge,
        seat: Mutex::new(Seat::new()),
        mesh: Mutex::new(mesh),
        left: Notify::new(),
        ended: Notify::new(),
    }
}

/// Makes the socket for the server. A socket at which nobody listens is replaced.
fn listen_at(path: &Path, mode: SocketMode) -> Result<UnixListener, ServeError> {
    let fault = |source| ServeError::Socket { path: path.into(), source };
    let hidden = match mode {
        SocketMode::Owner => Mode::from_raw_mode(0o177),
        SocketMode::Group => Mode::from_raw_mode(0o117),
    };
    if let Err(error) = BlockingStream::connect(path) {
        if error.kind() == ErrorKind::ConnectionRefused {
            std::fs::remove_file(path).map_err(fault)?;
        }
    } else {
        return Err(ServeError::Another(path.into()));
    }
    let before = umask(hidden);
    let listener = UnixListener::bind(path);
    umask(before);
    listener.map_err(fault)
}

/// Tells all other gateways that the latest life has ended, when it has, and goes on to.
async fn speak(machine: &Machine) -> Infallible {
    loop {
        // The oldest version that this program knows: all members of its cluster understand it.
        if let Some(word) = machine.knowledge().unasked(VERSION_OLDEST) {
            machine.mesh().send_to_all(Word::Helper(word));
        }
        tokio::select! {
            () = machine.ended.notified() => {}
            () = sleep(SPEAK_EVERY) => {}
        }
    }
}

/// Serves those who connect to the socket for the server, until `stopped`. Returns when all their
/// addresses are removed.
async fn accept(listener: UnixListener, machine: Arc<Machine>, stopped: watch::Receiver<bool>) {
    let mut sessions = JoinSet::new();
    let mut stop = stopped.clone();
    loop {
        let accepted: io::Result<UnixStream> = tokio::select! {
            () = session::stop(&mut stop) => break,
            Some(_) = sessions.join_next() => continue,
            accepted = listener.accept() => accepted.map(|(stream, _)| stream),
        };
        match accepted {
            Ok(stream) if sessions.len() < CONNECTIONS_MAX => {
                sessions.spawn(session::serve(stream, Arc::clone(&machine), stopped.clone()));
            }
            Ok(_) => tracing::warn!("closed a connection to the helper: there are too many"),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to the helper");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}
