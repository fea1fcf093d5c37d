//! The volumes of the server, as the rules move them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use weir_catalog::Catalog;
use weir_cluster::{Came, GroupId, Life};
use weir_gateway::{Failure, Service};
use weir_server::CephSessions;
use weir_server::groups::{GroupError, Groups};

/// The groups of the server, with the catalogue that says which addresses they have.
pub(super) struct Volumes {
    groups: Groups,
    catalog: Arc<Catalog>,
    ceph: CephSessions,
}

impl Volumes {
    pub(super) const fn new(groups: Groups, catalog: Arc<Catalog>, ceph: CephSessions) -> Self {
        Self { groups, catalog, ceph }
    }

    fn addresses(&self, group: GroupId) -> BTreeSet<IpAddr> {
        self.catalog.snapshot().address(group).map(|address| address.at.ip).into_iter().collect()
    }

    fn begin(&self, group: GroupId, taken: bool) -> Result<(), Failure> {
        self.groups.adopt(group, &self.addresses(group), taken).map_err(|error| failure(&error))
    }
}

fn failure(error: &GroupError) -> Failure {
    Failure(error.to_string())
}

impl Service for Volumes {
    fn adopt(&self, group: GroupId, came: Came) -> Result<(), Failure> {
        // A volume that was moved or deleted elsewhere is not made anew where it was.
        self.catalog.follow().map_err(|error| Failure(error.to_string()))?;
        if let Came::Taken { barrier, .. } = came {
            let failed = |error: std::io::Error| Failure(format!("Ceph: {error}"));
            self.ceph.wait_for_epoch(barrier.0).map_err(failed)?;
        }
        // Locks do not move with a group yet: their hosts reclaim them, also after a drain.
        self.begin(group, came != Came::New)
    }

    fn stop(&self, group: GroupId, _to: Option<Life>) -> Result<(), Failure> {
        self.groups.stop(group, self.addresses(group)).map_err(|error| failure(&error))
    }

    fn resume(&self, group: GroupId) -> Result<(), Failure> {
        // Its locks ended with the stop, as those of a restart.
        self.begin(group, true)
    }

    fn notify(&self, group: GroupId) {
        self.groups.notify(self.addresses(group));
    }
}
