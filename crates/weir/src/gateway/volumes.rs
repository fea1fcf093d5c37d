//! The volumes of the server, as the rules move them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use weir_catalog::Catalog;
use weir_cluster::{Came, GroupId, Life};
use weir_gateway::{Failure, Service};
use weir_server::CephSessions;
use weir_server::groups::{Arrival, GroupError, Groups};

/// The groups of the server of a life, with the catalogue that says which addresses they have.
pub(super) struct Volumes {
    life: Life,
    groups: Groups,
    catalog: Arc<Catalog>,
    ceph: CephSessions,
}

impl Volumes {
    pub(super) const fn new(
        life: Life,
        groups: Groups,
        catalog: Arc<Catalog>,
        ceph: CephSessions,
    ) -> Self {
        Self { life, groups, catalog, ceph }
    }

    fn addresses(&self, group: GroupId) -> BTreeSet<IpAddr> {
        self.catalog.snapshot().address(group).map(|address| address.at.ip).into_iter().collect()
    }

    fn begin(&self, group: GroupId, arrival: Arrival) -> Result<(), Failure> {
        self.groups.adopt(group, &self.addresses(group), arrival).map_err(|error| failure(&error))
    }
}

fn failure(error: &GroupError) -> Failure {
    Failure(error.to_string())
}

impl Service for Volumes {
    fn adopt(&self, group: GroupId, came: Came) -> Result<(), Failure> {
        // A volume that was moved or deleted elsewhere is not made anew where it was.
        self.catalog.follow().map_err(|error| Failure(error.to_string()))?;
        match came {
            Came::New => Ok(()),
            // The home before may have taken the group over a moment ago. The OSDs that it has
            // spoken to know of the blocklist since, and others may not.
            Came::Handed { .. } => self.ceph.wait_for_all_epochs(),
            Came::Taken { barrier, .. } => self.ceph.wait_for_epoch(barrier.0),
        }
        .map_err(|error| Failure(format!("Ceph: {error}")))?;
        let arrival = match came {
            Came::New => Arrival::New,
            Came::Handed { from } => Arrival::Handed { from, to: self.life },
            Came::Taken { .. } => Arrival::Taken,
        };
        self.begin(group, arrival)
    }

    fn stop(&self, group: GroupId, to: Option<Life>) -> Result<(), Failure> {
        let between = to.map(|to| (self.life, to));
        let stopped = self.groups.stop(group, &self.addresses(group), between);
        stopped.map_err(|error| failure(&error))
    }

    fn resume(&self, group: GroupId) -> Result<(), Failure> {
        self.begin(group, Arrival::Back)
    }

    fn notify(&self, group: GroupId) {
        self.groups.notify(self.addresses(group));
    }
}
