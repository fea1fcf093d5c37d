//! The hosts that must hear of a restart, kept in the catalogue from before their first lock until
//! they hold none.
//!
//! A host of this life of the server is *monitored*. A host that an earlier life left is *owed a
//! notice*, until it was told of the restart or turns out unreachable. The two are bounded apart,
//! so that hosts that nobody can reach don't keep others from locks. A host may be both.

use crate::limits::{
    MONITORED_HOSTS_MAX, MONITORED_HOSTS_ORIGIN_MIN, MONITORED_HOSTS_ORIGIN_ONE_IN, NOTICES_MAX,
};
use crate::sync::Arc;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_core::Origin;
use weir_core::origin::part;
use weir_nfs::nlm::{Host, Peer};

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

/// The monitored hosts, and those that are owed a notice.
pub(super) struct Hosts {
    catalog: Arc<Catalog>,
    /// The monitored hosts, with the serial number by which a host without locks is found in its
    /// account.
    monitored: BTreeMap<Arc<MonitoredHost>, Option<u64>>,
    accounts: HashMap<Origin, Account>,
    /// The number of monitored hosts without locks.
    idle: usize,
    owed: BTreeMap<Arc<MonitoredHost>, Notice>,
    serial: u64,
}

/// The state of the notice of our restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// The notice is to be sent, or is being sent.
    Due,
    /// The host was told, or can't be reached.
    Over,
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

impl Hosts {
    /// The hosts that the last life of the server left: all are owed a notice. Beyond
    /// [`NOTICES_MAX`], which takes several restarts in a row that left no time for notices, hosts
    /// of the origins that have the most are forgotten.
    ///
    /// # Errors
    /// The catalogue's errors.
    pub(super) fn load(catalog: Arc<Catalog>) -> Result<Self, CatalogError> {
        let mut turns: Vec<MonitoredHost> = in_turns(catalog.monitored_hosts()?);
        let beyond = turns.split_off(turns.len().min(NOTICES_MAX));
        if !beyond.is_empty() {
            tracing::warn!(
                hosts = beyond.len(),
                "too many hosts to notify of the restart: some are not notified"
            );
            catalog.forget_hosts(&beyond)?;
        }
        let owed = turns.into_iter().map(|host| (Arc::new(host), Notice::Due)).collect();
        let (monitored, accounts) = (BTreeMap::new(), HashMap::new());
        Ok(Self { catalog, monitored, accounts, idle: 0, owed, serial: 0 })
    }

    /// The hosts that are owed a notice, in the order to tell them in: the origins by turns, so
    /// that one with many hosts delays no other.
    pub(super) fn owed(&self) -> Vec<Arc<MonitoredHost>> {
        in_turns(self.owed.keys().cloned())
    }

    /// The number of monitored hosts.
    pub(super) fn monitored(&self) -> usize {
        self.monitored.len()
    }

    /// Is any host at `address` among them?
    pub(super) fn any_at(&self, address: IpAddr) -> bool {
        let local = Ipv4Addr::UNSPECIFIED.into();
        let first = MonitoredHost { address, name: Vec::new(), local };
        let monitored = self.monitored.range::<MonitoredHost, _>(&first..).next();
        let owed = self.owed.range::<MonitoredHost, _>(&first..).next();
        let found = monitored.map(|(host, _)| host).into_iter().chain(owed.map(|(host, _)| host));
        found.into_iter().any(|host| host.address == address)
    }

    /// Sees to it that `host` will be told of a restart, by the address that it knows us by. On
    /// disk when it returns. [`Self::settle`] is to be told whether the host holds locks then.
    ///
    /// A bound that is reached is kept by forgetting hosts without locks: of the same origin at the
    /// origin's bound, and of the origin that has the most at the bound of all. Hosts with locks,
    /// as `has` tells them, are never forgotten. With `reclaim` no bound is looked at: the host
    /// takes again what it held before the restart, and those hosts were bounded then.
    ///
    /// # Errors
    /// [`NotMonitored`]; the host gets no lock then.
    pub(super) fn monitor(
        &mut self,
        host: &Host,
        peer: &Peer,
        reclaim: bool,
        has: impl Fn(&Host) -> bool,
    ) -> Result<(), NotMonitored> {
        let (address, name) = (host.address, host.name.clone());
        let host = MonitoredHost { address, name, local: peer.local };
        if self.monitored.contains_key(&host) {
            return Ok(());
        }
        let origin = Origin::of(address);
        while !reclaim && let Some(idlest) = self.in_the_way(origin)? {
            self.forget_unless(&idlest, &has).map_err(NotMonitored::Catalog)?;
        }
        // The row of a host that is owed a notice is there already.
        if !self.owed.contains_key(&host) {
            self.catalog.monitor_host(&host).map_err(NotMonitored::Catalog)?;
        }
        tracing::debug!(peer = %address, "a host is now monitored");
        let host = Arc::new(host);
        self.accounts.entry(origin).or_default().hosts += 1;
        self.monitored.insert(Arc::clone(&host), None);
        self.set_idle(&host, true);
        Ok(())
    }

    /// The hosts without locks to forget before `origin` may have one more, if there must be less.
    fn in_the_way(&self, origin: Origin) -> Result<Option<Vec<Arc<MonitoredHost>>>, NotMonitored> {
        let none = Account::default();
        let own = self.accounts.get(&origin).unwrap_or(&none);
        let others = self.monitored.len() - self.idle - own.busy();
        let one_in = MONITORED_HOSTS_ORIGIN_ONE_IN;
        let most = part(MONITORED_HOSTS_MAX, others, one_in, MONITORED_HOSTS_ORIGIN_MIN);
        if own.busy() >= most {
            return Err(NotMonitored::OriginFull);
        }
        if own.hosts >= most {
            return Ok(Some(own.idlest()));
        }
        if self.monitored.len() < MONITORED_HOSTS_MAX {
            return Ok(None);
        }
        let idle = self.accounts.values().filter(|account| !account.idle.is_empty());
        let most = idle.max_by_key(|account| account.hosts);
        most.map(|account| Some(account.idlest())).ok_or(NotMonitored::Full)
    }

    /// Notes whether `host` holds locks or waits for some.
    pub(super) fn settle(&mut self, host: &Host, holds: bool) {
        let local = Ipv4Addr::UNSPECIFIED.into();
        let first = MonitoredHost { address: host.address, name: host.name.clone(), local };
        let same = |other: &&Arc<MonitoredHost>| {
            (other.address, &other.name) == (host.address, &host.name)
        };
        let all = self.monitored.range::<MonitoredHost, _>(&first..).map(|(host, _)| host);
        let all: Vec<_> = all.take_while(same).cloned().collect();
        for host in all {
            self.set_idle(&host, !holds);
        }
    }

    fn set_idle(&mut self, host: &Arc<MonitoredHost>, idle: bool) {
        let Some(at) = self.monitored.get_mut(host) else { return };
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

    /// Notes that `host` was told of our restart, or can't be reached.
    pub(super) fn notified(&mut self, host: &MonitoredHost) {
        if let Some(notice) = self.owed.get_mut(host) {
            *notice = Notice::Over;
        }
    }

    /// Forgets the hosts that hold no locks, as `has` tells, and are owed no notice. Not for the
    /// grace period, in which a host that was told may still reclaim.
    pub(super) fn tidy(&mut self, has: impl Fn(&Host) -> bool) {
        let told = self.owed.iter().filter(|(_, notice)| **notice == Notice::Over);
        let told: Vec<_> = told.map(|(host, _)| Arc::clone(host)).collect();
        let idle: Vec<_> =
            self.accounts.values().flat_map(|account| account.idle.values()).cloned().collect();
        let forgotten = self.forget_told(&told).and_then(|()| self.forget_unless(&idle, &has));
        if let Err(error) = forgotten {
            tracing::warn!(%error, "hosts without locks remain monitored");
        }
    }

    /// Forgets that these hosts were owed a notice.
    fn forget_told(&mut self, told: &[Arc<MonitoredHost>]) -> Result<(), CatalogError> {
        self.remove_rows(told.iter().filter(|host| !self.monitored.contains_key(*host)))?;
        for host in told {
            self.owed.remove(host);
        }
        Ok(())
    }

    /// Forgets these hosts, as far as they hold no locks.
    fn forget_unless(
        &mut self,
        hosts: &[Arc<MonitoredHost>],
        has: &impl Fn(&Host) -> bool,
    ) -> Result<(), CatalogError> {
        let has = |host: &&Arc<MonitoredHost>| has(&Host::new(host.address, &host.name));
        let (busy, idle): (Vec<_>, Vec<_>) = hosts.iter().partition(has);
        for host in busy {
            self.set_idle(host, false);
        }
        let rows = idle.iter().filter(|host| !self.owed.contains_key(**host));
        self.remove_rows(rows.copied())?;
        for host in idle {
            self.set_idle(host, false);
            self.monitored.remove(host);
            let origin = Origin::of(host.address);
            if let Some(account) = self.accounts.get_mut(&origin) {
                account.hosts -= 1;
                if account.hosts == 0 {
                    self.accounts.remove(&origin);
                }
            }
        }
        Ok(())
    }

    fn remove_rows<'a>(
        &self,
        hosts: impl Iterator<Item = &'a Arc<MonitoredHost>>,
    ) -> Result<(), CatalogError> {
        let rows: Vec<MonitoredHost> = hosts.map(|host| MonitoredHost::clone(host)).collect();
        if rows.is_empty() { Ok(()) } else { self.catalog.forget_hosts(&rows) }
    }
}

/// `hosts` so that the first of each origin come first, then the second of each, and so on.
fn in_turns<H: Borrow<MonitoredHost>>(hosts: impl IntoIterator<Item = H>) -> Vec<H> {
    let mut turns: HashMap<Origin, usize> = HashMap::new();
    let mut numbered: Vec<(usize, H)> = hosts
        .into_iter()
        .map(|host| {
            let turn = turns.entry(Origin::of(host.borrow().address)).or_default();
            *turn += 1;
            (*turn, host)
        })
        .collect();
    numbered.sort_by_key(|(turn, _)| *turn);
    numbered.into_iter().map(|(_, host)| host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// Hosts over a catalogue of their own, and who of them holds locks.
    struct World {
        hosts: Hosts,
        holders: RefCell<BTreeSet<Host>>,
        catalog: Arc<Catalog>,
        _directory: tempfile::TempDir,
    }

    fn peer(address: [u8; 4]) -> Peer {
        Peer { address: address.into(), local: [10, 9, 9, 9].into() }
    }

    fn host(address: [u8; 4], number: usize) -> Host {
        Host::new(address.into(), format!("host-{number}").as_bytes())
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let catalog = Arc::new(Catalog::open(directory.path()).unwrap());
            let hosts = Hosts::load(Arc::clone(&catalog)).unwrap();
            Self { hosts, holders: RefCell::default(), catalog, _directory: directory }
        }

        /// A host asks for a lock and gets it, if it is monitored.
        fn lock(&mut self, address: [u8; 4], number: usize) -> Result<(), NotMonitored> {
            self.ask(address, number, false)
        }

        fn ask(
            &mut self,
            address: [u8; 4],
            number: usize,
            reclaim: bool,
        ) -> Result<(), NotMonitored> {
            let host = host(address, number);
            let has = |host: &Host| self.holders.borrow().contains(host);
            self.hosts.monitor(&host, &peer(address), reclaim, has)?;
            self.holders.borrow_mut().insert(host.clone());
            self.hosts.settle(&host, true);
            Ok(())
        }

        fn unlock(&mut self, address: [u8; 4], number: usize) {
            let host = host(address, number);
            self.holders.borrow_mut().remove(&host);
            self.hosts.settle(&host, false);
        }

        fn tidy(&mut self) {
            let has = |host: &Host| self.holders.borrow().contains(host);
            self.hosts.tidy(has);
        }

        fn rows(&self) -> usize {
            self.catalog.monitored_hosts().unwrap().len()
        }

        /// Takes locks for hosts of one address until one is refused; returns the number granted.
        fn fill(&mut self, address: [u8; 4]) -> usize {
            (0..).take_while(|number| self.lock(address, *number).is_ok()).count()
        }
    }

    const GREEDY: [u8; 4] = [10, 0, 0, 1];
    const HONEST: [u8; 4] = [10, 0, 0, 2];

    #[test]
    fn invented_names_of_one_address_leave_hosts_for_others() {
        let mut world = World::new();
        assert_eq!(world.fill(GREEDY), MONITORED_HOSTS_MAX / MONITORED_HOSTS_ORIGIN_ONE_IN);
        assert!(matches!(world.lock(GREEDY, 99_999), Err(NotMonitored::OriginFull)));
        for number in 0..100 {
            world.lock(HONEST, number).unwrap();
        }
        assert_eq!(world.rows(), world.hosts.monitored());
    }

    #[test]
    fn a_host_without_locks_gives_way_and_one_with_locks_never_does() {
        let mut world = World::new();
        let most = world.fill(GREEDY);
        world.lock(HONEST, 1).unwrap();
        // The other one leaves them one less.
        world.unlock(GREEDY, most - 1);
        for number in 0..most - 1 {
            world.unlock(GREEDY, number);
            world.lock(GREEDY, 100_000 + number).unwrap();
        }
        assert!(matches!(world.lock(GREEDY, 99_999), Err(NotMonitored::OriginFull)));
        world.ask(GREEDY, 99_999, true).unwrap();
        let rows = world.catalog.monitored_hosts().unwrap();
        assert!(rows.len() <= most + 2);
        for host in world.holders.borrow().iter() {
            let there =
                |row: &MonitoredHost| (row.address, &row.name) == (host.address, &host.name);
            assert!(rows.iter().any(there), "{host:?} holds locks and was forgotten");
        }
    }

    #[test]
    fn a_host_that_holds_locks_without_our_knowing_is_not_forgotten() {
        let mut world = World::new();
        world.lock(HONEST, 1).unwrap();
        world.hosts.settle(&host(HONEST, 1), false);
        world.tidy();
        assert_eq!(world.rows(), 1);
        world.unlock(HONEST, 1);
        world.tidy();
        assert_eq!((world.rows(), world.hosts.monitored()), (0, 0));
        assert!(!world.hosts.any_at(HONEST.into()));
    }

    #[test]
    fn where_many_addresses_take_all_that_is_left_a_newcomer_gets_what_is_idle() {
        let mut world = World::new();
        let mut addresses = 0u8;
        while world.hosts.monitored() < MONITORED_HOSTS_MAX {
            assert!(world.fill([10, 1, 0, addresses]) > 0);
            addresses += 1;
        }
        assert!(addresses > 75, "{addresses} addresses");
        assert!(matches!(world.lock(HONEST, 1), Err(NotMonitored::Full)));
        world.unlock([10, 1, 0, 0], 7);
        world.lock(HONEST, 1).unwrap();
        assert_eq!(world.hosts.monitored(), MONITORED_HOSTS_MAX);
    }

    #[test]
    fn hosts_owed_a_notice_keep_nobody_from_locks() {
        let mut world = World::new();
        let mut rows = BTreeSet::new();
        for number in 0..MONITORED_HOSTS_MAX {
            let Host { address, name } = host(GREEDY, number);
            rows.insert(MonitoredHost { address, name, local: [10, 9, 9, 9].into() });
        }
        let Host { address, name } = host(HONEST, 0);
        rows.insert(MonitoredHost { address, name, local: [10, 9, 9, 9].into() });
        world.hosts.owed = rows.into_iter().map(|row| (Arc::new(row), Notice::Due)).collect();
        let order = world.hosts.owed();
        assert_eq!(order.len(), MONITORED_HOSTS_MAX + 1);
        assert!(order[..2].iter().any(|host| host.address == IpAddr::from(HONEST)));
        world.lock([10, 0, 0, 3], 1).unwrap();
        world.lock(GREEDY, 1).unwrap();
        world.lock(GREEDY, 99_999).unwrap();
        assert_eq!(world.hosts.monitored(), 3);
        for host in order {
            world.hosts.notified(&host);
        }
        world.tidy();
        assert_eq!(world.hosts.owed().len(), 0);
        assert_eq!(world.rows(), 2, "the row of the third was never in this catalogue");
        world.lock(GREEDY, 2).unwrap();
    }

    #[test]
    fn too_many_hosts_owed_a_notice_are_dropped_from_the_origin_with_the_most() {
        let world = World::new();
        let rows: Vec<MonitoredHost> = (0..NOTICES_MAX)
            .map(|number| (GREEDY, number))
            .chain([(HONEST, 1), (HONEST, 2)])
            .map(|(from, number)| {
                let Host { address, name } = host(from, number);
                MonitoredHost { address, name, local: [10, 9, 9, 9].into() }
            })
            .collect();
        world.catalog.monitor_hosts(&rows).unwrap();
        let hosts = Hosts::load(Arc::clone(&world.catalog)).unwrap();
        assert_eq!((hosts.owed().len(), world.rows()), (NOTICES_MAX, NOTICES_MAX));
        let honest = |host: &&Arc<MonitoredHost>| host.address == IpAddr::from(HONEST);
        assert_eq!(hosts.owed().iter().filter(honest).count(), 2);
    }
}
