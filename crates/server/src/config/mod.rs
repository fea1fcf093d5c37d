//! The server's configuration: one value with every setting, built from defaults, a TOML file and
//! overrides (the command line and the environment), in that order. Nothing else reads settings.
//!
//! A key that nobody knows is refused, with the nearest known one and the line it stands on.

mod file;
mod keys;

use crate::limits::{CONNECTIONS_MAX, CONNECTIONS_ORIGIN_MAX};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_catalog::{Admission, BytesPerSecond, Floors, Iops, Minimums};

pub use keys::{KEYS, Key};

/// Largest configuration file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Every setting of `weir serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// `data`: the data directory.
    pub data: PathBuf,
    /// `nfs.listen`: where NFS and MOUNT are served over TCP, at least one.
    pub nfs: Vec<SocketAddr>,
    /// `api.listen`: where the API is served over TCP, beside the socket in the data directory.
    pub api: Vec<SocketAddr>,
    /// `api.tls`: where the API over TCP speaks TLS.
    pub api_tls: ApiTls,
    /// `api.tls_cert`: its certificate with what leads to an authority, PEM; one of our own if not
    /// said.
    pub api_tls_cert: Option<PathBuf>,
    /// `api.tls_key`: the key of `api.tls_cert`, PEM.
    pub api_tls_key: Option<PathBuf>,
    /// `workers`: threads that serve connections; 0 for one per core.
    pub workers: usize,
    /// `log.format`: how log lines are written.
    pub log_format: LogFormat,
    /// `log.level`: a level or a filter as tracing reads it (`info,weir_store=debug`).
    pub log_level: String,
    /// `namespace_durability`: what an answered CREATE, REMOVE, RENAME, … survives.
    pub namespace_durability: NamespaceDurability,
    /// `metadata_cache`: keep descriptors and attributes in memory.
    pub metadata_cache: bool,
    /// `cached_objects_max`: most objects of one volume whose descriptors and attributes are kept.
    pub cached_objects_max: usize,
    /// `blocking_threads`: threads for system calls that may wait for the disk.
    pub blocking_threads: usize,
    /// `manage_gids`: look up the groups of callers here instead of believing the client's list.
    pub manage_gids: bool,
    /// `parked_total_mib`: MiB that requests waiting for their contract may pin, all volumes.
    pub parked_total_mib: u64,
    /// `connections_max`: most open connections.
    pub connections_max: usize,
    /// `connections_per_client_max`: most open connections of one client address.
    pub connections_per_client_max: usize,
    /// `keepalive_secs`: silence after which a peer is asked whether it is still there.
    pub keepalive: Duration,
    /// `pool_size_min`: smallest pool, bytes.
    pub pool_size_min: u64,
    /// `volume_quota_min`: smallest volume, bytes.
    pub volume_quota_min: u64,
    /// `custom_throughput_min`: the least throughput that a custom pool buys, bytes per second.
    pub custom_throughput_min: u64,
    /// `custom_iops_min`: the least IOPS that a custom pool buys.
    pub custom_iops_min: u64,
    /// `metrics.histograms`: names of the volumes that have histograms of latency.
    pub metrics_histograms: BTreeSet<String>,
    /// `admission.…`: what may be promised of disks that were calibrated.
    pub admission: Admission,
    /// `rpcbind`: how clients find MOUNT and the lock manager.
    pub rpcbind: RpcbindMode,
    /// `grace_period_secs`: how long those who held locks before a restart may take them again.
    pub grace_period: Duration,
    /// `seccomp`: whether the kernel filters the server's system calls.
    pub seccomp: Seccomp,
    /// `shutdown_grace_secs`: how long to wait at shutdown for what is in flight.
    pub shutdown_grace: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            data: PathBuf::new(),
            nfs: vec![loopback(2049)],
            api: vec![loopback(7437)],
            api_tls: ApiTls::Auto,
            api_tls_cert: None,
            api_tls_key: None,
            workers: 0,
            log_format: LogFormat::Text,
            log_level: "info".to_owned(),
            namespace_durability: NamespaceDurability::Power,
            metadata_cache: true,
            cached_objects_max: 65_536,
            blocking_threads: 16,
            manage_gids: false,
            parked_total_mib: 1024,
            connections_max: CONNECTIONS_MAX,
            connections_per_client_max: CONNECTIONS_ORIGIN_MAX,
            keepalive: Duration::from_secs(60),
            pool_size_min: 1 << 20,
            volume_quota_min: 1 << 20,
            custom_throughput_min: Floors::default().rate.0,
            custom_iops_min: Floors::default().iops.0,
            metrics_histograms: BTreeSet::new(),
            admission: Admission::default(),
            rpcbind: RpcbindMode::Off,
            grace_period: Duration::from_secs(90),
            seccomp: Seccomp::On,
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

/// The addresses at which the API over TCP speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiTls {
    /// At addresses other than loopback.
    Auto,
    /// Everywhere.
    On,
    /// Nowhere.
    Off,
}

impl ApiTls {
    /// The word for it in configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The way in which clients find MOUNT and the lock manager, which they ask port 111 for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcbindMode {
    /// Not at all: no locks over the network.
    Off,
    /// Through the rpcbind that runs on this machine.
    Register,
    /// Through a portmapper of our own.
    Serve,
}

/// The kernel's reaction to system calls that serving doesn't use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// The calls fail, and the worst end the process.
    On,
    /// The calls are carried out, and the kernel's audit log has them.
    Log,
    /// The calls are carried out.
    Off,
}

impl Seccomp {
    /// The word for it in configuration and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Log => "log",
            Self::Off => "off",
        }
    }
}

/// The failure that an answered change of a name or an attribute survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceDurability {
    /// A power cut, as RFC 1813 §4.8 wants.
    Power,
    /// A crash of the server, but not of the machine.
    Process,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is over 1 MiB.
    #[error("configuration file {}: over {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is no TOML.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// A key nobody knows.
    #[error("{}:{line}: unknown key {key:?}{}", path.display(), did_you_mean(*nearest))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key with its section.
        key: String,
        /// The nearest known key, if one is near.
        nearest: Option<&'static str>,
    },
    /// A value that makes no sense.
    #[error("{origin}: {key}: {reason}")]
    Value {
        /// The value's origin: file and line, or the command line and environment.
        origin: String,
        /// The key.
        key: &'static str,
        /// The mistake, and a right value.
        reason: String,
    },
    /// A certificate without its key, or a key without a certificate.
    #[error("api.tls_cert and api.tls_key belong together: give both, or neither")]
    HalfCertificate,
    /// No data directory was given.
    #[error(
        "no data directory: give --data DIR, set WEIR_DATA, or write data = \"DIR\" in the configuration file"
    )]
    NoData,
}

fn did_you_mean(nearest: Option<&'static str>) -> String {
    match nearest {
        Some(key) => format!("; did you mean {key:?}?"),
        None => "; `weir config keys` lists the known ones".to_owned(),
    }
}

/// The beginning of [`ServerConfig::template`].
const TEMPLATE_HEAD: &str = "\
# Configuration of `weir serve`, read at its start. Take a `#` away and change the value.
# `weir config show --config FILE` checks the file and prints what it comes to.
";

/// A setting given on the command line or in the environment: a key of [`KEYS`] and its text.
pub type Override = (&'static str, String);

impl ServerConfig {
    /// The defaults, changed by `file` if there is one, changed by `overrides`.
    ///
    /// # Errors
    /// [`ConfigError`]; the message says where the fault is and what would be right.
    pub fn load(file: Option<&Path>, overrides: &[Override]) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if let Some(path) = file {
            file::apply(&mut config, path)?;
        }
        for (name, text) in overrides {
            let refused = |key, reason| ConfigError::Value {
                origin: "command line or environment".to_owned(),
                key,
                reason,
            };
            let key = KEYS.iter().find(|key| key.name == *name);
            let key = key.ok_or_else(|| refused(name, "no such key".to_owned()))?;
            key.set(&mut config, &keys::Value::Text(text))
                .map_err(|reason| refused(name, reason))?;
        }
        if config.data.as_os_str().is_empty() {
            return Err(ConfigError::NoData);
        }
        if config.api_tls_cert.is_some() != config.api_tls_key.is_some() {
            return Err(ConfigError::HalfCertificate);
        }
        Ok(config)
    }

    /// The smallest sizes that the catalogue is to allow.
    #[must_use]
    pub const fn minimums(&self) -> Minimums {
        Minimums {
            pool_bytes: self.pool_size_min,
            volume_bytes: self.volume_quota_min,
            custom: Floors {
                rate: BytesPerSecond(self.custom_throughput_min),
                iops: Iops(self.custom_iops_min),
            },
        }
    }

    /// The whole configuration as a file that gives it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        Self::write(|key, name| format!("{name} = {}\n", key.show(self)))
    }

    /// A file with every key, its meaning and its default. All keys are commented out but `data`,
    /// which has no default and stands at /var/lib/weir.
    #[must_use]
    pub fn template() -> String {
        let defaults = Self { data: PathBuf::from("/var/lib/weir"), ..Self::default() };
        let keys = Self::write(|key, name| {
            let sign = if name == "data" { "" } else { "#" };
            format!("\n# {}\n{sign}{name} = {}\n", key.meaning, key.show(&defaults))
        });
        format!("{TEMPLATE_HEAD}{keys}")
    }

    /// A file with a section for each of the keys', and `line` for each key and its name in there.
    fn write(line: impl Fn(&Key, &str) -> String) -> String {
        let mut text = String::new();
        let mut section = "";
        for key in KEYS {
            let (of, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if of != section {
                section = of;
                text += &format!("\n[{section}]\n");
            }
            text += &line(key, name);
        }
        text
    }
}

#[cfg(test)]
mod tests;
