//! The control plane's interface to the cluster that a gateway belongs to.

use crate::plane::Step;
use crate::sync::Arc;
use weir_cluster::{Command, Refusal, View};

/// The records of a cluster, as this gateway follows them, and commands that change them. A server
/// that is alone has none.
pub trait Cluster: Send + Sync + 'static {
    /// The records as this gateway knows them.
    fn view(&self) -> Arc<View>;

    /// Carries out a command of an operator. It is done when it stands in the records, and
    /// [`Cluster::view`] shows it then; moves and takeovers follow from there.
    fn command(&self, command: Command) -> Step<'_, Result<(), Refusal>>;
}
