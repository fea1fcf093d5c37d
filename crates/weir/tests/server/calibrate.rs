//! `weir calibrate` against a server: what it measures, leaves and takes away. Not how quick
//! anything is.

use crate::test_server::TestServer;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const SHORT: [&str; 10] =
    ["--seconds", "0.3", "--warmup", "0.1", "--file-size", "4MiB", "--jobs", "2", "--depth", "4"];

/// Tenths of a second that something may take to come.
const TRIES: u32 = 600;

fn json(server: &TestServer, args: &[&str]) -> Value {
    serde_json::from_str(&server.weir(&[&["--output", "json"], args].concat())).unwrap()
}

/// A command beside the test.
fn spawn(server: &TestServer, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("--data").arg(server.data()).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..TRIES {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("it never came");
}

/// The names of all that there is.
fn names(server: &TestServer, what: &str) -> Vec<String> {
    let all = json(server, &[what, "list"]);
    all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// Nothing is left of a calibration but what it found.
fn assert_gone(server: &TestServer) {
    assert_eq!(names(server, "pool"), ["pool"]);
    assert!(names(server, "volume").is_empty());
    assert!(!server.data().join("pools/2").exists());
}

/// Is a calibration under way, or was one?
fn is_made(server: &TestServer) -> bool {
    matches!(&names(server, "volume")[..], [one] if one.starts_with("weir-calibration-"))
}

fn signal(process: &Child, signal: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

/// A command that makes no sense; what it complains of.
fn senseless(server: &TestServer, args: &[&str]) -> String {
    let done = server.try_weir(args);
    assert_eq!(done.status.code(), Some(2), "{args:?}");
    String::from_utf8(done.stderr).unwrap()
}

/// A command that must fail; what it complains of.
fn refused(server: &TestServer, args: &[&str]) -> String {
    let done = server.try_weir(args);
    assert_eq!(done.status.code(), Some(1), "{args:?}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn what_a_calibration_finds_is_kept_and_no_more_is_promised() {
    let server = TestServer::start();
    let plan = server.weir(&["calibrate", "--dry-run"]);
    assert!(plan.contains("12 measurements of 5 s") && plan.contains("1 GiB in total"), "{plan}");
    assert!(json(&server, &["calibrate", "show"]).as_array().unwrap().is_empty());

    let grid = ["--mix", "100,0", "--block-size", "8KiB,64KiB"];
    let kept = json(&server, &[&["calibrate"], &grid[..], &SHORT].concat());
    assert_gone(&server);
    let kept = &kept["item"];
    let cells = kept["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let figure = |name: &str| cell[name].as_u64().unwrap();
        assert!(figure("iops") > 0 && figure("mean_nanos") > 0, "{cell}");
        // A pause of the machine may make the mean the larger, but not by so much.
        assert!(figure("p99_nanos") >= figure("mean_nanos") / 100, "{cell}");
        // Whole blocks were moved, but for rounding.
        let moved = figure("iops") * figure("block_bytes");
        assert!(moved.abs_diff(figure("bytes_per_second")) <= figure("block_bytes"), "{cell}");
    }
    let directory = kept["directory"].as_str().unwrap();
    assert!(directory.ends_with("/pools"), "{directory}");
    assert_eq!(
        (&kept["load"]["data_bytes"], &kept["in_memory"]),
        (&(8 << 20).into(), &true.into())
    );
    for known in ["kernel", "file_system", "version"] {
        assert!(!kept["machine"][known].as_str().unwrap().is_empty(), "{known}");
    }

    // The bound is the worst mix at the planned block sizes.
    let least = |block: u64, name: &str| {
        let cells = cells.iter().filter(|cell| cell["block_bytes"] == block);
        cells.map(|cell| cell[name].as_u64().unwrap()).min().unwrap()
    };
    let capacity = json(&server, &["capacity"]);
    let there = &capacity["filesystems"][0];
    let (rate, iops) = (least(65_536, "bytes_per_second"), least(8192, "iops"));
    assert_eq!(there["holds_bytes_per_second"], rate);
    assert_eq!(there["holds_iops"], iops);
    let create = |throughput: u64| {
        let throughput = format!("{throughput}B/s");
        let args = ["volume", "create", "v", "--pool", "pool", "--quota", "1GiB", "--throughput"];
        args.iter().map(|&arg| arg.to_owned()).chain([throughput]).collect::<Vec<_>>()
    };
    let words =
        |args: &[String]| server.try_weir(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let beyond = words(&create(rate + 1));
    assert_eq!(beyond.status.code(), Some(1));
    let complaint = String::from_utf8(beyond.stderr).unwrap();
    assert!(complaint.contains(directory) && complaint.contains("--overcommit"), "{complaint}");
    assert!(words(&create(rate)).status.success());
    let grow = ["volume", "set", "v", "--throughput", "8000MiB/s"];
    assert!(refused(&server, &grow).contains("committed"));
    let meant = server.try_weir(&[&grow[..], &["--overcommit"]].concat());
    assert!(meant.status.success());
    assert!(String::from_utf8(meant.stderr).unwrap().contains("warning: the file system of"));
    assert!(server.weir(&["capacity"]).contains("refused, unless --overcommit"));
    assert!(server.weir(&["capacity"]).contains("(too much)"));
    assert!(server.weir(&["pool", "show", "pool"]).contains("allowed"));
    let shown = server.weir(&["calibrate", "show", directory]);
    assert!(shown.contains("which fits into memory") && shown.contains("64 KiB"), "{shown}");

    // Without the calibration, nothing is known and nothing refused.
    server.weir(&["calibrate", "forget", directory]);
    server.weir(&["volume", "set", "v", "--throughput", "8100MiB/s"]);
    assert!(server.weir(&["pool", "show", "pool"]).contains("not calibrated"));
    assert!(refused(&server, &["calibrate", "show", directory]).contains("does not exist"));
}

#[test]
fn a_directory_of_the_operators_choice_is_left_as_it_was() {
    let server = TestServer::start();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().canonicalize().unwrap();
    let path = path.to_str().unwrap();
    let one = ["calibrate", "--path", path, "--mix", "0", "--block-size", "64KiB"];
    let nowhere = server.try_weir(&["calibrate", "--path", &format!("{path}/nowhere")]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert_eq!(place.path().read_dir().unwrap().count(), 0);
    let told = server.weir(&[&one[..], &SHORT].concat());
    assert!(told.contains("Measured capacity: ") && told.contains("committed: "), "{told}");
    assert!(!told.contains("not limited"), "{told}");
    assert_gone(&server);
    assert_eq!(place.path().read_dir().unwrap().count(), 0);
    assert_eq!(json(&server, &["calibrate", "show", path])["directory"], path);
}

#[test]
fn an_interrupted_calibration_leaves_and_keeps_nothing() {
    let server = TestServer::start();
    let run = ["calibrate", "--seconds", "3600", "--file-size", "4MiB"];
    let calibration = spawn(&server, &run);
    wait_until(|| is_made(&server));
    // Another one leaves it alone, whatever it does at the moment.
    for other in [&["calibrate"][..], &["calibrate", "--dry-run"], &["calibrate", "--force"]] {
        assert!(refused(&server, other).contains("is running"), "{other:?}");
    }
    assert!(is_made(&server));
    signal(&calibration, "INT");
    let done = calibration.wait_with_output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("interrupted; nothing was stored"), "{complaint}");
    assert_gone(&server);
    assert!(json(&server, &["calibrate", "show"]).as_array().unwrap().is_empty());
}

#[test]
fn what_a_killed_one_left_goes_with_the_next() {
    let server = TestServer::start();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().canonicalize().unwrap();
    let path = path.to_str().unwrap();
    let endless =
        ["calibrate", "--path", path, "--seconds", "3600", "--file-size", "4MiB", "--jobs", "1"];
    let mut killed = spawn(&server, &endless);
    wait_until(|| is_made(&server));
    signal(&killed, "KILL");
    killed.wait().unwrap();
    server.weir(&["calibrate", "--path", path, "--dry-run"]);
    assert!(is_made(&server), "a dry run takes nothing away");
    let one = ["calibrate", "--path", path, "--mix", "0", "--block-size", "4KiB"];
    let told = server.weir(&[&one[..], &SHORT].concat());
    assert!(told.contains("IOPS are not limited"), "{told}");
    assert_gone(&server);
    assert_eq!(place.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = TestServer::start();
    let mut calibration =
        spawn(&server, &["calibrate", "--seconds", "3600", "--file-size", "4MiB"]);
    wait_until(|| is_made(&server));
    // A server that answers nothing keeps the orderly end from coming.
    let id = server.id().to_string();
    let to_server = |signal: &str| {
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    };
    to_server("STOP");
    signal(&calibration, "INT");
    signal(&calibration, "TERM");
    let status = calibration.wait().unwrap();
    to_server("CONT");
    assert_eq!(status.code(), Some(130));
}

#[test]
fn what_an_operator_called_so_is_never_taken_away() {
    let server = TestServer::start();
    let one = ["calibrate", "--mix", "0", "--block-size", "64KiB"];
    let run = [&one[..], &SHORT].concat();
    let dry = [&run[..], &["--dry-run"]].concat();
    // A volume of the name in a pool of the operator's.
    server.volume("weir-calibration", "1GiB");
    let tree = server.data().join("pools/1/volumes/1");
    std::fs::write(tree.join("precious"), "x").unwrap();
    server.weir(&run);
    assert_eq!(names(&server, "volume"), ["weir-calibration"]);
    assert_eq!(names(&server, "pool"), ["pool"]);
    assert!(tree.join("precious").exists());
    // And a pool of the name, empty, with that volume elsewhere.
    let pool = ["pool", "create", "weir-calibration", "--level", "extreme", "--size", "4TiB"];
    server.weir(&pool);
    for args in [&run, &dry] {
        assert!(refused(&server, args).contains("its level, model or size differs"));
    }
    assert_eq!(names(&server, "pool"), ["pool", "weir-calibration"]);
    assert!(tree.join("precious").exists());
    server.weir(&["pool", "delete", "weir-calibration"]);
    // And one just like ours, with something else in it.
    server.weir(&[&pool[..5], &["--size", "65536TiB"]].concat());
    let volume = ["--pool", "weir-calibration", "--quota", "1GiB"];
    server.weir(&[&["volume", "create", "mine", "--overcommit"], &volume[..]].concat());
    for args in [&run, &dry] {
        assert!(refused(&server, args).contains("it contains volume mine"));
    }
    assert_eq!(names(&server, "volume"), ["weir-calibration", "mine"]);
}

#[test]
fn what_can_not_be_measured_is_refused_before_anything_is_made() {
    let server = TestServer::start();
    for (args, complaint) in [
        (&["calibrate", "--mix", "0,70,0"][..], "0 % reads appears twice"),
        (&["calibrate", "--block-size", "4KiB,4KiB"], "appears twice"),
        (&["calibrate", "--file-size", "8192PiB"], "more than any disk has room for"),
        (&["--if-match", "x", "calibrate"], "omit --if-match"),
        (&["--server", "http://192.0.2.1:7437", "calibrate"], "on another machine"),
    ] {
        let told = senseless(&server, args);
        assert!(told.contains(complaint), "{told}");
    }
    for dry in [&["--dry-run"][..], &[]] {
        let told = refused(&server, &[&["calibrate", "--file-size", "1024TiB"], dry].concat());
        assert!(told.contains("free") && told.contains("--file-size"), "{told}");
        let told = refused(&server, &[&["calibrate", "--path", "/proc"], dry].concat());
        assert!(told.contains("/proc"), "{told}");
    }
    assert_gone(&server);
}

#[test]
fn a_server_that_dies_is_no_interruption() {
    let mut server = TestServer::start();
    let calibration = spawn(&server, &["calibrate", "--seconds", "3600", "--file-size", "4MiB"]);
    let measures = || {
        let seen = json(&server, &["top", "--once"]);
        let volumes = seen["volumes"].as_array().unwrap();
        volumes.iter().any(|one| one["second"]["delivered_iops"].as_f64() > Some(0.0))
    };
    wait_until(measures);
    server.stop("KILL");
    let done = calibration.wait_with_output().unwrap();
    let complaint = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{complaint}");
    assert!(!complaint.contains("interrupted"), "{complaint}");
    let said = |line: &str| line.matches("Connection refused").count();
    assert!(complaint.lines().all(|line| said(line) <= 1), "{complaint}");
}

#[test]
fn while_others_are_busy_nothing_is_measured_unless_it_is_meant() {
    let server = TestServer::start();
    server.volume("busy", "1GiB");
    let url = format!("nfs://{}/busy?uid=0&gid=0", server.address());
    let load = ["bench", &url, "--time", "1h", "--size", "4MiB", "--bs", "64KiB", "--quiet"];
    let mut load = spawn(&server, &load);
    let moved = || {
        let seen = json(&server, &["top", "--once"]);
        let volumes = seen["volumes"].as_array().unwrap();
        volumes
            .iter()
            .filter_map(|one| one["window"]["delivered_bytes_per_second"].as_u64())
            .sum::<u64>()
    };
    wait_until(|| moved() > 4 << 20);
    let complaint = refused(&server, &["calibrate"]);
    assert!(complaint.contains("other volumes are busy"), "{complaint}");
    assert_eq!(names(&server, "pool"), ["pool"]);
    let one = ["--output", "json", "calibrate", "--force", "--mix", "100", "--block-size", "64KiB"];
    let kept = server.weir(&[&one[..], &SHORT].concat());
    load.kill().unwrap();
    load.wait().unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert!(kept["item"]["load"]["others_bytes_per_second"].as_u64().unwrap() > 1 << 20);
}
