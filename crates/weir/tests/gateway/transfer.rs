//! Catalogues into a cluster and out of it, and backups of a cluster, as an operator has them.

use super::{Machines, mode};
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use weir_catalog::{
    Catalog, ExportRule, Mode, NewPool, NewUser, NewVolume, Qos, Role, Snapshot, Token,
};
use weir_links::KeyFile;

const GIB: u64 = 1 << 30;

/// The data directory of a server that is alone: a pool, two volumes, a user with a password, a
/// token.
fn alone(data: &Path) {
    let catalog = Catalog::open(data).unwrap();
    let pool = NewPool {
        name: "fast".to_owned(),
        level: "premium".to_owned(),
        size_bytes: 1024 * GIB,
        qos: Qos::Auto,
        ..NewPool::default()
    };
    catalog.create_pool(&pool, Mode::Commit).unwrap();
    for name in ["home", "team"] {
        let (name, pool) = (name.to_owned(), "fast".to_owned());
        let new = NewVolume { name, pool, quota_bytes: 100 * GIB, ..NewVolume::default() };
        catalog.create_volume(&new, Mode::Commit).unwrap();
    }
    let rule = ExportRule::open("10.0.0.0/24".parse().unwrap());
    catalog.add_export("home", &rule, Mode::Commit).unwrap();
    let user =
        NewUser { name: "anna".into(), uid: 5001, gid: None, groups: Vec::new(), enabled: true };
    catalog.create_user(&user, Mode::Commit).unwrap();
    catalog.set_password("anna", &[7; 16], Mode::Commit).unwrap();
    let token = Token { name: "ci".into(), role: Role::Viewer, created: 1, expires: None };
    catalog.tokens().unwrap().create(token).unwrap();
    catalog.report_secret().unwrap();
}

/// The promises of a catalogue.
fn promises(snapshot: &Snapshot) -> String {
    let volumes = snapshot.volumes().map(|one| {
        format!("{} {} {:?} {:?} {:?}", one.id, one.name, one.terms, one.limits, one.exports)
    });
    let pools = snapshot.pools().map(|one| format!("{} {} {:?}", one.id, one.name, one.model));
    let all: Vec<_> = pools.chain(volumes).collect();
    format!("{} {:?} {:?}", all.join("\n"), snapshot.users(), snapshot.domain())
}

const SECRETS: [&str; 4] = ["handle.key", "smb.key", "report.key", "api.tokens"];

/// Both data directories have the same catalogue and the same secrets.
fn same(one: &Path, other: &Path) {
    for name in SECRETS {
        let read = |data: &Path| std::fs::read(data.join(name)).unwrap();
        assert_eq!(read(one), read(other), "{name}");
        assert_eq!(mode(&other.join(name)), 0o600, "{name}");
    }
    let open = |data: &Path| promises(&Catalog::open(data).unwrap().snapshot());
    assert_eq!(open(one), open(other));
}

impl Machines {
    /// The output of a command on the machine of g1.
    #[track_caller]
    fn told(&self, words: &[&str]) -> String {
        let output = self.weir("g1", words);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The code and the message of a refused command on the machine of g1, which changed nothing in
    /// etcd.
    #[track_caller]
    fn refuses(&self, words: &[&str], code: &str) -> String {
        let all = || self.etcdctl(&["get", "--prefix"], "", &[]);
        let before = all();
        let output = self.weir("g1", &[&["--output", "json"], words].concat());
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert_eq!(all(), before, "{words:?}: {complaint}");
        let error: Value = serde_json::from_str(&complaint).unwrap();
        assert_eq!(error["code"], code, "{words:?}: {complaint}");
        error["message"].as_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.base.path().join(name).to_str().unwrap().to_owned()
    }

    /// A cluster with the catalogue of [`alone`], which is in the directory `old`.
    fn with_catalogue(cluster: &'static str) -> Self {
        let machines = Self::new(cluster);
        let old = machines.path("old");
        alone(Path::new(&old));
        machines.done("init", "g1", 7450, &[]);
        let address = "10.0.0.5/24,10.0.0.6/24";
        let place = ["--pools-in", "/weir", "--address", address];
        machines.told(&[&["gateway", "import", &old][..], &place].concat());
        machines
    }
}

#[test]
fn a_catalogue_comes_into_a_cluster_and_out_of_it_again() {
    let machines = Machines::new("moved");
    let (old, out, backup) = (machines.path("old"), machines.path("out"), machines.path("b"));
    alone(Path::new(&old));
    std::fs::create_dir(machines.data("g1")).unwrap();
    let absent = machines.weir("g1", &["gateway", "import", &old]);
    let absent = String::from_utf8(absent.stderr).unwrap();
    assert!(absent.contains("has no gateway.toml"), "{absent}");
    std::fs::remove_dir(machines.data("g1")).unwrap();
    machines.done("init", "g1", 7450, &[]);
    let import = ["gateway", "import", &old];
    let told = machines.refuses(&import, "pools_not_on_ceph");
    assert!(told.contains("pool fast is in directories of one machine"), "{told}");
    let placed = [&import[..], &["--pools-in", "/weir"]].concat();
    machines.refuses(&placed, "no_address");
    let whole = [&placed[..], &["--address", "10.0.0.5/24,10.0.0.6/24"]].concat();
    let before = machines.etcdctl(&["get", "--prefix"], "catalog/", &[]);
    let planned = machines.told(&[&whole[..], &["--dry-run"]].concat());
    assert!(planned.contains("/weir/fast/volumes/1") && planned.contains("would be"), "{planned}");
    assert_eq!(machines.etcdctl(&["get", "--prefix"], "catalog/", &[]), before);
    let told = machines.told(&whole);
    assert!(told.contains("1 pool(s), 2 volume(s), 1 user(s) imported"), "{told}");
    for address in ["10.0.0.5", "10.0.0.6"] {
        assert!(told.contains(address), "a volume at each address: {told}");
    }
    machines.refuses(&whole, "cluster_exists");

    let exported = machines.told(&["--output", "json", "gateway", "export", &out]);
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!((&exported["pools"], exported["volumes"].as_array().unwrap().len()), (&1.into(), 2));
    same(Path::new(&old), Path::new(&out));
    machines.refuses(&["gateway", "export", &out], "catalog_exists");
    let own = machines.data("g1");
    let told = machines.refuses(&["gateway", "export", own.to_str().unwrap()], "client");
    assert!(told.contains("data directory of a gateway"), "{told}");

    // From the backup of a server, with its key of passwords if the cluster has another one.
    std::fs::write(&backup, weir_catalog::backup_stopped(Path::new(&old)).unwrap()).unwrap();
    let again = ["gateway", "import", "--replace", "--pools-in", "/weir", &backup];
    let other = Machines::new("copied");
    other.done("init", "g1", 7450, &[]);
    let copied = [&again[..], &["--address", "10.0.0.5/24"]].concat();
    let told = other.refuses(&copied, "passwords_unreadable");
    assert!(told.contains("1 user(s)"), "{told}");
    let key = machines.path("old/smb.key");
    other.told(&[&copied[..], &["--smb-key", &key]].concat());
    let told = machines.told(&again);
    assert!(told.contains("replaced-1.backup"), "{told}");
    assert_eq!(mode(&own.join("replaced-1.backup")), 0o600);
}

#[test]
fn a_catalogue_that_etcd_has_lost_comes_back_from_a_backup() {
    let machines = Machines::with_catalogue("lost");
    machines.join("g2", 7460);
    let (file, out) = (machines.path("nas.backup"), machines.path("out"));
    let told = machines.told(&["catalog", "backup", &file]);
    assert!(told.contains("catalogue of cluster lost of format"), "{told}");
    assert_eq!(mode(Path::new(&file)), 0o600);
    let told = machines.told(&["catalog", "check", "--backup", &file]);
    assert!(told.contains("1 pools, 2 volumes") && told.contains("checksum correct"), "{told}");
    let rows = || machines.etcdctl(&["get", "--prefix", "--keys-only"], "catalog/rows/", &[]);
    let had = rows();
    machines.etcdctl(&["del", "--prefix"], "", &[]);
    let restored = machines.told(&["--output", "json", "catalog", "restore", &file]);
    let restored: Value = serde_json::from_str(&restored).unwrap();
    assert_eq!(restored["gateways"], serde_json::json!(["g1", "g2"]), "{restored}");
    assert_eq!((&restored["kept"], &restored["findings"]), (&Value::Null, &serde_json::json!([])));
    assert_eq!(rows(), had);
    machines.told(&["gateway", "export", &out]);
    same(Path::new(&machines.path("old")), Path::new(&out));
    // A machine that the restored catalogue does not know is told so.
    machines.join("g3", 7470);
    machines.etcdctl(&["del", "--prefix"], "", &[]);
    let told = machines.weir("g3", &["catalog", "restore", &file]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("gateway g3, number 3, of this machine is not in the"), "{told}");
    // Over what there is only when told, and then that is kept.
    let again = ["catalog", "restore", &file];
    machines.refuses(&again, "cluster_exists");
    let told = machines.told(&["catalog", "restore", "--replace", &file]);
    assert!(told.contains("replaced-1.backup"), "{told}");
    let kept = machines.data("g1").join("replaced-1.backup");
    machines.told(&["catalog", "check", "--backup", kept.to_str().unwrap()]);
}

#[test]
fn a_catalogue_is_not_replaced_while_gateways_run() {
    let machines = Machines::with_catalogue("live");
    // No other test has these ports.
    machines.join("g2", 7990);
    let (file, old) = (machines.path("nas.backup"), machines.path("old"));
    machines.told(&["catalog", "backup", &file]);
    let restore = ["catalog", "restore", "--replace", &file];
    let import = ["gateway", "import", "--replace", "--pools-in", "/weir", &old];
    // One that has a lease.
    machines.etcdctl(&["put"], "cluster/life/00002", &["7"]);
    for command in [&restore[..], &import] {
        let told = machines.refuses(command, "client");
        assert!(told.ends_with("Running: g2"), "{told}");
    }
    // One that is cut from etcd, and still serves.
    machines.etcdctl(&["del"], "cluster/life/00002", &[]);
    let links = TcpListener::bind("127.0.0.1:7990").unwrap();
    for command in [&restore[..], &import] {
        let told = machines.refuses(command, "client");
        assert!(told.ends_with("Running: g2"), "{told}");
    }
    // Even if etcd has forgotten it.
    machines.etcdctl(&["del", "--prefix"], "", &[]);
    let told = machines.refuses(&["catalog", "restore", &file], "client");
    assert!(told.ends_with("Running: g2"), "{told}");
    drop(links);
    // That of this machine has the data directory.
    let lock = weir_catalog::Lock::take(&machines.data("g1")).unwrap();
    machines.refuses(&restore, "locked");
    drop(lock);
    machines.told(&restore);
}

#[test]
fn a_backup_that_is_not_this_clusters_or_not_whole_is_refused() {
    let machines = Machines::with_catalogue("guarded");
    let (file, bad) = (machines.path("nas.backup"), machines.path("bad.backup"));
    machines.told(&["catalog", "backup", &file]);
    machines.refuses(&["catalog", "backup", &file], "client");
    machines.told(&["catalog", "backup", "--overwrite", &file]);
    let whole = std::fs::read(&file).unwrap();
    let restore = ["catalog", "restore", "--replace", &bad];
    std::fs::write(&bad, &whole[..whole.len() / 2]).unwrap();
    machines.refuses(&restore, "damaged_backup");
    let mut changed = whole.clone();
    changed[5000] ^= 1;
    std::fs::write(&bad, changed).unwrap();
    machines.refuses(&restore, "damaged_backup");
    std::fs::write(&bad, "no backup").unwrap();
    machines.refuses(&restore, "not_a_backup");
    let old = machines.path("old");
    std::fs::write(&bad, weir_catalog::backup_stopped(Path::new(&old)).unwrap()).unwrap();
    let told = machines.refuses(&restore, "backup_of_server");
    assert!(told.contains("weir gateway import"), "{told}");
    // Nor is that of a cluster one of a server.
    let told = machines.weir("new", &["catalog", "restore", &file]);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("is a backup of the cluster \"guarded\""), "{told}");
    // Another key opens neither the backup nor the catalogue.
    let key = machines.key();
    std::fs::rename(&key, machines.path("right.key")).unwrap();
    KeyFile::create(&key).unwrap();
    let told = machines.refuses(&["catalog", "restore", "--replace", &file], "wrong_cluster_key");
    assert!(told.contains("when the backup was made"), "{told}");
    machines.refuses(&["catalog", "backup", &machines.path("c")], "wrong_cluster_key");
    let import = ["gateway", "import", "--replace", "--pools-in", "/weir", &old];
    machines.refuses(&import, "wrong_cluster_key");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let told = machines.refuses(&["catalog", "restore", &file], "client");
    assert!(told.contains("chmod 600"), "{told}");
    std::fs::rename(machines.path("right.key"), &key).unwrap();
    // A row that cannot be read stays in the way until it is removed.
    machines.etcdctl(&["put"], "catalog/rows/pools/1", &["{}"]);
    let told = machines.refuses(&["catalog", "restore", "--replace", &file], "cluster_row_damaged");
    assert!(told.contains("etcdctl del --prefix /weir/guarded/catalog/"), "{told}");
    machines.etcdctl(&["del", "--prefix"], "catalog/", &[]);
    machines.told(&["catalog", "restore", &file]);
}

#[test]
fn the_help_of_the_commands_says_what_an_operator_has_to_know() {
    let machines = Machines::new("help");
    for (command, told) in [
        (
            &["gateway", "import"][..],
            &["Files are not copied", "no gateway of the cluster runs", "--dry-run", "--smb-key"][..],
        ),
        (&["gateway", "export"], &["Files are not copied", "Gateways may run", "--pools-in"]),
        (&["catalog", "backup"], &["data directory of a gateway", "key file of the cluster"]),
        (&["catalog", "restore"], &["stop the servers of all gateways", "replaced-N.backup"]),
    ] {
        let help = machines.told(&[command, &["--help"]].concat());
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for told in told.iter().chain(&["Examples:", "Usage:"]) {
            assert!(words.contains(told), "{command:?}: {told}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command:?}: {help}");
    }
}
