//! `make demo`: seven volumes with published figures, two cases of our own and one for each other
//! contract model, loaded flat out, each judged against its contract.
//!
//! The demo starts the server as an operator would, as a process on loopback with a fresh data
//! directory, makes pools and volumes through the API, and measures from outside with the load
//! engine. Not here: knowledge of the way in which the server keeps a contract.

mod board;
mod cases;
mod cause;
mod command;
pub(crate) mod judge;
mod operator;
mod outcome;
mod phase;
mod present;
mod pressure;
mod process;
pub(crate) mod processors;
pub(crate) mod rate;
mod server;
mod stalls;
mod stop;

use anyhow::{Context, Result, bail};
use cases::{CASES, POOLS};
use outcome::{CaseOutcome, Outcome};
use phase::Phase;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_bench::cli::Format;
use weir_bench::machine;
use weir_report::terminal;

pub(crate) use cases::Given;
pub(crate) use command::Command;
pub(crate) use operator::Operator;
pub(crate) use process::Process;
pub(crate) use server::Server;
pub(crate) use server::wait_for;
pub(crate) use stop::Stop;

/// The demonstration, and the destination of its results.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The `weir` program.
    pub exe: PathBuf,
    /// Directory for `result.json`, `report.html` and `server.log`; the data directory is made in
    /// it too, and removed at the end.
    pub out: PathBuf,
    /// The final output: tables, or `result.json`.
    pub format: Format,
}

/// Runs the demo. `true` if every contract was kept.
///
/// # Errors
/// Whatever kept the measurement from being made: the server did not start, the API refused, a
/// connection could not be opened, or it was interrupted. Server and data are gone then, too.
pub(crate) fn run(options: &Options, stop: &Stop) -> Result<bool> {
    let begun = Instant::now();
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("can't make {}", options.out.display()))?;
    let out = options.out.canonicalize()?;
    let data = out.join(format!("data-{}", std::process::id()));
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    weir_report::errln!("Starting the server on loopback with an empty data directory.");
    let server = Server::start(&options.exe, &data, &out.join("server.log"), &[])?;
    let operator = Operator::connect(server.data())?;
    operator.make(&CASES)?;
    weir_report::errln!("Made {} pools and {} volumes through the API.", POOLS.len(), CASES.len());
    let (mut cases, mut processors) = (Vec::new(), Vec::new());
    for phase in Phase::ALL {
        let loaded = phase.cases();
        weir_report::errln!("{}", phase.announcement());
        let done = phase.run(&server, &operator, stop)?;
        processors.push(done.measured_seconds());
        for (case, (result, changes)) in loaded.iter().zip(done.cases) {
            if result.generator.saturated {
                weir_report::errln!("  The load generator was the limit for {}.", case.name);
            }
            let mut outcome = CaseOutcome::new(case, &result, changes);
            outcome.explain(&done.seconds);
            cases.push(outcome);
        }
    }
    drop(server);
    if stop.asked() {
        bail!("interrupted; the server and its data were removed");
    }
    let outcome = Outcome::new(started_unix_s, cases, processors);
    let json = serde_json::to_string_pretty(&outcome)? + "\n";
    write(&outcome, &json, &out)?;
    match options.format {
        Format::Table => show(&outcome, &out, begun),
        Format::Json => terminal::json(&outcome)?,
    }
    Ok(outcome.passed)
}

fn write(outcome: &Outcome, json: &str, out: &std::path::Path) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
    };
    put("result.json", json)?;
    put("report.html", &present::page(outcome, &machine::describe()))
}

fn show(outcome: &Outcome, out: &std::path::Path, begun: Instant) {
    let colour = terminal::shows_output();
    terminal::show(&present::table(outcome).to_terminal(colour));
    terminal::show(&present::changes(outcome).to_terminal(colour));
    for (part, seconds) in (1..).zip(&outcome.processors) {
        if let Some(summary) = processors::summary(seconds) {
            weir_report::outln!("Load {part}: {summary}.");
        }
    }
    for miss in &outcome.misses {
        weir_report::outln!("MISS  {miss}");
    }
    let verdict =
        if outcome.passed { "every contract was kept" } else { "not every rule was kept" };
    weir_report::outln!("");
    weir_report::outln!(
        "In {:.0} s: {verdict}. Report: {}",
        begun.elapsed().as_secs_f64(),
        out.join("report.html").display()
    );
}
