//! `make crash`: kills the server and simulates power failures under load, and checks for data
//! loss.

use super::Options;
use crate::demo::Stop;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Kill a server and simulate power failures at random moments under mixed load, and check that no
/// acknowledged data is lost.
///
/// The exit status is 1 if data was lost, and 2 if the check could not be completed.
#[derive(Debug, Args)]
pub(crate) struct Command {
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

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let weir = crate::weir_program(self.weir)?;
        let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |now| now.subsec_nanos().into());
        let options = Options {
            weir,
            work: self.work,
            out: self.out,
            kills: self.kills,
            cuts: self.cuts,
            clients: self.clients,
            seed: self.seed.unwrap_or_else(clock),
            files: self.files,
            inside: self.inside,
        };
        // Threads must not exist yet when the program moves into its namespaces.
        let watch = options.inside || !rustix::process::geteuid().is_root();
        let stop = if watch { Stop::on_signals()? } else { Stop::default() };
        super::run(&options, &stop)
    }
}
