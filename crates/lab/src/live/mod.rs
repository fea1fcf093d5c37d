//! `make live`: contracts whose limits change over time, measured on a real server from outside.
//! The tests of `weir-qos` show the same in virtual time: the throughput that an idle volume of a
//! shared pool does not use is available to the others at once and returned at once; a bucket of
//! credits is drained, empty, and earned again at the published figures.
//!
//! The program starts a server, makes pools and volumes through the API, loads them with the load
//! engine, and judges what its clients and the API's gauges saw, by the same error rule as the
//! demo. Not here: contracts that only hold a rate, which `make demo` shows.

mod burst;
mod judge;
mod load;
mod part;
mod present;
mod server;
mod shared;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::stop::Stop;
use anyhow::{Context, Result};
use clap::Args;
use part::Part;
use serde::Serialize;
use server::LiveServer;
use std::path::PathBuf;
use std::time::Instant;
use weir_report::terminal;

/// Time for which an empty bucket earns credits (s): in 40 s a burst of more than 10 s.
const REFILL_S: f64 = 40.0;
/// Time for which a bucket drained from full earns credits (s).
const REFILL_FULL_S: f64 = 600.0;

/// Load volumes of a shared pool, one of which becomes idle and busy again, and drain and refill
/// burst credits, on a real server.
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for the data directory and the log; it needs 1 GiB.
    #[arg(long, default_value = "target/live")]
    work: PathBuf,
    /// Directory for live.json, live.html and live.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run only this part; repeatable.
    #[arg(long, value_name = "PART", value_parser = clap::builder::PossibleValuesParser::new(parts()))]
    only: Vec<String>,
    /// Drain each bucket from full to empty, which takes 75 minutes per model. Without this option,
    /// most credits are first removed by changing limits back and forth.
    #[arg(long)]
    full: bool,
    /// Time for which an empty bucket earns credits, in seconds, at least 40 [default: 40; 600 with
    /// --full].
    #[arg(long, value_parser = clap::value_parser!(u32).range(40..=86_400))]
    refill: Option<u32>,
}

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    /// Were buckets drained from full?
    full: bool,
    took_s: f64,
    passed: bool,
    parts: Vec<Part>,
}

/// The names of the parts, in their order.
fn parts() -> Vec<&'static str> {
    let shared = shared::CASES.iter().map(|case| case.name);
    shared.chain(burst::MODELS.iter().map(|model| model.name)).collect()
}

impl Campaign for Live {
    fn run(&self, stop: &Stop) -> Result<Report> {
        let begun = Instant::now();
        let origin = Origin::here();
        let parts = self.measure(stop)?;
        let passed = parts.iter().all(Part::passed);
        let took_s = begun.elapsed().as_secs_f64();
        let findings = Findings { origin, full: self.full, took_s, passed, parts };
        terminal::show(&present::summary(&findings).to_terminal(false));
        weir_report::outln!("# in {took_s:.0} s: {}", present::verdict(passed));
        let checks = findings.parts.iter().flat_map(|part| part.checks.clone()).collect();
        let page = present::page(&findings);
        let contents = (&findings, &page, findings.origin.foot());
        let names = ["live.json", "live.html", "live.md"];
        Report::new(checks).files(self.out.as_deref(), &names, contents)
    }
}

impl Live {
    /// All parts that are wanted. Prints a line for each rule in the form of the Test Anything
    /// Protocol.
    fn measure(&self, stop: &Stop) -> Result<Vec<Part>> {
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let mut server = LiveServer::start(&weir, &campaign::work_directory(&self.work)?)?;
        let wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|one| one == name);
        let mut found = Vec::new();
        let mut add = |part: Part| {
            present::print(&part);
            found.push(part);
        };
        for case in shared::CASES.iter().filter(|case| wanted(case.name)) {
            let part = shared::show(case, &server, stop);
            add(part.with_context(|| format!("measuring {}", case.name))?);
        }
        for model in burst::MODELS.iter().filter(|model| wanted(model.name)) {
            let part = burst::show(model, &mut server, self, stop);
            add(part.with_context(|| format!("measuring {}", model.name))?);
        }
        Ok(found)
    }

    /// Time for which an empty bucket earns credits (s).
    fn refill_s(&self) -> f64 {
        let usual = if self.full { REFILL_FULL_S } else { REFILL_S };
        self.refill.map_or(usual, f64::from)
    }
}
