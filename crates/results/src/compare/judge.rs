//! One step of all sides: which figure decides, and what it shows.

use super::ratio::Ratio;
use super::{Against, Figure, Side, StepComparison, same};
use crate::{StepResult, StepRun, Summary};
use serde::{Deserialize, Serialize};
use weir_load::workload::Rate;
use weir_scenario::scenario::Cache;

/// The result of comparing the deciding figure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The side is better than the first.
    Faster,
    /// The side is worse.
    Slower,
    /// The repeats show no difference.
    NoDifference,
    /// A side has but one run.
    OneRun,
    /// The work was not the same.
    DifferentWork,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference shown",
            Self::OneRun => "one run: no confidence",
            Self::DifferentWork => "different work: not compared",
        }
    }

    /// In words, with the name of the side that is faster or slower.
    #[must_use]
    pub fn words_of(self, side: &str) -> String {
        match self {
            Self::Faster | Self::Slower => format!("{side} {}", self.words()),
            Self::NoDifference | Self::OneRun | Self::DifferentWork => self.words().to_owned(),
        }
    }
}

/// The step of every side that measured it, held against the first; `None` if fewer than two did.
pub(super) fn step(found: &[Option<&StepResult>], sides: &[Side]) -> Option<StepComparison> {
    let mut measured =
        found.iter().enumerate().filter_map(|(side, step)| step.map(|step| (side, step)));
    let (base_side, base) = measured.next()?;
    let judged_by = if limited(base) { Figure::Mean } else { Figure::Operations };
    let label = |side: usize| sides.get(side).map_or("", |side| side.label.as_str());
    let against: Vec<Against> = measured
        .filter_map(|(side, other)| {
            let summaries = (base.summary.as_ref()?, other.summary.as_ref()?);
            let mut against = judge(side, (base, other), summaries, judged_by);
            let sides = [(base, label(base_side)), (other, label(side))];
            against.remarks.extend(preparations(sides));
            against.remarks.extend(sides.into_iter().flat_map(|(step, label)| doubts(step, label)));
            Some(against)
        })
        .collect();
    let (name, group, axis) = (base.name.clone(), base.group.clone(), base.axis.clone());
    (!against.is_empty()).then_some(StepComparison {
        name,
        group,
        axis,
        judged_by,
        base: base_side,
        against,
    })
}

fn judge(
    side: usize,
    (base, other): (&StepResult, &StepResult),
    (first, second): (&Summary, &Summary),
    judged_by: Figure,
) -> Against {
    let differences = same::differences(base, other);
    let ratios: Vec<Ratio> =
        Figure::ALL.iter().filter_map(|&figure| Ratio::of(figure, first, second)).collect();
    let deciding = ratios.iter().find(|ratio| ratio.figure == judged_by);
    let mut remarks = differences.conditions;
    let verdict = if !differences.work.is_empty() {
        Verdict::DifferentWork
    } else if first.repeats < 2 || second.repeats < 2 {
        Verdict::OneRun
    } else {
        deciding.map_or(Verdict::NoDifference, verdict)
    };
    if verdict == Verdict::NoDifference && deciding.is_some_and(|ratio| ratio.chance.is_some()) {
        remarks.push(
            "the ranges do not overlap, but there are too few repeats for a conclusion".to_owned(),
        );
    }
    Against { side, verdict, ratios, different: differences.work, remarks }
}

fn verdict(ratio: &Ratio) -> Verdict {
    match (ratio.shown(), (ratio.ratio > 1.0) == ratio.figure.more_is_better()) {
        (false, _) => Verdict::NoDifference,
        (true, true) => Verdict::Faster,
        (true, false) => Verdict::Slower,
    }
}

/// At a limited rate all are as fast as the limit; what differs is how long they take.
fn limited(step: &StepResult) -> bool {
    step.runs.first().is_some_and(|run| {
        let loads = run.workloads();
        !loads.is_empty() && loads.iter().all(|load| load.rate != Rate::Unlimited)
    })
}

/// Remarks on caches that only one side prepared: the work is the same, its figures may differ.
fn preparations(sides: [(&StepResult, &str); 2]) -> Vec<String> {
    let [first, second] = sides;
    let alone = |(step, label): (&StepResult, &str), other: &StepResult| -> Vec<String> {
        let own = step.cache.done.iter().filter(|done| !other.cache.done.contains(done));
        own.map(|done| format!("{label} alone: caches: {done}")).collect()
    };
    [alone(first, second.0), alone(second, first.0)].concat()
}

/// The reasons against the figures of one side.
pub(super) fn doubts(step: &StepResult, label: &str) -> Vec<String> {
    let any = |doubt: fn(&StepRun) -> bool| step.runs.iter().any(doubt);
    let mut doubts = Vec::new();
    if any(|run| run.total.generator.saturated) {
        doubts.push(format!("{label}: the generator was the limit"));
    }
    if any(|run| run.machine_busy().is_some()) {
        doubts.push(format!(
            "{label}: all processors of the client's machine were busy, rates are a lower bound"
        ));
    }
    let stalls = step.runs.iter().filter_map(|run| run.stall.map(|stall| stall.seconds));
    if let Some(longest) = stalls.max_by(f64::total_cmp) {
        doubts.push(format!("{label}: no operation was completed for {longest:.1} s"));
    }
    if any(|run| !run.total.is_clean()) {
        doubts.push(format!("{label}: operations failed"));
    }
    if any(|run| run.total.interrupted || run.workers.iter().any(|worker| worker.lost.is_some())) {
        doubts.push(format!("{label}: ended before its time, or lost a worker"));
    }
    if any(|run| run.steady.is_some_and(|steady| !steady.steady)) {
        doubts.push(format!("{label}: the rate was not steady"));
    }
    if step.cache.wanted == Cache::Excluded {
        doubts.extend(step.cache.open.iter().map(|open| format!("{label}: caches: {open}")));
    }
    doubts
}
