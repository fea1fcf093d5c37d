//! The server that is killed: `weir serve` on a data directory and an address that stay.

use super::world::TICK;
use crate::demo::Process;
use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_core::Credentials;
use weir_load::NfsTarget;
use weir_load::engine::{Session, mount};
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{FileHandle3, FsStatArgs, GetattrArgs, Res};

/// Longest time that a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports below those that the kernel gives to connections, so that none is taken while the server
/// is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;
/// The watcher's source address, which no client has.
const WATCHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 1, 0, 1));

/// The settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) weir: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) log: PathBuf,
    /// The value of `--namespace-durability`.
    pub(crate) durability: &'static str,
}

/// A server, running or not. Dropping it ends it in order.
#[derive(Debug)]
pub(crate) struct Victim {
    setup: Setup,
    address: SocketAddr,
    process: Option<Process>,
    started: Instant,
}

impl Victim {
    /// A server that is not started yet, on a free port.
    pub(crate) fn new(setup: Setup) -> Result<Self> {
        let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let port = PORTS.clone().find(free).context("no free port on loopback")?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        Ok(Self { setup, address, process: None, started: Instant::now() })
    }

    /// The server's address for NFS and MOUNT.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.setup.data
    }

    /// Starts it; does not wait until it serves.
    pub(crate) fn start(&mut self) -> Result<()> {
        let Setup { weir, data, log, durability } = &self.setup;
        std::fs::create_dir_all(data)?;
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(weir);
        command
            .args(["serve", "--namespace-durability", durability, "--api", "none", "--data"])
            .arg(data)
            .args(["--nfs", &self.address.to_string()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        self.started = Instant::now();
        self.process = Some(Process::start(&mut command)?);
        Ok(())
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it had ended by itself, which it never should.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            let log = self.setup.log.display();
            if let Some(status) = process.ended()? {
                bail!("the server ended by itself ({status}); see {log}");
            }
            process.kill()?;
        }
        Ok(())
    }

    /// Kills it if it still runs: without its disk it may have ended.
    pub(super) fn kill_what_is_left(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |mut process| process.kill())
    }

    /// The server's process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Ends it in order.
    pub(crate) fn end(&mut self) {
        self.process = None;
    }

    /// Waits until it answers for the object `root`, and gives how long after its start that was.
    pub(crate) fn serving(&mut self, root: &[u8]) -> Result<Duration> {
        self.wait(|address| space(address, root))?;
        Ok(self.started.elapsed())
    }

    /// The handle of an export's top directory, as soon as the server gives it.
    pub(crate) fn mount(&mut self, export: &str) -> Result<Box<[u8]>> {
        self.wait(|address| Ok(mount(&NfsTarget::new(address, export), caller())?))
    }

    fn wait<T>(&mut self, ask: impl Fn(SocketAddr) -> Result<T>) -> Result<T> {
        let log = self.setup.log.display().to_string();
        loop {
            let error = match ask(self.address) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if let Some(process) = &mut self.process
                && let Some(status) = process.ended()?
            {
                bail!("the server ended by itself ({status}); see {log}");
            }
            if self.started.elapsed() > PATIENCE {
                return Err(error.context(format!("the server does not answer; see {log}")));
            }
            std::thread::sleep(TICK);
        }
    }
}

/// The watcher's identity.
pub(super) fn caller() -> Caller {
    Caller::sys(&Credentials::ROOT, b"weir-crash")
}

/// A connection of the watcher's.
pub(super) fn session(address: SocketAddr) -> Result<Session> {
    Ok(Session::open(address, Some(WATCHER), caller())?)
}

/// Bytes used in the volume with this top directory, as its clients see them.
pub(super) fn space(address: SocketAddr, root: &[u8]) -> Result<u64> {
    let answer =
        session(address)?.call(&FsStatArgs { root: FileHandle3(root) }, |result| match result {
            Res::Ok(ok) => Ok(ok.total_bytes - ok.free_bytes),
            Res::Fail(status, _) => Err(status),
        })?;
    answer.map_err(|status| anyhow::anyhow!("FSSTAT: status {}", status.0))
}

/// The inode number of the directory `root`.
pub(super) fn fileid(address: SocketAddr, root: &[u8]) -> Result<u64> {
    let object = FileHandle3(root);
    let answer = session(address)?.call(&GetattrArgs { object }, |result| match result {
        Res::Ok(ok) => Ok(ok.attributes.fileid),
        Res::Fail(status, ()) => Err(status),
    })?;
    answer.map_err(|status| anyhow::anyhow!("GETATTR: status {}", status.0))
}
