//! `make crash`: kills the server and cuts its power under load, and looks for what was lost.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::crash::{self, Options};
use weir_bench::demo::Stop;

/// Kills a server and cuts its power at random moments under mixed load, and checks that nothing
/// acknowledged is lost. Ends with 1 if something was, with 2 if it could not tell.
#[derive(Debug, Parser)]
#[command(name = "weir-crash", version)]
struct Arguments {
    /// The server's program; by default the one beside this.
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for data directories, file system images and logs.
    #[arg(long, default_value = "target/crash")]
    work: PathBuf,
    /// Directory for crash.json and crash.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Kills in each durability mode.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Power cuts in each durability mode on each of ext4 and XFS; they need root.
    #[arg(long, default_value_t = 100)]
    cuts: u64,
    /// Clients.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1000))]
    clients: u32,
    /// Where the random load begins; by default another one every time.
    #[arg(long)]
    seed: Option<u64>,
    /// Numbers of files to measure the time to serve again by, in rising order.
    #[arg(long, value_delimiter = ',')]
    files: Vec<u64>,
    /// The program runs in its own namespaces already.
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
