//! Do our engine and fio measure the same? Both apply the same loads to the same path by turns.

mod command;

use crate::disk::Disk;
use crate::peers::Filesystem;
use serde::Serialize;
use std::path::{Path, PathBuf};
use weir_bench::results::Spread;
use weir_bench::suite::fio::FioExecutor;
use weir_bench::suite::{Context, Executor, Local};
use weir_load::control::Control;
use weir_load::error::BenchError;
use weir_load::target::Target;
use weir_load::workload::{Draw, Layout, Length, Operation, Pattern, Starts, Workload};

pub(crate) use command::Command;

/// Largest distance of the two medians, in percent.
pub(crate) const BAR_PERCENT: f64 = 3.0;
/// The directory of the file.
const DIRECTORY: &str = "weir-agree";

/// The method of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Turns of each generator at each load.
    pub rounds: u32,
    /// Seconds of each.
    pub seconds: f64,
    /// Size of the file.
    pub file_bytes: u64,
    /// Only loads whose names contain this.
    pub only: String,
    /// In place of a depth so many jobs of depth 1, each with a file of its own: then both have a
    /// thread or process for each request, and the machine deals with both alike.
    pub apart: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { rounds: 5, seconds: 5.0, file_bytes: 256 << 20, only: String::new(), apart: false }
    }
}

/// The result of one load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The load.
    pub name: String,
    /// Operations a second of our engine, by turns.
    pub native: Vec<f64>,
    /// Operations a second of fio, by turns.
    pub fio: Vec<f64>,
    /// Median of ours over the median of fio's.
    pub ratio: f64,
    /// The greatest of one generator over its least, less one, in percent: what the medians can
    /// be worth.
    pub spread_percent: f64,
}

impl Row {
    /// Do the medians lie within the bar?
    #[must_use]
    pub(crate) fn agrees(&self) -> bool {
        (self.ratio - 1.0).abs() * 100.0 <= BAR_PERCENT
    }
}

/// The loads that are compared.
#[must_use]
pub(crate) fn loads(options: &Options) -> Vec<Workload> {
    let load = |name: &str, pattern, read_percent, block_bytes, depth| Workload {
        name: name.to_owned(),
        operation: Operation::Data { pattern, read_percent },
        block_bytes,
        depth,
        file_bytes: options.file_bytes,
        length: Length::Seconds(options.seconds),
        warmup_s: 1.0,
        direct: true,
        layout: Layout::Existing,
        directory: DIRECTORY.to_owned(),
        draw: Draw::Independent,
        starts: Starts::Together,
        ..Workload::default()
    };
    let (random, sequential) = (Pattern::Random, Pattern::Sequential);
    let mut all = vec![
        load("4 KiB random read, depth 8", random, 100, 4096, 8),
        load("8 KiB random write, depth 8", random, 0, 8192, 8),
        load("64 KiB sequential read, depth 4", sequential, 100, 65_536, 4),
        load("64 KiB sequential write, depth 4", sequential, 0, 65_536, 4),
        load("4 KiB random, 70 % reads, depth 8", random, 70, 4096, 8),
    ];
    if options.apart {
        for load in &mut all {
            (load.jobs, load.files, load.depth) = (load.depth, load.depth, 1);
            load.file_bytes = (options.file_bytes / 8).max(1 << 20);
            load.name = load.name.replace("depth", "jobs");
        }
    }
    all
}

/// Compares the generators on `target`, a path. `tell` is called after each turn with what ran and
/// its rate.
///
/// # Errors
/// [`BenchError`] of either generator.
pub(crate) fn compare(
    target: &Target,
    options: &Options,
    control: &Control,
    tell: &mut dyn FnMut(&str, &str, f64),
) -> Result<Vec<Row>, BenchError> {
    let files = LaidOut::at(target)?;
    let rows = files
        .make(target, options, control)
        .and_then(|()| by_turns(target, options, control, tell));
    files.remove()?;
    rows
}

fn by_turns(
    target: &Target,
    options: &Options,
    control: &Control,
    tell: &mut dyn FnMut(&str, &str, f64),
) -> Result<Vec<Row>, BenchError> {
    let mut fio = FioExecutor::new(target)?;
    let mut native = Local::new(target.clone());
    let mut rows = Vec::new();
    let wanted = loads(options);
    for load in wanted.iter().filter(|load| load.name.contains(&options.only)) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            for (executor, rates) in [
                (&mut native as &mut dyn Executor, &mut ours),
                (&mut fio as &mut dyn Executor, &mut theirs),
            ] {
                let rate = once(executor, load, control)?;
                tell(&load.name, &executor.name(), rate);
                rates.push(rate);
                if control.stopped() {
                    return Ok(rows);
                }
            }
        }
        rows.push(row(&load.name, ours, theirs));
    }
    Ok(rows)
}

/// Compares like [`compare`], on a file system of its own, made in `dir`, whose device begins at
/// most `per_second` reads and so many writes a second: the target is the limit, not the machine.
/// Needs the rights to mount and to throttle.
///
/// # Errors
/// The failure, in words.
pub(crate) fn compare_throttled(
    dir: &Path,
    per_second: u64,
    options: &Options,
    control: &Control,
    tell: &mut dyn FnMut(&str, &str, f64),
) -> anyhow::Result<Vec<Row>> {
    let bytes = options.file_bytes.saturating_mul(2).max(512 << 20);
    std::fs::create_dir_all(dir)?;
    let mut disk = Disk::make(dir, "agree", Filesystem::Ext4, bytes)?;
    let target = Target::Path(disk.path().to_owned());
    LaidOut::at(&target)?.make(&target, options, control)?;
    disk.throttle_iops(per_second)?;
    Ok(by_turns(&target, options, control, tell)?)
}

/// The file that all turns use: written once and on the device before the first, so that no turn
/// pays for laying it out.
struct LaidOut {
    directory: PathBuf,
}

impl LaidOut {
    /// A place of its own: what is there already is somebody else's.
    fn at(target: &Target) -> Result<Self, BenchError> {
        let Target::Path(root) = target else {
            let why = format!("fio requires a mounted path, but {target} is not one");
            return Err(BenchError::Target(why));
        };
        let directory = root.join(DIRECTORY);
        match std::fs::create_dir(&directory) {
            Ok(()) => Ok(Self { directory }),
            Err(source) => Err(BenchError::Path {
                path: directory,
                source,
                hint: "; remove it if an earlier comparison left it",
            }),
        }
    }

    fn make(
        &self,
        target: &Target,
        options: &Options,
        control: &Control,
    ) -> Result<(), BenchError> {
        let load = Workload {
            length: Length::Operations(1),
            warmup_s: 0.0,
            layout: Layout::Written { block_bytes: 1 << 20 },
            keep: true,
            ..loads(options).swap_remove(0)
        };
        once(&mut Local::new(target.clone()), &load, control)?;
        let failed = |source| BenchError::Path { path: self.directory.clone(), source, hint: "" };
        let synced = std::fs::File::open(&self.directory).map_err(failed)?;
        rustix::fs::syncfs(&synced).map_err(|error| failed(error.into()))
    }

    fn remove(self) -> Result<(), BenchError> {
        std::fs::remove_dir_all(&self.directory).map_err(|source| BenchError::Path {
            path: self.directory,
            source,
            hint: "",
        })
    }
}

fn once(
    executor: &mut dyn Executor,
    load: &Workload,
    control: &Control,
) -> Result<f64, BenchError> {
    let mut context =
        Context { control, layout: &mut |_, _| {}, ready: &mut || {}, observe: &mut |_| {} };
    let applied = executor.apply(std::slice::from_ref(load), &mut context)?;
    let (total, _) = applied.record.results(&load.name).ok_or(BenchError::Worker)?;
    if total.error_count() > 0 {
        let what: Vec<&String> = total.errors.keys().collect();
        return Err(BenchError::Workload(format!("{}: {}: {what:?}", executor.name(), load.name)));
    }
    Ok(total.total.iops)
}

fn row(name: &str, native: Vec<f64>, fio: Vec<f64>) -> Row {
    let [ours, theirs] = [&native, &fio].map(|rates| Spread::of(rates.iter().copied()));
    let spread = |of: Spread| if of.min > 0.0 { (of.max / of.min - 1.0) * 100.0 } else { 0.0 };
    Row {
        name: name.to_owned(),
        ratio: ours.median / theirs.median,
        spread_percent: spread(ours).max(spread(theirs)),
        native,
        fio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_compare_medians() {
        let row = row("x", vec![100.0, 103.0, 90.0], vec![101.0, 99.0, 300.0]);
        assert!((row.ratio - 100.0 / 101.0).abs() < 1e-9);
        assert!(row.agrees());
        assert!(row.spread_percent > 200.0);
        let apart = super::row("x", vec![100.0], vec![103.2]);
        assert!(!apart.agrees());
    }

    #[test]
    fn all_loads_can_be_said_to_fio() {
        let loads = loads(&Options::default());
        assert_eq!(loads.len(), 5);
        weir_bench::suite::fio::jobs::job_file(&loads, Path::new("/t")).unwrap();
    }
}
