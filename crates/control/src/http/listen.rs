//! Listening for the API: the socket in the data directory, TCP addresses, and the accept loops.
//! The number of connections is bounded, and so is the time for a handshake, a request's head and
//! its body.

use super::body::Body;
use super::connections::{Connections, Place};
use super::tls;
use crate::clock::SystemClock;
use crate::config::ApiTls;
use crate::limits::{
    API_ACCEPTS_ROUND_MAX, API_ANSWER_LARGE_BYTES, API_LISTEN_BACKLOG, API_SEND_STALL_SECONDS,
};
use crate::sync::{Arc, watch};
use axum::Router;
use axum::body::HttpBody;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
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
use weir_core::{Clock, Origin};

/// Most connections of the socket in the data directory, which is for its owner alone; further ones
/// wait in the kernel's backlog.
const CONNECTIONS_MAX: usize = 128;
/// Longest a request's head may take.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest a TLS handshake may take.
const HANDSHAKE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause after a failed accept (no descriptors left, say), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A TCP address, and the acceptor that makes TLS of its connections.
pub(super) struct TcpDoor {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
}

/// The state that all connections of the API over TCP share.
#[derive(Clone)]
pub(super) struct Shared {
    connections: Arc<Connections>,
    clock: SystemClock,
}

impl Shared {
    /// The state before the first connection.
    pub(super) fn new() -> Self {
        Self { connections: Arc::default(), clock: SystemClock::start() }
    }
}

/// The other end of a connection, in the extensions of each of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    /// A process of this machine, at the socket.
    Socket {
        /// The process's user, if the kernel tells it.
        uid: Option<u32>,
    },
    /// Somebody at an address.
    Tcp(SocketAddr),
    /// Another gateway of the cluster.
    Gateway,
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
/// the holder of the lock of the data directory is its only server.
pub(super) fn bind_socket(directory: &Path) -> io::Result<(UnixListener, SocketName)> {
    let path = directory.join("api.sock");
    if path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()) {
        std::fs::remove_file(&path)?;
    }
    let fault =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let listener = UnixListener::bind(&path).map_err(fault)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fault)?;
    Ok((listener, SocketName(path)))
}

/// Takes over sockets that are bound already; where `mode` wants TLS, `acceptor` makes it.
pub(super) fn adopt_tcp(
    sockets: Vec<std::net::TcpListener>,
    mode: ApiTls,
    acceptor: Option<&TlsAcceptor>,
) -> io::Result<Vec<TcpDoor>> {
    let adopt = |socket| {
        // A flood of connections must not push others out before they are accepted.
        SockRef::from(&socket).listen(API_LISTEN_BACKLOG)?;
        let listener = TcpListener::from_std(socket)?;
        let address = listener.local_addr()?;
        let acceptor = acceptor.filter(|_| tls::is_spoken(mode, address.ip())).cloned();
        if acceptor.is_none() && !address.ip().is_loopback() {
            tracing::warn!(%address, "the API does not use TLS on this address: tokens can be intercepted");
        }
        tracing::info!(%address, tls = acceptor.is_some(), "serving the API");
        Ok(TcpDoor { listener, acceptor })
    };
    sockets.into_iter().map(adopt).collect()
}

/// Serves `router` on the socket in the data directory until `stopping`, then lets requests in
/// flight end within `grace`.
pub(super) async fn serve_socket(
    listener: UnixListener,
    router: Router,
    stopping: watch::Receiver<bool>,
    grace: Duration,
) {
    let mut tasks = JoinSet::new();
    let mut stop = stopping.clone();
    loop {
        while tasks.len() >= CONNECTIONS_MAX {
            tasks.join_next().await;
        }
        while tasks.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let peer = Peer::Socket { uid: stream.peer_cred().ok().map(|peer| peer.uid()) };
                tasks.spawn(converse(stream, peer, None, router.clone(), stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an API connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    end(tasks, grace).await;
}

/// Serves the API on a TCP address like [`serve_socket`]. A connection is accepted at once,
/// whatever others do; [`Connections`] decides which of them is closed for it.
pub(super) async fn serve_tcp(
    door: TcpDoor,
    shared: Shared,
    router: Router,
    stopping: watch::Receiver<bool>,
    grace: Duration,
) {
    let mut tasks = JoinSet::new();
    let mut stop = stopping.clone();
    let mut round = 0;
    loop {
        while tasks.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = door.listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        match accepted {
            Ok((stream, from)) => {
                door.take(stream, from, &shared, &mut tasks, &router, &stopping);
                round += 1;
                if round % API_ACCEPTS_ROUND_MAX == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an API connection");
                shared.connections.shed();
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    end(tasks, grace).await;
}

impl TcpDoor {
    /// Serves a new connection, if there is a place for it.
    fn take(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        shared: &Shared,
        tasks: &mut JoinSet<()>,
        router: &Router,
        stopping: &watch::Receiver<bool>,
    ) {
        let Shared { connections, clock } = shared;
        let Some(place) = connections.enter(Origin::of(from.ip()), clock.now()) else {
            tracing::warn!(peer = %from, "API connection refused: all connections are in use by other clients");
            return;
        };
        // The kernel gives up a client that does not read its answer. Without that the client would
        // only keep its place for longer.
        let stall = Duration::from_secs(API_SEND_STALL_SECONDS.into());
        let _set = SockRef::from(&stream).set_tcp_user_timeout(Some(stall)).is_ok();
        let id = place.id();
        let place = Some((Arc::new(place), *clock));
        let (peer, router, stopping) = (Peer::Tcp(from), router.clone(), stopping.clone());
        let task = match self.acceptor.clone() {
            None => tasks.spawn(converse(stream, peer, place, router, stopping)),
            Some(tls) => tasks.spawn(converse_tls(tls, stream, peer, place, router, stopping)),
        };
        connections.served_by(id, task);
    }
}

/// Lets requests in flight end within `grace`.
async fn end(mut tasks: JoinSet<()>, grace: Duration) {
    let in_flight = async { while tasks.join_next().await.is_some() {} };
    if timeout(grace, in_flight).await.is_err() {
        tracing::warn!("API requests were aborted at shutdown");
    }
}

/// A place among the connections over TCP, with the clock by which they wait; the socket has none.
pub(super) type Placed = Option<(Arc<Place>, SystemClock)>;

/// Answers the requests of one connection, after a handshake that may not take long.
async fn converse_tls(
    tls: TlsAcceptor,
    stream: TcpStream,
    peer: Peer,
    place: Placed,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let handshake = timeout(HANDSHAKE_WAIT_MAX, tls.accept(stream));
    let made = tokio::select! {
        made = handshake => made,
        () = stopped(&mut stopping) => return,
    };
    match made {
        Ok(Ok(stream)) => converse(stream, peer, place, router, stopping).await,
        Ok(Err(error)) => tracing::debug!(%error, "API TLS handshake failed"),
        Err(_) => tracing::debug!("API TLS handshake timed out"),
    }
}

/// Answers the requests of one connection.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    place: Placed,
    router: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let place = place.clone();
        let mut request = request.map(|body| Body::new(body, place.clone()));
        request.extensions_mut().insert(peer);
        let answer = router.call(request);
        async move {
            let answer = answer.await;
            let bytes = answer.as_ref().map_or(0, |answer| answer.body().size_hint().lower());
            match place {
                Some((place, clock)) if bytes > API_ANSWER_LARGE_BYTES => {
                    place.moves_body(clock.now());
                }
                Some((place, clock)) => place.waits(clock.now()),
                None => {}
            }
            answer
        }
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
        tracing::debug!(%error, "an API connection was lost");
    }
}

/// Waits for the word to stop; a sender that is gone says it too.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _said_or_gone = stopping.wait_for(|stop| *stop).await.is_ok();
}

#[cfg(test)]
mod tests {
    use super::super::tls::Tls;
    use super::*;
    use crate::config::ServerConfig;
    use crate::limits::API_BODY_WAIT;
    use axum::response::IntoResponse;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
            converse_tls(tls.acceptor(), stream, Peer::Tcp(from), None, Router::new(), stopping);
        timeout(2 * HANDSHAKE_WAIT_MAX, converse).await.unwrap();
        assert!(begun.elapsed() >= HANDSHAKE_WAIT_MAX, "not before its time");
        assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "the connection is closed");
    }

    async fn whole(request: axum::extract::Request) -> axum::response::Response {
        match super::super::body::read(request.into_body()).await {
            Ok(body) => body.into_response(),
            Err(failure) => failure.into_response(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let (mut client, stream) = tokio::io::duplex(1 << 16);
        let (_stop, stopping) = watch::channel(false);
        let router = Router::new().fallback(whole);
        let peer = Peer::Tcp("192.0.2.1:1".parse().unwrap());
        let serving = tokio::spawn(converse(stream, peer, None, router, stopping));
        let head = b"POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 1000\r\n\r\n";
        client.write_all(head).await.unwrap();
        let begun = Instant::now();
        // A byte each second keeps no connection alive.
        let mut answer = [0; 100];
        let answer = loop {
            sleep(Duration::from_secs(1)).await;
            // The write fails once the server has answered and closed.
            let _taken = client.write_all(b" ").await.is_ok();
            if let Ok(Ok(read)) = timeout(Duration::ZERO, client.read(&mut answer)).await {
                break String::from_utf8_lossy(&answer[..read]).into_owned();
            }
        };
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(begun.elapsed() >= API_BODY_WAIT && begun.elapsed() < 2 * API_BODY_WAIT);
        drop(client);
        serving.await.unwrap();
    }
}
