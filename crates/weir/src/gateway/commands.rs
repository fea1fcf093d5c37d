//! The cluster as the control plane uses it.

use std::net::SocketAddr;
use std::sync::Arc;
use weir_cluster::{Command, GatewayId, Refusal, View};
use weir_control::ASKS_GATEWAY_MAX;
use weir_control::cluster::{Cluster, NotAsked, Opening, Stream};
use weir_control::plane::Step;
use weir_gateway::Gateway;
use weir_links::{HANDSHAKES_ADDRESS_MAX, LinkError};

const _: () = assert!(
    2 * ASKS_GATEWAY_MAX < HANDSHAKES_ADDRESS_MAX,
    "questions leave more than half of the handshakes to words, on which leases depend"
);

/// The records and the commands of the cluster, and the ways to other gateways, through the driver
/// of this gateway.
pub(super) struct Commands(Arc<Gateway>);

impl Commands {
    pub(super) const fn new(gateway: Arc<Gateway>) -> Self {
        Self(gateway)
    }
}

impl Cluster for Commands {
    fn own(&self) -> GatewayId {
        self.0.life().gateway
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.status().borrow().view)
    }

    /// As of the latest step of the rules, of which there are several in a second.
    fn may_reply(&self) -> bool {
        let status = Arc::clone(&self.0.status().borrow());
        status.right.allows(status.at)
    }

    fn command(&self, command: Command) -> Step<'_, Result<(), Refusal>> {
        Box::pin(self.0.command(command))
    }

    fn ask(&self, to: GatewayId, address: SocketAddr) -> Opening<'_, Result<Stream, NotAsked>> {
        Box::pin(async move {
            match self.0.ask(to, address).await {
                Ok(stream) => Ok(Box::new(stream) as Stream),
                Err(LinkError::NoQuestions) => Err(NotAsked::Older),
                Err(error) => Err(NotAsked::Failed(error.to_string())),
            }
        })
    }

    fn asked(&self) -> Opening<'_, Option<Stream>> {
        Box::pin(async { self.0.asked().await.map(|stream| Box::new(stream) as Stream) })
    }
}
