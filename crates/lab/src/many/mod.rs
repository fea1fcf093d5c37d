//! `make many`: what a server of ten thousand volumes costs, beside an empty one and one with a
//! single volume.
//!
//! Three questions: how soon it serves and how soon it has stopped; how much memory it takes while
//! a tenth of its volumes work at their limits, and whether each of those gets what it was
//! promised; and whether an operation costs what it costs where there is one volume.
//!
//! Not here: the gate alone, by the nanosecond, which `make bench` measures.

mod active;
mod command;
mod cost;
mod house;
mod present;

use crate::demo::Stop;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(crate) use command::Command;

/// Longest time until a server serves (ms).
const START_MS_MAX: f64 = 2000.0;
/// The memory that it may take beyond an empty one, in MiB.
const MEMORY_MIB_MAX: f64 = 100.0;
/// Largest ratio of an operation's cost among all volumes to its cost alone: the difference between
/// two turns of the same server on a quiet machine.
const COST_RATIO_MAX: f64 = 1.05;
/// Of what a contract says, over the whole measurement, and one request.
const CONTRACT_ERROR_MAX: f64 = 0.01;

/// The number of volumes, and the destination of the results.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The `weir` program.
    pub weir: PathBuf,
    /// For data directories and logs; needs 1 GiB.
    pub work: PathBuf,
    /// For `many.json` and `many.md`, if they are wanted.
    pub out: Option<PathBuf>,
    /// Volumes in all.
    pub volumes: u32,
    /// Of which so many work at once.
    pub active: u32,
    /// For how long, in seconds.
    pub seconds: f64,
    /// Turns that the two servers take at each operation.
    pub rounds: u32,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
struct Report {
    version: u32,
    weir: &'static str,
    machine: String,
    volumes: u32,
    active: u32,
    passed: bool,
    house: house::Figures,
    load: active::Figures,
    costs: Vec<cost::Row>,
}

/// A bar, what was found, and whether that is within it.
struct Verdict {
    what: String,
    kept: bool,
}

impl Report {
    fn verdicts(&self) -> Vec<Verdict> {
        let at_most = |what: &str, found: f64, most: f64, unit: &str| Verdict {
            what: format!("{what}: {found:.0} {unit} (at most {most:.0})"),
            kept: found <= most,
        };
        let beyond = self.load.memory_mib - self.house.empty_mib;
        let mut all = vec![
            at_most("serving after", self.house.start_ms, START_MS_MAX, "ms"),
            at_most("memory beyond an empty server's", beyond, MEMORY_MIB_MAX, "MiB"),
            Verdict {
                what: format!(
                    "contracts of the active volumes: {} of {} kept, the worst {:+.2} % off",
                    self.load.kept,
                    self.active,
                    self.load.worst_error * 100.0
                ),
                kept: self.load.kept == self.active,
            },
        ];
        all.extend(self.costs.iter().map(|row| Verdict {
            what: format!(
                "{}: {:.2} µs among all, {:.2} µs alone, each the median of its rounds; {:.3} times in the middle round (at most {COST_RATIO_MAX})",
                row.operation, row.among_us, row.alone_us, row.ratio
            ),
            kept: row.ratio <= COST_RATIO_MAX,
        }));
        all
    }
}

/// Measures everything. `true` if every bar was kept. Prints a line for each as the Test Anything
/// Protocol has it.
///
/// # Errors
/// Says what is missing on the machine, or what failed.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<bool> {
    ensure!(options.active <= options.volumes, "more volumes can't be active than there are");
    std::fs::create_dir_all(&options.work)?;
    let work = &options.work.canonicalize()?;
    let mut house = house::House::make(options, work, stop)?;
    let figures = house.figures()?;
    weir_report::outln!("# {} volumes: serving after {:.0} ms", options.volumes, figures.start_ms);
    let costs = cost::compare(&mut house, options, work, stop)?;
    let load = active::load(&mut house, options, stop)?;
    let mut report = Report {
        version: 1,
        weir: env!("CARGO_PKG_VERSION"),
        machine: weir_bench::machine::describe(),
        volumes: options.volumes,
        active: options.active,
        passed: false,
        house: house.ended(figures)?,
        load,
        costs,
    };
    let verdicts = report.verdicts();
    report.passed = verdicts.iter().all(|verdict| verdict.kept);
    for verdict in &verdicts {
        weir_report::outln!("{} - {}", if verdict.kept { "ok" } else { "not ok" }, verdict.what);
    }
    if let Some(out) = &options.out {
        write(out, &report)?;
    }
    Ok(report.passed)
}

fn write(out: &Path, report: &Report) -> Result<()> {
    std::fs::create_dir_all(out)?;
    let put = |name: &str, text: String| {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    put("many.json", serde_json::to_string_pretty(report)? + "\n")?;
    put("many.md", present::page(report))
}
