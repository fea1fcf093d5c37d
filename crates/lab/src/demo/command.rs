//! `make demo`: the command line of the demonstration.

use super::{Options, Stop};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weir_bench::cli::Format;

/// Demonstrate on this machine that contracts are kept (about three minutes).
///
/// The demonstration starts a server on loopback with an empty data directory. It creates the
/// volumes of a published measurement, two more volumes, and one for each other contract model. It
/// loads each volume at full speed from up to forty addresses, changes a quota under load, and
/// compares the results measured by the clients with the contracts. The server and its data are
/// removed at the end. The exit status is 1 if a contract was not kept, and 2 if the demonstration
/// failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
    /// Directory for result.json, report.html and server.log.
    #[arg(long, default_value = "target/demo", value_name = "DIR")]
    out: PathBuf,
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Output on standard output: table, or json for result.json.
    #[arg(long, value_enum, default_value = "table")]
    output: Format,
}

impl Command {
    /// Carries the command out; `true` if every contract was kept.
    pub(crate) fn run(self) -> Result<bool> {
        let exe = crate::weir_program(self.weir)?;
        let options = Options { exe, out: self.out.clone(), format: self.output };
        let kept = super::run(&options, &Stop::on_signals()?)?;
        if !kept {
            let report = self.out.join("report.html");
            weir_report::errln!("at least one contract was not kept: see {}", report.display());
        }
        Ok(kept)
    }
}
