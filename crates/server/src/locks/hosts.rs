//! The hosts that must hear of a restart, kept in the catalogue from before their first lock until
//! they hold none.

use crate::limits::MONITORED_HOSTS_MAX;
use crate::sync::Arc;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_nfs::nlm::{Host, Peer};

/// The monitored hosts.
pub(super) struct Hosts {
    catalog: Arc<Catalog>,
    known: BTreeSet<MonitoredHost>,
    /// Those of them that are being told of our restart.
    notifying: BTreeSet<MonitoredHost>,
}

impl Hosts {
    /// Those that the last life of the server left.
    ///
    /// # Errors
    /// Those of the catalogue.
    pub(super) fn load(catalog: Arc<Catalog>) -> Result<Self, CatalogError> {
        let known = catalog.monitored_hosts()?.into_iter().collect();
        Ok(Self { catalog, known, notifying: BTreeSet::new() })
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &MonitoredHost> {
        self.known.iter()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Is any host at `address` among them?
    pub(super) fn any_at(&self, address: IpAddr) -> bool {
        let local = Ipv4Addr::UNSPECIFIED.into();
        let first = MonitoredHost { address, name: Vec::new(), local };
        self.known.range(first..).next().is_some_and(|host| host.address == address)
    }

    /// Sees to it that `host` will be told of a restart, by the address that it knows us by. On
    /// disk when it returns; `false`, with a log line, if that can't be had.
    pub(super) fn monitor(&mut self, host: Host, peer: &Peer) -> bool {
        let host = MonitoredHost { address: host.address, name: host.name, local: peer.local };
        if self.known.contains(&host) {
            return true;
        }
        if self.known.len() >= MONITORED_HOSTS_MAX {
            tracing::warn!(peer = %host.address, limit = MONITORED_HOSTS_MAX, "no locks for a host: too many have some");
            return false;
        }
        match self.catalog.monitor_host(&host) {
            Ok(()) => {
                tracing::debug!(peer = %host.address, "a host has locks now");
                self.known.insert(host);
                true
            }
            Err(error) => {
                tracing::error!(%error, "no locks for a host: it can't be remembered");
                false
            }
        }
    }

    /// `host` is being told of our restart.
    pub(super) fn notifying(&mut self, host: &MonitoredHost) {
        self.notifying.insert(host.clone());
    }

    /// `host` was told, or can't be.
    pub(super) fn notified(&mut self, host: &MonitoredHost) {
        self.notifying.remove(host);
    }

    /// Forgets those that `has` says hold nothing and that heard of the restart.
    pub(super) fn tidy(&mut self, has: impl Fn(&Host) -> bool) {
        let idle = |host: &&MonitoredHost| {
            !self.notifying.contains(*host) && !has(&Host::new(host.address, &host.name))
        };
        let idle: Vec<MonitoredHost> = self.known.iter().filter(idle).cloned().collect();
        if idle.is_empty() {
            return;
        }
        match self.catalog.forget_hosts(&idle) {
            Ok(()) => self.known.retain(|host| !idle.contains(host)),
            Err(error) => tracing::warn!(%error, "hosts without locks stay monitored"),
        }
    }
}
