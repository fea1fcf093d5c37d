//! Ceph's monitors, which make Ceph refuse the sessions of an ended life.

use std::time::Duration;
use weir_cluster::{Barrier, Life, SessionId};
use weir_gateway::{Failure, Fencing};
use weir_server::CephSessions;

/// Time for which Ceph refuses the sessions. It is renewed until the life is known to be gone.
const FOR: Duration = Duration::from_secs(3600);

/// The blocklist of Ceph.
pub(super) struct Blocklist(CephSessions);

impl Blocklist {
    pub(super) const fn new(ceph: CephSessions) -> Self {
        Self(ceph)
    }
}

impl Fencing for Blocklist {
    fn blocklist(&self, life: Life, sessions: &[SessionId]) -> Result<Barrier, Failure> {
        let failed = |error: std::io::Error| Failure(format!("Ceph's monitors: {error}"));
        let epoch = self.0.blocklist(sessions, FOR).map_err(failed)?;
        let sessions = sessions.len();
        tracing::info!(%life, sessions, epoch, "Ceph refuses the sessions of an ended life");
        Ok(Barrier(epoch))
    }
}
