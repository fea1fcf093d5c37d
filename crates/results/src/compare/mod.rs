//! Results held against each other: the same steps, ratios, and how far those can be trusted.
//!
//! Steps are matched by the names of their tests and their own. What did different work under the
//! same name is told and not compared. The rules of trust are in [`ratio`]; they are stated for
//! users in `docs/bench-results.md`. What is *not* here: running anything.

mod judge;
pub mod pairs;
mod present;
pub mod ratio;
mod same;

pub use judge::Verdict;
pub(crate) use present::{RatioRow, differences, rows};
pub use present::{json, rule, terminal};
pub use ratio::Ratio;

use crate::{Results, StepResult, TestResult};
use pairs::Judged;
use serde::{Deserialize, Serialize};
use weir_scenario::scenario::{Axis, Chart};

/// Version of the JSON form of a comparison.
pub const COMPARISON_VERSION: u32 = 1;

/// Results held against the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`COMPARISON_VERSION`].
    pub version: u32,
    /// The compared results; the first is the one that the others are held against.
    pub sides: Vec<Side>,
    /// Tests that at least two of them have, in the order of the first that has them.
    pub tests: Vec<TestComparison>,
    /// Tests and steps that not all of them have measured.
    pub partial: Vec<Partial>,
    /// Pairs of steps of one or two of the results, against their published ratios.
    #[serde(flatten)]
    pub judged: Judged,
}

/// One compared result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The result's label.
    pub label: String,
    /// The measured target.
    pub target: String,
    /// Version of the program.
    pub program: String,
    /// Start of the run, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// Warnings to know before believing its figures.
    pub warnings: Vec<String>,
    /// The run was ended before its time, or lost a worker.
    pub interrupted: bool,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestComparison {
    /// The test's name.
    pub name: String,
    /// The test's title.
    pub title: String,
    /// The best chart for its figures.
    pub chart: Chart,
    /// Steps that at least two sides measured.
    pub steps: Vec<StepComparison>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepComparison {
    /// The step's name.
    pub name: String,
    /// The step's group.
    pub group: String,
    /// The axis that it varies.
    pub axis: Option<Axis>,
    /// The figure that decides.
    pub judged_by: Figure,
    /// Number of the side, in [`Comparison::sides`], that the others are held against: 0, or the
    /// first that measured it.
    pub base: usize,
    /// Every other side that measured it.
    pub against: Vec<Against>,
}

/// One side's step held against the first's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The side's number in [`Comparison::sides`].
    pub side: usize,
    /// The verdict on the deciding figure.
    pub verdict: Verdict,
    /// Every figure that both have.
    pub ratios: Vec<Ratio>,
    /// Why the work was not the same.
    pub different: Vec<Difference>,
    /// Other differences and remarks, a sentence each.
    pub remarks: Vec<String>,
}

/// A setting that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Which.
    pub setting: String,
    /// The first side's, in words.
    pub base: String,
    /// The other side's.
    pub other: String,
}

impl Against {
    /// The ratio of one figure, if both sides have it.
    #[must_use]
    pub fn ratio(&self, figure: Figure) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.figure == figure)
    }
}

/// A test or a step that not all sides have measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// The test.
    pub test: String,
    /// The step; absent if the whole test is meant.
    pub step: Option<String>,
    /// Numbers of the sides that measured it.
    pub sides: Vec<usize>,
}

/// A compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations a second.
    Operations,
    /// MiB/s.
    Throughput,
    /// Mean latency.
    Mean,
    /// 99th percentile of latency.
    P99,
    /// Processor time of the generator per operation.
    ClientCpu,
    /// Processor time of the server per operation.
    ServerCpu,
}

impl Figure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Operations,
        Self::Throughput,
        Self::Mean,
        Self::P99,
        Self::ClientCpu,
        Self::ServerCpu,
    ];

    /// For headings, with its unit.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Operations => "op/s",
            Self::Throughput => "MiB/s",
            Self::Mean => "mean latency",
            Self::P99 => "p99 latency",
            Self::ClientCpu => "client CPU per op",
            Self::ServerCpu => "server CPU per op",
        }
    }

    /// Is more of it better?
    #[must_use]
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Operations | Self::Throughput)
    }
}

/// Holds all of `results` against the first. Preparation steps are left out.
#[must_use]
pub fn compare(results: &[&Results]) -> Comparison {
    let side = |one: &&Results| Side {
        label: one.label.clone(),
        target: one.target.clone(),
        program: one.program.clone(),
        started_unix_s: one.started_unix_s,
        warnings: one.warnings.clone(),
        interrupted: one.interrupted,
    };
    let mut comparison = Comparison {
        version: COMPARISON_VERSION,
        sides: results.iter().map(side).collect(),
        tests: Vec::new(),
        partial: Vec::new(),
        judged: pairs::judge(results),
    };
    for name in in_order(results.iter().map(|one| one.tests.iter().map(|test| test.name.as_str())))
    {
        let tests: Vec<Option<&TestResult>> =
            results.iter().map(|one| one.tests.iter().find(|test| test.name == name)).collect();
        compare_test(name, &tests, &mut comparison);
    }
    comparison
}

fn compare_test(name: &str, tests: &[Option<&TestResult>], comparison: &mut Comparison) {
    let measured: Vec<usize> = numbers(tests.iter().map(|test| test.is_some_and(ran)));
    let Some(first) = measured.first().and_then(|&side| tests.get(side).copied().flatten()) else {
        return;
    };
    if measured.len() < 2 {
        comparison.partial.push(Partial { test: name.to_owned(), step: None, sides: measured });
        return;
    }
    let mut steps = Vec::new();
    let names = tests
        .iter()
        .map(|test| test.iter().flat_map(|test| test.steps.iter().map(|step| step.name.as_str())));
    for step in in_order(names) {
        let found: Vec<Option<&StepResult>> = tests
            .iter()
            .map(|test| test.and_then(|test| test.steps.iter().find(|one| one.name == step)))
            .map(|found| found.filter(|one| one.summary.is_some() && !one.preparation))
            .collect();
        let sides = numbers(found.iter().map(Option::is_some));
        // A step that a side left out in a test that it has is worth a remark; so is a step it
        // lacks.
        if !sides.is_empty() && measured.iter().any(|side| !sides.contains(side)) {
            let (test, step) = (name.to_owned(), Some(step.to_owned()));
            comparison.partial.push(Partial { test, step, sides: sides.clone() });
        }
        steps.extend(judge::step(&found, &comparison.sides));
    }
    let (title, chart) = (first.title.clone(), first.chart);
    comparison.tests.push(TestComparison { name: name.to_owned(), title, chart, steps });
}

fn ran(test: &TestResult) -> bool {
    test.steps.iter().any(|step| step.summary.is_some() && !step.preparation)
}

fn numbers(there: impl Iterator<Item = bool>) -> Vec<usize> {
    there.enumerate().filter(|(_, there)| *there).map(|(number, _)| number).collect()
}

/// Every name once, in the order of the first list, then what the others add.
fn in_order<'a>(lists: impl Iterator<Item = impl Iterator<Item = &'a str>>) -> Vec<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Vec::new();
    for name in lists.flatten() {
        if seen.insert(name) {
            all.push(name);
        }
    }
    all
}
