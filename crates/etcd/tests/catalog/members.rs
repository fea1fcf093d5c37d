//! An etcd of three members (`tests/cluster/etcd.py`), and the tools of its operator.

use crate::faults::Shared;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use weir_catalog::{Changes, ClusterStore, Decision, Guard, Listing, Operation, Pair, StoreError};
use weir_etcd::{Connection, EtcdStore, Settings};

/// The runtime of all connections, in a thread of its own.
pub(crate) static RUNTIME: LazyLock<Handle> = LazyLock::new(|| {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        tell.send(runtime.handle().clone()).unwrap();
        runtime.block_on(std::future::pending::<()>());
    });
    told.recv().unwrap()
});

fn script(words: &[&str]) -> Command {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cluster/etcd.py");
    let mut command = Command::new(path);
    command.args(words);
    command
}

/// The output of a program that has to succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

/// An etcd that ends with this value, or with its process.
pub(crate) struct Etcd {
    process: Child,
    directory: String,
    endpoints: Vec<String>,
}

impl Etcd {
    pub(crate) fn start() -> Self {
        let mut process =
            script(&["hold"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut line = || lines.next().expect("etcd does not start").unwrap();
        let (directory, endpoints) = (line(), line());
        let endpoints = endpoints.split(',').map(str::to_owned).collect();
        Self { process, directory, endpoints }
    }

    pub(crate) fn connection(&self) -> Connection {
        let endpoints = self.endpoints.clone();
        Connection::new(&Settings { endpoints, ..Settings::default() }).unwrap()
    }

    /// The store of a cluster, over a connection of its own.
    pub(crate) fn store(&self, cluster: &str) -> Real {
        let store = EtcdStore::new(RUNTIME.clone(), self.connection(), cluster);
        Real { store, endpoints: self.endpoints.join(",") }
    }

    /// The number of the member that leads.
    pub(crate) fn leader(&self) -> usize {
        output(&mut script(&["leader", &self.directory])).trim().parse().unwrap()
    }

    /// Sends STOP, CONT or KILL to a member.
    pub(crate) fn signal(&self, member: usize, signal: &str) {
        output(&mut script(&["signal", &self.directory, &member.to_string(), signal]));
    }

    /// Starts a member that was killed.
    pub(crate) fn run(&self, member: usize) {
        output(&mut script(&["start", &self.directory, &member.to_string()]));
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ended = self.process.wait();
    }
}

/// A store in etcd, and etcd's own program beside it.
pub(crate) struct Real {
    pub(crate) store: EtcdStore,
    endpoints: String,
}

impl Real {
    pub(crate) fn etcdctl<W: AsRef<OsStr>>(&self, words: &[W]) -> String {
        let mut command = Command::new("etcdctl");
        let patience = ["--dial-timeout=30s", "--command-timeout=60s"];
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoints]).args(patience);
        output(command.args(words))
    }

    fn revision(&self) -> u64 {
        self.store.range("/none/").unwrap().revision
    }
}

impl Shared for Real {
    fn compact(&self) {
        // Another test may have compacted a later revision.
        let mut command = Command::new("etcdctl");
        let revision = self.revision().to_string();
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoints]);
        let output = command.args(["compaction", &revision]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || words.contains("has been compacted"), "{words}");
    }

    fn put(&self, key: &str, value: &str) -> u64 {
        self.etcdctl(&["put", "--", key, value]);
        self.store.get(key).unwrap().unwrap().revision
    }

    fn delete(&self, key: &str) {
        self.etcdctl(&["del", "--", key]);
    }

    fn dump(&self, prefix: &str) -> BTreeMap<String, String> {
        let pairs = self.store.range(prefix).unwrap().pairs.into_iter();
        pairs.map(|pair| (pair.key, String::from_utf8(pair.value).unwrap())).collect()
    }
}

impl ClusterStore for Real {
    fn get(&self, key: &str) -> Result<Option<Pair>, StoreError> {
        self.store.get(key)
    }

    fn range(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.store.range(prefix)
    }

    fn commit(&self, guards: &[Guard], operations: &[Operation]) -> Result<Decision, StoreError> {
        self.store.commit(guards, operations)
    }

    fn changes(&self, prefix: &str, after: u64) -> Result<Changes, StoreError> {
        self.store.changes(prefix, after)
    }

    fn wait(&self, prefix: &str, after: u64, within: Duration) {
        self.store.wait(prefix, after, within);
    }
}
