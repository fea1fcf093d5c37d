//! Do our engine and the real fio measure the same on a path? By turns, with medians and ratios.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::suite::fio::agree::{self, BAR_PERCENT, Options, Row};
use weir_bench::{Control, Target};

/// Applies the same loads to a path with our engine and with fio, by turns, and compares the
/// medians. Ends with 1 if they lie more than 3 % apart, with 2 if it could not measure.
#[derive(Debug, Parser)]
#[command(name = "weir-agree", version)]
struct Arguments {
    /// Directory of the file system to measure. With --throttle: where one is made, in a file.
    path: PathBuf,
    /// Measure a file system of its own, whose device begins at most so many reads and writes a
    /// second: the target is the limit then (needs root).
    #[arg(long, value_parser = clap::value_parser!(u64).range(100..))]
    throttle: Option<u64>,
    /// Turns of each generator at each load.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Seconds of each turn.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// MiB of the file.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    mib: u64,
    /// Only loads whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Jobs with a file each in place of a depth: a thread or process for each request in both.
    #[arg(long)]
    apart: bool,
    /// File for the figures as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::outln!("not ok - {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<bool> {
    let options = Options {
        rounds: arguments.rounds,
        seconds: arguments.seconds,
        file_bytes: arguments.mib << 20,
        only: arguments.only.clone(),
        apart: arguments.apart,
    };
    let control = Control::new();
    Stop::on_signals()?.then({
        let control = control.clone();
        move || control.stop()
    })?;
    let mut tell = |load: &str, who: &str, rate: f64| {
        weir_bench::errln!("{load:34} {who:14} {rate:>10.0} op/s");
    };
    let rows = match arguments.throttle {
        None => {
            agree::compare(&Target::Path(arguments.path.clone()), &options, &control, &mut tell)?
        }
        Some(rate) => {
            agree::compare_throttled(&arguments.path, rate, &options, &control, &mut tell)?
        }
    };
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&rows)?;
        std::fs::write(path, text + "\n")
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    rows.iter().for_each(print);
    anyhow::ensure!(!control.stopped(), "interrupted; what was made is removed");
    Ok(rows.iter().all(Row::agrees))
}

fn print(row: &Row) {
    let verdict = if row.agrees() { "ok" } else { "not ok" };
    weir_bench::outln!(
        "{verdict} - {}: ours is {:.4} of fio's (bar {BAR_PERCENT} %), turns spread {:.1} %",
        row.name,
        row.ratio,
        row.spread_percent
    );
}
