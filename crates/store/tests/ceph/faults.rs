//! Daemons of the cluster that end and come back, and a cluster that is full. These tests disturb
//! all others, so they run one at a time and after them (`tests/cluster/ceph-store.sh`); each
//! leaves the cluster whole.

use crate::common::{Bed, Object, ROOT, block_on, conf, connect, new_path, options};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use weir_core::store::Stability;
use weir_core::{FsError, FsResult, Shared, Store};
use weir_store::CephStore;

/// A cluster that is disturbed, and a volume on it.
struct Cluster {
    directory: String,
    bed: Bed,
}

impl Cluster {
    fn open() -> Option<Self> {
        let conf = conf()?;
        let directory = conf.parent().unwrap().to_str().unwrap().to_owned();
        let bed = Bed::open(Arc::new(connect(conf, 2)), new_path(), options());
        Some(Self { directory, bed })
    }

    /// Has `ceph.py` do something with the cluster.
    fn carry_out(&self, what: &str, arguments: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cluster/ceph.py");
        let mut command = Command::new(script);
        let done = command.args([what, &self.directory]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{what} {arguments:?}: {said}");
    }

    /// Runs `work` while `daemon` is gone, and brings it back meanwhile.
    fn without<T: Send>(&self, daemon: &str, work: impl FnOnce(&Bed) -> T + Send) -> T {
        self.carry_out("kill", &[daemon]);
        std::thread::scope(|threads| {
            let work = threads.spawn(|| work(&self.bed));
            self.carry_out("start", &[daemon]);
            work.join().unwrap()
        })
    }

    /// Sets the part of an OSD's room at which it counts as full.
    fn fill_at(&self, part: &str) {
        for kind in ["nearfull", "backfillfull", "full"] {
            let prefix = format!("osd set-{kind}-ratio");
            self.carry_out("tell", &[&prefix, &format!("ratio={part}")]);
        }
    }
}

fn write_stable(bed: &Bed, file: &Object, data: &[u8]) -> FsResult<()> {
    let data = Shared::from(data.to_vec());
    block_on(bed.store.write(file, 0, data, Stability::FileSync)).map(drop)
}

/// The data of a file as another gateway reads it, which has nothing in memory.
fn read_elsewhere(bed: &Bed, file: &Object) -> Vec<u8> {
    let other = connect(conf().unwrap(), 2);
    let store = CephStore::open(&other, &bed.path, &options()).unwrap();
    let same = block_on(store.resolve(&bed.store.key(file))).unwrap();
    let data = block_on(store.read(&same, 0, 100, Vec::new())).unwrap().out;
    drop((store, same));
    other.disconnect();
    data
}

#[test]
fn while_a_metadata_server_is_gone_names_wait_and_nothing_is_lost() {
    let Some(cluster) = Cluster::open() else { return };
    let bed = &cluster.bed;
    let file = bed.create(&bed.root(), b"before", 0o644, &ROOT).unwrap();
    bed.write(&file, 0, b"unstable").unwrap();
    let made = cluster.without("mds.a", |bed| bed.create(&bed.root(), b"meanwhile", 0o644, &ROOT));
    let made = made.unwrap();
    assert_eq!(bed.lookup(&bed.root(), b"meanwhile").unwrap().key(), made.key());
    block_on(bed.store.commit(&file)).unwrap();
    assert_eq!(read_elsewhere(bed, &file), b"unstable");
    assert_eq!((bed.store.lost_writes(), bed.ceph.is_lost()), (0, false));
    drop((file, made));
    cluster.bed.end();
}

#[test]
fn while_an_osd_is_gone_data_waits_and_nothing_is_lost() {
    let Some(cluster) = Cluster::open() else { return };
    let bed = &cluster.bed;
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    bed.write(&file, 0, b"unstable").unwrap();
    cluster.without("osd.0", |bed| block_on(bed.store.commit(&file))).unwrap();
    assert_eq!(read_elsewhere(bed, &file), b"unstable");
    cluster.without("osd.0", |bed| write_stable(bed, &file, b"stable  ")).unwrap();
    assert_eq!(read_elsewhere(bed, &file), b"stable  ");
    assert_eq!(bed.store.lost_writes(), 0);
    drop(file);
    cluster.bed.end();
}

#[test]
fn while_a_monitor_is_gone_gateways_go_on() {
    let Some(cluster) = Cluster::open() else { return };
    let bed = &cluster.bed;
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    cluster.without("mon.a", |bed| {
        write_stable(bed, &file, b"data").unwrap();
        bed.create(&bed.root(), b"g", 0o644, &ROOT).unwrap();
    });
    assert_eq!(read_elsewhere(bed, &file), b"data");
    // The manager reports the room to the monitors every few seconds; until then it may be that of
    // a cluster that was full.
    let mut room =
        std::iter::repeat_with(|| block_on(bed.store.fs_stat()).unwrap().available_bytes);
    assert!(room.any(|bytes| bytes > 0));
    assert_eq!(bed.store.lost_writes(), 0);
    drop(file);
    cluster.bed.end();
}

#[test]
fn a_full_cluster_refuses_data_takes_removals_and_recovers() {
    let Some(cluster) = Cluster::open() else { return };
    let bed = &cluster.bed;
    let root = bed.root();
    let file = bed.create(&root, b"f", 0o644, &ROOT).unwrap();
    let other = bed.create(&root, b"other", 0o644, &ROOT).unwrap();
    write_stable(bed, &other, b"in the way").unwrap();
    cluster.fill_at("0.0001");
    // An OSD notices a moment later.
    let refused =
        std::iter::repeat_with(|| write_stable(bed, &file, b"too much")).find_map(Result::err);
    assert_eq!(refused, Some(FsError::NoSpace));
    bed.remove(&root, b"other").unwrap();
    cluster.fill_at("0.95");
    let again = std::iter::repeat_with(|| write_stable(bed, &file, b"enough")).find(|done| {
        // Every refusal is this one.
        assert!(matches!(done, Ok(()) | Err(FsError::NoSpace)), "{done:?}");
        done.is_ok()
    });
    assert!(again.is_some());
    assert_eq!(&read_elsewhere(bed, &file)[..6], b"enough");
    assert!(!bed.ceph.is_lost());
    drop((root, file, other));
    cluster.bed.end();
}
