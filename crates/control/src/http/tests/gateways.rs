//! The routes that only gateways of a cluster have.

use super::*;
use crate::cluster::{NotAsked, Opening, Stream};
use crate::sync::{AsyncMutex, AtomicBool, Ordering, mpsc};
use std::future::ready;
use tokio::io::DuplexStream;
use weir_api::GatewayState::{Drained, Draining, Ending, Live, New, Silent};
use weir_api::{Address, CephFs, NewAddress, Role};
use weir_catalog::{
    Changes, ClusterKey, ClusterPlace, ClusterStore, Decision, Event, Guard, LifeGuard, Listing,
    Minimums, Mode, NewGateway, Operation, Pair, StoreError, create_cluster,
};
use weir_cluster::{
    Came, Command, Fence, Gateway, GatewayId, Group, GroupId, Home, Life, MachineId, Member,
    Records, Refusal, Standing, Version, View,
};

/// A store that is always there.
#[derive(Default)]
pub(super) struct Store(Mutex<Vec<Event>>);

impl Store {
    /// The events so far, and their last revision.
    fn known(&self) -> (Vec<Event>, u64) {
        let events = lock(&self.0).clone();
        let revision = events.last().map_or(0, |event| event.revision);
        (events, revision)
    }

    fn pairs(&self, prefix: &str) -> Listing {
        let (events, revision) = self.known();
        let mut pairs = BTreeMap::new();
        for Event { key, value, revision } in events {
            match value.filter(|_| key.starts_with(prefix)) {
                Some(value) => pairs.insert(key.clone(), Pair { key, value, revision }),
                None => pairs.remove(&key),
            };
        }
        Listing { revision, pairs: pairs.into_values().collect() }
    }
}

impl ClusterStore for Store {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        Ok(self.pairs(key).pairs.into_iter().find(|pair| pair.key == key))
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        Ok(self.pairs(prefix))
    }

    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError> {
        for guard in guards {
            let Guard::At { key, revision } = guard else { panic!("no life is given") };
            if self.get(key)?.map_or(0, |pair| pair.revision) != *revision {
                return Ok(Decision::Refused);
            }
        }
        let revision = self.known().1 + 1;
        let event = |operation: &Operation| match operation.clone() {
            Operation::Put { key, value } => Event { key, value: Some(value), revision },
            Operation::Delete { key } => Event { key, value: None, revision },
        };
        lock(&self.0).extend(operations.iter().map(event));
        Ok(Decision::At(revision))
    }

    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        let (mut events, revision) = self.known();
        events.retain(|event| event.revision > after && event.key.starts_with(prefix));
        Ok(Changes { revision, events })
    }

    /// Ends early: no test here follows by a thread.
    fn wait(&self, _: &str, _: u64, _: Duration) {}
}

/// The way to another gateway.
pub(super) enum Way {
    /// To a gateway of this test.
    To(mpsc::Sender<Stream>),
    /// There is none.
    Refused(NotAsked),
    /// To one that is never reached.
    Unreached,
    /// To one that answers nothing.
    Silent,
    /// To one that answers these bytes, and then the last of them for ever if it is `endless`.
    Says {
        /// The bytes.
        bytes: &'static [u8],
        /// Whether the answer ends.
        endless: bool,
    },
}

/// Records that do as they are told, or refuse, of the gateway `own`.
pub(super) struct Told {
    pub(super) own: GatewayId,
    pub(super) view: Mutex<View>,
    pub(super) may_reply: AtomicBool,
    commands: Mutex<Vec<Command>>,
    refusal: Mutex<Option<Refusal>>,
    /// The ways to others, and how often each was taken.
    pub(super) ways: Mutex<BTreeMap<GatewayId, (Way, usize)>>,
    silent: Mutex<Vec<DuplexStream>>,
    asked: AsyncMutex<mpsc::Receiver<Stream>>,
    /// The way to this gateway.
    pub(super) door: mpsc::Sender<Stream>,
}

impl Told {
    pub(super) fn new(own: GatewayId, view: View) -> Self {
        let (door, asked) = mpsc::channel(16);
        Self {
            own,
            view: Mutex::new(view),
            may_reply: AtomicBool::new(true),
            commands: Mutex::default(),
            refusal: Mutex::default(),
            ways: Mutex::default(),
            silent: Mutex::default(),
            asked: AsyncMutex::new(asked),
            door,
        }
    }
}

/// Answers a request with `bytes`, and the last of them for ever if it is `endless`.
async fn say(mut stream: DuplexStream, bytes: &'static [u8], endless: bool) {
    // The other side may be gone at any time.
    let _read = stream.read(&mut [0; 4096]).await;
    let mut is_taken = stream.write_all(bytes).await.is_ok();
    while endless && is_taken {
        is_taken = stream.write_all(&[bytes[bytes.len() - 1]; 1 << 16]).await.is_ok();
    }
}

impl Cluster for Told {
    fn own(&self) -> GatewayId {
        self.own
    }

    fn ask(&self, to: GatewayId, _: SocketAddr) -> Opening<'_, Result<Stream, NotAsked>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut ways = lock(&self.ways);
        let opened = match ways.get_mut(&to) {
            None => Err(NotAsked::Failed("there is no way".to_owned())),
            Some((way, taken)) => {
                *taken += 1;
                match way {
                    Way::To(door) => {
                        let sent = door.try_send(Box::new(theirs));
                        sent.map_err(|error| NotAsked::Failed(error.to_string()))
                    }
                    Way::Refused(error) => Err(error.clone()),
                    Way::Unreached => return Box::pin(std::future::pending()),
                    Way::Silent => {
                        lock(&self.silent).push(theirs);
                        Ok(())
                    }
                    Way::Says { bytes, endless } => {
                        tokio::spawn(say(theirs, bytes, *endless));
                        Ok(())
                    }
                }
            }
        };
        Box::pin(ready(opened.map(|()| Box::new(ours) as Stream)))
    }

    fn asked(&self) -> Opening<'_, Option<Stream>> {
        Box::pin(async { self.asked.lock().await.recv().await })
    }

    fn view(&self) -> Arc<View> {
        Arc::new(lock(&self.view).clone())
    }

    fn may_reply(&self) -> bool {
        self.may_reply.load(Ordering::Relaxed)
    }

    fn command(&self, command: Command) -> Step<'_, Result<(), Refusal>> {
        lock(&self.commands).push(command);
        if let Some(refusal) = *lock(&self.refusal) {
            return Box::pin(ready(Err(refusal)));
        }
        let mut view = lock(&self.view);
        let records = Arc::make_mut(&mut view.records);
        match command {
            Command::Move { group, to } => {
                let number = records.gateways[&to].number();
                let home = &mut records.groups.get_mut(&group).unwrap().home;
                let Home::At { to: next, .. } = home else { panic!("it has no home") };
                *next = Some(Life { gateway: to, number });
            }
            Command::Drain { gateway, draining } => {
                records.gateways.get_mut(&gateway).unwrap().draining = draining;
            }
            Command::Remove { gateway } if records.gateways.remove(&gateway).is_none() => {
                return Box::pin(ready(Err(Refusal::NoGateway(gateway))));
            }
            _ => {}
        }
        Box::pin(ready(Ok(())))
    }
}

/// A member whose version has the number of its life, so that those of two differ.
fn member(number: u32) -> Gateway {
    let (speaks, sessions) = (Version(u16::try_from(number).unwrap()), Vec::new());
    let member = Member { number, since: weir_cluster::Generation(1), speaks, sessions };
    let standing = Standing::In(member);
    Gateway { machine: MachineId(1), standing, draining: false, fences: Vec::new() }
}

fn out(number: u32, fences: Vec<Fence>) -> Gateway {
    Gateway { standing: Standing::Out { number }, fences, ..member(1) }
}

/// A gateway of a cluster with five gateways: two live ones, one without a lease, one whose life
/// has ended but is fenced, and one that was never started. The first has the only address.
async fn gateway() -> (Running, Arc<Told>) {
    gateway_over(Arc::default()).await
}

/// The place of a gateway in the catalogue over `store`.
fn place(store: Arc<Store>, gateway: &str) -> ClusterPlace {
    ClusterPlace {
        store,
        cluster: "nas".to_owned(),
        gateway: gateway.to_owned(),
        life: LifeGuard::default(),
        key: ClusterKey::new([7; 32]),
    }
}

/// The first gateway of such a cluster over `store`.
pub(super) async fn gateway_over(store: Arc<Store>) -> (Running, Arc<Told>) {
    let directory = tempfile::tempdir().unwrap();
    let place = place(store, "g1");
    create_cluster(&place).unwrap();
    let catalog = Catalog::open_in_cluster(directory.path(), Minimums::default(), place).unwrap();
    catalog.add_address("10.0.0.1/24".parse().unwrap(), Mode::Commit).unwrap();
    for host in 1..=5 {
        let at = |port: u16| format!("10.0.1.{host}:{port}").parse().unwrap();
        let new = NewGateway { name: format!("g{host}"), links: at(7450), helper: at(7451) };
        catalog.add_gateway(&new, Mode::Commit).unwrap();
    }
    let fence = Fence { number: 3, sessions: Vec::new(), in_force: None, gone: true };
    let gateways = [(1, member(2)), (2, member(5)), (3, member(1)), (4, out(3, vec![fence]))];
    let life = Life { gateway: GatewayId(1), number: 2 };
    let home = Home::At { life, came: Came::New, to: None };
    let records = Records {
        gateways: gateways.into_iter().map(|(id, row)| (GatewayId(id), row)).collect(),
        groups: [(GroupId(1), Group { weight: 0, home })].into(),
        ..Records::default()
    };
    let attached = [(GatewayId(1), 2), (GatewayId(2), 5)].into();
    let view = View { records: Arc::new(records), attached, ..View::default() };
    let told = Arc::new(Told::new(GatewayId(1), view));
    let running = start(directory, catalog, &told).await;
    (running, told)
}

/// The second gateway of the cluster over `store`, which exists, with the records `view`.
pub(super) async fn second_gateway(store: Arc<Store>, view: View) -> (Running, Arc<Told>) {
    let directory = tempfile::tempdir().unwrap();
    let place = place(store, "g2");
    let catalog = Catalog::open_in_cluster(directory.path(), Minimums::default(), place).unwrap();
    let told = Arc::new(Told::new(GatewayId(2), view));
    let running = start(directory, catalog, &told).await;
    (running, told)
}

async fn start(directory: tempfile::TempDir, catalog: Catalog, told: &Arc<Told>) -> Running {
    let api = bind(&[(Ipv4Addr::LOCALHOST, 0).into()]).unwrap();
    let address = api[0].local_addr().unwrap();
    let config = ServerConfig {
        data: directory.path().to_owned(),
        shutdown_grace: Duration::from_secs(5),
        ..ServerConfig::default()
    };
    let cluster = Some(Arc::clone(told) as Arc<dyn Cluster>);
    Running::start_with(directory, config, (api, address), catalog, cluster).await
}

pub(super) fn on_ceph(path: &str) -> NewPool {
    let ceph = Some(CephFs { conf: "/etc/ceph/ceph.conf".to_owned(), user: "weir".to_owned() });
    NewPool { directory: Some(path.to_owned()), ceph, ..pool(Qos::Auto) }
}

#[tokio::test]
async fn a_change_names_the_gateways_that_do_not_follow_it() {
    let (running, told) = gateway().await;
    let second = NewAddress { address: "10.0.0.2/24".to_owned() };
    let planned = running.client.add_address(&second, Dry::Run).await.unwrap();
    assert_eq!(planned.warnings, []);
    let made = running.client.add_address(&second, Dry::No).await.unwrap();
    let codes: Vec<_> = made.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["not_followed"]);
    let message = &made.warnings[0].message;
    assert!(message.ends_with(": g2"), "of those that live, but for this one: {message}");
    lock(&told.view).attached.remove(&GatewayId(2));
    let gone = running.client.remove_address("10.0.0.2", Dry::No).await.unwrap();
    assert_eq!(gone.warnings, [], "nobody else lives");
    running.stop().await;
}

#[tokio::test]
async fn a_volume_with_another_home_is_no_fault_of_this_gateway() {
    let (running, _) = gateway().await;
    let client = &running.client;
    running.plane.elsewhere.store(true, Ordering::Relaxed);
    client.create_pool(&on_ceph("/weir/p"), Dry::No).await.unwrap();
    client.create_volume(&volume("a", None), Dry::No).await.unwrap();
    let (status, body) = running.get("/v1/health?gateways=this").await;
    let health: weir_api::Health = serde_json::from_slice(&body).unwrap();
    assert!(status == 200 && health.ready && health.unserved.is_empty());
    assert_eq!((health.volumes_served, health.gateways.len()), (0, 0));
    let owner = weir_api::TopChange { uid: Some(7), ..weir_api::TopChange::default() };
    let change = VolumeChange { top: Some(owner), ..VolumeChange::default() };
    let (status, error) = refusal(client.change_volume("a", &change, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "volume_not_served"));
    assert!(error.message.contains("`weir volume home a`"), "{}", error.message);
    running.stop().await;
}

#[tokio::test]
async fn a_pool_on_ceph_stays_until_all_files_of_its_volumes_are_moved_or_removed() {
    let (running, _) = gateway().await;
    let client = &running.client;
    client.create_pool(&on_ceph("/weir/p"), Dry::No).await.unwrap();
    running.plane.trees.store(true, Ordering::Relaxed);
    let (status, error) = refusal(client.delete_pool("p", Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "pool_not_empty"));
    running.plane.trees.store(false, Ordering::Relaxed);
    client.delete_pool("p", Dry::No).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn volumes_of_a_cluster_have_addresses_and_pools_on_ceph() {
    let (running, _) = gateway().await;
    let client = &running.client;
    let made = client.create_pool(&on_ceph("/weir/p"), Dry::No).await.unwrap().item.unwrap();
    assert_eq!((made.directory.as_str(), made.ceph.clone()), ("/weir/p", on_ceph("").ceph));
    let local = NewPool { name: "q".into(), ..pool(Qos::Auto) };
    let (status, error) = refusal(client.create_pool(&local, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (400, "pool_not_on_ceph"));
    let second = NewAddress { address: "10.0.0.2/24".to_owned() };
    let planned = client.add_address(&second, Dry::Run).await.unwrap();
    assert_eq!(planned.item.unwrap().address, "10.0.0.2");
    client.add_address(&second, Dry::No).await.unwrap();
    let first = client.create_volume(&volume("a", None), Dry::No).await.unwrap().item.unwrap();
    assert_eq!(first.address.as_deref(), Some("10.0.0.1"));
    let chosen = NewVolume { address: Some("10.0.0.1".into()), ..volume("b", None) };
    let chosen = client.create_volume(&chosen, Dry::No).await.unwrap().item.unwrap();
    assert_eq!(chosen.address.as_deref(), Some("10.0.0.1"));
    for (address, status, code) in
        [("10.0.0.9", 404, "no_such_address"), ("10.0.0.1/24", 400, "bad_address")]
    {
        let new = NewVolume { address: Some(address.into()), ..volume("c", None) };
        let refused = refusal(client.create_volume(&new, Dry::No).await);
        assert_eq!((refused.0, refused.1.code.as_str()), (status, code));
    }
    let to = VolumeChange { address: Some("10.0.0.2".into()), ..VolumeChange::default() };
    let refused = refusal(client.change_volume("a", &to, Dry::No).await);
    assert_eq!((refused.0, refused.1.code.as_str()), (409, "address_kept"));
    let listed = client.addresses().await.unwrap();
    let shown = |one: &Address| (one.group, one.gateway.clone(), one.volumes.len(), one.weight);
    // Two volumes of 1 TiB at 16 MiB/s.
    let expected = [(1, Some("g1".to_owned()), 2, 32), (2, None, 0, 0)];
    assert_eq!(listed.iter().map(shown).collect::<Vec<_>>(), expected);
    let (status, error) = refusal(client.remove_address("10.0.0.1", Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "address_in_use"));
    let etag = &listed[0].etag;
    let stale = refusal(client.if_match(etag).remove_address("10.0.0.2", Dry::No).await);
    assert_eq!((stale.0, stale.1.code.as_str()), (412, "changed_meanwhile"));
    client.if_match(&listed[1].etag).remove_address("10.0.0.2", Dry::No).await.unwrap();
    for unknown in ["10.0.0.2", "x/../y"] {
        let (status, error) = refusal(client.remove_address(unknown, Dry::No).await);
        assert_eq!((status, error.code.as_str()), (404, "no_such_address"));
    }
    running.stop().await;
}

#[tokio::test]
async fn gateways_are_listed_drained_and_removed() {
    let (running, told) = gateway().await;
    let client = &running.client;
    let states = async || {
        let gateways = client.gateways().await.unwrap();
        gateways.iter().map(|gateway| gateway.state).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [Live, Live, Silent, Ending, New]);
    let first = client.gateways().await.unwrap().swap_remove(0);
    assert_eq!((first.number, first.life, first.links.as_str()), (1, Some(2), "10.0.1.1:7450"));
    assert_eq!(first.addresses, ["10.0.0.1"]);
    let versions = client.gateways().await.unwrap().into_iter().map(|gateway| gateway.version);
    let expected = [Some(2), Some(5), Some(1), None, None];
    assert_eq!(versions.collect::<Vec<_>>(), expected, "those of members");
    assert_eq!(client.drain_gateway("g1").await.unwrap().state, Draining);
    assert_eq!(client.drain_gateway("g2").await.unwrap().state, Drained);
    assert_eq!(client.undrain_gateway("g2").await.unwrap().state, Live);
    client.declare_gateway_gone("g4").await.unwrap();
    let last = Command::DeclareGone { gateway: GatewayId(4) };
    assert_eq!(lock(&told.commands).last(), Some(&last));
    let (status, error) = refusal(client.drain_gateway("g9").await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_gateway"));
    *lock(&told.refusal) = Some(Refusal::NotGone(GatewayId(2)));
    let (status, error) = refusal(client.remove_gateway("g2").await);
    assert_eq!((status, error.code.as_str()), (409, "gateway_not_gone"));
    assert!(error.message.contains("gateway g2 may still run"), "{}", error.message);
    *lock(&told.refusal) = None;
    assert_eq!(client.remove_gateway("g4").await.unwrap().state, Ending);
    // One that was never started has no record.
    client.remove_gateway("g5").await.unwrap();
    assert_eq!(states().await, [Draining, Live, Silent]);
    running.stop().await;
}

#[tokio::test]
async fn a_volume_moves_with_all_of_its_address() {
    let (running, told) = gateway().await;
    let client = &running.client;
    client.create_pool(&on_ceph("/weir/p"), Dry::No).await.unwrap();
    for name in ["a", "b", "c"] {
        client.create_volume(&volume(name, None), Dry::No).await.unwrap();
    }
    let home = client.volume_home("b").await.unwrap();
    assert_eq!((home.gateway.as_deref(), home.moving_to), (Some("g1"), None));
    assert_eq!(home.moves_with, ["a", "c"]);
    let moved = client.move_home("b", "g2").await.unwrap();
    assert_eq!(moved.moving_to.as_deref(), Some("g2"));
    let asked = Command::Move { group: GroupId(1), to: GatewayId(2) };
    assert_eq!(*lock(&told.commands), [asked]);
    let moving = client.addresses().await.unwrap().swap_remove(0);
    assert_eq!((moving.gateway.as_deref(), moving.moving_to.as_deref()), (Some("g1"), Some("g2")));
    let refused = async |refusal_of: Refusal| {
        *lock(&told.refusal) = Some(refusal_of);
        let (status, error) = refusal(client.move_home("b", "g2").await);
        (status, error.code, error.message)
    };
    let (status, code, message) = refused(Refusal::Moving(GroupId(1))).await;
    assert_eq!((status, code.as_str()), (409, "address_moving"));
    assert!(message.contains("10.0.0.1"), "{message}");
    for (refusal, status, code) in [
        (Refusal::Busy, 409, "gateway_busy"),
        (Refusal::Unreachable, 500, "cluster_unreachable"),
        (Refusal::Unknown, 500, "cluster_in_doubt"),
        (Refusal::NoGateway(GatewayId(2)), 409, "gateway_not_live"),
        (Refusal::NotLive(GatewayId(2)), 409, "gateway_not_live"),
        (Refusal::Draining(GatewayId(2)), 409, "gateway_draining"),
        (Refusal::StillLive(GatewayId(2)), 409, "gateway_live"),
        (Refusal::TooManyGroups, 409, "too_many"),
    ] {
        let found = refused(refusal).await;
        assert_eq!((found.0, found.1.as_str()), (status, code), "{}", found.2);
    }
    let (status, error) = refusal(client.move_home("nothing", "g2").await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_volume"));
    // A condemned home serves nothing.
    Arc::make_mut(&mut lock(&told.view).records).gateways.insert(GatewayId(1), out(2, vec![]));
    let home = client.volume_home("b").await.unwrap();
    assert_eq!((home.gateway, home.moving_to), (None, None));
    running.stop().await;
}

#[tokio::test]
async fn a_server_alone_says_that_it_is_no_gateway() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let shown = client.volume("v").await.unwrap();
    assert_eq!(shown.address, None);
    let text = serde_json::to_string(&shown).unwrap();
    assert!(!text.contains("\"address\""), "{text}");
    let text = serde_json::to_string(&client.pool("p").await.unwrap()).unwrap();
    assert!(!text.contains("\"ceph\""), "{text}");
    let new = NewAddress { address: "10.0.0.5/24".to_owned() };
    let of_address = NewVolume { address: Some("10.0.0.5".into()), ..volume("w", None) };
    let to_address = VolumeChange { address: Some("10.0.0.5".into()), ..VolumeChange::default() };
    let pool_on_ceph = NewPool { name: "q".to_owned(), ..on_ceph("/weir/q") };
    let refused = [
        refusal(client.gateways().await),
        refusal(client.drain_gateway("g1").await),
        refusal(client.undrain_gateway("g1").await),
        refusal(client.declare_gateway_gone("g1").await),
        refusal(client.remove_gateway("g1").await),
        refusal(client.addresses().await),
        refusal(client.add_address(&new, Dry::No).await),
        refusal(client.add_address(&new, Dry::Run).await),
        refusal(client.remove_address("10.0.0.5", Dry::No).await),
        refusal(client.volume_home("v").await),
        refusal(client.move_home("v", "g1").await),
        refusal(client.create_pool(&pool_on_ceph, Dry::No).await),
        refusal(client.create_volume(&of_address, Dry::No).await),
        refusal(client.change_volume("v", &to_address, Dry::No).await),
    ];
    for (status, error) in refused {
        assert_eq!((status, error.code.as_str()), (409, "not_a_gateway"), "{}", error.message);
        assert!(error.message.contains("not a gateway"), "{}", error.message);
    }
    running.stop().await;
}

#[tokio::test]
async fn removing_gateways_is_for_administrators() {
    let (running, told) = gateway().await;
    let new = weir_api::NewToken { name: "ci".into(), role: Role::Operator, expires: None };
    let token = running.client.create_token(&new).await.unwrap().secret;
    let operator = running.tcp(Some(token));
    for outcome in [operator.remove_gateway("g4").await, operator.declare_gateway_gone("g4").await]
    {
        let (status, error) = refusal(outcome);
        assert_eq!((status, error.code.as_str()), (403, "forbidden"));
    }
    assert_eq!(*lock(&told.commands), []);
    operator.drain_gateway("g2").await.unwrap();
    running.stop().await;
}
