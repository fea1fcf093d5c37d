//! The answers of fio, as records: counts, distributions, processor time, completions over time.

use super::jobs::section;
use super::process::Ran;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use weir_load::engine::Foreign;
use weir_load::error::BenchError;
use weir_load::stats::OpKind;
use weir_load::workload::Workload;

#[derive(Deserialize)]
struct FioReport {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i32,
    #[serde(default)]
    job_runtime: u64,
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    #[serde(default)]
    io_bytes: u64,
    /// Milliseconds, the lead-in not counted.
    #[serde(default)]
    runtime: u64,
    #[serde(default)]
    lat_ns: Latency,
    #[serde(default)]
    clat_ns: Latency,
}

#[derive(Default, Deserialize)]
struct Latency {
    /// Nanoseconds, and how many took so long.
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

impl Direction {
    /// Total latencies, or those of completion where fio keeps no others.
    fn latencies(&self) -> impl Iterator<Item = (u64, u64)> {
        let bins = if self.lat_ns.bins.is_empty() { &self.clat_ns.bins } else { &self.lat_ns.bins };
        bins.iter().filter_map(|(ns, count)| Some((ns.parse().ok()?, *count)))
    }
}

/// The records of `loads`; logs are in `scratch`.
pub(super) fn records(
    target: &str,
    loads: &[Workload],
    ran: &Ran,
    scratch: &Path,
) -> Result<Vec<Foreign>, BenchError> {
    let start = ran.json.find('{').unwrap_or(0);
    let answer: FioReport =
        serde_json::from_str(ran.json.get(start..).unwrap_or("")).map_err(|error| {
            BenchError::Workload(format!("cannot parse the output of fio: {error}"))
        })?;
    let jobs: BTreeMap<&str, &Job> =
        answer.jobs.iter().map(|job| (job.jobname.as_str(), job)).collect();
    let mut records = Vec::with_capacity(loads.len());
    let mut number = 0;
    for (index, load) in loads.iter().enumerate() {
        let mut record = Foreign::new(target.to_owned(), load.clone());
        record.started_unix_s = ran.started_unix_s;
        record.stopped = ran.stopped;
        let lead = Duration::from_secs_f64(load.start_delay_s) + load.warmup();
        record.measure_ns = nanos(lead);
        record.ended_ns = record.measure_ns;
        for turn in 0..load.jobs {
            number += 1;
            let Some(job) = jobs.get(section(index, turn).as_str()) else {
                *record.faults.entry("the output of fio lacks a job".to_owned()).or_default() += 1;
                continue;
            };
            take(&mut record, usize::try_from(turn).unwrap_or(usize::MAX), job);
            series(&mut record, scratch, number);
        }
        records.push(record);
    }
    if let (Some(complaint), Some(first)) = (&ran.complaint, records.first_mut())
        && first.faults.is_empty()
    {
        first.faults.insert(format!("fio: {complaint}"), 1);
    }
    Ok(records)
}

#[expect(clippy::cast_precision_loss, reason = "times of a run are far below 2^52 ms")]
fn take(record: &mut Foreign, turn: usize, job: &Job) {
    let kinds = [(OpKind::Read, &job.read), (OpKind::Write, &job.write)];
    for (kind, direction) in kinds {
        record.add(kind, turn, direction.io_bytes, direction.latencies());
        let ended_ns = record.measure_ns + direction.runtime.saturating_mul(1_000_000);
        record.ended_ns = record.ended_ns.max(ended_ns);
    }
    let busy = job.usr_cpu + job.sys_cpu;
    record.cpu_s += busy / 100.0 * job.job_runtime as f64 / 1e3;
    record.busiest_percent = record.busiest_percent.max(busy.min(100.0));
    if job.error != 0 {
        let why = std::io::Error::from_raw_os_error(job.error);
        *record.faults.entry(format!("fio: {why}")).or_default() += 1;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds what job `number`, from 1, noted of each second. A series that is missing is no failure:
/// a short run has none.
fn series(record: &mut Foreign, scratch: &Path, number: u32) {
    let read = |kind: &str| {
        let path = scratch.join(format!("log_{kind}.{number}.log"));
        std::fs::read_to_string(path).map(|text| entries(&text)).unwrap_or_default()
    };
    let (bytes, operations) = (read("bw"), read("iops"));
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    for ([at_ms, kib, direction], [_, iops, _]) in bytes.into_iter().zip(operations) {
        let from_ms = before.insert(direction, at_ms).unwrap_or(0);
        let ms = at_ms.saturating_sub(from_ms);
        let ns = |ms: u64| record.measure_ns.saturating_add(ms.saturating_mul(1_000_000));
        let of = |rate: u64| rate.saturating_mul(ms) / 1000;
        let (from_ns, to_ns) = (ns(from_ms), ns(at_ms));
        record.add_span(from_ns, to_ns, of(iops), of(kib.saturating_mul(1024)));
    }
}

/// Time in milliseconds, value and direction of each line of a log.
fn entries(text: &str) -> Vec<[u64; 3]> {
    let one = |line: &str| {
        let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().ok());
        Some([fields.next()??, fields.next()??, fields.next()??])
    };
    text.lines().filter_map(one).collect()
}
