//! The right to reply, which a gateway of a cluster has for a time and a server of its own always.
//!
//! It is asked before every send to a client. Not here: how long it lasts (`weir-cluster`). A
//! process that is stopped between the question and the send replies late; a gateway's addresses
//! are guarded in the kernel for that case.

use crate::clock::since_boot;
use crate::sync::Arc;
use weir_cluster::SharedRight;

/// Whether replies may leave.
#[derive(Clone, Debug, Default)]
pub(crate) enum ReplyRight {
    /// No other server replies for the same volumes.
    #[default]
    Always,
    /// Until the instant that is published here, in nanoseconds since the machine's start.
    Until(Arc<SharedRight>),
}

impl ReplyRight {
    /// May a reply leave now?
    #[inline]
    pub(crate) fn allows(&self) -> bool {
        match self {
            Self::Always => true,
            Self::Until(right) => right.allows(since_boot()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_cluster::Right;

    #[test]
    fn a_right_with_an_end_lasts_until_then() {
        assert!(ReplyRight::Always.allows());
        let shared = Arc::new(SharedRight::default());
        let right = ReplyRight::Until(Arc::clone(&shared));
        assert!(!right.allows());
        shared.set(Right::until(since_boot() + Duration::from_secs(3600)));
        assert!(right.allows());
        shared.set(Right::until(since_boot()));
        assert!(!right.allows());
    }
}
