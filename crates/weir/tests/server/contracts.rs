//! Limits beyond MiB/s as clients meet them. What came together is decided at one moment, so these
//! tests know who had to wait without looking at a clock.

use crate::peer::{Peer, encoded};
use crate::test_server::TestServer;
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{FileHandle3, ReadArgs, Res, StableHow, WriteArgs};

/// A number of the volume's live counters.
fn live(server: &TestServer, counter: &str) -> u64 {
    let shown = server.weir(&["--output", "json", "volume", "show", "good"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    shown["live"][counter].as_u64().unwrap()
}

/// Sends `calls` READs of `count` bytes at once and waits for all of the answers.
fn read_at_once(peer: &mut Peer, file: &[u8], calls: u32, count: u32) {
    let args = ReadArgs { file: FileHandle3(file), offset: 0, count };
    let flood: Vec<u8> = (0..calls).flat_map(|call| encoded(1000 + call, &args)).collect();
    peer.send(&flood);
    for _ in 0..calls {
        let reply = peer.receive();
        let answer = Reply::parse(&reply).unwrap().results::<ReadArgs<'_>>().unwrap();
        assert!(matches!(answer, Res::Ok(_)), "a limit delays and never refuses");
    }
}

#[test]
fn operations_are_limited_beside_bytes() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    read_at_once(&mut peer, &file, 20, 0);
    assert_eq!(live(&server, "delayed_ops"), 0, "nothing limits what moves no byte");
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    // One operation may go at once, and no more than the 50 ms beside it; an empty READ counts too.
    read_at_once(&mut peer, &file, 20, 0);
    assert!(live(&server, "delayed_ops") >= 15, "{}", live(&server, "delayed_ops"));
    // Calls other than READ and WRITE are free.
    let before = live(&server, "delayed_ops");
    for _ in 0..50 {
        peer.attributes(&file);
    }
    assert_eq!(live(&server, "delayed_ops"), before);
    server.weir(&["volume", "set", "good", "--max-iops", "none"]);
    read_at_once(&mut peer, &file, 20, 0);
    assert_eq!(live(&server, "delayed_ops"), before);
    assert_eq!(live(&server, "read_ops"), 60);
}

#[test]
fn a_file_at_its_ceiling_delays_nobody_who_wants_another() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let [file, other] = [&b"file"[..], b"other"].map(|name| peer.create(name));
    server.weir(&["volume", "set", "good", "--max-file-iops", "20"]);
    let shown = server.weir(&["volume", "show", "good"]);
    assert!(shown.contains("ceiling per file"), "{shown}");
    // The requests that wait for the first file came earlier, on the same connection.
    let args = |file| ReadArgs { file: FileHandle3(file), offset: 0, count: 0 };
    let calls = (0..20).map(|call| encoded(call, &args(&file)));
    let calls: Vec<u8> = calls.chain([encoded(99, &args(&other))]).flatten().collect();
    peer.send(&calls);
    let order: Vec<_> = (0..21).map(|_| Reply::parse(&peer.receive()).unwrap().xid).collect();
    // One request goes every 50 ms, all together take a second.
    assert!(order.iter().position(|&xid| xid == 99).unwrap() <= 10, "{order:?}");
    let delayed = live(&server, "delayed_ops");
    assert!((15..20).contains(&delayed), "{delayed}");
    // The contract of the volume is not what held anybody back.
    let why = server.weir(&["--output", "json", "volume", "why", "good"]);
    let why: serde_json::Value = serde_json::from_str(&why).unwrap();
    assert_ne!(why["minute"]["verdict"], "broken", "{why}");
    // A call that fails is given back to its file too.
    let directory = peer.root.clone();
    for call in 0..20 {
        peer.send(&encoded(call, &args(&directory)));
        let reply = peer.receive();
        let answer = Reply::parse(&reply).unwrap().results::<ReadArgs<'_>>().unwrap();
        assert!(matches!(answer, Res::Fail(..)), "it is a directory");
    }
    assert_eq!(live(&server, "delayed_ops"), delayed);
    server.weir(&["volume", "set", "good", "--max-file-iops", "none"]);
    read_at_once(&mut peer, &file, 20, 0);
    assert_eq!(live(&server, "delayed_ops"), delayed);
}

/// Whatever becomes of the ceiling of files while clients wait for theirs, every call is answered.
#[test]
fn a_ceiling_of_files_comes_and_goes_while_clients_wait() {
    let server = TestServer::start();
    server.volume("good", "1TiB");
    let set = |what: &[&str]| server.weir(&[&["volume", "set", "good"], what].concat());
    let mut writer = Writer::mount(&server, b"/good");
    let mut flood = |before: &[&str], meanwhile: &[&[&str]]| {
        server.weir(before);
        writer.flood();
        meanwhile.iter().for_each(|args| drop(set(args)));
        writer.answered();
    };
    let slow = ["volume", "set", "good", "--max-file-throughput", "1MiB/s"];
    flood(&slow, &[&["--max-file-throughput", "none"]]);
    flood(&slow, &[&["--max-file-throughput", "8MiB/s"]]);
    flood(&slow, &[&["--max-file-iops", "100"], &["--max-throughput", "1MiB/s"]]);
    flood(&slow, &[&["--max-file-iops", "none", "--max-file-throughput", "none"]]);
    set(&["--max-throughput", "none"]);
    // In a shared pool.
    server.weir(&["pool", "set", "pool", "--qos", "shared"]);
    flood(&slow, &[&["--max-file-throughput", "4MiB/s"]]);
    flood(&slow, &[&["--max-file-throughput", "none"]]);
    assert!(live(&server, "delayed_ops") >= 100, "{}", live(&server, "delayed_ops"));
    // A client that goes away while it waits for a file leaves nothing behind.
    server.weir(&slow);
    writer.flood();
    drop(writer);
    let mut peer = Peer::mount_at(server.address(), b"/good");
    let other = peer.create(b"other");
    read_at_once(&mut peer, &other, 20, 0);
    while live(&server, "waiting") > 0 || live(&server, "parked_bytes") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_contract_that_holds_a_volume_back_is_seen_in_the_report_and_the_metrics() {
    let mut server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    read_at_once(&mut peer, &file, 30, 0);
    assert!(live(&server, "wait_nanos") > 0 && live(&server, "store_nanos") > 0);
    let asked = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&server.weir(&[&["--output", "json"], args].concat())).unwrap()
    };
    // The counters are looked at each second.
    let seen = |why: &serde_json::Value| why["minute"]["split"]["requests"].as_u64().unwrap();
    let why = loop {
        let why = asked(&["volume", "why", "good"]);
        if seen(&why) >= 30 {
            break why;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(why["minute"]["waited"].as_f64().unwrap() > 0.0, "{why}");
    assert!(why["window"]["limit_iops"].as_u64().is_some_and(|iops| iops <= 20), "{why}");
    let top = asked(&["top", "--once"]);
    assert_eq!(top["volumes"][0]["volume"], "good");
    let report = asked(&["volume", "report", "good"]);
    assert!(!report["periods"].as_array().unwrap().is_empty(), "{report}");
    // Periods not written yet are written when the server stops.
    server.restart("TERM");
    let report = server.weir(&["--output", "json", "volume", "report", "good"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["whole"]["split"]["requests"].as_u64().unwrap() >= 30, "{report}");
}

/// The metrics as Prometheus would scrape them.
pub(crate) fn scraped(server: &TestServer) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(weir_api::Client::local(server.data()).metrics()).unwrap()
}

#[test]
fn only_volumes_that_were_chosen_have_histograms() {
    let server = TestServer::start_with(&[("WEIR_METRICS_HISTOGRAMS", "good,later")]);
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    read_at_once(&mut peer, &file, 20, 0);
    peer.attributes(&file);
    let text = scraped(&server);
    let value = |series: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(series));
        let line = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    let operations = |part: &str, class: &str| {
        let labels = format!("volume=\"good\",pool=\"pool\",class=\"{class}\"");
        value(&format!("weir_volume_operation_seconds_{part}{{{labels}}}"))
    };
    assert_eq!((operations("count", "read"), operations("count", "write")), (20.0, 0.0));
    let others = operations("count", "other");
    assert_eq!(others, value("weir_volume_other_operations_total{volume=\"good\""));
    let sums = ["read", "write", "other"].map(|class| operations("sum", class));
    let latency = value("weir_volume_latency_seconds_total{volume=\"good\"");
    assert!((sums.iter().sum::<f64>() - latency).abs() < 1e-6, "{sums:?}, {latency}");
    let wait = |part: &str| value(&format!("weir_volume_contract_wait_seconds_{part}"));
    assert_eq!(wait("count{volume=\"good\""), 20.0, "READs, whether they waited or not");
    let waited = value("weir_volume_wait_seconds_total{volume=\"good\"");
    assert!((wait("sum{volume=\"good\"") - waited).abs() < 1e-6 && waited > 0.0);
    // A later volume has them from its creation on, and one that was not named has none.
    server.volume("later", "1TiB");
    server.volume("other", "1TiB");
    let text = scraped(&server);
    assert!(text.contains("weir_volume_operation_seconds_count{volume=\"later\""), "{text}");
    assert!(!text.contains("weir_volume_operation_seconds_count{volume=\"other\""), "{text}");
    assert!(text.contains("weir_volume_other_operations_total{volume=\"other\""), "{text}");
}

/// A client of one volume, with calls on the way.
struct Writer {
    peer: Peer,
    file: Vec<u8>,
    calls: u32,
}

impl Writer {
    fn mount(server: &TestServer, path: &[u8]) -> Self {
        let mut peer = Peer::mount_at(server.address(), path);
        let file = peer.create(b"file");
        Self { peer, file, calls: 0 }
    }

    /// Sends 24 WRITEs of 64 KiB at once.
    fn flood(&mut self) {
        let data = vec![7; 64 << 10];
        for _ in 0..24 {
            let (file, stable) = (FileHandle3(&self.file), StableHow::Unstable);
            let args = WriteArgs { file, offset: 0, count: 64 << 10, stable, data: &data };
            self.peer.send(&encoded(1000 + self.calls, &args));
            self.calls += 1;
        }
    }

    /// Waits for the answers to all of them.
    fn answered(&mut self) {
        for _ in 0..std::mem::take(&mut self.calls) {
            let reply = self.peer.receive();
            let answer = Reply::parse(&reply).unwrap().results::<WriteArgs<'_>>().unwrap();
            assert!(matches!(answer, Res::Ok(_)), "a limit delays and never refuses");
        }
    }
}

/// Whatever becomes of the pools of volumes while their clients wait, every call is answered.
#[test]
fn volumes_share_a_budget_and_stop_to_while_clients_wait() {
    let server = TestServer::start();
    server.weir(&["level", "create", "slow", "--rate", "2MiB/s"]);
    server.weir(&["pool", "create", "all", "--qos", "shared", "--level", "slow", "--size", "1TiB"]);
    for volume in ["good", "other"] {
        server.weir(&["volume", "create", volume, "--pool", "all", "--quota", "1GiB"]);
    }
    let mut writers = [&b"/good"[..], b"/other"].map(|path| Writer::mount(&server, path));
    let flood = |writers: &mut [Writer; 2], meanwhile: &[&[&str]]| {
        writers.iter_mut().for_each(Writer::flood);
        for args in meanwhile {
            server.weir(args);
        }
        writers.iter_mut().for_each(Writer::answered);
    };
    flood(&mut writers, &[]);
    assert!(live(&server, "delayed_ops") >= 20, "{}", live(&server, "delayed_ops"));
    // Weights, floors, ceilings, and a larger and smaller budget.
    flood(
        &mut writers,
        &[
            &["volume", "set", "good", "--weight", "300", "--max-throughput", "1MiB/s"],
            &["volume", "set", "other", "--throughput", "1MiB/s"],
            &["pool", "resize", "all", "2TiB"],
            &["volume", "set", "good", "--throughput", "1MiB/s", "--max-throughput", "none"],
            &["pool", "resize", "all", "1TiB"],
        ],
    );
    // Each by itself, and together again.
    flood(&mut writers, &[&["pool", "set", "all", "--qos", "manual"]]);
    flood(&mut writers, &[&["pool", "set", "all", "--qos", "shared"]]);
    // One goes elsewhere, and comes back.
    flood(&mut writers, &[&["volume", "move", "other", "--to", "pool"]]);
    flood(&mut writers, &[&["volume", "move", "other", "--to", "all"]]);
    // One is gone: the other's calls are answered all the same.
    writers.iter_mut().for_each(Writer::flood);
    server.weir(&["volume", "delete", "other", "--yes"]);
    writers[0].answered();
    writers[0].flood();
    writers[0].answered();
}

#[test]
fn where_there_are_bursts_every_operation_counts() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    let file = peer.create(b"file");
    server.weir(&["pool", "set", "pool", "--qos", "provisioned-v1"]);
    let shown = server.weir(&["volume", "show", "good"]);
    assert!(shown.contains("IOPS, bursts of 10000") && shown.contains("credits"), "{shown}");
    for _ in 0..5 {
        peer.attributes(&file);
    }
    assert_eq!(live(&server, "delayed_ops"), 0);
    // Names and attributes are operations too; COMMIT is free, as ever.
    server.weir(&["volume", "set", "good", "--max-iops", "20"]);
    for _ in 0..20 {
        peer.attributes(&file);
    }
    assert!(live(&server, "delayed_ops") >= 10, "{}", live(&server, "delayed_ops"));
}

#[test]
fn credits_survive_a_crash_and_are_not_filled_by_it() {
    let mut server = TestServer::start();
    let pool = ["pool", "create", "share", "--qos", "provisioned-v2", "--size", "1TiB"];
    server.weir(&pool);
    let volume = ["volume", "create", "good", "--pool", "share", "--quota", "64GiB"];
    server.weir(&[&volume[..], &["--iops", "3000"]].concat());
    const FULL: u64 = 25_200_000;
    assert_eq!(live(&server, "credits"), FULL, "full at birth");
    // The credits are kept about a second after that, less those that can be spent until they are
    // kept next.
    let mut left = FULL;
    for wait in 1..20 {
        std::thread::sleep(std::time::Duration::from_secs(wait));
        server.restart("KILL");
        left = live(&server, "credits");
        if left < FULL {
            break;
        }
    }
    assert!((FULL - 20 * 7_000..FULL).contains(&left), "{left}");
    server.restart("TERM");
    let then = live(&server, "credits");
    assert!((left..=FULL).contains(&then), "{then} after {left}");
}
