//! The suites: what each needs, in which lane it runs, and how.

use super::count::{Tally, cargo_line, count_lines, tap_line};
use super::programs::{FEATURES, Programs};
use crate::conformance::{self, Verdict};
use crate::{check, fuzz, package, preflight, process};
use anyhow::{Context, Result};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Seconds for each fuzz target; `make fuzz` is for more.
const FUZZ_SECONDS: u32 = 7;
/// Kills in each of two durability modes, and power cuts in each on each of two file systems.
const CRASH_KILLS: &str = "25";
const CRASH_CUTS: &str = "3";

/// A part of `make test`.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) lane: Lane,
    /// Programs, devices and rights without which it can't run.
    pub(super) needs: &'static [Need],
    pub(super) run: fn(&Run<'_>) -> Result<Tally>,
}

/// Suites of one lane run one after the other, and the lanes beside each other. Cargo builds for
/// one lane at a time: the checks wait while the tests of the workspace are built, and go on while
/// these run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// The tests of the workspace.
    Workspace,
    /// The checks.
    Checks,
    /// All others. They take the programs as they were built.
    Beside,
}

impl Lane {
    pub(super) const ALL: [Self; 3] = [Self::Workspace, Self::Checks, Self::Beside];
}

/// One run of a suite.
pub(super) struct Run<'a> {
    /// Before each line of output.
    pub(super) mark: &'a str,
    pub(super) programs: &'a Programs,
}

/// Something without which a suite can't run.
pub(super) enum Need {
    Root,
    Device(&'static str),
    Program(&'static str),
    /// The daemons of a small Ceph.
    Ceph,
}

/// The daemons of Ceph.
const CEPH: [&str; 4] = ["ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds"];

pub(super) const SUITES: [Suite; 18] = [
    Suite { name: "check", lane: Lane::Checks, needs: &[], run: run_checks },
    Suite {
        name: "workspace",
        lane: Lane::Workspace,
        needs: &[
            Need::Program("cc"),
            Need::Program("protoc"),
            Need::Program("etcd"),
            Need::Program("etcdctl"),
        ],
        run: run_workspace,
    },
    Suite {
        name: "crash",
        lane: Lane::Beside,
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
    Suite { name: "fuzz", lane: Lane::Beside, needs: &[Need::Program("c++")], run: run_fuzz },
    Suite {
        name: "libnfs",
        lane: Lane::Beside,
        needs: &[Need::Program("nfs-ls"), Need::Program("nfs-cp"), Need::Program("nfs-cat")],
        run: |run| run_script(run, "tests/clients/libnfs.sh"),
    },
    Suite {
        name: "report",
        lane: Lane::Beside,
        needs: &[Need::Program("chromium"), Need::Program("python3")],
        run: run_report,
    },
    Suite {
        name: "rpcbind",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("rpcbind"),
            Need::Program("rpcinfo"),
            Need::Program("rpc.statd"),
            Need::Program("showmount"),
        ],
        run: |run| run_script(run, "tests/clients/rpcbind.sh"),
    },
    Suite {
        name: "kernel",
        lane: Lane::Beside,
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
        run: |run| run_script(run, "tests/clients/kernel.sh"),
    },
    Suite {
        name: "locks",
        lane: Lane::Beside,
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
        run: |run| run_script(run, "tests/clients/locks.sh"),
    },
    Suite {
        name: "smbclient",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("smbclient"),
            Need::Program("python3"),
        ],
        run: |run| run_script(run, "tests/clients/smbclient.sh"),
    },
    Suite {
        name: "smbprotocol",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("python3"),
        ],
        run: |run| run_script(run, "tests/clients/smbprotocol.sh"),
    },
    Suite {
        name: "smbtorture",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("python3"),
            Need::Program("smbtorture"),
        ],
        run: |run| run_script(run, "tests/conformance/smbtorture.sh"),
    },
    Suite {
        name: "smbkernel",
        lane: Lane::Beside,
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
        run: |run| run_script(run, "tests/clients/smb-kernel.sh"),
    },
    Suite {
        name: "pjdfstest",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("linux.uml"),
            Need::Program("modprobe"),
            Need::Program("busybox"),
            Need::Program("mount.nfs"),
            Need::Program("ip"),
            Need::Program("python3"),
            Need::Program("etcd"),
            Need::Ceph,
            Need::Program(preflight::PJDFSTEST),
        ],
        run: run_pjdfstest,
    },
    Suite {
        name: "ceph",
        lane: Lane::Beside,
        needs: &[Need::Root, Need::Program("ip"), Need::Program("python3"), Need::Ceph],
        run: run_ceph,
    },
    Suite {
        name: "cluster",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Program("cc"),
            Need::Program("ip"),
            Need::Program("nft"),
            Need::Program("python3"),
            Need::Program("etcd"),
            Need::Program("etcdctl"),
            Need::Ceph,
        ],
        run: run_cluster,
    },
    Suite {
        name: "workers",
        lane: Lane::Beside,
        needs: &[
            Need::Root,
            Need::Device("/dev/net/tun"),
            Need::Program("ip"),
            Need::Program("nft"),
            Need::Program("python3"),
            Need::Program("jq"),
        ],
        run: |run| run_script(run, "tests/clients/bench-workers.sh"),
    },
    Suite {
        name: "package",
        lane: Lane::Beside,
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

impl Need {
    /// The missing requirement, if there is one.
    pub(super) fn missing(&self) -> Option<String> {
        match self {
            Self::Root => (!preflight::is_root().unwrap_or(false)).then(|| "needs root".to_owned()),
            Self::Device(path) => (!Path::new(path).exists()).then(|| format!("no device {path}")),
            Self::Program(name) => (!process::exists(name)).then(|| format!("no program {name}")),
            Self::Ceph => CEPH.iter().find_map(|name| Self::Program(name).missing()),
        }
    }
}

fn run_checks(_: &Run<'_>) -> Result<Tally> {
    let outcome = check::all()?;
    Ok(Tally { passed: outcome.passed, failed: outcome.failed, skipped: 0 })
}

/// The workspace's tests, and then those that explore the schedules of threads: with the feature
/// `schedules` atomics and locks work in these tests only.
fn run_workspace(run: &Run<'_>) -> Result<Tally> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", FEATURES]);
    let mut tally = count_lines(&mut command, run.mark, cargo_line)?;
    let qos: &[&str] = &["--test=schedules"];
    let server: &[&str] = &["--lib", "worker::schedules"];
    for (package, tests) in [("qos", qos), ("server", server)] {
        let mut schedules = Command::new("cargo");
        schedules.args(["test", "--locked", "--no-fail-fast"]);
        // With the package of the program, which has no library whose tests would be built, most
        // dependencies have the features that they have in the workspace, and are not built anew.
        schedules.args(["--package=weir-weir", &format!("--package=weir-{package}")]);
        schedules.arg(format!("--features=weir-weir/cluster,weir-{package}/schedules"));
        tally += count_lines(schedules.args(tests), run.mark, cargo_line)?;
    }
    Ok(tally)
}

/// Every fault of a cluster once.
fn run_cluster(run: &Run<'_>) -> Result<Tally> {
    let mut faults = Command::new(&run.programs.cluster_lab);
    faults.args(["faults", "--logs", "target/suites/cluster", "--weir"]).arg(&run.programs.weir);
    count_lines(&mut faults, run.mark, tap_line)
}

/// The tests of the store on CephFS, and of a gateway that serves it, each on a small Ceph of its
/// own.
fn run_ceph(run: &Run<'_>) -> Result<Tally> {
    let mut tally = Tally::default();
    for (script, tests) in ["ceph-store", "ceph-server"].iter().zip(&run.programs.on_ceph) {
        let mut script = Command::new(format!("tests/cluster/{script}.sh"));
        tally += count_lines(script.env("CEPH_TESTS", tests), run.mark, tap_line)?;
    }
    Ok(tally)
}

fn run_fuzz(_: &Run<'_>) -> Result<Tally> {
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

/// pjdfstest over the kernel's client, on volumes on CephFS.
fn run_pjdfstest(run: &Run<'_>) -> Result<Tally> {
    let mut tally = Tally::default();
    for verdict in conformance::on_cephfs(&run.programs.weir, run.mark)? {
        match verdict {
            Verdict::Passed => tally.passed += 1,
            Verdict::Failed => tally.failed += 1,
            Verdict::Skipped => tally.skipped += 1,
        }
    }
    Ok(tally)
}

fn run_script(run: &Run<'_>, script: &str) -> Result<Tally> {
    count_lines(Command::new(script).env("WEIR", &run.programs.weir), run.mark, tap_line)
}

/// Has the benchmark's reports made, and looks at them in a browser.
fn run_report(run: &Run<'_>) -> Result<Tally> {
    let mut script = Command::new("tests/clients/report-browser.sh");
    count_lines(script.env("REPORTS", &run.programs.reports), run.mark, tap_line)
}

/// Kills the server and cuts its power; `make crash` does so for longer.
fn run_crash(run: &Run<'_>) -> Result<Tally> {
    let mut crash = Command::new(&run.programs.lab);
    crash.args(["crash", "--kills", CRASH_KILLS, "--cuts", CRASH_CUTS, "--weir"]);
    count_lines(crash.arg(&run.programs.weir), run.mark, tap_line)
}

/// Packages the program twice, and has one package follow the other in a clean Debian.
fn run_package(run: &Run<'_>) -> Result<Tally> {
    let out = Path::new("target/package");
    let build = |revision| {
        let packages = package::build(&run.programs.weir, revision, out)?;
        let program = |path: &&PathBuf| !path.to_string_lossy().contains("-dbgsym_");
        packages.iter().find(program).cloned().context("there is no package of the program")
    };
    let (older, newer) = (build(None)?, build(Some("1+test"))?);
    let mut script = Command::new("tests/package/package.sh");
    script.env("DEB", older).env("NEXT", newer).env("CACHE", out);
    count_lines(&mut script, run.mark, tap_line)
}
