//! The repeats of a step together.

use crate::results::{Spread, StepRun, Summary};
use crate::stats::result::OpResult;

/// Medians and extremes of `runs`; `None` if there is none.
#[must_use]
pub fn summarize(runs: &[StepRun]) -> Option<Summary> {
    if runs.is_empty() {
        return None;
    }
    let spread = |of: &dyn Fn(&StepRun) -> f64| spread(runs.iter().map(of).collect());
    let read = |run: &StepRun| kind(run, "read");
    let write = |run: &StepRun| kind(run, "write");
    Some(Summary {
        repeats: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        iops: spread(&|run| run.total.total.iops),
        mibps: spread(&|run| run.total.total.mibps),
        read_iops: spread(&|run| read(run).iops),
        write_iops: spread(&|run| write(run).iops),
        read_mibps: spread(&|run| read(run).mibps),
        write_mibps: spread(&|run| write(run).mibps),
        mean_ms: spread(&|run| run.total.total.latency_ms.mean),
        p99_ms: spread(&|run| run.total.total.latency_ms.p99),
        client_us_per_op: spread(&|run| run.total.generator.cpu_us_per_op),
        server_us_per_op: spread(&|run| {
            run.total.server.map_or(0.0, |server| server.cpu_us_per_op)
        }),
    })
}

fn kind(run: &StepRun, name: &str) -> OpResult {
    run.total.by_operation.get(name).copied().unwrap_or_default()
}

/// The median of an even number of values is the mean of the middle two.
fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    let last = values.len().saturating_sub(1);
    Spread { min: at(0), median: f64::midpoint(at(last / 2), at(values.len() / 2)), max: at(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_middle_two() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(spread(vec![4.0, 1.0, 2.0, 3.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(spread(vec![7.0]), Spread { min: 7.0, median: 7.0, max: 7.0 });
    }

    #[test]
    fn no_run_has_no_summary() {
        assert_eq!(summarize(&[]), None);
    }
}
