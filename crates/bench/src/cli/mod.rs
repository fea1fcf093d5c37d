//! `weir bench`: the load generator and the benchmark suite from the command line.
//!
//! One load described by options needs no subcommand; everything else has one.

mod args;
mod choose;
mod claimed;
pub mod compare;
mod dry;
mod fit;
mod hosts;
mod list;
mod method;
mod output;
mod place;
pub mod report;
mod run;
pub(crate) mod sampler;
mod search;
mod served;
mod show;
mod single;
mod steps;
mod table;
mod targets;
mod values;
pub mod worker;

pub use args::{BenchArgs, LoadArgs};
pub use served::{Ask, Served};

use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_load::control::Control;
use weir_load::error::BenchError;

const EXAMPLES: &str = "\
Examples:
  Random 8 KiB reads for a minute, 4 connections with 16 requests in flight on each:
    weir bench nfs://127.0.0.1:2049/vol --rw randread --bs 8KiB --jobs 4 --depth 16 --time 1m

  Forty clients, each from an address of its own, writing; every block verified afterwards:
    weir bench nfs://127.0.0.1:2049/vol --rw randwrite --bs 8KiB --jobs 40 --clients 40 \\
        --depth 32 --size 64MiB --verify

  The same files for several measurements, laid out by 4 KiB writes:
    weir bench nfs://127.0.0.1:2049/vol --rw randwrite --layout-block 4KiB --keep
    weir bench nfs://127.0.0.1:2049/vol --rw randrw --reuse

  An SMB share with encryption; the password is the value of WEIR_SMB_PASSWORD:
    weir bench smb://alice@127.0.0.1/vol --smb-security seal --rw randwrite --bs 8KiB --jobs 4

  A mounted path without the client's cache, and the result as JSON:
    weir bench /mnt/vol --rw read --bs 1MiB --direct --output json

  A published test scaled to this machine, with a report (see weir bench run --help):
    weir bench run anf-linux-4k-random nfs://127.0.0.1:2049/vol --scale auto --out report

Exit status: 0 on success; 1 if an operation failed, a connection was lost, verification found a
mismatch or could not read everything back, the files could not be removed, the run was interrupted,
or the measurement could not be made; 2 for an invalid command line. A result is printed whenever
load was applied.";

/// Benchmark a NAS: apply a load, and report throughput, latency and errors
///
/// The target is an NFSv3 export (nfs://HOST/EXPORT) or an SMB 3.1.1 share (smb://USER@HOST/SHARE),
/// accessed from user space without a mount and without privileges, or a directory of a mounted
/// file system. The files are created in a separate directory, written before the measurement, and
/// removed afterwards.
///
/// Without a subcommand, one load described by the options is applied. The subcommands run
/// published tests and loads written for fio, Vdbench and diskspd, search for limits, and compare
/// and report results. If a directory has the name of a subcommand, write it as ./list.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true,
          after_long_help = EXAMPLES, max_term_width = 100)]
pub struct BenchCommand {
    /// The subcommand, if any.
    #[command(subcommand)]
    pub command: Option<BenchSubcommand>,
    /// The load.
    #[command(flatten)]
    pub load: BenchArgs,
}

impl BenchCommand {
    /// Is only the result wanted, no progress?
    fn is_quiet(&self) -> bool {
        match &self.command {
            None => self.load.quiet,
            Some(BenchSubcommand::Run(args)) => args.output.quiet,
            Some(BenchSubcommand::Search(args)) => args.output.quiet,
            // The other subcommands contact no target; a worker reports to its coordinator.
            Some(_) => true,
        }
    }
}

/// The subcommands of `weir bench`.
#[derive(Subcommand, Clone, Debug)]
#[expect(missing_docs, reason = "the help of a subcommand is that of its arguments")]
pub enum BenchSubcommand {
    List(list::ListArgs),
    Run(Box<run::RunArgs>),
    Search(Box<search::SearchArgs>),
    Compare(compare::CompareArgs),
    Report(report::ReportArgs),
    Worker(worker::WorkerArgs),
}

/// Format of the result on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text for people.
    Table,
    /// JSON for programs.
    Json,
}

/// An error of `weir bench`.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line is invalid in a way that parsing alone does not find.
    #[error("{0}")]
    Usage(String),
    /// The measurement could not be made.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Results could not be read or shown.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// The process given by `--server-pid` does not exist.
    #[error("cannot read the CPU time of --server-pid {pid}")]
    Server {
        /// The process id given.
        pid: u32,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The result could not be written.
    #[error("cannot write the result to {path}", path = path.display())]
    Output {
        /// The file, or "standard output".
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Runs the command and prints the result in the format `format`. The caller can stop it early
/// through `control`; the results measured so far are still printed. `ask` asks the Weir server
/// that the user named, if any; it is asked only by what measures.
///
/// Returns the problems that were found, one sentence each; none if all went well.
///
/// # Errors
/// [`CliError`] says what to do.
pub fn run(
    command: &BenchCommand,
    format: Format,
    control: &Control,
    ask: &Ask<'_>,
) -> Result<Vec<String>, CliError> {
    if !command.is_quiet() {
        control.on_wait(|sentence| weir_report::errln!("{sentence}"));
    }
    match &command.command {
        None => single::run(&command.load, format, control),
        Some(BenchSubcommand::List(args)) => list::run(args, format).map(nothing),
        Some(BenchSubcommand::Run(args)) => run::run(args, format, control, ask),
        Some(BenchSubcommand::Search(args)) => search::run(args, format, control, ask),
        Some(BenchSubcommand::Compare(args)) => Ok(compare::run(args, format).map(nothing)?),
        Some(BenchSubcommand::Worker(args)) => worker::run(args, control).map(nothing),
        Some(BenchSubcommand::Report(args)) => Ok(report::run(args, format).map(nothing)?),
    }
}

/// The problems reported by a command that does not measure: none.
const fn nothing((): ()) -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: BenchCommand,
    }

    fn parse(words: &[&str]) -> Result<BenchCommand, String> {
        let words = std::iter::once("bench").chain(words.iter().copied());
        Program::try_parse_from(words).map(|program| program.bench).map_err(|e| e.to_string())
    }

    #[test]
    fn the_arguments_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn options_alone_are_one_load() {
        let one = parse(&["/mnt", "--rw", "read", "--json", "x"]).unwrap();
        assert!(one.command.is_none());
        assert_eq!(one.load.load.target_text(), "/mnt");
        assert!(parse(&[]).unwrap_err().contains("TARGET"), "a target is wanted");
    }

    #[test]
    fn published_command_lines_are_taken_as_they_are() {
        let words = [
            "run",
            "--target",
            "nfs://10.0.0.4/vol",
            "--map",
            "z:=",
            "--",
            "diskspd.exe",
            "-c2G",
            "-b4K",
            "-w20",
            "z:\\testfile.dat",
        ];
        let Some(BenchSubcommand::Run(run)) = parse(&words).unwrap().command else {
            panic!("a run")
        };
        assert_eq!(run.choice.line.len(), 5);
        assert_eq!(run.choice.target[0].text, "nfs://10.0.0.4/vol");
        let Some(BenchSubcommand::Run(run)) =
            parse(&["run", "a", "b.fio", "/mnt", "--scale", "auto", "--steady"]).unwrap().command
        else {
            panic!("a run")
        };
        assert_eq!(run.choice.what, ["a", "b.fio", "/mnt"]);
        assert_eq!(run.method.steady.map(|time| time.as_secs()), Some(300));
    }

    #[test]
    fn contradictions_are_refused() {
        for words in [
            &["run"][..],
            &["run", "a", "/mnt", "--keep", "--reuse"],
            &["run", "a", "/mnt", "--repeats", "0"],
            &["run", "a", "/mnt", "--map", "z:"],
            &["run", "a", "/mnt", "--scale", "2"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
