//! What an operator does: pools, volumes and their quotas, by the command line, which talks to
//! the running server over its API.

use super::cases::{Case, POOLS};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A hand on one server.
#[derive(Debug)]
pub struct Operator {
    exe: PathBuf,
    data: PathBuf,
}

impl Operator {
    /// On the server with this data directory.
    #[must_use]
    pub fn new(exe: &Path, data: &Path) -> Self {
        Self { exe: exe.to_owned(), data: data.to_owned() }
    }

    /// Makes the demo's pools and volumes.
    pub(super) fn make(&self, cases: &[Case]) -> Result<()> {
        for pool in POOLS {
            let qos = if pool.manual { "manual" } else { "auto" };
            let size = format!("{}TiB", pool.tebibytes);
            self.run(&[
                "pool", "create", pool.name, "--level", "standard", "--size", &size, "--qos", qos,
            ])?;
        }
        for case in cases {
            let quota = format!("{}GiB", case.quota_gibibytes);
            let rate = case.set_mibps.map(|mibps| format!("{mibps}MiB/s"));
            let mut arguments =
                vec!["volume", "create", case.volume, "--pool", case.pool, "--quota", &quota];
            if let Some(rate) = &rate {
                arguments.extend(["--throughput", rate]);
            }
            self.run(&arguments)?;
        }
        Ok(())
    }

    /// Makes a pool with the contract model auto; `path` is where it lies, in the data directory
    /// unless given.
    ///
    /// # Errors
    /// In the server's own words.
    pub fn make_pool(
        &self,
        name: &str,
        level: &str,
        tebibytes: u64,
        path: Option<&Path>,
    ) -> Result<()> {
        let size = format!("{tebibytes}TiB");
        let path = path.map(|path| path.to_string_lossy().into_owned());
        let mut arguments = vec!["pool", "create", name, "--level", level, "--size", &size];
        if let Some(path) = &path {
            arguments.extend(["--path", path]);
        }
        self.run(&arguments)
    }

    /// Makes a volume.
    ///
    /// # Errors
    /// In the server's own words.
    pub fn make_volume(&self, name: &str, pool: &str, gibibytes: u64) -> Result<()> {
        let quota = format!("{gibibytes}GiB");
        self.run(&["volume", "create", name, "--pool", pool, "--quota", &quota])
    }

    /// Changes a volume's quota. In force when this returns.
    ///
    /// # Errors
    /// In the server's own words.
    pub fn resize(&self, volume: &str, gibibytes: u64) -> Result<()> {
        self.run(&["volume", "resize", volume, "--quota", &format!("{gibibytes}GiB")])
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new(&self.exe)
            .arg("--data")
            .arg(&self.data)
            .args(arguments)
            .output()
            .with_context(|| format!("can't run {}", self.exe.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("weir {}: {}", arguments.join(" "), said.trim());
        }
        Ok(())
    }
}
