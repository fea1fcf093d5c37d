//! `make many`: measures a server with ten thousand volumes.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::many::{self, Options};

/// Create a server with many volumes, load some of them, and measure startup, memory, contracts and
/// the cost per operation.
///
/// The exit status is 1 if a threshold was missed, and 2 if the measurement failed.
#[derive(Debug, Parser)]
#[command(name = "weir-many", version)]
struct Arguments {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for data directories and logs.
    #[arg(long, default_value = "target/many")]
    work: PathBuf,
    /// Directory for many.json and many.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of volumes.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    volumes: u32,
    /// Number of volumes loaded at the same time.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    active: u32,
    /// Duration of the load, in seconds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Number of rounds of the two servers per operation.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::outln!("not ok - {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: Arguments) -> Result<bool> {
    let weir = match arguments.weir {
        Some(weir) => weir,
        None => std::env::current_exe().context("can't find this program")?.with_file_name("weir"),
    };
    anyhow::ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    let options = Options {
        weir,
        work: arguments.work,
        out: arguments.out,
        volumes: arguments.volumes,
        active: arguments.active,
        seconds: arguments.seconds,
        rounds: arguments.rounds,
    };
    many::run(&options, &Stop::on_signals()?)
}
