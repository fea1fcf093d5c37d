//! `weir demo`: the demonstration of `make demo`, with this very program as the server.

use super::Global;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use weir_bench::demo::{self, Options, Stop};

/// Demonstrate on this machine that contracts are kept (about three minutes).
///
/// The demonstration starts a server on loopback with an empty data directory. It creates the
/// volumes of a published measurement, two more volumes, and one for each other contract model. It
/// loads each volume at full speed from up to forty addresses, changes a quota under load, and
/// compares the results measured by the clients with the contracts. The server and its data are
/// removed at the end. The exit status is 1 if a contract was not kept.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Directory for result.json, report.html and server.log
    #[arg(long, default_value = "target/demo", value_name = "DIR")]
    out: PathBuf,
}

/// Runs the demonstration.
pub(crate) fn run(global: &Global, args: &DemoArgs) -> Result<()> {
    let exe = std::env::current_exe().context("cannot find the path of this program")?;
    let options = Options { exe, out: args.out.clone(), format: global.output.format() };
    if !demo::run(&options, &Stop::on_signals()?)? {
        bail!("at least one contract was not kept: see {}", args.out.join("report.html").display());
    }
    Ok(())
}
