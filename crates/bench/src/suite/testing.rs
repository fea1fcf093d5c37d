//! Test support of the suite: steps, figures, an executor that follows a script and a place that
//! notes what is made and removed. No time passes in them.

use super::executor::{Applied, Context, Executor};
use super::place::{Claim, Place};
use crate::results::{StepResult, StepRun, Summary, WorkerResult};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::channel;
use weir_load::engine::{Limits, Phase, Record, StepRecord, Window};
use weir_load::error::BenchError;
use weir_load::stats::result::RunResult;
use weir_load::stats::{OpKind, Recorder, Span};
use weir_load::workload::{Location, Workload};
use weir_scenario::scenario::{Chart, Language, Scenario, Step};

/// A step of one small load.
pub(super) fn step(name: &str) -> Step {
    let load = Workload { file_bytes: 1 << 20, ..Workload::default() };
    Step { name: name.to_owned(), loads: vec![load], ..Step::default() }
}

/// A scenario of such steps.
pub(crate) fn scenario(steps: &[&str]) -> Scenario {
    Scenario {
        name: "test".to_owned(),
        title: "A test".to_owned(),
        about: String::new(),
        source: None,
        language: Language::Native,
        chart: Chart::Bars,
        steps: steps.iter().map(|name| step(name)).collect(),
        changes: Vec::new(),
        waiting: None,
        addresses: None,
        target: None,
        text: None,
        hosts: Vec::new(),
    }
}

/// The figures of so many reads a second for ten seconds, each taking `ms`.
pub(crate) fn result(iops: f64, ms: f64) -> RunResult {
    let record = record(&Workload::default(), &Figures::new(iops, ms));
    record.results("run").unwrap().0
}

/// A step that reached these figures.
pub(crate) fn step_result(iops: f64, ms: f64) -> StepResult {
    let run = StepRun {
        total: result(iops, ms),
        loads: Vec::new(),
        targets: Vec::new(),
        workers: Vec::new(),
        steady: None,
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
        cache: crate::results::CacheProof::default(),
    }
}

/// The figures of a scripted application.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// Reads a second, over ten seconds.
    pub(super) iops: f64,
    /// Latency of each.
    pub(super) ms: f64,
    /// Operations that failed.
    pub(super) errors: u64,
    pub(super) lost: u64,
    /// Operations that took further requests.
    pub(super) continued: u64,
    /// A worker was lost.
    pub(super) worker_lost: bool,
    /// Factors of the rate second by second; even if empty.
    pub(super) shape: Vec<f64>,
}

impl Figures {
    pub(super) fn new(iops: f64, ms: f64) -> Self {
        Self { iops, ms, errors: 0, lost: 0, continued: 0, worker_lost: false, shape: Vec::new() }
    }
}

/// Seconds that scripted loads are measured.
const SECONDS: u64 = 10;
/// Every operation noted stands for one of these a second: fewer are quicker to make.
const MOST: f64 = 200_000.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "scripted figures are small and not negative"
)]
fn record(load: &Workload, figures: &Figures) -> StepRecord {
    let whole = SECONDS * 1_000_000_000;
    let mut recorder = Recorder::new(1, 0, whole, channel().0);
    assert!(figures.iops <= MOST, "too many to note one by one");
    for second in 0..SECONDS {
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
        "workload": load,
        "clients": [],
        "started_unix_s": 0.0,
        "measure_ns": 0,
        "planned_ns": whole,
        "ended_ns": whole,
        "notes": notes,
        "connections": {"opened": 1, "lost": figures.lost, "unanswered": 0},
        "generator": {"cpu_s": figures.iops * 1e-5, "cpu_us_per_op": 0.0,
                      "busiest_thread_percent": 10.0, "saturated": false},
        "faults": {},
        "broken": false,
        "marks": [],
        "verify": null
    }))
    .unwrap();
    StepRecord { loads: vec![record] }
}

/// The action of a scripted executor at one application.
pub(super) enum Act {
    /// The executor gives these figures.
    Give(Figures),
    /// The executor can't begin.
    Fail(BenchError),
    /// Somebody interrupts it, and these are its figures until then.
    Interrupt(Figures),
    /// Somebody interrupts the laying out.
    InterruptLayout,
}

/// An executor that follows a script, and notes the loads. After the script it gives 1000 a
/// second.
#[derive(Default)]
pub(super) struct Scripted {
    pub(super) script: VecDeque<Act>,
    pub(super) applied: Vec<Vec<Workload>>,
    pub(super) never_ready: bool,
}

impl Scripted {
    pub(super) fn new(script: Vec<Act>) -> Self {
        Self { script: script.into(), ..Self::default() }
    }

    /// An executor that gives these rates, one application after the other.
    pub(super) fn rates(rates: &[f64]) -> Self {
        Self::new(rates.iter().map(|iops| Act::Give(Figures::new(*iops, 1.0))).collect())
    }
}

impl Executor for Scripted {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn apply(
        &mut self,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        self.applied.push(loads.to_vec());
        let act = self.script.pop_front();
        let act = act.unwrap_or_else(|| Act::Give(Figures::new(1000.0, 1.0)));
        let figures = match act {
            Act::Fail(error) => return Err(error),
            Act::InterruptLayout => {
                context.control.stop();
                return Err(BenchError::Workload("stopped while laying out".to_owned()));
            }
            Act::Give(figures) => figures,
            Act::Interrupt(figures) => {
                context.control.stop();
                figures
            }
        };
        (context.layout)(1, 1);
        if !self.never_ready {
            (context.ready)();
        }
        (context.observe)(&Window {
            at_s: 0.1,
            seconds: 0.1,
            phase: Phase::Measure,
            operations: 1,
            bytes: 1,
            errors: 0,
            p99_ms: 1.0,
            left_s: Some(1.0),
        });
        let load = loads.first().cloned().unwrap_or_default();
        let record = record(&load, &figures);
        let lost = figures.worker_lost.then(|| WorkerResult {
            name: "w1".to_owned(),
            lost: Some("3.0 s after the start: the connection was closed".to_owned()),
            ..WorkerResult::default()
        });
        Ok(Applied { record, workers: lost.into_iter().collect(), notes: Vec::new() })
    }
}

/// A place in memory.
#[derive(Default)]
pub(super) struct Ground {
    /// Directories that are there.
    pub(super) there: BTreeSet<String>,
    /// Directories in which somebody else has something.
    pub(super) occupied: BTreeSet<String>,
    /// Directories of killed runs, with their processes.
    pub(super) abandoned: BTreeMap<String, u32>,
    /// Directories whose files stay.
    pub(super) released: BTreeSet<String>,
    /// In the order in which they were made and removed.
    pub(super) log: Vec<String>,
    pub(super) gone: bool,
    pub(super) room: Option<u64>,
    /// All targets are on one file system.
    pub(super) one_file_system: bool,
    pub(super) limits: Limits,
}

/// A directory as the log has it: with its target, if that has a name.
fn spot(at: &Location) -> String {
    let Location { target, directory } = at;
    if target.is_empty() { directory.clone() } else { format!("{target}:{directory}") }
}

fn unreachable() -> BenchError {
    BenchError::Mount("the server does not answer".to_owned())
}

impl Place for Ground {
    fn reach(&mut self) -> Result<(), BenchError> {
        if self.gone { Err(unreachable()) } else { Ok(()) }
    }

    fn room(&mut self, _: &str) -> Result<Option<u64>, BenchError> {
        Ok(self.room)
    }

    fn file_system(&mut self, target: &str) -> Result<String, BenchError> {
        Ok(if self.one_file_system { String::new() } else { target.to_owned() })
    }

    fn limits(&mut self, _: &str) -> Result<Limits, BenchError> {
        self.reach()?;
        Ok(self.limits)
    }

    fn claim(&mut self, at: &Location) -> Result<Claim, BenchError> {
        self.reach()?;
        let directory = &spot(at);
        if self.occupied.contains(directory) {
            return Err(BenchError::Workload(format!("{directory} is not empty")));
        }
        self.log.push(format!("+{directory}"));
        let made = self.there.insert(directory.to_owned());
        Ok(Claim { made, abandoned: self.abandoned.remove(directory) })
    }

    fn release(&mut self, at: &Location) -> Result<(), BenchError> {
        self.reach()?;
        self.released.insert(spot(at));
        Ok(())
    }

    fn clear(&mut self, at: &Location, with_directory: bool) -> Result<(), BenchError> {
        self.reach()?;
        let directory = &spot(at);
        self.log.push(format!("-{directory}"));
        if with_directory {
            self.there.remove(directory);
        }
        Ok(())
    }
}
