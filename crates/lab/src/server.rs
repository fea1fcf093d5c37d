//! The server under test: `weir serve`, on loopback unless told otherwise, as a child process that
//! can be killed and started again on the same data directory and address.

use crate::operator::Operator;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_load::NfsTarget;
use weir_load::engine::{Waits, mount};
use weir_nfs::client::Caller;

/// Longest time that a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two attempts to reach a server that begins.
const RETRY: Duration = Duration::from_millis(2);
/// Ports below those that the kernel gives to connections, so that the port stays free while the
/// server is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The `weir` program.
    pub(crate) weir: PathBuf,
    /// The data directory, which is created.
    pub(crate) data: PathBuf,
    /// The file to which the server's log is appended.
    pub(crate) log: PathBuf,
    /// The value of `--namespace-durability`.
    pub(crate) durability: &'static str,
    /// Whether the data directory is removed when the server is dropped.
    pub(crate) temporary: bool,
    /// Whether it serves SMB too, without requiring signatures.
    pub(crate) smb: bool,
    /// Whether it serves NFS on all addresses of the machine, not on loopback alone.
    pub(crate) everywhere: bool,
}

/// A server, running or not. Dropping it ends the process in order, and removes temporary data.
#[derive(Debug)]
pub(crate) struct TestServer {
    settings: Settings,
    address: SocketAddr,
    smb_address: SocketAddr,
    process: Option<Process>,
    started: Instant,
}

impl Settings {
    /// A server with a temporary data directory and a new log.
    ///
    /// # Errors
    /// If the files that an earlier server left there can't be removed.
    pub(crate) fn temporary(weir: &Path, data: PathBuf, log: PathBuf) -> Result<Self> {
        let removed = |outcome: std::io::Result<()>, path: &Path| match outcome {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        };
        removed(std::fs::remove_dir_all(&data), &data)?;
        removed(std::fs::remove_file(&log), &log)?;
        Ok(Self {
            weir: weir.to_owned(),
            data,
            log,
            durability: "power",
            temporary: true,
            smb: false,
            everywhere: false,
        })
    }
}

impl TestServer {
    /// A server that is not started yet, on a free port.
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let mut ports = PORTS.clone().filter(free);
        let mut address = || -> Result<SocketAddr> {
            let port = ports.next().context("no free port on loopback")?;
            Ok((Ipv4Addr::LOCALHOST, port).into())
        };
        let (address, smb_address) = (address()?, address()?);
        Ok(Self { settings, address, smb_address, process: None, started: Instant::now() })
    }

    /// A server that accepts connections, and its operator.
    ///
    /// # Errors
    /// If the program can't be started, or has ended or not answered within [`PATIENCE`].
    pub(crate) fn start_new(settings: Settings) -> Result<(Self, Operator)> {
        let mut server = Self::new(settings)?;
        server.start()?;
        server.wait(|address| Ok(TcpStream::connect_timeout(&address, PATIENCE)?))?;
        let operator = server.operator()?;
        Ok((server, operator))
    }

    /// The server's address for NFS and MOUNT.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's address for SMB.
    pub(crate) const fn smb_address(&self) -> SocketAddr {
        self.smb_address
    }

    /// The server's data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.settings.data
    }

    /// The server's process id.
    ///
    /// # Errors
    /// If it is not running.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.process.as_ref().map(Process::pid).context("the server is not running")
    }

    /// A client of the server's API, as soon as it answers.
    pub(crate) fn operator(&self) -> Result<Operator> {
        Operator::connect(self.data())
    }

    /// Starts the server; does not wait until it serves.
    pub(crate) fn start(&mut self) -> Result<()> {
        let Settings { weir, data, log, durability, smb, everywhere, .. } = &self.settings;
        std::fs::create_dir_all(data)
            .with_context(|| format!("cannot create the data directory {}", data.display()))?;
        let output = OpenOptions::new().create(true).append(true).open(log);
        let output = output.with_context(|| format!("cannot write {}", log.display()))?;
        let mut listen = self.address;
        if *everywhere {
            listen.set_ip(Ipv4Addr::UNSPECIFIED.into());
        }
        let mut command = Command::new(weir);
        command
            .args(["serve", "--namespace-durability", durability, "--api", "none", "--data"])
            .arg(data)
            .args(["--nfs", &listen.to_string()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        if *smb {
            command.args(["--smb", &self.smb_address.to_string(), "--smb-signing", "offered"]);
        }
        self.started = Instant::now();
        self.process = Some(Process::start(&mut command)?);
        Ok(())
    }

    /// The time since the server was started last.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Kills the server (SIGKILL).
    ///
    /// # Errors
    /// If it had ended by itself, which it never should.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.still_runs()?;
        self.kill_if_running()
    }

    /// Kills the server if it still runs: without its disk it may have ended.
    pub(crate) fn kill_if_running(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |mut process| process.kill())
    }

    /// Stops the server in order (SIGTERM).
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }

    /// The handle of an export's top directory, as soon as the server gives it.
    pub(crate) fn mount(&mut self, export: &str, caller: &Caller) -> Result<Box<[u8]>> {
        self.wait(|address| Ok(mount(&NfsTarget::new(address, export), caller, &Waits::default())?))
    }

    /// Calls `ask` until it succeeds.
    ///
    /// # Errors
    /// If the server ends by itself, or `ask` still fails [`PATIENCE`] after its start.
    pub(crate) fn wait<T>(&mut self, ask: impl Fn(SocketAddr) -> Result<T>) -> Result<T> {
        loop {
            let error = match ask(self.address) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            self.still_runs()?;
            if self.started.elapsed() > PATIENCE {
                let log = self.settings.log.display();
                return Err(error.context(format!("the server does not answer; see {log}")));
            }
            std::thread::sleep(RETRY);
        }
    }

    fn still_runs(&mut self) -> Result<()> {
        let log = self.settings.log.display();
        match self.process.as_mut().map(Process::ended).transpose()?.flatten() {
            Some(status) => bail!("the server ended by itself ({status}); see {log}"),
            None => Ok(()),
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
        let data = &self.settings.data;
        if self.settings.temporary
            && data.exists()
            && let Err(error) = std::fs::remove_dir_all(data)
        {
            weir_report::errln!("cannot remove {}: {error}", data.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(work: &Path) -> Settings {
        Settings::temporary(Path::new("false"), work.join("data"), work.join("log")).unwrap()
    }

    #[test]
    fn a_program_that_ends_at_once_is_an_error_that_names_the_log() {
        let work = tempfile::tempdir().unwrap();
        let error = TestServer::start_new(temporary(work.path())).unwrap_err().to_string();
        let log = work.path().join("log").display().to_string();
        assert!(error.contains("ended by itself") && error.contains(&log), "{error}");
        assert!(!work.path().join("data").exists(), "temporary data is removed");
    }

    #[test]
    fn data_is_kept_unless_it_is_temporary() {
        let work = tempfile::tempdir().unwrap();
        let settings = Settings { temporary: false, ..temporary(work.path()) };
        TestServer::new(settings).unwrap().start().unwrap();
        assert!(work.path().join("data").exists());
        temporary(work.path());
        assert!(!work.path().join("data").exists(), "the data of an earlier server is removed");
    }
}
