//! The arguments of `weir bench worker`, and those with which a run is given workers.

use super::CliError;
use crate::cluster::{
    Clock, Farewell, Halves, Identity, Launch, Patience, Program, Wanted, Worker, WorkerPlace,
    this_machine, welcome,
};
use crate::suite::Workers;
use clap::Args;
use std::convert::Infallible;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use weir_load::control::Control;
use weir_load::error::BenchError;
use weir_load::target::Targets;

const EXAMPLES: &str = "\
Examples:
  The coordinator starts its workers over ssh; nothing has to be started on the machines:
    weir bench run test.toml nfs://192.0.2.1/vol --worker ssh:root@client1 --worker ssh:root@client2

Exit status: 0 if stopped by the coordinator or by a signal; 1 if the worker lost the coordinator;
2 for an invalid command line.";

/// Run a worker that applies load for a coordinator on another machine
///
/// A worker applies its part of each load and returns its measurements. It is started by
/// `weir bench run`, over ssh or on the same machine, and serves its coordinator on standard input
/// and output.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct WorkerArgs {
    /// Serve one coordinator on standard input and output.
    #[arg(long, required = true)]
    pub stdio: bool,
    /// Name of this worker, if the coordinator gives it none [default: the host name].
    #[arg(long)]
    pub name: Option<String>,
    /// Removed; the error says what to use.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = removed)]
    listen: Option<Infallible>,
    /// Removed with `--listen`.
    #[arg(long, hide = true, value_parser = removed)]
    secret_file: Option<Infallible>,
}

/// Workers that apply the load; without any, this process applies it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workers")]
pub struct WorkersArgs {
    /// A worker that is started over ssh on another machine; repeatable. With a `NAME=` prefix, the
    /// worker is known by that name to loads that name hosts.
    #[arg(long, value_name = "[NAME=]ssh:[USER@]HOST", value_parser = worker)]
    pub worker: Vec<Wanted>,
    /// Number of workers to start on this machine, 1 to 256. They also stand for hosts that loads
    /// name and for which there is no --worker, in turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub local_workers: Option<u32>,
    /// Command to use as `ssh`, with arguments separated by blanks.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh: String,
    /// Program to start on machines reached by ssh.
    #[arg(long, value_name = "PROGRAM", default_value = "weir")]
    pub worker_program: String,
    /// Copy this program to machines reached by ssh, and start the copy, which is removed at once;
    /// nothing has to be installed there. The machines need the same processor architecture, and
    /// a directory for temporary files ($TMPDIR or /tmp) from which programs can be started.
    #[arg(long, conflicts_with = "worker_program")]
    pub copy_program: bool,
    /// Removed; the error says what to use.
    #[arg(long, hide = true, value_parser = removed)]
    workers: Option<Infallible>,
    /// Removed with `--workers`.
    #[arg(long, hide = true, value_parser = removed)]
    secret_file: Option<Infallible>,
}

/// The value parser of the options of listening workers, which always fails.
fn removed(_: &str) -> Result<Infallible, String> {
    Err("workers cannot listen on a port any more; `weir bench run --worker ssh:[USER@]HOST` \
         starts a worker over ssh, and nothing has to be started on its machine"
        .to_owned())
}

fn worker(text: &str) -> Result<Wanted, String> {
    text.trim().parse()
}

/// Runs a worker until it is stopped by `control`, by SIGTERM or SIGINT, or by its
/// coordinator.
///
/// # Errors
/// [`CliError`] says what to do.
pub fn run(args: &WorkerArgs, control: &Control) -> Result<(), CliError> {
    end_on_signals(control.clone())?;
    let machine = this_machine();
    let name = args.name.clone().unwrap_or_else(|| machine.name.clone());
    let worker = Worker {
        identity: Identity { name, machine },
        clock: Clock::new(),
        patience: Patience::default(),
    };
    Ok(serve_stdio(&worker, control)?)
}

fn serve_stdio(worker: &Worker, control: &Control) -> Result<(), BenchError> {
    let mut halves = Halves::stdio();
    let greeted = welcome(&mut halves, &worker.identity);
    greeted.map_err(|error| {
        BenchError::Peer(format!(
            "no coordinator speaks on standard input ({error}); `weir bench run` starts such a \
             worker itself"
        ))
    })?;
    match worker.serve(halves, control)? {
        Farewell::Bye | Farewell::Told => Ok(()),
        Farewell::Lost(why) => Err(BenchError::Peer(format!("lost the coordinator: {why}"))),
    }
}

/// Signals only request the end of the worker, so that it can clean up first.
fn end_on_signals(control: Control) -> Result<(), BenchError> {
    let failed = |source| BenchError::Local { what: "watching for signals", source };
    let runtime = Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let (mut term, mut interrupt) = {
        let _inside = runtime.enter();
        let term = signal(SignalKind::terminate()).map_err(failed)?;
        (term, signal(SignalKind::interrupt()).map_err(failed)?)
    };
    let watch = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        control.stop();
    };
    std::thread::Builder::new().name("bench-signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}

impl WorkersArgs {
    /// The requested workers, with name and location.
    #[must_use]
    pub fn wanted(&self) -> Vec<Wanted> {
        let local = (1..=self.local_workers.unwrap_or(0))
            .map(|number| Wanted { name: format!("local-{number}"), place: WorkerPlace::Local });
        self.worker.iter().cloned().chain(local).collect()
    }

    /// Starts the workers `wanted`. Dropping the result stops them.
    ///
    /// # Errors
    /// [`BenchError`] names the worker, and says what to do.
    pub fn connect(&self, targets: Targets, wanted: &[Wanted]) -> Result<Workers, BenchError> {
        let patience = Patience::default();
        let launch = Launch {
            ssh: self.ssh.split_whitespace().map(str::to_owned).collect(),
            program: match self.copy_program {
                true => Program::Copied,
                false => Program::There(self.worker_program.clone()),
            },
            patience,
        };
        Workers::new(targets, launch.all(wanted)?, patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    enum Program {
        Worker(WorkerArgs),
        Run(WorkersArgs),
    }

    fn parse(line: &str) -> Result<Program, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Program::try_parse_from(words).map_err(|error| error.to_string())
    }

    fn workers(line: &str) -> WorkersArgs {
        match parse(line).unwrap() {
            Program::Run(args) => args,
            Program::Worker(_) => panic!("a worker"),
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn a_worker_serves_its_coordinator_on_stdio() {
        assert!(matches!(parse("worker --stdio"), Ok(Program::Worker(args)) if args.stdio));
        assert!(parse("worker").is_err());
    }

    #[test]
    fn workers_are_named_in_two_ways_together() {
        let args = workers("run --worker ssh:h1 --worker hd3=ssh:me@h3 --local-workers 2");
        assert_eq!(WorkersArgs::default().wanted(), []);
        let wanted = args.wanted();
        let names: Vec<_> = wanted.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["h1", "hd3", "local-1", "local-2"]);
        assert_eq!(wanted[1].place, WorkerPlace::Ssh("me@h3".to_owned()));
    }

    #[test]
    fn removed_options_say_what_to_use() {
        for old in [
            "worker --listen",
            "worker --listen 10.0.0.1:7420 --secret-file t",
            "run --workers h1,h2",
            "run --local-workers 2 --secret-file t",
            "run --worker h1:7420",
        ] {
            let error = parse(old).err().unwrap();
            assert!(error.contains("any more") && error.contains("ssh:[USER@]HOST"), "{error}");
        }
    }
}
