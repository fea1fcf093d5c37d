//! The outcome of the demo, in the shape of `result.json`.

use super::cases::{Case, Load};
use super::cause;
use super::judge::{self, Change};
use super::processors::Second;
use crate::judge::Check;
use crate::rate::{Rate, sum};
use serde::Serialize;
use weir_load::stats::result::{Interval, Point, RunResult};

/// The whole demo.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DemoOutcome {
    /// Version of this shape.
    pub(super) version: u32,
    /// Weir's version.
    pub(super) weir: String,
    /// Start of the load, in seconds since 1970-01-01 UTC.
    pub(super) started_unix_s: f64,
    /// Was every rule kept in every case?
    pub(super) passed: bool,
    /// The rules that were not kept, each with its case and the worst value.
    pub(super) misses: Vec<String>,
    /// The units of the figures.
    pub(super) units: Units,
    /// The cases.
    pub(super) cases: Vec<CaseOutcome>,
    /// The machine's processor load, pressure and stalls in the measured seconds of each load.
    pub(super) processors: Vec<Vec<Second>>,
}

/// The units of the figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Units {
    mibps: &'static str,
    latency: &'static str,
    job_share: &'static str,
    throughput_series: &'static str,
}

/// One case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CaseOutcome {
    pub(super) name: String,
    pub(super) contract_mibps: f64,
    pub(super) measured_mibps: f64,
    pub(super) error_percent: f64,
    pub(super) iops: f64,
    pub(super) client_errors: u64,
    pub(super) throughput_series: Vec<f64>,
    /// Beginning and end of the measured part, in seconds since the load began.
    pub(super) measured: Interval,
    /// Least and greatest error over the 10 s windows.
    pub(super) error_percent_10s: (f64, f64),
    /// The loads on the volume.
    pub(super) loads: Vec<LoadOutcome>,
    /// Changes of the contract under load.
    pub(super) changes: Vec<Change>,
    /// The rules, and what was met.
    pub(super) checks: Vec<Check>,
    /// The published throughput in MiB/s and its error in percent, where there is such a row.
    pub(super) published: Option<PublishedFigures>,
    /// The whole course for the charts, not part of the result.
    #[serde(skip)]
    pub(super) course: ThroughputSeries,
}

/// One load of a case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LoadOutcome {
    /// Protocol and size of the requests.
    pub(super) name: String,
    /// An equal share of the contract for each of its clients, in MiB/s.
    pub(super) due_mibps: f64,
    pub(super) measured_mibps: f64,
    pub(super) iops: f64,
    pub(super) latency_ms: LatencyMs,
    pub(super) job_share: Share,
    /// Clients' source addresses.
    pub(super) addresses: u32,
    pub(super) connections: u32,
    pub(super) jobs: u32,
    /// Requests that each job keeps in flight.
    pub(super) depth: u32,
    /// Blocks read back after the run, and how many of them differed.
    pub(super) verified: Option<(u64, u64)>,
    /// The name in charts, not part of the result.
    #[serde(skip)]
    pub(super) label: String,
    /// Throughput second by second for the charts, not part of the result.
    #[serde(skip)]
    pub(super) seconds: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LatencyMs {
    pub(super) mean: f64,
    pub(super) p5: f64,
    pub(super) p50: f64,
    pub(super) p95: f64,
    pub(super) p99: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Share {
    pub(super) min: f64,
    pub(super) max: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PublishedFigures {
    pub(super) mibps: f64,
    pub(super) iops: u32,
    pub(super) error_percent: f64,
    pub(super) mean_ms: f64,
    pub(super) p5_ms: f64,
    pub(super) p95_ms: f64,
}

/// Throughput from the beginning of the load, warm-up included.
#[derive(Clone, Debug, Default)]
pub(super) struct ThroughputSeries {
    /// Time in seconds and MiB/s, second by second.
    pub(super) seconds: Vec<(f64, f64)>,
    /// Time in seconds and MiB/s, in steps of 100 ms.
    pub(super) tenths: Vec<(f64, f64)>,
}

impl LoadOutcome {
    fn new(case: &Case, load: &Load, result: &RunResult) -> Self {
        let latency = result.total.latency_ms;
        let (min, max) = judge::shares(result);
        let workload = &result.workload;
        Self {
            name: load.name(),
            due_mibps: case.due_mibps(load),
            measured_mibps: result.total.mibps,
            iops: result.total.iops,
            latency_ms: LatencyMs {
                mean: latency.mean,
                p5: latency.p5,
                p50: latency.p50,
                p95: latency.p95,
                p99: latency.p99,
            },
            job_share: Share { min, max },
            addresses: workload.clients,
            connections: workload.clients * workload.connections,
            jobs: workload.jobs,
            depth: workload.depth,
            verified: result.verify.as_ref().map(|verify| (verify.checked, verify.mismatches)),
            label: case.label(load),
            seconds: points(&result.series_1s, 1.0, result.measured.to_s),
        }
    }
}

impl CaseOutcome {
    /// Judges one case by the results of its loads, which began together.
    pub(super) fn new(case: &Case, results: &[RunResult], changes: Vec<Change>) -> Self {
        const MIB: f64 = 1_048_576.0;
        let all = |of: fn(&RunResult) -> &Vec<Point>| sum(results.iter().map(|one| &**of(one)));
        let rate = Rate::new(&all(|result| &result.series_10ms));
        let request = case.loads.iter().map(|load| load.block_bytes).max();
        let request = f64::from(request.unwrap_or_default());
        let measured = results.first().map_or_else(Interval::default, |first| first.measured);
        let mut checks = judge::windows(&rate, measured, case.contract_mibps * MIB, request);
        let of = |(load, result)| LoadOutcome::new(case, load, result);
        let loads: Vec<LoadOutcome> = case.loads.iter().zip(results).map(of).collect();
        if let [_, _, ..] = results {
            checks.push(judge::clients(results));
        }
        for (load, result) in loads.iter().zip(results) {
            let own = judge::behaviour(result).into_iter();
            checks.extend(
                own.map(|check| if loads.len() > 1 { check.of(&load.name) } else { check }),
            );
        }
        checks.extend(changes.iter().flat_map(|change| judge::change(&rate, change, request)));
        let measured_mibps = loads.iter().map(|load| load.measured_mibps).sum();
        Self {
            name: case.name.to_owned(),
            contract_mibps: case.contract_mibps,
            measured_mibps,
            error_percent: (measured_mibps / case.contract_mibps - 1.0) * 100.0,
            iops: loads.iter().map(|load| load.iops).sum(),
            client_errors: results.iter().map(judge::client_errors).sum(),
            throughput_series: rate.seconds((measured.from_s, measured.to_s)),
            measured,
            error_percent_10s: judge::error_span(&rate, measured, case.contract_mibps * MIB),
            loads,
            changes,
            checks,
            published: case.published.map(|row| PublishedFigures {
                mibps: row.mibps,
                iops: row.iops,
                error_percent: row.error_percent,
                mean_ms: row.mean_ms,
                p5_ms: row.spread_ms.0,
                p95_ms: row.spread_ms.1,
            }),
            course: ThroughputSeries {
                seconds: points(&all(|result| &result.series_1s), 1.0, measured.to_s),
                tenths: points(&all(|result| &result.series_100ms), 0.1, measured.to_s),
            },
        }
    }

    /// Adds the machine's state in the interval to each rule that was not kept. `seconds` are those
    /// of the load in which the case was measured.
    pub(super) fn explain(&mut self, seconds: &[Second]) {
        for check in self.checks.iter_mut().filter(|check| !check.passed) {
            check.meanwhile = check.within.map(|within| cause::meanwhile(seconds, within));
        }
    }

    /// The check of the rule whose words begin with `rule`.
    pub(super) fn check(&self, rule: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.rule.starts_with(rule))
    }

    /// The check of the rule about a load whose words begin with `rule`.
    pub(super) fn check_of(&self, load: &LoadOutcome, rule: &str) -> Option<&Check> {
        match self.loads.as_slice() {
            [_] => self.check(rule),
            _ => self.check(&format!("{}: {rule}", load.name)),
        }
    }
}

impl DemoOutcome {
    /// Gathers the cases.
    pub(super) fn new(
        started_unix_s: f64,
        cases: Vec<CaseOutcome>,
        processors: Vec<Vec<Second>>,
    ) -> Self {
        let misses: Vec<String> = cases
            .iter()
            .flat_map(|case| {
                let failed = case.checks.iter().filter(|check| !check.passed);
                failed.map(|check| {
                    let miss = format!("{}: {}: {}", case.name, check.rule, check.worst);
                    match &check.meanwhile {
                        Some(meanwhile) => format!("{miss}. Meanwhile {meanwhile}"),
                        None => miss,
                    }
                })
            })
            .collect();
        Self {
            version: 2,
            weir: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s,
            passed: misses.is_empty() && !cases.is_empty(),
            misses,
            units: Units {
                mibps: "1,048,576 bytes per second, read and write together",
                latency: "milliseconds from sending a request to the end of its reply",
                job_share: "part of all operations of the load, 0 to 1",
                throughput_series: "MiB/s in each second of the measured part",
            },
            cases,
            processors,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates need no more than 52 bits")]
fn points(series: &[Point], step_s: f64, until_s: f64) -> Vec<(f64, f64)> {
    series
        .iter()
        .filter(|point| point.at_s + step_s <= until_s + 1e-6)
        .map(|point| (point.at_s + step_s / 2.0, point.bytes as f64 / 1_048_576.0 / step_s))
        .collect()
}
