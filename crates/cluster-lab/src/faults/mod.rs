//! `weir-cluster-lab faults`: each part of a cluster fails in turn, under load. After each fault
//! the cluster has to be whole again, and everything acknowledged has to be there.
//!
//! Real times of pauses are told; they are compared with bars only when that is asked for, since a
//! test on a machine that is busy with others has to pass. Not here: contracts during faults, which
//! the demonstration judges.

mod ceph;
mod cuts;
mod etcd;
pub(crate) mod fault;
mod gateways;
pub(crate) mod outcome;
pub(crate) mod plan;
mod present;
pub(crate) mod round;
pub(crate) mod scene;
mod strangers;

use crate::stage::Stage;
use anyhow::{Result, ensure};
use clap::Args;
use fault::{Fault, Often};
use outcome::Findings;
use round::Rounds;
use std::path::{Path, PathBuf};
use weir_lab::campaign::{self, Report};
use weir_lab::judge::Check;
use weir_lab::stop::Stop;

/// Let each part of a cluster on this machine fail in turn under load, and check that nothing that
/// was acknowledged is lost (about seven minutes for each fault once, as root; with more rounds,
/// two faults that take 70 minutes are carried out once, too).
///
/// Prints a line for each round in the form of the Test Anything Protocol.
#[derive(Debug, Args)]
pub(crate) struct Faults {
    /// Only this fault; may be repeated. `--list` names them.
    #[arg(long, value_name = "NAME")]
    fault: Vec<String>,
    /// List the faults.
    #[arg(long)]
    list: bool,
    /// Number of rounds of each fault, but of one that takes long.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Number of rounds of the ends of gateways: killed, machine gone, drained [default: as many as
    /// of the others].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    deaths: Option<u32>,
    /// Compare the pauses with the bars.
    #[arg(long)]
    bars: bool,
    /// Directory for cluster-crash.json and cluster-crash.md.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Commit of the program, for the report.
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// Directory for the logs of the gateways.
    #[arg(long, default_value = "target/cluster-faults", value_name = "DIR")]
    logs: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
}

impl Faults {
    /// Prints the names of all faults, if that is what was asked for.
    pub(crate) fn listed(&self) -> bool {
        if self.list {
            for fault in fault::all() {
                weir_report::outln!("{:20} {}", fault.name, fault.what);
            }
        }
        self.list
    }

    /// Runs the campaign; `work` is an empty directory for everything that goes away.
    ///
    /// # Errors
    /// If it could not be completed.
    pub(crate) fn run(&self, work: &Path, stop: &Stop) -> Result<Report> {
        let chosen = self.chosen()?;
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let logs = campaign::work_directory(&self.logs)?;
        let mut stage = Stage::set((&weir, work, &logs), plan::PLAN, stop)?;
        let mut findings = Findings::new(self.bars, self.commit.clone());
        let mut rounds = Rounds::new(&mut stage, stop)?;
        let broken = self.carry_out(&chosen, &mut rounds, &mut findings);
        stop.check()?;
        let check = match broken {
            Ok(()) => {
                let (looked_at, misses) = rounds.look_at_all();
                stop.check()?;
                findings.end(looked_at, misses)
            }
            // The rounds before it are told all the same.
            Err(error) => findings.end_early(&error),
        };
        print(&check, &findings.end_misses);
        findings.finish(chosen.iter().map(|(_, fault)| *fault));
        let page = present::page(&findings);
        let contents = (&findings, &page, findings.origin.foot());
        let files = ["cluster-crash.json", "cluster-crash.md"];
        Report::new(findings.checks.clone()).files(self.out.as_deref(), &files, contents)
    }

    /// Carries all rounds out.
    ///
    /// # Errors
    /// If no further round is possible: the cluster does not become whole again after a fault, or a
    /// client has ended.
    fn carry_out(
        &self,
        chosen: &[(usize, &'static Fault)],
        rounds: &mut Rounds<'_>,
        findings: &mut Findings,
    ) -> Result<()> {
        for turn in 0..self.turns() {
            for (place, fault) in chosen {
                if !is_due(self.rounds_of(fault), turn, self.turns()) {
                    continue;
                }
                let round = rounds.carry_out(fault, *place)?;
                rounds.stop.check()?;
                let check = findings.judge(fault, round);
                print(&check, findings.last_misses());
            }
        }
        Ok(())
    }

    /// The faults to carry out, with their places in the list of all.
    fn chosen(&self) -> Result<Vec<(usize, &'static Fault)>> {
        let all = fault::all();
        for name in &self.fault {
            let is_one = all.iter().any(|fault| fault.name == name);
            ensure!(is_one, "there is no fault {name}; --list names them");
        }
        let is_chosen =
            |fault: &Fault| self.fault.is_empty() || self.fault.iter().any(|one| one == fault.name);
        Ok(all.into_iter().enumerate().filter(|(_, fault)| is_chosen(fault)).collect())
    }

    fn rounds_of(&self, fault: &Fault) -> u32 {
        match fault.often {
            Often::Deaths => self.deaths.unwrap_or(self.rounds),
            Often::Rounds => self.rounds,
            Often::Once => u32::from(self.turns() > 1 || !self.fault.is_empty()),
        }
    }

    fn turns(&self) -> u32 {
        self.rounds.max(self.deaths.unwrap_or(0))
    }
}

/// Is a fault with so many rounds carried out in this turn of `turns`? Its rounds are spread over
/// all of them.
fn is_due(rounds: u32, turn: u32, turns: u32) -> bool {
    let until = |turn: u32| u64::from(turn) * u64::from(rounds) / u64::from(turns);
    until(turn + 1) > until(turn)
}

/// Prints a check, and what was missed.
pub(crate) fn print(check: &Check, misses: &[String]) {
    let word = if check.passed { "ok" } else { "not ok" };
    weir_report::outln!("{word} - {} # {}", check.rule, check.worst);
    for miss in misses {
        weir_report::outln!("#   {miss}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        faults: Faults,
    }

    fn line(words: &[&str]) -> Faults {
        Line::parse_from(std::iter::once("test").chain(words.iter().copied())).faults
    }

    #[test]
    fn faults_are_chosen_by_name_and_unknown_ones_are_told() {
        assert_eq!(line(&[]).chosen().unwrap().len(), fault::all().len());
        let some = line(&["--fault", "osd-killed", "--fault", "gateway-killed"]).chosen().unwrap();
        let names: Vec<&str> = some.iter().map(|(_, fault)| fault.name).collect();
        assert_eq!(names, ["gateway-killed", "osd-killed"]);
        assert!(line(&["--fault", "flood"]).chosen().is_err());
    }

    #[test]
    fn ends_of_gateways_have_a_number_of_rounds_of_their_own() {
        let number = |words: &[&str], name: &str| {
            let faults = line(words);
            let all = fault::all();
            faults.rounds_of(all.iter().find(|fault| fault.name == name).unwrap())
        };
        let words = ["--rounds", "20", "--deaths", "100"];
        assert_eq!((number(&words, "machine-gone"), number(&words, "osd-killed")), (100, 20));
        assert_eq!(number(&["--rounds", "2"], "gateway-killed"), 2);
        assert_eq!((number(&words, "etcd-away-long"), number(&[], "etcd-away-long")), (1, 0));
        assert_eq!(number(&["--fault", "etcd-away-long"], "etcd-away-long"), 1);
        assert_eq!(number(&["--deaths", "2"], "etcd-away-long"), 1);
        assert_eq!(line(&words).turns(), 100);
    }

    #[test]
    fn rounds_of_rarer_faults_are_spread_over_the_turns() {
        let due = |rounds| (0..10).filter(|turn| is_due(rounds, *turn, 10)).collect::<Vec<_>>();
        assert_eq!(due(10), Vec::from_iter(0..10));
        assert_eq!(due(3), [3, 6, 9]);
        assert_eq!(due(1), [9]);
    }
}
