//! The cluster as the control plane uses it.

use std::sync::Arc;
use weir_cluster::{Command, Refusal, View};
use weir_control::cluster::Cluster;
use weir_control::plane::Step;
use weir_gateway::Gateway;

/// The records and the commands of the cluster, through the driver of this gateway.
pub(super) struct Commands(Arc<Gateway>);

impl Commands {
    pub(super) const fn new(gateway: Arc<Gateway>) -> Self {
        Self(gateway)
    }
}

impl Cluster for Commands {
    fn view(&self) -> Arc<View> {
        Arc::clone(&self.0.status().borrow().view)
    }

    fn command(&self, command: Command) -> Step<'_, Result<(), Refusal>> {
        Box::pin(self.0.command(command))
    }
}
