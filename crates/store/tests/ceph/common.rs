//! Volumes to test on: each in a directory of its own of the cluster's CephFS.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_core::store::{CreateHow, MakeKind, Stability};
pub(crate) use weir_core::testing::block_on;
use weir_core::{Attr, Credentials, FsResult, Name, SetAttr, Shared, Store, Timestamp};
use weir_store::{
    Ceph, CephObject, CephOptions, CephStore, Descriptors, Durability, Options, Pool,
    prepare_process,
};

pub(crate) type Object = Arc<CephObject>;

pub(crate) const ROOT: Credentials = Credentials::ROOT;

/// A time long ago that the store keeps: CephFS has none before 1970.
pub(crate) const OLD_TIME: Timestamp = Timestamp { secs: 5, nanos: 250_000_000 };
/// A directory on CephFS has one link, whatever is in it.
pub(crate) const COUNTS_SUBDIRECTORIES: bool = false;
/// CephFS has no map of holes.
pub(crate) const KNOWS_HOLES: bool = false;

/// A volume on CephFS.
pub(crate) struct Bed {
    pub(crate) store: CephStore,
    pub(crate) ceph: Arc<Ceph>,
    pub(crate) path: String,
    pub(crate) options: Options,
    pub(crate) file_system: &'static str,
}

/// The configuration file of the cluster. Without one the test is left out, and says so.
pub(crate) fn conf() -> Option<PathBuf> {
    let conf = std::env::var_os("WEIR_CEPH_CONF").map(PathBuf::from);
    if conf.is_none() {
        eprintln!("LEFT OUT: WEIR_CEPH_CONF names no cluster (tests/cluster/ceph.py starts one)");
    }
    conf
}

/// A gateway's sessions with the cluster.
pub(crate) fn connect(conf: PathBuf, mounts: usize) -> Ceph {
    connect_as(conf, "admin", mounts)
}

/// The sessions of a gateway that is this user of Ceph.
pub(crate) fn connect_as(conf: PathBuf, user: &str, mounts: usize) -> Ceph {
    prepare_process().unwrap();
    Ceph::connect(&CephOptions {
        conf,
        user: user.to_owned(),
        file_system: None,
        top: "/".to_owned(),
        mounts,
        object_cache: true,
        session_seconds: 30,
        mount_seconds: 30,
    })
    .unwrap()
}

/// A path that no other test has, nor an earlier run.
pub(crate) fn new_path() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("/tests/{now:x}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed))
}

pub(crate) fn options() -> Options {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| Pool::new(64).unwrap());
    Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 1024,
        descriptors: Descriptors::new(1024),
        pool: Arc::clone(pool),
    }
}

/// Runs `case` on a volume.
pub(crate) fn everywhere(case: impl Fn(&Bed)) {
    everywhere_with(&options(), case);
}

/// Runs `case` on a volume with options of the test's own.
pub(crate) fn everywhere_with(options: &Options, case: impl Fn(&Bed)) {
    let Some(conf) = conf() else { return };
    let bed = Bed::open(Arc::new(connect(conf, 2)), new_path(), options.clone());
    case(&bed);
    bed.end();
}

impl Bed {
    pub(crate) fn open(ceph: Arc<Ceph>, path: String, options: Options) -> Self {
        let store = CephStore::open(&ceph, &path, &options).unwrap();
        Self { store, ceph, path, options, file_system: "CephFS" }
    }

    /// Unmounts, so that the process does not end while threads of the library run.
    pub(crate) fn end(self) {
        let Self { store, ceph, .. } = self;
        drop(store);
        if let Ok(ceph) = Arc::try_unwrap(ceph) {
            ceph.disconnect();
        }
    }

    /// A second life of the same volume.
    pub(crate) fn reopen(&self) -> CephStore {
        CephStore::open(&self.ceph, &self.path, &self.options).unwrap()
    }

    pub(crate) fn root(&self) -> Object {
        self.store.root()
    }

    /// Is there something of this name in the root, as another store sees it?
    pub(crate) fn is_there(&self, name: &str) -> bool {
        let again = self.reopen();
        block_on(again.lookup(&again.root(), Name::new(name.as_bytes()).unwrap())).is_ok()
    }

    pub(crate) fn create(
        &self,
        dir: &Object,
        name: &[u8],
        mode: u32,
        cred: &Credentials,
    ) -> FsResult<Object> {
        let how = CreateHow::Guarded(SetAttr { mode: Some(mode), ..SetAttr::default() });
        Ok(block_on(self.store.create(dir, Name::new(name)?, &how, cred))?.object)
    }

    pub(crate) fn make(&self, dir: &Object, name: &[u8], kind: &MakeKind) -> FsResult<Object> {
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        Ok(block_on(self.store.make(dir, Name::new(name)?, kind, &set, &ROOT))?.object)
    }

    pub(crate) fn lookup(&self, dir: &Object, name: &[u8]) -> FsResult<Object> {
        Ok(block_on(self.store.lookup(dir, Name::new(name)?))?.0)
    }

    pub(crate) fn remove(&self, dir: &Object, name: &[u8]) -> FsResult<()> {
        block_on(self.store.remove(dir, Name::new(name)?, &ROOT)).map(drop)
    }

    pub(crate) fn attr(&self, object: &Object) -> Attr {
        block_on(self.store.attr(object)).unwrap()
    }

    pub(crate) fn write(&self, file: &Object, offset: u64, data: &[u8]) -> FsResult<u32> {
        let data = Shared::from(data.to_vec());
        Ok(block_on(self.store.write(file, offset, data, Stability::Unstable))?.count)
    }

    pub(crate) fn read(&self, file: &Object, offset: u64, count: u32) -> FsResult<(Vec<u8>, bool)> {
        let done = block_on(self.store.read(file, offset, count, Vec::new()))?;
        assert_eq!(done.out.len(), done.count as usize);
        Ok((done.out, done.eof))
    }

    pub(crate) fn set(&self, object: &Object, set: &SetAttr, cred: &Credentials) -> FsResult<()> {
        block_on(self.store.set_attr(object, set, None, cred)).map(drop)
    }

    /// Lets everybody work in `dir`.
    pub(crate) fn open_to_all(&self, dir: &Object) {
        let set = SetAttr { mode: Some(0o777), ..SetAttr::default() };
        self.set(dir, &set, &ROOT).unwrap();
    }
}
