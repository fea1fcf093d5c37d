//! `make peers`: Weir beside NFS-Ganesha, smbd and the bare loop, on the same files, in turns.
//!
//! Every server serves the same directory; one generator loads them one after the other, round by
//! round, with files that are in the page cache. The processor time per operation is compared,
//! because the rates of servers that share a machine with the generator include its cost. Kernel
//! workers count for the server they work for: all dirty pages are written back before each
//! measurement, so that no server is charged for the writeback of another.

pub(crate) mod cpu;
mod isolation;
mod judge;
mod measure;
mod plan;
mod present;
mod requirements;
mod servers;
mod smb;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::disk::{Disk, Filesystem};
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Context, Result};
use clap::Args;
use judge::{Figures, Isolation, Row, Same};
use plan::{CREATE_REMOVE, TRIALS, Trial, Work};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weir_load::{Control, NfsTarget, Target};

pub use cpu::{Reading, Threads, Used};
pub use measure::Probe;
pub(crate) use measure::Times;
pub(crate) use requirements::{check as requirements, furnish};
use servers::Side;
pub(crate) use servers::{LOCAL, weir};
pub use servers::{Peer, Reach, ganesha};

/// Room for the files, the catalogue and the journals.
const DISK_BYTES: u64 = 3 << 30;
/// The files of the report.
const FILES: [&str; 2] = ["peers.json", "peers.html"];

/// Compare Weir with NFS-Ganesha, smbd and the bare loop, as root, and write peers.json and
/// peers.html.
#[derive(Debug, Args)]
pub(crate) struct Peers {
    /// Directory for the report.
    #[arg(long, default_value = "docs/performance")]
    out: PathBuf,
    /// Directory for file system images and logs; it needs 6 GiB.
    #[arg(long, default_value = "target/peers")]
    work: PathBuf,
    /// Number of rounds; in each, the servers alternate.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Duration of the warm-up before each measurement, in seconds.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Number of threads of the load generator.
    #[arg(long, default_value_t = 1)]
    generator_threads: u32,
    /// Run one round of one second on ext4, as a functional test.
    #[arg(long)]
    quick: bool,
    /// Run only workloads whose name contains this text, such as SMB; repeatable.
    #[arg(long)]
    only: Vec<String>,
    /// Run only on this file system.
    #[arg(long, value_parser = filesystem)]
    filesystem: Option<Filesystem>,
    /// `weir` program of an earlier build to include in the comparison; no cost may have risen by
    /// more than the noise.
    #[arg(long)]
    before: Option<PathBuf>,
}

fn filesystem(name: &str) -> Result<Filesystem, String> {
    let all = Filesystem::ALL.into_iter();
    all.clone().find(|filesystem| filesystem.name() == name).ok_or_else(|| {
        format!("{name:?} is none of {}", all.map(Filesystem::name).collect::<Vec<_>>().join(", "))
    })
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    times: Times,
    passed: bool,
    rows: Vec<Row>,
    /// SMB beside smbd.
    smb: Vec<smb::Row>,
    /// CREATE + REMOVE if acknowledged changes survive a power cut.
    power: Vec<(Filesystem, Figures)>,
    /// A contract far above the load, and one a half above it.
    gate: Option<Same>,
    isolation: Option<Isolation>,
}

/// A run of the comparison.
struct Run<'a> {
    options: &'a Peers,
    weir: PathBuf,
    /// The `weir` program of an earlier build.
    before: Option<PathBuf>,
    work: PathBuf,
    times: Times,
    stop: &'a Stop,
    findings: Findings,
}

impl Campaign for Peers {
    fn requirements(&self) -> Result<()> {
        requirements()
    }

    fn isolated(&self) -> bool {
        true
    }

    fn run(&self, stop: &Stop) -> Result<Report> {
        furnish()?;
        let before = self.before.as_ref().map(|path| {
            path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
        });
        let times = self.times();
        let findings = Findings {
            origin: Origin::here(),
            times,
            passed: false,
            rows: Vec::new(),
            smb: Vec::new(),
            power: Vec::new(),
            gate: None,
            isolation: None,
        };
        let mut run = Run {
            options: self,
            weir: campaign::weir_program(None)?,
            before: before.transpose()?,
            work: campaign::work_directory(&self.work)?,
            times,
            stop,
            findings,
        };
        for (number, filesystem) in self.filesystems().into_iter().enumerate() {
            run.compare(filesystem, number == 0)?;
        }
        if let Some(filesystem) = self.filesystems().last() {
            run.compare_smb(*filesystem)?;
        }
        if self.only.is_empty() {
            weir_report::errln!("a contract that never binds");
            run.findings.gate = Some(run.gate()?);
            weir_report::errln!("a neighbour on a slow disk");
            run.findings.isolation = Some(isolation::run(&run.weir, &run.work, &times, stop)?);
        }
        run.findings.passed = judge::passed(&run.findings);
        present::print(&run.findings);
        run.report()
    }
}

impl Peers {
    fn times(&self) -> Times {
        let times = Times {
            warmup_s: self.warmup,
            measured_s: self.seconds,
            rounds: self.rounds,
            generator_threads: self.generator_threads,
        };
        if self.quick {
            return Times { warmup_s: 0.5, measured_s: 1.0, rounds: 1, ..times };
        }
        times
    }

    /// Is the workload of this name to be run?
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn filesystems(&self) -> Vec<Filesystem> {
        let mut all = self.filesystem.map_or_else(|| Filesystem::ALL.to_vec(), |only| vec![only]);
        if self.quick {
            all.truncate(1);
        }
        all
    }
}

impl Run<'_> {
    /// The report of everything measured so far.
    fn report(&self) -> Result<Report> {
        let page = present::page(&self.findings);
        let contents = (&self.findings, &page, self.findings.origin.foot());
        Report::new(judge::checks(&self.findings)).files(Some(&self.options.out), &FILES, contents)
    }

    /// All workloads on one file system.
    fn compare(&mut self, filesystem: Filesystem, first: bool) -> Result<()> {
        let wanted = |trial: &&Trial| self.options.wants(trial.name) && (first || !trial.once);
        let trials: Vec<&Trial> = TRIALS.iter().filter(wanted).collect();
        if trials.is_empty() {
            return Ok(());
        }
        let disk = Disk::make(&self.work, filesystem.name(), filesystem, DISK_BYTES)?;
        weir_report::errln!("laying files out on {}", filesystem.name());
        let (weir, directory) =
            weir(&self.weir, &disk, &self.work, "weir", "process", Reach::Loopback)?;
        measure::lay_out(&weir.target, &self.times)?;
        let before = self.before.as_ref().map(|exe| self.earlier(exe, &disk, &directory));
        let before = before.transpose()?;
        let ganesha = ganesha(LOCAL, &directory, &self.work, Reach::Loopback)?;
        let bare = servers::bare(&directory)?;
        for trial in trials {
            let row = if let Some(before) = &before {
                let sides = [&weir, &ganesha, &bare, before].map(Peer::side);
                let [weir, ganesha, bare, before] = self.rounds(&disk, &trial.work(), &sides)?;
                Row::new(trial, filesystem, [weir, ganesha, bare], Some(before))
            } else {
                let sides = [&weir, &ganesha, &bare].map(Peer::side);
                let servers = self.rounds(&disk, &trial.work(), &sides)?;
                Row::new(trial, filesystem, servers, None)
            };
            weir_report::errln!("{}", present::line(&row));
            self.findings.rows.push(row);
            // The rows until here are kept if the comparison is interrupted.
            self.report()?.write()?;
            if trial.name == CREATE_REMOVE {
                let stable = servers::weir(
                    &self.weir,
                    &disk,
                    &self.work,
                    "weir-power",
                    "power",
                    Reach::Loopback,
                )?
                .0;
                let [figures] = self.rounds(&disk, &trial.work(), &[stable.side()])?;
                self.findings.power.push((filesystem, figures));
            }
        }
        Ok(())
    }

    /// An earlier build on the same files.
    fn earlier(&self, exe: &Path, disk: &Disk, directory: &Path) -> Result<Peer> {
        let (before, root) = weir(exe, disk, &self.work, "before", "process", Reach::Loopback)?;
        share_files(directory, &root)?;
        Ok(before)
    }

    /// Measures `work` on each of the servers in turn, round by round. Each round begins with
    /// another peer, because the one that comes after a certain other may have it easier.
    fn rounds<const N: usize>(
        &self,
        disk: &Disk,
        work: &Work,
        sides: &[Side; N],
    ) -> Result<[Figures; N]> {
        let mut samples: [Vec<_>; N] = std::array::from_fn(|_| Vec::new());
        for round in 0..self.times.rounds {
            let load = measure::workload(work, &self.times, u64::from(round) + 1);
            for at in (0..N).cycle().skip(round as usize % N).take(N) {
                let (Some(side), Some(samples)) = (sides.get(at), samples.get_mut(at)) else {
                    continue;
                };
                self.stop.check()?;
                disk.sync()?;
                let sample = measure::measure(&side.target, side.pid, &load, &Control::new())
                    .with_context(|| format!("{} on {:?}", work.name, side.series))?;
                samples.push(sample);
            }
        }
        Ok(samples.map(Figures::new))
    }

    /// A contract far above the load, and one that is a half above it, in turns: the gate's price
    /// should not depend on how near the contract is.
    fn gate(&self) -> Result<Same> {
        const HUGE_GIBIBYTES: u64 = 200 * 1024;
        let disk = Disk::make(&self.work, "gate", Filesystem::Ext4, DISK_BYTES)?;
        let (data, log) = (disk.path().join("weir"), self.work.join("gate.log"));
        let (server, operator) =
            TestServer::start_new(Settings::temporary(&self.weir, data, log)?)?;
        operator.make_pool("gate", 256, None)?;
        operator.make_volume("gate", "gate", HUGE_GIBIBYTES)?;
        let target = Target::Nfs(NfsTarget::new(server.address(), "/gate"));
        let (trial, times) = (&TRIALS[1], &self.times);
        measure::lay_out(&target, times)?;
        let run = |round: u32| {
            let load = measure::workload(&trial.work(), times, u64::from(round) + 1);
            measure::measure(&target, server.pid()?, &load, &Control::new())
        };
        let mut near_gibibytes = None;
        let (mut far, mut near) = (Vec::new(), Vec::new());
        for round in 0..times.rounds {
            self.stop.check()?;
            operator.resize("gate", HUGE_GIBIBYTES)?;
            let sample = run(round)?;
            far.push(sample);
            let quota = *near_gibibytes
                .get_or_insert_with(|| quota_for(sample.iops * f64::from(trial.block_bytes) * 1.5));
            operator.resize("gate", quota)?;
            near.push(run(round)?);
        }
        Ok(Same::new(Figures::new(far), Figures::new(near)))
    }
}

/// Gives the volume with the directory `to` the files of the one with `from`, by hard links: pages
/// of other files lie elsewhere in memory, and reading them costs up to a tenth more or less. The
/// earlier server has not seen the directory yet, and no other changes attributes that it caches.
fn share_files(from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (from.join(measure::DIRECTORY), to.join(measure::DIRECTORY));
    let made = std::fs::create_dir(&to);
    made.with_context(|| format!("cannot create {}", to.display()))?;
    for file in std::fs::read_dir(&from)? {
        let name = file?.file_name();
        std::fs::hard_link(from.join(&name), to.join(&name))
            .with_context(|| format!("cannot link {} into {}", from.display(), to.display()))?;
    }
    Ok(())
}

/// The quota in GiB that gives `bytes_per_second` at the Ultra level, 128 MiB/s for each TiB.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive quota of at most thousands of TiB"
)]
fn quota_for(bytes_per_second: f64) -> u64 {
    (bytes_per_second / f64::from(1u32 << 20) / 128.0 * 1024.0).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_follow_from_the_level() {
        assert_eq!(quota_for(128.0 * 1_048_576.0), 1024);
        assert_eq!(quota_for(192.0 * 1_048_576.0), 1536);
    }
}
