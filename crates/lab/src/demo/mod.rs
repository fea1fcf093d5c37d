//! `make demo`: seven volumes with published figures, four cases of our own and one for each other
//! contract model, loaded at full speed, each compared with its contract.
//!
//! The demonstration starts the server as an operator would, as a process on loopback with an empty
//! data directory, creates pools and volumes through the API, and measures from outside with the
//! load engine. Not here: knowledge of how the server keeps a contract.

mod board;
mod cases;
pub(crate) mod cause;
pub(crate) mod judge;
mod outcome;
mod phase;
mod present;
mod pressure;
pub(crate) mod processors;
mod stalls;
mod target;

use crate::campaign::{self, Campaign, Report};
use crate::operator::Operator;
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Result, bail};
use cases::{CASES, Case, POOLS};
use clap::Args;
use outcome::{CaseOutcome, DemoOutcome};
use phase::Phase;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_bench::cli::Format;
use weir_bench::machine;
use weir_report::terminal;

/// Demonstrate on this machine that contracts are kept (about three minutes).
///
/// The demonstration starts a server on loopback with an empty data directory. It creates the
/// volumes of a published measurement, four more volumes, and one for each other contract model. It
/// loads each volume at full speed from up to forty addresses, two of them over NFS and SMB at the
/// same time, changes a quota under load, and compares the results measured by the clients with the
/// contracts. The server and its data are removed at the end.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Directory for result.json, report.html and server.log.
    #[arg(long, default_value = "target/demo", value_name = "DIR")]
    out: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Output on standard output: table, or json for result.json.
    #[arg(long, value_enum, default_value = "table")]
    output: Format,
}

impl Campaign for Demo {
    fn run(&self, stop: &Stop) -> Result<Report> {
        let begun = Instant::now();
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let out = campaign::work_directory(&self.out)?;
        let outcome = measure(&weir, &out, stop)?;
        let page = present::page(&outcome);
        let foot = format!("Weir {}. {}", outcome.weir, machine::describe());
        let checks = outcome.cases.iter().flat_map(|case| case.checks.clone()).collect();
        let contents = (&outcome, &page, foot);
        let files = ["result.json", "report.html"];
        let report = Report::new(checks).files(Some(&out), &files, contents)?;
        match self.output {
            Format::Table => show(&outcome, begun),
            Format::Json => terminal::json(&outcome)?,
        }
        Ok(report)
    }
}

/// Loads all cases. Server and data are removed, also after an error.
fn measure(weir: &Path, out: &Path, stop: &Stop) -> Result<DemoOutcome> {
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    weir_report::errln!("Starting the server on loopback with an empty data directory.");
    let data = out.join(format!("data-{}", std::process::id()));
    let settings = Settings::temporary(weir, data, out.join("server.log"))?;
    let (mut server, operator) = TestServer::start_new(Settings { smb: true, ..settings })?;
    create(&operator, &CASES)?;
    target::share(&mut server, &operator, &CASES)?;
    weir_report::errln!(
        "Created {} pools and {} volumes through the API.",
        POOLS.len(),
        CASES.len()
    );
    let (mut cases, mut processors) = (Vec::new(), Vec::new());
    for phase in Phase::ALL {
        let loaded = phase.cases();
        weir_report::errln!("{}", phase.announcement());
        let done = phase.run(&server, &operator, stop)?;
        processors.push(done.measured_seconds());
        for (case, (results, changes)) in loaded.iter().zip(done.cases) {
            for result in results.iter().filter(|result| result.generator.saturated) {
                weir_report::errln!("  The load generator was the limit for {}.", result.name);
            }
            let mut outcome = CaseOutcome::new(case, &results, changes);
            outcome.explain(&done.seconds);
            cases.push(outcome);
        }
    }
    drop(server);
    if stop.asked() {
        bail!("interrupted; the server and its data were removed");
    }
    Ok(DemoOutcome::new(started_unix_s, cases, processors))
}

/// Creates the pools, and the volumes of `cases`.
fn create(operator: &Operator, cases: &[Case]) -> Result<()> {
    for pool in POOLS {
        operator.create_pool(pool.name, "standard", pool.qos, pool.tebibytes, None)?;
    }
    for case in cases {
        operator.create_volume(case.volume, case.pool, case.quota_gibibytes, &case.limits)?;
    }
    Ok(())
}

fn show(outcome: &DemoOutcome, begun: Instant) {
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
        if outcome.passed { "every contract was kept" } else { "at least one rule was missed" };
    weir_report::outln!("");
    weir_report::outln!("In {:.0} s: {verdict}.", begun.elapsed().as_secs_f64());
}
