//! The hosts that must hear of a restart, kept in the catalogue from before their first lock until
//! they hold none. The lock thread alone changes them, because each change waits for the disk.
//!
//! A host of this life of the server is *monitored* ([`Monitored`](super::monitored::Monitored)). A
//! host that an earlier life left is *owed a notice*, until it was told of the restart or turns out
//! unreachable. The two are bounded apart, so that hosts that nobody can reach don't keep others
//! from locks. A host may be both.

use super::Nlm;
use super::monitored::{NotMonitored, first_at};
use crate::limits::NOTICES_MAX;
use crate::sync::Arc;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_core::Origin;
use weir_nfs::nlm::Host;

/// The catalogue's hosts, and those that are owed a notice.
pub(super) struct Hosts {
    catalog: Arc<Catalog>,
    owed: BTreeMap<Arc<MonitoredHost>, Notice>,
}

/// The state of the notice of our restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// The notice is to be sent, or is being sent.
    Due,
    /// The host was told, or can't be reached.
    Over,
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
        Ok(Self { catalog, owed })
    }

    /// The hosts of no address yet.
    pub(super) fn none(catalog: Arc<Catalog>) -> Self {
        Self { catalog, owed: BTreeMap::new() }
    }

    /// Hosts that an earlier home left are owed a notice too, within the same bound, or were `told`
    /// there.
    pub(super) fn inherit(&mut self, hosts: Vec<MonitoredHost>, told: bool) {
        for host in in_turns(hosts) {
            if self.owed.len() >= NOTICES_MAX {
                tracing::warn!("too many hosts to notify: some are not notified");
                return;
            }
            self.owed.insert(Arc::new(host), if told { Notice::Over } else { Notice::Due });
        }
    }

    /// Leaves the hosts of `addresses` to another server; gives those that it has to tell.
    pub(super) fn leave(&mut self, addresses: &BTreeSet<IpAddr>) -> BTreeSet<Host> {
        let mut owed = BTreeSet::new();
        self.owed.retain(|host, notice| {
            let leaves = addresses.contains(&host.local);
            if leaves && *notice == Notice::Due {
                owed.insert(Host::new(host.address, &host.name));
            }
            !leaves
        });
        owed
    }

    /// The hosts that are to be told, in the same order as [`Self::owed`].
    pub(super) fn due(&self) -> Vec<Arc<MonitoredHost>> {
        let due = self.owed.iter().filter(|(_, notice)| **notice == Notice::Due);
        in_turns(due.map(|(host, _)| Arc::clone(host)))
    }

    /// The hosts that are owed a notice, in the order to tell them in: the origins by turns, so
    /// that one with many hosts delays no other.
    pub(super) fn owed(&self) -> Vec<Arc<MonitoredHost>> {
        in_turns(self.owed.keys().cloned())
    }

    /// Is any host at `address` owed a notice?
    pub(super) fn any_at(&self, address: IpAddr) -> bool {
        let first = first_at(address, Vec::new());
        let found = self.owed.range::<MonitoredHost, _>(&first..).next();
        found.is_some_and(|(host, _)| host.address == address)
    }

    /// Sees to it that `host` will be told of a restart, by the address that it knows us by. On
    /// disk when it returns, and among the hosts of `nlm` that hold no locks.
    ///
    /// A bound that is reached is kept by forgetting hosts without locks: of the same origin at the
    /// origin's bound, and of the origin that has the most at the bound of all. Hosts with locks
    /// are never forgotten. With `reclaim` no bound is looked at: the host takes again what it held
    /// before the restart, and those hosts were bounded then.
    ///
    /// The state is not locked while the disk is waited for. Only the lock thread adds and removes
    /// hosts, so those that it removed stay so until it is done.
    ///
    /// # Errors
    /// [`NotMonitored`]; the host gets no lock then.
    pub(super) fn monitor(
        &mut self,
        nlm: &Nlm,
        host: MonitoredHost,
        reclaim: bool,
    ) -> Result<(), NotMonitored> {
        if nlm.state().beside.monitored.contains(&host) {
            return Ok(());
        }
        if !reclaim {
            self.make_room(nlm, Origin::of(host.address))?;
        }
        // The row of a host that is owed a notice is there already.
        if !self.owed.contains_key(&host) {
            self.catalog.monitor_host(&host).map_err(NotMonitored::Catalog)?;
        }
        tracing::debug!(peer = %host.address, "a host is now monitored");
        nlm.state().beside.monitored.insert(&Arc::new(host));
        Ok(())
    }

    /// Forgets hosts without locks until one more host of `origin` keeps the bounds.
    fn make_room(&mut self, nlm: &Nlm, origin: Origin) -> Result<(), NotMonitored> {
        loop {
            let mut locked = nlm.state();
            let Some(idlest) = locked.beside.monitored.in_the_way(origin)? else { return Ok(()) };
            let leaving = locked.take_without_locks(&idlest);
            drop(locked);
            self.forget(nlm, &leaving).map_err(NotMonitored::Catalog)?;
        }
    }

    /// Notes that `host` was told of our restart, or can't be reached.
    pub(super) fn notified(&mut self, host: &MonitoredHost) {
        if let Some(notice) = self.owed.get_mut(host) {
            *notice = Notice::Over;
        }
    }

    /// Forgets the hosts that hold no locks and are owed no notice. Not for the grace period, in
    /// which a host that was told may still reclaim.
    pub(super) fn tidy(&mut self, nlm: &Nlm) {
        let told = self.owed.iter().filter(|(_, notice)| **notice == Notice::Over);
        let told: Vec<_> = told.map(|(host, _)| Arc::clone(host)).collect();
        let forgotten = self.forget_told(nlm, &told).and_then(|()| {
            let mut locked = nlm.state();
            let idle = locked.beside.monitored.idle();
            let leaving = locked.take_without_locks(&idle);
            drop(locked);
            self.forget(nlm, &leaving)
        });
        if let Err(error) = forgotten {
            tracing::warn!(%error, "hosts without locks remain monitored");
        }
    }

    /// Forgets that these hosts were owed a notice.
    fn forget_told(&mut self, nlm: &Nlm, told: &[Arc<MonitoredHost>]) -> Result<(), CatalogError> {
        let monitored = |host: &&Arc<MonitoredHost>| nlm.state().beside.monitored.contains(host);
        let rows: Vec<_> = told.iter().filter(|host| !monitored(host)).collect();
        self.remove_rows(rows.into_iter())?;
        for host in told {
            self.owed.remove(host);
        }
        Ok(())
    }

    /// Forgets hosts that are monitored no longer; they are monitored again if that fails.
    fn forget(&self, nlm: &Nlm, leaving: &[Arc<MonitoredHost>]) -> Result<(), CatalogError> {
        let rows = leaving.iter().filter(|host| !self.owed.contains_key(*host));
        let forgotten = self.remove_rows(rows);
        if forgotten.is_err() {
            let mut locked = nlm.state();
            leaving.iter().for_each(|host| locked.beside.monitored.insert(host));
        }
        forgotten
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
    use crate::clock::SystemClock;
    use crate::limits::{MONITORED_HOSTS_MAX, MONITORED_HOSTS_ORIGIN_ONE_IN};
    use std::collections::BTreeSet;
    use weir_core::{Access, Mono, ObjectKey, VolumeId};
    use weir_locks::LockDoor;
    use weir_state::{File, Limits, Owner, Part, Share, Use};

    /// Hosts over a catalogue of their own, and the locks that they hold.
    struct World {
        hosts: Hosts,
        nlm: Arc<Nlm>,
        catalog: Arc<Catalog>,
        _directory: tempfile::TempDir,
    }

    /// The bounds on hosts are tested here, so those of the tables are out of reach.
    const MOST: Use = Use {
        locks: usize::MAX,
        waiters: usize::MAX,
        shares: usize::MAX,
        opens: usize::MAX,
        owner_bytes: usize::MAX,
    };
    const NO_LIMITS: Limits = Limits {
        file: MOST,
        client: MOST,
        server: MOST,
        clients: usize::MAX,
        origin: Part::ALL,
        volume: Part::ALL,
    };

    fn host(address: [u8; 4], number: usize) -> Host {
        Host::new(address.into(), format!("host-{number}").as_bytes())
    }

    fn row(address: [u8; 4], number: usize) -> MonitoredHost {
        let Host { address, name } = host(address, number);
        MonitoredHost { address, name, local: [10, 9, 9, 9].into() }
    }

    fn file() -> File {
        File { volume: VolumeId(1), object: ObjectKey::new(b"file").unwrap() }
    }

    fn owner(host: &Host) -> Owner {
        Owner::new(host.client(), b"owner")
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let catalog = Arc::new(Catalog::open(directory.path()).unwrap());
            let locks = Arc::new(LockDoor::new(NO_LIMITS));
            locks.volume_opened(file().volume);
            let (nlm, life) = Nlm::open(&catalog, SystemClock::start(), locks).unwrap();
            Self { hosts: life.hosts, nlm, catalog, _directory: directory }
        }

        /// A host asks for a share and gets it, if it is monitored.
        fn lock(&mut self, address: [u8; 4], number: usize) -> Result<(), NotMonitored> {
            self.ask(address, number, false)
        }

        fn ask(
            &mut self,
            address: [u8; 4],
            number: usize,
            reclaim: bool,
        ) -> Result<(), NotMonitored> {
            self.hosts.monitor(&self.nlm, row(address, number), reclaim)?;
            let host = host(address, number);
            let share = Share { access: Access::READ, deny: Access::empty() };
            let mut state = self.nlm.state();
            state.tables.share(Mono::ZERO, &file(), &owner(&host), share, false).unwrap();
            state.beside.monitored.settle(&host, true);
            Ok(())
        }

        fn unlock(&mut self, address: [u8; 4], number: usize) {
            let mut state = self.nlm.state();
            state.tables.unshare(&file(), &owner(&host(address, number)));
            state.settle();
        }

        fn tidy(&mut self) {
            self.hosts.tidy(&self.nlm);
        }

        fn monitored(&self) -> usize {
            self.nlm.state().beside.monitored.len()
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
        assert_eq!(world.rows(), world.monitored());
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
        let state = world.nlm.state();
        for host in state.tables.clients().filter_map(Host::of) {
            let there =
                |row: &MonitoredHost| (row.address, &row.name) == (host.address, &host.name);
            assert!(rows.iter().any(there), "{host:?} holds locks and was forgotten");
        }
    }

    #[test]
    fn a_host_that_holds_locks_without_our_knowing_is_not_forgotten() {
        let mut world = World::new();
        world.lock(HONEST, 1).unwrap();
        world.nlm.state().beside.monitored.settle(&host(HONEST, 1), false);
        world.tidy();
        assert_eq!(world.rows(), 1);
        world.unlock(HONEST, 1);
        world.tidy();
        assert_eq!((world.rows(), world.monitored()), (0, 0));
        assert!(!world.nlm.state().beside.monitored.any_at(HONEST.into()));
    }

    #[test]
    fn where_many_addresses_take_all_that_is_left_a_newcomer_gets_what_is_idle() {
        let mut world = World::new();
        let mut addresses = 0u8;
        while world.monitored() < MONITORED_HOSTS_MAX {
            assert!(world.fill([10, 1, 0, addresses]) > 0);
            addresses += 1;
        }
        assert!(addresses > 75, "{addresses} addresses");
        assert!(matches!(world.lock(HONEST, 1), Err(NotMonitored::Full)));
        world.unlock([10, 1, 0, 0], 7);
        world.lock(HONEST, 1).unwrap();
        assert_eq!(world.monitored(), MONITORED_HOSTS_MAX);
    }

    #[test]
    fn hosts_owed_a_notice_keep_nobody_from_locks() {
        let mut world = World::new();
        let mut rows = BTreeSet::new();
        for number in 0..MONITORED_HOSTS_MAX {
            rows.insert(row(GREEDY, number));
        }
        rows.insert(row(HONEST, 0));
        world.hosts.owed = rows.into_iter().map(|row| (Arc::new(row), Notice::Due)).collect();
        let order = world.hosts.owed();
        assert_eq!(order.len(), MONITORED_HOSTS_MAX + 1);
        assert!(order[..2].iter().any(|host| host.address == IpAddr::from(HONEST)));
        world.lock([10, 0, 0, 3], 1).unwrap();
        world.lock(GREEDY, 1).unwrap();
        world.lock(GREEDY, 99_999).unwrap();
        assert_eq!(world.monitored(), 3);
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
            .map(|(from, number)| row(from, number))
            .collect();
        world.catalog.monitor_hosts(&rows).unwrap();
        let hosts = Hosts::load(Arc::clone(&world.catalog)).unwrap();
        assert_eq!((hosts.owed().len(), world.rows()), (NOTICES_MAX, NOTICES_MAX));
        let honest = |host: &&Arc<MonitoredHost>| host.address == IpAddr::from(HONEST);
        assert_eq!(hosts.owed().iter().filter(honest).count(), 2);
    }
}
