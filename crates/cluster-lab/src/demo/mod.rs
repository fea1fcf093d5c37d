//! `make cluster-demo`: three gateways, etcd and Ceph on this machine, six volumes under contract
//! and load. One gateway is killed, etcd goes away and comes back, the gateway returns, another is
//! drained. The clients measure from outside, and everything is compared with the bars.
//!
//! Not here: knowledge of how gateways keep their promises.

mod judge;
mod outcome;
mod phases;
mod plan;
mod present;

use crate::stage::Stage;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;
use weir_lab::campaign::{self, Report};
use weir_lab::stop::Stop;
use weir_report::terminal;

/// Demonstrate on this machine that a cluster keeps its contracts and its data while parts of it
/// die (about three minutes, as root).
///
/// The demonstration starts etcd, Ceph and three gateways in network namespaces of their own, and
/// loads six volumes through their addresses. It kills a gateway, takes etcd away and brings it
/// back, lets the gateway return, and drains another. Nothing of it stays but the report and the
/// logs.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Directory for result.json, report.html and the logs of the gateways.
    #[arg(long, default_value = "target/cluster-demo", value_name = "DIR")]
    out: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Throughput of each volume, in MiB/s: OSDs on this machine must hold six times as much.
    #[arg(long, default_value_t = 2, value_name = "MIBPS", value_parser = clap::value_parser!(u64).range(1..=64))]
    mibps: u64,
}

impl Demo {
    /// Runs the demonstration; `work` is an empty directory for everything that goes away.
    ///
    /// # Errors
    /// If it could not be completed.
    pub(crate) fn run(&self, work: &Path, stop: &Stop) -> Result<Report> {
        let begun = Instant::now();
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let out = campaign::work_directory(&self.out)?;
        let mut stage = Stage::set((&weir, work, &out), plan::plan(self.mibps), stop)?;
        let measured = phases::run(&mut stage, stop);
        ensure!(!stop.asked(), "interrupted; the cluster and its data were removed");
        let outcome = outcome::DemoOutcome::new(measured?, self.mibps);
        drop(stage);
        let page = present::page(&outcome);
        let contents = (&outcome, &page, outcome.origin.foot());
        let files = ["result.json", "report.html"];
        let report = Report::new(outcome.checks()).files(Some(&out), &files, contents)?;
        let colour = terminal::shows_output();
        terminal::show(&present::table(&outcome).to_terminal(colour));
        terminal::show(&present::course(&outcome).to_terminal(colour));
        for miss in &outcome.misses {
            weir_report::outln!("MISS  {miss}");
        }
        let verdict =
            if outcome.passed { "every rule was kept" } else { "at least one rule was missed" };
        weir_report::outln!("");
        weir_report::outln!("In {:.0} s: {verdict}.", begun.elapsed().as_secs_f64());
        Ok(report)
    }
}
