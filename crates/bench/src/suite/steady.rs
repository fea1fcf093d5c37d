//! Was a rate steady? A line is laid through the rates of the seconds; it may rise or fall by 10 %
//! of the mean over the interval, and no second may lie further than 20 % from the mean. These
//! are the bounds of SNIA's Solid State Storage Performance Test Specification for its rounds,
//! applied to seconds.

use weir_load::stats::result::{Interval, Point};
use weir_results::Steady;

/// Most that the fitted line may change over the interval, in percent of the mean.
const DRIFT_PERCENT_MAX: f64 = 10.0;
/// Most that a second may lie off the mean, in percent of it.
const EXCURSION_PERCENT_MAX: f64 = 20.0;
/// Seconds below which nothing can be said.
const SECONDS_MIN: usize = 5;

/// A sentence about a time too short for [`steady`] to say anything of it.
pub(super) fn too_short(measured: &Interval) -> String {
    // A warm-up of a part of a second leaves an incomplete second, which does not count.
    let least = if measured.from_s.fract() > 1e-6 { SECONDS_MIN + 1 } else { SECONDS_MIN };
    let seconds = measured.seconds();
    let digits = usize::from(seconds.fract() > 0.05 && seconds.fract() < 0.95);
    format!(
        "measured for {seconds:.digits$} s: too short to tell whether the rate was steady; at \
         least {least} s are needed"
    )
}

/// Whether the completions of `series` (one point for each second since the load started) were
/// steady through `measured`, and after what warm-up they would have been. `None` if fewer than
/// five whole seconds were measured.
///
/// [`Steady::warmup_s`] is the end of the load where the rate was steady from no second on.
#[must_use]
pub fn steady(series: &[Point], measured: &Interval) -> Option<Steady> {
    // Only whole seconds of load have a rate. The series ends with the last completion, which may
    // be long before the load's end.
    let at = |second: usize| series.get(second).map_or(0.0, rate);
    let all: Vec<f64> = (0..whole(measured.to_s + 1e-6)).map(at).collect();
    let from = whole((measured.from_s - 1e-6).ceil());
    let inside = all.get(from..)?;
    if inside.len() < SECONDS_MIN {
        return None;
    }
    let (drift_percent, excursion_percent) = deviations(inside);
    let warmup = (0..=all.len() - SECONDS_MIN)
        .find(|start| all.get(*start..).is_some_and(|rest| is_steady(deviations(rest))))
        .unwrap_or(all.len());
    Some(Steady {
        steady: is_steady((drift_percent, excursion_percent)),
        drift_percent,
        excursion_percent,
        warmup_s: count(warmup),
    })
}

fn is_steady((drift, excursion): (f64, f64)) -> bool {
    drift.abs() <= DRIFT_PERCENT_MAX && excursion <= EXCURSION_PERCENT_MAX
}

/// Change of the line of least squares from the first second to the last, and the greatest
/// distance of a second from the mean, both in percent of the mean. Nothing at all is steady.
fn deviations(rates: &[f64]) -> (f64, f64) {
    let n = count(rates.len());
    let mean = rates.iter().sum::<f64>() / n;
    if mean <= 0.0 {
        return (0.0, 0.0);
    }
    let middle = (n - 1.0) / 2.0;
    let (mut across, mut along) = (0.0, 0.0);
    for (second, rate) in rates.iter().enumerate() {
        let distance = count(second) - middle;
        across += distance * (rate - mean);
        along += distance * distance;
    }
    let slope = if along > 0.0 { across / along } else { 0.0 };
    let furthest = rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max);
    (slope * (n - 1.0) / mean * 100.0, furthest / mean * 100.0)
}

#[expect(clippy::cast_precision_loss, reason = "operations of a second are far below 2^52")]
fn rate(point: &Point) -> f64 {
    point.operations as f64
}

/// Whole seconds in `seconds`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run")]
fn whole(seconds: f64) -> usize {
    seconds.max(0.0) as usize
}

#[expect(clippy::cast_precision_loss, reason = "parts of a run are far below 2^52")]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[u64], from_s: f64) -> Option<Steady> {
        let series: Vec<Point> = rates
            .iter()
            .enumerate()
            .map(|(at, operations)| Point { at_s: count(at), operations: *operations, bytes: 0 })
            .collect();
        steady(&series, &Interval { from_s, to_s: count(rates.len()) })
    }

    #[test]
    fn an_even_rate_is_steady_from_the_start() {
        let found = of(&[1000; 12], 2.0).unwrap();
        assert!(found.steady && found.drift_percent.abs() < 1e-9, "{found:?}");
        assert_eq!((found.excursion_percent, found.warmup_s), (0.0, 0.0));
    }

    #[test]
    fn a_slow_rise_is_a_drift_though_no_second_is_far_off() {
        // From 920 to 1080 over ten seconds: 16 % of the mean, each within 8 %.
        let rates: Vec<u64> = (0..10).map(|second| 920 + second * 160 / 9).collect();
        let found = of(&rates, 0.0).unwrap();
        assert!(!found.steady, "{found:?}");
        assert!((found.drift_percent - 16.0).abs() < 0.5, "{found:?}");
        assert!(found.excursion_percent < 8.5, "{found:?}");
    }

    #[test]
    fn one_second_that_stands_still_is_an_excursion_though_nothing_drifts() {
        let mut rates = vec![1000; 21];
        rates[10] = 500;
        let found = of(&rates, 0.0).unwrap();
        assert!(!found.steady && found.drift_percent.abs() < 1.0, "{found:?}");
        assert!((found.excursion_percent - 48.8).abs() < 0.2, "{found:?}");
        assert_eq!(found.warmup_s, 11.0);
    }

    #[test]
    fn the_warm_up_that_would_have_been_enough_is_found() {
        let rates = [5000, 4000, 3000, 2000, 1000, 1000, 1000, 1000, 1000, 1000, 1000];
        let found = of(&rates, 0.0).unwrap();
        assert!(!found.steady);
        assert_eq!(found.warmup_s, 4.0);
        assert!(of(&rates, 4.0).unwrap().steady);
    }

    #[test]
    fn a_rate_that_never_settles_has_no_warm_up_before_its_end() {
        let rates: Vec<u64> = (0..12).map(|second| 1 << second).collect();
        let found = of(&rates, 0.0).unwrap();
        assert!(!found.steady);
        assert_eq!(found.warmup_s, 12.0);
    }

    #[test]
    fn parts_of_seconds_don_t_count_and_too_few_say_nothing() {
        assert_eq!(of(&[1000; 4], 0.0), None);
        assert_eq!(of(&[], 0.0), None);
        let series: Vec<Point> = [1000, 1000, 1000, 1000, 1000, 1000, 300]
            .iter()
            .enumerate()
            .map(|(at, operations)| Point { at_s: count(at), operations: *operations, bytes: 0 })
            .collect();
        let found = steady(&series, &Interval { from_s: 0.5, to_s: 6.3 }).unwrap();
        assert!(found.steady, "{found:?}");
    }

    #[test]
    fn a_time_that_is_too_short_is_told_with_one_that_is_not() {
        let told = |from_s: f64, seconds: f64| {
            let measured = Interval { from_s, to_s: from_s + seconds };
            too_short(&measured)
        };
        assert_eq!(
            told(1.0, 2.001),
            "measured for 2 s: too short to tell whether the rate was steady; at least 5 s are needed"
        );
        assert!(told(0.5, 2.5).starts_with("measured for 2.5 s"), "{}", told(0.5, 2.5));
        // The advised time is enough.
        assert!(told(0.5, 5.0).contains("at least 6 s"));
        let series = [Point { at_s: 0.0, operations: 9, bytes: 0 }; 7];
        let series: Vec<Point> =
            (0..).zip(series).map(|(at, one)| Point { at_s: count(at), ..one }).collect();
        let found = |from_s: f64, to_s: f64| steady(&series, &Interval { from_s, to_s });
        assert!(found(0.5, 5.5).is_none() && found(0.5, 6.5).is_some());
        assert!(found(1.0, 5.0).is_none() && found(1.0, 6.0).is_some());
    }

    #[test]
    fn seconds_without_completions_count_to_the_end_of_the_load() {
        let series = [Point { at_s: 0.0, operations: 500, bytes: 0 }; 3];
        let found = steady(&series, &Interval { from_s: 0.0, to_s: 20.0 }).unwrap();
        assert!(!found.steady, "{found:?}");
    }

    #[test]
    fn nothing_at_all_is_steady() {
        assert!(of(&[0; 9], 0.0).unwrap().steady);
    }
}
