//! `make live`: measures contracts whose limits change over time.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::live::{self, Options};

/// Time for which an empty bucket earns credits (s): in 40 s a burst of more than 10 s.
const REFILL_S: f64 = 40.0;
/// Time for which a bucket drained from full earns credits (s).
const REFILL_FULL_S: f64 = 600.0;

/// Load volumes of a shared pool, one of which becomes idle and busy again, and drain and refill
/// burst credits, on a real server.
///
/// The exit status is 1 if a rule was violated, and 2 if the measurement failed.
#[derive(Debug, Parser)]
#[command(name = "weir-live", version)]
struct Arguments {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for the data directory and the log.
    #[arg(long, default_value = "target/live")]
    work: PathBuf,
    /// Directory for live.json, live.md and live.html.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run only this part; repeatable.
    #[arg(long, value_name = "PART", value_parser = clap::builder::PossibleValuesParser::new(live::parts()))]
    only: Vec<String>,
    /// Drain each bucket from full to empty, which takes 75 minutes per model. Without this option,
    /// most credits are first removed by changing limits back and forth.
    #[arg(long)]
    full: bool,
    /// Time for which an empty bucket earns credits, in seconds, at least 40 [default: 40; 600 with
    /// --full].
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
