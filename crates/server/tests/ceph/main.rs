//! A gateway that serves a volume on CephFS to a client of NFS, with its privileges given up. It
//! needs a cluster of Ceph, whose configuration file `WEIR_CEPH_CONF` names; without one it says so
//! and does nothing. `tests/cluster/ceph-server.sh` starts one and runs it.
#![cfg(test)]

#[expect(dead_code, reason = "it has more than this test needs")]
#[path = "../../../catalog/tests/cluster/faults.rs"]
mod faults;
#[expect(dead_code, reason = "it has more than this test needs")]
#[path = "../data_plane/fixture.rs"]
mod fixture;
#[path = "../../../catalog/tests/cluster/memory.rs"]
mod memory;
mod moves;

use fixture::Peer;
use memory::Memory;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use weir_catalog::{
    BytesPerSecond, Catalog, Ceph, ClusterKey, ClusterPlace, LifeGuard, Minimums, Mode, NewPool,
    NewVolume, Qos, Terms, VolumeChange, create_cluster,
};
use weir_cluster::{GroupId, Right, SharedRight};
use weir_control::ServerConfig;
use weir_core::{Mono, VolumeId};
use weir_nfs::v3::wire::{
    CommitArgs, DirOpArgs3, FileHandle3, FsStatArgs, ReadArgs, RemoveArgs, Res, StableHow,
    WriteArgs,
};
use weir_server::groups::{Arrival, Groups};
use weir_server::{Bound, CephSessions, Server, confine_around};

const MIB: u64 = 1 << 20;
const GROUP: GroupId = GroupId(1);
/// The backstop of CephFS is an eighth and 1 GiB above the quota.
const BACKSTOP: u64 = (1 << 30) + MIB / 8;

/// A client of CephFS itself, to look behind the server.
struct Behind(weir_store::Ceph);

impl Behind {
    fn connect(place: &Ceph) -> Self {
        let options = weir_store::CephOptions {
            conf: place.conf.clone(),
            user: place.user.clone(),
            file_system: None,
            top: "/".to_owned(),
            mounts: 2,
            object_cache: false,
            session_seconds: 30,
            mount_seconds: 30,
        };
        Self(weir_store::Ceph::connect(&options).unwrap())
    }

    /// An extended attribute of what is at `path`; nothing if there is nothing.
    fn attribute(&self, path: &str, name: &str) -> Option<String> {
        let dealt = self.0.deal().unwrap();
        let mount = dealt.mount();
        let mut at = mount.top().unwrap();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = mount.lookup(&at, &CString::new(part).unwrap()).ok()?.0;
        }
        let mut room = [0; 256];
        let length = mount.getxattr(&at, &CString::new(name).unwrap(), &mut room).ok()?;
        Some(String::from_utf8_lossy(&room[..length]).trim_end_matches('\0').to_owned())
    }

    /// The format of the volume at `path`, if there is one.
    fn format(&self, path: &str) -> Option<String> {
        self.attribute(path, "user.weir.format")
    }
}

/// A gateway of a cluster with one group.
struct Gateway {
    config: ServerConfig,
    server: Server,
    groups: Groups,
    sessions: CephSessions,
    place: Ceph,
    behind: Behind,
    _directory: Arc<tempfile::TempDir>,
}

impl Gateway {
    /// Two gateways of a new cluster, whose process has given up its privileges.
    fn start(conf: PathBuf) -> [Self; 2] {
        let place = Ceph { conf, user: "admin".to_owned() };
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let config = |gateway: &str| ServerConfig {
            data: directory.path().join(gateway),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            shutdown_grace: Duration::from_secs(60),
            ..ServerConfig::default()
        };
        let store = Arc::new(Memory::default());
        let cluster = |gateway: &str| ClusterPlace {
            store: Arc::clone(&store) as _,
            cluster: "c".to_owned(),
            gateway: gateway.to_owned(),
            life: LifeGuard::default(),
            key: ClusterKey::new([1; 32]),
        };
        create_cluster(&cluster("operator")).unwrap();
        let aside = directory.path().join("aside");
        let operator =
            Catalog::open_in_cluster(&aside, Minimums::default(), cluster("operator")).unwrap();
        operator.add_address("10.0.0.1/24".parse().unwrap(), Mode::Commit).unwrap();
        let open = || {
            ["first", "second"].map(|gateway| {
                (gateway, CephSessions::connect(place.clone(), 2).unwrap(), Behind::connect(&place))
            })
        };
        let opened = confine_around(&config("first"), open).unwrap();
        opened.map(|(gateway, sessions, behind)| {
            let (config, shared) = (config(gateway), cluster(gateway));
            let right = Arc::new(SharedRight::default());
            right.set(Right::until(Mono::from_secs(1 << 32)));
            let catalog =
                Catalog::open_in_cluster(&config.data, config.minimums(), shared).unwrap();
            let bound = Bound::open(&config).unwrap();
            let ceph = Some(sessions.clone());
            let server = Server::start_shared(&config, bound, catalog, right, ceph).unwrap();
            let groups = server.groups(&config);
            let (place, _directory) = (place.clone(), Arc::clone(&directory));
            Self { config, server, groups, sessions, place, behind, _directory }
        })
    }

    fn new_pool(&self, name: &str) -> NewPool {
        NewPool {
            name: name.to_owned(),
            level: "ultra".to_owned(),
            size_bytes: 1000 << 40,
            qos: Qos::Manual,
            directory: Some(Path::new("/").join(name)),
            ceph: Some(self.place.clone()),
            ..NewPool::default()
        }
    }

    fn create(&self) {
        let catalog = self.server.catalog();
        for pool in ["one", "two"] {
            catalog.create_pool(&self.new_pool(pool), Mode::Commit).unwrap();
        }
        let throughput = Some(BytesPerSecond::from_mib(10_000));
        let volume = NewVolume {
            name: "v".to_owned(),
            pool: "one".to_owned(),
            quota_bytes: MIB,
            terms: Terms { throughput, ..Terms::default() },
            ..NewVolume::default()
        };
        catalog.create_volume(&volume, Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }

    fn adopt(&self) {
        self.groups.adopt(GROUP, &BTreeSet::new(), Arrival::New).unwrap();
    }

    fn change(&self, change: &VolumeChange) {
        let catalog = self.server.catalog();
        let live = self.server.plane().volume_live(VolumeId(1)).unwrap();
        catalog.change_volume("v", change, Some(live.used_bytes), Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }

    fn connect(&self) -> Peer {
        Peer::new(TcpStream::connect(self.server.addresses()[0]).unwrap())
    }
}

/// Writes `data` at `offset`, and makes it stable. False if the quota does not allow it.
fn write(peer: &mut Peer, file: &[u8], offset: u64, data: &[u8]) -> bool {
    let count = u32::try_from(data.len()).unwrap();
    let (stable, file) = (StableHow::Unstable, FileHandle3(file));
    peer.send(&WriteArgs { file, offset, count, stable, data });
    let record = peer.record();
    match weir_nfs::client::Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap() {
        Res::Ok(done) => assert_eq!(done.count, count),
        Res::Fail(_, _) => return false,
    }
    peer.send(&CommitArgs { file, offset: 0, count: 0 });
    let record = peer.record();
    let done = weir_nfs::client::Reply::parse(&record).unwrap();
    matches!(done.results::<CommitArgs<'_>>().unwrap(), Res::Ok(_))
}

/// The data at the start of a file, if it is there.
fn read(peer: &mut Peer, file: &[u8], count: u32) -> Option<Vec<u8>> {
    peer.send(&ReadArgs { file: FileHandle3(file), offset: 0, count });
    let record = peer.record();
    let done = weir_nfs::client::Reply::parse(&record).unwrap();
    match done.results::<ReadArgs<'_>>().unwrap() {
        Res::Ok(read) => Some(read.data.to_vec()),
        Res::Fail(_, _) => None,
    }
}

fn remove(peer: &mut Peer, dir: &[u8], name: &str) -> bool {
    let object = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
    peer.send(&RemoveArgs { object });
    let record = peer.record();
    let done = weir_nfs::client::Reply::parse(&record).unwrap();
    matches!(done.results::<RemoveArgs<'_>>().unwrap(), Res::Ok(_))
}

/// The size of the volume as clients see it, bytes.
fn size(peer: &mut Peer, root: &[u8]) -> u64 {
    peer.send(&FsStatArgs { root: FileHandle3(root) });
    let record = peer.record();
    let done = weir_nfs::client::Reply::parse(&record).unwrap();
    match done.results::<FsStatArgs<'_>>().unwrap() {
        Res::Ok(found) => found.total_bytes,
        Res::Fail(status, _) => panic!("{status:?}"),
    }
}

/// Waits until `done`; the test hangs, and so fails, if that never comes.
fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        sleep(Duration::from_millis(20));
    }
}

/// The lines of this thread, or of another, about its privileges.
fn privileges(thread: &Path) -> Vec<String> {
    let status = std::fs::read_to_string(thread.join("status")).unwrap();
    let is_one = |line: &&str| {
        ["CapPrm:", "CapBnd:", "NoNewPrivs:", "Seccomp:"].iter().any(|one| line.starts_with(one))
    };
    status.lines().filter(is_one).map(str::to_owned).collect()
}

/// The threads of Ceph's libraries too. The first thread is that of the test program.
fn every_thread_has_given_up_its_privileges() {
    let own = privileges(Path::new("/proc/thread-self"));
    assert!(own.iter().any(|line| line == "Seccomp:\t2"), "{own:?}");
    let first = std::process::id().to_string();
    for thread in std::fs::read_dir("/proc/self/task").unwrap().map(Result::unwrap) {
        if thread.file_name() != *first {
            let name = std::fs::read_to_string(thread.path().join("comm")).unwrap();
            assert_eq!(privileges(&thread.path()), own, "{name}");
        }
    }
}

fn pool_is_bound_to_the_ceph_of_the_gateway(gateway: &Gateway) {
    let other = |ceph: Ceph| {
        let pool = NewPool { ceph: Some(ceph), ..gateway.new_pool("x") };
        gateway.server.catalog().create_pool(&pool, Mode::Commit).unwrap_err().code()
    };
    assert_eq!(other(Ceph { conf: "/else.conf".into(), ..gateway.place.clone() }), "other_ceph");
    assert_eq!(other(Ceph { user: "else".to_owned(), ..gateway.place.clone() }), "other_ceph");
}

fn files_are_served_within_the_quota(gateway: &Gateway) {
    let mut peer = gateway.connect();
    let root = peer.mount("/v");
    let file = peer.create(&root, "f");
    assert!(write(&mut peer, &file, 0, b"on CephFS"));
    assert_eq!(read(&mut peer, &file, 100).unwrap(), b"on CephFS");
    assert!(!write(&mut peer, &file, MIB - 10, &[1; 11]), "more than the quota");
    assert_eq!(size(&mut peer, &root), MIB);
    let backstop = || gateway.behind.attribute("/one/volumes/1/root", "ceph.quota.max_bytes");
    wait_until(|| backstop() == Some((BACKSTOP + MIB).to_string()));
    let more = VolumeChange { quota_bytes: Some(2 * MIB), ..VolumeChange::default() };
    gateway.change(&more);
    assert!(write(&mut peer, &file, MIB - 10, &[1; 11]));
    assert_eq!(size(&mut peer, &root), 2 * MIB);
    wait_until(|| backstop() == Some((BACKSTOP + MIB / 8 + 2 * MIB).to_string()));
    let other = peer.create(&root, "g");
    assert!(remove(&mut peer, &root, "g") && read(&mut peer, &other, 1).is_none());
    assert!(!remove(&mut peer, &root, "g"));
}

fn a_volume_moves_between_pools_while_it_is_served_and_while_it_is_not(gateway: &Gateway) {
    let mut peer = gateway.connect();
    let root = peer.mount("/v");
    let file = peer.create(&root, "f");
    let to = |pool: &str| VolumeChange { pool: Some(pool.to_owned()), ..VolumeChange::default() };
    gateway.change(&to("two"));
    assert_eq!(gateway.behind.format("/one/volumes/1"), None);
    assert!(gateway.behind.format("/two/volumes/1").is_some());
    assert_eq!(read(&mut peer, &file, 9).unwrap(), b"on CephFS");
    gateway.groups.stop(GROUP, &BTreeSet::new(), None).unwrap();
    let catalog = gateway.server.catalog();
    catalog.change_volume("v", &to("one"), None, Mode::Commit).unwrap();
    gateway.server.plane().apply(catalog.snapshot()).unwrap();
    assert!(gateway.behind.format("/two/volumes/1").is_some(), "nobody serves it");
    let snapshot = catalog.snapshot();
    let holds = |pool: &str| {
        gateway.server.plane().holds_volumes(snapshot.pool_named(pool).unwrap()).unwrap()
    };
    assert_eq!((holds("one"), holds("two")), (false, true), "\"two\" must not be deleted");
    gateway.adopt();
    assert!(gateway.behind.format("/one/volumes/1").is_some());
    let live = gateway.server.plane().volume_live(VolumeId(1)).unwrap();
    assert_eq!((live.used_bytes, live.used_exact), (MIB + 1, true), "it was closed");
    let mut peer = gateway.connect();
    assert_eq!(read(&mut peer, &file, 9).unwrap(), b"on CephFS");
}

fn other_gateways_are_fenced(gateway: &Gateway) {
    // A life that does not exist any more.
    let gone = "127.0.0.1:0/7".parse().unwrap();
    let hour = Duration::from_secs(3600);
    let before = gateway.sessions.blocklist(&[], hour).unwrap();
    let epoch = gateway.sessions.blocklist(&[gone], hour).unwrap();
    assert!(epoch > before, "{before} {epoch}");
    gateway.sessions.wait_for_epoch(epoch).unwrap();
    let ids = gateway.sessions.ids().unwrap();
    assert!(ids.len() == 2 && ids.iter().all(|one| one.address.ip().is_loopback()), "{ids:?}");
    assert!(!gateway.sessions.is_lost());
}

/// Ends a gateway that has no volume.
fn the_second_gateway_stops(gateway: Gateway) {
    let Gateway { server, groups, sessions, behind, _directory, .. } = gateway;
    server.stop().unwrap();
    drop(groups);
    sessions.end(Duration::from_secs(60));
    behind.0.disconnect();
}

/// Deletes the volume, serves the API, which removes its files, and stops.
fn the_files_of_a_deleted_volume_are_removed(gateway: Gateway) {
    let Gateway { config, server, groups, sessions, behind, _directory, .. } = gateway;
    let catalog = Arc::clone(server.catalog());
    catalog.delete_volume("v", Mode::Commit).unwrap();
    server.plane().apply(catalog.snapshot()).unwrap();
    assert_eq!(catalog.condemned().unwrap().len(), 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let gone = async {
        while !catalog.condemned().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    runtime.block_on(server.run(&config, gone)).unwrap();
    assert_eq!(behind.format("/one/volumes/1"), None);
    assert!(behind.attribute("/one", "user.weir.pool").is_some());
    drop((groups, catalog));
    sessions.end(Duration::from_secs(60));
    behind.0.disconnect();
}

#[test]
fn a_gateway_serves_volumes_on_cephfs() {
    let Some(conf) = std::env::var_os("WEIR_CEPH_CONF") else {
        eprintln!("LEFT OUT: WEIR_CEPH_CONF names no cluster (tests/cluster/ceph.py starts one)");
        return;
    };
    let [gateway, second] = Gateway::start(conf.into());
    every_thread_has_given_up_its_privileges();
    pool_is_bound_to_the_ceph_of_the_gateway(&gateway);
    gateway.create();
    gateway.adopt();
    files_are_served_within_the_quota(&gateway);
    a_volume_moves_between_pools_while_it_is_served_and_while_it_is_not(&gateway);
    moves::what_clients_hold_moves_with_the_group(&gateway, &second);
    other_gateways_are_fenced(&gateway);
    the_second_gateway_stops(second);
    the_files_of_a_deleted_volume_are_removed(gateway);
}
