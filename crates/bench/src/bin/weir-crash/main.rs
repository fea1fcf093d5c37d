//! `make crash`: kills the server and simulates power failures under load, and checks for data
//! loss.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::crash::{self, Options};
use weir_bench::demo::Stop;

/// Kill a server and simulate power failures at random moments under mixed load, and check that no
/// acknowledged data is lost.
///
/// The exit status is 1 if data was lost, and 2 if the check could not be completed.
#[derive(Debug, Parser)]
#[command(name = "weir-crash", version)]
struct Arguments {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for data directories, file system images and logs.
    #[arg(long, default_value = "target/crash")]
    work: PathBuf,
    /// Directory for crash.json and crash.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of kills per durability mode.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Number of power failures per durability mode on each of ext4 and XFS (requires root).
    #[arg(long, default_value_t = 100)]
    cuts: u64,
    /// Number of clients.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1000))]
    clients: u32,
    /// Seed of the random load [default: random].
    #[arg(long)]
    seed: Option<u64>,
    /// Numbers of files for measuring the restart time, in ascending order.
    #[arg(long, value_delimiter = ',')]
    files: Vec<u64>,
    /// The program already runs in its own namespaces.
    #[arg(long, hide = true)]
    inside: bool,
}

fn main() -> ExitCode {
    match crash(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::outln!("not ok - {error:#}");
            ExitCode::from(2)
        }
    }
}

fn crash(arguments: Arguments) -> Result<bool> {
    let weir = match arguments.weir {
        Some(weir) => weir,
        None => std::env::current_exe().context("can't find this program")?.with_file_name("weir"),
    };
    anyhow::ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |now| now.subsec_nanos().into());
    let options = Options {
        weir,
        work: arguments.work,
        out: arguments.out,
        kills: arguments.kills,
        cuts: arguments.cuts,
        clients: arguments.clients,
        seed: arguments.seed.unwrap_or_else(clock),
        files: arguments.files,
        inside: arguments.inside,
    };
    // Threads must not exist yet when the program moves into its namespaces.
    let watch = options.inside || !rustix::process::geteuid().is_root();
    let stop = if watch { Stop::on_signals()? } else { Stop::default() };
    crash::run(&options, &stop)
}
