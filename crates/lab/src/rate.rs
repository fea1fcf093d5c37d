//! Completed bytes over time, asked for any stretch of it.

use weir_load::stats::result::Point;

/// Width of the finest steps, in seconds.
pub const STEP_S: f64 = 0.01;

/// The sum of series that have the same start and the same steps, none of them missing.
pub fn sum<'a>(series: impl Iterator<Item = &'a [Point]>) -> Vec<Point> {
    let mut all: Vec<Point> = Vec::new();
    for points in series {
        for (step, point) in points.iter().enumerate() {
            match all.get_mut(step) {
                Some(sum) => {
                    sum.operations += point.operations;
                    sum.bytes += point.bytes;
                }
                None => all.push(*point),
            }
        }
    }
    all
}

/// Completed bytes from the start of a run, in steps.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The width of the steps, in seconds.
    step_s: f64,
    /// Bytes completed before the step of the same number.
    before: Vec<f64>,
}

impl Rate {
    /// From the 10 ms series of a run; steps without completions may be missing in it.
    pub fn new(series: &[Point]) -> Self {
        Self::by(series, STEP_S)
    }

    /// From a series in steps of `step_s` seconds.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "steps and bytes of a run of minutes fit into 52 bits, and times are not negative"
    )]
    pub fn by(series: &[Point], step_s: f64) -> Self {
        let number = |point: &Point| (point.at_s / step_s).round() as usize;
        let steps = series.last().map_or(0, |last| number(last) + 1);
        let mut bytes = vec![0.0; steps];
        for point in series {
            if let Some(step) = bytes.get_mut(number(point)) {
                *step += point.bytes as f64;
            }
        }
        let mut before = vec![0.0];
        let mut sum = 0.0;
        for step in bytes {
            sum += step;
            before.push(sum);
        }
        Self { step_s, before }
    }

    /// Bytes completed before `at_s`; inside a step, a proportional part of it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cut off to whole steps on purpose"
    )]
    pub fn bytes_before(&self, at_s: f64) -> f64 {
        let place = (at_s / self.step_s).max(0.0);
        let step = place.floor() as usize;
        let last = self.before.last().copied().unwrap_or(0.0);
        let start = self.before.get(step).copied().unwrap_or(last);
        let end = self.before.get(step + 1).copied().unwrap_or(last);
        start + (end - start) * place.fract()
    }

    /// Bytes completed from one time to another.
    pub fn bytes_between(&self, from_s: f64, to_s: f64) -> f64 {
        self.bytes_before(to_s) - self.bytes_before(from_s)
    }

    /// All stretches of `length_s` between two times, one every 100 ms: beginning and bytes.
    pub fn windows(
        &self,
        (from_s, to_s): (f64, f64),
        length_s: f64,
    ) -> impl Iterator<Item = (f64, f64)> {
        const HOP_S: f64 = 0.1;
        (0u32..)
            .map(move |number| from_s + f64::from(number) * HOP_S)
            .take_while(move |start| start + length_s <= to_s + STEP_S / 2.0)
            .map(move |start| (start, self.bytes_between(start, start + length_s)))
    }

    /// MiB/s in each whole second between two times.
    pub fn seconds(&self, (from_s, to_s): (f64, f64)) -> Vec<f64> {
        (0u32..)
            .map(|second| from_s + f64::from(second))
            .take_while(|start| start + 1.0 <= to_s + STEP_S / 2.0)
            .map(|start| self.bytes_between(start, start + 1.0) / 1_048_576.0)
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A series that completes `rate(second)` bytes per second, evenly.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "test figures are small"
    )]
    pub(crate) fn series(seconds: u32, rate: impl Fn(f64) -> f64) -> Vec<Point> {
        (0..seconds * 100)
            .map(|step| {
                let at_s = f64::from(step) * STEP_S;
                Point { at_s, operations: 1, bytes: (rate(at_s) * STEP_S).round() as u64 }
            })
            .collect()
    }

    #[test]
    fn sums_over_any_stretch() {
        let rate = Rate::new(&series(10, |_| 1000.0));
        assert!((rate.bytes_between(2.0, 5.0) - 3000.0).abs() < 1e-6);
        assert!((rate.bytes_between(2.0, 2.005) - 5.0).abs() < 1e-6);
        assert!((rate.bytes_between(9.0, 20.0) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn missing_steps_count_as_nothing() {
        let mut sparse = series(4, |_| 1000.0);
        sparse.retain(|point| !(1.0..2.0).contains(&point.at_s));
        let rate = Rate::new(&sparse);
        assert!(rate.bytes_between(1.0, 2.0).abs() < 1e-6);
        assert!((rate.bytes_between(0.0, 4.0) - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn windows_cover_the_whole_stretch_and_no_more() {
        let rate = Rate::new(&series(40, |_| 1000.0));
        let starts: Vec<f64> = rate.windows((5.0, 35.0), 10.0).map(|window| window.0).collect();
        assert_eq!(starts.len(), 201);
        assert!((starts[200] - 25.0).abs() < 1e-6);
        assert_eq!(rate.windows((5.0, 14.0), 10.0).count(), 0);
        assert_eq!(rate.seconds((5.0, 35.0)).len(), 30);
    }

    #[test]
    fn a_sum_is_as_long_as_its_longest_series() {
        let (short, long) = (series(2, |_| 1000.0), series(4, |_| 500.0));
        for order in [[&short, &long], [&long, &short]] {
            let sum = Rate::new(&sum(order.into_iter().map(Vec::as_slice)));
            assert_eq!(sum.seconds((0.0, 4.0)).len(), 4);
            assert!((sum.bytes_between(0.0, 2.0) - 3000.0).abs() < 1e-6);
            assert!((sum.bytes_between(2.0, 4.0) - 1000.0).abs() < 1e-6);
        }
    }
}
