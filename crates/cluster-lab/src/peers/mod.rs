//! `make cluster-peers`: the cost of a gateway on CephFS, beside libcephfs itself, Weir's store
//! without a protocol, and NFS-Ganesha on the same CephFS; and a model of larger clusters.
//!
//! All sides take turns on one small Ceph, whose files are in memory, so that no disk is the limit.
//! Each has files of its own: two clients of CephFS that use one file wait for each other.
//!
//! Not here: what happens to gateways that die, which the other campaigns show.

mod beside;
mod client;
mod judge;
mod measure;
mod model;
mod plan;
mod present;
mod requirements;
mod run;
mod sides;

#[cfg(feature = "peers")]
pub(crate) use client::CephClient;
pub(crate) use requirements::check as requirements;

use anyhow::{Result, ensure};
use beside::Beside;
use clap::Args;
use judge::{Figures, Row};
use measure::Sample;
use plan::Times;
use run::Run;
use serde::Serialize;
use std::path::{Path, PathBuf};
use weir_lab::campaign::{self, Origin, Report};
use weir_lab::judge::Check;
use weir_lab::stop::Stop;

/// The files of the report.
const FILES: [&str; 2] = ["cluster.json", "cluster.md"];

/// Compare a gateway on CephFS with libcephfs itself and with NFS-Ganesha, in turns, and write
/// cluster.json and cluster.md (fifteen minutes, as root).
///
/// The exit status is 0 if every bar was met.
#[derive(Debug, Args)]
pub(crate) struct Peers {
    /// Directory for the report.
    #[arg(long, default_value = "docs/performance", value_name = "DIR")]
    out: PathBuf,
    /// Directory for logs.
    #[arg(long, default_value = "target/cluster-peers", value_name = "DIR")]
    work: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Turns of each side.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 3.0, value_parser = plan::seconds)]
    seconds: f64,
    /// Duration of the warm-up before each measurement, in seconds.
    #[arg(long, default_value_t = 1.0, value_parser = plan::seconds)]
    warmup: f64,
    /// The commit that is measured, for the report.
    #[arg(long)]
    commit: Option<String>,
}

/// Everything that was measured, and what follows from it.
#[derive(Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    commit: Option<String>,
    /// Versions of the programs that were compared.
    versions: Vec<String>,
    times: Times,
    /// Processors that programs beside the campaign kept busy, on average.
    others_processors: f64,
    passed: bool,
    rows: Vec<Row>,
    /// CREATE + REMOVE of a gateway whose names are on disk before it answers.
    stable_names: Figures,
    scales: Vec<Scale>,
    model: Vec<Modelled>,
}

/// libcephfs itself with some threads on some mounts.
#[derive(Debug, Serialize)]
struct Scale {
    workload: &'static str,
    threads: u32,
    mounts: u32,
    median: Sample,
}

/// The limits of larger clusters for one workload.
#[derive(Debug, Serialize)]
struct Modelled {
    #[serde(flatten)]
    load: model::Load,
    /// For each number of gateways in [`model::GATEWAYS`], the lowest limit first.
    limits: Vec<Vec<model::Limit>>,
}

impl Peers {
    /// Runs the comparison; `work` is an empty directory for everything that goes away.
    ///
    /// # Errors
    /// If it could not be completed.
    pub(crate) fn run(&self, work: &Path, stop: &Stop) -> Result<Report> {
        let origin = Origin::here();
        let times = Times { warmup_s: self.warmup, measured_s: self.seconds, turns: self.turns };
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let logs = campaign::work_directory(&self.work)?;
        requirements::keep_in_memory(work)?;
        let mut run = Run::begin((&weir, work, &logs), times, stop)?;
        let beside = Beside::watch()?;
        let measured = run.all();
        ensure!(!stop.asked(), "interrupted; the cluster and its data were removed");
        let (rows, scales, stable_names) = measured?;
        let model = modelled(&rows, &scales, &stable_names);
        let mut findings = Findings {
            origin,
            commit: self.commit.clone(),
            versions: requirements::versions(),
            times,
            others_processors: beside.processors()?,
            passed: false,
            rows,
            stable_names,
            scales,
            model,
        };
        let checks: Vec<Check> = findings.rows.iter().flat_map(Row::checks).collect();
        findings.passed = weir_lab::judge::all_kept(&checks);
        present::print(&findings);
        let page = present::page(&findings);
        let contents = (&findings, &page, findings.origin.foot());
        Report::new(checks).files(Some(&self.out), &FILES, contents)
    }
}

/// The model of each workload, and of names that are on disk before the gateway answers.
fn modelled(rows: &[Row], scales: &[Scale], stable_names: &Figures) -> Vec<Modelled> {
    let mut loads: Vec<model::Load> = rows.iter().map(|row| load(row, scales)).collect();
    if let Some(changes) = loads.iter().find(|load| load.name == plan::CREATE_REMOVE.name) {
        let name = "CREATE + REMOVE, on disk";
        let gateway = stable_names.median;
        loads.push(model::Load { name, gateway, ..changes.clone() });
    }
    let limits = |load: &model::Load| model::GATEWAYS.map(|gateways| load.limits(gateways));
    loads.into_iter().map(|load| Modelled { limits: limits(&load).into(), load }).collect()
}

/// The measured costs of one workload, as the model takes them.
fn load(row: &Row, scales: &[Scale]) -> model::Load {
    let on_one_mount = scales.iter().filter(|one| one.mounts == 1 && one.workload == row.workload);
    let library = [&row.sides.library, &row.sides.caching_library].map(|side| side.median.iops);
    let rates = on_one_mount.map(|one| one.median.iops).chain(library);
    let work = plan::WORKS.iter().find(|work| work.name == row.workload);
    model::Load {
        name: row.workload,
        gateway: row.sides.gateway.median,
        library_us: row.sides.caching_library.median.cpu_us,
        mount_rate: rates.fold(0.0, f64::max),
        payload: work.map_or(model::Payload::Nothing, plan::Work::payload),
        copies_here: plan::COPIES_HERE,
    }
}
