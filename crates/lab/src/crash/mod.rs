//! `make crash`: kills the server, or cuts its power, at random moments under mixed load, and
//! checks that no acknowledged change is lost.
//!
//! Clients use NFSv3 through [`weir_nfs::client`], and SMB ([`smb`]); each has a directory of its
//! own and knows the content that every file must have, and which changes are in doubt. After each
//! restart they compare all of it and continue; those of NFS send unanswered calls again first. A
//! killed server does not lose the page cache, so every acknowledged change must be there. A power
//! cut (the file system is shut down without its journal) loses data that was not synced: then
//! everything acknowledged as stable must be there, and names too where their durability is
//! promised.
//!
//! The load follows from the seed; the moments of kills and cuts depend on the machine.

mod audit;
mod choose;
mod client;
mod content;
mod held;
mod journal;
mod op;
mod operator;
mod phase;
mod present;
mod recovery;
mod smb;
mod tree;
mod watcher;
mod world;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::disk::{Disk, Filesystem};
use crate::judge::Check;
use crate::sandbox;
use crate::server::Settings;
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use clap::Args;
use phase::{Event, Phase, PhaseOutcome};
use recovery::Recovery;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Room for the trees that are left behind after power cuts.
const DISK_BYTES: u64 = 8 << 30;
const DURABILITIES: [&str; 2] = ["power", "process"];
/// The programs that power cuts need, and the Debian packages that contain them.
const FOR_CUTS: [(&str, &str); 6] = [
    ("xfs_io", "xfsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// Kill a server and simulate power failures at random moments under mixed load, and check that no
/// acknowledged data is lost.
#[derive(Debug, Args)]
pub(crate) struct Crash {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for data directories, file system images and logs.
    #[arg(long, default_value = "target/crash")]
    work: PathBuf,
    /// Directory for crash.json and crash.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of kills per durability mode.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Number of power failures per durability mode on each of ext4 and XFS (requires root).
    #[arg(long, default_value_t = 100)]
    cuts: u64,
    /// Number of NFS clients.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1000))]
    clients: u32,
    /// Number of SMB clients.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=1000))]
    smb_clients: u32,
    /// Seed of the random load [default: random].
    #[arg(long)]
    seed: Option<u64>,
    /// Numbers of files for measuring the restart time, in ascending order.
    #[arg(long, value_delimiter = ',')]
    files: Vec<u64>,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    seed: u64,
    clients: u32,
    smb_clients: u32,
    passed: bool,
    phases: Vec<PhaseResult>,
    recovery: Vec<Recovery>,
}

/// The result of one phase.
#[derive(Clone, Debug, Serialize)]
struct PhaseResult {
    event: Event,
    durability: &'static str,
    filesystem: &'static str,
    #[serde(flatten)]
    outcome: PhaseOutcome,
}

impl Campaign for Crash {
    fn requirements(&self) -> Result<()> {
        if self.cuts > 0 {
            sandbox::programs("power cuts", &FOR_CUTS)?;
            ensure!(
                sandbox::is_root(),
                "power cuts mount file systems: run as root, or with --cuts 0"
            );
        }
        Ok(())
    }

    fn isolated(&self) -> bool {
        sandbox::is_root()
    }

    fn run(&self, stop: &Stop) -> Result<Report> {
        if sandbox::is_root() {
            sandbox::loopback_up()?;
        }
        let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |now| now.subsec_nanos().into());
        let run = Run {
            options: self,
            weir: campaign::weir_program(self.weir.as_deref())?,
            work: campaign::work_directory(&self.work)?,
            seed: self.seed.unwrap_or_else(clock),
            stop,
        };
        weir_report::outln!("# seed {}", run.seed);
        let origin = Origin::here();
        let phases = run.phases()?;
        let recovery = run.recovery()?;
        let checks: Vec<Check> = phases.iter().map(present::check).collect();
        let passed = checks.iter().all(|check| check.passed);
        let Self { clients, smb_clients, .. } = *self;
        let seed = run.seed;
        let findings = Findings { origin, seed, clients, smb_clients, passed, phases, recovery };
        let page = present::page(&findings);
        let contents = (&findings, &page, findings.origin.foot());
        Report::new(checks).files(self.out.as_deref(), &["crash.json", "crash.md"], contents)
    }
}

/// A run of the campaign.
struct Run<'a> {
    options: &'a Crash,
    weir: PathBuf,
    work: PathBuf,
    seed: u64,
    stop: &'a Stop,
}

impl Run<'_> {
    /// All phases. Prints a line for each in the form of the Test Anything Protocol.
    fn phases(&self) -> Result<Vec<PhaseResult>> {
        let mut phases = Vec::new();
        let mut add = |result: PhaseResult| {
            present::print(&result, self.seed);
            phases.push(result);
        };
        for durability in DURABILITIES {
            if self.options.kills > 0 {
                add(self.kills(durability)?);
            }
        }
        for filesystem in Filesystem::ALL {
            for durability in DURABILITIES {
                if self.options.cuts > 0 {
                    add(self.cuts(filesystem, durability)?);
                }
            }
        }
        Ok(phases)
    }

    fn kills(&self, durability: &'static str) -> Result<PhaseResult> {
        let data = self.work.join(format!("kills-{durability}"));
        remove(&data)?;
        let phase = self.phase(Event::Kill, data.clone(), durability, None);
        let outcome = phase::run(&phase, self.stop)?;
        // After a finding the data is kept for inspection.
        if outcome.findings.is_empty() {
            remove(&data)?;
        }
        Ok(PhaseResult { event: Event::Kill, durability, filesystem: "the machine's own", outcome })
    }

    fn cuts(&self, filesystem: Filesystem, durability: &'static str) -> Result<PhaseResult> {
        let name = format!("cuts-{}-{durability}", filesystem.name());
        let disk = Disk::make(&self.work, &name, filesystem, DISK_BYTES)?;
        let data = disk.path().join("weir");
        let phase = self.phase(Event::PowerCut, data, durability, Some(&disk));
        let outcome = phase::run(&phase, self.stop)?;
        let filesystem = filesystem.name();
        Ok(PhaseResult { event: Event::PowerCut, durability, filesystem, outcome })
    }

    fn phase<'a>(
        &self,
        event: Event,
        data: PathBuf,
        durability: &'static str,
        disk: Option<&'a Disk>,
    ) -> Phase<'a> {
        let Crash { kills, cuts, clients, smb_clients, .. } = *self.options;
        Phase {
            settings: self.settings(data, durability),
            event,
            events: if event == Event::Kill { kills } else { cuts },
            clients,
            smb_clients,
            seed: self.seed,
            disk,
        }
    }

    /// The time to serve again, for each number of files.
    fn recovery(&self) -> Result<Vec<Recovery>> {
        if self.options.files.is_empty() {
            return Ok(Vec::new());
        }
        let data = self.work.join("many");
        remove(&data)?;
        let settings = self.settings(data, "process");
        let settings = Settings { temporary: true, smb: false, ..settings };
        recovery::measure(settings, &self.options.files, self.stop)
    }

    fn settings(&self, data: PathBuf, durability: &'static str) -> Settings {
        let (weir, log) = (self.weir.clone(), self.work.join("weir.log"));
        Settings { weir, data, log, durability, temporary: false, smb: true, everywhere: false }
    }
}

fn remove(data: &Path) -> Result<()> {
    if data.exists() {
        std::fs::remove_dir_all(data)
            .with_context(|| format!("cannot remove {}", data.display()))?;
    }
    Ok(())
}
