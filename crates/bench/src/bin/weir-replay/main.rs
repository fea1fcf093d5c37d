//! `make replay`: runs the catalogue of published tests against Weir and NFS-Ganesha on this
//! machine.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::replay::{self, Options};
use weir_core::units::parse_bytes;

/// Run published tests, scaled, against Weir and NFS-Ganesha, alternating, as root, and write
/// results and reports.
///
/// The exit status is 1 if a test could not be run or an operation failed, and 2 if the measurement
/// failed.
#[derive(Debug, Parser)]
#[command(name = "weir-replay", version)]
struct Arguments {
    /// Directory for results and reports.
    #[arg(long, default_value = "docs/performance/replay")]
    out: PathBuf,
    /// Directory for the file system image and logs; it needs twice the data size plus 2 GiB.
    #[arg(long, default_value = "target/replay")]
    work: PathBuf,
    /// Run only tests whose name contains this text; repeatable.
    #[arg(long)]
    only: Vec<String>,
    /// Number of rounds; in each, the servers alternate test by test.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Maximum measured time per step, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Maximum warm-up time per step, in seconds.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Maximum size of the files at any time.
    #[arg(long, default_value = "2GiB", value_parser = parse_bytes)]
    data: u64,
    /// The program already runs in its own namespaces.
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
