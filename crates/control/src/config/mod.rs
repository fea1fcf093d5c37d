//! The server's configuration: one value with every setting, built from defaults, a TOML file and
//! overrides (environment and command line), in that order. No other code reads settings.
//!
//! An unknown key is refused, with its line number and the nearest known key.

mod file;
mod gateway;
mod keys;

use crate::limits::{CONNECTIONS_MAX, CONNECTIONS_ORIGIN_MAX};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_catalog::{Admission, BytesPerSecond, Floors, Iops, Minimums};

pub use gateway::{
    AddressesConfig, CephConfig, EtcdConfig, GatewayConfig, GatewayConfigError, HelperConfig,
};
pub use keys::{KEYS, Key};

/// Largest configuration file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Every setting of `weir serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// `data`: the data directory.
    pub data: PathBuf,
    /// `nfs.listen`: listen addresses for NFS and MOUNT over TCP, at least one.
    pub nfs: Vec<SocketAddr>,
    /// `smb.listen`: listen addresses for SMB over TCP; none by default.
    pub smb: Vec<SocketAddr>,
    /// `smb.signing`: whether SMB clients must sign.
    pub smb_signing: SmbSigning,
    /// `api.listen`: listen addresses for the API over TCP, in addition to the Unix socket.
    pub api: Vec<SocketAddr>,
    /// `api.tls`: use of TLS for the API over TCP.
    pub api_tls: ApiTls,
    /// `api.tls_cert`: the API's certificate with its intermediates, PEM; self-signed if not set.
    pub api_tls_cert: Option<PathBuf>,
    /// `api.tls_key`: the private key of `api.tls_cert`, PEM.
    pub api_tls_key: Option<PathBuf>,
    /// `workers`: number of worker threads; 0: one per core.
    pub workers: usize,
    /// `log.format`: the format of log lines.
    pub log_format: LogFormat,
    /// `log.level`: a level or a filter in the syntax of tracing (`info,weir_store=debug`).
    pub log_level: String,
    /// `namespace_durability`: failure that a completed CREATE, REMOVE, RENAME, … survives.
    pub namespace_durability: NamespaceDurability,
    /// `metadata_cache`: cache descriptors and attributes in memory.
    pub metadata_cache: bool,
    /// `cached_objects_max`: maximum number of objects per volume in the metadata cache.
    pub cached_objects_max: usize,
    /// `blocking_threads`: number of threads for blocking disk I/O.
    pub blocking_threads: usize,
    /// `manage_gids`: look up the groups of users here instead of using the client's list.
    pub manage_gids: bool,
    /// `parked_total_mib`: maximum memory for requests that wait for their contract, all volumes,
    /// MiB.
    pub parked_total_mib: u64,
    /// `connections_max`: maximum number of open connections.
    pub connections_max: usize,
    /// `connections_per_client_max`: maximum number of open connections per client address.
    pub connections_per_client_max: usize,
    /// `keepalive_secs`: idle time after which TCP keepalive probes are sent.
    pub keepalive: Duration,
    /// `pool_size_min`: minimum size of a pool, bytes.
    pub pool_size_min: u64,
    /// `volume_quota_min`: minimum quota of a volume, bytes.
    pub volume_quota_min: u64,
    /// `custom_throughput_min`: minimum throughput of a custom pool, bytes per second.
    pub custom_throughput_min: u64,
    /// `custom_iops_min`: minimum IOPS of a custom pool.
    pub custom_iops_min: u64,
    /// `metrics.histograms`: names of the volumes with latency histograms.
    pub metrics_histograms: BTreeSet<String>,
    /// `admission.…`: the capacity check against calibrations.
    pub admission: Admission,
    /// `rpcbind`: how clients find MOUNT and the lock manager.
    pub rpcbind: RpcbindMode,
    /// `grace_period_secs`: grace period after a restart, in which locks can only be reclaimed.
    pub grace_period: Duration,
    /// `seccomp`: the seccomp filter for the server's system calls.
    pub seccomp: Seccomp,
    /// `shutdown_grace_secs`: time to wait at shutdown for requests in flight.
    pub shutdown_grace: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            data: PathBuf::new(),
            nfs: vec![loopback(2049)],
            smb: Vec::new(),
            smb_signing: SmbSigning::Required,
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

/// The signing of SMB messages, which proves that nobody changed them on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmbSigning {
    /// Every session signs, or encrypts.
    Required,
    /// Sessions sign if the client wants it.
    Offered,
}

impl SmbSigning {
    /// The value in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Offered => "offered",
        }
    }
}

/// The addresses at which the API over TCP uses TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiTls {
    /// All addresses except loopback.
    Auto,
    /// All addresses.
    On,
    /// None.
    Off,
}

impl ApiTls {
    /// The value in the configuration.
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
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The way in which clients find MOUNT and the lock manager at port 111.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcbindMode {
    /// Not at all: no network locks.
    Off,
    /// Through the local rpcbind.
    Register,
    /// Through the built-in portmapper.
    Serve,
}

/// The kernel's reaction to system calls outside the list that serving needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// The calls fail; the most dangerous ones end the process.
    On,
    /// The calls succeed and are recorded in the kernel's audit log.
    Log,
    /// The calls succeed.
    Off,
}

impl Seccomp {
    /// The name in the configuration and in logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Log => "log",
            Self::Off => "off",
        }
    }
}

/// The failure that a completed change of a name or an attribute survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceDurability {
    /// A power failure, as required by RFC 1813 §4.8.
    Power,
    /// A crash of the server, but not of the machine.
    Process,
}

/// A configuration error.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is over 1 MiB.
    #[error("configuration file {}: larger than {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not valid TOML.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// An unknown key.
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
    /// An invalid value.
    #[error("{origin}: {key}: {reason}")]
    Value {
        /// The value's origin: file and line, or the command line and environment.
        origin: String,
        /// The key.
        key: &'static str,
        /// The error, and a valid value.
        reason: String,
    },
    /// A certificate without its key, or a key without a certificate.
    #[error("api.tls_cert and api.tls_key must be set together: give both, or neither")]
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
        None => "; `weir config keys` lists the known keys".to_owned(),
    }
}

/// The beginning of [`ServerConfig::template`].
const TEMPLATE_HEAD: &str = "\
# Configuration of `weir serve`, read at startup. To change a value, remove the `#` and edit it.
# `weir config show --config FILE` checks the file and prints the resulting configuration.
";

/// A setting given on the command line or in the environment: a key of [`KEYS`] and its text.
pub type Override = (&'static str, String);

impl ServerConfig {
    /// The defaults, changed by `file` if there is one, changed by `overrides`.
    ///
    /// # Errors
    /// [`ConfigError`]; the message gives the location of the error and a valid value.
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
            let key = key.ok_or_else(|| refused(name, "unknown key".to_owned()))?;
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

    /// The minimum sizes that the catalogue allows.
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

    /// The whole configuration as a TOML file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        Self::write(|key, name| format!("{name} = {}\n", key.show(self)))
    }

    /// A file with every key, its meaning and its default. All keys are commented out except
    /// `data`, which has no default and is set to /var/lib/weir.
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
