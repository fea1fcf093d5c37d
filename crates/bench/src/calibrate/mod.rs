//! Calibration: what a server holds on its hardware, measured at its NFS port for several mixes of
//! READs and WRITEs and several block sizes.
//!
//! Not here: the measured volume, which the caller makes with a contract that binds nowhere, and
//! the use of the figures.

use crate::cli::sampler::ServerSampler;
use serde::Serialize;
use std::time::Duration;
use weir_load::Control;
use weir_load::engine::{Window, prepare_with};
use weir_load::error::BenchError;
use weir_load::stats::result::{OpResult, RunResult};
use weir_load::target::{NfsTarget, Target};
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, Workload};

/// Bytes that a job writes between two COMMITs. What clients write comes to the disks in the end,
/// so it is made sure of while it is measured; otherwise it would be memory that is.
const COMMIT_BYTES: u32 = 4 << 20;
/// Directory of the files on the volume.
const DIRECTORY: &str = "calibration";
/// Speed of writing files that the estimate of the total time assumes, bytes a second.
const LAYOUT_BYTES_PER_SECOND: u64 = 200 << 20;
/// Measurements that a server keeps of one calibration at most (`CELLS_MAX` of its catalogue).
const CELLS_MAX: usize = 256;
/// Most bytes that all files together may have: 16 PiB, beyond any disk.
const DATA_BYTES_MAX: u64 = 1 << 54;
/// Time for connecting and for the end of a measurement (s).
const AROUND_S: f64 = 0.5;

/// The measurements to make, and their method.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Mixes, as READs of a hundred requests.
    pub mixes: Vec<u8>,
    /// Block sizes in bytes.
    pub block_sizes: Vec<u32>,
    /// Duration of the measurement of each mix and block size (s).
    pub seconds: f64,
    /// Load before that, seconds.
    pub warmup_s: f64,
    /// Streams of requests, each with a file and a connection of its own.
    pub jobs: u32,
    /// Requests that each keeps in flight.
    pub depth: u32,
    /// Size of each file, bytes.
    pub file_bytes: u64,
    /// Threads that generate load.
    pub threads: u32,
}

/// The measurement of one mix and one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// READs of a hundred requests.
    pub read_percent: u8,
    /// Bytes of one request.
    pub block_bytes: u32,
    /// The bytes moved a second.
    pub bytes_per_second: u64,
    /// READs and WRITEs a second.
    pub iops: u64,
    /// Mean latency of a READ or WRITE, nanoseconds.
    pub mean_nanos: u64,
    /// The 99th percentile of that of READs or of that of WRITEs, whichever is greater,
    /// nanoseconds.
    pub p99_nanos: u64,
    /// Processor time of the server for each, nanoseconds, where its process was given.
    pub server_cpu_nanos: Option<u64>,
    /// Was it the generator that could do no more?
    pub saturated: bool,
}

/// A step of the calibration.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Files are written: so many bytes of so many.
    Layout(u64, u64),
    /// A mix and a block size come next: which, counted from 0, of how many.
    Begin(u8, u32, usize, usize),
    /// A moment of it.
    Window(&'a Window),
    /// The cell is measured.
    Done(&'a Cell),
}

impl Plan {
    /// Mixes and block sizes, in the order in which they are measured.
    pub fn cells(&self) -> impl Iterator<Item = (u8, u32)> {
        self.mixes.iter().flat_map(|mix| self.block_sizes.iter().map(|block| (*mix, *block)))
    }

    /// Size of all files together, bytes.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.file_bytes.saturating_mul(u64::from(self.jobs))
    }

    /// The expected duration, roughly.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a guess")]
    pub fn expected(&self) -> Duration {
        let cells = self.cells().count() as f64;
        let layout = self.data_bytes() as f64 / LAYOUT_BYTES_PER_SECOND as f64;
        let seconds = layout + cells * (self.warmup_s + self.seconds + AROUND_S);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Checks that each part makes sense.
    ///
    /// # Errors
    /// [`BenchError::Workload`] says which setting to change, and to what.
    pub fn check(&self) -> Result<(), BenchError> {
        if self.cells().next().is_none() {
            let message = "give at least one mix and one block size".to_owned();
            return Err(BenchError::Workload(message));
        }
        let refuse = |message: String| Err(BenchError::Workload(message));
        if let Some(mix) = twice(&self.mixes) {
            return refuse(format!("the mix of {mix} % reads appears twice"));
        }
        if let Some(block) = twice(&self.block_sizes) {
            return refuse(format!("the block size of {block} bytes appears twice"));
        }
        let count = self.cells().count();
        if count > CELLS_MAX {
            return refuse(format!(
                "{count} measurements are more than the {CELLS_MAX} that are kept: give fewer mixes or block sizes"
            ));
        }
        if self.data_bytes() > DATA_BYTES_MAX {
            return refuse(format!(
                "{} files of {} bytes are more than any disk has room for: choose a smaller size or fewer jobs",
                self.jobs, self.file_bytes
            ));
        }
        self.cells().try_for_each(|(mix, block)| self.workload(mix, block, true).check())
    }

    fn workload(&self, read_percent: u8, block_bytes: u32, first: bool) -> Workload {
        Workload {
            name: format!("{read_percent} % reads, {block_bytes} bytes"),
            operation: Operation::Data { pattern: Pattern::Random, read_percent },
            block_bytes,
            depth: self.depth,
            jobs: self.jobs,
            clients: 1,
            connections: self.jobs,
            files: self.jobs,
            file_bytes: self.file_bytes,
            stability: Stability::Unstable,
            commit_every: Some((COMMIT_BYTES / block_bytes.max(1)).max(1)),
            length: Length::Seconds(self.seconds),
            warmup_s: self.warmup_s,
            layout: match first {
                true => Layout::Written { block_bytes: 1 << 20 },
                false => Layout::Existing,
            },
            // The files go with the volume.
            keep: true,
            directory: DIRECTORY.to_owned(),
            threads: self.threads,
            ..Workload::default()
        }
    }
}

/// Measures what `plan` says at `target`, an export with nothing else on it. `server` is the
/// server's process, if its processor time is to be known. Files are left behind.
///
/// # Errors
/// [`BenchError`] if it can't be measured, something went wrong on the way, or `control` ended it.
pub fn measure(
    target: &NfsTarget,
    plan: &Plan,
    server: Option<u32>,
    control: &Control,
    told: &mut dyn FnMut(Step<'_>),
) -> Result<Vec<Cell>, BenchError> {
    plan.check()?;
    let count = plan.cells().count();
    let mut cells = Vec::with_capacity(count);
    for (number, (mix, block)) in plan.cells().enumerate() {
        let workload = plan.workload(mix, block, number == 0);
        let target = Target::Nfs(target.clone());
        let mut layout = |done, total| told(Step::Layout(done, total));
        let prepared = prepare_with(&target, &workload, control, &mut layout).map_err(advised)?;
        told(Step::Begin(mix, block, number, count));
        // Without the process, or one that is not ours to look at, it is not known.
        let mut sampler = server.and_then(|pid| ServerSampler::new(pid).ok());
        let result = prepared.run(control, |window| {
            if let Some(sampler) = &mut sampler {
                sampler.window(window);
            }
            told(Step::Window(window));
        })?;
        let cpu = sampler.and_then(|sampler| sampler.finish(&result));
        // The failure of the load is the reason to report, also if the run was stopped after it.
        let cell = cell(mix, block, &result, cpu.map(|cpu| cpu.cpu_us_per_op))?;
        if control.stopped() {
            return Err(BenchError::Workload("stopped before all was measured".to_owned()));
        }
        told(Step::Done(&cell));
        cells.push(cell);
    }
    Ok(cells)
}

/// The first that is there twice.
fn twice<T: Copy + PartialEq>(all: &[T]) -> Option<T> {
    all.iter().enumerate().find(|(at, one)| all[..*at].contains(one)).map(|(_, one)| *one)
}

/// Statuses of a server that has no room.
const NO_ROOM: [&str; 2] = ["NFS3ERR_NOSPC", "NFS3ERR_DQUOT"];
/// The remedy for too little room.
const ROOM_HINT: &str = "; choose smaller files or fewer jobs (--file-size, --jobs)";

/// The error, without the advice for any run, which names options that a calibration doesn't have.
fn advised(error: BenchError) -> BenchError {
    match error {
        BenchError::Refused { action, status, .. } => {
            let hint = if NO_ROOM.contains(&status.as_str()) { ROOM_HINT } else { "" };
            BenchError::Refused { action, status, hint }
        }
        other => other,
    }
}

/// The figures of a run.
fn cell(
    read_percent: u8,
    block_bytes: u32,
    result: &RunResult,
    cpu_us: Option<f64>,
) -> Result<Cell, BenchError> {
    if !result.is_clean() || result.interrupted {
        let errors: Vec<_> =
            result.errors.iter().map(|(what, count)| format!("{what} ({count})")).collect();
        let what =
            if errors.is_empty() { "the run ended early".to_owned() } else { errors.join(", ") };
        let full = result.errors.keys().any(|key| NO_ROOM.iter().any(|one| key.contains(one)));
        let hint = if full { ROOM_HINT } else { "" };
        return Err(BenchError::Workload(format!("{}: {what}{hint}", result.name)));
    }
    let of = |kind: &str| result.by_operation.get(kind).copied().unwrap_or_default();
    let both: [OpResult; 2] = [of("read"), of("write")];
    let sum = |get: fn(&OpResult) -> f64| both.iter().map(get).sum::<f64>();
    let iops = sum(|one| one.iops);
    if iops < 1.0 {
        let message = format!("{}: less than one operation a second was done", result.name);
        return Err(BenchError::Workload(message));
    }
    // COMMITs are left out: how many there are is of our choosing.
    let mean_ms = sum(|one| one.latency_ms.mean * one.iops) / iops;
    let p99_ms = both.iter().map(|one| one.latency_ms.p99).fold(0.0, f64::max);
    Ok(Cell {
        read_percent,
        block_bytes,
        bytes_per_second: whole(sum(|one| one.mibps) * 1_048_576.0),
        iops: whole(iops),
        mean_nanos: whole(mean_ms * 1e6),
        p99_nanos: whole(p99_ms * 1e6),
        server_cpu_nanos: cpu_us.map(|us| whole(us * 1e3)),
        saturated: result.generator.saturated,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are positive and far below 2^52"
)]
fn whole(figure: f64) -> u64 {
    figure.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_load::stats::result::{Connections, Generator, Interval, Latency, RESULT_VERSION};

    fn plan() -> Plan {
        Plan {
            mixes: vec![100, 0],
            block_sizes: vec![4096, 1 << 20],
            seconds: 5.0,
            warmup_s: 1.0,
            jobs: 4,
            depth: 16,
            file_bytes: 100 << 20,
            threads: 1,
        }
    }

    fn result(by_operation: BTreeMap<String, OpResult>) -> RunResult {
        RunResult {
            version: RESULT_VERSION,
            name: "cell".to_owned(),
            target: String::new(),
            workload: Workload::default(),
            started_unix_s: 0.0,
            measured: Interval { from_s: 1.0, to_s: 2.0 },
            total: OpResult::default(),
            by_operation,
            jobs: Vec::new(),
            errors: BTreeMap::new(),
            connections: Connections::default(),
            addresses: BTreeMap::new(),
            series_1s: Vec::new(),
            series_100ms: Vec::new(),
            series_10ms: Vec::new(),
            marks: Vec::new(),
            generator: Generator { saturated: true, ..Generator::default() },
            server: None,
            verify: None,
            interrupted: false,
        }
    }

    fn done(iops: f64, mibps: f64, mean: f64, p99: f64) -> OpResult {
        let latency_ms = Latency { mean, p99, ..Latency::default() };
        OpResult { iops, mibps, latency_ms, ..OpResult::default() }
    }

    #[test]
    fn every_mix_meets_every_block_size_and_the_files_are_written_once() {
        let plan = plan();
        let cells: Vec<_> = plan.cells().collect();
        assert_eq!(cells, [(100, 4096), (100, 1 << 20), (0, 4096), (0, 1 << 20)]);
        plan.check().unwrap();
        // 2 s for 400 MiB, and four times 6.5 s.
        assert_eq!((plan.data_bytes(), plan.expected()), (400 << 20, Duration::from_secs(28)));
        assert_eq!(plan.workload(0, 4096, true).commit_every, Some(1024));
        assert_eq!(plan.workload(0, 1 << 20, false).commit_every, Some(4));
        assert_eq!(plan.workload(0, 1 << 20, false).layout, Layout::Existing);
        let small = Plan { file_bytes: 1 << 16, ..plan.clone() };
        assert!(small.check().unwrap_err().to_string().contains("is smaller than a block"));
        assert!(Plan { mixes: Vec::new(), ..plan.clone() }.check().is_err());
        assert!(Plan { mixes: vec![101], ..plan }.check().is_err());
    }

    #[test]
    fn what_no_server_would_keep_is_not_measured() {
        let refused = |plan: Plan| plan.check().unwrap_err().to_string();
        let mixes = refused(Plan { mixes: vec![0, 70, 0], ..plan() });
        assert!(mixes.contains("0 % reads appears twice"), "{mixes}");
        let sizes = refused(Plan { block_sizes: vec![4096, 4096], ..plan() });
        assert!(sizes.contains("4096 bytes appears twice"), "{sizes}");
        let many =
            Plan { mixes: (0..=100).collect(), block_sizes: vec![512, 1024, 2048], ..plan() };
        assert!(refused(many).contains("303 measurements are more than the 256"));
        for file_bytes in [DATA_BYTES_MAX / 4 + 1, u64::MAX] {
            let huge = refused(Plan { file_bytes, ..plan() });
            assert!(huge.contains("more than any disk has room for"), "{huge}");
        }
    }

    #[test]
    fn a_full_disk_is_told_with_options_that_a_calibration_has() {
        let hint = "; choose a smaller --size or fewer --files";
        let refused = |status: &str| {
            let (action, status) = ("writing a file".to_owned(), status.to_owned());
            advised(BenchError::Refused { action, status, hint }).to_string()
        };
        assert!(refused("NFS3ERR_NOSPC").ends_with("(--file-size, --jobs)"));
        assert!(refused("NFS3ERR_IO").ends_with("NFS3ERR_IO"));
        let mut full = result(BTreeMap::new());
        full.errors.insert("WRITE: NFS3ERR_NOSPC".to_owned(), 3);
        assert!(cell(0, 4096, &full, None).unwrap_err().to_string().contains("--file-size"));
    }

    #[test]
    fn figures_are_of_reads_and_writes_without_commits() {
        let kinds = [
            ("read", done(300.0, 3.0, 1.0, 4.0)),
            ("write", done(100.0, 1.0, 5.0, 9.0)),
            ("commit", done(50.0, 0.0, 80.0, 200.0)),
        ];
        let kinds = kinds.map(|(kind, result)| (kind.to_owned(), result));
        let cell = cell(75, 10_486, &result(kinds.into()), Some(12.5)).unwrap();
        assert_eq!((cell.iops, cell.bytes_per_second), (400, 4 << 20));
        assert_eq!((cell.mean_nanos, cell.p99_nanos), (2_000_000, 9_000_000));
        assert_eq!((cell.server_cpu_nanos, cell.saturated), (Some(12_500), true));
    }

    #[test]
    fn a_run_that_was_not_clean_is_no_measurement() {
        let good = BTreeMap::from([("read".to_owned(), done(300.0, 3.0, 1.0, 4.0))]);
        assert!(cell(100, 4096, &result(good.clone()), None).is_ok());
        let mut failed = result(good.clone());
        failed.errors.insert("NFS3ERR_IO".to_owned(), 7);
        let error = cell(100, 4096, &failed, None).unwrap_err().to_string();
        assert!(error.contains("NFS3ERR_IO (7)"), "{error}");
        let stopped = RunResult { interrupted: true, ..result(good) };
        assert!(cell(100, 4096, &stopped, None).is_err());
        assert!(cell(100, 4096, &result(BTreeMap::new()), None).is_err());
    }
}
