//! `weir bench` with its subcommands against a server: what it leaves, what it writes, and what it
//! says where it can't.

use crate::contracts::scraped;
use crate::held::free_address;
use crate::test_server::TestServer;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Tenths of a second that something may take to happen.
const TRIES: u32 = 600;

/// A server with a volume, and a place for files of the test's.
struct Bench {
    server: TestServer,
    place: TempDir,
}

impl Bench {
    fn new(quota: &str) -> Self {
        let server = TestServer::start();
        server.volume("vol", quota);
        Self { server, place: TempDir::new().unwrap() }
    }

    fn url(&self) -> String {
        format!("nfs://{}/vol", self.server.address())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Two steps of reads in the language of fio, of two jobs each with a file of `size`.
    fn job(&self, size: &str, seconds: u32) -> String {
        let path = self.file("job.fio");
        let text = format!(
            "[global]\nrw=randread\nbs=4k\nsize={size}\nnumjobs=2\ntime_based\n\
             runtime={seconds}\n[one]\n[two]\nstonewall\n"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The content of the volume.
    fn left(&self) -> Vec<String> {
        let tree = self.server.data().join("pools/1/volumes/1/root");
        let names = std::fs::read_dir(tree).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn refused(&self, args: &[&str]) -> String {
        let done = self.server.try_weir(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}");
        String::from_utf8(done.stderr).unwrap()
    }

    fn spawn(&self, args: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn signal(process: &Child, name: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

fn wait_until(what: impl Fn() -> bool) {
    for _ in 0..TRIES {
        if what() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("it never happened");
}

#[test]
fn a_load_of_another_language_runs_is_written_in_every_form_and_leaves_nothing() {
    let bench = Bench::new("10GiB");
    let (job, url) = (bench.job("4m", 1), bench.url());
    let out = bench.file("out");
    let shown = bench.server.weir(&[
        "bench",
        "run",
        &job,
        &url,
        "--repeats",
        "2",
        "--warmup",
        "0s",
        "--label",
        "mine",
        "--quiet",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(shown.contains("one") && shown.contains("two"), "{shown}");
    let results = read(&out.join("results.json"));
    assert_eq!(results["label"], "mine");
    assert_eq!(results["interrupted"], false);
    let steps = results["tests"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{steps:?}");
    for step in steps {
        assert_eq!(step["summary"]["repeats"], 2);
        assert!(step["summary"]["iops"]["median"].as_f64() > Some(0.0));
    }
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.starts_with("<!") && html.contains("mine"));
    let csv = std::fs::read_to_string(out.join("results.csv")).unwrap();
    assert_eq!(csv.trim_end().lines().count(), 5, "a head and two runs of two steps");
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    let json = out.join("results.json");
    let again = bench.server.weir(&["bench", "report", json.to_str().unwrap()]);
    assert_eq!(again, shown);
}

#[test]
fn a_run_reads_the_contract_and_says_if_more_is_asked_for() {
    let bench = Bench::new("10GiB");
    let (url, json) = (bench.url(), bench.file("results.json"));
    let job = bench.file("fast.fio");
    std::fs::write(&job, "[fast]\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=1\nrate=4g\n")
        .unwrap();
    let (job, path) = (job.to_str().unwrap(), json.to_str().unwrap());
    let run = ["bench", "run", job, &url, "--warmup", "0s", "--json", path];
    let done = bench.server.try_weir(&run);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{told}");
    assert!(told.contains("asked for by step") && told.contains("volume vol permits"), "{told}");
    let shown = bench.server.weir(&["volume", "show", "vol", "--output", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let contract = &read(&json)["environment"]["contracts"][""];
    assert_eq!(contract["volume"], "vol");
    assert_eq!(contract["bytes_per_second"], shown["limit_bytes_per_second"]);
}

#[test]
fn a_dry_run_tells_everything_and_contacts_nobody() {
    let bench = Bench::new("10GiB");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    nobody.set_nonblocking(true).unwrap();
    let url = format!("nfs://{}/vol", nobody.local_addr().unwrap());
    let told = bench.server.weir(&[
        "bench",
        "run",
        &bench.job("64m", 30),
        &url,
        "--time",
        "7s",
        "--dry-run",
    ]);
    assert!(told.contains("random 4 KiB reads") && told.contains("64 MiB"), "{told}");
    assert!(told.contains("7 s") && told.contains("2 steps"), "{told}");
    assert_eq!(nobody.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let listed = bench.server.weir(&["bench", "list"]);
    let name = listed.split_whitespace().find(|word| word.starts_with("anf-")).unwrap();
    let told = bench.server.weir(&["bench", "run", name, &url, "--scale", "auto", "--dry-run"]);
    assert!(told.contains(name) && told.contains("changed:"), "{told}");
    assert_eq!(nobody.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn what_can_t_be_run_is_told_before_anything_is_made() {
    let bench = Bench::new("1GiB");
    let (job, url) = (bench.job("4m", 1), bench.url());
    let wrong = format!("nfs://{}/other", bench.server.address());
    let told = bench.refused(&["bench", "run", &job, &wrong]);
    assert!(told.contains("the export does not exist") && told.contains("/vol"), "{told}");
    let (closed, _held) = free_address();
    let told = bench.refused(&["bench", "run", &job, &format!("nfs://{closed}/vol")]);
    assert!(told.contains("nothing listens there"), "{told}");
    let large = bench.job("2g", 1);
    let told = bench.refused(&["bench", "run", &large, &url]);
    assert!(told.contains("the target has only") && told.contains("--max-data"), "{told}");
    let told = bench.refused(&["bench", &url, "--size", "2GiB", "--time", "1s"]);
    assert!(told.contains("the target has only") && told.contains("--size"), "{told}");
    let told = bench.refused(&["bench", "run", &large, &url, "--json", "/proc/no/such.json"]);
    assert!(told.contains("/proc/no/such.json"), "{told}");
    assert!(bench.left().is_empty(), "{:?}", bench.left());
    for args in [&["bench", "run", "no-such-test", &url][..], &["bench", "run", &url]] {
        let done = bench.server.try_weir(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn an_interrupted_run_writes_its_results_and_leaves_nothing() {
    let bench = Bench::new("10GiB");
    let (job, url) = (bench.job("4m", 600), bench.url());
    let json = bench.file("results.json");
    let mut run = bench.spawn(&[
        "bench",
        "run",
        &job,
        &url,
        "--warmup",
        "0s",
        "--json",
        json.to_str().unwrap(),
    ]);
    // The first line of figures: the load is under way.
    let stderr = run.stderr.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr)).map(Result::unwrap);
    assert!(lines.any(|line| line.contains("measuring")), "it ended");
    let reader = thread::spawn(move || lines.collect::<Vec<_>>());
    assert_eq!(bench.left().len(), 1);
    signal(&run, "INT");
    let status = run.wait().unwrap();
    let said = reader.join().unwrap().join("\n");
    assert_eq!(status.code(), Some(1), "{said}");
    let results = read(&json);
    assert_eq!(results["interrupted"], true);
    let steps = results["tests"][0]["steps"].as_array().unwrap();
    assert!(steps[0]["summary"]["iops"]["median"].as_f64() > Some(0.0));
    assert_eq!(steps[1]["skipped"], "interrupted");
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// Runs a load on `url` and kills the run under way. The next one removes its files, unless the
/// directory was there before: then it is refused, and what lies there since stays. `make` makes a
/// directory on the target, a volume of `server`.
pub(crate) fn killed_runs_leave_what_is_not_theirs(
    (url, server): (&str, &TestServer),
    job: &str,
    make: impl Fn(&str),
) {
    let tree = server.data().join("pools/1/volumes/1/root");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["bench", "run", job, url, "--warmup", "0s"]).args(more);
        command.env("WEIR_SMB_PASSWORD", crate::smb_share::PASSWORD);
        command
    };
    let kill = |more: &[&str]| {
        let mut run = run(more).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = std::io::BufReader::new(run.stderr.take().unwrap());
        let mut said = Vec::new();
        let mut lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
        let measures = lines.any(|line| {
            said.push(line);
            said.last().is_some_and(|line| line.contains("measuring"))
        });
        assert!(measures, "it ended: {said:?}");
        signal(&run, "KILL");
        assert!(!run.wait().unwrap().success());
        // The server closes the files of a connection after its end.
        wait_until(|| scraped(server).lines().any(|line| line == "weir_connections 0"));
    };
    let again = |more: &[&str]| {
        let done = run(&["--time", "1s"]).args(more).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    kill(&[]);
    assert!(tree.join("weir-bench").exists());
    let (code, said) = again(&[]);
    assert!(code == Some(0) && said.contains("was that of a killed run"), "{said}");
    assert!(!tree.join("weir-bench").exists());
    make("projects");
    kill(&["--dir", "projects"]);
    make("projects/precious");
    let (code, said) = again(&["--dir", "projects"]);
    assert!(code == Some(1) && said.contains("did not make the directory"), "{said}");
    assert!(tree.join("projects/precious").exists());
}

#[test]
fn a_killed_run_is_cleaned_up_by_the_next_over_nfs() {
    let bench = Bench::new("10GiB");
    let tree = bench.server.data().join("pools/1/volumes/1/root");
    let make = |directory: &str| std::fs::create_dir(tree.join(directory)).unwrap();
    let (url, job) = (bench.url(), bench.job("4m", 600));
    killed_runs_leave_what_is_not_theirs((&url, &bench.server), &job, make);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let bench = Bench::new("10GiB");
    let (job, url) = (bench.job("4m", 600), bench.url());
    let run = bench.spawn(&["bench", "run", &job, &url, "--quiet"]);
    wait_until(|| !bench.left().is_empty());
    // A server that answers nothing keeps the good order from coming.
    let id = bench.server.id().to_string();
    let to_server = |name: &str| {
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    };
    to_server("STOP");
    signal(&run, "INT");
    signal(&run, "TERM");
    let done = run.wait_with_output().unwrap();
    to_server("CONT");
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.contains("may remain"), "{said}");
}

#[test]
fn files_that_the_server_does_not_take_are_refused_before_anything_is_made() {
    let bench = Bench::new("10GiB");
    let job = bench.job("10000000000000000000", 1);
    let told = bench.refused(&["bench", "run", &job, &bench.url(), "--quiet"]);
    assert!(told.contains("step one") && told.contains("(maxfilesize)"), "{told}");
    assert_eq!(bench.left(), [""; 0]);
}

#[test]
fn files_are_kept_and_used_again_when_asked_and_never_written_over() {
    let bench = Bench::new("10GiB");
    let (job, url) = (bench.job("4m", 1), bench.url());
    let run = ["bench", "run", &job, &url, "--warmup", "0s", "--quiet"];
    bench.server.weir(&[&run[..], &["--keep"]].concat());
    assert_eq!(bench.left().len(), 1);
    let told = bench.refused(&run);
    assert!(told.contains("not empty") && told.contains("--reuse"), "{told}");
    bench.server.weir(&[&run[..], &["--reuse"]].concat());
    assert_eq!(bench.left().len(), 1, "what was there stays");
}

#[test]
fn a_search_ends_with_what_it_learnt() {
    let bench = Bench::new("10GiB");
    let json = bench.file("results.json");
    let shown = bench.server.weir(&[
        "bench",
        "search",
        &bench.url(),
        "--size",
        "4MiB",
        "--time",
        "1s",
        "--warmup",
        "0s",
        "--scaling",
        "depth",
        "--most",
        "2",
        "--quiet",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert!(shown.contains("requests in flight"), "{shown}");
    let finding = &read(&json)["tests"][0]["findings"][0];
    assert!(finding["value"].as_f64() >= Some(1.0), "{finding}");
    assert!(bench.left().is_empty());
}

#[test]
fn workers_of_this_machine_apply_a_load_together() {
    let bench = Bench::new("10GiB");
    let (job, url) = (bench.job("4m", 1), bench.url());
    let json = bench.file("results.json");
    bench.server.weir(&[
        "bench",
        "run",
        &job,
        &url,
        "--warmup",
        "0s",
        "--quiet",
        "--local-workers",
        "2",
        "--json",
        json.to_str().unwrap(),
    ]);
    let run = &read(&json)["tests"][0]["steps"][0]["runs"][0];
    let workers = run["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2);
    let each = workers.iter().map(|worker| worker["operations"].as_u64().unwrap());
    assert_eq!(each.sum::<u64>(), run["total"]["total"]["operations"].as_u64().unwrap());
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}
