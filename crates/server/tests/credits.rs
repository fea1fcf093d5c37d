//! Credits for bursts, over restarts: kept at a clean stop and at intervals, and after a crash
//! never more than there were.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;
use weir_catalog::{
    Catalog, Iops, Mode, NewPool, NewVolume, PoolChange, Qos, Terms, TermsChange, VolumeChange,
};
use weir_control::ServerConfig;
use weir_core::VolumeId;
use weir_server::Server;

const GIB: u64 = 1 << 30;
/// Of a volume that provisions 3,000 IOPS.
const FULL: u64 = 25_200_000;

struct Bed {
    config: ServerConfig,
    volume: VolumeId,
    _directory: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            shutdown_grace: Duration::from_secs(60),
            ..ServerConfig::default()
        };
        let bed = Self { config, volume: VolumeId(1), _directory: directory };
        let catalog = bed.catalog();
        let (name, level, qos) = ("p".to_owned(), "standard".to_owned(), Qos::ProvisionedV2);
        let pool = NewPool { name, level, size_bytes: 1024 * GIB, qos, ..NewPool::default() };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        let (name, pool) = ("v".to_owned(), "p".to_owned());
        let iops = Some(Iops(3000));
        let volume = NewVolume {
            name,
            pool,
            quota_bytes: 64 * GIB,
            terms: Terms { iops, ..Terms::default() },
            ..NewVolume::default()
        };
        catalog.create_volume(&volume, Mode::Commit).unwrap();
        bed
    }

    /// The catalogue while no server runs.
    fn catalog(&self) -> Catalog {
        Catalog::open_with(&self.config.data, self.config.minimums()).unwrap()
    }

    fn start(&self) -> Server {
        Server::start(&self.config).unwrap()
    }

    fn left(&self, server: &Server) -> Option<u64> {
        server.plane().volume_live(self.volume).unwrap().credits
    }
}

#[test]
fn credits_are_full_at_birth_and_survive_a_stop() {
    let bed = Bed::new();
    let server = bed.start();
    assert_eq!(bed.left(&server), Some(FULL));
    server.stop().unwrap();
    assert_eq!(bed.catalog().credits().unwrap(), BTreeMap::from([(bed.volume, FULL)]));
    // This leaves the volume as if most credits had been spent. They are earned at 3,000 a second
    // from then on.
    bed.catalog().keep_credits(&BTreeMap::from([(bed.volume, 1000)])).unwrap();
    for _ in 0..2 {
        let server = bed.start();
        let left = bed.left(&server).unwrap();
        assert!((1000..FULL).contains(&left), "{left}");
        server.stop().unwrap();
    }
    let kept = bed.catalog().credits().unwrap()[&bed.volume];
    assert!((1000..FULL).contains(&kept), "{kept}");
}

#[test]
fn a_volume_that_comes_to_have_bursts_begins_with_full_credits() {
    let bed = Bed::new();
    bed.catalog().keep_credits(&BTreeMap::from([(bed.volume, 1000)])).unwrap();
    let server = bed.start();
    let to = |qos| {
        let change = PoolChange { qos: Some(qos), ..PoolChange::default() };
        let done = server.catalog().change_pool("p", &change, Mode::Commit).unwrap();
        server.plane().apply(done.snapshot).unwrap();
    };
    to(Qos::Auto);
    assert_eq!(bed.left(&server), None);
    to(Qos::ProvisionedV1);
    // 64 GiB provision 3,064 IOPS and bursts of 10,000.
    assert_eq!(bed.left(&server), Some((10_000 - 3_064) * 3600));
    to(Qos::Auto);
    server.stop().unwrap();
    assert_eq!(bed.catalog().credits().unwrap(), BTreeMap::new());
}

/// Whatever is spent by the new limits before credits are kept next is as good as spent when they
/// come into force.
#[test]
fn credits_are_kept_ahead_before_they_are_spent_faster() {
    let bed = Bed::new();
    let server = bed.start();
    let kept = |to: VolumeChange| {
        let done = server.catalog().change_volume("v", &to, None, Mode::Commit).unwrap();
        server.plane().apply(done.snapshot).unwrap();
        server.catalog().credits().unwrap().get(&bed.volume).copied()
    };
    let iops = |iops| VolumeChange {
        terms: TermsChange { iops: Some(Some(Iops(iops))), ..TermsChange::default() },
        ..VolumeChange::default()
    };
    // 20 s of a burst of three times the base.
    let faster = 20 * 2 * 34_133;
    assert_eq!(kept(iops(34_133)), Some(FULL - faster));
    // The more of what was and will be spent, of what there may be by both. (The catch-up of a
    // higher rate, 50 ms, isn't filled up yet.)
    let left = kept(iops(3_000)).unwrap();
    assert!((FULL - faster - 34_133 / 20..=FULL - faster).contains(&left), "{left}");
    // Without a change for the credits nothing is kept.
    server.catalog().keep_credits(&BTreeMap::from([(bed.volume, 7)])).unwrap();
    let quota = VolumeChange { quota_bytes: Some(65 * GIB), ..VolumeChange::default() };
    assert_eq!(kept(quota), Some(7));
    server.stop().unwrap();
}
