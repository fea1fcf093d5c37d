//! The commands that make machines gateways of a cluster, over an etcd of three members.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

#[path = "gateway/transfer.rs"]
mod transfer;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;
use weir_control::config::GatewayConfig;
use weir_links::KeyFile;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// The URLs of an etcd that ends with this process.
static ETCD: LazyLock<(Child, String)> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cluster/etcd.py");
    let mut command = Command::new(script);
    command.arg("hold").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let endpoints = lines.map(Result::unwrap).nth(1).unwrap();
    let urls: Vec<_> = endpoints.split(',').map(|place| format!("http://{place}")).collect();
    (process, urls.join(","))
});

/// A directory with the files of some gateways.
struct Machines {
    base: TempDir,
    cluster: &'static str,
    etcd: String,
}

impl Machines {
    /// Machines that are to be gateways of `cluster`, which no other test has.
    fn new(cluster: &'static str) -> Self {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("ceph.conf"), "[global]\n").unwrap();
        Self { base, cluster, etcd: ETCD.1.clone() }
    }

    fn data(&self, gateway: &str) -> PathBuf {
        self.base.path().join(gateway)
    }

    fn config(&self, gateway: &str) -> Option<GatewayConfig> {
        GatewayConfig::read(&self.data(gateway)).unwrap()
    }

    /// Runs `weir gateway COMMAND` on the machine of a gateway, whose links are at this port and
    /// the next one. Of `options` the last of a name counts.
    fn run(&self, command: &str, gateway: &str, port: u16, options: &[&str]) -> Output {
        let (links, helper) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{}", port + 1));
        let conf = self.base.path().join("ceph.conf");
        let mut given = vec![
            ("--cluster", self.cluster),
            ("--gateway", gateway),
            ("--links", &links),
            ("--helper-links", &helper),
            ("--etcd", &self.etcd),
            ("--interface", "lo"),
            ("--ceph-conf", conf.to_str().unwrap()),
        ];
        let (further, rest) = options.as_chunks::<2>();
        assert!(rest.is_empty());
        given.retain(|(name, _)| further.iter().all(|[option, _]| option != name));
        given.extend(further.iter().map(|[option, value]| (*option, *value)));
        let words = given.iter().flat_map(|(option, value)| [*option, *value]);
        let mut weir = Command::new(WEIR);
        weir.env_clear().arg("--data").arg(self.data(gateway)).args(["gateway", command]);
        weir.args(words).output().unwrap()
    }

    fn done(&self, command: &str, gateway: &str, port: u16, options: &[&str]) -> String {
        let output = self.run(command, gateway, port, options);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command} {gateway} {options:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The complaint of a command that is refused with this status.
    #[track_caller]
    fn refused(&self, status: i32, command: &str, gateway: &str, port: u16, o: &[&str]) -> String {
        let output = self.run(command, gateway, port, o);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{command} {gateway} {o:?}: {complaint}");
        assert!(output.stdout.is_empty(), "{command} {gateway} {o:?}");
        complaint
    }

    /// Runs a command on the machine of a gateway.
    fn weir(&self, gateway: &str, words: &[&str]) -> Output {
        let mut weir = Command::new(WEIR);
        weir.env_clear().arg("--data").arg(self.data(gateway)).args(words).output().unwrap()
    }

    /// Runs etcd's own tool on the rows below this path of the cluster.
    fn etcdctl(&self, verb: &[&str], path: &str, value: &[&str]) -> String {
        let mut etcdctl = Command::new("etcdctl");
        etcdctl.env("ETCDCTL_API", "3").args(["--endpoints", &self.etcd]).args(verb);
        let output = etcdctl.arg(format!("/weir/{}/{path}", self.cluster)).args(value).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn key(&self) -> PathBuf {
        self.data("g1").join("cluster.key")
    }

    /// Joins with the key of the first gateway.
    fn join(&self, gateway: &str, port: u16) -> String {
        self.done("join", gateway, port, &["--key", self.key().to_str().unwrap()])
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn machines_become_gateways_and_are_numbered() {
    let machines = Machines::new("made");
    let told = machines.done("init", "g1", 7450, &[]);
    let (data, key) = (machines.data("g1"), machines.key());
    assert!(told.contains("gateway g1, number 1, of cluster made"), "{told}");
    for next in ["gateway helper --data", "serve --data", "gateway address add", "gateway join"] {
        assert!(told.contains(&format!("  weir {next} ")), "{next}: {told}");
    }
    assert_eq!((mode(&data), mode(&key), mode(&data.join("gateway.toml"))), (0o700, 0o600, 0o600));
    let config = machines.config("g1").unwrap();
    assert_eq!((config.number, config.links.port(), config.helper.links.port()), (1, 7450, 7451));
    assert_eq!((config.key, config.etcd.endpoints.len()), (key.clone(), 3));
    assert_eq!(config.helper.socket, Path::new("/run/weir/helper.sock"));
    assert_eq!((config.ceph.user.as_str(), config.addresses.interface.as_str()), ("admin", "lo"));

    machines.join("g2", 7460);
    let shown =
        machines.done("join", "g3", 7470, &["--output", "json", "--key", key.to_str().unwrap()]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["gateway"], &shown["number"]), (&"g3".into(), &3.into()), "{shown}");
    assert_eq!(machines.config("g2").unwrap().number, 2);
    assert_eq!(machines.config("g2").unwrap().key, key, "the file that was named");
    assert!(!machines.data("g2").join("cluster.key").exists());
}

#[test]
fn a_cluster_is_created_once() {
    let machines = Machines::new("once");
    machines.done("init", "g1", 7450, &[]);
    let key = std::fs::read(machines.key()).unwrap();
    let again = machines.refused(1, "init", "g1", 7450, &[]);
    assert!(again.contains("gateway.toml exists"), "{again}");
    let elsewhere = machines.refused(1, "init", "g2", 7460, &["--output", "json"]);
    assert!(elsewhere.contains("\"cluster_exists\""), "{elsewhere}");
    assert!(elsewhere.contains("use `weir gateway join`"), "{elsewhere}");
    assert!(!machines.data("g2").exists(), "nothing was made");
    // Even with its key.
    let known = ["--key", machines.key().to_str().unwrap()].map(str::to_owned);
    let known = machines.refused(1, "init", "g2", 7460, &[&known[0], &known[1]]);
    assert!(known.contains("use `weir gateway join`"), "{known}");
    assert!(machines.config("g2").is_none());
    // With a key file that an earlier attempt has left.
    let own = machines.data("g2").join("cluster.key");
    KeyFile::create(&own).unwrap();
    let own = machines.refused(1, "init", "g2", 7460, &[]);
    assert!(own.contains("use `weir gateway join`"), "{own}");
    assert_eq!(std::fs::read(machines.key()).unwrap(), key);
    machines.join("g4", 7480);
    assert_eq!(machines.config("g4").unwrap().number, 2, "no refused one has a number");
}

#[test]
fn a_command_that_was_interrupted_goes_on() {
    let machines = Machines::new("interrupted");
    // After the key file.
    std::fs::create_dir(machines.data("g1")).unwrap();
    std::fs::set_permissions(machines.data("g1"), PermissionsExt::from_mode(0o700)).unwrap();
    KeyFile::create(&machines.key()).unwrap();
    let key = std::fs::read(machines.key()).unwrap();
    machines.done("init", "g1", 7450, &[]);
    // Before the last file.
    let unfinished = |gateway: &str| {
        let config = machines.config(gateway).unwrap();
        std::fs::remove_file(machines.data(gateway).join("gateway.toml")).unwrap();
        config
    };
    let first = unfinished("g1");
    machines.done("init", "g1", 7450, &[]);
    assert_eq!(machines.config("g1").unwrap(), first);
    assert_eq!(std::fs::read(machines.key()).unwrap(), key, "the key stays");
    machines.join("g2", 7460);
    let second = unfinished("g2");
    machines.join("g2", 7460);
    assert_eq!(machines.config("g2").unwrap(), second);
    machines.join("g3", 7470);
    assert_eq!(machines.config("g3").unwrap().number, 3);
    // Of a cluster that has gateways the first one joins, too.
    unfinished("g1");
    let taken = machines.refused(1, "init", "g1", 7450, &[]);
    assert!(taken.contains("use `weir gateway join`"), "{taken}");
    machines.join("g1", 7450);
    assert_eq!(machines.config("g1").unwrap(), first);
}

#[test]
fn a_cluster_that_has_no_gateway_yet_gets_its_first() {
    let machines = Machines::new("empty");
    machines.done("init", "g1", 7450, &[]);
    std::fs::remove_file(machines.data("g1").join("gateway.toml")).unwrap();
    let removed = machines.etcdctl(&["del", "--prefix"], "catalog/rows/gateways/", &[]);
    assert_eq!(removed, "1");
    machines.done("init", "g1", 7450, &[]);
    assert_eq!(machines.config("g1").unwrap().number, 2, "no number is given twice");
}

#[test]
fn what_another_gateway_has_is_refused() {
    let machines = Machines::new("taken");
    machines.done("init", "g1", 7450, &[]);
    machines.join("g2", 7460);
    let other =
        Machines { base: tempfile::tempdir().unwrap(), etcd: machines.etcd.clone(), ..machines };
    let key = machines.base.path().join("g1/cluster.key");
    let key = key.to_str().unwrap();
    std::fs::write(other.base.path().join("ceph.conf"), "").unwrap();
    let refused = |gateway: &str, port: u16, told: &str| {
        let complaint = other.refused(1, "join", gateway, port, &["--key", key]);
        assert!(complaint.contains(told), "{complaint}");
        assert!(other.config(gateway).is_none());
    };
    refused("g2", 7470, "\"g2\"");
    refused("g3", 7460, "127.0.0.1:7460 is that of gateway \"g2\"");
    refused("g3", 7461, "127.0.0.1:7461 is that of gateway \"g2\"");
}

#[test]
fn another_key_does_not_join() {
    let machines = Machines::new("keys");
    machines.done("init", "g1", 7450, &[]);
    let wrong = machines.base.path().join("wrong.key");
    KeyFile::create(&wrong).unwrap();
    let key = ["--key", wrong.to_str().unwrap()];
    let complaint = machines.refused(1, "join", "g2", 7460, &key);
    assert!(complaint.contains("use the key file of the other gateways"), "{complaint}");
    assert!(machines.config("g2").is_none());
    std::fs::set_permissions(&wrong, PermissionsExt::from_mode(0o644)).unwrap();
    let complaint = machines.refused(1, "join", "g2", 7460, &key);
    assert!(complaint.contains("chmod 600"), "{complaint}");
    let complaint = machines.refused(1, "join", "g2", 7460, &[]);
    assert!(complaint.contains("copy the key file from another gateway"), "{complaint}");
    let elsewhere =
        ["--cluster", "keyless", "--key", machines.key().to_str().unwrap()].map(str::to_owned);
    let elsewhere: Vec<_> = elsewhere.iter().map(String::as_str).collect();
    let complaint = machines.refused(1, "join", "g2", 7460, &elsewhere);
    assert!(complaint.contains("`weir gateway init` creates a cluster"), "{complaint}");
    machines.join("g2", 7460);
    assert_eq!(machines.config("g2").unwrap().number, 2, "no refused one has a number");
}

#[test]
fn wrong_options_make_nothing() {
    let machines = Machines::new("wrong");
    let (closed, missing) = ("http://127.0.0.1:1", "/nonexistent/file");
    let loose = machines.base.path().join("loose");
    for (status, option, value, told) in [
        (1, "--etcd", closed, "etcd at http://127.0.0.1:1 does not answer"),
        (1, "--interface", "nosuch0", "no network interface \"nosuch0\"; it has "),
        (1, "--links", "192.0.2.1:7450", "--links: this machine cannot listen at 192.0.2.1"),
        (1, "--helper-links", "192.0.2.1:1", "--helper-links: this machine cannot listen at"),
        (1, "--ceph-conf", missing, "--ceph-conf /nonexistent/file"),
        (2, "--helper-links", "127.0.0.1:7450", "helper.links: the helper needs an address"),
        (2, "--cluster", "Upper", "lower-case letters, digits and hyphens"),
        (2, "--gateway", "a/b", "gateway: \"a/b\" is not a valid name"),
        (2, "--etcd", "127.0.0.1:2379", "etcd.endpoints: "),
        (2, "--etcd", "https://127.0.0.1:2379", "needs \"ca\""),
        (2, "--links", "here", "invalid value 'here'"),
        (2, "--etcd-cert", missing, "--etcd-cert-key"),
    ] {
        for command in ["init", "join"] {
            let options = [option, value, "--key", loose.to_str().unwrap()];
            let options = if command == "init" { &options[..2] } else { &options[..] };
            if command == "join" && option == "--etcd" && value == closed {
                // The key file is read before etcd.
                KeyFile::create(&loose).unwrap();
            }
            let complaint = machines.refused(status, command, "g1", 7450, options);
            assert!(complaint.contains(told), "{command} {option} {value}: {complaint}");
        }
    }
    assert!(!machines.data("g1").exists());
}

#[test]
fn the_directory_of_another_server_is_not_taken() {
    let machines = Machines::new("directories");
    let data = machines.data("g1");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("note"), "").unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let complaint = machines.refused(1, "init", "g1", 7450, &[]);
    assert!(complaint.contains("chmod 700"), "{complaint}");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(data.join("weir.db"), "").unwrap();
    let complaint = machines.refused(1, "init", "g1", 7450, &[]);
    assert!(complaint.contains("data directory of a server that is alone"), "{complaint}");
    assert!(!data.join("cluster.key").exists());
}

/// A helper, which ends with this.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts the helper of a machine in a network of its own, by way of `before`.
fn helper(before: &str, data: &Path) -> Helper {
    let script = format!("ip link set lo up; exec {before} \"$0\" --data \"$1\" gateway helper");
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-euc", &script, WEIR]).arg(data).stderr(Stdio::piped());
    Helper(command.spawn().unwrap())
}

#[test]
fn the_helper_of_a_machine_begins_and_ends() {
    let machines = Machines::new("helped");
    let socket = machines.base.path().join("run/helper.sock");
    let complaint = |before: &str| {
        let mut helper = helper(before, &machines.data("g1"));
        let lines = BufReader::new(helper.0.stderr.take().unwrap()).lines();
        let said: Vec<_> = lines.map(Result::unwrap).collect();
        assert_eq!(helper.0.wait().unwrap().code(), Some(1), "{said:?}");
        said.join("\n")
    };
    let told = complaint("");
    assert!(told.contains("has no gateway.toml") && told.contains("weir gateway init"), "{told}");
    machines.done("init", "g1", 7450, &["--helper-socket", socket.to_str().unwrap()]);
    let told = complaint("setpriv --bounding-set -net_raw");
    assert!(told.contains("the capabilities CAP_NET_ADMIN and CAP_NET_RAW"), "{told}");
    assert!(!socket.exists());
    for _ in 0..2 {
        let mut helper = helper("", &machines.data("g1"));
        let mut lines = BufReader::new(helper.0.stderr.take().unwrap()).lines();
        let ready = lines.next().unwrap().unwrap();
        assert!(
            ready.contains("the helper is ready") && ready.contains("127.0.0.1:7451"),
            "{ready}"
        );
        assert_eq!(mode(&socket), 0o600);
        let pid = helper.0.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let status = helper.0.wait().unwrap();
        assert!(status.success() && status.signal().is_none(), "{status}");
        let last = lines.map(Result::unwrap).last().unwrap();
        assert!(last.contains("the helper ends, and removes all addresses"), "{last}");
        assert!(!socket.exists());
    }
    std::fs::remove_file(machines.key()).unwrap();
    assert!(complaint("").contains("cluster.key"));
}
