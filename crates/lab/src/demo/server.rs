//! The server under demonstration: a child process on loopback, with a data directory of its own.

use super::process::Process;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `weir serve`. Dropping it ends the process and removes its data.
#[derive(Debug)]
pub(crate) struct Server {
    process: Option<Process>,
    pid: u32,
    data: PathBuf,
    nfs: SocketAddr,
}

impl Server {
    /// Starts `exe serve` with the data directory `data`, which is made; what it logs goes to
    /// `log`. `extra` are further arguments of `serve`.
    ///
    /// # Errors
    /// If the program can't be started, or has ended or not answered within 20 s.
    pub(crate) fn start(exe: &Path, data: &Path, log: &Path, extra: &[&str]) -> Result<Self> {
        std::fs::create_dir_all(data)
            .with_context(|| format!("cannot create the data directory {}", data.display()))?;
        let (nfs, api) = free_addresses()?;
        let output = File::create(log).with_context(|| format!("can't write {}", log.display()))?;
        let mut command = Command::new(exe);
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--nfs", &nfs.to_string(), "--api", &api.to_string()])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let mut process = Process::start(&mut command)?;
        wait_for(&mut process, nfs, log)?;
        Ok(Self { pid: process.pid(), process: Some(process), data: data.to_owned(), nfs })
    }

    /// The server's address for NFS and MOUNT.
    #[must_use]
    pub(crate) const fn nfs(&self) -> SocketAddr {
        self.nfs
    }

    /// The server's data directory.
    #[must_use]
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The server's process id.
    #[must_use]
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.take());
        if let Err(error) = std::fs::remove_dir_all(&self.data) {
            weir_report::errln!("{} could not be removed: {error}", self.data.display());
        }
    }
}

/// Waits until `process` takes connections on `address`; `log` is where it says why it does not.
///
/// # Errors
/// If it ends, or does not answer within 20 s.
pub(crate) fn wait_for(process: &mut Process, address: SocketAddr, log: &Path) -> Result<()> {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.ended()? {
            bail!("the server exited immediately ({status}); see {}", log.display());
        }
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("the server does not respond on {address}; see {}", log.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two loopback addresses whose ports are free now.
fn free_addresses() -> Result<(SocketAddr, SocketAddr)> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on loopback");
    let (one, two) = (bind()?, bind()?);
    Ok((one.local_addr()?, two.local_addr()?))
}
