//! `make replay`: the catalogue of published tests against Weir and NFS-Ganesha on this machine.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::replay::{self, Options};
use weir_core::units::parse_bytes;

/// Replays published tests, scaled, against Weir and NFS-Ganesha in turns, as root, and writes
/// results and reports. Ends with 1 if something could not be run or an operation failed, with 2
/// if it could not measure.
#[derive(Debug, Parser)]
#[command(name = "weir-replay", version)]
struct Arguments {
    /// Directory for results and reports.
    #[arg(long, default_value = "docs/performance/replay")]
    out: PathBuf,
    /// Directory for the file system's image and logs; needs twice the data and 2 GiB.
    #[arg(long, default_value = "target/replay")]
    work: PathBuf,
    /// Only tests whose name contains this; may be given more than once.
    #[arg(long)]
    only: Vec<String>,
    /// Rounds; in each the servers take turns, test by test.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Most seconds measured of a step.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Most seconds of load before.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Most bytes of files at a time.
    #[arg(long, default_value = "2GiB", value_parser = parse_bytes)]
    data: u64,
    /// The program runs in its own namespaces already.
    #[arg(long, hide = true)]
    inside: bool,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::errln!("weir-replay: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: Arguments) -> Result<bool> {
    let own = std::env::current_exe().context("can't find this program")?;
    let weir = own.with_file_name("weir");
    anyhow::ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    let options = Options {
        weir,
        work: arguments.work,
        out: arguments.out,
        only: arguments.only,
        rounds: arguments.rounds,
        time_s: arguments.seconds,
        warmup_s: arguments.warmup,
        data_bytes: arguments.data,
        inside: arguments.inside,
    };
    // Threads must not exist yet when the program moves into its namespaces.
    let stop = if options.inside { Stop::on_signals()? } else { Stop::default() };
    replay::run(&options, &stop)
}
