//! A gateway as an operator has it: a machine with a data directory, the helper and the server as
//! processes of their own.

use super::clock::Clock;
use super::engines::Engines;
use super::network::{CLIENTS, INTERFACE, Machine, address_of};
use super::operator::Operator;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir_lab::process::Process;

/// Name of the cluster.
pub(super) const CLUSTER: &str = "demo";
/// Port of the server for other gateways.
const LINKS_PORT: u16 = 7440;
/// Port of the helper for other gateways.
const HELPER_PORT: u16 = 7441;
/// Port of NFS.
pub(crate) const NFS_PORT: u16 = 2049;
/// Grace period after a takeover, as the option of the server has it.
const GRACE_SECS: &str = "5";
/// Longest time until a helper listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program and the directories of all gateways.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The `weir` program.
    pub(crate) weir: PathBuf,
    /// The directory of data directories.
    pub(crate) work: PathBuf,
    /// The directory of logs.
    pub(crate) logs: PathBuf,
    /// Further options of the servers.
    pub(crate) serve: &'static [&'static str],
    /// The library by which servers have clocks of their own, if they are to have them.
    pub(crate) clock: Option<PathBuf>,
}

/// A gateway, whose processes end with this.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// Number of its machine.
    number: u8,
    weir: PathBuf,
    data: PathBuf,
    log: PathBuf,
    serve: &'static [&'static str],
    clock: Option<Clock>,
    // The server ends before the helper, in the order of these fields.
    server: Option<Process>,
    helper: Option<Process>,
}

impl Gateway {
    /// Makes the data directory of a gateway: the first creates the cluster, all others join it
    /// with the key of the first.
    ///
    /// # Errors
    /// In the words of `weir gateway`.
    pub(crate) fn create(
        programs: &Programs,
        engines: &Engines,
        number: u8,
        first: Option<&Self>,
    ) -> Result<Self> {
        let name = Self::name_of(number);
        let mut gateway = Self {
            number,
            weir: programs.weir.clone(),
            data: programs.work.join(&name),
            log: programs.logs.join(format!("{name}.log")),
            serve: programs.serve,
            clock: None,
            server: None,
            helper: None,
        };
        std::fs::create_dir_all(&gateway.data)?;
        let clock = |library| Clock::new(library, gateway.data.with_extension("clock"));
        gateway.clock = programs.clock.as_deref().map(clock).transpose()?;
        let mut command = gateway.command();
        command.args(["gateway", if first.is_some() { "join" } else { "init" }, "--data"]);
        command.arg(&gateway.data).args(["--cluster", CLUSTER, "--gateway", &name]);
        let at = |port| format!("{}:{port}", address_of(gateway.machine()));
        command.args(["--links", &at(LINKS_PORT), "--helper-links", &at(HELPER_PORT)]);
        command.args(["--etcd", &Engines::etcd_urls(), "--interface", INTERFACE]);
        command.arg("--ceph-conf").arg(engines.ceph_conf());
        command.arg("--helper-socket").arg(gateway.socket());
        if let Some(first) = first {
            command.arg("--key").arg(first.data.join("cluster.key"));
        }
        let output = gateway.machine().within(|| command.output().context("cannot run weir"))?;
        if !output.status.success() {
            bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(gateway)
    }

    /// Has a stranger join the cluster from the machine of the clients, with a key file, under a
    /// name. Its data directory goes away. Returns the error that the program prints, in JSON, if
    /// it refuses.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub(crate) fn stranger(
        &self,
        engines: &Engines,
        key: &Path,
        name: &str,
    ) -> Result<Option<String>> {
        let data = self.data.with_file_name("stranger");
        let mut command = self.command();
        command.args(["gateway", "join", "--cluster", CLUSTER, "--gateway", name, "--data"]);
        command.arg(&data).arg("--key").arg(key);
        let at = |port| format!("{}:{port}", address_of(CLIENTS));
        command.args(["--links", &at(LINKS_PORT), "--helper-links", &at(HELPER_PORT)]);
        command.args(["--etcd", &Engines::etcd_urls(), "--interface", INTERFACE]);
        command.arg("--ceph-conf").arg(engines.ceph_conf()).args(["--output", "json"]);
        let output = CLIENTS.within(|| command.output().context("cannot run weir"));
        // It may not have made any.
        drop(std::fs::remove_dir_all(&data));
        let output = output?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Ok((!output.status.success()).then_some(words))
    }

    /// Its name in the cluster.
    pub(crate) fn name(&self) -> String {
        Self::name_of(self.number)
    }

    fn name_of(number: u8) -> String {
        format!("gateway-{number}")
    }

    /// The number of its machine, and of the gateway.
    pub(crate) const fn number(&self) -> u8 {
        self.number
    }

    /// The program that is installed.
    pub(crate) fn program(&self) -> &Path {
        &self.weir
    }

    /// Its machine.
    pub(crate) const fn machine(&self) -> Machine {
        Machine::Gateway(self.number)
    }

    /// Starts the helper, unless it runs, and the server. Returns once the server answers its
    /// operator.
    ///
    /// # Errors
    /// If one of them ends, or does not answer in time.
    pub(crate) fn start(&mut self) -> Result<Operator> {
        self.launch()?;
        let data = self.data.clone();
        let operator = Operator::connect(&data, || self.still_runs());
        operator.with_context(|| format!("{}; see {}", self.name(), self.log.display()))
    }

    /// Starts the helper, unless it runs, and the server, and does not wait for the server.
    ///
    /// # Errors
    /// If the helper does not listen in time.
    pub(crate) fn launch(&mut self) -> Result<()> {
        if self.helper.is_none() {
            let mut helper = self.command();
            helper.args(["gateway", "helper", "--data"]).arg(&self.data);
            self.helper = Some(self.spawn(&mut helper)?);
            self.wait_for_helper()?;
        }
        self.server = Some(self.spawn(&mut self.server_of(&self.weir))?);
        Ok(())
    }

    /// The command that serves with a program.
    fn server_of(&self, weir: &Path) -> Command {
        let mut server = Command::new(weir);
        server.stdin(Stdio::null());
        server.args(["serve", "--api", "none", "--nfs", &format!("0.0.0.0:{NFS_PORT}")]);
        server.args(["--rpcbind", "serve", "--grace-period-secs", GRACE_SECS]);
        server.arg("--data").arg(&self.data).args(self.serve);
        if let Some(clock) = &self.clock {
            clock.give_to(&mut server);
        }
        server
    }

    /// Has the server take other options beside those of all campaigns when it starts next.
    pub(crate) const fn serve_with(&mut self, options: &'static [&'static str]) {
        self.serve = options;
    }

    /// The process id of the server.
    ///
    /// # Errors
    /// If it does not run.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.server.as_ref().map(Process::pid).context("the server does not run")
    }

    /// Installs another program. Processes that run go on with theirs.
    pub(crate) fn install(&mut self, weir: &Path) {
        weir.clone_into(&mut self.weir);
    }

    /// Stops the server in order (SIGTERM), and the helper after it, unless that `stays`.
    ///
    /// # Errors
    /// If the server had ended by itself.
    pub(crate) fn stop(&mut self, stays: bool) -> Result<()> {
        self.still_runs()?;
        drop(self.server.take());
        if !stays {
            drop(self.helper.take());
        }
        Ok(())
    }

    /// Asks the server to end (SIGTERM), and waits until it has.
    ///
    /// # Errors
    /// If it had ended by itself.
    pub(crate) fn end(&mut self) -> Result<ExitStatus> {
        self.still_runs()?;
        let mut server = self.server.take().context("the server does not run")?;
        server.end()
    }

    /// Starts the server with a program that is expected to be refused by the cluster. Waits until
    /// it ends, or says in its log what it waits for, in these words. Returns what it has said.
    ///
    /// # Errors
    /// If it does neither in time.
    pub(crate) fn refused(&self, weir: &Path, words: &str) -> Result<String> {
        let (begun, from) = (Instant::now(), self.log_bytes());
        let mut server = self.spawn(&mut self.server_of(weir))?;
        while server.ended()?.is_none() && !self.log_from(from).contains(words) {
            if begun.elapsed() > PATIENCE {
                bail!("{}, as an older version, serves; see {}", self.name(), self.log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(server);
        Ok(self.log_from(from))
    }

    /// Carries out a command of an operator with a program, on the machine of the gateway. Returns
    /// what it prints.
    ///
    /// # Errors
    /// In the words of the program.
    pub(crate) fn operate(&self, weir: &Path, words: &[&str]) -> Result<String> {
        let mut command = Command::new(weir);
        command.stdin(Stdio::null()).arg("--data").arg(&self.data).args(words);
        let output = self.machine().within(|| command.output().context("cannot run weir"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("weir {} at {}: {}", words.join(" "), self.name(), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Kills the server (SIGKILL). The helper stays, as it does on a real machine.
    ///
    /// # Errors
    /// If the server had ended by itself.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.still_runs()?;
        let mut server = self.server.take().context("the server does not run")?;
        server.kill()
    }

    /// Kills the server and the helper (SIGKILL), as the end of the machine does.
    ///
    /// # Errors
    /// If one of them had ended by itself.
    pub(crate) fn kill_all(&mut self) -> Result<()> {
        self.kill()?;
        let mut helper = self.helper.take().context("the helper does not run")?;
        helper.kill()
    }

    /// Sends the server a signal: SIGSTOP or SIGCONT.
    ///
    /// # Errors
    /// If the server does not run.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid()?).ok().and_then(Pid::from_raw);
        kill_process(pid.context("there is no such process")?, signal)
            .context("the server cannot be sent a signal")
    }

    /// Sets the time of day of the server this many seconds ahead of the machine's.
    ///
    /// # Errors
    /// If it has no clock of its own.
    pub(crate) fn set_clock(&self, ahead_s: i64) -> Result<()> {
        self.clock.as_ref().context("the gateway has no clock of its own")?.set(ahead_s)
    }

    /// The messages of all its processes so far, from this byte on.
    pub(crate) fn log_from(&self, byte: u64) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let from = usize::try_from(byte).unwrap_or(usize::MAX).min(text.len());
        String::from_utf8_lossy(text.get(from..).unwrap_or_default()).into_owned()
    }

    /// The length of its messages in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |log| log.len())
    }

    /// The key file of the cluster.
    pub(crate) fn key(&self) -> PathBuf {
        self.data.join("cluster.key")
    }

    /// Checks that the server has not ended by itself.
    ///
    /// # Errors
    /// If it has.
    pub(crate) fn still_runs(&mut self) -> Result<()> {
        let name = self.name();
        let Some(server) = &mut self.server else { return Ok(()) };
        match server.ended()? {
            Some(status) => {
                bail!("{name} ended by itself ({status}); see {}", self.log.display())
            }
            None => Ok(()),
        }
    }

    fn socket(&self) -> PathBuf {
        self.data.join("helper.sock")
    }

    fn wait_for_helper(&mut self) -> Result<()> {
        let (socket, begun) = (self.socket(), Instant::now());
        loop {
            if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
                return Ok(());
            }
            let ended = self.helper.as_mut().map(Process::ended).transpose()?.flatten();
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let name = self.name();
                bail!("the helper of {name} does not listen; see {}", self.log.display());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.weir);
        command.stdin(Stdio::null());
        command
    }

    /// Starts a process on the machine, with its output in the log.
    fn spawn(&self, command: &mut Command) -> Result<Process> {
        let output = open(&self.log)?;
        command.stdout(output.try_clone()?).stderr(output);
        self.machine().within(|| Process::start(command))
    }
}

fn open(log: &Path) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(log);
    opened.with_context(|| format!("cannot write {}", log.display()))
}
