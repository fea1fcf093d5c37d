//! Groups of volumes that come to this server and go, where several gateways share a catalogue.
//!
//! The order of an arrival: the hosts that held locks are known and have their grace period, the
//! volumes are open; then, elsewhere, their addresses come; then the hosts are told. The order of a
//! departure: the addresses are gone (elsewhere), the hosts are left to the next home, requests
//! that come are dropped, those under way have ended, data are synced, files closed.
//!
//! Not here: which server is a group's home, when (`weir-cluster`), and the addresses on interfaces
//! (`weir-address`). Calls block, and those about one group come one after the other.

use crate::engine::{Engine, credits};
use crate::sync::{Arc, Mutex, lock};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError};
use weir_cluster::GroupId;
use weir_control::plane::{Plane as _, PlaneError};

/// A group did not arrive, or did not leave.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A volume cannot be served.
    #[error(transparent)]
    Volume(#[from] PlaneError),
    /// The catalogue fails.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Requests still hold volumes of the group.
    #[error("requests are still under way on {0} volume(s) of the group")]
    Busy(usize),
}

/// The groups of a server.
pub struct Groups {
    engine: Arc<Engine>,
    catalog: Arc<Catalog>,
    grace: Duration,
    patience: Duration,
    /// The groups that arrive, whose hosts have their grace period.
    arriving: Mutex<BTreeSet<GroupId>>,
}

impl Groups {
    /// The groups of the server of `engine`. After an arrival locks can be reclaimed for `grace`;
    /// a departure waits for requests at most for `patience`.
    pub(crate) fn new(
        engine: Arc<Engine>,
        catalog: Arc<Catalog>,
        grace: Duration,
        patience: Duration,
    ) -> Self {
        Self { engine, catalog, grace, patience, arriving: Mutex::default() }
    }

    /// Begins to serve the volumes of `group`, which clients reach by `addresses`. With `taken` the
    /// clients' locks are lost, and can be reclaimed. To be called again after a failure.
    ///
    /// # Errors
    /// [`GroupError::Volume`], [`GroupError::Catalog`], and then volumes that could be opened are
    /// served; [`GroupError::Busy`] if the group has not left yet.
    pub fn adopt(
        &self,
        group: GroupId,
        addresses: &BTreeSet<IpAddr>,
        taken: bool,
    ) -> Result<(), GroupError> {
        match self.engine.leaving(group) {
            0 => {}
            held => return Err(GroupError::Busy(held)),
        }
        // The volumes of other groups have their own failures.
        let _others = self.engine.apply(self.catalog.snapshot());
        let volumes = self.engine.volumes_of(group);
        if let Some(nlm) = self.engine.nlm.as_ref().filter(|_| taken)
            && !lock(&self.arriving).contains(&group)
        {
            nlm.inherit(&self.catalog, addresses, volumes.iter().copied(), self.grace)?;
            lock(&self.arriving).insert(group);
        }
        self.engine.take_credits(self.catalog.credits()?, &volumes);
        self.engine.adopt_group(group)?;
        lock(&self.arriving).remove(&group);
        Ok(())
    }

    /// Tells the hosts that held locks on the group that it restarted. Its addresses are here.
    pub fn notify(&self, addresses: BTreeSet<IpAddr>) {
        if let Some(nlm) = &self.engine.nlm {
            nlm.notify(addresses);
        }
    }

    /// Ends to serve `group`, whose `addresses` are gone from this machine: when it returns `Ok`,
    /// no reply is under way and no file open, all data and the credits are stored. To be called
    /// again after a failure. A server that stops meanwhile closes what was released.
    ///
    /// # Errors
    /// [`GroupError::Busy`].
    pub fn stop(&self, group: GroupId, addresses: BTreeSet<IpAddr>) -> Result<(), GroupError> {
        if let Some(nlm) = &self.engine.nlm {
            let _ended = nlm.leave(addresses).blocking_recv();
        }
        credits::save_all(&self.engine);
        lock(&self.arriving).remove(&group);
        self.engine.release_group(group);
        match self.engine.close_released(group, self.patience) {
            0 => Ok(()),
            held => Err(GroupError::Busy(held)),
        }
    }
}
