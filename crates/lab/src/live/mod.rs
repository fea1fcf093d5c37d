//! `make live`: contracts that have a course, watched on a real server from outside. What the tests
//! of `weir-qos` show in virtual time: an idle volume's part of a shared pool is the others' at
//! once and its own again at once; a bucket of credits is drained, empty, and earned again at the
//! published figures.
//!
//! The program starts a server, makes pools and volumes through the API, loads them with the load
//! engine, and judges what its clients and the API's gauges saw, by the same error rule as the
//! demo. Not here: contracts that only hold a rate, which `make demo` shows.

mod burst;
mod command;
mod judge;
mod load;
mod part;
mod present;
mod shared;
mod site;

use crate::demo::Stop;
use anyhow::{Context, Result, ensure};
use part::Part;
use serde::Serialize;
use site::Site;
use std::path::{Path, PathBuf};
use std::time::Instant;
use weir_report::terminal;

pub(crate) use command::Command;

/// The parts to show, and the destination of the results.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The `weir` program.
    pub weir: PathBuf,
    /// For the data directory and the log; needs 1 GiB.
    pub work: PathBuf,
    /// For `live.json`, `live.md` and `live.html`, if they are wanted.
    pub out: Option<PathBuf>,
    /// Names of the parts to show, of [`parts`]; all if there are none.
    pub only: Vec<String>,
    /// Drain each bucket from full to empty, which takes an hour.
    pub full: bool,
    /// Time (s) for which an empty bucket is left alone to earn credits.
    pub refill_s: f64,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
struct Report {
    version: u32,
    weir: &'static str,
    machine: String,
    /// Were buckets drained from full?
    full: bool,
    took_s: f64,
    passed: bool,
    parts: Vec<Part>,
}

/// The names of the parts, in their order.
#[must_use]
pub(crate) fn parts() -> Vec<&'static str> {
    let shared = shared::CASES.iter().map(|case| case.name);
    shared.chain(burst::MODELS.iter().map(|model| model.name)).collect()
}

/// Shows everything. `true` if every rule was kept. Prints a line for each rule as the Test
/// Anything Protocol has it.
///
/// # Errors
/// Says what is missing on the machine, or what failed.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<bool> {
    for name in &options.only {
        ensure!(
            parts().contains(&name.as_str()),
            "no part {name}: there are {}",
            parts().join(", ")
        );
    }
    let begun = Instant::now();
    std::fs::create_dir_all(&options.work)?;
    let mut site = Site::make(&options.weir, &options.work.canonicalize()?)?;
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|one| one == name);
    let mut found = Vec::new();
    for case in shared::CASES.iter().filter(|case| wanted(case.name)) {
        let part =
            shared::show(case, &site, stop).with_context(|| format!("showing {}", case.name))?;
        tell(&part);
        found.push(part);
    }
    for model in burst::MODELS.iter().filter(|model| wanted(model.name)) {
        let part = burst::show(model, &mut site, options, stop)
            .with_context(|| format!("showing {}", model.name))?;
        tell(&part);
        found.push(part);
    }
    site.end()?;
    let report = Report {
        version: 1,
        weir: env!("CARGO_PKG_VERSION"),
        machine: weir_bench::machine::describe(),
        full: options.full,
        took_s: begun.elapsed().as_secs_f64(),
        passed: found.iter().all(Part::passed),
        parts: found,
    };
    finish(&report, options.out.as_deref())?;
    Ok(report.passed)
}

/// Prints a part as soon as it is over.
fn tell(part: &Part) {
    terminal::show(&present::figures(part).to_terminal(false));
    for check in &part.checks {
        let word = if check.passed { "ok" } else { "not ok" };
        weir_report::outln!("{word} - {}: {}: {}", part.name, check.rule, check.worst);
    }
    part.said.iter().for_each(|said| weir_report::outln!("# the server: {said}"));
    weir_report::outln!("# {}", part.conditions());
    weir_report::outln!("");
}

fn finish(report: &Report, out: Option<&Path>) -> Result<()> {
    terminal::show(&present::summary(report).to_terminal(false));
    let word = if report.passed { "every rule was kept" } else { "not every rule was kept" };
    weir_report::outln!("# in {:.0} s: {word}", report.took_s);
    let Some(out) = out else { return Ok(()) };
    std::fs::create_dir_all(out)?;
    let put = |name: &str, text: String| {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    put("live.json", serde_json::to_string(report)? + "\n")?;
    put("live.md", present::markdown(report))?;
    put("live.html", present::page(report))
}
