//! `make many`: the cost of a server with ten thousand volumes, compared with an empty one and with
//! one that has a single volume.
//!
//! Three questions: how fast it starts and stops; how much memory it takes while a tenth of its
//! volumes work at their limits, and whether their contracts are kept; and whether an operation
//! costs as much as on a server with one volume.
//!
//! Not here: the gate alone, by the nanosecond, which `make bench` measures.

mod active;
mod cost;
mod present;
mod servers;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::judge::Check;
use crate::stop::Stop;
use anyhow::{Result, ensure};
use clap::Args;
use serde::Serialize;
use servers::ManyVolumes;
use std::path::PathBuf;

/// Longest time until a server serves (ms).
const START_MS_MAX: f64 = 2000.0;
/// The memory that it may take beyond an empty one, in MiB.
const MEMORY_MIB_MAX: f64 = 100.0;
/// Largest ratio of an operation's cost among all volumes to its cost alone: the difference between
/// two turns of the same server on a quiet machine.
const COST_RATIO_MAX: f64 = 1.05;
/// Part of a contract that may be missing or too much over the whole measurement, beside one
/// request.
const CONTRACT_ERROR_MAX: f64 = 0.01;

/// Create a server with many volumes, load some of them, and measure startup, memory, contracts and
/// the cost per operation.
#[derive(Debug, Args)]
pub(crate) struct Many {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for data directories and logs; it needs 1 GiB.
    #[arg(long, default_value = "target/many")]
    work: PathBuf,
    /// Directory for many.json and many.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of volumes.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    volumes: u32,
    /// Number of volumes loaded at the same time.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    active: u32,
    /// Duration of the load, in seconds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Number of rounds of the two servers per operation.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    volumes: u32,
    active: u32,
    passed: bool,
    server: servers::Figures,
    load: active::Figures,
    costs: Vec<cost::OperationCost>,
}

impl Campaign for Many {
    fn run(&self, stop: &Stop) -> Result<Report> {
        ensure!(self.active <= self.volumes, "more volumes can't be active than there are");
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let work = campaign::work_directory(&self.work)?;
        let origin = Origin::here();
        let mut many = ManyVolumes::create(&weir, &work, self.volumes, stop)?;
        let figures = many.start()?;
        weir_report::outln!("# {} volumes: serving after {:.0} ms", self.volumes, figures.start_ms);
        let costs = cost::compare(&many, &weir, &work, self.rounds, stop)?;
        let load = active::load(&many, self, stop)?;
        let server = many.stop(figures);
        let checks = self.judge(&server, &load, &costs);
        checks.iter().for_each(Check::print);
        let passed = checks.iter().all(|check| check.passed);
        let (volumes, active) = (self.volumes, self.active);
        let findings = Findings { origin, volumes, active, passed, server, load, costs };
        let page = present::page(&findings, &checks);
        let contents = (&findings, &page, findings.origin.foot());
        Report::new(checks).files(self.out.as_deref(), &["many.json", "many.md"], contents)
    }
}

impl Many {
    fn judge(
        &self,
        server: &servers::Figures,
        load: &active::Figures,
        costs: &[cost::OperationCost],
    ) -> Vec<Check> {
        let beyond = load.memory_mib - server.empty_mib;
        let contracts = format!(
            "{} of {} kept, the worst {:+.2} % off",
            load.kept,
            self.active,
            load.worst_error * 100.0
        );
        let mut checks = vec![
            Check::at_most("serving after", server.start_ms, START_MS_MAX, "ms"),
            Check::at_most("memory beyond an empty server's", beyond, MEMORY_MIB_MAX, "MiB"),
            Check::new("contracts of the active volumes", contracts, load.kept == self.active),
        ];
        checks.extend(costs.iter().map(|cost| {
            let rule = format!(
                "{}: cost among all volumes ÷ cost alone, at most {COST_RATIO_MAX} in the median round",
                cost.operation
            );
            let worst = format!(
                "{:.3} (medians {:.2} µs and {:.2} µs)",
                cost.ratio, cost.among_us, cost.alone_us
            );
            Check::new(rule, worst, cost.ratio <= COST_RATIO_MAX)
        }));
        checks
    }
}
