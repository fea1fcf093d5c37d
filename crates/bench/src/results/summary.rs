//! The repeats of a step together: medians, and what lies around them.

use super::{Spread, StepRun, Summary};
use weir_load::stats::result::{OpResult, RunResult};

impl Summary {
    /// Of these repeats; `None` if there is none.
    #[must_use]
    pub fn of(runs: &[StepRun]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let over = |figure: &dyn Fn(&RunResult) -> f64| {
            Spread::of(runs.iter().map(|run| figure(&run.total)))
        };
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

    #[test]
    fn the_median_lies_in_the_middle_of_odd_and_even_numbers() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
        assert_eq!(of(&[4.0, 1.0, 2.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
        assert_eq!(of(&[]), Spread::default());
    }

    #[test]
    fn no_repeats_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }
}
