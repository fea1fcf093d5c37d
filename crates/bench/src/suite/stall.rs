//! Times of a run in which no operation was completed.

use super::steady::count;
use std::time::Duration;
use weir_load::stats::result::{Interval, Point, RunResult};
use weir_results::Stall;

/// Width of the steps in which completions are looked at, in seconds.
const STEP_S: f64 = 0.1;
/// Shortest time without completions that is a stall.
const SHORTEST: Duration = Duration::from_secs(1);
/// A load that completes few operations has long times between them: so many of the mean time
/// between two are no stall.
const MEAN_TIMES: f64 = 10.0;

/// The longest stall of a run: a time in which no operation of any load was completed, and which is
/// a fault of the target. It is none where a load makes pauses of its own that are as long, or
/// where every load leaves a part of the measured time of `total` without requests.
pub(super) fn of(total: &RunResult, loads: &[RunResult]) -> Option<Stall> {
    let loads = if loads.is_empty() { std::slice::from_ref(total) } else { loads };
    let pauses = |load: &RunResult| {
        let think = load.workload.think.map_or(0, |think| think.us);
        Duration::from_micros(think) >= SHORTEST
    };
    let is_whole = |load: &RunResult| {
        load.measured.from_s <= total.measured.from_s && load.measured.to_s >= total.measured.to_s
    };
    if loads.iter().any(pauses) || !loads.iter().any(is_whole) {
        return None;
    }
    longest_stall(&total.series_100ms, &total.measured)
}

/// The longest time of `measured` in which no operation was completed, if that is a stall. `series`
/// has the completions of every 100 ms since the load started; there are none after its end.
fn longest_stall(series: &[Point], measured: &Interval) -> Option<Stall> {
    let steps = |seconds: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "steps of a run"
        )]
        let steps = (seconds / STEP_S + 1e-6).max(0.0) as usize;
        steps
    };
    // Only steps that lie completely in the interval count.
    let (from, to) = (steps(measured.from_s + STEP_S - 1e-3), steps(measured.to_s));
    let completed = |step: usize| series.get(step).map_or(0, |point| point.operations);
    let (mut longest, mut since, mut operations) = ((from, 0), from, 0_u64);
    for step in from..to {
        operations = operations.saturating_add(completed(step));
        if completed(step) > 0 {
            since = step + 1;
        } else if step + 1 - since > longest.1 {
            longest = (since, step + 1 - since);
        }
    }
    let stall = Stall { from_s: count(longest.0) * STEP_S, seconds: count(longest.1) * STEP_S };
    #[expect(clippy::cast_precision_loss, reason = "operations of a run are far below 2^52")]
    let mean_s = measured.seconds() / operations.max(1) as f64;
    let is_long =
        stall.seconds >= SHORTEST.as_secs_f64() - 1e-6 && stall.seconds > mean_s * MEAN_TIMES;
    is_long.then_some(stall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::workload::Think;

    /// A run of six seconds that completes nothing in the last four.
    fn stalled() -> RunResult {
        let mut run = weir_results::testing::result(1000.0, 1.0);
        run.measured = Interval { from_s: 0.0, to_s: 6.0 };
        run.series_100ms = vec![Point { at_s: 0.0, operations: 100, bytes: 0 }; 20];
        run
    }

    #[test]
    fn a_pause_of_a_load_is_no_stall_of_the_target() {
        let thinks = |us| {
            let mut run = stalled();
            run.workload.think = Some(Think { us, every: 1 });
            run
        };
        assert!(of(&stalled(), &[]).is_some());
        assert!(of(&thinks(999_999), &[]).is_some());
        assert!(of(&thinks(1_000_000), &[]).is_none());
        assert!(of(&stalled(), &[stalled(), thinks(1_000_000)]).is_none());
        assert!(of(&stalled(), &[stalled(), thinks(1000)]).is_some());
    }

    #[test]
    fn loads_that_begin_late_or_end_early_make_no_stall() {
        let from_to = |from_s, to_s| {
            let mut run = stalled();
            run.measured = Interval { from_s, to_s };
            run
        };
        assert!(of(&stalled(), &[from_to(0.0, 5.0), from_to(1.0, 6.0)]).is_none());
        assert!(of(&stalled(), &[from_to(0.0, 5.0), from_to(0.0, 6.0)]).is_some());
    }

    /// Completions of `rates` in the steps of 100 ms, of which the first `warmup` are not measured.
    fn found(rates: &[u64], warmup: usize) -> Option<(f64, f64)> {
        let series: Vec<Point> = rates
            .iter()
            .zip(0..)
            .map(|(operations, at)| Point {
                at_s: count(at) * STEP_S,
                operations: *operations,
                bytes: 0,
            })
            .collect();
        let measured =
            Interval { from_s: count(warmup) * STEP_S, to_s: count(rates.len()) * STEP_S };
        let rounded = |seconds: f64| (seconds * 10.0).round() / 10.0;
        longest_stall(&series, &measured)
            .map(|stall| (rounded(stall.from_s), rounded(stall.seconds)))
    }

    fn rates(parts: &[(usize, u64)]) -> Vec<u64> {
        parts.iter().flat_map(|(steps, rate)| vec![*rate; *steps]).collect()
    }

    #[test]
    fn the_longest_time_without_a_completion_is_found() {
        let stalled = rates(&[(40, 100), (12, 0), (3, 100), (40, 0), (60, 100)]);
        assert_eq!(found(&stalled, 0), Some((5.5, 4.0)));
        assert_eq!(found(&stalled, 10), Some((5.5, 4.0)));
        assert_eq!(found(&stalled, 70), Some((7.0, 2.5)), "the warm-up is no part of it");
        assert_eq!(found(&rates(&[(40, 100), (9, 0), (40, 100)]), 0), None);
    }

    #[test]
    fn a_stall_to_the_end_counts_though_the_series_ends_before_it() {
        let series = [Point { at_s: 0.0, operations: 500, bytes: 0 }; 20];
        let found = longest_stall(&series, &Interval { from_s: 0.0, to_s: 5.0 }).unwrap();
        assert!((found.from_s - 2.0).abs() < 1e-9 && (found.seconds - 3.0).abs() < 1e-9);
    }

    #[test]
    fn few_long_operations_are_no_stall() {
        let slow: Vec<u64> = (0..200).map(|step| u64::from(step % 30 == 0)).collect();
        assert_eq!(found(&slow, 0), None);
        assert_eq!(found(&[0; 200], 0), None, "nothing at all is told elsewhere");
    }
}
