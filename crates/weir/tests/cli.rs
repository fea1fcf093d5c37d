//! The command line against a running server, as an operator uses it.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

#[path = "server/held.rs"]
mod held;

use held::free_address;
use rustix::fd::OwnedFd;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A server with a data directory of its own.
struct Server {
    process: Child,
    data: tempfile::TempDir,
    nfs: String,
    api: String,
    /// Keep its addresses from everybody else.
    _held: [OwnedFd; 2],
}

impl Server {
    fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    fn start_in(data: tempfile::TempDir) -> Self {
        Self::start_with(data, &[])
    }

    fn start_with(data: tempfile::TempDir, options: &[&str]) -> Self {
        let ((nfs, held), (api, also_held)) = (free_address(), free_address());
        let (nfs, api) = (nfs.to_string(), api.to_string());
        let process = weir(data.path())
            .args(["serve", "--nfs", &nfs, "--api", &api, "--log-format", "json"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self { process, data, nfs, api, _held: [held, also_held] };
        let log = BufReader::new(server.process.stderr.take().unwrap());
        let mut lines = log.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("serving the API")), "it ended");
        // Somebody must read on, or the server's log would block it.
        std::thread::spawn(move || lines.for_each(drop));
        server
    }

    fn weir(&self, line: &str) -> Output {
        weir(self.data.path()).args(line.split_whitespace()).output().unwrap()
    }

    /// The output of a command that must succeed.
    fn done(&self, line: &str) -> String {
        let output = self.weir(line);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "weir {line}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit status and complaint of a command that must fail.
    fn refused(&self, line: &str) -> (i32, String) {
        let output = self.weir(line);
        assert!(output.stdout.is_empty(), "weir {line}");
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn with_volume() -> Self {
        let server = Self::start();
        server.done("pool create fast --level premium --size 4TiB");
        server.done("volume create home --pool fast --quota 1TiB");
        server
    }

    /// Stops it as an operator does.
    fn stop(mut self) -> tempfile::TempDir {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended_already = self.process.kill();
        let _status = self.process.wait();
    }
}

fn weir(data: &Path) -> Command {
    let mut command = Command::new(WEIR);
    command.arg("--data").arg(data).env_remove("WEIR_SERVER").stdin(Stdio::null());
    command
}

#[test]
fn an_operator_makes_changes_and_deletes() {
    let server = Server::start();
    let made = server.done("pool create fast --level premium --size 4TiB");
    assert_eq!(made, "pool fast: 4 TiB premium, auto, 256 MiB/s in total\n");
    let made = server.done("volume create home --pool fast --quota 1TiB");
    assert!(made.starts_with("volume home: quota 1 TiB, limit 64 MiB/s\n"), "{made}");
    assert!(made.contains("mount -t nfs -o vers=3") && made.contains(",nolock 127.0.0.1:/home"));
    let resized = server.done("volume resize home 2TiB");
    assert!(resized.contains("home    64 MiB/s      128 MiB/s"), "{resized}");
    server.done("volume resize home 1TiB");
    let plan = server.done("pool set fast --level ultra --dry-run");
    assert!(plan.starts_with("Dry run, nothing is changed"), "{plan}");
    assert!(plan.contains("home    64 MiB/s      128 MiB/s"), "{plan}");
    let plan = server.done("pool set fast --qos manual --dry-run");
    assert!(plan.contains("home    64 MiB/s      64 MiB/s, unchanged"), "{plan}");
    assert!(!server.done("pool set fast --qos manual").contains("home"));
    server.done("volume set home --throughput 48MiB/s");
    let plan = server.done("volume set home --max-throughput 10MiB/s --max-iops 500 --dry-run");
    assert!(plan.contains("home    48 MiB/s      10 MiB/s, 500 IOPS"), "{plan}");
    server.done("volume set home --max-iops 500");
    assert!(server.done("volume show home").contains("48 MiB/s, 500 IOPS"));
    let off = server.done("volume set home --max-iops none");
    assert!(off.contains("home    48 MiB/s, 500 IOPS  48 MiB/s"), "{off}");
    assert!(server.done("volume list").contains("48 MiB/s"));
    server.done("export add home --network 10.0.0.0/8 --access ro");
    assert!(server.done("export list home").contains("10.0.0.0/8   ro      root"));
    server.done("export remove home --network 10.0.0.0/8");
    let plan = server.done("volume delete home --dry-run");
    assert!(plan.contains("home would be deleted with all its files, 0 B"), "{plan}");
    server.done("volume delete home --yes");
    server.done("pool delete fast");
    assert_eq!(server.done("--output json pool list"), "[]\n");
    server.stop();
}

#[test]
fn an_operator_has_levels_of_their_own_and_moves_volumes() {
    let server = Server::start();
    let made = server.done("level create elastic --rate 32MiB/s");
    assert_eq!(made, "level elastic: 32 MiB/s per TiB\n");
    server.done("pool create fast --level premium --size 4TiB");
    server.done("pool create shared --level elastic --size 4TiB");
    server.done("volume create home --pool fast --quota 1TiB");
    let (status, message) = server.refused("pool create y --level gold --size 1TiB");
    assert_eq!(status, 1);
    assert!(message.contains("use standard, premium, ultra, extreme, elastic"), "{message}");
    let plan = server.done("volume move home --to shared --dry-run");
    assert!(plan.starts_with("Dry run, nothing is changed: volume home: quota 1 TiB"), "{plan}");
    assert!(plan.contains("home    64 MiB/s      32 MiB/s"), "{plan}");
    let moved = server.done("volume move home --to shared");
    assert!(moved.starts_with("volume home: quota 1 TiB, limit 32 MiB/s, in pool shared\n"));
    assert!(server.data.path().join("pools/2/volumes/1/root").is_dir());
    let plan = server.done("level set elastic --rate 16MiB/s --dry-run");
    assert!(plan.contains("home    32 MiB/s      16 MiB/s"), "{plan}");
    let set = server.done("level set elastic --rate 48MiB/s");
    assert!(set.contains("home    32 MiB/s      48 MiB/s"), "{set}");
    let list = server.done("level list");
    assert!(list.contains("elastic   48 MiB/s   –               custom    1\n"), "{list}");
    let (_, message) = server.refused("level set ultra --rate 1MiB/s");
    assert!(message.contains("built in"), "{message}");
    let (_, message) = server.refused("level delete elastic");
    assert!(message.contains("weir pool set"), "{message}");
    server.done("pool set shared --level extreme");
    server.done("level delete elastic");
    server.stop();
}

#[test]
fn an_operator_has_volumes_share() {
    let server = Server::start();
    let made = server.done("pool create all --qos shared --level standard --size 4TiB");
    assert_eq!(made, "pool all: 4 TiB standard, shared, 64 MiB/s in total\n");
    let made = server.done("volume create home --pool all --quota 1TiB");
    assert!(
        made.starts_with("volume home: quota 1 TiB, limit 64 MiB/s, shared: weight 100\n"),
        "{made}"
    );
    let set = server.done("volume set home --weight 300 --throughput 20MiB/s");
    assert!(set.contains("shared: weight 300, 20 MiB/s guaranteed"), "{set}");
    let shown = server.done("volume show home");
    assert!(shown.contains("weight 300, 20 MiB/s guaranteed"), "{shown}");
    let (_, message) = server.refused("volume set home --throughput 65MiB/s");
    assert!(message.contains("64 MiB/s left"), "{message}");
    let set = server.done("volume set home --throughput 0MiB/s");
    assert!(set.contains("shared: weight 300\n"), "{set}");
    server.stop();
}

#[test]
fn an_operator_provisions_bursts() {
    let server = Server::start();
    let made = server.done("pool create files --qos provisioned-v1 --size 20TiB");
    assert_eq!(made, "pool files: 20 TiB, provisioned-v1\n");
    let made = server.done("volume create share --pool files --quota 1TiB");
    let figures = "limit 203 MiB/s, 4024 IOPS, bursts of 10000\n";
    assert!(made.starts_with(&format!("volume share: quota 1 TiB, {figures}")), "{made}");
    let plan = server.done("volume resize share 10TiB --dry-run");
    assert!(plan.contains("GiB/s, 13240 IOPS, bursts of 30720"), "{plan}");
    let (_, message) = server.refused("volume set share --iops 5000");
    assert!(message.contains("provisioned-v2"), "{message}");
    let (_, message) = server.refused("volume set share --throughput 200MiB/s");
    assert!(message.contains("follows from the quota"), "{message}");
    server.done("pool set files --qos provisioned-v2");
    let set = server.done("volume set share --iops 25000 --throughput 500MiB/s");
    assert!(set.contains("500 MiB/s, 25000 IOPS, bursts of 75000"), "{set}");
    let shown = server.done("volume show share");
    assert!(shown.contains(" of 180000000\n"), "{shown}");
    let (_, message) = server.refused("volume set share --iops 2999");
    assert!(message.contains("the range is 3000 IOPS to 102400 IOPS"), "{message}");
    let set = server.done("volume set share --iops auto");
    assert!(set.contains("4024 IOPS, bursts of 12072"), "{set}");
    server.stop();
}

#[test]
fn an_operator_buys_throughput_apart_from_size() {
    let server = Server::start();
    let made = server.done("pool create apps --qos flexible --size 1TiB --throughput 640MiB/s");
    assert_eq!(made, "pool apps: 1 TiB standard, flexible, 640 MiB/s in total\n");
    let (_, message) = server.refused("pool resize apps 512GiB");
    assert!(message.contains("the range is 128 MiB/s to 320 MiB/s"), "{message}");
    let made = server.done("pool create db --qos custom --size 1TiB --throughput 100MiB/s");
    assert_eq!(made, "pool db: 1 TiB standard, custom, 100 MiB/s, 1600 IOPS in total\n");
    let made = server.done("volume create log --pool db --quota 1GiB --throughput 10MiB/s");
    assert!(made.starts_with("volume log: quota 1 GiB, limit 10 MiB/s, 160 IOPS\n"), "{made}");
    let plan = server.done("pool set db --iops 3200 --dry-run");
    assert!(plan.contains("log     10 MiB/s, 160 IOPS  10 MiB/s, 320 IOPS"), "{plan}");
    let set = server.done("volume set log --iops 1000");
    assert!(set.contains("10 MiB/s, 1000 IOPS"), "{set}");
    server.done("pool create db2 --qos custom --size 1TiB --throughput 200MiB/s");
    let moved = server.done("volume move log --to db2 --dry-run");
    assert!(moved.contains("limit 10 MiB/s, 1000 IOPS"), "it keeps its own: {moved}");
    let moved = server.done("volume move log --to db2 --iops 500");
    assert!(moved.contains("limit 10 MiB/s, 500 IOPS"), "{moved}");
    let set = server.done("volume set log --iops auto");
    assert!(set.contains("10 MiB/s, 160 IOPS"), "{set}");
    let set = server.done("pool set db2 --throughput 400MiB/s");
    assert!(set.contains("400 MiB/s, 6400 IOPS in total"), "{set}");
    let (status, message) = server.refused("pool create x --size 1TiB");
    assert_eq!(status, 2);
    assert!(message.contains("--level"), "{message}");
    let (_, message) = server.refused("pool create x --level ultra --size 1TiB --iops 2000");
    assert!(message.contains("only custom pools purchase IOPS"), "{message}");
    server.stop();
}

#[test]
fn a_rescan_says_what_a_volume_holds_and_what_was_thought() {
    let (server, pool) = (Server::start(), tempfile::tempdir().unwrap());
    let path = pool.path().join("p");
    server.done(&format!("pool create fast --level premium --size 4TiB --path {}", path.display()));
    server.done("volume create home --pool fast --quota 1TiB");
    let same = server.done("volume rescan home");
    assert_eq!(same, "volume home: 0 B, unchanged, files with data: 0\n");
    std::fs::write(path.join("volumes/1/root/behind-its-back"), [1; 5000]).unwrap();
    let found = server.done("volume rescan home");
    assert_eq!(found, "volume home: 0 B → 8 KiB, files with data: 1\n");
    let json = server.done("--output json volume rescan home");
    assert!(json.contains("\"before_bytes\": 8192") && json.contains("\"number\": 3"), "{json}");
    let (status, message) = server.refused("volume rescan nobody");
    assert_eq!(status, 1);
    assert!(message.contains("nobody"), "{message}");
    server.stop();
}

#[test]
fn refusals_end_with_1_and_nonsense_with_2() {
    let server = Server::with_volume();
    let (status, message) = server.refused("volume create x --pool fast --quota 100TiB");
    assert_eq!(status, 1);
    assert!(message.contains("100 TiB requested, 3 TiB left"), "{message}");
    let (status, message) =
        server.refused("--output json volume create x --pool fast --quota 100TiB");
    let error: serde_json::Value = serde_json::from_str(&message).unwrap();
    assert_eq!((status, error["code"].as_str()), (1, Some("pool_capacity_exceeded")));
    for (line, part) in [
        ("volume create x --pool fast --quota 10G", "use 10GiB"),
        ("volume create x --pool fast --quota 10", "no unit"),
        ("volume set home", "--throughput"),
        (
            "pool create y --qos gold --level standard --size 1TiB",
            "use auto, manual, flexible, custom",
        ),
        ("volume delete home", "--yes"),
        ("volume resize home 1TiB --quota 2TiB", "cannot be used with"),
    ] {
        let (status, message) = server.refused(line);
        assert_eq!(status, 2, "{line}: {message}");
        assert!(message.contains(part), "{line}: {message}");
    }
    server.stop();
}

#[test]
fn with_output_json_every_answer_and_every_error_is_json() {
    let server = Server::with_volume();
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let keys = read(&server.done("--output json config keys"));
    assert_eq!(keys[0]["key"], "data");
    let shown = read(&server.done("--output json config show --workers 3 --log-level warn"));
    assert_eq!((&shown["workers"], &shown["log"]["level"]), (&3.into(), &"warn".into()));
    let plan = read(&server.done("--output json volume delete home --dry-run"));
    assert_eq!(plan["item"]["name"], "home");
    for line in [
        "--output json pool create y --qos gold --level ultra --size 1TiB",
        "pool create y --output=json",
        "volume lst --output json",
        "--output json pool",
        "--output json volume delete home",
    ] {
        let (status, message) = server.refused(line);
        assert_eq!((status, &read(&message)["code"]), (2, &"usage".into()), "{line}: {message}");
    }
    let (_, message) =
        server.refused("pool create y --qos gold --level ultra --size 1TiB --output json");
    assert!(message.contains("use auto, manual"), "{message}");
    let (status, message) = server.refused("volume lst -- --output json");
    assert_eq!((status, message.starts_with("error:")), (2, true), "{message}");
    server.stop();
}

#[test]
fn a_bound_that_a_refusal_names_is_accepted() {
    let server = Server::start();
    server.done("pool create fast --level premium --size 4TiB --qos manual");
    server.done("volume create home --pool fast --quota 1TiB --throughput 64.061035MiB/s");
    let (_, message) = server.refused("pool resize fast 1TiB");
    let size = message.trim_end().rsplit("must be at least ").next().unwrap().replace(' ', "");
    assert!(size.starts_with("1.00") && size.ends_with("TiB"), "{message}");
    server.done(&format!("pool resize fast {size}"));
    server.stop();
}

#[test]
fn a_failure_to_listen_says_why_once() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let data = tempfile::tempdir().unwrap();
    let (free, _held) = free_address();
    for (nfs, api) in
        [(address.to_string(), "none".to_owned()), (free.to_string(), address.to_string())]
    {
        let serve = ["serve", "--nfs", &nfs, "--api", &api, "--log-level", "error"];
        let output = weir(data.path()).args(serve).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert_eq!(message.matches("Address already in use").count(), 1, "{message}");
    }
}

#[test]
fn a_log_level_that_nobody_knows_keeps_the_server_from_starting() {
    let data = tempfile::tempdir().unwrap();
    // An address that is taken ends it in any case.
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut serve = weir(data.path());
    serve.args(["serve", "--nfs", &address, "--api", "none"]).env("WEIR_LOG_LEVEL", "loud");
    let output = serve.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("\"loud\" is neither a level (off, error, warn"), "{message}");
}

#[test]
fn a_measurement_whose_server_stops_still_has_its_result() {
    let mut server = Server::with_volume();
    let target = format!("nfs://{}/home", server.nfs);
    let load = "--rw randwrite --verify --size 1MiB --time 5m --drain 5m --output json";
    let mut bench = weir(server.data.path())
        .args(["bench", &target])
        .args(load.split_whitespace())
        .args(["--jobs", "4", "--warmup", "0s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = bench.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut all = Vec::new();
        printed.read_to_end(&mut all).map(|_| all)
    });
    let mut progress = BufReader::new(bench.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(progress.any(|line| line.contains("measuring")), "it ended");
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let complaint = progress.last().unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(1), "{complaint}");
    assert!(complaint.contains("the run was not clean"), "{complaint}");
    let printed = printed.join().unwrap().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&printed).unwrap();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["connections"]["lost"], 4);
    assert!(result["total"]["operations"].as_u64().unwrap() > 0);
    assert!(result["verify"]["unread"].as_u64().unwrap() > 0);
    for why in ["lost the connection", "verification: cannot connect", "clean-up: cannot connect"] {
        let errors = result["errors"].as_object().unwrap();
        assert!(errors.keys().any(|error| error.starts_with(why)), "{why}: {errors:?}");
    }
}

#[test]
fn what_was_made_is_there_after_a_restart() {
    let server = Server::with_volume();
    let before = server.done("--output json export list home");
    let server = Server::start_in(server.stop());
    assert_eq!(server.done("--output json export list home"), before);
    assert!(server.done("volume show home").contains("64 MiB/s"));
    server.stop();
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = Server::start();
    let (status, message) = server.refused("serve --nfs 127.0.0.1:0 --api none");
    assert_eq!(status, 1);
    assert!(message.contains(&format!("(pid {})", server.process.id())), "{message}");
    server.stop();
}

#[test]
fn without_a_server_it_says_how_to_start_one() {
    let data = tempfile::tempdir().unwrap();
    let output = weir(data.path()).args(["pool", "list"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    let start = format!("weir serve --data {}", data.path().display());
    assert!(message.contains(&start), "{message}");
}

#[test]
fn over_tcp_the_token_opens_the_api() {
    let server = Server::with_volume();
    let token = server.data.path().join("api.token");
    let url = format!("http://{}", server.api);
    let over_tcp = |more: &[&str]| {
        let mut command = Command::new(WEIR);
        command.args(["--server", &url]).args(more).args(["volume", "list"]).output().unwrap()
    };
    let refused = over_tcp(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--token-file"));
    let shown = over_tcp(&["--token-file", token.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("home"));
    server.stop();
}

#[test]
fn tokens_have_roles_and_the_audit_log_calls_them_by_name() {
    let server = Server::with_volume();
    let secret = server.done("token create ci --role viewer --expires 90d");
    let file = server.data.path().join("ci.token");
    std::fs::write(&file, &secret).unwrap();
    let over_tcp = |line: &str| {
        let mut command = Command::new(WEIR);
        command
            .args(["--server", &format!("http://{}", server.api)])
            .arg("--token-file")
            .arg(&file);
        command.args(line.split_whitespace()).output().unwrap()
    };
    assert!(over_tcp("volume list").status.success());
    let refused = over_tcp("volume delete home --yes");
    assert_eq!(refused.status.code(), Some(1));
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains("requires the role operator"), "{complaint}");
    assert!(server.done("token list").contains("ci    viewer"));
    server.done("token revoke ci");
    assert_eq!(over_tcp("volume list").status.code(), Some(1));
    let log = server.done("audit --since 1h");
    for told in ["POST /v1/pools {", "denied  ci (127.0.0.1:", "DELETE /v1/tokens/ci"] {
        assert!(log.contains(told), "{told}\n{log}");
    }
    assert!(!log.contains(secret.trim()));
    let json = server.done("audit --output json");
    let who = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["who"].clone();
    assert!(json.lines().any(|line| who(line) == "ci"));
    server.stop();
}

#[test]
fn a_change_can_be_for_the_state_that_was_seen() {
    let server = Server::with_volume();
    let shown = server.done("--output json volume show home");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let etag = shown["etag"].as_str().unwrap();
    server.done(&format!("volume resize home 2TiB --if-match {etag}"));
    let (status, message) = server.refused(&format!("volume resize home 3TiB --if-match {etag}"));
    assert_eq!(status, 1);
    assert!(message.contains("was modified, so nothing was changed"), "{message}");
    server.stop();
}

/// Runs a program of somebody else's; it must succeed.
fn stranger(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn other_peoples_clients_speak_tls_with_it() {
    let server = Server::start_with(tempfile::tempdir().unwrap(), &["--api-tls", "on"]);
    let (own, url) = (server.data.path().join("api.pem"), format!("https://{}", server.api));
    let own = own.to_str().unwrap();
    let told = stranger("curl", &["-sS", "--cacert", own, &format!("{url}/healthz")]);
    assert_eq!(told, "ok\n");
    for version in ["-tls1_2", "-tls1_3"] {
        let args =
            ["s_client", "-connect", &server.api, "-CAfile", own, "-verify_return_error", version];
        assert!(stranger("openssl", &args).contains("Verify return code: 0 (ok)"), "{version}");
    }
    let seen = stranger("openssl", &["x509", "-in", own, "-noout", "-fingerprint", "-sha256"]);
    let fingerprint = seen.trim().split_once('=').unwrap().1;
    assert!(server.done("health").contains(fingerprint));
    let over_tcp = |url: &str, more: &[&str]| {
        let token = server.data.path().join("api.token");
        let mut command = Command::new(WEIR);
        command.args(["--server", url, "--token-file"]).arg(token).args(more);
        let output = command.args(["pool", "list"]).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(over_tcp(&url, &["--fingerprint", fingerprint]).0, 0);
    assert_eq!(over_tcp(&url, &["--cacert", own]).0, 0);
    let (status, message) = over_tcp(&url, &[]);
    assert!(status == 2 && message.contains("--fingerprint"), "{message}");
    let (status, message) = over_tcp(&url, &["--fingerprint", &"00".repeat(32)]);
    assert!(status == 1 && message.contains(fingerprint), "{message}");
    let (status, message) = over_tcp(&format!("http://{}", server.api), &[]);
    assert!(status == 1 && message.contains("use https://"), "{message}");
    server.stop();
}

#[test]
fn a_certificate_of_the_operators_is_taken_and_taken_anew_on_sighup() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (at("cert"), at("key"));
    let make = |cert: &str, key: &str| {
        let name = ["-subj", "/CN=nas", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
        let args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert];
        stranger("openssl", &[&args[..], &name].concat());
    };
    make(&cert, &key);
    let options = ["--api-tls", "on", "--api-tls-cert", &cert, "--api-tls-key", &key];
    let server = Server::start_with(tempfile::tempdir().unwrap(), &options);
    let url = format!("https://{}/healthz", server.api);
    let first = at("first");
    std::fs::copy(&cert, &first).unwrap();
    stranger("curl", &["-sS", "--cacert", &first, &url]);
    let hang_up = || stranger("kill", &["-HUP", &server.process.id().to_string()]);
    // A file that is no certificate is not taken.
    std::fs::write(&cert, "none").unwrap();
    hang_up();
    stranger("curl", &["-sS", "--cacert", &first, &url]);
    make(&cert, &key);
    hang_up();
    let taken = || {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--cacert", &cert, &url]).output().unwrap().status.success()
    };
    while !taken() {
        std::thread::yield_now();
    }
    server.stop();
}

#[test]
fn configuration_comes_from_file_environment_and_flags_in_that_order() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("weir.toml");
    std::fs::write(&file, "workers = 1\nblocking_threads = 20\n[log]\nlevel = \"warn\"\n").unwrap();
    let show = |workers: &str| {
        let mut command = weir(data.path());
        command.args(["config", "show", "--workers", workers, "--config"]).arg(&file);
        command.env("WEIR_WORKERS", "2").env("WEIR_LOG_LEVEL", "error").output().unwrap()
    };
    let shown = String::from_utf8(show("3").stdout).unwrap();
    for line in ["workers = 3", "blocking_threads = 20", "level = \"error\""] {
        assert!(shown.lines().any(|found| found == line), "{line}\n{shown}");
    }
    std::fs::write(&file, "\nworker = 1\n").unwrap();
    let refused = String::from_utf8(show("3").stderr).unwrap();
    assert!(refused.contains("weir.toml:2: unknown key \"worker\"; did you mean \"workers\"?"));
}

/// The commands that a reader of the README's first steps types into each terminal, in order: a
/// paragraph that speaks of a terminal begins another.
fn terminals(readme: &'static str) -> Vec<Vec<&'static str>> {
    let steps = readme.split("\n## ").find(|part| part.starts_with("Five minutes")).unwrap();
    let mut terminals = vec![Vec::new()];
    for line in steps.lines() {
        match line.strip_prefix("    ") {
            Some(typed) => terminals.last_mut().unwrap().push(typed),
            None if line.contains(" terminal") => terminals.push(Vec::new()),
            None => {}
        }
    }
    terminals
}

#[test]
fn the_first_steps_of_the_readme_work_as_they_are_pasted() {
    let terminals = terminals(include_str!("../../../README.md"));
    let [first, others @ ..] = terminals.as_slice() else { panic!("no steps") };
    let install = "sudo install target/dist/weir /usr/local/bin/";
    assert_eq!(first[1..], [install, "sudo weir serve --data /var/lib/weir"]);
    assert_eq!(others.len(), 2);
    let path = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(WEIR, path.path().join("weir")).unwrap();
    let server = Server::start();
    for typed in others {
        let (kernel, ours): (Vec<&str>, Vec<&str>) = typed
            .iter()
            .partition(|line| ["mount ", "df ", "dd "].iter().any(|it| line.starts_with(it)));
        assert!(kernel.is_empty() || kernel.len() == 3, "{kernel:?}");
        let script = ours
            .join("\n")
            .replace("/var/lib/weir", server.data.path().to_str().unwrap())
            .replace("127.0.0.1:2049", &server.nfs)
            .replace("--size 64MiB", "--size 1MiB --ops 64");
        let mut shell = Command::new("/bin/bash");
        shell.env_clear().env("PATH", path.path()).args(["-euc", &script]);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}\n{complaint}");
    }
    assert!(server.done("volume list").contains("2 TiB"));
    server.stop();
}

#[test]
fn a_volume_that_nobody_uses_is_reported_as_not_demanded() {
    let server = Server::with_volume();
    let why = server.done("volume why home");
    assert!(
        why.starts_with("The contract is not demanded: there were no requests.\n→ The server receives no requests"),
        "{why}"
    );
    assert!(why.contains("last hour    not demanded  –      64 MiB/s"), "{why}");
    let report = server.done("volume report home --since 7d");
    assert!(report.contains("0 intervals of 10 s kept, 0 not demanded, 0 broken."), "{report}");
    let json: serde_json::Value =
        serde_json::from_str(&server.done("volume report home --json --since 14d")).unwrap();
    assert_eq!(json["whole"]["verdict"], "not-demanded");
    assert_eq!((&json["resolution_seconds"], &json["version"]), (&900.into(), &1.into()));
    assert_eq!(json["whole"]["limit_bytes_per_second"], 64 << 20);
    let json: serde_json::Value =
        serde_json::from_str(&server.done("--output json volume why home")).unwrap();
    assert_eq!(json["window"]["verdict"], "not-demanded");
    let (status, message) = server.refused("volume report nothing");
    assert_eq!((status, message.contains("nothing")), (1, true), "{message}");
    let (status, message) = server.refused("volume report home --since 15d");
    assert_eq!(status, 1);
    assert!(message.contains("14 days"), "{message}");
    assert_eq!(server.refused("volume report").0, 2);
    server.stop();
}

#[test]
fn a_signed_report_is_checked_without_a_server() {
    let server = Server::with_volume();
    let file = server.data.path().join("signed.json");
    let name = file.display();
    let made = server.done(&format!("volume report home --signed {name}"));
    let key = made.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(key.len(), 64, "{made}");
    let checked = server.done(&format!("volume report --verify {name}"));
    assert!(checked.contains(&format!("Signed by {key}, the key of the server.")), "{checked}");
    let data = server.stop();
    let file = data.path().join("signed.json");
    let verify = |key: &[&str]| {
        let mut command = Command::new(WEIR);
        command.env_remove("WEIR_SERVER").env_remove("WEIR_DATA");
        command.args(["volume", "report", "--verify"]).arg(&file).args(key).output().unwrap()
    };
    assert!(verify(&["--key", &key]).status.success());
    let alone = verify(&[]);
    assert!(String::from_utf8(alone.stdout).unwrap().contains("was not verified"));
    let other = verify(&["--key", &"0".repeat(64)]);
    assert!(String::from_utf8(other.stderr).unwrap().contains("not by 0000"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("home", "hone", 1)).unwrap();
    let forged = verify(&["--key", &key]);
    assert_eq!(forged.status.code(), Some(1));
    assert!(String::from_utf8(forged.stderr).unwrap().contains("was changed after it was signed"));
    // The key stays with the data.
    let again = Server::start_in(data);
    assert!(again.done("--output json health").contains(&key));
    again.stop();
}

#[test]
fn a_page_is_written_and_top_prints_where_there_is_no_terminal() {
    let server = Server::with_volume();
    let page = server.data.path().join("home.html");
    server.done(&format!("volume report home --since 30s --html {}", page.display()));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Was the contract of home kept?") && !html.contains("<script"));
    let top = server.done("top");
    assert!(top.contains("0 of 1 volumes active") && top.contains("VOLUME"), "{top}");
    assert_eq!(top.lines().count(), 2, "{top}");
    let json = server.done("--output json top --iterations 2");
    assert_eq!(json.lines().count(), 2);
    assert!(json.starts_with("{\"at\":"), "{json}");
    assert_eq!(server.refused("top --iterations 0").0, 2);
    server.stop();
}

#[test]
fn a_history_that_is_broken_or_gone_does_not_stop_the_server() {
    let data = Server::with_volume().stop();
    let history = data.path().join("history.db");
    assert!(history.exists());
    std::fs::write(&history, [7; 5000]).unwrap();
    let server = Server::start_in(data);
    server.done("volume report home");
    let data = server.stop();
    assert_eq!(std::fs::read(data.path().join("history.db.broken")).unwrap(), [7; 5000]);
    std::fs::remove_file(&history).unwrap();
    let server = Server::start_in(data);
    server.done("volume report home");
    server.stop();
}

#[test]
fn each_command_has_one_spelling_and_earlier_spellings_still_work() {
    let server = Server::with_volume();
    assert!(server.done("volume resize home --quota 2TiB").contains("128 MiB/s"));
    assert!(server.done("volume set home --quota 1TiB").contains("64 MiB/s"));
    server.done("pool resize fast --size 5TiB");
    assert_eq!(server.done("volume export list home"), server.done("export list home"));
    for (line, hidden) in [
        ("volume resize --help", "--quota"),
        ("volume set --help", "--quota"),
        ("pool resize --help", "--size"),
        ("volume --help", "export"),
    ] {
        let help = server.done(line);
        let mut first = help.lines().filter_map(|line| line.split_whitespace().next());
        assert!(first.all(|word| word != hidden), "{line}: {help}");
    }
    // A new volume takes the terms that a change takes.
    server.done("volume create free --pool fast --quota 1GiB --iops auto --max-iops none");
    assert!(!server.done("volume show free").contains("most"));
    server.stop();
}

/// A shell of this machine reads the completions; nothing is asked of bash-completion.
#[test]
fn bash_completes_commands_and_options() {
    let completed = |words: &str, last: &str| {
        let script = format!(
            "source <(\"$0\" completions bash) && COMP_WORDS=({words}) && \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) && _weir weir '{last}' && \
             echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["-c", &script, WEIR]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(completed("weir volume cr", "cr"), "create\n");
    assert_eq!(completed("weir volume create --q", "--q"), "--quota\n");
    assert_eq!(completed("weir volume ex", "ex"), "\n", "an alias is not completed");
    assert_eq!(completed("weir volume resize --q", "--q"), "\n", "an alias is not completed");
    assert_eq!(completed("weir --ver", "--ver"), "--version\n");
    assert_eq!(completed("weir volume nothing-like-this", "nothing-like-this"), "\n");
}

/// The journal says by the environment which file it is; then lines begin with their priority.
#[test]
fn lines_for_the_journal_begin_with_their_priority() {
    use std::os::unix::fs::MetadataExt;
    let data = tempfile::tempdir().unwrap();
    let said = |stream: &dyn Fn(&std::fs::Metadata) -> String| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let file = log.reopen().unwrap();
        // The server warns of few open files, says that it can't listen there, and ends.
        let status = Command::new("sh")
            .args(["-c", "ulimit -n 1000 && exec \"$0\" \"$@\"", WEIR, "serve", "--api", "none"])
            .args(["--nfs", "192.0.2.1:2049", "--data"])
            .arg(data.path())
            .env("JOURNAL_STREAM", stream(&file.metadata().unwrap()))
            .stderr(file)
            .status();
        assert!(!status.unwrap().success());
        std::fs::read_to_string(log.path()).unwrap()
    };
    let journal = said(&|file| format!("{}:{}", file.dev(), file.ino()));
    assert!(journal.starts_with("<4>weir_process::"), "{journal}");
    let other = said(&|file| format!("{}:{}", file.dev(), file.ino() + 1));
    assert!(other.contains(" WARN weir_process::"), "{other}");
}
