//! The results of one call of the suite, in the shape that is written as JSON and that reports and
//! comparisons read; the comparisons, and the pages that present them. Fields are added, never
//! renamed; a change that would mislead an old reader raises [`RESULTS_VERSION`]. Documented for
//! users in `docs/bench-results.md`.
//!
//! Not here: measuring, and the command line.

#![forbid(unsafe_code)]

mod busy;
pub mod compare;
mod contract;
mod limit;
pub mod pages;
mod pair;
pub mod read;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use busy::MachineBusy;
pub use contract::Contract;
pub use limit::Limit;
pub use pair::{PairResult, PairSide, PairVerdict};
pub use summary::{counted, median, target_name};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_load::stats::result::RunResult;
use weir_scenario::scenario::{Axis, Cache, Chart, Language, Published};

/// A megabit a second in MiB/s.
pub const MIBPS_PER_MBITPS: f64 = 1e6 / 8.0 / 1_048_576.0;

/// Version of the JSON schema.
pub const RESULTS_VERSION: u32 = 1;

/// Everything that came of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`RESULTS_VERSION`].
    pub version: u32,
    /// A word of the user's for the compared server: "weir", "ganesha"; the target if none was
    /// given.
    pub label: String,
    /// The target as the user wrote it.
    pub target: String,
    /// The exact command line, word by word.
    pub command: Vec<String>,
    /// Version of the program.
    pub program: String,
    /// Start of the run, in seconds since 1970-01-01 UTC.
    pub started_unix_s: f64,
    /// The environment of the run.
    pub environment: Environment,
    /// One for each scenario.
    pub tests: Vec<TestResult>,
    /// The run was ended before its time, or a worker was lost.
    pub interrupted: bool,
    /// Warnings to know before believing the figures, a sentence each.
    pub warnings: Vec<String>,
    /// Pairs of steps that these results have, against their published ratios; empty in documents
    /// of earlier versions.
    #[serde(default)]
    pub pairs: Vec<PairResult>,
}

/// Machines, transport and settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The machine that coordinated, and those of the workers.
    pub clients: Vec<Machine>,
    /// The server's machine, where the user named it or it is this one.
    pub server: Option<Machine>,
    /// The way to the target: "NFSv3 in user space, 1 address", "path on nfs (rw,…)".
    pub transport: String,
    /// The links of this machine to the servers, each with its speed in Mbit/s; empty if one of
    /// them is unknown, the server is on this machine, or workers on other machines apply the
    /// loads.
    pub links: BTreeMap<String, u32>,
    /// Settings of the server that the user named, such as `metadata-cache`, with their values.
    pub settings: BTreeMap<String, String>,
    /// Contracts of the volumes by the name of the target, where the API of their server was asked.
    pub contracts: BTreeMap<String, Contract>,
    /// Anything else worth telling, as name and value.
    pub facts: Vec<(String, String)>,
}

/// One machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The machine's name.
    pub name: String,
    /// Model of its processors.
    pub processor: String,
    /// The number of processors online.
    pub processors: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel and its version.
    pub kernel: String,
    /// Distribution.
    pub system: String,
}

/// The result of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The scenario's.
    pub name: String,
    /// The scenario's.
    pub title: String,
    /// The scenario's.
    pub about: String,
    /// The scenario's.
    pub source: Option<String>,
    /// The scenario's.
    pub language: Language,
    /// The scenario's.
    pub chart: Chart,
    /// The scenario's, and what running it added.
    pub changes: Vec<String>,
    /// The test's steps, in order.
    pub steps: Vec<StepResult>,
    /// The findings of a search: knee, highest rate under a target.
    pub findings: Vec<Finding>,
    /// Why it was not run.
    pub waiting: Option<String>,
}

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step's.
    pub name: String,
    /// The step's.
    pub group: String,
    /// The step's.
    pub axis: Option<Axis>,
    /// The step's.
    pub preparation: bool,
    /// The step's.
    pub published: Option<Published>,
    /// Requests in flight of the step as it was published or written, where scaling made them
    /// fewer.
    pub written_in_flight: Option<u64>,
    /// One for each repeat, in order; empty if the step was skipped.
    pub runs: Vec<StepRun>,
    /// The repeats together; absent if there is none.
    pub summary: Option<Summary>,
    /// Why it was left out or ended early.
    pub skipped: Option<String>,
    /// Warnings about these figures, a sentence each: a saturated generator, a lost worker, no
    /// steady state, caches that could not be emptied.
    pub notes: Vec<String>,
    /// Why this machine by itself could not reach the published rate, a sentence each; they are
    /// among the notes too.
    #[serde(default)]
    pub out_of_reach: Vec<String>,
    /// The state of caches that was wanted, and the actions taken.
    pub cache: CacheProof,
}

/// One application of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    /// All loads and all workers together.
    pub total: RunResult,
    /// One for each load, if there are several.
    pub loads: Vec<RunResult>,
    /// One for each target, all its loads together, if there are several.
    #[serde(default)]
    pub targets: Vec<RunResult>,
    /// One for each worker process, if there are several.
    pub workers: Vec<WorkerResult>,
    /// Was the rate steady through the measured interval?
    pub steady: Option<Steady>,
    /// The longest time of the measured interval without a completed operation, where it was a
    /// stall: a second or more, and ten times the mean time between two operations.
    #[serde(default)]
    pub stall: Option<Stall>,
    /// Bytes that the devices of `links` received and sent meanwhile; all network devices of the
    /// client, loopback included, if there are no `links`.
    pub network: Option<Network>,
    /// Processors kept busy on the client's machine, by anybody: 1.0 is one processor.
    pub client_processors: Option<f64>,
}

/// A worker's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerResult {
    /// The worker's name.
    pub name: String,
    /// Operations it completed in the measured interval.
    pub operations: u64,
    /// The payload of these operations, in bytes.
    pub bytes: u64,
    /// Processor time of its threads, in seconds.
    pub cpu_s: f64,
    /// The offset of its clock from the coordinator's, in milliseconds; corrected for.
    pub clock_offset_ms: f64,
    /// Half the round trip with which that was measured: the correction's uncertainty.
    pub clock_uncertainty_ms: f64,
    /// Why it was lost; its part of the figures ends there.
    pub lost: Option<String>,
}

/// The repeats of a step together: medians, and the spread from the least to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The number of repeats that count.
    pub repeats: u32,
    /// Operations a second.
    pub iops: Spread,
    /// MiB/s.
    pub mibps: Spread,
    /// Reads a second.
    pub read_iops: Spread,
    /// Writes a second.
    pub write_iops: Spread,
    /// MiB/s read.
    pub read_mibps: Spread,
    /// MiB/s written.
    pub write_mibps: Spread,
    /// Mean latency in milliseconds.
    pub mean_ms: Spread,
    /// 99th percentile in milliseconds.
    pub p99_ms: Spread,
    /// Processor time of the generator per operation, in microseconds.
    pub client_us_per_op: Spread,
    /// Processor time of the server per operation, in microseconds; zero where it is unknown.
    pub server_us_per_op: Spread,
}

/// The figures of one of several targets of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSummary {
    /// The target's name; its address where it has no name.
    pub name: String,
    /// The figures of all its loads together.
    pub summary: Summary,
}

/// A median and what lies around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

/// Whether a rate was steady: a line through the seconds' rates, and how they lie around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Is it, by the rule (drift at most 10 % and excursions at most 20 % of the mean)?
    pub steady: bool,
    /// Change of the fitted line over the interval, in percent of the mean.
    pub drift_percent: f64,
    /// Greatest distance of a second from the mean, in percent of the mean.
    pub excursion_percent: f64,
    /// Seconds of warm-up after which the rate was steady.
    pub warmup_s: f64,
}

/// A time without a completed operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Its begin, in seconds since the load started.
    pub from_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
}

/// Bytes over the network devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Received.
    pub received_bytes: u64,
    /// Sent.
    pub sent_bytes: u64,
}

/// The state of caches that was wanted, the actions taken, and the evidence for and against it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheProof {
    /// The state that the step wanted.
    pub wanted: Cache,
    /// Bytes of the data set.
    pub data_bytes: u64,
    /// Memory of the client machines together.
    pub client_memory_bytes: u64,
    /// Memory of the server, where it is known.
    pub server_memory_bytes: Option<u64>,
    /// The actions taken, a sentence each.
    pub done: Vec<String>,
    /// The doubts that could not be excluded, a sentence each.
    pub open: Vec<String>,
}

/// A finding of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The question: "highest rate with p99 under 2 ms".
    pub question: String,
    /// The answer in words.
    pub answer: String,
    /// The answer as a number.
    pub value: f64,
    /// The figure's unit.
    pub unit: String,
    /// Steps it rests on, by name.
    pub steps: Vec<String>,
}
