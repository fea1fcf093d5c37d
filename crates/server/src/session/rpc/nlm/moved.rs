//! Groups of volumes that come to this server from another one, or go: their clients' locks, and
//! the hosts that have to hear of it.
//!
//! A host knows a group by its addresses, and stands in the catalogue with the address that it
//! called. Whoever has the address has the host.

use super::service::Service;
use super::{Message, Nlm};
use crate::sync::mpsc;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_core::{Clock, VolumeId};
use weir_nfs::nlm::Host;

/// A message to the lock thread about groups that move.
pub(super) enum Moved {
    /// These hosts held locks at an earlier home and are owed a notice. Our NSM state number is
    /// `state` from now on.
    Here { state: u32, hosts: Vec<MonitoredHost> },
    /// The hosts that know us by these addresses can be told.
    Reachable(BTreeSet<IpAddr>),
    /// The next home of these addresses cares for their hosts. The sender is dropped once it is so.
    Away(BTreeSet<IpAddr>, mpsc::Sender<()>),
}

impl Nlm {
    /// Takes up the hosts that held locks through `addresses` at an earlier home, and gives them
    /// the time `grace` to reclaim them on `volumes`. They are told once they can be
    /// ([`Self::notify`]). Before any call for the volumes comes.
    ///
    /// # Errors
    /// The catalogue's errors.
    pub(crate) fn inherit(
        &self,
        catalog: &Catalog,
        addresses: &BTreeSet<IpAddr>,
        volumes: impl IntoIterator<Item = VolumeId>,
        grace: Duration,
    ) -> Result<(), CatalogError> {
        // A host takes a notice for one of a restart if the number is another one than before.
        let state = catalog.next_nsm_state()?;
        let mut hosts = catalog.monitored_hosts()?;
        hosts.retain(|host| addresses.contains(&host.local));
        let clients = hosts.iter().map(|host| Host::new(host.address, &host.name).client());
        self.locks.tables().begin_grace(self.clock.now() + grace, volumes, clients);
        self.inbox.post(Message::Moved(Moved::Here { state, hosts }));
        Ok(())
    }

    /// Has the hosts told that held locks through `addresses`, which are here now.
    pub(crate) fn notify(&self, addresses: BTreeSet<IpAddr>) {
        self.inbox.post(Message::Moved(Moved::Reachable(addresses)));
    }

    /// Leaves the hosts that know us by `addresses`, which are gone from here, to the next home.
    /// They stand in the catalogue as before. The channel ends when it is so. Before the volumes'
    /// locks go.
    pub(crate) fn leave(&self, addresses: BTreeSet<IpAddr>) -> mpsc::Receiver<()> {
        let (left, all_left) = mpsc::channel(1);
        self.inbox.post(Message::Moved(Moved::Away(addresses, left)));
        all_left
    }
}

impl Service {
    /// Carries a message about groups out.
    pub(super) fn moved(&mut self, moved: Moved) {
        match moved {
            Moved::Here { state, hosts } => {
                self.state = state;
                self.hosts.inherit(hosts);
            }
            Moved::Reachable(addresses) => {
                let owed = self.hosts.owed();
                self.begin_notices(owed.into_iter().filter(|host| addresses.contains(&host.local)));
            }
            Moved::Away(addresses, left) => {
                self.notices.retain(|_, host| !addresses.contains(&host.local));
                self.hosts.leave(&addresses);
                self.nlm.state().beside.monitored.leave(&addresses);
                drop(left);
            }
        }
    }
}
