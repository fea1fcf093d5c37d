//! The repeats of a step together: medians, and what lies around them.

use super::{Spread, StepResult, StepRun, Summary, TargetSummary};
use weir_load::stats::result::{OpResult, RunResult};

/// The repeats that the figures of a step rest on: those that ran to their end; all of them if none
/// did.
#[must_use]
pub fn counted(runs: &[StepRun]) -> Vec<&StepRun> {
    let whole: Vec<&StepRun> = runs.iter().filter(|run| !run.total.interrupted).collect();
    if whole.is_empty() { runs.iter().collect() } else { whole }
}

impl StepResult {
    /// The figures of each target over the repeats that count, in the order of their names; none
    /// where all loads were on one target.
    #[must_use]
    pub fn targets(&self) -> Vec<TargetSummary> {
        let runs = counted(&self.runs);
        let mut parts: Vec<&RunResult> = runs.iter().flat_map(|run| &run.targets).collect();
        // Stable: the repeats of a target keep their order.
        parts.sort_by(|a, b| target_name(a).cmp(target_name(b)));
        let same = |a: &&RunResult, b: &&RunResult| target_name(a) == target_name(b);
        let summary = |parts: &[&RunResult]| {
            let name = target_name(parts.first()?).to_owned();
            Some(TargetSummary { name, summary: Summary::over(parts)? })
        };
        parts.chunk_by(same).filter_map(summary).collect()
    }
}

/// The name of the target that a result is about; the target itself where it has no name.
#[must_use]
pub fn target_name(part: &RunResult) -> &str {
    if part.name.is_empty() { &part.target } else { &part.name }
}

impl Summary {
    /// Of these repeats; `None` if there is none.
    #[must_use]
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a StepRun>) -> Option<Self> {
        let totals: Vec<&RunResult> = runs.into_iter().map(|run| &run.total).collect();
        Self::over(&totals)
    }

    /// Of the results of these repeats.
    fn over(runs: &[&RunResult]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let over =
            |figure: &dyn Fn(&RunResult) -> f64| Spread::of(runs.iter().map(|run| figure(run)));
        let kind = |name: &'static str, figure: fn(&OpResult) -> f64| {
            over(&move |run: &RunResult| run.by_operation.get(name).map_or(0.0, figure))
        };
        Some(Self {
            repeats: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            iops: over(&|run| run.total.iops),
            mibps: over(&|run| run.total.mibps),
            read_iops: kind("read", |read| read.iops),
            write_iops: kind("write", |write| write.iops),
            read_mibps: kind("read", |read| read.mibps),
            write_mibps: kind("write", |write| write.mibps),
            mean_ms: over(&|run| run.total.latency_ms.mean),
            p99_ms: over(&|run| run.total.latency_ms.p99),
            client_us_per_op: over(&|run| run.generator.cpu_us_per_op),
            server_us_per_op: over(&|run| run.server.map_or(0.0, |server| server.cpu_us_per_op)),
        })
    }
}

impl Spread {
    /// Least, median and greatest of `values`; all zero if there is none. The median of an even
    /// number is the mean of the two in the middle.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(min);
        Self { min, median: f64::midpoint(at(low), at(high)), max }
    }
}

/// The median of `values`, as [`Spread::of`] has it.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values.into_iter()).median
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_result;

    #[test]
    fn the_median_lies_in_the_middle_of_odd_and_even_numbers() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
        assert_eq!(of(&[]), Spread::default());
    }

    /// A repeat with these rates at two targets, the second of which has no name.
    fn repeat(first: f64, second: f64, interrupted: bool) -> StepRun {
        let run = |iops| step_result(iops, 1.0).runs.swap_remove(0);
        let part = |name: &str, target: &str, iops| RunResult {
            name: name.to_owned(),
            target: target.to_owned(),
            ..run(iops).total
        };
        let targets = vec![part("one", "nfs://h/one", first), part("", "nfs://h/two", second)];
        let mut run = run(first + second);
        run.total.interrupted = interrupted;
        StepRun { targets, ..run }
    }

    #[test]
    fn each_target_has_its_figures_over_the_repeats_that_count() {
        let runs =
            vec![repeat(10.0, 1.0, false), repeat(99.0, 9.0, true), repeat(30.0, 3.0, false)];
        let step = StepResult { runs, ..StepResult::default() };
        let told: Vec<_> = step
            .targets()
            .iter()
            .map(|one| (one.name.clone(), one.summary.repeats, one.summary.iops))
            .collect();
        let spread = |min, median, max| Spread { min, median, max };
        assert_eq!(
            told,
            [
                ("nfs://h/two".to_owned(), 2, spread(1.0, 2.0, 3.0)),
                ("one".to_owned(), 2, spread(10.0, 20.0, 30.0)),
            ]
        );
        let all = vec![repeat(10.0, 1.0, true), repeat(30.0, 3.0, true)];
        assert_eq!(counted(&all).len(), 2, "of runs that were all cut short, all count");
        assert!(step_result(1.0, 1.0).targets().is_empty());
    }

    #[test]
    fn no_repeats_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }
}
