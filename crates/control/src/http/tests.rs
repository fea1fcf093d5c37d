mod access;
mod capacity;
mod clients;
pub(super) mod document;
mod gateways;
mod identity;
mod others;
mod preconditions;
mod sizing;
mod tls;
mod top;

use super::*;
use crate::config::ApiTls;
use crate::http::bind;
use crate::logins::Logins;
use crate::plane::{
    OperationCount, PlaneError, Step, Top, TopChange, Totals, VolumeConnection, VolumeHistograms,
    VolumeLive, VolumeReading, VolumeUses,
};
use crate::sync::{AtomicBool, Ordering, lock};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use weir_api::{
    Client, ClientError, Dry, ExportRule, LevelChange, NewLevel, NewPool, NewVolume, PoolChange,
    Qos, TermsChange, VolumeChange,
};
use weir_catalog::{Pool, Snapshot};
use weir_core::{FsError, FsResult, OpClass, VolumeId};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A data plane that does as it is told, except for volumes called `broken`.
#[derive(Default)]
struct FakePlane {
    limits: Mutex<BTreeMap<VolumeId, u64>>,
    iops: Mutex<BTreeMap<VolumeId, Option<u64>>>,
    used: Mutex<u64>,
    counting: Mutex<Option<weir_store::Counting>>,
    clients: Mutex<clients::Clients>,
    /// The top directories that were changed.
    tops: Mutex<BTreeMap<VolumeId, Top>>,
    /// The failure of the next change of a top directory. The change is made before a failure of
    /// the device, as if a sync had failed.
    top_fails: Mutex<Option<FsError>>,
    /// Pools have trees of volumes in them.
    trees: AtomicBool,
    /// Another server is the home of all volumes.
    elsewhere: AtomicBool,
    logins: Arc<Logins>,
}

/// A level of so many MiB/s for each TiB.
fn own_level(mib: u64) -> NewLevel {
    NewLevel {
        name: "own".into(),
        bytes_per_second_per_tib: mib << 20,
        volume_ceiling_bytes_per_second: None,
    }
}

fn count(
    protocol: &'static str,
    operation: &'static str,
    answered: u64,
    failed: u64,
) -> OperationCount {
    OperationCount { protocol, operation, class: OpClass::Metadata, answered, failed }
}

impl Plane for FakePlane {
    fn apply(&self, snapshot: Arc<Snapshot>) -> Result<(), PlaneError> {
        let served = snapshot.volumes().filter(|volume| volume.name != "broken");
        let iops = |volume: &weir_catalog::Volume| volume.limits.iops.map(|iops| iops.0);
        let served: Vec<_> = served.collect();
        *lock(&self.iops) = served.iter().map(|volume| (volume.id, iops(volume))).collect();
        *lock(&self.limits) =
            served.iter().map(|volume| (volume.id, volume.limits.rate.0)).collect();
        match snapshot.volume_named("broken") {
            None => Ok(()),
            Some(_) => Err(PlaneError::Volume { name: "broken".into(), reason: "no disk".into() }),
        }
    }

    fn holds_volumes(&self, _: &Pool) -> io::Result<bool> {
        Ok(self.trees.load(Ordering::Relaxed))
    }

    fn is_home_of(&self, _: &weir_catalog::Volume) -> bool {
        !self.elsewhere.load(Ordering::Relaxed)
    }

    fn volume_live(&self, id: VolumeId) -> Option<VolumeLive> {
        if self.elsewhere.load(Ordering::Relaxed) {
            return None;
        }
        let limit_bytes_per_second = *lock(&self.limits).get(&id)?;
        let used_bytes = *lock(&self.used);
        let counting = *lock(&self.counting);
        Some(VolumeLive {
            limit_bytes_per_second,
            limit_iops: *lock(&self.iops).get(&id)?,
            used_bytes,
            used_exact: counting.is_none(),
            counting,
            waiting: 2,
            operations: vec![count("nfs3", "GETATTR", 12, 0), count("nfsacl", "GETACL", 3, 2)],
            ..VolumeLive::default()
        })
    }

    /// Of the volume `v` alone: a READ of 30 ms, one that took longer than every bound, and no
    /// more.
    fn volume_histograms(&self, id: VolumeId) -> Option<Box<VolumeHistograms>> {
        let mut histograms = Box::<VolumeHistograms>::default();
        histograms.read.counts[9] = 1;
        histograms.read.counts[17] = 1;
        histograms.read.nanos = 11_030_000_000;
        lock(&self.limits).first_key_value().filter(|first| *first.0 == id).map(|_| histograms)
    }

    fn readings(&self, _: &mut dyn FnMut(VolumeReading)) {}

    /// Each volume has 20 clients, one of them with two connections.
    fn volume_uses(&self, id: VolumeId) -> Option<VolumeUses> {
        lock(&self.limits).get(&id)?;
        let connections = (0..21).map(|number| VolumeConnection {
            connection: number.into(),
            address: Ipv4Addr::new(10, 0, 0, number.max(1)).into(),
            protocol: "nfs",
            operations: 5,
            bytes: 0,
        });
        Some(VolumeUses { connections: connections.collect(), ..VolumeUses::default() })
    }

    fn rescan(&self, id: VolumeId) -> Option<bool> {
        lock(&self.limits).get(&id)?;
        let begun = weir_store::Counting { files: 7, bytes: 70 };
        Some(lock(&self.counting).replace(begun).is_none())
    }

    fn top(&self, id: VolumeId) -> Option<Top> {
        if self.elsewhere.load(Ordering::Relaxed) {
            return None;
        }
        lock(&self.limits).get(&id)?;
        let new = Top { uid: 0, gid: 0, mode: 0o755 };
        Some(lock(&self.tops).get(&id).copied().unwrap_or(new))
    }

    fn change_top(&self, id: VolumeId, change: TopChange) -> Step<'_, Option<FsResult<()>>> {
        Box::pin(async move {
            let after = self.top(id)?.with(change);
            let fails = lock(&self.top_fails).take();
            if fails != Some(FsError::NotPermitted) {
                lock(&self.tops).insert(id, after);
            }
            Some(fails.map_or(Ok(()), Err))
        })
    }

    fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.logins)
    }

    fn totals(&self) -> Totals {
        Totals { connections: 3, connections_accepted: 40, ..Totals::default() }
    }
}

struct Running {
    client: Client,
    plane: Arc<FakePlane>,
    watch: Arc<Watch>,
    address: SocketAddr,
    directory: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    server: tokio::task::JoinHandle<io::Result<()>>,
}

impl Running {
    async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap()).await
    }

    async fn start_in(directory: tempfile::TempDir) -> Self {
        Self::start_as(directory, ApiTls::Auto).await
    }

    async fn start_as(directory: tempfile::TempDir, api_tls: ApiTls) -> Self {
        let api = bind(&[(Ipv4Addr::LOCALHOST, 0).into()]).unwrap();
        let address = api[0].local_addr().unwrap();
        let config = ServerConfig {
            data: directory.path().to_owned(),
            api_tls,
            shutdown_grace: Duration::from_secs(5),
            ..ServerConfig::default()
        };
        let catalog = Catalog::open_with(&config.data, config.minimums()).unwrap();
        Self::start_with(directory, config, (api, address), catalog, None).await
    }

    /// A server with this catalogue, which is that of the cluster if it is a gateway of one.
    async fn start_with(
        directory: tempfile::TempDir,
        config: ServerConfig,
        (api, address): (Vec<TcpListener>, SocketAddr),
        catalog: Catalog,
        cluster: Option<Arc<dyn Cluster>>,
    ) -> Self {
        let catalog = Arc::new(catalog.admitting(config.admission));
        let plane = Arc::new(FakePlane::default());
        plane.apply(catalog.snapshot()).unwrap();
        let nfs = vec!["127.0.0.1:2049".parse().unwrap()];
        let listens = Listens { nfs, smb: vec!["127.0.0.1:445".parse().unwrap()] };
        let served = Arc::clone(&plane) as Arc<dyn Plane>;
        let state = ControlState::open(catalog, served, listens, &config).unwrap();
        let state = match cluster {
            Some(cluster) => state.of_gateway(cluster),
            None => state,
        };
        let watch = Arc::clone(&state.0.watch);
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async { stopped.await.unwrap_or(()) };
        let server = tokio::spawn(async move { serve(&config, api, state, until).await });
        let client = Client::local(directory.path());
        while client.server().await.is_err() {
            assert!(!server.is_finished(), "{:?}", server.await);
            tokio::task::yield_now().await;
        }
        Self { client, plane, watch, address, directory, stop, server }
    }

    async fn with_volume(qos: Qos) -> Self {
        let running = Self::start().await;
        running.client.create_pool(&pool(qos), Dry::No).await.unwrap();
        let rate = (qos == Qos::Manual).then_some(16 << 20);
        running.client.create_volume(&volume("v", rate), Dry::No).await.unwrap();
        running
    }

    async fn stop(self) -> tempfile::TempDir {
        self.stop.send(()).unwrap();
        self.server.await.unwrap().unwrap();
        self.directory
    }

    /// The status and the body of the answer to a GET at the socket.
    async fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let socket = UnixStream::connect(self.directory.path().join("api.sock")).await.unwrap();
        weir_api::get_over(socket, path, 1 << 20).await.unwrap()
    }

    fn tcp(&self, token: Option<String>) -> Client {
        Client::tcp(self.address.to_string(), token)
    }
}

fn pool(qos: Qos) -> NewPool {
    let (level, size_bytes) = ("standard".to_owned(), 4 * TIB);
    NewPool { name: "p".into(), level, size_bytes, qos, ..NewPool::default() }
}

fn volume(name: &str, rate: Option<u64>) -> NewVolume {
    NewVolume {
        name: name.into(),
        pool: "p".into(),
        quota_bytes: TIB,
        terms: TermsChange { throughput_bytes_per_second: rate, ..TermsChange::default() },
        ..NewVolume::default()
    }
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> (u16, weir_api::ApiError) {
    match outcome {
        Err(ClientError::Refused { status, error }) => (status, error),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_change_is_in_force_when_it_is_answered() {
    let running = Running::with_volume(Qos::Auto).await;
    let made = running.client.volume("v").await.unwrap();
    assert_eq!((made.limit_mibps, made.export_path.as_str()), (16.0, "/v"));
    let change = VolumeChange { quota_bytes: Some(2 * TIB), ..VolumeChange::default() };
    let changed = running.client.change_volume("v", &change, Dry::No).await.unwrap();
    assert_eq!(lock(&running.plane.limits).values().copied().collect::<Vec<_>>(), [32 << 20]);
    assert_eq!((changed.changes[0].before_mibps, changed.changes[0].after_mibps), (16.0, 32.0));
    assert_eq!(changed.item.unwrap().live.unwrap().limit_bytes_per_second, 32 << 20);
    let pool = running.client.pool("p").await.unwrap();
    assert_eq!((pool.allocated_bytes, pool.volumes, pool.budget_mibps), (2 * TIB, 1, 64.0));
    running.stop().await;
}

#[tokio::test]
async fn a_dry_run_shows_each_volume_and_changes_nothing() {
    let running = Running::with_volume(Qos::Manual).await;
    let faster = VolumeChange {
        terms: TermsChange {
            throughput_bytes_per_second: Some(48 << 20),
            ..TermsChange::default()
        },
        ..VolumeChange::default()
    };
    running.client.change_volume("v", &faster, Dry::No).await.unwrap();
    let before = running.client.server().await.unwrap().generation;
    let to_auto = PoolChange { qos: Some(Qos::Auto), ..PoolChange::default() };
    let plan = running.client.change_pool("p", &to_auto, Dry::Run).await.unwrap();
    assert!(plan.dry_run);
    assert_eq!(plan.changes[0].volume, "v");
    assert_eq!((plan.changes[0].before_mibps, plan.changes[0].after_mibps), (48.0, 16.0));
    assert_eq!(running.client.server().await.unwrap().generation, before);
    assert_eq!(lock(&running.plane.limits).values().copied().collect::<Vec<_>>(), [48 << 20]);
    let plan = running.client.delete_volume("v", Dry::Run).await.unwrap();
    assert_eq!(plan.item, Some(running.client.volume("v").await.unwrap()));
    assert_eq!(running.client.delete_volume("v", Dry::No).await.unwrap().item, None);
    let plan = running.client.delete_pool("p", Dry::Run).await.unwrap();
    assert_eq!(plan.item, Some(running.client.pool("p").await.unwrap()));
    running.stop().await;
}

#[tokio::test]
async fn a_change_of_a_pool_shows_also_the_limits_that_stay() {
    let running = Running::with_volume(Qos::Auto).await;
    running.client.create_volume(&volume("w", None), Dry::No).await.unwrap();
    let other = NewPool { name: "other".into(), ..pool(Qos::Auto) };
    running.client.create_pool(&other, Dry::No).await.unwrap();
    let elsewhere = NewVolume { pool: "other".into(), ..volume("x", None) };
    running.client.create_volume(&elsewhere, Dry::No).await.unwrap();
    let to_manual = PoolChange { qos: Some(Qos::Manual), ..PoolChange::default() };
    for dry in [Dry::Run, Dry::No] {
        let plan = running.client.change_pool("p", &to_manual, dry).await.unwrap();
        let shown: Vec<_> = plan
            .changes
            .iter()
            .map(|change| (change.volume.as_str(), change.before_mibps, change.after_mibps))
            .collect();
        assert_eq!(shown, [("v", 16.0, 16.0), ("w", 16.0, 16.0)]);
    }
    running.stop().await;
}

#[tokio::test]
async fn a_level_is_changed_for_all_its_pools_and_a_volume_moves() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let own = own_level(8);
    assert_eq!(client.create_level(&own, Dry::No).await.unwrap().item.unwrap().mibps_per_tib, 8.0);
    let other = NewPool { name: "q".into(), level: "own".into(), ..pool(Qos::Auto) };
    client.create_pool(&other, Dry::No).await.unwrap();
    let to = VolumeChange { pool: Some("q".into()), ..VolumeChange::default() };
    let moved = client.change_volume("v", &to, Dry::No).await.unwrap();
    assert_eq!((moved.changes[0].before_mibps, moved.changes[0].after_mibps), (16.0, 8.0));
    assert_eq!(moved.item.unwrap().pool, "q");
    assert_eq!(lock(&running.plane.limits).values().copied().collect::<Vec<_>>(), [8 << 20]);
    // Also a rate that changes no limit shows every volume that it concerns.
    let same = LevelChange { bytes_per_second_per_tib: Some(8 << 20), ..LevelChange::default() };
    let shown = client.change_level("own", &same, Dry::Run).await.unwrap();
    assert_eq!((shown.changes.len(), shown.changes[0].after_mibps), (1, 8.0));
    let faster = LevelChange { bytes_per_second_per_tib: Some(24 << 20), ..LevelChange::default() };
    client.change_level("own", &faster, Dry::No).await.unwrap();
    assert_eq!(lock(&running.plane.limits).values().copied().collect::<Vec<_>>(), [24 << 20]);
    let kept = client.level("own").await.unwrap();
    assert_eq!((kept.pools, kept.published, kept.mibps_per_tib), (1, false, 24.0));
    assert_eq!(client.levels().await.unwrap().len(), 5);
    let (status, error) = refusal(client.delete_level("own", Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "level_in_use"));
    assert_eq!(refusal(client.level("gold").await).0, 404);
    running.stop().await;
}

#[tokio::test]
async fn ceilings_are_set_and_taken_away() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let capped = VolumeChange {
        terms: TermsChange {
            max_throughput_bytes_per_second: Some(Some(1 << 20)),
            max_iops: Some(Some(500)),
            ..TermsChange::default()
        },
        ..VolumeChange::default()
    };
    let changed = client.change_volume("v", &capped, Dry::No).await.unwrap();
    assert_eq!((changed.changes[0].before_iops, changed.changes[0].after_iops), (None, Some(500)));
    let volume = changed.item.unwrap();
    assert_eq!(
        (volume.limit_mibps, volume.limit_iops, volume.terms.max_iops),
        (1.0, Some(500), Some(500))
    );
    assert_eq!(volume.live.unwrap().limit_iops, Some(500));
    let text = client.metrics().await.unwrap();
    assert!(text.contains("weir_volume_limit_operations_per_second{volume=\"v\",pool=\"p\"} 500"));
    let files = VolumeChange {
        terms: TermsChange { max_file_iops: Some(Some(70)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let volume = client.change_volume("v", &files, Dry::No).await.unwrap().item.unwrap();
    assert_eq!((volume.terms.max_file_iops, volume.limit_iops), (Some(70), Some(500)));
    let few = VolumeChange {
        terms: TermsChange { max_file_iops: Some(Some(9)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let (status, error) = refusal(client.change_volume("v", &few, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (400, "ceiling_out_of_bounds"));
    // Fields that are not given stay.
    let free = VolumeChange {
        terms: TermsChange { max_iops: Some(None), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let volume = client.change_volume("v", &free, Dry::No).await.unwrap().item.unwrap();
    assert_eq!((volume.limit_mibps, volume.limit_iops), (1.0, None));
    let none = VolumeChange {
        terms: TermsChange { max_iops: Some(Some(0)), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    let (status, error) = refusal(client.change_volume("v", &none, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (400, "ceiling_out_of_bounds"));
    assert_eq!(error.allowed.unwrap().min, Some(1));
    running.stop().await;
}

#[tokio::test]
async fn refusals_carry_status_code_and_what_is_allowed() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    let huge = NewVolume { quota_bytes: 9 * TIB, ..volume("w", None) };
    let (status, error) = refusal(client.create_volume(&huge, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (422, "pool_capacity_exceeded"));
    assert_eq!(error.allowed.unwrap().max, Some(3 * TIB));
    let (status, error) = refusal(client.create_volume(&volume("v", None), Dry::No).await);
    assert_eq!((status, error.code.as_str()), (409, "name_taken"));
    assert_eq!(refusal(client.volume("../x").await).0, 404);
    assert_eq!(refusal(client.delete_pool("p", Dry::No).await).1.code, "pool_not_empty");
    *lock(&running.plane.used) = 100 * GIB;
    let shrink = VolumeChange { quota_bytes: Some(GIB), ..VolumeChange::default() };
    let (status, error) = refusal(client.change_volume("v", &shrink, Dry::No).await);
    assert_eq!((status, error.code.as_str()), (422, "quota_below_used"));
    assert_eq!(error.allowed.unwrap().min, Some(100 * GIB));
    running.stop().await;
}

#[tokio::test]
async fn export_rules_are_kept_in_matching_order() {
    let running = Running::with_volume(Qos::Auto).await;
    let rule = |network: &str| ExportRule {
        network: network.into(),
        access: weir_api::Access::ReadOnly,
        squash: weir_api::Squash::Root,
        anon_uid: 99,
        anon_gid: 98,
    };
    let rules = [rule("10.0.0.0/8"), rule("10.1.0.0/16")];
    running.client.set_exports("v", &rules, Dry::No).await.unwrap();
    running.client.add_export("v", &rule("fd00::/8"), Dry::No).await.unwrap();
    let kept = running.client.exports("v").await.unwrap();
    assert_eq!(kept, [rule("10.1.0.0/16"), rule("10.0.0.0/8"), rule("fd00::/8")]);
    running.client.remove_export("v", "10.0.0.0/8", Dry::No).await.unwrap();
    assert_eq!(running.client.exports("v").await.unwrap().len(), 2);
    let (status, error) =
        refusal(running.client.add_export("v", &rule("10.1.2.3/8"), Dry::No).await);
    assert_eq!(status, 400);
    assert!(error.message.contains("use 10.0.0.0/8"), "{}", error.message);
    running.stop().await;
}

#[tokio::test]
async fn a_volume_that_can_not_be_served_is_not_made() {
    let running = Running::with_volume(Qos::Auto).await;
    let (status, error) =
        refusal(running.client.create_volume(&volume("broken", None), Dry::No).await);
    assert_eq!((status, error.code.as_str()), (500, "volume_not_served"));
    assert_eq!(running.client.volumes().await.unwrap().len(), 1);
    assert!(running.client.health().await.unwrap().ready);
    running.stop().await;
}

#[tokio::test]
async fn deleting_a_volume_removes_its_files() {
    let running = Running::with_volume(Qos::Auto).await;
    let directory = running.directory.path().join("pools/1/volumes/1");
    std::fs::create_dir_all(directory.join("root/a")).unwrap();
    std::fs::write(directory.join("root/a/file"), "x").unwrap();
    running.client.delete_volume("v", Dry::No).await.unwrap();
    assert_eq!(refusal(running.client.volume("v").await).1.code, "no_such_volume");
    let volumes = running.directory.path().join("pools/1/volumes");
    while std::fs::read_dir(&volumes).unwrap().next().is_some() {
        tokio::task::yield_now().await;
    }
    running.client.delete_pool("p", Dry::No).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn trees_left_by_a_stop_go_at_the_next_start() {
    let directory = Running::with_volume(Qos::Auto).await.stop().await;
    {
        let catalog = Catalog::open(directory.path()).unwrap();
        catalog.delete_volume("v", weir_catalog::Mode::Commit).unwrap();
    }
    let tree = directory.path().join("pools/1/volumes/1");
    std::fs::create_dir_all(tree.join("root")).unwrap();
    let running = Running::start_in(directory).await;
    while tree.exists() {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

#[tokio::test]
async fn over_tcp_all_but_life_signs_needs_the_token() {
    let running = Running::with_volume(Qos::Auto).await;
    let token = std::fs::read_to_string(running.directory.path().join("api.token")).unwrap();
    let token = token.trim().to_owned();
    running.tcp(Some(token.clone())).volumes().await.unwrap();
    let wrong = format!("{}g", &token[..63]);
    for client in [running.tcp(None), running.tcp(Some(wrong))] {
        assert_eq!(refusal(client.volumes().await).0, 401);
        assert_eq!(refusal(client.metrics().await).0, 401);
    }
    for path in ["/healthz", "/readyz"] {
        let answer = raw_tcp(
            running.address,
            &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    running.stop().await;
}

#[tokio::test]
async fn bad_requests_get_errors_in_the_one_shape() {
    let running = Running::start().await;
    let path = running.directory.path().join("api.sock");
    let cases = [
        ("GET /v2/pools", "", 404, "no_such_route"),
        ("PUT /v1/pools", "", 405, "no_such_method"),
        ("POST /v1/pools", "{", 400, "bad_request"),
        (
            "POST /v1/pools",
            "{\"name\":\"p\",\"level\":\"gold\",\"size_bytes\":1099511627776}",
            404,
            "no_such_level",
        ),
        ("POST /v1/pools", "{\"nam\":\"p\"}", 422, "bad_request"),
        ("DELETE /v1/pools/p?dry_rum=true", "", 400, "bad_request"),
    ];
    for (line, body, status, code) in cases {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = raw_unix(&path, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{line}: {answer}");
    }
    let flood = format!(
        "POST /v1/pools HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        1u64 << 40
    );
    assert!(raw_unix(&path, &flood).await.starts_with("HTTP/1.1 413"));
    running.stop().await;
}

#[tokio::test]
async fn the_socket_is_its_owners_alone_and_a_stale_one_is_replaced() {
    let directory = Running::start().await.stop().await;
    let path = directory.path().join("api.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let running = Running::start_in(directory).await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let directory = running.stop().await;
    assert!(!directory.path().join("api.sock").exists());
}

#[tokio::test]
async fn operations_are_shown_by_protocol_and_name() {
    let running = Running::with_volume(Qos::Auto).await;
    let shown = running.client.volume("v").await.unwrap();
    let of = |count: &weir_api::OperationCount| {
        let name = format!("{} {}", count.protocol, count.operation);
        (name, count.answered, count.failed)
    };
    let operations: Vec<_> = shown.live.unwrap().operations.iter().map(of).collect();
    assert_eq!(operations, [("nfs3 GETATTR".into(), 12, 0), ("nfsacl GETACL".into(), 3, 2)]);
    let text = running.client.metrics().await.unwrap();
    let getattr = "{volume=\"v\",pool=\"p\",protocol=\"nfs3\",operation=\"GETATTR\"}";
    let getacl = "{volume=\"v\",pool=\"p\",protocol=\"nfsacl\",operation=\"GETACL\"}";
    for line in [
        "# TYPE weir_volume_operations counter".to_owned(),
        format!("weir_volume_operations_total{getattr} 12"),
        format!("weir_volume_operations_total{getacl} 3"),
        format!("weir_volume_operation_errors_total{getattr} 0"),
        format!("weir_volume_operation_errors_total{getacl} 2"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("operation=\"LOOKUP\""), "no client has requested it");
}

#[tokio::test]
async fn metrics_name_every_volume() {
    let running = Running::with_volume(Qos::Auto).await;
    let text = running.client.metrics().await.unwrap();
    for line in [
        "weir_volume_limit_bytes_per_second{volume=\"v\",pool=\"p\"} 16777216",
        "weir_volume_throughput_limit_reached{volume=\"v\",pool=\"p\"} 1",
        "weir_volume_read_operations_total{volume=\"v\",pool=\"p\"} 0",
        "weir_volume_wait_seconds_total{volume=\"v\",pool=\"p\"} 0.0",
        "weir_volume_served{volume=\"v\",pool=\"p\"} 1",
        "weir_pool_budget_bytes_per_second{pool=\"p\"} 67108864",
        "weir_connections 3",
        "weir_connections_accepted_total 40",
        "# TYPE weir_volume_read_bytes counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    running.stop().await;
}

#[tokio::test]
async fn clients_with_the_most_connections_have_metrics_and_the_rest_shares_one() {
    let running = Running::with_volume(Qos::Auto).await;
    let text = running.client.metrics().await.unwrap();
    let of = |client: &str, protocol| {
        let labels = format!("volume=\"v\",pool=\"p\",protocol=\"{protocol}\",client=\"{client}\"");
        format!("weir_volume_client_connections{{{labels}}}")
    };
    for line in [
        "weir_volume_connections{volume=\"v\",pool=\"p\"} 21".to_owned(),
        format!("{} 2", of("10.0.0.1", "nfs")),
        format!("{} 1", of("10.0.0.2", "nfs")),
        format!("{} 4", of("others", "any")),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let lines = text.lines().filter(|line| line.starts_with("weir_volume_client_connections{"));
    assert_eq!(lines.count(), 17, "however many clients there are");
    running.stop().await;
}

#[tokio::test]
async fn chosen_volumes_have_histograms() {
    let running = Running::with_volume(Qos::Auto).await;
    let text = running.client.metrics().await.unwrap();
    for line in [
        "# TYPE weir_volume_operation_seconds histogram",
        "weir_volume_contract_wait_seconds_bucket{le=\"0.00005\",volume=\"v\",pool=\"p\"} 0",
        "weir_volume_operation_seconds_bucket{le=\"0.025\",volume=\"v\",pool=\"p\",class=\"read\"} 0",
        "weir_volume_operation_seconds_bucket{le=\"0.05\",volume=\"v\",pool=\"p\",class=\"read\"} 1",
        "weir_volume_operation_seconds_bucket{le=\"10.0\",volume=\"v\",pool=\"p\",class=\"read\"} 1",
        "weir_volume_operation_seconds_bucket{le=\"+Inf\",volume=\"v\",pool=\"p\",class=\"read\"} 2",
        "weir_volume_operation_seconds_sum{volume=\"v\",pool=\"p\",class=\"read\"} 11.03",
        "weir_volume_operation_seconds_count{volume=\"v\",pool=\"p\",class=\"read\"} 2",
        "weir_volume_operation_seconds_count{volume=\"v\",pool=\"p\",class=\"write\"} 0",
        "weir_volume_contract_wait_seconds_count{volume=\"v\",pool=\"p\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    running.stop().await;
}

async fn raw_unix(path: &Path, request: &str) -> String {
    converse(UnixStream::connect(path).await.unwrap(), request).await
}

async fn raw_tcp(address: SocketAddr, request: &str) -> String {
    converse(TcpStream::connect(address).await.unwrap(), request).await
}

async fn converse(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    request: &str,
) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_recount_is_begun_once_and_until_it_is_done_a_quota_may_not_shrink() {
    let running = Running::with_volume(Qos::Auto).await;
    let client = &running.client;
    assert!(client.volume("v").await.unwrap().live.unwrap().used_exact);
    let operation = client.rescan("v").await.unwrap();
    assert_eq!((operation.volume.as_str(), operation.files), ("v", 7));
    assert_eq!(client.operation(operation.id).await.unwrap(), operation);
    assert_eq!(client.operations().await.unwrap(), [operation]);
    assert_eq!(refusal(client.operation(99).await).1.code, "no_such_operation");
    let begun = client.volume("v").await.unwrap().live.unwrap();
    assert_eq!(begun.counting, Some(weir_api::Counting { files: 7, bytes: 70 }));
    let (status, error) = refusal(client.rescan("v").await);
    assert_eq!((status, error.code.as_str()), (409, "counting"));
    let (status, error) = refusal(client.rescan("nobody").await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_volume"));
    let change = VolumeChange { quota_bytes: Some(TIB / 2), ..VolumeChange::default() };
    let (status, error) = refusal(client.change_volume("v", &change, Dry::Run).await);
    assert_eq!((status, error.code.as_str()), (409, "usage_unknown"));
    let metrics = client.metrics().await.unwrap();
    assert!(metrics.contains("weir_volume_used_exact{volume=\"v\",pool=\"p\"} 0"), "{metrics}");
    assert!(metrics.contains("weir_volume_counted_files{volume=\"v\",pool=\"p\"} 7"));
    running.stop().await;
}

#[tokio::test]
async fn the_document_is_served() {
    let running = Running::start().await;
    let path = running.directory.path().join("api.sock");
    let request = "GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = raw_unix(&path, request).await;
    assert!(answer.ends_with(weir_api::OPENAPI), "{answer}");
    running.stop().await;
}
