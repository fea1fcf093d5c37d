//! `make peers`: Weir beside NFS-Ganesha and the bare loop, on the same files, in turns.
//!
//! Every server serves the same directory; one generator loads them one after the other, round by
//! round, with files that lie in the page cache. What is compared is processor time for an
//! operation, for rates of servers that share a machine with the generator mix in the generator.
//! Kernel workers count for the server they work for: before each measurement everything is
//! written back, so that none inherits the write-back of another.

mod command;
pub(crate) mod cpu;
mod isolation;
mod judge;
mod measure;
mod plan;
mod present;
mod sandbox;
mod servers;

use crate::demo::{Operator, Server, Stop};
use crate::disk::Disk;
use anyhow::{Context, Result, bail};
use judge::{Figures, Isolation, Row, Same, Verdict};
use plan::{CREATE_REMOVE, TRIALS, Trial};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_bench::machine;
use weir_load::{Control, NfsTarget, Target};

pub(crate) use command::Command;

pub(crate) use measure::Times;
pub(crate) use plan::Filesystem;
pub(crate) use sandbox::{check as requirements, furnish};
pub(crate) use servers::{Peer, ganesha, weir};

/// Room for the files, the catalogue and the journals.
const DISK_BYTES: u64 = 3 << 30;

/// The comparison, and the destination of the results.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The `weir` program.
    pub weir: PathBuf,
    /// The `weir-bare` program.
    pub bare: PathBuf,
    /// The `weir` program of an earlier build: did anything become slower since?
    pub before: Option<PathBuf>,
    /// For file system images and logs; needs 6 GiB.
    pub work: PathBuf,
    /// For `peers.json` and `peers.html`.
    pub out: PathBuf,
    /// The durations, and the number of repeats.
    pub times: Times,
    /// On which file systems.
    pub filesystems: Vec<Filesystem>,
    /// Names of workloads contain one of these; empty: all, the gate and isolation too.
    pub only: Vec<String>,
    /// The program runs inside its namespaces already.
    pub inside: bool,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
struct Report {
    version: u32,
    weir: &'static str,
    machine: String,
    started_unix_s: f64,
    times: Times,
    passed: bool,
    rows: Vec<Row>,
    /// CREATE + REMOVE when what is answered survives a power cut.
    power: Vec<(Filesystem, Figures)>,
    /// A contract far above the load, and one a half above it.
    gate: Option<Same>,
    isolation: Option<Isolation>,
}

/// Runs the comparison. `true` if every bar was met and none is void.
///
/// # Errors
/// Says what is missing on the machine, or what failed.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<bool> {
    requirements()?;
    if !options.inside {
        crate::sandbox::enter()?;
    }
    furnish()?;
    std::fs::create_dir_all(&options.work)?;
    std::fs::create_dir_all(&options.out)?;
    let work = options.work.canonicalize()?;
    let options = &Options { work, ..options.clone() };
    let mut report = Report {
        version: 1,
        weir: env!("CARGO_PKG_VERSION"),
        machine: machine::describe(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64(),
        times: options.times,
        passed: false,
        rows: Vec::new(),
        power: Vec::new(),
        gate: None,
        isolation: None,
    };
    for (number, &filesystem) in options.filesystems.iter().enumerate() {
        compare(options, filesystem, number == 0, &mut report, stop)?;
    }
    if options.only.is_empty() {
        weir_report::errln!("a contract that never binds");
        report.gate = Some(gate(options, stop)?);
        weir_report::errln!("a neighbour on a slow disk");
        report.isolation =
            Some(isolation::run(&options.weir, &options.work, &options.times, stop)?);
    }
    report.passed = report.judge();
    write(options, &report)?;
    present::print(&report);
    weir_report::outln!("");
    weir_report::outln!("Report: {}", options.out.join("peers.html").display());
    Ok(report.passed)
}

/// All workloads on one file system.
fn compare(
    options: &Options,
    filesystem: Filesystem,
    first: bool,
    report: &mut Report,
    stop: &Stop,
) -> Result<()> {
    let wanted = |trial: &&Trial| {
        let named = options.only.is_empty()
            || options.only.iter().any(|part| trial.name.contains(part.as_str()));
        named && (first || !trial.once)
    };
    let trials: Vec<&Trial> = TRIALS.iter().filter(wanted).collect();
    if trials.is_empty() {
        return Ok(());
    }
    let disk = Disk::make(&options.work, filesystem.name(), filesystem, DISK_BYTES)?;
    weir_report::errln!("laying files out on {}", filesystem.name());
    let served = |exe, name, durability| weir(exe, &disk, &options.work, name, durability);
    let (weir, directory) = served(&options.weir, "weir", "process")?;
    measure::lay_out(&weir.target, &options.times)?;
    let before = match &options.before {
        Some(exe) => {
            let (before, root) = served(exe, "before", "process")?;
            share_files(&directory, &root)?;
            Some(before)
        }
        None => None,
    };
    let ganesha = ganesha(&directory, &options.work)?;
    let bare = servers::bare(&options.bare, &directory)?;
    for trial in trials {
        let row = if let Some(before) = &before {
            let peers = [&weir, &ganesha, &bare, before];
            let [weir, ganesha, bare, before] = rounds(options, &disk, trial, &peers, stop)?;
            Row::new(trial, filesystem, [weir, ganesha, bare], Some(before))
        } else {
            let servers = rounds(options, &disk, trial, &[&weir, &ganesha, &bare], stop)?;
            Row::new(trial, filesystem, servers, None)
        };
        weir_report::errln!("{}", present::line(&row));
        report.rows.push(row);
        write(options, report)?;
        if trial.name == CREATE_REMOVE {
            let (stable, _) = served(&options.weir, "weir-power", "power")?;
            let [figures] = rounds(options, &disk, trial, &[&stable], stop)?;
            report.power.push((filesystem, figures));
        }
    }
    Ok(())
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

/// Measures `trial` on each of the peers in turn, round by round. Each round begins with another
/// peer, because the one that comes after a certain other may have it easier.
fn rounds<const N: usize>(
    options: &Options,
    disk: &Disk,
    trial: &Trial,
    peers: &[&Peer; N],
    stop: &Stop,
) -> Result<[Figures; N]> {
    let mut samples: [Vec<_>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..options.times.rounds {
        let load = measure::workload(trial, &options.times, u64::from(round) + 1);
        for at in (0..N).cycle().skip(round as usize % N).take(N) {
            let (Some(peer), Some(samples)) = (peers.get(at), samples.get_mut(at)) else {
                continue;
            };
            if stop.asked() {
                bail!("interrupted");
            }
            disk.sync()?;
            let sample = measure::measure(&peer.target, peer.pid, &load, &Control::new())
                .with_context(|| format!("{} on {:?}", trial.name, peer.series))?;
            samples.push(sample);
        }
    }
    Ok(samples.map(Figures::new))
}

/// A contract far above the load, and one that is a half above it, in turns: the gate's price
/// should not depend on how near the contract is.
fn gate(options: &Options, stop: &Stop) -> Result<Same> {
    const HUGE_GIBIBYTES: u64 = 200 * 1024;
    let disk = Disk::make(&options.work, "gate", Filesystem::Ext4, DISK_BYTES)?;
    let data = disk.path().join("weir");
    let server = Server::start(&options.weir, &data, &options.work.join("gate.log"), &[])?;
    let operator = Operator::connect(server.data())?;
    operator.make_pool("gate", 256, None)?;
    operator.make_volume("gate", "gate", HUGE_GIBIBYTES)?;
    let target = Target::Nfs(NfsTarget::new(server.nfs(), "/gate"));
    let (trial, times) = (&TRIALS[1], &options.times);
    measure::lay_out(&target, times)?;
    let run = |round: u32| {
        let load = measure::workload(trial, times, u64::from(round) + 1);
        measure::measure(&target, server.pid(), &load, &Control::new())
    };
    let mut near_gibibytes = None;
    let (mut far, mut near) = (Vec::new(), Vec::new());
    for round in 0..times.rounds {
        if stop.asked() {
            bail!("interrupted");
        }
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

/// The quota in GiB that gives `bytes_per_second` at the Ultra level, 128 MiB/s for each TiB.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive quota of at most thousands of TiB"
)]
fn quota_for(bytes_per_second: f64) -> u64 {
    (bytes_per_second / f64::from(1u32 << 20) / 128.0 * 1024.0).ceil() as u64
}

impl Report {
    fn judge(&self) -> bool {
        let met = |row: &Row| {
            row.bars.iter().all(|bar| matches!(bar.verdict, Verdict::Pass | Verdict::Reported))
        };
        !self.rows.is_empty()
            && self.rows.iter().all(met)
            && self.gate.as_ref().is_none_or(|gate| gate.passed)
            && self.isolation.as_ref().is_none_or(|isolation| {
                isolation.neighbours.iter().all(|neighbour| neighbour.passed)
            })
    }
}

fn write(options: &Options, report: &Report) -> Result<()> {
    let put = |name: &str, text: String| {
        let path = options.out.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    put("peers.json", serde_json::to_string_pretty(report)? + "\n")?;
    put("peers.html", present::page(report))
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
