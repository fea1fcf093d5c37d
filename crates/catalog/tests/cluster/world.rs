//! Clusters of gateways over a store that a test harness gives (`crate::shared`), with faults.

use crate::faults::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_catalog::{
    Catalog, CatalogError, Ceph, ClusterKey, ClusterPlace, LifeGuard, Minimums, Mode, NewPool,
    NewVolume, Qos, create_cluster,
};

pub(crate) const GIB: u64 = 1 << 30;

/// A cluster with one address and without gateways.
pub(crate) struct Cluster {
    pub(crate) store: Arc<Store>,
    pub(crate) base: tempfile::TempDir,
    /// The name, unlike that of any other in one store.
    pub(crate) name: String,
    key: ClusterKey,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("c{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let cluster = Self::without_catalogue(name, [1; 32]);
        create_cluster(&cluster.place("first")).unwrap();
        let first = cluster.gateway("first");
        first.add_address("10.0.0.1/24".parse().unwrap(), Mode::Commit).unwrap();
        drop(first);
        cluster
    }

    /// A cluster of which the store has nothing.
    pub(crate) fn without_catalogue(name: String, key: [u8; 32]) -> Self {
        let store = Arc::new(Store::new(crate::shared(&name)));
        let base = tempfile::tempdir().unwrap();
        Self { store, base, name, key: ClusterKey::new(key) }
    }

    /// The key in the store of `path`.
    pub(crate) fn key(&self, path: &str) -> String {
        format!("/weir/{}/catalog/{path}", self.name)
    }

    pub(crate) fn place(&self, gateway: &str) -> ClusterPlace {
        ClusterPlace {
            store: Arc::clone(&self.store) as _,
            cluster: self.name.clone(),
            gateway: gateway.to_owned(),
            life: LifeGuard::default(),
            key: self.key.clone(),
        }
    }

    pub(crate) fn open(&self, gateway: &str) -> Result<Catalog, CatalogError> {
        let directory = self.base.path().join(gateway);
        Catalog::open_in_cluster(&directory, Minimums::default(), self.place(gateway))
    }

    pub(crate) fn gateway(&self, gateway: &str) -> Catalog {
        self.open(gateway).unwrap()
    }

    /// The values by their keys, of this cluster alone.
    pub(crate) fn dump(&self) -> BTreeMap<String, String> {
        self.store.dump(&format!("/weir/{}/", self.name))
    }

    /// The rows in the store, by their paths.
    pub(crate) fn rows(&self) -> BTreeMap<String, String> {
        let rows = self.key("");
        let path = |key: &str| key.strip_prefix(&rows).unwrap_or_default().to_owned();
        let found = self.dump().into_iter().map(|(key, value)| (path(&key), value));
        found.filter(|(path, _)| path.starts_with("rows/")).collect()
    }
}

/// The CephFS of all clusters here.
pub(crate) fn ceph() -> Ceph {
    Ceph { conf: "/etc/ceph/ceph.conf".into(), user: "weir".to_owned() }
}

/// Both follow, and have the same snapshot.
pub(crate) fn same(one: &Catalog, other: &Catalog) {
    one.follow().unwrap();
    other.follow().unwrap();
    assert_eq!(one.snapshot(), other.snapshot());
}

pub(crate) fn pool(name: &str) -> NewPool {
    NewPool {
        name: name.to_owned(),
        level: "standard".to_owned(),
        size_bytes: 1024 * GIB,
        qos: Qos::Auto,
        directory: Some(format!("/weir/{name}").into()),
        ceph: Some(ceph()),
        ..NewPool::default()
    }
}

pub(crate) fn volume(name: &str, pool: &str) -> NewVolume {
    let (name, pool) = (name.to_owned(), pool.to_owned());
    NewVolume { name, pool, quota_bytes: GIB, ..NewVolume::default() }
}
