//! Listening for the API: the socket in the data directory, TCP addresses, and the loop that
//! accepts. Bounded: so many connections, so long for a request's head.

use super::tls;
use crate::config::ApiTls;
use crate::sync::watch;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Most connections of one listener; further ones wait in the kernel's backlog.
const CONNECTIONS_MAX: usize = 128;
/// Longest a request's head may take.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest a TLS handshake may take.
const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept (no descriptors left, say), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Something that accepts connections for the API.
pub(super) enum Listener {
    /// The socket in the data directory.
    Unix(UnixListener),
    /// A TCP address, and what makes TLS of its connections.
    Tcp(TcpListener, Option<TlsAcceptor>),
}

/// Who is at the other end of a connection, in the extensions of each of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A process of this machine, at the socket.
    Socket {
        /// Its user, where the kernel says.
        uid: Option<u32>,
    },
    /// Somebody at an address.
    Tcp(SocketAddr),
}

/// The name of the socket in the data directory; dropping this removes it.
pub(super) struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        // Gone already is as good as removed.
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Binds `api.sock` in `directory`, for its owner alone. One that is there already is stale:
/// whoever holds the lock of the data directory is the only server of it.
pub(super) fn bind_socket(directory: &Path) -> io::Result<(Listener, SocketName)> {
    let path = directory.join("api.sock");
    if path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()) {
        std::fs::remove_file(&path)?;
    }
    let fault =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let listener = UnixListener::bind(&path).map_err(fault)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fault)?;
    Ok((Listener::Unix(listener), SocketName(path)))
}

/// Takes over sockets that are bound already; where `mode` wants TLS, `acceptor` makes it.
pub(super) fn adopt_tcp(
    sockets: Vec<std::net::TcpListener>,
    mode: ApiTls,
    acceptor: Option<&TlsAcceptor>,
) -> io::Result<Vec<Listener>> {
    let adopt = |socket| {
        let listener = TcpListener::from_std(socket)?;
        let address = listener.local_addr()?;
        let acceptor = acceptor.filter(|_| tls::is_spoken(mode, address.ip())).cloned();
        if acceptor.is_none() && !address.ip().is_loopback() {
            tracing::warn!(%address, "the API speaks no TLS here: who listens on the way learns tokens");
        }
        tracing::info!(%address, tls = acceptor.is_some(), "serving the API");
        Ok(Listener::Tcp(listener, acceptor))
    };
    sockets.into_iter().map(adopt).collect()
}

/// Serves `router` until `stopping` says so, then lets what is in flight end within `grace`.
pub(super) async fn serve(
    listener: Listener,
    router: Router,
    stopping: watch::Receiver<bool>,
    grace: Duration,
) {
    let mut connections = JoinSet::new();
    let mut stop = stopping.clone();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = accept(&listener, &mut connections, &router, &stopping) => accepted,
            () = stopped(&mut stop) => break,
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "can't accept a connection for the API");
            sleep(ACCEPT_PAUSE).await;
        }
    }
    let in_flight = async { while connections.join_next().await.is_some() {} };
    if timeout(grace, in_flight).await.is_err() {
        tracing::warn!("requests to the API were cut off at shutdown");
    }
}

async fn accept(
    listener: &Listener,
    connections: &mut JoinSet<()>,
    router: &Router,
    stopping: &watch::Receiver<bool>,
) -> io::Result<()> {
    match listener {
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let peer = Peer::Socket { uid: stream.peer_cred().ok().map(|peer| peer.uid()) };
            connections.spawn(converse(stream, peer, router.clone(), stopping.clone()));
        }
        Listener::Tcp(listener, acceptor) => {
            let (stream, from) = listener.accept().await?;
            let (peer, router, stopping) = (Peer::Tcp(from), router.clone(), stopping.clone());
            match acceptor.clone() {
                None => connections.spawn(converse(stream, peer, router, stopping)),
                Some(tls) => connections.spawn(converse_tls(tls, stream, peer, router, stopping)),
            };
        }
    }
    Ok(())
}

/// Answers the requests of one connection, after a handshake that may not take long.
async fn converse_tls(
    tls: TlsAcceptor,
    stream: TcpStream,
    peer: Peer,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let handshake = timeout(HANDSHAKE_WAIT_MAX, tls.accept(stream));
    let made = tokio::select! {
        made = handshake => made,
        () = stopped(&mut stopping) => return,
    };
    match made {
        Ok(Ok(stream)) => converse(stream, peer, router, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake for the API failed"),
        Err(_) => tracing::debug!("a TLS handshake for the API took too long"),
    }
}

/// Answers the requests of one connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection to the API broke");
    }
}

/// Waits for the word to stop; a sender that is gone says it too.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _said_or_gone = stopping.wait_for(|stop| *stop).await.is_ok();
}

#[cfg(test)]
mod tests {
    use super::super::tls::Tls;
    use super::*;
    use crate::config::ServerConfig;
    use tokio::io::AsyncReadExt;
    use tokio::time::Instant;

    /// In virtual time, which goes on to the next timer as soon as nobody has anything to do.
    #[tokio::test(start_paused = true)]
    async fn who_never_ends_the_handshake_is_left_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let tls = Tls::open(&ServerConfig::default(), directory.path(), &[]).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, from) = listener.accept().await.unwrap();
        let (_stop, stopping) = watch::channel(false);
        let begun = Instant::now();
        let converse =
            converse_tls(tls.acceptor(), stream, Peer::Tcp(from), Router::new(), stopping);
        timeout(2 * HANDSHAKE_WAIT_MAX, converse).await.unwrap();
        assert!(begun.elapsed() >= HANDSHAKE_WAIT_MAX, "not before its time");
        assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "the connection is closed");
    }
}
