//! The arguments of `weir bench worker`, and those with which a run is given workers.

use super::CliError;
use crate::cluster::{
    Clock, Farewell, Halves, Happened, Identity, Launch, PORT, Patience, Place, Token, Wanted,
    Worker, listen, this_machine, welcome,
};
use crate::suite::Workers;
use clap::{ArgGroup, Args};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use weir_load::control::Control;
use weir_load::error::BenchError;
use weir_load::target::Target;

const EXAMPLES: &str = "\
Examples:
  On each load machine, with the same secret in the file:
    head -c 32 /dev/urandom | base64 >token && chmod 600 token
    weir bench worker --listen 192.0.2.11:7420 --secret-file token

  On the coordinating machine:
    weir bench run test.toml nfs://192.0.2.1/vol --workers 192.0.2.11,192.0.2.12 --secret-file token

  With ssh access to the machines, nothing has to be started on them:
    weir bench run test.toml nfs://192.0.2.1/vol --worker ssh:root@client1 --worker ssh:root@client2

Exit status: 0 if stopped by the coordinator of --stdio or by a signal; 1 if the worker could not
listen, or lost the coordinator of --stdio; 2 for an invalid command line.";

/// Run a worker that applies load for a coordinator on another machine
///
/// A worker applies its part of each load and returns its measurements. It accepts only
/// coordinators that prove knowledge of the shared secret, and serves one coordinator at a time.
/// The connection is not encrypted: on untrusted networks, use ssh.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
#[command(group = ArgGroup::new("how").required(true).args(["listen", "stdio"]))]
pub struct WorkerArgs {
    /// Listen for coordinators on this address, serving one at a time [default port: 7420].
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, value_parser = listen_address,
          default_missing_value = "127.0.0.1:7420", requires = "secret_file")]
    pub listen: Option<SocketAddr>,
    /// Serve one coordinator on standard input and output; used by coordinators that start the
    /// worker.
    #[arg(long)]
    pub stdio: bool,
    /// File with the secret shared with the coordinator: at least 16 bytes, readable by its owner
    /// only.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Name of this worker, if the coordinator gives it none [default: the host name].
    #[arg(long)]
    pub name: Option<String>,
}

/// Workers that apply the load; without any, this process applies it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workers")]
pub struct WorkersArgs {
    /// Listening workers (`weir bench worker --listen`), separated by commas [default port: 7420].
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub workers: Vec<String>,
    /// One worker: `HOST:PORT` for a listening worker, or `ssh:[USER@]HOST` to start one over ssh.
    /// With a `NAME=` prefix, the worker is known by that name to loads that name hosts.
    #[arg(long, value_name = "[NAME=]PLACE")]
    pub worker: Vec<String>,
    /// Number of workers to start on this machine, 1 to 256.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub local_workers: Option<u32>,
    /// File with the secret shared with listening workers.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Command to use as `ssh`, with arguments separated by blanks.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub ssh: String,
    /// Program to start on machines reached by ssh.
    #[arg(long, value_name = "PROGRAM", default_value = "weir")]
    pub worker_program: String,
}

/// Runs a worker until it is stopped by `control`, by SIGTERM or SIGINT, or by the coordinator of
/// `--stdio`.
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
    match args.listen {
        Some(address) => Ok(wait_for_coordinators(args, address, worker, control)?),
        None => Ok(serve_stdio(&worker, control)?),
    }
}

fn wait_for_coordinators(
    args: &WorkerArgs,
    address: SocketAddr,
    worker: Worker,
    control: &Control,
) -> Result<(), BenchError> {
    let file = args
        .secret_file
        .as_deref()
        .ok_or_else(|| BenchError::Peer("a worker that listens needs --secret-file".to_owned()))?;
    let token = Token::read(file)?;
    let name = worker.identity.name.clone();
    listen(address, token, worker, control, move |happened| {
        let what = match happened {
            Happened::Listening(address) => format!("worker {name} listens on {address}"),
            Happened::Refused(peer, why) => format!("{peer} was refused: {why}"),
            Happened::Began(peer) => format!("serving the coordinator at {peer}"),
            Happened::Ended(peer, Farewell::Bye) => format!("the coordinator at {peer} is done"),
            Happened::Ended(_, Farewell::Told) => "asked to stop".to_owned(),
            Happened::Ended(peer, Farewell::Lost(why)) => {
                format!("lost the coordinator at {peer}: {why}")
            }
        };
        weir_report::errln!("{what}");
    })
}

fn serve_stdio(worker: &Worker, control: &Control) -> Result<(), BenchError> {
    let mut halves = Halves::stdio();
    let greeted = welcome(&mut halves, &worker.identity, None, || Ok(()));
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
    /// Whether any worker is requested.
    #[must_use]
    pub fn any(&self) -> bool {
        !self.workers.is_empty() || !self.worker.is_empty() || self.local_workers.is_some()
    }

    /// The requested workers, with name and location.
    ///
    /// # Errors
    /// [`BenchError::Peer`] names the one that cannot be parsed.
    pub fn wanted(&self) -> Result<Vec<Wanted>, BenchError> {
        let written = self.workers.iter().chain(&self.worker);
        let mut wanted = written
            .map(|text| text.trim().parse().map_err(BenchError::Peer))
            .collect::<Result<Vec<Wanted>, _>>()?;
        for number in 1..=self.local_workers.unwrap_or(0) {
            wanted.push(Wanted { name: format!("local-{number}"), place: Place::Local });
        }
        let listening = wanted.iter().any(|one| matches!(one.place, Place::Listening(_)));
        if listening && self.secret_file.is_none() {
            return Err(BenchError::Peer(
                "listening workers require a token: give --secret-file with the secret that the \
                 workers use"
                    .to_owned(),
            ));
        }
        Ok(wanted)
    }

    /// Connects to, or starts, all workers. Dropping the result stops the workers that were
    /// started.
    ///
    /// # Errors
    /// [`BenchError`] names the worker, and says what to do.
    pub fn connect(&self, target: Target) -> Result<Workers, BenchError> {
        let wanted = self.wanted()?;
        let patience = Patience::default();
        let launch = Launch {
            token: self.secret_file.as_deref().map(Token::read).transpose()?,
            ssh: self.ssh.split_whitespace().map(str::to_owned).collect(),
            program: self.worker_program.clone(),
            patience,
        };
        Workers::new(target, launch.all(&wanted)?, patience)
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let with_port = || bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    text.parse().or_else(|_| with_port()).map_err(|_| {
        format!("{text:?} is not a listen address such as 192.0.2.1:{PORT} or 0.0.0.0")
    })
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

    fn worker(line: &str) -> WorkerArgs {
        match parse(line).unwrap() {
            Program::Worker(args) => args,
            Program::Run(_) => panic!("a run"),
        }
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
    fn a_worker_listens_with_a_token_or_speaks_on_stdio() {
        assert!(worker("worker --stdio").stdio);
        let loopback = worker("worker --secret-file t --listen").listen.unwrap();
        assert_eq!(loopback, "127.0.0.1:7420".parse().unwrap());
        let given = worker("worker --listen 10.0.0.1 --secret-file t").listen.unwrap();
        assert_eq!(given, "10.0.0.1:7420".parse().unwrap());
        let six = worker("worker --listen [::1]:9 --secret-file t").listen.unwrap();
        assert_eq!(six, "[::1]:9".parse().unwrap());
        for wrong in [
            "worker",
            "worker --listen 127.0.0.1",
            "worker --stdio --listen 127.0.0.1 --secret-file t",
            "worker --listen example.org --secret-file t",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn workers_are_named_in_three_ways_together() {
        let args = workers(
            "run --workers h1,h2:99 --worker hd3=ssh:me@h3 --local-workers 2 --secret-file t",
        );
        assert!(args.any() && !WorkersArgs::default().any());
        let wanted = args.wanted().unwrap();
        let names: Vec<_> = wanted.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["h1", "h2:99", "hd3", "local-1", "local-2"]);
        assert_eq!(wanted[2].place, Place::Ssh("me@h3".to_owned()));
    }

    #[test]
    fn workers_that_listen_want_a_token() {
        let error = workers("run --workers h1").wanted().unwrap_err().to_string();
        assert!(error.contains("--secret-file"), "{error}");
        workers("run --worker ssh:h1").wanted().unwrap();
    }
}
