//! The traits of what a driver acts upon, besides etcd and links.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use weir_cluster::{Barrier, Came, GatewayId, GroupId, Life, MachineId, SessionId};
use weir_core::Mono;

/// The reason for which something could not be done, for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// This machine: the helper beside the server, and the addresses.
///
/// Calls about lives come one at a time, in the order of the rules. So do those about one group.
pub trait Machine: Send + Sync + 'static {
    /// Tells the helper that this process is `life`, with the local state `machine`. When it
    /// returns, the helper says so to others. Called again after a failure.
    ///
    /// # Errors
    /// The helper is not reached, or refuses.
    fn announce(
        &self,
        machine: MachineId,
        life: Life,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Tells the helper that a life of another gateway is being condemned, and returns when the
    /// helper has it.
    ///
    /// # Errors
    /// The helper can't be told, or does not know this life. The change is not sent then.
    fn note(&self, life: Life) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Tells the helper that this is over. Called again after a failure, until it succeeds.
    ///
    /// # Errors
    /// The helper can't be told.
    fn unnote(&self, life: Life) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Tells the helper where the servers of the other gateways take links.
    ///
    /// # Errors
    /// The helper can't be told.
    fn follow(
        &self,
        gateways: BTreeMap<GatewayId, SocketAddr>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The addresses that are here may stay until `until`, and not longer. An earlier end than
    /// before counts too; at [`Mono::ZERO`] they have to be removed now.
    fn hold_until(&self, until: Mono) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Brings the addresses of a group to this machine. Called again after a failure.
    ///
    /// # Errors
    /// An address can't be brought.
    fn address(&self, group: GroupId) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Removes the addresses of a group. Called again after a failure.
    ///
    /// # Errors
    /// An address may be there still.
    fn unaddress(&self, group: GroupId) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Ceph, as far as it excludes ended lives. Calls block; they run on threads for blocking work.
pub trait Fencing: Send + Sync + 'static {
    /// Blocklists the sessions of an ended life, and returns when that is in force: every OSD and
    /// MDS that takes a request of a client with the returned epoch refuses those sessions. A life
    /// without sessions gets the present epoch.
    ///
    /// # Errors
    /// The blocklist is not known to be in force. The rules ask again.
    fn blocklist(&self, life: Life, sessions: &[SessionId]) -> Result<Barrier, Failure>;
}

/// The volumes of the server. Calls block; they run on threads for blocking work, those about one
/// group one after the other.
///
/// For every group the server replies only while [`SharedRight`](weir_cluster::SharedRight) allows
/// it, which it asks before each send.
pub trait Service: Send + Sync + 'static {
    /// Makes the volumes of a group ready: open, with known usage and credits, with the locks and
    /// replies if it was [handed](Came::Handed) over, and with a grace period if it was
    /// [taken](Came::Taken). Before they are used, their sessions with Ceph have to know the
    /// barrier in `came`, and those of all takeovers before a hand-over. Called again after a
    /// failure.
    ///
    /// # Errors
    /// A volume is not ready.
    fn adopt(&self, group: GroupId, came: Came) -> Result<(), Failure>;

    /// Stops to serve a group, whose addresses are gone. When it returns, no reply is under way,
    /// all data are flushed, all files closed; and the locks and replies are written for `to`, if
    /// there is such a life. Called again after a failure.
    ///
    /// # Errors
    /// Not all of this is done.
    fn stop(&self, group: GroupId, to: Option<Life>) -> Result<(), Failure>;

    /// Serves a stopped group again: the move is off. Clients whose locks could not be kept have to
    /// reclaim them; [`Service::notify`] follows. Called again after a failure.
    ///
    /// # Errors
    /// A volume is not ready.
    fn resume(&self, group: GroupId) -> Result<(), Failure>;

    /// Tells the clients that have to reclaim locks on the group's volumes that it restarted.
    fn notify(&self, group: GroupId);
}
