//! `make replay`: runs the catalogue of published tests against Weir and NFS-Ganesha on this
//! machine.

use super::Options;
use crate::demo::Stop;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weir_core::units::parse_bytes;

/// Run published tests, scaled, against Weir and NFS-Ganesha, alternating, as root, and write
/// results and reports.
///
/// The exit status is 1 if a test could not be run or an operation failed, and 2 if the measurement
/// failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
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

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let weir = crate::weir_program(None)?;
        let options = Options {
            weir,
            work: self.work,
            out: self.out,
            only: self.only,
            rounds: self.rounds,
            time_s: self.seconds,
            warmup_s: self.warmup,
            data_bytes: self.data,
            inside: self.inside,
        };
        // Threads must not exist yet when the program moves into its namespaces.
        let stop = if options.inside { Stop::on_signals()? } else { Stop::default() };
        super::run(&options, &stop)
    }
}
