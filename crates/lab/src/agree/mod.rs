//! `make agree`: compares the load engine with fio. Both apply the same loads to the same path in
//! turns.

use crate::campaign::{Campaign, Report};
use crate::disk::{Disk, Filesystem};
use crate::judge::Check;
use crate::stop::Stop;
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use weir_bench::suite::fio::FioExecutor;
use weir_bench::suite::{Context, Executor, Local};
use weir_load::control::Control;
use weir_load::error::BenchError;
use weir_load::target::Target;
use weir_load::workload::{Draw, Layout, Length, Operation, Pattern, Starts, Workload};
use weir_results::Spread;

/// Largest distance of the two medians, in percent.
pub(crate) const BAR_PERCENT: f64 = 3.0;
/// The directory of the file.
const DIRECTORY: &str = "weir-agree";

/// Apply the same loads to a path with our engine and with fio, alternating, and compare the
/// medians, which may differ by 3 %.
#[derive(Debug, Args)]
pub(crate) struct Agree {
    /// Directory on the file system to measure. With --throttle: directory for the file system's
    /// image.
    path: PathBuf,
    /// Measure a separate file system whose device is limited to this many reads and writes per
    /// second, so that the target is the bottleneck (requires root).
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..))]
    throttle: Option<u64>,
    /// Number of rounds per load and generator.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Duration of each round, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Size of the file, in MiB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    mib: u64,
    /// Run only loads whose names contain this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Use jobs with one file each instead of a queue depth: one thread or process per request in
    /// both.
    #[arg(long)]
    apart: bool,
    /// File for the results as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Campaign for Agree {
    fn run(&self, stop: &Stop) -> Result<Report> {
        let control = Control::new();
        stop.then({
            let control = control.clone();
            move || control.stop()
        })?;
        let rows = match self.throttle {
            None => self.compare(&control)?,
            Some(rate) => self.compare_throttled(rate, &control)?,
        };
        let checks: Vec<Check> = rows.iter().map(Row::check).collect();
        checks.iter().for_each(Check::print);
        let mut report = Report::new(checks);
        if let Some(path) = &self.json {
            report = report.file(path.clone(), serde_json::to_string_pretty(&rows)? + "\n");
        }
        if control.stopped() {
            report.write()?;
            bail!("interrupted; the files on the target were removed");
        }
        Ok(report)
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
    fn of(name: &str, native: Vec<f64>, fio: Vec<f64>) -> Self {
        let [ours, theirs] = [&native, &fio].map(|rates| Spread::of(rates.iter().copied()));
        let spread = |of: Spread| if of.min > 0.0 { (of.max / of.min - 1.0) * 100.0 } else { 0.0 };
        Self {
            name: name.to_owned(),
            ratio: ours.median / theirs.median,
            spread_percent: spread(ours).max(spread(theirs)),
            native,
            fio,
        }
    }

    /// The rule that the medians agree.
    fn check(&self) -> Check {
        let rule = format!("{}: within {BAR_PERCENT} % of fio", self.name);
        let worst = format!(
            "ours is {:.4} of fio's, turns spread {:.1} %",
            self.ratio, self.spread_percent
        );
        Check::new(rule, worst, (self.ratio - 1.0).abs() * 100.0 <= BAR_PERCENT)
    }
}

impl Agree {
    /// The loads that are compared.
    fn loads(&self) -> Vec<Workload> {
        let file_bytes = self.mib << 20;
        let load = |name: &str, pattern, read_percent, block_bytes, depth| Workload {
            name: name.to_owned(),
            operation: Operation::Data { pattern, read_percent },
            block_bytes,
            depth,
            file_bytes,
            length: Length::Seconds(self.seconds),
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
        if self.apart {
            for load in &mut all {
                (load.jobs, load.files, load.depth) = (load.depth, load.depth, 1);
                load.file_bytes = (file_bytes / 8).max(1 << 20);
                load.name = load.name.replace("depth", "jobs");
            }
        }
        all
    }

    /// Compares the generators on the path.
    fn compare(&self, control: &Control) -> Result<Vec<Row>> {
        let target = Target::Path(self.path.clone().into());
        let files = LaidOut::at(&target)?;
        let rows =
            files.make(&target, self, control).and_then(|()| self.by_turns(&target, control));
        files.remove()?;
        Ok(rows?)
    }

    /// Compares the generators on a file system of its own, whose device begins at most
    /// `per_second` reads and as many writes a second: the target is the limit, not the machine.
    /// Needs the rights to mount and to throttle.
    fn compare_throttled(&self, per_second: u64, control: &Control) -> Result<Vec<Row>> {
        let bytes = (self.mib << 21).max(512 << 20);
        std::fs::create_dir_all(&self.path)?;
        let mut disk = Disk::make(&self.path, "agree", Filesystem::Ext4, bytes)?;
        let target = Target::Path(disk.path().into());
        LaidOut::at(&target)?.make(&target, self, control)?;
        disk.throttle_iops(per_second)?;
        Ok(self.by_turns(&target, control)?)
    }

    fn by_turns(&self, target: &Target, control: &Control) -> Result<Vec<Row>, BenchError> {
        let mut fio = FioExecutor::new(target)?;
        let mut native = Local::new(target.clone());
        let mut rows = Vec::new();
        let wanted = self.loads();
        for load in wanted.iter().filter(|load| load.name.contains(&self.only)) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                for (executor, rates) in [
                    (&mut native as &mut dyn Executor, &mut ours),
                    (&mut fio as &mut dyn Executor, &mut theirs),
                ] {
                    let rate = once(executor, load, control)?;
                    let (load, name) = (&load.name, executor.name());
                    weir_report::errln!("{load:34} {name:14} {rate:>10.0} op/s");
                    rates.push(rate);
                    if control.stopped() {
                        return Ok(rows);
                    }
                }
            }
            rows.push(Row::of(&load.name, ours, theirs));
        }
        Ok(rows)
    }
}

/// The file that all turns use: written once and on the device before the first, so that no turn
/// pays for laying it out.
struct LaidOut {
    directory: PathBuf,
}

impl LaidOut {
    /// A new directory: an existing one was not created by this program.
    fn at(target: &Target) -> Result<Self, BenchError> {
        let Target::Path(path) = target else {
            let why = format!("fio requires a mounted path, but {target} is not one");
            return Err(BenchError::Target(why));
        };
        let directory = path.root.join(DIRECTORY);
        match std::fs::create_dir(&directory) {
            Ok(()) => Ok(Self { directory }),
            Err(source) => Err(BenchError::Path {
                path: directory,
                source,
                hint: "; remove it if an earlier comparison left it",
            }),
        }
    }

    fn make(&self, target: &Target, options: &Agree, control: &Control) -> Result<(), BenchError> {
        let load = Workload {
            length: Length::Operations(1),
            warmup_s: 0.0,
            layout: Layout::Written { block_bytes: 1 << 20 },
            keep: true,
            ..options.loads().swap_remove(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::path::Path;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        agree: Agree,
    }

    #[test]
    fn rows_compare_medians() {
        let row = Row::of("x", vec![100.0, 103.0, 90.0], vec![101.0, 99.0, 300.0]);
        assert!((row.ratio - 100.0 / 101.0).abs() < 1e-9);
        assert!(row.check().passed);
        assert!(row.spread_percent > 200.0);
        assert!(!Row::of("x", vec![100.0], vec![103.2]).check().passed);
    }

    #[test]
    fn fio_can_apply_all_loads() {
        for line in [&["agree", "/t"][..], &["agree", "/t", "--apart"]] {
            let loads = Program::parse_from(line).agree.loads();
            assert_eq!(loads.len(), 5);
            weir_bench::suite::fio::jobs::job_file(&loads, Path::new("/t")).unwrap();
        }
    }
}
