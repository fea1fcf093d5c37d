//! `make live`: contracts that have a course, watched live.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::live::{self, Options};

/// Time for which an empty bucket earns credits (s): in 40 s a burst's worth of more than 10 s.
const REFILL_S: f64 = 40.0;
/// Time for which a bucket drained from full earns credits (s).
const REFILL_FULL_S: f64 = 600.0;

/// Loads volumes of a shared pool of which one becomes idle and comes back, and drains and refills
/// buckets of credits for bursts, on a real server. Ends with 1 if a rule was missed, with 2 if it
/// could not measure.
#[derive(Debug, Parser)]
#[command(name = "weir-live", version)]
struct Arguments {
    /// The server's program; by default the one beside this.
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for the data directory and the log.
    #[arg(long, default_value = "target/live")]
    work: PathBuf,
    /// Directory for live.json, live.md and live.html.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Show only this part; may be given several times.
    #[arg(long, value_name = "PART", value_parser = clap::builder::PossibleValuesParser::new(live::parts()))]
    only: Vec<String>,
    /// Drain each bucket from full to empty: an hour and a quarter for each model. Without this
    /// most of its credits are taken away first, by a change of limits there and back.
    #[arg(long)]
    full: bool,
    /// Seconds for which an empty bucket earns credits, at least 40 [default: 40; 600 with --full].
    #[arg(long, value_parser = clap::value_parser!(u32).range(40..=86_400))]
    refill: Option<u32>,
}

fn main() -> ExitCode {
    match show(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::outln!("not ok - {error:#}");
            ExitCode::from(2)
        }
    }
}

fn show(arguments: Arguments) -> Result<bool> {
    let weir = match arguments.weir {
        Some(weir) => weir,
        None => std::env::current_exe().context("can't find this program")?.with_file_name("weir"),
    };
    anyhow::ensure!(weir.exists(), "{} is missing: build it first", weir.display());
    let usual = if arguments.full { REFILL_FULL_S } else { REFILL_S };
    let options = Options {
        weir,
        work: arguments.work,
        out: arguments.out,
        only: arguments.only,
        full: arguments.full,
        refill_s: arguments.refill.map_or(usual, f64::from),
    };
    live::run(&options, &Stop::on_signals()?)
}
