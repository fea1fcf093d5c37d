//! The operator's actions through the server's API: pools, volumes and their quotas.

use anyhow::{Context, Result};
use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use weir_api::{
    Access, ExportRule, NewPassword, NewPool, NewUser, NewVolume, Protocol, Qos, Report,
    SharingChange, Squash, TermsChange, Volume, VolumeChange,
};
use weir_api::{Client, ClientError, Dry};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Longest time until the API comes up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The limits of a volume beside its quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The volume's own rate in MiB/s, in models that give each its own.
    pub(crate) mibps: Option<u64>,
    /// The volume's own operations a second, in a custom pool.
    pub(crate) iops: Option<u64>,
    /// Most MiB/s, whatever its contract comes to.
    pub(crate) max_mibps: Option<u64>,
    /// Most operations a second.
    pub(crate) max_iops: Option<u64>,
    /// Most operations a second of each file.
    pub(crate) max_file_iops: Option<u64>,
    /// The volume's weight in a shared pool.
    pub(crate) weight: Option<u32>,
}

impl Limits {
    /// No limits of its own.
    pub(crate) const NONE: Self = Self {
        mibps: None,
        iops: None,
        max_mibps: None,
        max_iops: None,
        max_file_iops: None,
        weight: None,
    };
}

/// A client of one server's API that waits for each answer.
#[derive(Debug)]
pub(crate) struct Operator {
    runtime: Runtime,
    client: Client,
}

impl Operator {
    /// A client of the server with this data directory, as soon as its API answers.
    ///
    /// # Errors
    /// If it does not answer within 20 s.
    pub(crate) fn connect(data: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let operator = Self { runtime, client: Client::local(data) };
        let begun = Instant::now();
        loop {
            match operator.runtime.block_on(operator.client.health()) {
                Ok(_) => return Ok(operator),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Makes a pool of the Ultra level with the model auto; `path` is where it lies, in the data
    /// directory unless limits.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn make_pool(&self, name: &str, tebibytes: u64, path: Option<&Path>) -> Result<()> {
        self.create_pool(name, "ultra", Qos::Auto, tebibytes, path)
    }

    /// Makes a volume in a pool with the model auto.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn make_volume(&self, name: &str, pool: &str, gibibytes: u64) -> Result<()> {
        self.create_volume(name, pool, gibibytes, &Limits::NONE)
    }

    /// Changes a volume's quota. In force when this returns.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn resize(&self, volume: &str, gibibytes: u64) -> Result<()> {
        let change = VolumeChange { quota_bytes: Some(gibibytes * GIB), ..VolumeChange::default() };
        self.change(volume, &change)
    }

    /// Changes a volume. In force when this returns.
    pub(crate) fn change(&self, volume: &str, change: &VolumeChange) -> Result<()> {
        self.wait(self.client.change_volume(volume, change, Dry::No), || {
            format!("changing the volume {volume}: {change:?}")
        })
    }

    /// Makes a user who can log in over SMB.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn make_user(&self, name: &str, uid: u32, password: &str) -> Result<()> {
        let new =
            NewUser { name: name.to_owned(), uid, gid: None, groups: Vec::new(), enabled: true };
        self.wait(self.client.create_user(&new, Dry::No), || format!("making the user {name}"))?;
        let password = NewPassword { password: password.to_owned() };
        self.wait(self.client.set_password(name, &password, Dry::No), || {
            format!("setting the password of {name}")
        })
    }

    /// Exports a volume to a network, for reading and writing, without squashing any user.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn allow(&self, volume: &str, network: &str) -> Result<()> {
        let rule = ExportRule {
            network: network.to_owned(),
            access: Access::ReadWrite,
            squash: Squash::None,
            anon_uid: 65534,
            anon_gid: 65534,
        };
        self.wait(self.client.add_export(volume, &rule, Dry::No), || {
            format!("exporting the volume {volume} to {network}")
        })
    }

    /// Has a volume served over SMB beside NFS.
    ///
    /// # Errors
    /// In the server's own words.
    pub(crate) fn share(&self, volume: &str) -> Result<()> {
        let sharing = SharingChange {
            protocols: Some(vec![Protocol::Nfs, Protocol::Smb]),
            ..SharingChange::default()
        };
        self.change(volume, &VolumeChange { sharing, ..VolumeChange::default() })
    }

    /// A volume as the API shows it now.
    pub(crate) fn volume(&self, name: &str) -> Result<Volume> {
        let asked = self.runtime.block_on(self.client.volume(name));
        asked.with_context(|| format!("reading the volume {name}"))
    }

    /// The server's report on a volume's contract over the last seconds.
    pub(crate) fn report(&self, volume: &str, seconds: u64) -> Result<Report> {
        let asked = self.runtime.block_on(self.client.report(volume, seconds));
        asked.with_context(|| format!("reading the report on {volume}"))
    }

    /// The metrics as they are scraped.
    pub(crate) fn metrics(&self) -> Result<String> {
        self.runtime.block_on(self.client.metrics()).context("reading the metrics")
    }

    pub(crate) fn create_pool(
        &self,
        name: &str,
        level: &str,
        qos: Qos,
        tebibytes: u64,
        path: Option<&Path>,
    ) -> Result<()> {
        let new = NewPool {
            name: name.to_owned(),
            level: level.to_owned(),
            size_bytes: tebibytes * 1024 * GIB,
            qos,
            directory: path.map(|path| path.to_string_lossy().into_owned()),
            ..NewPool::default()
        };
        self.wait(self.client.create_pool(&new, Dry::No), || format!("making the pool {name}"))
    }

    pub(crate) fn create_volume(
        &self,
        name: &str,
        pool: &str,
        gibibytes: u64,
        limits: &Limits,
    ) -> Result<()> {
        let terms = TermsChange {
            throughput_bytes_per_second: limits.mibps.map(|mibps| mibps * MIB),
            iops: limits.iops.map(Some),
            max_throughput_bytes_per_second: limits.max_mibps.map(|mibps| Some(mibps * MIB)),
            max_iops: limits.max_iops.map(Some),
            max_file_iops: limits.max_file_iops.map(Some),
            weight: limits.weight,
            ..TermsChange::default()
        };
        let new = NewVolume {
            name: name.to_owned(),
            pool: pool.to_owned(),
            quota_bytes: gibibytes * GIB,
            terms,
            ..NewVolume::default()
        };
        self.wait(self.client.create_volume(&new, Dry::No), || format!("making the volume {name}"))
    }

    fn wait<T>(
        &self,
        request: impl Future<Output = Result<T, ClientError>>,
        doing: impl FnOnce() -> String,
    ) -> Result<()> {
        self.runtime.block_on(request).with_context(doing).map(drop)
    }
}
