//! The rules of this campaign, beside the error rule, which is the demo's. Nothing here measures or
//! prints.

use super::server::Sample;
use crate::demo::judge::windows;
use crate::judge::Check;
use crate::rate::Rate;
use weir_load::stats::result::Interval;
use weir_report::percent;

/// Largest error of a volume's part of a shared pool over 10 s, as a part of it.
const FAIRNESS: f64 = 0.05;
/// The error rule: over 10 s, and over 1 s; each plus one request.
const ERROR_10S: f64 = 0.01;
const ERROR_1S: f64 = 0.05;
/// Longest time until a changed part is in force (s).
pub(super) const CHANGE_S: f64 = 1.0;
/// The length of the windows that fairness and credits are judged over, in seconds.
pub(super) const WINDOW_S: f64 = 10.0;
/// Time in which a change is searched (s): longer than allowed, so that a late one is found.
pub(super) const REACH_S: f64 = 5.0;

/// The error rule over `span`, in the words of `who`.
pub(super) fn contract(
    who: &str,
    rate: &Rate,
    span: (f64, f64),
    due: f64,
    request: f64,
) -> Vec<Check> {
    let measured = Interval { from_s: span.0, to_s: span.1 };
    windows(rate, measured, due, request).into_iter().map(|check| check.of(who)).collect()
}

/// Does a volume get its part over every 10 s?
pub(super) fn part(who: &str, rate: &Rate, span: (f64, f64), due: f64) -> Check {
    let rule = format!("{who}: its part over every 10 s within 5 %");
    let all = due * WINDOW_S;
    let worst = rate
        .windows(span, WINDOW_S)
        .map(|(at, found)| (at, found / all - 1.0))
        .max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()));
    match worst {
        None => Check::new(rule, format!("less than {WINDOW_S} s measured"), false),
        Some((at, off)) => Check::new(
            rule,
            format!("{} at {at:.1} s", percent(off * 100.0, 2)),
            off.abs() <= FAIRNESS,
        ),
    }
}

/// Does the rate of a volume change within a second of `at_s`? By the bend of the completions, and
/// by the rate of the second after that.
pub(super) fn soon(
    who: &str,
    rate: &Rate,
    at_s: f64,
    (before, after): (f64, f64),
    request: f64,
) -> [Check; 2] {
    let delay = bend(rate, (at_s - 0.5, at_s + REACH_S), 0.01, (before, after)) - at_s;
    let from = at_s + CHANGE_S;
    let off = rate.bytes_between(from, from + 1.0) - after;
    [
        Check::new(
            format!("{who}: has it within 1 s"),
            format!("{:.0} ms", delay * 1e3),
            delay <= CHANGE_S,
        ),
        Check::new(
            format!("{who}: the second from there within 5 %"),
            percent(off / after * 100.0, 2),
            off.abs() <= after * ERROR_1S + request,
        ),
    ]
}

/// The moment at which completions went over from one rate to the other, looked for from one time
/// to another in steps of `step_s`: the bend of the two straight lines of these slopes that fits
/// best (least squares), over a second more at either end.
pub(super) fn bend(
    rate: &Rate,
    (from_s, to_s): (f64, f64),
    step_s: f64,
    (before, after): (f64, f64),
) -> f64 {
    let steps = |from: f64, to: f64| {
        (0u32..).map(move |step| from + f64::from(step) * step_s).take_while(move |at| *at <= to)
    };
    let seen: Vec<(f64, f64)> =
        steps(from_s - 1.0, to_s + 1.0).map(|at| (at, rate.bytes_before(at))).collect();
    let count = f64::from(u32::try_from(seen.len()).unwrap_or(u32::MAX));
    let misfit = |bend: f64| {
        let off = |(at, found): &(f64, f64)| {
            found - before * (at.min(bend) - from_s) - after * (at - bend).max(0.0)
        };
        let mean = seen.iter().map(off).sum::<f64>() / count;
        seen.iter().map(|one| (off(one) - mean).powi(2)).sum::<f64>()
    };
    steps(from_s, to_s)
        .map(|at| (at, misfit(at)))
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map_or(to_s, |(at, _)| at)
}

/// Did credits change by `due` a second, over every 10 s of the samples within `span`?
pub(super) fn pace(who: &str, samples: &[Sample], span: (f64, f64), due: f64) -> Check {
    let rule = format!("{who}: credits change by {due:+.0} a second over every 10 s within 1 %");
    let inside: Vec<&Sample> =
        samples.iter().filter(|one| (span.0..=span.1).contains(&one.at_s)).collect();
    let worst = inside
        .iter()
        .enumerate()
        .filter_map(|(number, first)| {
            let last =
                inside.get(number..)?.iter().find(|last| last.at_s - first.at_s >= WINDOW_S)?;
            let wanted = due * (last.at_s - first.at_s);
            Some((first.at_s, (last.credits - first.credits) - wanted, wanted))
        })
        .max_by(|one, other| (one.1 / one.2).abs().total_cmp(&(other.1 / other.2).abs()));
    match worst {
        None => Check::new(rule, format!("less than {WINDOW_S} s measured"), false),
        Some((at, off, wanted)) => Check::new(
            rule,
            format!("{} at {at:.1} s", percent(off / wanted * 100.0, 2)),
            // One request more.
            off.abs() <= wanted.abs() * ERROR_10S + 1.0,
        ),
    }
}

/// Were as many operations done up to `until_s` as there were `credits` at the beginning, and as
/// the base rate gives?
pub(super) fn conserved(who: &str, rate: &Rate, until_s: f64, credits: f64, base: f64) -> Check {
    let due = credits + base * until_s;
    let found = rate.bytes_between(0.0, until_s);
    Check::new(
        format!(
            "{who}: operations of {until_s:.0} s are the credits and what the base gives, within 1 %"
        ),
        format!("{found:.0} of {due:.0}: {}", percent((found / due - 1.0) * 100.0, 2)),
        (found - due).abs() <= due * ERROR_10S + 1.0,
    )
}

/// Is a figure within its bounds?
pub(super) fn between(rule: String, found: f64, (least, most): (f64, f64)) -> Check {
    let worst = if least == most {
        format!("{found:.0}, due {least:.0}")
    } else {
        format!("{found:.0}, due {least:.0} to {most:.0}")
    };
    Check::new(rule, worst, (least..=most).contains(&found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::stats::result::Point;

    /// A series that completes `rate(second)` a second.
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "test figures are small"
    )]
    fn rate(seconds: u32, rate: impl Fn(f64) -> f64) -> Rate {
        let points: Vec<Point> = (0..seconds * 100)
            .map(|step| {
                let at_s = f64::from(step) * 0.01;
                Point { at_s, operations: 0, bytes: (rate(at_s) * 0.01).round() as u64 }
            })
            .collect();
        Rate::by(&points, 0.01)
    }

    #[test]
    fn a_part_may_be_five_percent_off_for_ten_seconds() {
        let judged = |value: f64| part("a", &rate(12, |_| value), (0.0, 12.0), 10_000.0).passed;
        assert!(judged(10_000.0) && judged(10_400.0) && judged(9_600.0));
        assert!(!judged(10_600.0) && !judged(9_400.0));
        assert!(!part("a", &rate(12, |_| 10_000.0), (0.0, 9.0), 10_000.0).passed, "too short");
        let dip = |at: f64| if at < 1.0 { 4_000.0 } else { 10_000.0 };
        assert!(!part("a", &rate(12, dip), (0.0, 12.0), 10_000.0).passed, "every window counts");
    }

    #[test]
    fn a_part_that_changes_hands_late_is_found() {
        for (delay, passed) in [(0.0, true), (0.4, true), (0.9, true), (1.5, false), (4.0, false)] {
            for (before, after) in [(0.0, 10_000.0), (10_000.0, 16_000.0), (16_000.0, 8_000.0)] {
                let went = rate(20, |at| if at < 8.0 + delay { before } else { after });
                let found = soon("a", &went, 8.0, (before, after), 1.0);
                let delays = found[0].worst.trim_end_matches(" ms").parse::<f64>().unwrap();
                assert!((delays - delay * 1e3).abs() <= 20.0, "{delay}: {delays}");
                assert_eq!(found.map(|check| check.passed), [passed, passed], "{delay}");
            }
        }
    }

    #[test]
    fn a_part_that_is_too_small_after_a_change_is_found() {
        let went = rate(20, |at| if at < 8.0 { 10_000.0 } else { 15_000.0 });
        assert!(!soon("a", &went, 8.0, (10_000.0, 16_000.0), 1.0)[1].passed);
    }

    fn samples(pace: impl Fn(f64) -> f64) -> Vec<Sample> {
        let mut credits = 1e6;
        let mut all = Vec::new();
        for second in 0..30u32 {
            let at_s = f64::from(second);
            all.push(Sample { at_s, credits });
            credits += pace(at_s);
        }
        all
    }

    #[test]
    fn credits_that_change_too_fast_or_too_slowly_are_found() {
        let judged = |pace: f64| super::pace("v", &samples(|_| pace), (0.0, 30.0), -7000.0).passed;
        assert!(judged(-7000.0) && judged(-7060.0) && judged(-6940.0));
        assert!(!judged(-7080.0) && !judged(-6920.0) && !judged(0.0) && !judged(7000.0));
        let halt = |at: f64| if at == 17.0 { 0.0 } else { -7000.0 };
        assert!(!pace("v", &samples(halt), (0.0, 30.0), -7000.0).passed);
        assert!(pace("v", &samples(halt), (18.0, 30.0), -7000.0).passed);
        assert!(!pace("v", &samples(|_| -7000.0), (0.0, 9.0), -7000.0).passed, "too short");
    }

    #[test]
    fn what_is_done_comes_from_credits_and_the_base() {
        // 60 s of 7,000 credits a second beyond 3,000.
        let done = |end: f64| rate(90, move |at| if at < end { 10_000.0 } else { 3_000.0 });
        let judged = |end: f64| conserved("v", &done(end), 85.0, 420_000.0, 3_000.0).passed;
        assert!(judged(60.0) && judged(60.9) && judged(59.1));
        assert!(!judged(61.1) && !judged(58.9));
        let found = bend(&done(60.9), (54.0, 66.0), 0.1, (10_000.0, 3_000.0));
        assert!((found - 60.9).abs() < 0.06, "{found}");
    }

    #[test]
    fn bounds_are_kept() {
        let inside = |found| between("r".to_owned(), found, (5.0, 7.0)).passed;
        assert!(inside(5.0) && inside(7.0) && !inside(4.0) && !inside(8.0));
        assert!(!between("r".to_owned(), f64::NAN, (5.0, 7.0)).passed);
    }
}
