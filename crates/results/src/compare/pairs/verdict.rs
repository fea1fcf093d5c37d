//! The verdict on a measured ratio against a published one.

use crate::PairVerdict;
use crate::compare::Ratio;
use weir_scenario::catalogue::pairs::PublishedRatio;

/// No effect at all.
const NONE: f64 = 1.0;

/// The verdict on the interval of `ratio` against the published range.
pub(super) fn of(ratio: &Ratio, published: &PublishedRatio) -> PairVerdict {
    if published.orientation {
        return PairVerdict::Orientation;
    }
    if ratio.confidence <= 0.0 {
        return PairVerdict::FewRuns;
    }
    let (low, high) = (published.low.unwrap_or(0.0), published.high.unwrap_or(f64::INFINITY));
    let reaches = ratio.low <= high && ratio.high >= low;
    let has_none = ratio.low <= NONE && ratio.high >= NONE;
    // A range on both sides of 1 says that there is no effect, and has no way.
    let says_none = low < NONE && high > NONE;
    match (reaches, has_none, says_none) {
        (true, _, true) | (true, false, false) => PairVerdict::AsPublished,
        (true, true, false) => PairVerdict::Undecided,
        (false, true, _) => PairVerdict::NotShown,
        (false, false, true) => PairVerdict::Stronger,
        (false, false, false) => {
            let up = low >= NONE;
            match (up == (ratio.low > NONE), up == (ratio.low > high)) {
                (false, _) => PairVerdict::Opposite,
                (true, true) => PairVerdict::Stronger,
                (true, false) => PairVerdict::Weaker,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;
    use crate::compare::Figure;
    use weir_core::rng::Rng;

    fn ratio(low: f64, high: f64) -> Ratio {
        Ratio {
            figure: Figure::Operations,
            base: Spread::default(),
            other: Spread::default(),
            ratio: f64::midpoint(low, high),
            low,
            high,
            confidence: 0.5,
            chance: None,
        }
    }

    fn range(low: Option<f64>, high: Option<f64>) -> PublishedRatio {
        PublishedRatio { low, high, ..PublishedRatio::default() }
    }

    #[test]
    fn every_place_of_the_interval_has_its_verdict() {
        let (rise, fall) = (range(Some(2.0), Some(3.0)), range(Some(0.80), Some(0.86)));
        for (published, low, high, verdict) in [
            (&rise, 2.1, 2.4, PairVerdict::AsPublished),
            (&rise, 1.5, 2.1, PairVerdict::AsPublished),
            (&rise, 3.1, 3.4, PairVerdict::Stronger),
            (&rise, 1.1, 1.4, PairVerdict::Weaker),
            (&rise, 0.9, 1.1, PairVerdict::NotShown),
            (&rise, 0.5, 0.7, PairVerdict::Opposite),
            (&rise, 0.9, 2.2, PairVerdict::Undecided),
            (&fall, 0.82, 0.9, PairVerdict::AsPublished),
            (&fall, 0.5, 0.7, PairVerdict::Stronger),
            (&fall, 0.9, 0.95, PairVerdict::Weaker),
            (&fall, 0.95, 1.2, PairVerdict::NotShown),
            (&fall, 1.1, 1.2, PairVerdict::Opposite),
            (&fall, 0.7, 1.2, PairVerdict::Undecided),
        ] {
            assert_eq!(of(&ratio(low, high), published), verdict, "{low} to {high}");
        }
    }

    #[test]
    fn open_ranges_and_ranges_around_one_have_verdicts_too() {
        let (more, less) = (range(Some(1.6), None), range(None, Some(1.0)));
        let same = range(Some(0.97), Some(1.03));
        for (published, low, high, verdict) in [
            (&more, 9.0, 10.0, PairVerdict::AsPublished),
            (&more, 1.2, 1.3, PairVerdict::Weaker),
            (&less, 0.2, 0.9, PairVerdict::AsPublished),
            (&less, 0.9, 1.1, PairVerdict::Undecided),
            (&less, 1.2, 1.3, PairVerdict::Opposite),
            (&same, 0.9, 1.1, PairVerdict::AsPublished),
            (&same, 1.2, 1.3, PairVerdict::Stronger),
        ] {
            assert_eq!(of(&ratio(low, high), published), verdict, "{low} to {high}");
        }
    }

    #[test]
    fn without_confidence_there_is_no_verdict() {
        let one = Ratio { confidence: 0.0, ..ratio(2.0, 3.0) };
        assert_eq!(of(&one, &range(Some(2.0), Some(3.0))), PairVerdict::FewRuns);
    }

    #[test]
    fn a_ratio_of_another_protocol_gives_no_verdict() {
        let other = PublishedRatio { orientation: true, ..range(Some(2.0), Some(3.0)) };
        for (low, high) in [(2.1, 2.4), (0.5, 0.7), (0.9, 1.1)] {
            assert_eq!(of(&ratio(low, high), &other), PairVerdict::Orientation);
        }
    }

    #[test]
    fn a_ratio_and_its_inverse_have_the_same_verdict() {
        let mut rng = Rng::new(1);
        let mut between = |low: f64, high: f64| low + rng.unit() * (high - low);
        for _ in 0..10_000 {
            let (low, least) = (between(0.01, 10.0), between(1.05, 5.0));
            let (high, most) = (low * between(1.001, 3.0), least * between(1.01, 2.0));
            let up = of(&ratio(low, high), &range(Some(least), Some(most)));
            let inverse = ratio(1.0 / high, 1.0 / low);
            let down = of(&inverse, &range(Some(1.0 / most), Some(1.0 / least)));
            assert_eq!(up, down, "{low} to {high} against {least} to {most}");
        }
    }
}
