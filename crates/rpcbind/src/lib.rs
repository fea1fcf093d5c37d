//! The way in which clients find the server's RPC programs (RFC 1833): its own portmapper on port
//! 111 ([`Portmap`]), or registrations with the rpcbind of this machine ([`Registration`]).
//!
//! Not here: the rules of the protocol and its wire types (`weir_nfs::rpcbind`), and the sockets on
//! which the portmapper is called.
#![forbid(unsafe_code)]

mod register;
mod services;
mod sync;

pub use register::{RegisterError, Registration};
pub use services::{Services, portmapper_addresses};

use crate::sync::{Mutex, lock};
use std::net::{IpAddr, SocketAddr};
use weir_nfs::rpc::{AcceptError, Call, reply};
use weir_nfs::rpcbind::{Caller, Netid, Registry};

/// Ports below this are for privileged programs.
const PORT_RESERVED_MAX: u16 = 1024;

/// The built-in portmapper, if it is configured.
#[derive(Debug, Default)]
pub struct Portmap {
    registry: Option<Mutex<Registry>>,
}

impl Portmap {
    /// A portmapper that has `services` and itself registered.
    pub fn new(services: &Services) -> Self {
        Self { registry: Some(Mutex::new(Registry::new(services.with_portmapper()))) }
    }

    /// Answers a call to the portmapper program that came from `from` to our address `local`.
    /// Without a portmapper of ours the program is unavailable.
    ///
    /// Like other portmappers, it lets privileged programs of this machine register theirs.
    pub fn serve(
        &self,
        call: &Call,
        from: SocketAddr,
        local: IpAddr,
        stream: bool,
        unix_seconds: u32,
        room: Vec<u8>,
    ) -> Vec<u8> {
        let Some(registry) = &self.registry else {
            return reply::error(room, call.xid, AcceptError::ProgramUnavailable);
        };
        let caller = Caller {
            local,
            netid: Netid::of(&local, stream),
            trusted: from.ip().is_loopback() && from.port() < PORT_RESERVED_MAX,
            unix_seconds,
        };
        weir_nfs::rpcbind::serve(call, &mut lock(registry), &caller, room)
    }
}
