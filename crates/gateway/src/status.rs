//! The state of a gateway as operators see it: plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_cluster::{GroupId, Life, Reason, Right, View};
use weir_core::Mono;

/// The state of a gateway after a step of its rules.
#[derive(Clone, Debug)]
pub struct Status {
    /// The life.
    pub life: Life,
    /// The time of the step.
    pub at: Mono,
    /// The right to reply.
    pub right: Right,
    /// The state of etcd that the life follows: members and their lives, leases, homes, fences. It
    /// is the last that was seen, while etcd is out of reach.
    pub view: Arc<View>,
    /// The groups for which replies may leave while there is a right to reply.
    pub replying: BTreeSet<GroupId>,
    /// The reason for which etcd, or a row of it, can't be read at present.
    pub etcd: Option<String>,
    /// The reasons for which a step of a group fails at present.
    pub groups: BTreeMap<GroupId, String>,
    /// The reasons for which a blocklist is not in force yet.
    pub fencing: BTreeMap<Life, String>,
    /// The reason for which the helper on this machine can't be told something at present.
    pub helper: Option<String>,
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The rules have ended it. The gateway starts anew, if the reason allows it.
    #[error("{0}")]
    Rules(Reason),
    /// It was asked to end.
    #[error("it was asked to end")]
    Asked,
}
