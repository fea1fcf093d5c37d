//! `make cluster-upgrade`: the gateways of a cluster get another version of Weir one after the
//! other, under load: forward, back, and forward to the end; then a version after that, whose
//! formats are newer. Between the steps gateways of two versions serve together, are killed, and
//! get commands.
//!
//! The rounds, the loads and their judgement are those of the faults. Not here: knowledge of what a
//! version changes.

mod course;
mod outcome;
mod present;
mod steps;

use crate::faults::fault::Fault;
use crate::faults::outcome::Findings;
use crate::faults::print;
use crate::faults::round::Rounds;
use crate::stage::{Plan, Stage};
use anyhow::Result;
use clap::Args;
use course::Formats;
use outcome::{Program, UpgradeOutcome};
use std::path::{Path, PathBuf};
use weir_lab::campaign::{self, Report};
use weir_lab::judge::Check;
use weir_lab::stop::Stop;
use weir_report::terminal;

/// The cluster: two volumes for each gateway, so that after a death each of the other two gets one.
const PLAN: Plan =
    Plan { gateways: 3, volumes: 6, pools: &[("pool", "/weir/pool")], mibps: 1, ..Plan::EMPTY };

/// Upgrade the gateways of a cluster on this machine under load, one after the other, forward and
/// back, and check that nothing that was acknowledged is lost (about four minutes, as root).
///
/// Prints a line for each step in the form of the Test Anything Protocol. `make cluster-upgrade`
/// builds the programs.
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    /// Server program of the version before.
    #[arg(long, value_name = "PROGRAM")]
    from: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Server program of a version after it, built with WEIR_NEXT_VERSION=1.
    #[arg(long, value_name = "PROGRAM")]
    next: PathBuf,
    /// Compare the pauses with the bars.
    #[arg(long)]
    bars: bool,
    /// Directory for cluster-upgrade.json, cluster-upgrade.html and the logs of the gateways.
    #[arg(long, default_value = "target/cluster-upgrade", value_name = "DIR")]
    out: PathBuf,
    /// Commit of the version before, for the report.
    #[arg(long, value_name = "COMMIT")]
    from_commit: Option<String>,
    /// Commit of the program, for the report.
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
}

impl Upgrade {
    /// Runs the campaign; `work` is an empty directory for everything that goes away.
    ///
    /// # Errors
    /// If it could not be completed.
    pub(crate) fn run(&self, work: &Path, stop: &Stop) -> Result<Report> {
        let from = campaign::weir_program(Some(&self.from))?;
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let next = campaign::weir_program(Some(&self.next))?;
        let out = campaign::work_directory(&self.out)?;
        let mut stage = Stage::set((&from, work, &out), PLAN, stop)?;
        stage.programs.extend([weir, next]);
        let mut walk =
            Walk::begin(&mut stage, stop, Findings::new(self.bars, self.commit.clone()))?;
        for step in steps::THERE_AND_BACK.iter().chain(&steps::FORWARD) {
            walk.take(step)?;
        }
        if course::is_raised(&walk.formats) {
            walk.take(&steps::OLD_REFUSED)?;
        }
        for step in steps::NEXT.iter().chain([&steps::REFUSED]) {
            walk.take(step)?;
        }
        let (findings, formats) = walk.end()?;
        let outcome = UpgradeOutcome { programs: self.programs(&formats), formats, findings };
        terminal::show(&present::table(&outcome).to_terminal(terminal::shows_output()));
        let page = present::page(&outcome);
        let contents = (&outcome, &page, outcome.findings.origin.foot());
        let files = ["cluster-upgrade.json", "cluster-upgrade.html"];
        Report::new(outcome.findings.checks.clone()).files(Some(&out), &files, contents)
    }

    /// The programs, with the versions that they were seen to know.
    fn programs(&self, formats: &[Formats]) -> Vec<Program> {
        let of = |role, commit: &Option<String>, after: Option<&Formats>| Program {
            role,
            commit: commit.clone(),
            version: after.and_then(|formats| formats.knows.iter().copied().min()),
        };
        let after = |name: &str| formats.iter().find(|formats| formats.after == name);
        let last = |steps: &[Fault]| after(last_name(steps));
        vec![
            of("before", &self.from_commit, formats.first()),
            of("this", &self.commit, last(&steps::FORWARD)),
            of("next", &self.commit, last(&steps::NEXT)),
        ]
    }
}

/// The steps that were taken so far, and what was found.
struct Walk<'a> {
    rounds: Rounds<'a>,
    findings: Findings,
    formats: Vec<Formats>,
    taken: Vec<&'static Fault>,
}

impl<'a> Walk<'a> {
    fn begin(stage: &'a mut Stage, stop: &'a Stop, findings: Findings) -> Result<Self> {
        let formats = vec![Formats::begun(stage)?];
        Ok(Self { rounds: Rounds::new(stage, stop)?, findings, formats, taken: Vec::new() })
    }

    /// Takes a step, and judges it.
    fn take(&mut self, step: &'static Fault) -> Result<()> {
        let round = self.rounds.carry_out(step, self.taken.len())?;
        self.rounds.stop.check()?;
        self.taken.push(step);
        let check = self.findings.judge(step, round);
        print(&check, self.findings.last_misses());
        let (after, check) = Formats::after(step.name, self.rounds.stage, &self.formats)?;
        self.formats.push(after);
        self.note(check);
        Ok(())
    }

    /// Looks at everything once more.
    fn end(mut self) -> Result<(Findings, Vec<Formats>)> {
        let (looked_at, misses) = self.rounds.look_at_all();
        self.rounds.stop.check()?;
        let check = self.findings.end(looked_at, misses);
        print(&check, &self.findings.end_misses);
        self.note(course::raised_with_the_next(&self.formats, last_name(&steps::NEXT)));
        self.findings.finish(self.taken.into_iter());
        Ok((self.findings, self.formats))
    }

    fn note(&mut self, check: Check) {
        print(&check, &[]);
        self.findings.checks.push(check);
    }
}

/// Name of the last of some steps.
fn last_name(steps: &[Fault]) -> &'static str {
    steps.last().map(|step| step.name).unwrap_or_default()
}
