//! The resources that must be opened before privileges are given up, besides the data directory:
//! every address, and descriptors for all of it.

use crate::acceptor::Listener;
use crate::error::ServeError;
use crate::limits::LISTEN_BACKLOG;
use crate::session::Protocol;
use crate::session::rpc::udp::Sockets;
use rustix::process::{Resource, Rlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use weir_control::config::{RpcbindMode, ServerConfig};
use weir_rpcbind::{Portmap, Services, portmapper_addresses};

/// Descriptors for all but connections and objects: listeners, the catalogue, the API.
const DESCRIPTORS_OTHER: usize = 1024;
/// Descriptors that an operation on a thread of the store holds until it is done, at most.
const DESCRIPTORS_OPERATION: usize = 4;

/// All sockets of a server. Nothing is served yet, and no thread runs.
pub struct Bound {
    /// For NFS and, with a portmapper of ours, port 111.
    pub(crate) listeners: Vec<Listener>,
    /// The addresses that NFS is served on.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The addresses that SMB is served on.
    pub(crate) smb_addresses: Vec<SocketAddr>,
    pub(crate) services: Services,
    pub(crate) sockets: Sockets,
    pub(crate) portmap: Portmap,
    /// For the API over TCP.
    pub(crate) api: Vec<TcpListener>,
    /// Descriptors that all volumes together may hold.
    pub(crate) descriptors: usize,
}

impl Bound {
    /// Binds every address.
    ///
    /// # Errors
    /// [`ServeError`], which names the missing resource.
    pub fn open(config: &ServerConfig) -> Result<Self, ServeError> {
        let descriptors = ensure_descriptors(config, weir_store::prepare_process()?);
        let mut listeners = bind(&config.nfs, Protocol::Rpc)?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().filter_map(|l| l.socket.local_addr().ok()).collect();
        let services = Services::new(&addresses);
        let mut sockets = Sockets::default();
        if config.rpcbind != RpcbindMode::Off {
            bind_datagrams(&addresses, &mut sockets)?;
        }
        let mut portmap = Portmap::default();
        if config.rpcbind == RpcbindMode::Serve {
            bind_portmapper(&addresses, &mut listeners, &mut sockets)?;
            portmap = Portmap::new(&services);
        }
        let smb = bind(&config.smb, Protocol::Smb)?;
        let smb_addresses = smb.iter().filter_map(|l| l.socket.local_addr().ok()).collect();
        listeners.extend(smb);
        let api = weir_control::http::bind(&config.api)?;
        Ok(Self {
            listeners,
            addresses,
            smb_addresses,
            services,
            sockets,
            portmap,
            api,
            descriptors,
        })
    }
}

/// Makes sure of descriptors for all connections and for the objects of one volume at least. Where
/// the hard limit, `limit`, is below that, root raises it, and others are warned. Returns the
/// descriptors that all volumes together may hold: what connections and the server itself leave.
fn ensure_descriptors(config: &ServerConfig, limit: u64) -> usize {
    let reserved = config.connections_max + own_descriptors(config);
    let wanted = reserved + config.cached_objects_max;
    let available = usize::try_from(limit).unwrap_or(usize::MAX);
    if available >= wanted {
        return available - reserved;
    }
    let raised = Some(wanted as u64);
    if setrlimit(Resource::Nofile, Rlimit { current: raised, maximum: raised }).is_ok() {
        return config.cached_objects_max;
    }
    let objects_max = descriptors_within(config, available);
    tracing::warn!(
        limit,
        wanted,
        objects_max,
        "the limit of open files is low: volumes cache fewer objects, and connections may be \
         refused before connections_max is reached; raise the hard limit (ulimit -Hn, \
         LimitNOFILE=), or reduce connections_max and cached_objects_max"
    );
    objects_max
}

/// Descriptors of the server itself, and of operations that are being executed.
fn own_descriptors(config: &ServerConfig) -> usize {
    DESCRIPTORS_OTHER + DESCRIPTORS_OPERATION * config.blocking_threads
}

/// Descriptors for the objects of all volumes within `limit`, of which connections get up to a
/// quarter and the server itself as much.
fn descriptors_within(config: &ServerConfig, limit: usize) -> usize {
    let quarter = limit / 4;
    limit - config.connections_max.min(quarter) - own_descriptors(config).min(quarter)
}

fn bind(addresses: &[SocketAddr], protocol: Protocol) -> Result<Vec<Listener>, ServeError> {
    let with_address = |address: &SocketAddr| {
        listen(address, protocol).map_err(|source| ServeError::Listen { address: *address, source })
    };
    addresses.iter().map(with_address).collect()
}

/// IPv6 sockets take IPv6 alone, so that `0.0.0.0` and `[::]` can be listed side by side.
fn listen(address: &SocketAddr, protocol: Protocol) -> std::io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&(*address).into())?;
    socket.listen(LISTEN_BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(Listener { socket: socket.into(), protocol })
}

/// The UDP side of the addresses that NFS is served on.
fn bind_datagrams(addresses: &[SocketAddr], sockets: &mut Sockets) -> Result<(), ServeError> {
    addresses.iter().try_for_each(|address| {
        let listen = |source| ServeError::Listen { address: *address, source };
        sockets.programs(address).map_err(listen)
    })
}

/// Port 111, TCP and UDP, of those addresses.
fn bind_portmapper(
    addresses: &[SocketAddr],
    listeners: &mut Vec<Listener>,
    sockets: &mut Sockets,
) -> Result<(), ServeError> {
    for address in portmapper_addresses(addresses) {
        let taken = |source| ServeError::Portmapper { address, source };
        listeners.push(listen(&address, Protocol::Rpc).map_err(taken)?);
        sockets.portmapper(&address).map_err(taken)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_hold_no_more_descriptors_than_connections_and_the_server_leave() {
        let (connections_max, blocking_threads) = (16_384, 64);
        let config = ServerConfig { connections_max, blocking_threads, ..Default::default() };
        let own = 1024 + 4 * 64;
        assert_eq!(ensure_descriptors(&config, 1 << 20), (1 << 20) - 16_384 - own);
        assert_eq!(descriptors_within(&config, 20_000), 20_000 - 5_000 - own);
        assert_eq!(descriptors_within(&config, 1024), 512, "half of any limit");
        let few = ServerConfig { connections_max: 100, ..config };
        assert_eq!(descriptors_within(&few, 20_000), 20_000 - 100 - own);
    }
}
