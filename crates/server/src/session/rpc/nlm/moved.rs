//! Groups of volumes that come to this server from another one, or go: their clients' locks, and
//! the hosts that have to hear of it.
//!
//! A host knows a group by its addresses, and stands in the catalogue with the address that it
//! called. Whoever has the address has the host. A group that is handed over brings its locks
//! along; otherwise its hosts are told of a restart and reclaim them.

use super::service::Service;
use super::{Message, Nlm, NlmWaiter};
use crate::limits::MONITORED_HOSTS_MAX;
use crate::session::{Waiter, deliver};
use crate::sync::{Arc, oneshot};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError, MonitoredHost};
use weir_core::{Clock, VolumeId};
use weir_handover::{Blocked, Image, MovedHost};
use weir_nfs::nlm::{Host, Waiting};
use weir_state::{Client, Grant, Owner, Refused, VolumeLocks};

/// A message to the lock thread about groups that move.
pub(super) enum Moved {
    /// These hosts held locks at an earlier home and are owed a notice. Our NSM state number is
    /// `state` from now on.
    Here { state: u32, hosts: Vec<MonitoredHost> },
    /// These hosts came with their locks.
    Taken(HostsTaken),
    /// The hosts that know us by these addresses can be told.
    Reachable(BTreeSet<IpAddr>),
    /// The next home of these addresses cares for their hosts.
    Away(BTreeSet<IpAddr>, oneshot::Sender<HostsLeft>),
}

/// The hosts of a group that came with its locks, as rows of the catalogue.
#[derive(Default)]
pub(super) struct HostsTaken {
    /// Our NSM state number from now on, if any host is owed a notice.
    state: Option<u32>,
    /// They are owed a notice of an earlier restart.
    owed: Vec<MonitoredHost>,
    /// They were told of an earlier restart, and may still reclaim.
    told: Vec<MonitoredHost>,
    /// All that hold locks, and those of which nothing else is known.
    monitored: Vec<MonitoredHost>,
}

/// The hosts of a group that leaves.
#[derive(Default)]
pub(crate) struct HostsLeft {
    /// The hosts that were monitored by the group's addresses.
    here: BTreeSet<Host>,
    /// The hosts that are monitored by other addresses.
    elsewhere: BTreeSet<Host>,
    /// The hosts that are owed a notice of an earlier restart.
    owed: BTreeSet<Host>,
}

/// The locks of a group were not taken up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error("the tables of locks refuse them: {0}")]
    Refused(#[from] Refused),
    #[error("{0} hosts that stand in no row are more than may be monitored")]
    Hosts(usize),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl HostsLeft {
    /// Adds what a later call has found.
    pub(crate) fn add(&mut self, later: Self) {
        self.here.extend(later.here);
        self.owed.extend(later.owed);
        self.elsewhere = later.elsewhere;
    }

    /// Do locks of this client go with the group? Those of a host that called another address of
    /// this server do not: the host does not hear of the next home.
    fn takes(&self, client: &Client) -> bool {
        Host::of(client)
            .is_some_and(|host| self.here.contains(&host) || !self.elsewhere.contains(&host))
    }
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
        let hosts = hosts_of(catalog, addresses)?;
        let clients = hosts.iter().map(client_of);
        self.locks.tables().begin_grace(self.clock.now() + grace, volumes, clients);
        self.inbox.post(Message::Moved(Moved::Here { state, hosts }));
        Ok(())
    }

    /// Takes up the locks that came with volumes, and their hosts, which know us by `addresses`. A
    /// grace period goes on for `grace` at most. Before any call for the volumes comes. After an
    /// error nothing is held on them.
    ///
    /// # Errors
    /// [`NotTaken`]
    pub(crate) fn take_up(
        &self,
        catalog: &Catalog,
        addresses: &BTreeSet<IpAddr>,
        images: &[(VolumeId, Image)],
        grace: Duration,
    ) -> Result<(), NotTaken> {
        // A host may have heard our number in an earlier notice, and would ignore the one that it
        // is owed.
        let is_owed = images.iter().any(|(_, image)| image.hosts.iter().any(|one| one.owed));
        let state = is_owed.then(|| catalog.next_nsm_state()).transpose()?;
        let mut rows = hosts_of(catalog, addresses)?;
        let local = addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let missing = without_row(&rows, images, local);
        if !missing.is_empty() && rows.len() + missing.len() > MONITORED_HOSTS_MAX {
            return Err(NotTaken::Hosts(missing.len()));
        }
        rows.extend(missing.iter().cloned());
        let (taken, grants) = self.fill(rows, local, images, grace)?;
        // The tables have accepted them, and nobody has heard of it yet.
        if !missing.is_empty()
            && let Err(error) = catalog.monitor_hosts(&missing)
        {
            images.iter().for_each(|(volume, _)| self.locks.volume_gone(*volume));
            self.note_released();
            return Err(error.into());
        }
        self.inbox.post(Message::Moved(Moved::Taken(HostsTaken { state, ..taken })));
        deliver(grants);
        Ok(())
    }

    /// Fills the tables of the volumes of `images`, and sorts their hosts, which have these `rows`
    /// of the catalogue. Gives the requests that have got their lock. After an error the tables are
    /// closed.
    fn fill(
        &self,
        rows: Vec<MonitoredHost>,
        local: IpAddr,
        images: &[(VolumeId, Image)],
        grace: Duration,
    ) -> Result<(HostsTaken, Vec<Grant<Waiter>>), Refused> {
        for (volume, _) in images {
            // Without what an earlier arrival has left of a volume that was not served then.
            self.locks.volume_gone(*volume);
            // With the filters, which learn of each lock.
            let _filters = self.locks.volume_opened(*volume);
        }
        let waiter = |Blocked { handle, by_message }| {
            let waiting = Waiting::new(local, &handle, by_message);
            Some(Waiter::Nlm(NlmWaiter { waiting, inbox: Arc::clone(&self.inbox) }))
        };
        let (mut state, now, mut grants) = (self.state(), self.clock.now(), Vec::new());
        for (volume, image) in images {
            let mut locks = image.locks.clone().map_waiters(waiter);
            if let Some(left) = &mut locks.grace {
                left.time = left.time.min(grace);
            }
            if let Err(refused) = state.tables.take_up(now, *volume, locks, &mut grants) {
                drop(state);
                images.iter().for_each(|(volume, _)| self.locks.volume_gone(*volume));
                self.note_released();
                return Err(refused);
            }
        }
        let hosts = || images.iter().flat_map(|(_, image)| &image.hosts);
        for MovedHost { host, state: heard, .. } in hosts() {
            state.beside.manager.heard(&state.tables, host, *heard);
        }
        let left = images.iter().flat_map(|(_, image)| &image.locks.grace);
        let known: BTreeSet<&Client> = left.flat_map(|left| &left.clients.known).collect();
        let owed = hosts().filter(|one| one.owed).map(|one| one.host.client());
        let (owed, mut taken) = (owed.collect::<BTreeSet<_>>(), HostsTaken::default());
        for row in rows {
            let client = client_of(&row);
            let owed = owed.contains(&client);
            let told = !owed && known.contains(&client);
            if state.tables.has(&client) || !(owed || told) {
                taken.monitored.push(row.clone());
            }
            taken.owed.extend(owed.then(|| row.clone()));
            taken.told.extend(told.then_some(row));
        }
        Ok((taken, grants))
    }

    /// Has the hosts told that held locks through `addresses`, which are here now.
    pub(crate) fn notify(&self, addresses: BTreeSet<IpAddr>) {
        self.inbox.post(Message::Moved(Moved::Reachable(addresses)));
    }

    /// Leaves the hosts that know us by `addresses`, which are gone from here, to the next home.
    /// They stand in the catalogue as before. Gives them when it is so. Before the volumes' locks
    /// go, and once more after that, for hosts that came in between.
    pub(crate) fn leave(&self, addresses: BTreeSet<IpAddr>) -> oneshot::Receiver<HostsLeft> {
        let (left, all_left) = oneshot::channel();
        self.inbox.post(Message::Moved(Moved::Away(addresses, left)));
        all_left
    }

    /// The image of a volume whose locks were released here, and whose group's hosts have `left`,
    /// as far as it is of locks.
    pub(crate) fn image(&self, locks: VolumeLocks<Waiter>, left: &HostsLeft) -> Image {
        let mut locks = locks.map_waiters(|waiter| match waiter {
            Waiter::Nlm(NlmWaiter { waiting, .. }) => {
                let (handle, by_message) = waiting.parts();
                Some(Blocked { handle: handle.into(), by_message })
            }
            _ => None,
        });
        locks.retain(|owner| left.takes(owner.client()));
        let of_locks = locks.owners().map(Owner::client);
        let reclaim = locks.grace.iter().flat_map(|grace| &grace.clients.known);
        let mut hosts: BTreeSet<Host> = of_locks.chain(reclaim).filter_map(Host::of).collect();
        hosts.extend(left.owed.iter().cloned());
        let state = self.state();
        let moved = |host: Host| MovedHost {
            state: state.beside.manager.state_of(&host),
            owed: left.owed.contains(&host),
            host,
        };
        Image { hosts: hosts.into_iter().map(moved).collect(), locks, replies: Vec::new() }
    }
}

/// The hosts of the catalogue that know a server by these addresses.
fn hosts_of(
    catalog: &Catalog,
    addresses: &BTreeSet<IpAddr>,
) -> Result<Vec<MonitoredHost>, CatalogError> {
    let mut hosts = catalog.monitored_hosts()?;
    hosts.retain(|host| addresses.contains(&host.local));
    Ok(hosts)
}

fn client_of(row: &MonitoredHost) -> Client {
    Host::new(row.address, &row.name).client()
}

/// The rows of hosts that hold something and have none: the home before had forgotten them at that
/// moment.
fn without_row(
    rows: &[MonitoredHost],
    images: &[(VolumeId, Image)],
    local: IpAddr,
) -> Vec<MonitoredHost> {
    let there: BTreeSet<Client> = rows.iter().map(client_of).collect();
    let owners = images.iter().flat_map(|(_, image)| image.locks.owners());
    let clients: BTreeMap<&Client, Host> = owners
        .map(Owner::client)
        .filter(|client| !there.contains(client))
        .filter_map(|client| Some((client, Host::of(client)?)))
        .collect();
    let row = |Host { address, name }| MonitoredHost { address, name, local };
    clients.into_values().map(row).collect()
}

impl Service {
    /// Carries a message about groups out.
    pub(super) fn moved(&mut self, moved: Moved) {
        match moved {
            Moved::Here { state, hosts } => {
                self.state = state;
                self.hosts.inherit(hosts, false);
            }
            Moved::Taken(HostsTaken { state, owed, told, monitored }) => {
                self.state = state.unwrap_or(self.state);
                self.hosts.inherit(owed, false);
                self.hosts.inherit(told, true);
                let mut state = self.nlm.state();
                for row in monitored {
                    let holds = state.tables.has(&client_of(&row));
                    let host = Host::new(row.address, &row.name);
                    state.beside.monitored.insert(&Arc::new(row));
                    state.beside.monitored.settle(&host, holds);
                }
            }
            Moved::Reachable(addresses) => {
                let due = self.hosts.due();
                self.begin_notices(due.into_iter().filter(|host| addresses.contains(&host.local)));
            }
            Moved::Away(addresses, left) => {
                self.notices.retain(|_, host| !addresses.contains(&host.local));
                let owed = self.hosts.leave(&addresses);
                let [here, elsewhere] = self.nlm.state().beside.monitored.leave(&addresses);
                // Nobody waits for it only at the end of the server.
                let _nobody = left.send(HostsLeft { here, elsewhere, owed });
            }
        }
    }
}
