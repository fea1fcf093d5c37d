//! Every suite of `make test`: what it needs, how it runs, and how its results are counted.
//!
//! A suite that can't run here fails, unless `WEIR_SKIP` names it: a green run without the kernel
//! client must be somebody's decision, and visible.

use crate::{check, fuzz, package, preflight, process};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// Seconds for each fuzz target; `make fuzz` is for more.
const FUZZ_SECONDS: u32 = 7;
/// Kills in each of two durability modes, and power cuts in each on each of two file systems.
const CRASH_KILLS: &str = "25";
const CRASH_CUTS: &str = "3";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

struct Suite {
    name: &'static str,
    /// Programs, devices and rights without which it can't run.
    needs: &'static [Need],
    run: fn() -> Result<Tally>,
}

enum Need {
    Root,
    Device(&'static str),
    Program(&'static str),
}

const SUITES: [Suite; 15] = [
    Suite { name: "check", needs: &[], run: run_checks },
    Suite { name: "workspace", needs: &[Need::Program("cc")], run: run_workspace },
    Suite {
        name: "crash",
        needs: &[
            Need::Root,
            Need::Device("/dev/loop-control"),
            Need::Program("mkfs.ext4"),
            Need::Program("mkfs.xfs"),
            Need::Program("xfs_io"),
            Need::Program("unshare"),
            Need::Program("ip"),
        ],
        run: run_crash,
    },
    Suite { name: "fuzz", needs: &[Need::Program("c++")], run: run_fuzz },
    Suite {
        name: "libnfs",
        needs: &[Need::Program("nfs-ls"), Need::Program("nfs-cp"), Need::Program("nfs-cat")],
        run: || run_script("tests/clients/libnfs.sh"),
    },
    Suite {
        name: "report",
        needs: &[Need::Program("chromium"), Need::Program("python3")],
        run: run_report,
    },
    Suite {
        name: "rpcbind",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("rpcbind"),
            Need::Program("rpcinfo"),
            Need::Program("rpc.statd"),
            Need::Program("showmount"),
        ],
        run: || run_script("tests/clients/rpcbind.sh"),
    },
    Suite {
        name: "kernel",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("linux.uml"),
            Need::Program("modprobe"),
            Need::Program("busybox"),
            Need::Program("mount.nfs"),
            Need::Program("ip"),
            Need::Program("make"),
        ],
        run: || run_script("tests/clients/kernel.sh"),
    },
    Suite {
        name: "locks",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("linux.uml"),
            Need::Program("modprobe"),
            Need::Program("busybox"),
            Need::Program("cc"),
            Need::Program("mount.nfs"),
            Need::Program("ip"),
            Need::Program("rpcbind"),
            Need::Program("rpc.statd"),
        ],
        run: || run_script("tests/clients/locks.sh"),
    },
    Suite {
        name: "smbclient",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("smbclient"),
            Need::Program("python3"),
        ],
        run: || run_script("tests/clients/smbclient.sh"),
    },
    Suite {
        name: "smbprotocol",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("python3"),
        ],
        run: || run_script("tests/clients/smbprotocol.sh"),
    },
    Suite {
        name: "smbtorture",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("python3"),
            Need::Program("smbtorture"),
        ],
        run: || run_script("tests/conformance/smbtorture.sh"),
    },
    Suite {
        name: "smbkernel",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("linux.uml"),
            Need::Program("modprobe"),
            Need::Program("busybox"),
            Need::Program("mount.cifs"),
            Need::Program("ip"),
            Need::Program("make"),
        ],
        run: || run_script("tests/clients/smb-kernel.sh"),
    },
    Suite {
        name: "workers",
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("nft"),
            Need::Program("python3"),
            Need::Program("jq"),
        ],
        run: || run_script("tests/clients/bench-workers.sh"),
    },
    Suite {
        name: "package",
        needs: &[
            Need::Root,
            Need::Program("dh"),
            Need::Program("dpkg-buildpackage"),
            Need::Program("lintian"),
            Need::Program("mandoc"),
            Need::Program("debootstrap"),
            Need::Program("systemd-nspawn"),
            Need::Program("nsenter"),
        ],
        run: run_package,
    },
];

/// Runs every suite and prints the totals; `true` if nothing failed.
pub(crate) fn run() -> Result<bool> {
    preflight::tests()?;
    let skip = skip_list(&env::var("WEIR_SKIP").unwrap_or_default())?;
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for suite in &SUITES {
        println!("\n=== {} ===", suite.name);
        let began = Instant::now();
        let tally = if skip.contains(suite.name) {
            Tally { skipped: 1, ..Tally::default() }
        } else {
            run_suite(suite)
        };
        let Tally { passed, failed, skipped } = tally;
        lines.push(format!(
            "{:11} {passed:5} passed {failed:3} failed {skipped:3} skipped {:5} s",
            suite.name,
            began.elapsed().as_secs()
        ));
        total += tally;
    }
    println!("\n=== summary ===\n{}", lines.join("\n"));
    if !skip.is_empty() {
        let names: Vec<&str> = skip.into_iter().collect();
        println!("suites left out by WEIR_SKIP: {}", names.join(", "));
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(total.failed == 0)
}

/// The suites named in `list`, separated by commas or blanks.
fn skip_list(list: &str) -> Result<BTreeSet<&'static str>> {
    let mut skip = BTreeSet::new();
    for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
        let Some(suite) = SUITES.iter().find(|suite| suite.name == word) else {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            bail!("WEIR_SKIP: there is no suite `{word}`; there are: {}", names.join(", "));
        };
        skip.insert(suite.name);
    }
    Ok(skip)
}

fn run_suite(suite: &Suite) -> Tally {
    let failure = Tally { failed: 1, ..Tally::default() };
    if let Some(missing) = suite.needs.iter().find_map(Need::missing) {
        println!("can't run: {missing}; WEIR_SKIP={} leaves it out", suite.name);
        return failure;
    }
    match (suite.run)() {
        Ok(tally) if tally.passed + tally.failed == 0 => {
            println!("ran no test, which counts as a failure");
            failure
        }
        Ok(tally) => tally,
        Err(error) => {
            println!("{error:#}");
            failure
        }
    }
}

impl Need {
    /// The missing requirement, if there is one.
    fn missing(&self) -> Option<String> {
        match self {
            Self::Root => (!preflight::is_root().unwrap_or(false)).then(|| "needs root".to_owned()),
            Self::Device(path) => (!Path::new(path).exists()).then(|| format!("no device {path}")),
            Self::Program(name) => (!process::exists(name)).then(|| format!("no program {name}")),
        }
    }
}

fn run_checks() -> Result<Tally> {
    let outcome = check::all()?;
    Ok(Tally { passed: outcome.passed, failed: outcome.failed, skipped: 0 })
}

/// The workspace's tests, and then those that explore the schedules of threads: with the feature
/// `schedules` atomics and locks work in these tests only.
fn run_workspace() -> Result<Tally> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    let mut tally = count_lines(&mut command, cargo_line)?;
    let qos = ["--package=weir-qos", "--test=schedules"];
    let server = ["--package=weir-server", "--lib"];
    for (package, only) in [(qos, None), (server, Some("worker::schedules"))] {
        let mut schedules = Command::new("cargo");
        schedules.arg("test").args(package).args(["--features=schedules", "--locked"]);
        schedules.arg("--no-fail-fast").args(only);
        tally += count_lines(&mut schedules, cargo_line)?;
    }
    Ok(tally)
}

fn run_fuzz() -> Result<Tally> {
    let host = fuzz::host()?;
    fuzz::build(&host)?;
    let mut tally = Tally::default();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    for some in fuzz::TARGETS.chunks(processors) {
        for row in fuzz::run_together(&host, some, FUZZ_SECONDS)? {
            tally.passed += usize::from(row.is_clean);
            tally.failed += usize::from(!row.is_clean);
        }
    }
    Ok(tally)
}

/// Runs a shell suite against the binary that the workspace's tests were run with.
fn run_script(script: &str) -> Result<Tally> {
    let weir = built("weir-weir", "weir")?;
    count_lines(Command::new(script).env("WEIR", weir), tap_line)
}

/// Has the benchmark's reports made, and looks at them in a browser.
fn run_report() -> Result<Tally> {
    let mut build = Command::new("cargo");
    build.args(["build", "--package=weir-bench", "--example=reports", "--profile=test"]);
    if !process::succeeds(build.args(["--locked", "--quiet"]))? {
        bail!("the example reports do not build");
    }
    let reports = in_target("examples/reports")?;
    let mut script = Command::new("tests/clients/report-browser.sh");
    count_lines(script.env("REPORTS", reports), tap_line)
}

/// Kills that binary and cuts its power; `make crash` does so for longer.
fn run_crash() -> Result<Tally> {
    let weir = built("weir-weir", "weir")?;
    let mut crash = Command::new(built("weir-lab", "weir-lab")?);
    crash.args(["crash", "--kills", CRASH_KILLS, "--cuts", CRASH_CUTS, "--weir"]).arg(weir);
    count_lines(&mut crash, tap_line)
}

/// Packages that binary twice, and has one package follow the other in a clean Debian.
fn run_package() -> Result<Tally> {
    let weir = built("weir-weir", "weir")?;
    let out = Path::new("target/package");
    let build = |revision| {
        let packages = package::build(&weir, revision, out)?;
        let program = |path: &&PathBuf| !path.to_string_lossy().contains("-dbgsym_");
        packages.iter().find(program).cloned().context("there is no package of the program")
    };
    let (older, newer) = (build(None)?, build(Some("1+test"))?);
    let mut script = Command::new("tests/package/package.sh");
    script.env("DEB", older).env("NEXT", newer).env("CACHE", out);
    count_lines(&mut script, tap_line)
}

/// A program of ours, as the workspace's tests are built.
pub(crate) fn built(package: &str, program: &str) -> Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--package", package, "--profile=test", "--locked", "--quiet"]);
    if !process::succeeds(&mut build)? {
        bail!("{package} does not build");
    }
    in_target(program)
}

/// A file among those built in the profile of tests.
fn in_target(file: &str) -> Result<PathBuf> {
    let target = env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let path = Path::new(&target).join("debug").join(file);
    path.canonicalize().with_context(|| format!("finding {file}"))
}

/// Passes on what `command` prints and counts results line by line. A command that fails without
/// having reported a failed test counts as one.
fn count_lines(command: &mut Command, count: fn(&str) -> Tally) -> Result<Tally> {
    let shown = format!("{command:?}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("running {shown}"))?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("reading the output of a suite")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally += count(&line);
        }
    }
    if !child.wait()?.success() && tally.failed == 0 {
        println!("{shown} failed");
        tally.failed = 1;
    }
    Ok(tally)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
fn cargo_line(line: &str) -> Tally {
    let Some((_, counts)) =
        line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
    else {
        return Tally::default();
    };
    let count = |what: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
            .unwrap_or_default()
    };
    Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") }
}

/// `ok - name` or `not ok - name`, as the Test Anything Protocol writes it; an `ok` that is marked
/// `# SKIP` shows nothing.
fn tap_line(line: &str) -> Tally {
    let ok = line.starts_with("ok - ");
    let skipped = ok && line.contains(" # SKIP");
    Tally {
        passed: usize::from(ok && !skipped),
        failed: usize::from(line.starts_with("not ok - ")),
        skipped: usize::from(skipped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_from_both_kinds_of_lines() {
        let line =
            "test result: FAILED. 31 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(cargo_line(line), Tally { passed: 31, failed: 2, skipped: 1 });
        assert_eq!(cargo_line("test a ... ok"), Tally::default());
        assert_eq!(tap_line("ok - a"), Tally { passed: 1, ..Tally::default() });
        assert_eq!(tap_line("not ok - a"), Tally { failed: 1, ..Tally::default() });
        assert_eq!(tap_line("ok - a # SKIP why"), Tally { skipped: 1, ..Tally::default() });
        assert_eq!(tap_line("not ok - a # SKIP"), Tally { failed: 1, ..Tally::default() });
    }

    #[test]
    fn a_suite_that_cannot_run_fails_and_one_that_ran_nothing_too() {
        let absent = Need::Program("no-such-program-anywhere");
        let failed = Tally { failed: 1, ..Tally::default() };
        let needs = vec![absent].leak();
        assert_eq!(run_suite(&Suite { name: "a", needs, run: || Ok(Tally::default()) }), failed);
        assert_eq!(
            run_suite(&Suite { name: "b", needs: &[], run: || Ok(Tally::default()) }),
            failed
        );
    }

    #[test]
    fn a_command_that_dies_silently_counts_as_a_failure() {
        let tally = count_lines(&mut Command::new("false"), tap_line).unwrap();
        assert_eq!(tally, Tally { failed: 1, ..Tally::default() });
    }

    #[test]
    fn only_known_suites_can_be_left_out() {
        assert_eq!(skip_list("kernel, fuzz").unwrap(), BTreeSet::from(["fuzz", "kernel"]));
        assert!(skip_list("kernle").is_err());
    }
}
