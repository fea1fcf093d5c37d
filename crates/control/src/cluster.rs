//! The control plane's interface to the cluster that a gateway belongs to.

use crate::plane::Step;
use crate::sync::Arc;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use weir_cluster::{Command, GatewayId, Refusal, View};

/// The records of a cluster, as this gateway follows them, commands that change them, and
/// connections to the other gateways. A server that is alone has none.
pub trait Cluster: Send + Sync + 'static {
    /// This gateway.
    fn own(&self) -> GatewayId;

    /// The records as this gateway knows them.
    fn view(&self) -> Arc<View>;

    /// May this gateway reply to clients at present?
    fn may_reply(&self) -> bool;

    /// Carries out a command of an operator. It is done when it stands in the records, and
    /// [`Cluster::view`] shows it then; moves and takeovers follow from there.
    fn command(&self, command: Command) -> Step<'_, Result<(), Refusal>>;

    /// Opens a connection to another gateway, which takes links at `address`. Both ends have proved
    /// that they belong to the cluster, and words between gateways never wait for it.
    fn ask(&self, to: GatewayId, address: SocketAddr) -> Opening<'_, Result<Stream, NotAsked>>;

    /// The next such connection that another gateway has opened; none if no more will come.
    fn asked(&self) -> Opening<'_, Option<Stream>>;
}

/// A connection that is being opened.
pub type Opening<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection of two gateways for requests of one of them.
pub type Stream = Box<dyn Connection>;

/// The bytes of a connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Connection for T {}

/// There is no connection to another gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// It runs a version that answers no other gateway.
    #[error("it runs an older version, which does not answer other gateways")]
    Older,
    /// It cannot be reached, or refuses.
    #[error("no connection: {0}")]
    Failed(String),
}
