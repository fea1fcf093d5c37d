//! The watcher of a server in crash tests: its own connection, and the questions that it asks.

use crate::server::TestServer;
use anyhow::Result;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use weir_core::Credentials;
use weir_load::engine::Session;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{FileHandle3, FsStatArgs, GetattrArgs, Res};

/// The watcher's source address, which no client has.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 1, 0, 1));

/// The watcher's identity.
pub(super) fn caller() -> Caller {
    Caller::sys(&Credentials::ROOT, b"weir-crash")
}

/// A connection of the watcher.
pub(super) fn session(address: SocketAddr) -> Result<Session> {
    Ok(Session::open(address, Some(ADDRESS), caller())?)
}

/// Waits until the server answers for the object `root`; the time from its start until then.
pub(super) fn serving(server: &mut TestServer, root: &[u8]) -> Result<Duration> {
    server.wait(|address| space(address, root))?;
    Ok(server.uptime())
}

/// Bytes used in the volume with this top directory, as its clients see them.
pub(super) fn space(address: SocketAddr, root: &[u8]) -> Result<u64> {
    let answer =
        session(address)?.call(&FsStatArgs { root: FileHandle3(root) }, |result| match result {
            Res::Ok(ok) => Ok(ok.total_bytes - ok.free_bytes),
            Res::Fail(status, _) => Err(status),
        })?;
    answer.map_err(|status| anyhow::anyhow!("FSSTAT: status {}", status.0))
}

/// The inode number of the directory `root`.
pub(super) fn fileid(address: SocketAddr, root: &[u8]) -> Result<u64> {
    let object = FileHandle3(root);
    let answer = session(address)?.call(&GetattrArgs { object }, |result| match result {
        Res::Ok(ok) => Ok(ok.attributes.fileid),
        Res::Fail(status, ()) => Err(status),
    })?;
    answer.map_err(|status| anyhow::anyhow!("GETATTR: status {}", status.0))
}
