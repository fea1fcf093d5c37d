//! Credits for bursts, over restarts: kept at a clean stop and at intervals, and after a crash never
//! more than there were.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;
use weir_catalog::{Catalog, Mode, NewPool, NewVolume, PoolChange, Qos};
use weir_core::VolumeId;
use weir_server::{Server, ServerConfig};

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
        let iops = Some(weir_catalog::Iops(3000));
        let volume = NewVolume { name, pool, quota_bytes: 64 * GIB, iops, ..NewVolume::default() };
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
    // As if most of them had been spent. They are earned at 3,000 a second from then on.
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
