//! The ratio of two figures, and its certainty.
//!
//! The rules need no assumption about how figures are distributed, only that repeats are
//! independent of each other:
//!
//! - The **ratio** is that of the medians.
//! - The **interval** goes from the least of one side over the greatest of the other to the
//!   greatest over the least. The median of a distribution lies outside the range of n draws from
//!   it with a chance of 2¹⁻ⁿ; so the interval holds the ratio of the true medians with a
//!   confidence of at least 1 − 2¹⁻ⁿ − 2¹⁻ᵐ (Bonferroni).
//! - A **difference** is shown if the ranges of both sides do not touch, and chance alone would
//!   part them so at most once in ten. If there were no difference, every order of the n + m
//!   repeats would be equally likely, and two of the C(n + m, n) ways to deal them part the sides:
//!   that is the chance (Wilcoxon's rank-sum test at its end). Three repeats of each are enough.

use super::Figure;
use crate::{Spread, Summary};
use serde::{Deserialize, Serialize};

/// The greatest chance at which a difference counts as shown.
pub const CHANCE_MAX: f64 = 0.1;
/// Most repeats that count.
const REPEATS_MAX: u32 = 1000;

/// One figure of one side over that of the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Which.
    pub figure: Figure,
    /// The first side's.
    pub base: Spread,
    /// The other side's.
    pub other: Spread,
    /// Median over median.
    pub ratio: f64,
    /// Least that the repeats allow.
    pub low: f64,
    /// Greatest that they allow.
    pub high: f64,
    /// With what confidence the true ratio lies between, 0 to 1, at least; 0 says nothing.
    pub confidence: f64,
    /// The probability of such a distance if there is no difference; absent where the ranges touch
    /// or a side has but one run.
    pub chance: Option<f64>,
}

impl Ratio {
    /// `figure` of `other` over that of `base`; `None` where one of them has none of it.
    #[must_use]
    pub fn of(figure: Figure, base: &Summary, other: &Summary) -> Option<Self> {
        let (first, second) = (spread(figure, base), spread(figure, other));
        let sound = |one: &Spread| one.median > 0.0 && one.median.is_finite();
        if !sound(&first) || !sound(&second) {
            return None;
        }
        let over = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::MAX };
        let parted = second.min > first.max || second.max < first.min;
        let (n, m) = (base.repeats, other.repeats);
        Some(Self {
            figure,
            base: first,
            other: second,
            ratio: second.median / first.median,
            low: over(second.min, first.max),
            high: over(second.max, first.min),
            confidence: confidence(n, m),
            chance: (parted && n > 1 && m > 1).then(|| chance(n, m)),
        })
    }

    /// Is a difference shown?
    #[must_use]
    pub fn shown(&self) -> bool {
        self.chance.is_some_and(|chance| chance <= CHANCE_MAX + 1e-9)
    }
}

const fn spread(figure: Figure, summary: &Summary) -> Spread {
    match figure {
        Figure::Operations => summary.iops,
        Figure::Throughput => summary.mibps,
        Figure::Mean => summary.mean_ms,
        Figure::P99 => summary.p99_ms,
        Figure::ClientCpu => summary.client_us_per_op,
        Figure::ServerCpu => summary.server_us_per_op,
    }
}

/// Of the interval, with `n` and `m` repeats.
fn confidence(n: u32, m: u32) -> f64 {
    let outside =
        |repeats: u32| 2f64.powi(1 - i32::try_from(repeats.min(REPEATS_MAX)).unwrap_or(1));
    (1.0 - outside(n) - outside(m)).max(0.0)
}

/// 2 / C(n + m, n).
fn chance(n: u32, m: u32) -> f64 {
    // More make no difference, and a file may claim any number.
    let (n, m) = (n.min(REPEATS_MAX), m.min(REPEATS_MAX));
    let ways: f64 = (1..=n).map(|k| f64::from(m) / f64::from(k) + 1.0).product();
    2.0 / ways
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(repeats: u32, min: f64, median: f64, max: f64) -> Summary {
        Summary { repeats, iops: Spread { min, median, max }, ..Summary::default() }
    }

    #[test]
    fn the_interval_spans_all_that_the_repeats_allow() {
        let (a, b) = (summary(5, 90.0, 100.0, 110.0), summary(5, 198.0, 200.0, 220.0));
        let ratio = Ratio::of(Figure::Operations, &a, &b).unwrap();
        assert!((ratio.ratio - 2.0).abs() < 1e-12);
        assert!((ratio.low - 1.8).abs() < 1e-12 && (ratio.high - 220.0 / 90.0).abs() < 1e-12);
        assert!((ratio.confidence - 0.875).abs() < 1e-12);
        assert!((ratio.chance.unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert!(ratio.shown());
    }

    #[test]
    fn ranges_that_touch_show_nothing_and_two_repeats_are_too_few() {
        let (a, b) = (summary(5, 90.0, 100.0, 110.0), summary(5, 110.0, 112.0, 115.0));
        assert_eq!(Ratio::of(Figure::Operations, &a, &b).unwrap().chance, None);
        let (a, b) = (summary(2, 90.0, 95.0, 100.0), summary(2, 190.0, 195.0, 200.0));
        let ratio = Ratio::of(Figure::Operations, &a, &b).unwrap();
        assert!((ratio.chance.unwrap() - 1.0 / 3.0).abs() < 1e-12 && !ratio.shown());
        let (a, b) = (summary(3, 90.0, 95.0, 100.0), summary(3, 190.0, 195.0, 200.0));
        assert!(Ratio::of(Figure::Operations, &a, &b).unwrap().shown());
    }

    #[test]
    fn any_number_of_repeats_is_counted_at_once() {
        assert!(confidence(u32::MAX, u32::MAX) <= 1.0 && chance(u32::MAX, u32::MAX) >= 0.0);
        assert!(chance(u32::MAX, 3) < 1e-6);
    }

    #[test]
    fn one_run_says_nothing_of_confidence() {
        let one = summary(1, 100.0, 100.0, 100.0);
        let ratio = Ratio::of(Figure::Operations, &one, &summary(5, 190.0, 200.0, 210.0)).unwrap();
        assert_eq!((ratio.chance, ratio.confidence), (None, 0.0));
        assert!(Ratio::of(Figure::ServerCpu, &one, &one).is_none(), "nobody measured it");
    }
}
