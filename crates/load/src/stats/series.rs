//! Completions over time, in equal steps from the start of the load.

use super::result::Point;
use serde::{Deserialize, Serialize};

/// Width of the finest step, in nanoseconds.
pub(super) const STEP_NS: u64 = 10_000_000;
/// Steps kept: ten minutes. Later completions count in coarser series only.
const FINE_STEPS_MAX: usize = 60_000;
/// Most 100 ms steps over which a sum is spread: a day.
const SPAN_STEPS_MAX: u64 = 864_000;

/// Counts of completions: 10 ms steps up to ten minutes, 100 ms steps for as long as it lasts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    fine: Vec<Count>,
    coarse: Vec<Count>,
    overflowed: bool,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Count {
    operations: u64,
    bytes: u64,
}

impl Series {
    /// One completion `at_ns` after the start.
    pub fn add(&mut self, at_ns: u64, bytes: u64) {
        let step = usize::try_from(at_ns / STEP_NS).unwrap_or(usize::MAX - 1);
        if step >= FINE_STEPS_MAX {
            self.overflow();
        } else if !self.overflowed {
            bump(&mut self.fine, step, bytes);
        }
        bump(&mut self.coarse, step / 10, bytes);
    }

    /// Completions known only as a sum, spread evenly over a time; there are no 10 ms steps then.
    pub fn add_span(&mut self, from_ns: u64, to_ns: u64, operations: u64, bytes: u64) {
        self.overflow();
        let first = from_ns / (STEP_NS * 10);
        let steps = (to_ns / (STEP_NS * 10)).saturating_sub(first).clamp(1, SPAN_STEPS_MAX);
        let mut given = Count::default();
        for step in 1..=steps {
            let until = |sum: u64| {
                u64::try_from(u128::from(sum) * u128::from(step) / u128::from(steps)).unwrap_or(sum)
            };
            let part = Count {
                operations: until(operations) - given.operations,
                bytes: until(bytes) - given.bytes,
            };
            given.operations += part.operations;
            given.bytes += part.bytes;
            let index = usize::try_from(first + step - 1).unwrap_or(usize::MAX - 1);
            grown(&mut self.coarse, index, part);
        }
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Self) {
        if other.overflowed {
            self.overflow();
        } else if !self.overflowed {
            merge(&mut self.fine, &other.fine);
        }
        merge(&mut self.coarse, &other.coarse);
    }

    /// Do all counts of each kind of step, added up, stay at `most` or below?
    pub fn sums_stay_under(&self, most: u64) -> bool {
        [&self.fine, &self.coarse].into_iter().all(|counts| {
            let mut all = counts.iter().flat_map(|count| [count.operations, count.bytes]);
            all.try_fold(0_u64, u64::checked_add).is_some_and(|sum| sum <= most)
        })
    }

    /// There are no fine steps any more, and no memory is held for them: on a path each request in
    /// flight has a series.
    fn overflow(&mut self) {
        if !self.overflowed {
            self.overflowed = true;
            self.fine = Vec::new();
        }
    }

    /// 10 ms steps; nothing if the run outlasted them.
    pub fn points_10ms(&self) -> Vec<Point> {
        if self.overflowed { Vec::new() } else { points(&self.fine, 1, 0.01) }
    }

    /// 100 ms steps.
    pub fn points_100ms(&self) -> Vec<Point> {
        points(&self.coarse, 1, 0.1)
    }

    /// 1 s steps.
    pub fn points_1s(&self) -> Vec<Point> {
        points(&self.coarse, 10, 1.0)
    }
}

fn bump(counts: &mut Vec<Count>, step: usize, bytes: u64) {
    grown(counts, step, Count { operations: 1, bytes });
}

fn grown(counts: &mut Vec<Count>, step: usize, by: Count) {
    if step >= counts.len() {
        counts.resize(step + 1, Count::default());
    }
    if let Some(count) = counts.get_mut(step) {
        count.operations += by.operations;
        count.bytes += by.bytes;
    }
}

fn merge(into: &mut Vec<Count>, from: &[Count]) {
    if into.len() < from.len() {
        into.resize(from.len(), Count::default());
    }
    for (to, from) in into.iter_mut().zip(from) {
        to.operations += from.operations;
        to.bytes += from.bytes;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a step number is far below 2^52")]
fn points(counts: &[Count], per_point: usize, step_s: f64) -> Vec<Point> {
    let of = |(index, group): (usize, &[Count])| Point {
        at_s: index as f64 * step_s,
        operations: group.iter().map(|count| count.operations).sum(),
        bytes: group.iter().map(|count| count.bytes).sum(),
    };
    counts.chunks(per_point).enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_fall_in_their_step_and_coarser_series_add_up() {
        let mut series = Series::default();
        for (at_ms, bytes) in [(0, 1), (9, 2), (10, 4), (999, 8), (1000, 16)] {
            series.add(at_ms * 1_000_000, bytes);
        }
        let fine = series.points_10ms();
        assert_eq!((fine[0].operations, fine[0].bytes), (2, 3));
        assert_eq!((fine[1].operations, fine[1].bytes), (1, 4));
        assert_eq!(series.points_100ms()[9].bytes, 8);
        let seconds: Vec<_> = series.points_1s().iter().map(|point| point.bytes).collect();
        assert_eq!(seconds, [15, 16]);
    }

    #[test]
    fn merging_series_of_different_length_loses_nothing() {
        let (mut a, mut b) = (Series::default(), Series::default());
        a.add(0, 1);
        b.add(50_000_000, 2);
        a.merge(&b);
        assert_eq!(a.points_10ms().iter().map(|point| point.bytes).sum::<u64>(), 3);
        assert_eq!(a.points_10ms().len(), 6);
    }

    #[test]
    fn a_sum_is_spread_with_nothing_lost() {
        let mut series = Series::default();
        series.add_span(1_000_000_000, 2_000_000_000, 1003, 4096);
        let points = series.points_100ms();
        assert_eq!(points.len(), 20);
        assert_eq!(points[9].operations, 0);
        assert!(points[10..].iter().all(|point| [100, 101].contains(&point.operations)));
        assert_eq!(series.points_1s()[1].operations, 1003);
        assert_eq!(series.points_1s()[1].bytes, 4096);
        assert!(series.points_10ms().is_empty());
    }

    #[test]
    fn a_run_too_long_for_fine_steps_keeps_the_coarse_ones() {
        let mut series = Series::default();
        series.add(1_000_000_000, 0);
        series.add(3_600 * 1_000_000_000, 5);
        series.add(1_000_000_000, 0);
        assert_eq!(series.fine.capacity(), 0);
        assert!(series.points_10ms().is_empty());
        assert_eq!(series.points_1s().last().map(|point| point.bytes), Some(5));
    }
}
