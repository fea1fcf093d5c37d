//! The resources that must be opened before privileges are given up, besides the data directory:
//! every address, and descriptors for all of it.

use crate::acceptor::Listener;
use crate::error::ServeError;
use crate::limits::LISTEN_BACKLOG;
use crate::session::Protocol;
use crate::session::rpc::udp::Sockets;
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use weir_control::config::{RpcbindMode, ServerConfig};
use weir_process::ensure_descriptors;
use weir_rpcbind::{Portmap, Services, portmapper_addresses};

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
