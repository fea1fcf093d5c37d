//! Test support: the record of a load that reached given figures. No time passes in it.

#![expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::{CacheProof, StepResult, StepRun, Summary};
use std::sync::mpsc::channel;
use weir_load::engine::{Record, StepRecord};
use weir_load::stats::result::RunResult;
use weir_load::stats::{OpKind, Recorder, Span};
use weir_load::workload::Workload;

/// The figures of so many reads a second for ten seconds, each taking `ms`.
#[must_use]
pub fn result(iops: f64, ms: f64) -> RunResult {
    let record = record(&Workload::default(), &Figures::new(iops, ms));
    record.results("run").unwrap().0
}

/// A step that reached these figures.
#[must_use]
pub fn step_result(iops: f64, ms: f64) -> StepResult {
    let run = StepRun {
        total: result(iops, ms),
        loads: Vec::new(),
        targets: Vec::new(),
        workers: Vec::new(),
        steady: None,
        stall: None,
        network: None,
        client_processors: None,
    };
    StepResult {
        name: "step".to_owned(),
        group: String::new(),
        axis: None,
        preparation: false,
        published: None,
        written_in_flight: None,
        summary: Summary::of(std::slice::from_ref(&run)),
        runs: vec![run],
        skipped: None,
        notes: Vec::new(),
        out_of_reach: Vec::new(),
        cache: CacheProof::default(),
    }
}

/// The figures of a scripted application.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Reads a second.
    pub iops: f64,
    /// Seconds that are measured.
    pub seconds: u64,
    /// Latency of each.
    pub ms: f64,
    /// Operations that failed.
    pub errors: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// Operations that took further requests.
    pub continued: u64,
    /// A worker was lost.
    pub worker_lost: bool,
    /// Factors of the rate second by second; even if empty.
    pub shape: Vec<f64>,
    /// Share of the time in which the processors of the machine were busy.
    pub machine_busy_percent: f64,
}

impl Figures {
    /// Figures of so many reads a second for ten seconds, each taking `ms`, without a failure.
    #[must_use]
    pub fn new(iops: f64, ms: f64) -> Self {
        Self {
            iops,
            seconds: SECONDS,
            ms,
            errors: 0,
            lost: 0,
            continued: 0,
            worker_lost: false,
            shape: Vec::new(),
            machine_busy_percent: 0.0,
        }
    }
}

/// Seconds that scripted loads are measured, unless the script says otherwise.
const SECONDS: u64 = 10;
/// Every operation noted stands for one of these a second: fewer are quicker to make.
const MOST: f64 = 200_000.0;

/// The record of `load` that reached `figures`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scripted figures are small and not negative"
)]
pub fn record(load: &Workload, figures: &Figures) -> StepRecord {
    let whole = figures.seconds * 1_000_000_000;
    let mut recorder = Recorder::new(1, 0, whole, channel().0);
    assert!(figures.iops <= MOST, "too many to note one by one");
    for second in 0..figures.seconds {
        let factor = figures.shape.get(second as usize).copied().unwrap_or(1.0);
        let count = (figures.iops * factor).round() as u64;
        for number in 0..count {
            let done_ns = second * 1_000_000_000 + number * 1_000_000_000 / count;
            let queued_ns = done_ns.saturating_sub((figures.ms * 1e6) as u64);
            let span = Span { queued_ns, done_ns };
            recorder.complete(OpKind::Read, 0, span, u64::from(load.block_bytes));
        }
    }
    for _ in 0..figures.errors {
        recorder.fail("NFS3ERR_IO");
    }
    for _ in 0..figures.continued {
        recorder.continues();
    }
    let notes = serde_json::to_value(recorder.finish()).unwrap();
    let record: Record = serde_json::from_value(serde_json::json!({
        "target": "nfs://192.0.2.1/vol",
        "addresses": {"192.0.2.1:2049": 1},
        "workload": load,
        "clients": [],
        "started_unix_s": 0.0,
        "measure_ns": 0,
        "planned_ns": whole,
        "ended_ns": whole,
        "notes": notes,
        "connections": {"opened": 1, "lost": figures.lost, "unanswered": 0},
        "generator": {"cpu_s": figures.iops * 1e-5, "cpu_us_per_op": 0.0,
                      "busiest_thread_percent": 10.0, "saturated": false,
                      "machine_busy_percent": figures.machine_busy_percent,
                      "machine_processors": 2},
        "faults": {},
        "broken": false,
        "marks": [],
        "verify": null
    }))
    .unwrap();
    StepRecord { loads: vec![record] }
}
