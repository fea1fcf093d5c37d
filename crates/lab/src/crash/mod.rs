//! `make crash`: a server that is killed, or loses its power, at random moments under mixed load,
//! and clients that check whether everything they were answered is there.
//!
//! Clients speak NFSv3 through [`weir_nfs::client`]; each has a directory of its own and knows what
//! every file and name must be, and what is in doubt. After each restart they look at all of it,
//! send again what was not answered, and go on. A killed server loses no page cache, so nothing
//! answered may be missing. A power cut (the file system is shut down without its journal) takes
//! what was not synced: then everything answered as stable must be there, and names too where they
//! were promised to be.
//!
//! The load follows from the seed; when exactly it is struck depends on the machine.

mod audit;
mod choose;
mod client;
mod command;
mod content;
mod held;
mod op;
mod operator;
mod phase;
mod present;
mod recovery;
mod tree;
pub(crate) mod victim;
mod world;

use crate::demo::Stop;
use crate::disk::Disk;
use crate::peers::Filesystem;
use crate::sandbox;
use anyhow::{Context, Result, bail};
use phase::{Event, Outcome, Phase};
use recovery::Recovery;
use serde::Serialize;
use std::path::PathBuf;
use victim::Setup;
use weir_bench::machine;

pub(crate) use command::Command;

/// Room for the trees that are left behind after power cuts.
const DISK_BYTES: u64 = 8 << 30;
const DURABILITIES: [&str; 2] = ["power", "process"];
/// The programs that power cuts need, and the Debian packages that bring them.
const FOR_CUTS: [(&str, &str); 6] = [
    ("xfs_io", "xfsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// The work, and the destination of the results.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The `weir` program.
    pub weir: PathBuf,
    /// For data directories, file system images and logs.
    pub work: PathBuf,
    /// For `crash.json` and `crash.md`; none: only the terminal.
    pub out: Option<PathBuf>,
    /// Kills in each durability mode.
    pub kills: u64,
    /// Power cuts in each durability mode on each file system. They need root.
    pub cuts: u64,
    /// Clients, at least 2.
    pub clients: u32,
    /// The seed of the random load.
    pub seed: u64,
    /// Numbers of files to measure the time to serve again by.
    pub files: Vec<u64>,
    /// The program runs inside its namespaces already.
    pub inside: bool,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
struct Report {
    version: u32,
    weir: &'static str,
    machine: String,
    seed: u64,
    clients: u32,
    passed: bool,
    phases: Vec<Part>,
    recovery: Vec<Recovery>,
}

/// One phase of it.
#[derive(Clone, Debug, Serialize)]
struct Part {
    event: Event,
    durability: &'static str,
    filesystem: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Runs everything. `true` if nothing was found. Prints a line for each phase as the Test Anything
/// Protocol has it.
///
/// # Errors
/// Says what is missing on the machine, or what failed.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<bool> {
    let root = rustix::process::geteuid().is_root();
    if options.cuts > 0 {
        check(root)?;
    }
    if root && !options.inside {
        sandbox::enter()?;
    }
    if root {
        sandbox::loopback_up()?;
    }
    std::fs::create_dir_all(&options.work)?;
    let work = options.work.canonicalize()?;
    let options = &Options { work, ..options.clone() };
    weir_report::outln!("# seed {}", options.seed);
    let mut report = Report {
        version: 1,
        weir: env!("CARGO_PKG_VERSION"),
        machine: machine::describe(),
        seed: options.seed,
        clients: options.clients,
        passed: false,
        phases: Vec::new(),
        recovery: Vec::new(),
    };
    for durability in DURABILITIES {
        if options.kills > 0 {
            report.phases.push(kills(options, durability, stop)?);
            report.told();
        }
    }
    for filesystem in Filesystem::ALL {
        for durability in DURABILITIES {
            if options.cuts > 0 {
                report.phases.push(cuts(options, filesystem, durability, stop)?);
                report.told();
            }
        }
    }
    if !options.files.is_empty() {
        let setup = options.setup(options.work.join("many"), "process");
        report.recovery = recovery::measure(setup, &options.files, stop)?;
        remove(&options.work.join("many"))?;
    }
    report.passed = report.phases.iter().all(|part| part.outcome.findings.is_empty());
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)?;
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(out.join("crash.json"), json + "\n")?;
        std::fs::write(out.join("crash.md"), present::page(&report))?;
        weir_report::outln!("# report: {}", out.join("crash.md").display());
    }
    Ok(report.passed)
}

impl Options {
    fn setup(&self, data: PathBuf, durability: &'static str) -> Setup {
        let log = self.work.join("weir.log");
        Setup { weir: self.weir.clone(), data, log, durability }
    }
}

impl Report {
    /// Tells of the latest phase.
    fn told(&self) {
        if let Some(part) = self.phases.last() {
            present::tell(part, self.seed);
        }
    }
}

fn kills(options: &Options, durability: &'static str, stop: &Stop) -> Result<Part> {
    let data = options.work.join(format!("kills-{durability}"));
    remove(&data)?;
    let phase = Phase {
        setup: options.setup(data.clone(), durability),
        event: Event::Kill,
        events: options.kills,
        clients: options.clients,
        seed: options.seed,
        disk: None,
    };
    let outcome = phase::run(&phase, stop)?;
    if outcome.findings.is_empty() {
        remove(&data)?;
    }
    Ok(Part { event: Event::Kill, durability, filesystem: "the machine's own", outcome })
}

fn cuts(
    options: &Options,
    filesystem: Filesystem,
    durability: &'static str,
    stop: &Stop,
) -> Result<Part> {
    let name = format!("cuts-{}-{durability}", filesystem.name());
    let disk = Disk::make(&options.work, &name, filesystem, DISK_BYTES)?;
    let phase = Phase {
        setup: options.setup(disk.path().join("weir"), durability),
        event: Event::PowerCut,
        events: options.cuts,
        clients: options.clients,
        seed: options.seed,
        disk: Some(&disk),
    };
    let outcome = phase::run(&phase, stop)?;
    Ok(Part { event: Event::PowerCut, durability, filesystem: filesystem.name(), outcome })
}

fn check(root: bool) -> Result<()> {
    let missing: Vec<_> = FOR_CUTS
        .iter()
        .filter(|(program, _)| weir_bench::program::find(program).is_none())
        .collect();
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        bail!("power cuts need {missing:?}: apt-get install {}", packages.join(" "));
    }
    if !root {
        bail!("power cuts mount file systems: run as root, or with --cuts 0");
    }
    Ok(())
}

fn remove(data: &std::path::Path) -> Result<()> {
    if data.exists() {
        std::fs::remove_dir_all(data)
            .with_context(|| format!("can't remove {}", data.display()))?;
    }
    Ok(())
}
