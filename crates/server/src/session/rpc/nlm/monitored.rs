//! The monitored hosts: those that hold locks, or did a short while ago, and are on disk to be told
//! of a restart. Plain data, on which workers look whether a host may lock at once.
//!
//! Not here: the catalogue, and the hosts that an earlier life of the server left
//! ([`super::hosts`]).

use crate::limits::{
    MONITORED_HOSTS_MAX, MONITORED_HOSTS_ORIGIN_MIN, MONITORED_HOSTS_ORIGIN_ONE_IN,
};
use crate::sync::Arc;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use weir_catalog::{CatalogError, MonitoredHost};
use weir_core::Origin;
use weir_core::origin::part;
use weir_nfs::nlm::Host;

/// Hosts that are forgotten together, since each change of the catalogue waits for the disk.
const FORGOTTEN_AT_ONCE: usize = 64;

/// The reason why a host is not monitored, and so gets no lock.
#[derive(Debug)]
pub(super) enum NotMonitored {
    /// The host's origin has its full part of the bound, all of it hosts with locks.
    OriginFull,
    /// The server has all the hosts it may monitor, all with locks.
    Full,
    /// The catalogue can't be written.
    Catalog(CatalogError),
}

/// The monitored hosts.
#[derive(Default)]
pub(super) struct Monitored {
    /// The hosts, with the serial number by which a host without locks is found in its account.
    hosts: BTreeMap<Arc<MonitoredHost>, Option<u64>>,
    accounts: HashMap<Origin, Account>,
    /// The number of hosts without locks.
    idle: usize,
    serial: u64,
}

/// The monitored hosts of one origin.
#[derive(Default)]
struct Account {
    hosts: usize,
    /// The hosts without locks, the one that has been so for longest first.
    idle: BTreeMap<u64, Arc<MonitoredHost>>,
}

impl Account {
    fn busy(&self) -> usize {
        self.hosts - self.idle.len()
    }

    /// Some of the hosts without locks, those first that have been so for longest.
    fn idlest(&self) -> Vec<Arc<MonitoredHost>> {
        self.idle.values().take(FORGOTTEN_AT_ONCE).cloned().collect()
    }
}

impl Monitored {
    /// The number of hosts.
    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Is `host` monitored, by the address that it knows us by?
    pub(super) fn contains(&self, host: &MonitoredHost) -> bool {
        self.hosts.contains_key(host)
    }

    /// Is any host at `address` monitored?
    pub(super) fn any_at(&self, address: IpAddr) -> bool {
        let first = first_at(address, Vec::new());
        let found = self.hosts.range::<MonitoredHost, _>(&first..).next();
        found.is_some_and(|(host, _)| host.address == address)
    }

    /// All hosts without locks.
    pub(super) fn idle(&self) -> Vec<Arc<MonitoredHost>> {
        self.accounts.values().flat_map(|account| account.idle.values()).cloned().collect()
    }

    /// The hosts without locks to forget before `origin` may have one more, if there must be less.
    ///
    /// # Errors
    /// [`NotMonitored::OriginFull`] and [`NotMonitored::Full`].
    pub(super) fn in_the_way(
        &self,
        origin: Origin,
    ) -> Result<Option<Vec<Arc<MonitoredHost>>>, NotMonitored> {
        let none = Account::default();
        let own = self.accounts.get(&origin).unwrap_or(&none);
        let others = self.hosts.len() - self.idle - own.busy();
        let one_in = MONITORED_HOSTS_ORIGIN_ONE_IN;
        let most = part(MONITORED_HOSTS_MAX, others, one_in, MONITORED_HOSTS_ORIGIN_MIN);
        if own.busy() >= most {
            return Err(NotMonitored::OriginFull);
        }
        if own.hosts >= most {
            return Ok(Some(own.idlest()));
        }
        if self.hosts.len() < MONITORED_HOSTS_MAX {
            return Ok(None);
        }
        let idle = self.accounts.values().filter(|account| !account.idle.is_empty());
        let most = idle.max_by_key(|account| account.hosts);
        most.map(|account| Some(account.idlest())).ok_or(NotMonitored::Full)
    }

    /// Adds a host without locks, which is on disk.
    pub(super) fn insert(&mut self, host: &Arc<MonitoredHost>) {
        if self.hosts.insert(Arc::clone(host), None).is_none() {
            self.accounts.entry(Origin::of(host.address)).or_default().hosts += 1;
        }
        self.set_idle(host, true);
    }

    /// Removes a host.
    pub(super) fn remove(&mut self, host: &Arc<MonitoredHost>) {
        self.set_idle(host, false);
        let origin = Origin::of(host.address);
        if self.hosts.remove(host).is_some()
            && let Some(account) = self.accounts.get_mut(&origin)
        {
            account.hosts -= 1;
            if account.hosts == 0 {
                self.accounts.remove(&origin);
            }
        }
    }

    /// Removes the hosts that know us by `addresses`. Gives them, and the others.
    pub(super) fn leave(&mut self, addresses: &BTreeSet<IpAddr>) -> [BTreeSet<Host>; 2] {
        let of_them = |host: &&Arc<MonitoredHost>| addresses.contains(&host.local);
        let leaving: Vec<_> = self.hosts.keys().filter(of_them).cloned().collect();
        leaving.iter().for_each(|host| self.remove(host));
        let host = |row: &Arc<MonitoredHost>| Host::new(row.address, &row.name);
        [leaving.iter().map(host).collect(), self.hosts.keys().map(host).collect()]
    }

    /// Notes whether `host` holds locks or waits for some.
    pub(super) fn settle(&mut self, host: &Host, holds: bool) {
        let first = first_at(host.address, host.name.clone());
        let same = |other: &&Arc<MonitoredHost>| {
            (other.address, &other.name) == (host.address, &host.name)
        };
        let all = self.hosts.range::<MonitoredHost, _>(&first..).map(|(host, _)| host);
        let all: Vec<_> = all.take_while(same).cloned().collect();
        for host in all {
            self.set_idle(&host, !holds);
        }
    }

    fn set_idle(&mut self, host: &Arc<MonitoredHost>, idle: bool) {
        let Some(at) = self.hosts.get_mut(host) else { return };
        if idle == at.is_some() {
            return;
        }
        let Some(account) = self.accounts.get_mut(&Origin::of(host.address)) else { return };
        if let Some(serial) = at.take() {
            account.idle.remove(&serial);
            self.idle -= 1;
        } else {
            self.serial += 1;
            *at = Some(self.serial);
            account.idle.insert(self.serial, Arc::clone(host));
            self.idle += 1;
        }
    }
}

/// Not above any host of this address and name.
pub(super) fn first_at(address: IpAddr, name: Vec<u8>) -> MonitoredHost {
    MonitoredHost { address, name, local: Ipv4Addr::UNSPECIFIED.into() }
}
