//! Compares our engine with the real fio on a path, alternating, with medians and ratios.

use super::{BAR_PERCENT, Options, Row, compare, compare_throttled};
use crate::demo::Stop;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;
use weir_load::{Control, Target};

/// Apply the same loads to a path with our engine and with fio, alternating, and compare the
/// medians.
///
/// The exit status is 1 if they differ by more than 3 %, and 2 if the measurement failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
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

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let options = Options {
            rounds: self.rounds,
            seconds: self.seconds,
            file_bytes: self.mib << 20,
            only: self.only.clone(),
            apart: self.apart,
        };
        let control = Control::new();
        Stop::on_signals()?.then({
            let control = control.clone();
            move || control.stop()
        })?;
        let mut tell = |load: &str, who: &str, rate: f64| {
            weir_report::errln!("{load:34} {who:14} {rate:>10.0} op/s");
        };
        let rows = match self.throttle {
            None => compare(&Target::Path(self.path.clone()), &options, &control, &mut tell)?,
            Some(rate) => compare_throttled(&self.path, rate, &options, &control, &mut tell)?,
        };
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&rows)?;
            std::fs::write(path, text + "\n")
                .with_context(|| format!("can't write {}", path.display()))?;
        }
        rows.iter().for_each(print);
        anyhow::ensure!(!control.stopped(), "interrupted; what was made is removed");
        Ok(rows.iter().all(Row::agrees))
    }
}

fn print(row: &Row) {
    let verdict = if row.agrees() { "ok" } else { "not ok" };
    weir_report::outln!(
        "{verdict} - {}: ours is {:.4} of fio's (bar {BAR_PERCENT} %), turns spread {:.1} %",
        row.name,
        row.ratio,
        row.spread_percent
    );
}
