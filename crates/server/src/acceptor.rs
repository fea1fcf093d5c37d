//! Accepts connections and deals them out to workers.

use crate::admission::Decision;
use crate::engine::Engine;
use crate::limits::SEND_STALL_SECONDS;
use crate::session::Protocol;
use crate::stop::Stop;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket2::{SockRef, TcpKeepalive};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use weir_core::{Clock, Mono};

/// Pause in accepting after the process ran out of descriptors or memory.
const REST: Duration = Duration::from_millis(100);

/// A non-blocking socket that accepts connections, and the protocol that they speak.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) protocol: Protocol,
}

/// Accepts on `listeners` until `stop`.
///
/// # Errors
/// The poll fails, which it does only for want of memory.
pub(crate) fn run(engine: &Engine, listeners: &[Listener], stop: &Stop) -> std::io::Result<()> {
    let mut complaints = Complaints::default();
    loop {
        let mut watched: Vec<PollFd<'_>> =
            listeners.iter().map(|l| PollFd::new(&l.socket, PollFlags::IN)).collect();
        watched.push(PollFd::new(stop, PollFlags::IN));
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if watched.last().is_some_and(|fd| !fd.revents().is_empty()) {
            return Ok(());
        }
        for listener in listeners {
            accept_all(engine, &mut complaints, listener);
        }
    }
}

fn accept_all(engine: &Engine, complaints: &mut Complaints, listener: &Listener) {
    loop {
        match listener.socket.accept() {
            Ok((socket, peer)) => take(engine, complaints, socket, peer, listener.protocol),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::error!(%error, "accept paused: out of file descriptors or memory; raise LimitNOFILE or reduce client connections");
                std::thread::sleep(REST);
                return;
            }
        }
    }
}

fn take(
    engine: &Engine,
    complaints: &mut Complaints,
    socket: TcpStream,
    peer: SocketAddr,
    protocol: Protocol,
) {
    tracing::debug!(%peer, "connected");
    if let Err(error) = prepare(&socket, engine.keepalive) {
        tracing::warn!(%peer, %error, "connection refused: cannot configure the socket");
        return;
    }
    match engine.admission.enter(peer.ip()) {
        Decision::Accept => engine.adopt(socket, peer, protocol),
        Decision::AcceptAndEvict(eviction) => {
            engine.evict(&eviction);
            engine.adopt(socket, peer, protocol);
        }
        Decision::RejectOrigin => {
            complaints.refused(engine, peer, "connections_per_client_max reached for this address");
        }
        Decision::Reject => complaints.refused(engine, peer, "connections_max reached"),
    }
}

/// Says what was refused, but not for every connection of a flood.
#[derive(Default)]
struct Complaints {
    last: Option<Mono>,
    unsaid: u64,
}

impl Complaints {
    fn refused(&mut self, engine: &Engine, peer: SocketAddr, why: &str) {
        engine.counters.refused();
        let now = engine.clock.now();
        if self.last.is_some_and(|last| now.since(last) < Duration::from_secs(1)) {
            self.unsaid += 1;
            return;
        }
        tracing::warn!(%peer, others = self.unsaid, "connection refused: {why}");
        *self = Self { last: Some(now), unsaid: 0 };
    }
}

fn prepare(socket: &TcpStream, silence: Duration) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    let options = SockRef::from(socket);
    options.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(silence)
        .with_interval(Duration::from_secs(15))
        .with_retries(4);
    options.set_tcp_keepalive(&keepalive)?;
    options.set_tcp_user_timeout(Some(Duration::from_secs(SEND_STALL_SECONDS.into())))
}
