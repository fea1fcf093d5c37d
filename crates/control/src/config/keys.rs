//! The table of settings: name, meaning, and how a value is parsed and shown. The file, the options
//! and the environment all use this table, so that all three accept the same keys.

use super::{
    ApiTls, LogFormat, NamespaceDurability, RpcbindMode, Seccomp, ServerConfig, SmbSigning,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_core::limits::IO_BYTES_MAX;
use weir_core::units::{Bytes, Rate, parse_bytes, parse_rate};
use weir_qos::Model;
use weir_qos::admission::Policy;

/// More connections than any configuration needs.
const CONNECTIONS_LIMIT: usize = 1_000_000;

/// Most listen addresses of one kind.
const LISTEN_MAX: usize = 64;
/// Most volumes with histograms: each adds some 80 lines to the metrics.
const HISTOGRAMS_MAX: usize = 100;
/// Most worker threads.
const WORKERS_MAX: usize = 1024;
/// Most cached objects of one volume.
const OBJECTS_MAX: usize = 1 << 24;
/// The log levels, least first.
const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Maximum overcommit of capacity, percent.
const OVERCOMMIT_PERCENT_MAX: u32 = 10_000;
/// Longest shutdown and longest grace period, seconds.
const GRACE_SECS_MAX: u64 = 3600;

/// A value as it was given.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// Text: a TOML string, a flag or an environment variable.
    Text(&'a str),
    /// A TOML integer in decimal.
    Integer(u64),
    /// A TOML boolean.
    Bool(bool),
    /// A TOML array of strings.
    List(Vec<&'a str>),
}

type Set = fn(&mut ServerConfig, &Value<'_>) -> Result<(), String>;

/// One setting.
pub struct Key {
    /// The key's name in the file, with its section: `nfs.listen`.
    pub name: &'static str,
    /// The key's meaning: what it sets, the unit, the range and the default.
    pub meaning: &'static str,
    set: Set,
    show: fn(&ServerConfig) -> String,
}

impl Key {
    pub(super) fn set(&self, config: &mut ServerConfig, value: &Value<'_>) -> Result<(), String> {
        (self.set)(config, value)
    }

    /// The value in `config`, as TOML.
    #[must_use]
    pub fn show(&self, config: &ServerConfig) -> String {
        (self.show)(config)
    }
}

/// Every setting. Keys without a section come first, as TOML requires.
pub const KEYS: &[Key] = &[
    Key {
        name: "data",
        meaning: "data directory: catalogue, keys, API socket, and pools without their own path",
        set: |config, value| text(value).map(|path| config.data = PathBuf::from(path)),
        show: |config| quote(&config.data.to_string_lossy()),
    },
    Key {
        name: "workers",
        meaning: "number of worker threads that serve connections, 0 to 1024; 0 (default): one per core",
        set: |config, value| number(value, &(0..=WORKERS_MAX)).map(|count| config.workers = count),
        show: |config| config.workers.to_string(),
    },
    Key {
        name: "namespace_durability",
        meaning: "failure that a completed create, remove or rename survives: power (default: a power failure) or process (a crash of the server only)",
        set: |config, value| {
            config.namespace_durability = match text(value)? {
                "power" => NamespaceDurability::Power,
                "process" => NamespaceDurability::Process,
                other => return Err(format!("{other:?} is not one of power, process")),
            };
            Ok(())
        },
        show: |config| {
            quote(match config.namespace_durability {
                NamespaceDurability::Power => "power",
                NamespaceDurability::Process => "process",
            })
        },
    },
    Key {
        name: "metadata_cache",
        meaning: "cache file descriptors and attributes in memory: true (default) or false",
        set: |config, value| boolean(value).map(|on| config.metadata_cache = on),
        show: |config| config.metadata_cache.to_string(),
    },
    Key {
        name: "cached_objects_max",
        meaning: "maximum number of objects per volume in the metadata cache, 16 to 16777216; default 65536",
        set: |config, value| {
            number(value, &(16..=OBJECTS_MAX)).map(|count| config.cached_objects_max = count)
        },
        show: |config| config.cached_objects_max.to_string(),
    },
    Key {
        name: "blocking_threads",
        meaning: "number of threads for blocking disk I/O, 16 to 1024; default 16",
        set: |config, value| {
            number(value, &(16..=WORKERS_MAX)).map(|count| config.blocking_threads = count)
        },
        show: |config| config.blocking_threads.to_string(),
    },
    Key {
        name: "manage_gids",
        meaning: "look up the groups of users on this machine instead of using the client's list, which is limited to 16 groups: true or false (default)",
        set: |config, value| boolean(value).map(|on| config.manage_gids = on),
        show: |config| config.manage_gids.to_string(),
    },
    Key {
        name: "parked_total_mib",
        meaning: "maximum memory for requests that wait for their contract, in MiB, 16 to 1048576; default 1024",
        set: |config, value| {
            number(value, &(16..=1 << 20)).map(|mib| config.parked_total_mib = mib)
        },
        show: |config| config.parked_total_mib.to_string(),
    },
    Key {
        name: "connections_max",
        meaning: "maximum number of open connections, 16 to 1000000; default 16384",
        set: |config, value| {
            number(value, &(16..=CONNECTIONS_LIMIT)).map(|count| config.connections_max = count)
        },
        show: |config| config.connections_max.to_string(),
    },
    Key {
        name: "connections_per_client_max",
        meaning: "maximum number of open connections per IPv4 address or IPv6 /64, 1 to 1000000; default 1024",
        set: |config, value| {
            number(value, &(1..=CONNECTIONS_LIMIT))
                .map(|count| config.connections_per_client_max = count)
        },
        show: |config| config.connections_per_client_max.to_string(),
    },
    Key {
        name: "keepalive_secs",
        meaning: "idle time in seconds after which TCP keepalive probes are sent, 5 to 7200; default 60",
        set: |config, value| {
            number(value, &(5..=7200)).map(|secs| config.keepalive = Duration::from_secs(secs))
        },
        show: |config| config.keepalive.as_secs().to_string(),
    },
    Key {
        name: "pool_size_min",
        meaning: "minimum size of a pool; default 1MiB (Azure NetApp Files: 1TiB)",
        set: |config, value| size(value).map(|bytes| config.pool_size_min = bytes),
        show: |config| quote(&format!("{:#}", Bytes(config.pool_size_min))),
    },
    Key {
        name: "volume_quota_min",
        meaning: "minimum quota of a volume; default 1MiB (Azure NetApp Files: 50GiB)",
        set: |config, value| size(value).map(|bytes| config.volume_quota_min = bytes),
        show: |config| quote(&format!("{:#}", Bytes(config.volume_quota_min))),
    },
    Key {
        name: "custom_throughput_min",
        meaning: "minimum throughput of a custom pool, at most 5120MiB/s; default 64MiB/s",
        set: |config, value| bought(value).map(|rate| config.custom_throughput_min = rate),
        show: |config| quote(&format!("{:#}", Rate(config.custom_throughput_min))),
    },
    Key {
        name: "custom_iops_min",
        meaning: "minimum IOPS of a custom pool, 1 to 160000; default 1024",
        set: |config, value| {
            number(value, &(1..=160_000)).map(|iops| config.custom_iops_min = iops)
        },
        show: |config| config.custom_iops_min.to_string(),
    },
    Key {
        name: "rpcbind",
        meaning: "how clients find the lock manager: register (with the local rpcbind), serve (built-in portmapper on port 111), or off (default: no network locks)",
        set: |config, value| {
            config.rpcbind = match text(value)? {
                "off" => RpcbindMode::Off,
                "register" => RpcbindMode::Register,
                "serve" => RpcbindMode::Serve,
                other => return Err(format!("{other:?} is not one of register, serve, off")),
            };
            Ok(())
        },
        show: |config| {
            quote(match config.rpcbind {
                RpcbindMode::Off => "off",
                RpcbindMode::Register => "register",
                RpcbindMode::Serve => "serve",
            })
        },
    },
    Key {
        name: "grace_period_secs",
        meaning: "grace period after a restart in seconds, during which clients may only reclaim locks, 0 to 3600; default 90",
        set: |config, value| {
            number(value, &(0..=GRACE_SECS_MAX))
                .map(|secs| config.grace_period = Duration::from_secs(secs))
        },
        show: |config| config.grace_period.as_secs().to_string(),
    },
    Key {
        name: "seccomp",
        meaning: "seccomp filter for the server's own system calls: on (default), log (record violations in the kernel's audit log only) or off",
        set: |config, value| {
            let given = text(value)?;
            let modes = [Seccomp::On, Seccomp::Log, Seccomp::Off];
            let found = modes.into_iter().find(|mode| mode.word() == given);
            config.seccomp =
                found.ok_or_else(|| format!("{given:?} is not one of on, log, off"))?;
            Ok(())
        },
        show: |config| quote(config.seccomp.word()),
    },
    Key {
        name: "shutdown_grace_secs",
        meaning: "time to wait at shutdown for received requests, including those that wait for their contract, in seconds, 0 to 3600; default 30",
        set: |config, value| {
            number(value, &(0..=GRACE_SECS_MAX))
                .map(|secs| config.shutdown_grace = Duration::from_secs(secs))
        },
        show: |config| config.shutdown_grace.as_secs().to_string(),
    },
    Key {
        name: "nfs.listen",
        meaning: "listen addresses for NFS and MOUNT over TCP; default 127.0.0.1:2049",
        set: |config, value| {
            let listen = addresses(value)?;
            if listen.is_empty() {
                return Err("give at least one address, such as 127.0.0.1:2049".to_owned());
            }
            config.nfs = listen;
            Ok(())
        },
        show: |config| list(&config.nfs),
    },
    Key {
        name: "smb.listen",
        meaning: "listen addresses for SMB over TCP; default none; an empty list (or `none`): no SMB",
        set: |config, value| addresses(value).map(|listen| config.smb = listen),
        show: |config| list(&config.smb),
    },
    Key {
        name: "smb.signing",
        meaning: "signing of SMB messages: required (default) or offered (only if the client requests it)",
        set: |config, value| {
            let given = text(value)?;
            let modes = [SmbSigning::Required, SmbSigning::Offered];
            let found = modes.into_iter().find(|mode| mode.word() == given);
            config.smb_signing =
                found.ok_or_else(|| format!("{given:?} is not one of required, offered"))?;
            Ok(())
        },
        show: |config| quote(config.smb_signing.word()),
    },
    Key {
        name: "api.listen",
        meaning: "listen addresses for the API over TCP; default 127.0.0.1:7437; an empty list (or `none`): only the Unix socket in the data directory",
        set: |config, value| addresses(value).map(|listen| config.api = listen),
        show: |config| list(&config.api),
    },
    Key {
        name: "api.tls",
        meaning: "use of TLS for the API over TCP: auto (default: all addresses except loopback), on (all addresses) or off (never: tokens can be intercepted)",
        set: |config, value| {
            let given = text(value)?;
            let modes = [ApiTls::Auto, ApiTls::On, ApiTls::Off];
            let found = modes.into_iter().find(|mode| mode.word() == given);
            config.api_tls =
                found.ok_or_else(|| format!("{given:?} is not one of auto, on, off"))?;
            Ok(())
        },
        show: |config| quote(config.api_tls.word()),
    },
    Key {
        name: "api.tls_cert",
        meaning: "PEM file with the API's certificate and its intermediate certificates; default own: a self-signed certificate in the data directory",
        set: |config, value| own_or_path(value).map(|path| config.api_tls_cert = path),
        show: |config| show_path(config.api_tls_cert.as_deref()),
    },
    Key {
        name: "api.tls_key",
        meaning: "PEM file with the private key of api.tls_cert; default own",
        set: |config, value| own_or_path(value).map(|path| config.api_tls_key = path),
        show: |config| show_path(config.api_tls_key.as_deref()),
    },
    Key {
        name: "admission.policy",
        meaning: "action when a change would commit more than the capacity measured by `weir calibrate`: refuse (default), warn or off",
        set: |config, value| {
            let given = text(value)?;
            let found = Policy::ALL.into_iter().find(|policy| policy.name() == given);
            let refused = || format!("{given:?} is not one of refuse, warn, off");
            config.admission.policy = found.ok_or_else(refused)?;
            Ok(())
        },
        show: |config| quote(config.admission.policy.name()),
    },
    Key {
        name: "admission.mix",
        meaning: "read/write mix used for the capacity check: worst (default: worst of all measured mixes), or the percentage of reads, 0 to 100",
        set: |config, value| {
            let given = match value {
                Value::Integer(percent) => percent.to_string(),
                _ => text(value)?.to_owned(),
            };
            let refused =
                || format!("{given:?} is neither worst nor a percentage of reads from 0 to 100");
            config.admission.plan.mix = given.parse().map_err(|_| refused())?;
            Ok(())
        },
        show: |config| quote(&config.admission.plan.mix.to_string()),
    },
    Key {
        name: "admission.block_size",
        meaning: "block size used for the capacity check of throughput, at most 1MiB; default 64KiB",
        set: |config, value| block(value).map(|bytes| config.admission.plan.block_bytes = bytes),
        show: |config| quote(&format!("{:#}", Bytes(config.admission.plan.block_bytes.into()))),
    },
    Key {
        name: "admission.iops_block_size",
        meaning: "block size used for the capacity check of IOPS, at most 1MiB; default 8KiB",
        set: |config, value| {
            block(value).map(|bytes| config.admission.plan.iops_block_bytes = bytes)
        },
        show: |config| {
            quote(&format!("{:#}", Bytes(config.admission.plan.iops_block_bytes.into())))
        },
    },
    Key {
        name: "admission.overcommit_percent",
        meaning: "share of the measured capacity that may be committed, in percent, 1 to 10000; default 100",
        set: |config, value| {
            number(value, &(1..=OVERCOMMIT_PERCENT_MAX))
                .map(|percent| config.admission.overcommit_percent = percent)
        },
        show: |config| config.admission.overcommit_percent.to_string(),
    },
    Key {
        name: "log.format",
        meaning: "format of log lines on standard error: text (default) or json",
        set: |config, value| {
            config.log_format = match text(value)? {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(format!("{other:?} is not one of text, json")),
            };
            Ok(())
        },
        show: |config| {
            quote(match config.log_format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            })
        },
    },
    Key {
        name: "log.level",
        meaning: "log level: off, error, warn, info (default), debug, trace, or a filter such as info,weir_store=debug",
        set: |config, value| log_filter(value).map(|filter| config.log_level = filter),
        show: |config| quote(&config.log_level),
    },
    Key {
        name: "metrics.histograms",
        meaning: "names of the volumes with latency histograms in the metrics, at most 100; default none; an empty list (or `none`): none",
        set: |config, value| volumes(value).map(|names| config.metrics_histograms = names),
        show: |config| list(&config.metrics_histograms),
    },
];

/// The known key that `key` was probably meant to be.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |known: &str| {
        let whole = strsim::jaro_winkler(key, known);
        whole.max(strsim::jaro_winkler(&last(key), &last(known)) - 0.05)
    };
    let scored = KEYS.iter().map(|known| (likeness(known.name), known.name));
    scored
        .filter(|(score, _)| *score > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}

fn text<'a>(value: &Value<'a>) -> Result<&'a str, String> {
    match value {
        Value::Text(text) if !text.is_empty() => Ok(text),
        _ => Err("expected a non-empty string".to_owned()),
    }
}

fn own_or_path(value: &Value<'_>) -> Result<Option<PathBuf>, String> {
    match text(value)? {
        "own" => Ok(None),
        path => Ok(Some(PathBuf::from(path))),
    }
}

fn show_path(path: Option<&Path>) -> String {
    quote(&path.map_or("own".into(), |path| path.to_string_lossy()))
}

fn number<T>(value: &Value<'_>, allowed: &RangeInclusive<T>) -> Result<T, String>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display,
{
    let given = match value {
        Value::Integer(number) => Some(*number),
        Value::Text(text) => text.parse().ok(),
        Value::Bool(_) | Value::List(_) => None,
    };
    let number = given.and_then(|number| T::try_from(number).ok());
    number.filter(|number| allowed.contains(number)).ok_or_else(|| {
        format!("expected a whole number from {} to {}", allowed.start(), allowed.end())
    })
}

fn boolean(value: &Value<'_>) -> Result<bool, String> {
    match value {
        Value::Bool(on) => Ok(*on),
        Value::Text("true") => Ok(true),
        Value::Text("false") => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

fn size(value: &Value<'_>) -> Result<u64, String> {
    match parse_bytes(text(value)?) {
        Ok(0) => Err("expected a value greater than zero".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// The size of one READ or WRITE.
fn block(value: &Value<'_>) -> Result<u32, String> {
    let bytes = size(value)?;
    let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes <= IO_BYTES_MAX);
    fits.ok_or_else(|| format!("must not exceed {}", Bytes(IO_BYTES_MAX.into())))
}

fn rate(value: &Value<'_>) -> Result<u64, String> {
    match parse_rate(text(value)?) {
        Ok(0) => Err("expected a value greater than zero".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// A rate that a custom pool may buy.
fn bought(value: &Value<'_>) -> Result<u64, String> {
    let most = Model::CUSTOM_RATE_MAX;
    rate(value).and_then(|rate| match rate > most.0 {
        true => Err(format!("must not exceed {most}, the maximum for a custom pool")),
        false => Ok(rate),
    })
}

/// Levels with an optional target each, comma-separated. A target without a level, which tracing
/// would accept, cannot be distinguished from a misspelt level, which would silence all others.
fn log_filter(value: &Value<'_>) -> Result<String, String> {
    let is_level = |word: &str| LOG_LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let in_target = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
    let is_target = |word: &str| !word.is_empty() && word.chars().all(in_target);
    let parts: Vec<&str> = text(value)?.split(',').map(str::trim).collect();
    for part in &parts {
        let known = match part.rsplit_once('=') {
            Some((target, level)) => is_target(target) && is_level(level),
            None => is_level(part),
        };
        if !known {
            let levels = LOG_LEVELS.join(", ");
            return Err(format!(
                "{part:?} is neither a level ({levels}) nor TARGET=LEVEL; for example info, or info,weir_store=debug"
            ));
        }
    }
    Ok(parts.join(","))
}

fn addresses(value: &Value<'_>) -> Result<Vec<SocketAddr>, String> {
    let texts = texts(value, "expected a list of ADDRESS:PORT")?;
    if texts.len() > LISTEN_MAX {
        return Err(format!("too many addresses: at most {LISTEN_MAX} are allowed"));
    }
    let address = |text: &&str| {
        text.parse::<SocketAddr>().map_err(|_| {
            format!(
                "{text:?} is not an ADDRESS:PORT such as 127.0.0.1:2049 or [::1]:2049 (host names are not supported)"
            )
        })
    };
    texts.iter().map(address).collect()
}

/// Names of volumes. A volume of that name need not exist yet.
fn volumes(value: &Value<'_>) -> Result<BTreeSet<String>, String> {
    let names: BTreeSet<&str> =
        texts(value, "expected a list of volume names")?.into_iter().collect();
    if names.len() > HISTOGRAMS_MAX {
        let given = names.len();
        return Err(format!(
            "at most {HISTOGRAMS_MAX} volumes may have histograms, but {given} are listed"
        ));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match names.iter().find(|name| name.is_empty() || !name.chars().all(allowed)) {
        Some(bad) => Err(format!(
            "{bad:?} is not a volume name; give the name without the pool, for example home"
        )),
        None => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// A list, a comma-separated string, or `none`.
fn texts<'a>(value: &Value<'a>, needed: &str) -> Result<Vec<&'a str>, String> {
    match value {
        Value::Text("none") => Ok(Vec::new()),
        Value::Text(text) => Ok(text.split(',').map(str::trim).collect()),
        Value::List(list) => Ok(list.clone()),
        Value::Integer(_) | Value::Bool(_) => Err(needed.to_owned()),
    }
}

/// A basic string of TOML, on one line whatever is in `text` (TOML 1.0, "String").
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of values that need no escaping.
fn list<T: std::fmt::Display>(things: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = things.into_iter().map(|thing| format!("\"{thing}\"")).collect();
    format!("[{}]", quoted.join(", "))
}
