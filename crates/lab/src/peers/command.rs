//! `make peers`: compares Weir with NFS-Ganesha and the bare loop on this machine.

use super::{Filesystem, Options, Times};
use crate::demo::Stop;
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// Compare Weir with NFS-Ganesha and the bare loop, as root, and write peers.json and peers.html.
///
/// The exit status is 1 if a threshold was missed, and 2 if the measurement failed.
#[derive(Debug, Args)]
pub(crate) struct Command {
    /// Directory for the report.
    #[arg(long, default_value = "docs/performance")]
    out: PathBuf,
    /// Directory for file system images and logs; it needs 6 GiB.
    #[arg(long, default_value = "target/peers")]
    work: PathBuf,
    /// Number of rounds; in each, the servers alternate.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Duration of each measurement, in seconds.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Duration of the warm-up before each measurement, in seconds.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Number of threads of the load generator.
    #[arg(long, default_value_t = 1)]
    generator_threads: u32,
    /// Run one round of one second on ext4, as a functional test.
    #[arg(long)]
    quick: bool,
    /// Run only workloads whose name contains this text; repeatable.
    #[arg(long)]
    only: Vec<String>,
    /// Run only on this file system.
    #[arg(long, value_parser = filesystem)]
    filesystem: Option<Filesystem>,
    /// `weir` program of an earlier build to include in the comparison; no cost may have risen by
    /// more than the noise.
    #[arg(long)]
    before: Option<PathBuf>,
    /// The program already runs in its own namespaces.
    #[arg(long, hide = true)]
    inside: bool,
}

fn filesystem(name: &str) -> Result<Filesystem, String> {
    let all = Filesystem::ALL.into_iter();
    all.clone().find(|filesystem| filesystem.name() == name).ok_or_else(|| {
        format!("{name:?} is none of {}", all.map(Filesystem::name).collect::<Vec<_>>().join(", "))
    })
}

impl Command {
    /// Carries the command out; `true` if everything was as it must be.
    pub(crate) fn run(self) -> Result<bool> {
        let mut times = Times {
            warmup_s: self.warmup,
            measured_s: self.seconds,
            rounds: self.rounds,
            generator_threads: self.generator_threads,
        };
        let mut filesystems =
            self.filesystem.map_or_else(|| Filesystem::ALL.to_vec(), |only| vec![only]);
        if self.quick {
            times = Times { warmup_s: 0.5, measured_s: 1.0, rounds: 1, ..times };
            filesystems.truncate(1);
        }
        let options = Options {
            weir: crate::weir_program(None)?,
            bare: crate::this_program()?,
            before: self
                .before
                .map(|path| path.canonicalize().with_context(|| format!("{}", path.display())))
                .transpose()?,
            work: self.work,
            out: self.out,
            times,
            filesystems,
            only: self.only,
            inside: self.inside,
        };
        // Threads must not exist yet when the program moves into its namespaces.
        let stop = if options.inside { Stop::on_signals()? } else { Stop::default() };
        super::run(&options, &stop)
    }
}
