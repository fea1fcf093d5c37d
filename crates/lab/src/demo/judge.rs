//! The rules of the demonstration, applied to the measurements of closed-loop clients.
//!
//! Every rule yields a [`Check`], passed or not, with the worst value met. Nothing here measures
//! or prints.

use crate::judge::Check;
use crate::rate::{Rate, STEP_S};
use serde::Serialize;
use weir_load::stats::result::{Interval, RunResult};
use weir_report::percent;

/// Largest error over any 10 s, and over any 1 s, as a part of the due; one request more is
/// allowed.
const WINDOWS: [(f64, f64, &str); 2] =
    [(10.0, 0.01, "every 10 s within 1 %"), (1.0, 0.05, "every 1 s within 5 %")];
/// Largest distance of p5 and p95 of the latency from its mean, as a part of it.
const SPREAD: f64 = 0.15;
/// Largest distance of the share of a job, or of a client, from an equal share, as a part of it.
const SHARE: f64 = 0.10;
/// Longest time until a changed contract is in force, in seconds.
const CHANGE_S: f64 = 0.1;

/// A change of contract under load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    /// Time of the request for it, in seconds since the load began.
    pub(super) at_s: f64,
    /// Time until the API answered, in seconds.
    pub(super) answered_after_s: f64,
    /// The contract before, in MiB/s.
    pub(super) from_mibps: f64,
    /// The contract after, in MiB/s.
    pub(super) to_mibps: f64,
}

/// The worst error over all windows of each length, and whether any exceeds its bound.
pub(crate) fn windows(
    rate: &Rate,
    measured: Interval,
    contract: f64,
    request_bytes: f64,
) -> Vec<Check> {
    let span = (measured.from_s, measured.to_s);
    WINDOWS
        .iter()
        .map(|&(length_s, allowed, rule)| {
            let due = contract * length_s;
            let worst = rate
                .windows(span, length_s)
                .map(|(at, bytes)| (at, bytes - due))
                .max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()));
            match worst {
                None => Check::new(rule, format!("less than {length_s} s measured"), false),
                Some((at, off)) => Check::new(
                    rule,
                    format!("{} at {at:.1} s", percent(off / due * 100.0, 2)),
                    off.abs() <= due * allowed + request_bytes,
                )
                .within(at, at + length_s),
            }
        })
        .collect()
}

/// The least and the greatest error over the 10 s windows, in percent.
pub(super) fn error_span(rate: &Rate, measured: Interval, contract: f64) -> (f64, f64) {
    let (length_s, ..) = WINDOWS[0];
    let due = contract * length_s;
    let errors = || {
        rate.windows((measured.from_s, measured.to_s), length_s)
            .map(move |(_, bytes)| (bytes / due - 1.0) * 100.0)
    };
    (errors().fold(f64::INFINITY, f64::min), errors().fold(f64::NEG_INFINITY, f64::max))
}

/// The rules that need no contract: latency spread, equal shares, no errors, data as written.
pub(super) fn behaviour(result: &RunResult) -> Vec<Check> {
    let latency = result.total.latency_ms;
    let (low, high) = (latency.p5 / latency.mean - 1.0, latency.p95 / latency.mean - 1.0);
    let jobs: Vec<f64> = result.jobs.iter().map(|job| job.share).collect();
    let equal_share = 1.0 / f64::from(result.workload.jobs.max(1));
    let mut checks = vec![
        Check::new(
            "p5 to p95 within 15 % of the mean",
            format!("{} to {}", percent(low * 100.0, 1), percent(high * 100.0, 1)),
            latency.mean > 0.0 && low >= -SPREAD && high <= SPREAD,
        ),
        equal("every job within 10 % of equal", &jobs, equal_share),
        Check::new(
            "no client error",
            format!("{} errors", client_errors(result)),
            client_errors(result) == 0 && !result.interrupted,
        ),
    ];
    if let Some(verify) = &result.verify {
        checks.push(Check::new(
            "a sample reads back as written",
            format!("{} of {} blocks differ", verify.mismatches, verify.checked),
            verify.mismatches == 0 && verify.checked > 0,
        ));
    }
    checks
}

/// The rule for the clients of all loads on one volume: equal shares of the bytes, whatever the
/// protocol and the size of the requests. The contract must limit bytes alone.
pub(super) fn clients(results: &[RunResult]) -> Check {
    let bytes: Vec<f64> = results.iter().flat_map(bytes_of_clients).collect();
    let due = bytes.iter().sum::<f64>() / f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    equal("every client within 10 % of equal", &bytes, due)
}

/// The bytes of each client, in the order of the clients.
#[expect(clippy::cast_precision_loss, reason = "bytes of a minute")]
fn bytes_of_clients(result: &RunResult) -> Vec<f64> {
    let clients = result.workload.clients.max(1);
    let of = |client| {
        let own = result.jobs.iter().filter(|job| job.job % clients == client);
        own.map(|job| job.bytes as f64).sum()
    };
    (0..clients).map(of).collect()
}

/// The rule that no part is further than [`SHARE`] from `due`, an equal part of all.
fn equal(rule: &str, parts: &[f64], due: f64) -> Check {
    let off = || parts.iter().map(|part| part / due - 1.0);
    let (least, most) =
        (off().fold(f64::INFINITY, f64::min), off().fold(f64::NEG_INFINITY, f64::max));
    Check::new(
        rule,
        format!("{} to {}", percent(least * 100.0, 1), percent(most * 100.0, 1)),
        !parts.is_empty() && due > 0.0 && least >= -SHARE && most <= SHARE,
    )
}

/// The least and the greatest part of all operations that a job got.
pub(super) fn shares(result: &RunResult) -> (f64, f64) {
    let all = || result.jobs.iter().map(|job| job.share);
    (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max))
}

/// Failed operations, lost connections and requests that were never answered.
pub(crate) fn client_errors(result: &RunResult) -> u64 {
    result.error_count() + result.connections.lost + result.connections.unanswered
}

/// Was the new rate in force within 100 ms of asking for it? Two views of it: when completions
/// bent, and whether the second after those 100 ms is at the new rate.
pub(super) fn change(rate: &Rate, change: &Change, request_bytes: f64) -> [Check; 2] {
    const MIB: f64 = 1_048_576.0;
    let (before, after) = (change.from_mibps * MIB, change.to_mibps * MIB);
    let words = format!("{} → {} MiB/s", change.from_mibps, change.to_mibps);
    let delay = change_delay(rate, change.at_s, before, after);
    let from = change.at_s + CHANGE_S;
    let off = rate.bytes_between(from, from + 1.0) - after;
    [
        Check::new(
            format!("{words} in force within 100 ms"),
            format!("{:.0} ms after asking", delay * 1000.0),
            delay <= CHANGE_S,
        )
        .within(change.at_s, from),
        Check::new(
            format!("{words}: the second from there within 5 %"),
            percent(off / after * 100.0, 2),
            off.abs() <= after * 0.05 + request_bytes,
        )
        .within(from, from + 1.0),
    ]
}

/// Seconds from `at_s` to the moment when completions went over from one rate to the other: the
/// bend of the two straight lines of these slopes that fits best (least squares).
pub(super) fn change_delay(rate: &Rate, at_s: f64, before: f64, after: f64) -> f64 {
    const REACH_S: f64 = 1.0;
    let times: Vec<f64> = (-100i32..=150).map(|step| at_s + f64::from(step) * STEP_S).collect();
    let seen: Vec<f64> = times.iter().map(|&time| rate.bytes_before(time)).collect();
    let misfit = |delay: f64| {
        let bend = at_s + delay;
        let off: Vec<f64> = times
            .iter()
            .zip(&seen)
            .map(|(&time, &bytes)| {
                bytes - before * (time.min(bend) - at_s) - after * (time - bend).max(0.0)
            })
            .collect();
        let count = f64::from(u32::try_from(off.len()).unwrap_or(1));
        let mean = off.iter().sum::<f64>() / count;
        off.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    (-500i32..=1000)
        .map(|millis| f64::from(millis) / 1000.0)
        .filter(|delay| delay.abs() <= REACH_S)
        .min_by(|&one, &other| misfit(one).total_cmp(&misfit(other)))
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::tests::series;
    use weir_load::stats::result::{JobResult, Latency, OpResult, VerifyResult};
    use weir_load::workload::Workload;

    const MIB: f64 = 1_048_576.0;
    const MEASURED: Interval = Interval { from_s: 5.0, to_s: 35.0 };

    fn judged(rate: impl Fn(f64) -> f64) -> Vec<bool> {
        let rate = Rate::new(&series(40, rate));
        windows(&rate, MEASURED, 16.0 * MIB, 8192.0).iter().map(|check| check.passed).collect()
    }

    #[test]
    fn a_steady_rate_passes_and_a_bias_of_over_one_percent_fails_only_the_long_window() {
        assert_eq!(judged(|_| 16.0 * MIB), [true, true]);
        assert_eq!(judged(|_| 16.1 * MIB), [true, true]);
        assert_eq!(judged(|_| 16.2 * MIB), [false, true]);
        assert_eq!(judged(|_| 15.8 * MIB), [false, true]);
    }

    #[test]
    fn the_error_span_holds_every_long_window() {
        let rate = Rate::new(&series(40, |now| if now < 20.0 { 9900.0 } else { 10_200.0 }));
        let (low, high) = error_span(&rate, MEASURED, 10_000.0);
        assert!((low + 1.0).abs() < 1e-6 && (high - 2.0).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn a_short_dent_fails_only_the_short_window_wherever_it_lies() {
        for at in [5.0, 17.35, 33.9] {
            let dent = |now: f64| if (at..at + 0.08).contains(&now) { 0.0 } else { 16.0 * MIB };
            assert_eq!(judged(dent), [true, false], "at {at}");
        }
        let before = |now: f64| if now < 4.9 { 0.0 } else { 16.0 * MIB };
        assert_eq!(judged(before), [true, true], "the warm-up is not judged");
    }

    #[test]
    fn one_request_more_is_allowed_where_requests_are_few() {
        let slow =
            Rate::new(&series(
                40,
                |now| if (20.0..21.0).contains(&now) { 11_600.0 } else { 10_000.0 },
            ));
        let verdicts = |request: f64| {
            let checks = windows(&slow, MEASURED, 10_000.0, request);
            checks.iter().map(|check| check.passed).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(0.0), [false, false]);
        assert_eq!(verdicts(1100.0), [true, true]);
    }

    #[test]
    fn too_short_a_run_proves_nothing() {
        let rate = Rate::new(&series(9, |_| MIB));
        let short = Interval { from_s: 0.0, to_s: 9.0 };
        let checks = windows(&rate, short, MIB, 0.0);
        assert_eq!(checks.iter().map(|check| check.passed).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn finds_the_moment_of_a_change_up_and_down() {
        for (before, after) in [(16.0, 32.0), (32.0, 16.0)] {
            for delay in [0.0, 0.03, 0.25] {
                let bent =
                    move |now: f64| if now < 10.0 + delay { before * MIB } else { after * MIB };
                let rate = Rate::new(&series(20, bent));
                let found = change_delay(&rate, 10.0, before * MIB, after * MIB);
                assert!((found - delay).abs() < 0.006, "{before} → {after}, {delay}: {found}");
                let asked = Change {
                    at_s: 10.0,
                    answered_after_s: 0.01,
                    from_mibps: before,
                    to_mibps: after,
                };
                let passed = change(&rate, &asked, 8192.0).map(|check| check.passed);
                assert_eq!(passed, [delay <= 0.1, delay <= 0.1], "{before} → {after}, {delay}");
            }
        }
    }

    fn result() -> RunResult {
        let workload = Workload { jobs: 4, ..Workload::default() };
        let job = |job| JobResult {
            job,
            client: String::new(),
            operations: 10,
            bytes: 80,
            share: 0.25,
            kept_depth: None,
        };
        let latency =
            Latency { mean: 100.0, p5: 90.0, p50: 100.0, p95: 110.0, ..Latency::default() };
        RunResult {
            version: 1,
            name: String::new(),
            target: String::new(),
            workload,
            started_unix_s: 0.0,
            measured: MEASURED,
            total: OpResult { latency_ms: latency, ..OpResult::default() },
            by_operation: Default::default(),
            jobs: (0..4).map(job).collect(),
            errors: Default::default(),
            connections: Default::default(),
            addresses: Default::default(),
            series_1s: Vec::new(),
            series_100ms: Vec::new(),
            series_10ms: Vec::new(),
            marks: Vec::new(),
            generator: Default::default(),
            server: None,
            verify: Some(VerifyResult { checked: 9, ..VerifyResult::default() }),
            interrupted: false,
        }
    }

    fn failed(change: impl FnOnce(&mut RunResult)) -> Vec<String> {
        let mut altered = result();
        change(&mut altered);
        let checks = behaviour(&altered);
        checks.into_iter().filter(|check| !check.passed).map(|check| check.rule).collect()
    }

    #[test]
    fn each_rule_of_behaviour_fails_alone() {
        assert!(failed(|_| {}).is_empty());
        let spread = "p5 to p95 within 15 % of the mean";
        assert_eq!(failed(|r| r.total.latency_ms.p5 = 84.0), [spread]);
        assert_eq!(failed(|r| r.total.latency_ms.p95 = 116.0), [spread]);
        assert_eq!(failed(|r| r.jobs[2].share = 0.22), ["every job within 10 % of equal"]);
        assert_eq!(failed(|r| r.jobs[2].share = 0.28), ["every job within 10 % of equal"]);
        assert_eq!(failed(|r| r.connections.unanswered = 1), ["no client error"]);
        assert_eq!(failed(|r| r.errors = [("IO".to_owned(), 1)].into()), ["no client error"]);
        assert_eq!(failed(|r| r.interrupted = true), ["no client error"]);
        let unread = "a sample reads back as written";
        assert_eq!(failed(|r| r.verify = Some(VerifyResult::default())), [unread]);
        let differs = VerifyResult { checked: 9, mismatches: 1, ..VerifyResult::default() };
        assert_eq!(failed(|r| r.verify = Some(differs)), [unread]);
    }

    /// Two loads, each with two clients of two jobs: jobs 0 and 2 are one client. The jobs of the
    /// second load move `bytes` each.
    fn of_clients(bytes: [u64; 4]) -> Check {
        let workload = Workload { jobs: 4, clients: 2, ..Workload::default() };
        let first = RunResult { workload, ..result() };
        let mut second = first.clone();
        for (job, bytes) in second.jobs.iter_mut().zip(bytes) {
            job.bytes = bytes;
        }
        clients(&[first, second])
    }

    #[test]
    fn the_bytes_of_clients_are_compared_over_all_loads() {
        assert!(of_clients([80; 4]).passed);
        assert!(of_clients([0, 80, 160, 80]).passed, "jobs of one client count together");
        assert!(of_clients([90, 80, 80, 90]).passed);
        let check = of_clients([128, 80, 80, 80]);
        assert!(!check.passed && check.worst == "-7.0 % to +20.9 %", "{check:?}");
        assert!(!of_clients([40, 80, 40, 80]).passed);
        assert!(!of_clients([0; 4]).passed);
        assert!(!clients(&[]).passed);
    }
}
