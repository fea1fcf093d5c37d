//! `make many`: measures a server with ten thousand volumes.

use super::Options;
use crate::demo::Stop;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Create a server with many volumes, load some of them, and measure startup, memory, contracts and
/// the cost per operation.
///
/// The exit status is 1 if a threshold was missed, and 2 if the measurement failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
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

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let weir = crate::weir_program(self.weir)?;
        let options = Options {
            weir,
            work: self.work,
            out: self.out,
            volumes: self.volumes,
            active: self.active,
            seconds: self.seconds,
            rounds: self.rounds,
        };
        super::run(&options, &Stop::on_signals()?)
    }
}
