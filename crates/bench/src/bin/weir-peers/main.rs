//! `make peers`: compares Weir with NFS-Ganesha and the bare loop on this machine.

use anyhow::{Context, Result};
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bench::demo::Stop;
use weir_bench::peers::{self, Filesystem, Options, Times};

/// Compare Weir with NFS-Ganesha and the bare loop, as root, and write peers.json and peers.html.
///
/// The exit status is 1 if a threshold was missed, and 2 if the measurement failed.
#[derive(Debug, Parser)]
#[command(name = "weir-peers", version)]
struct Arguments {
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

fn main() -> ExitCode {
    match compare(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            weir_bench::errln!("weir-peers: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn compare(arguments: Arguments) -> Result<bool> {
    let own = std::env::current_exe().context("can't find this program")?;
    let beside = |name: &str| {
        let path = own.with_file_name(name);
        anyhow::ensure!(path.exists(), "{} is missing: build it first", path.display());
        Ok(path)
    };
    let mut times = Times {
        warmup_s: arguments.warmup,
        measured_s: arguments.seconds,
        rounds: arguments.rounds,
        generator_threads: arguments.generator_threads,
    };
    let mut filesystems =
        arguments.filesystem.map_or_else(|| Filesystem::ALL.to_vec(), |only| vec![only]);
    if arguments.quick {
        times = Times { warmup_s: 0.5, measured_s: 1.0, rounds: 1, ..times };
        filesystems.truncate(1);
    }
    let options = Options {
        weir: beside("weir")?,
        bare: beside("weir-bare")?,
        before: arguments
            .before
            .map(|path| path.canonicalize().with_context(|| format!("{}", path.display())))
            .transpose()?,
        work: arguments.work,
        out: arguments.out,
        times,
        filesystems,
        only: arguments.only,
        inside: arguments.inside,
    };
    // Threads must not exist yet when the program moves into its namespaces.
    let stop = if options.inside { Stop::on_signals()? } else { Stop::default() };
    peers::run(&options, &stop)
}
