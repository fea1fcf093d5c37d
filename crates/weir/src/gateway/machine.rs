//! The helper of this machine, as the rules use it: one link at a time, which is opened anew when
//! it ends, and the addresses of groups.
//!
//! Not here: how long addresses may stay (`weir-cluster`), and interfaces (`weir-address`).

use super::peers::{Here, Peers};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use weir_address::limits::TICKLES_PER_REQUEST_MAX;
use weir_address::{Interface, InvalidPlace, Place, Report};
use weir_catalog::Catalog;
use weir_cluster::{GatewayId, GroupId, Life, MachineId};
use weir_core::Mono;
use weir_gateway::{Failure, Machine};
use weir_helper::{Attached, Client, ClientError, Reports};

/// Time before another attempt to open the link.
const AGAIN: Duration = Duration::from_millis(200);
/// Time between two looks at the connections of clients.
const PEERS_EVERY: Duration = Duration::from_secs(1);
/// Longest time for which an address that leaves waits until etcd has its newest clients.
const PEERS_LAST: Duration = Duration::from_millis(300);

/// The link to the helper, and what is held through it.
pub(super) struct HelperLink(Arc<Shared>);

struct Shared {
    socket: PathBuf,
    interface: Interface,
    life: Life,
    catalog: Arc<Catalog>,
    peers: Peers,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    /// The places of the addresses that groups have here.
    held: BTreeMap<GroupId, Place>,
    /// The places that are to be removed, and may be here still.
    leaving: BTreeMap<GroupId, Place>,
    /// The end of their leases.
    until: Mono,
    /// The end that the helper has for all of them.
    known: Mono,
    /// The servers that the helper was told.
    gateways: BTreeMap<GatewayId, SocketAddr>,
}

impl HelperLink {
    /// The link to the helper at `socket`, for addresses on `interface`. Opened by
    /// [`Machine::announce`].
    ///
    /// # Errors
    /// `interface` is no name of an interface.
    pub(super) fn new(
        socket: PathBuf,
        interface: &str,
        life: Life,
        catalog: Arc<Catalog>,
        peers: Peers,
    ) -> Result<Self, InvalidPlace> {
        let (interface, state) = (Interface::parse(interface)?, Mutex::default());
        Ok(Self(Arc::new(Shared { socket, interface, life, catalog, peers, state })))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> Result<Client, Failure> {
        let closed = || Failure("there is no link to the helper of this machine".to_owned());
        self.state().client.clone().ok_or_else(closed)
    }

    /// The place of the group's address on this machine, if the catalogue has it.
    fn place(&self, group: GroupId) -> Result<Option<Place>, Failure> {
        let snapshot = self.catalog.snapshot();
        let Some(address) = snapshot.address(group) else { return Ok(None) };
        let place = Place::new(address.at.ip, address.at.prefix, self.interface.clone());
        place.map(Some).map_err(|error| Failure(error.to_string()))
    }

    /// Reads the reports of a link until it ends, and then opens another.
    async fn keep(self: Arc<Self>, machine: MachineId, mut reports: Reports) {
        loop {
            while let Some(report) = reports.next().await {
                told(&report);
                if let Report::Ended { address } = report {
                    self.hold_again(address).await;
                }
            }
            tracing::error!(
                "the link to the helper of this machine has ended: its addresses are removed until the link is open again"
            );
            self.state().client = None;
            reports = loop {
                match self.attach(machine).await {
                    Ok(reports) => break reports,
                    Err(error) => {
                        tracing::debug!(%error, "there is no link to the helper of this machine");
                        sleep(AGAIN).await;
                    }
                }
            };
        }
    }

    /// Has an address whose lease ended held anew, if a group has it here and its lease was renewed
    /// too late, as on a machine that is overloaded.
    async fn hold_again(&self, address: IpAddr) {
        let (client, place, until) = {
            let state = self.state();
            let mut held = state.held.values();
            let place = held.find(|place| place.address() == address).cloned();
            (state.client.clone(), place, state.until)
        };
        if let (Some(client), Some(place)) = (client, place)
            && until > weir_address::now()
            && let Err(error) = client.hold(place, until).await
        {
            tracing::warn!(%address, %error, "an address was not added again");
        }
    }

    /// Keeps the row of the clients that are connected to the addresses here.
    async fn keep_peers(self: Arc<Self>) {
        loop {
            sleep(PEERS_EVERY).await;
            self.look_at_peers().await;
        }
    }

    /// Brings the row of clients up to date.
    async fn look_at_peers(&self) {
        let addresses = |of: &BTreeMap<GroupId, Place>| of.values().map(Place::address).collect();
        let here = || {
            let state = self.state();
            Here { held: addresses(&state.held), leaving: addresses(&state.leaving) }
        };
        self.peers.look(here).await;
    }

    /// Makes the clients of earlier homes of `address`, which is here, connect anew.
    async fn tickle(self: Arc<Self>, address: IpAddr) {
        let clients = match self.peers.clients_of(address).await {
            Ok(clients) => clients,
            Err(error) => {
                tracing::warn!(%address, %error, "clients have to find out by themselves that an address moved");
                return;
            }
        };
        for (local, clients) in clients {
            let clients: Vec<_> = clients.into_iter().collect();
            for some in clients.chunks(TICKLES_PER_REQUEST_MAX) {
                let Ok(client) = self.client() else { return };
                if let Err(error) = client.tickle(local, some.to_vec()).await {
                    tracing::warn!(%local, %error, "clients have to find out by themselves that an address moved");
                }
            }
        }
    }

    /// Opens another link, and has the addresses of before held through it.
    async fn attach(&self, machine: MachineId) -> Result<Reports, ClientError> {
        let Attached { client, reports, known } =
            Client::attach(&self.socket, machine, self.life).await?;
        if known {
            tracing::info!("the link to the helper of this machine is open again");
        } else {
            tracing::warn!(
                "the helper of this machine was started anew: until this gateway is, others learn of its end by its lease alone"
            );
        }
        let gateways = self.state().gateways.clone();
        client.follow(gateways).await?;
        // Groups that come from now on use this link; those of before follow below.
        let (held, until) = {
            let mut state = self.state();
            state.client = Some(client.clone());
            (state.held.clone(), state.until)
        };
        for place in held.into_values().filter(|_| until > weir_address::now()) {
            let address = place.address();
            if let Err(error) = client.hold(place, until).await {
                tracing::warn!(%address, %error, "an address was not added again");
            }
        }
        Ok(reports)
    }
}

fn told(report: &Report) {
    match report {
        Report::Ended { address } => {
            tracing::warn!(%address, "an address was removed: its lease ended");
        }
        Report::Failed { address, words } => {
            tracing::warn!(%address, reason = words, "a part of adding or removing an address failed");
        }
        Report::Done { .. } | Report::Refused { .. } => {}
    }
}

/// Has each of `held` held until `until`, also those whose leases ended, and shortens the leases
/// that end later. All are tried.
async fn hold_all(
    client: &Client,
    held: Vec<Place>,
    (before, now): (Mono, Mono),
    until: Mono,
) -> Result<(), Failure> {
    let mut outcome = Ok(());
    for place in held {
        let address = place.address();
        let holding = async {
            if until < before {
                client.release(address).await?;
            }
            if until > now {
                client.hold(place, until).await?;
            }
            Ok(())
        };
        if let Err(error) = holding.await {
            outcome = Err(failed(&error));
        }
    }
    outcome
}

fn failed(error: &ClientError) -> Failure {
    Failure(error.to_string())
}

impl Machine for HelperLink {
    async fn announce(&self, machine: MachineId, life: Life) -> Result<(), Failure> {
        let (client, reports) = Client::announce(&self.0.socket, machine, life)
            .await
            .map_err(|error| failed(&error))?;
        let gateways = {
            let mut state = self.0.state();
            state.client = Some(client.clone());
            state.gateways.clone()
        };
        tokio::spawn(Arc::clone(&self.0).keep(machine, reports));
        tokio::spawn(Arc::clone(&self.0).keep_peers());
        if let Err(error) = client.follow(gateways).await {
            // A life is announced once; the next link begins with them.
            tracing::debug!(%error, "the helper does not know the other gateways yet");
        }
        Ok(())
    }

    async fn note(&self, life: Life) -> Result<(), Failure> {
        self.0.client()?.note(life).await.map_err(|error| failed(&error))
    }

    async fn unnote(&self, life: Life) -> Result<(), Failure> {
        match self.0.client()?.unnote(life).await {
            // A helper that was started since has no notes of this life.
            Ok(()) | Err(ClientError::UnknownLife) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn follow(&self, gateways: BTreeMap<GatewayId, SocketAddr>) -> Result<(), Failure> {
        let client = {
            let mut state = self.0.state();
            state.gateways.clone_from(&gateways);
            state.client.clone()
        };
        // Where there is no link, the next one begins with them.
        let Some(client) = client else { return Ok(()) };
        client.follow(gateways).await.map_err(|error| failed(&error))
    }

    async fn hold_until(&self, until: Mono) -> Result<(), Failure> {
        let (before, held) = {
            let mut state = self.0.state();
            state.until = until;
            // Addresses that are about to be removed are not held anew, and end with the others.
            let leaving = state.leaving.values().filter(|_| until <= weir_address::now());
            (state.known, state.held.values().chain(leaving).cloned().collect::<Vec<_>>())
        };
        if !held.is_empty() {
            let client = self.0.client()?;
            let now = weir_address::now();
            // A renewal shortens no lease, and revives none that has ended.
            if until >= before && before > now {
                client.renew(until).await.map_err(|error| failed(&error))?;
            } else {
                hold_all(&client, held, (before, now), until).await?;
            }
        }
        self.0.state().known = until;
        Ok(())
    }

    async fn address(&self, group: GroupId) -> Result<(), Failure> {
        let Some(place) = self.0.place(group)? else {
            // The address was removed from the cluster meanwhile.
            self.0.state().held.remove(&group);
            return Ok(());
        };
        let client = self.0.client()?;
        // Noted before it is there, so that a new end of the lease that comes meanwhile counts.
        let until = {
            let mut state = self.0.state();
            state.held.insert(group, place.clone());
            state.until
        };
        let address = place.address();
        client.hold(place, until).await.map_err(|error| failed(&error))?;
        tokio::spawn(Arc::clone(&self.0).tickle(address));
        Ok(())
    }

    async fn unaddress(&self, group: GroupId) -> Result<(), Failure> {
        let place = {
            let mut state = self.0.state();
            // A link that is opened meanwhile does not bring it back.
            if let Some(place) = state.held.remove(&group) {
                state.leaving.insert(group, place);
            }
            state.leaving.get(&group).cloned()
        };
        let Some(place) = place else { return Ok(()) };
        let (client, address) = (self.0.client()?, place.address());
        // The next home makes the clients of the last look connect anew. One whose connection or
        // request the kernel acknowledges after that would wait for an answer that nobody sends.
        if let Err(error) = client.silence(address).await {
            tracing::debug!(%address, %error, "clients may connect until the address is removed");
        }
        let _too_late = timeout(PEERS_LAST, self.0.look_at_peers()).await;
        client.release(address).await.map_err(|error| failed(&error))?;
        self.0.state().leaving.remove(&group);
        Ok(())
    }
}
