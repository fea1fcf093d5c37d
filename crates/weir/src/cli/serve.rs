//! `weir serve`, and the options that configure it.

use super::{Global, logging};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weir_control::ServerConfig;
use weir_control::config::{GatewayConfig, Override};

/// Run the server in the foreground, until SIGTERM or SIGINT.
///
/// Weir serves NFSv3 and MOUNT version 3 over TCP on one port. Without --rpcbind, clients cannot
/// look up the port or the lock manager, so mount commands must give the port and disable network
/// locks:
///
///   mount -t nfs -o vers=3,proto=tcp,port=2049,mountport=2049,nolock HOST:/VOLUME /mnt
///
/// With --rpcbind register or serve, locks work between clients:
///
///   mount -t nfs -o vers=3,proto=tcp HOST:/VOLUME /mnt
///
/// Every option can also be set by an environment variable (shown in brackets) or in a TOML file.
/// The command line overrides the environment, and the environment overrides the file. `weir config
/// keys` lists the keys of the file.
///
/// On SIGHUP the server reloads the API's certificate. On SIGTERM it stops accepting connections,
/// completes the requests in flight, syncs every volume and exits.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir serve --data /var/lib/weir
  weir serve --data /var/lib/weir --nfs 0.0.0.0:2049 --nfs '[::]:2049'
  weir serve --data /var/lib/weir --nfs 0.0.0.0:2049 --rpcbind register
  weir serve --config /etc/weir.toml --log-format json")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// The options that form a configuration.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// TOML configuration file
    #[arg(long, env = "WEIR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen address for NFS and MOUNT; repeatable [default: 127.0.0.1:2049]
    #[arg(long, env = "WEIR_NFS", value_name = "ADDR:PORT", value_delimiter = ',')]
    nfs: Vec<String>,
    /// Listen address for SMB, or `none`; repeatable [default: none]
    #[arg(long, env = "WEIR_SMB", value_name = "ADDR:PORT", value_delimiter = ',')]
    smb: Vec<String>,
    /// Signing of SMB messages: required, or offered (only if the client requests it) [default:
    /// required]
    #[arg(long, env = "WEIR_SMB_SIGNING", value_name = "HOW")]
    smb_signing: Option<String>,
    /// Listen address for the API over TCP, or `none`; repeatable [default: 127.0.0.1:7437]
    #[arg(long, env = "WEIR_API", value_name = "ADDR:PORT", value_delimiter = ',')]
    api: Vec<String>,
    /// Use of TLS for the API over TCP: auto (all addresses except loopback), on or off [default:
    /// auto]
    #[arg(long, env = "WEIR_API_TLS", value_name = "WHERE")]
    api_tls: Option<String>,
    /// PEM file with the API's certificate, reloaded on SIGHUP [default: a self-signed certificate
    /// in the data directory]
    #[arg(long, env = "WEIR_API_TLS_CERT", value_name = "FILE")]
    api_tls_cert: Option<String>,
    /// PEM file with the private key of --api-tls-cert
    #[arg(long, env = "WEIR_API_TLS_KEY", value_name = "FILE")]
    api_tls_key: Option<String>,
    /// Number of worker threads that serve connections, 0 to 1024; 0: one per core [default: 0]
    #[arg(long, env = "WEIR_WORKERS", value_name = "COUNT")]
    workers: Option<String>,
    /// Failure that a completed create, remove or rename survives: power (a power failure) or
    /// process (a crash of the server only) [default: power]
    #[arg(long, env = "WEIR_NAMESPACE_DURABILITY", value_name = "WHAT")]
    namespace_durability: Option<String>,
    /// Cache file descriptors and attributes in memory: true or false [default: true]
    #[arg(long, env = "WEIR_METADATA_CACHE", value_name = "BOOL")]
    metadata_cache: Option<String>,
    /// Maximum number of objects per volume in the metadata cache, 16 to 16777216 [default: 65536]
    #[arg(long, env = "WEIR_CACHED_OBJECTS_MAX", value_name = "COUNT")]
    cached_objects_max: Option<String>,
    /// Number of threads for blocking disk I/O, 16 to 1024 [default: 16]
    #[arg(long, env = "WEIR_BLOCKING_THREADS", value_name = "COUNT")]
    blocking_threads: Option<String>,
    /// Look up the groups of users on this machine instead of using the AUTH_SYS list, which is
    /// limited to 16 groups: true or false [default: false]
    #[arg(long, env = "WEIR_MANAGE_GIDS", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    manage_gids: Option<String>,
    /// Maximum memory for requests that wait for their contract, in MiB, 16 to 1048576 [default:
    /// 1024]
    #[arg(long, env = "WEIR_PARKED_TOTAL_MIB", value_name = "MIB")]
    parked_total_mib: Option<String>,
    /// Maximum number of open connections, 16 to 1000000 [default: 16384]
    #[arg(long, env = "WEIR_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: Option<String>,
    /// Maximum number of open connections per IPv4 address or IPv6 /64, 1 to 1000000 [default:
    /// 1024]
    #[arg(long, env = "WEIR_CONNECTIONS_PER_CLIENT_MAX", value_name = "COUNT")]
    connections_per_client_max: Option<String>,
    /// Idle time in seconds after which TCP keepalive probes are sent, 5 to 7200 [default: 60]
    #[arg(long, env = "WEIR_KEEPALIVE_SECS", value_name = "SECONDS")]
    keepalive_secs: Option<String>,
    /// Minimum size of a pool [default: 1MiB]
    #[arg(long, env = "WEIR_POOL_SIZE_MIN", value_name = "SIZE")]
    pool_size_min: Option<String>,
    /// Minimum quota of a volume [default: 1MiB]
    #[arg(long, env = "WEIR_VOLUME_QUOTA_MIN", value_name = "SIZE")]
    volume_quota_min: Option<String>,
    /// Minimum throughput of a custom pool, at most 5120MiB/s [default: 64MiB/s]
    #[arg(long, env = "WEIR_CUSTOM_THROUGHPUT_MIN", value_name = "RATE")]
    custom_throughput_min: Option<String>,
    /// Minimum IOPS of a custom pool, 1 to 160000 [default: 1024]
    #[arg(long, env = "WEIR_CUSTOM_IOPS_MIN", value_name = "COUNT")]
    custom_iops_min: Option<String>,
    /// Action when a change would commit more than the capacity measured by `weir calibrate`:
    /// refuse, warn or off [default: refuse]
    #[arg(long, env = "WEIR_ADMISSION_POLICY", value_name = "WHAT")]
    admission_policy: Option<String>,
    /// Read/write mix used for the capacity check: worst (of all measured mixes), or the percentage
    /// of reads, 0 to 100 [default: worst]
    #[arg(long, env = "WEIR_ADMISSION_MIX", value_name = "MIX")]
    admission_mix: Option<String>,
    /// Block size used for the capacity check of throughput, at most 1MiB [default: 64KiB]
    #[arg(long, env = "WEIR_ADMISSION_BLOCK_SIZE", value_name = "SIZE")]
    admission_block_size: Option<String>,
    /// Block size used for the capacity check of IOPS, at most 1MiB [default: 8KiB]
    #[arg(long, env = "WEIR_ADMISSION_IOPS_BLOCK_SIZE", value_name = "SIZE")]
    admission_iops_block_size: Option<String>,
    /// Share of the measured capacity that may be committed, in percent, 1 to 10000 [default: 100]
    #[arg(long, env = "WEIR_ADMISSION_OVERCOMMIT_PERCENT", value_name = "PERCENT")]
    admission_overcommit_percent: Option<String>,
    /// Registration of the lock manager: register (with the local rpcbind), serve (built-in
    /// portmapper on port 111) or off (no network locks) [default: off]
    #[arg(long, env = "WEIR_RPCBIND", value_name = "HOW")]
    rpcbind: Option<String>,
    /// Grace period after a restart in seconds, during which clients may only reclaim locks, 0 to
    /// 3600 [default: 90]
    #[arg(long, env = "WEIR_GRACE_PERIOD_SECS", value_name = "SECONDS")]
    grace_period_secs: Option<String>,
    /// seccomp filter for the server's own system calls: on, log or off [default: on]
    #[arg(long, env = "WEIR_SECCOMP", value_name = "HOW")]
    seccomp: Option<String>,
    /// Time to wait at shutdown for requests in flight, in seconds, 0 to 3600 [default: 30]
    #[arg(long, env = "WEIR_SHUTDOWN_GRACE_SECS", value_name = "SECONDS")]
    shutdown_grace_secs: Option<String>,
    /// Format of log lines on standard error: text or json [default: text]
    #[arg(long, env = "WEIR_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,
    /// Log level: off, error, warn, info, debug, trace, or a filter such as info,weir_store=debug
    /// [default: info]
    #[arg(long, env = "WEIR_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,
    /// Names of the volumes with latency histograms in the metrics, at most 100, or `none`
    /// [default: none]
    #[arg(long, env = "WEIR_METRICS_HISTOGRAMS", value_name = "VOLUME", value_delimiter = ',')]
    metrics_histograms: Vec<String>,
}

impl ConfigArgs {
    /// The configuration that results from defaults, file, environment and command line.
    ///
    /// # Errors
    /// See [`ServerConfig::load`].
    pub(crate) fn load(&self, global: &Global) -> Result<ServerConfig> {
        let listed = |items: &[String]| (!items.is_empty()).then(|| items.join(","));
        let data = global.data.as_ref().map(|path| path.to_string_lossy().into_owned());
        let given = [
            ("data", data),
            ("workers", self.workers.clone()),
            ("namespace_durability", self.namespace_durability.clone()),
            ("metadata_cache", self.metadata_cache.clone()),
            ("cached_objects_max", self.cached_objects_max.clone()),
            ("blocking_threads", self.blocking_threads.clone()),
            ("manage_gids", self.manage_gids.clone()),
            ("parked_total_mib", self.parked_total_mib.clone()),
            ("connections_max", self.connections_max.clone()),
            ("connections_per_client_max", self.connections_per_client_max.clone()),
            ("keepalive_secs", self.keepalive_secs.clone()),
            ("pool_size_min", self.pool_size_min.clone()),
            ("volume_quota_min", self.volume_quota_min.clone()),
            ("custom_throughput_min", self.custom_throughput_min.clone()),
            ("custom_iops_min", self.custom_iops_min.clone()),
            ("rpcbind", self.rpcbind.clone()),
            ("grace_period_secs", self.grace_period_secs.clone()),
            ("seccomp", self.seccomp.clone()),
            ("shutdown_grace_secs", self.shutdown_grace_secs.clone()),
            ("nfs.listen", listed(&self.nfs)),
            ("smb.listen", listed(&self.smb)),
            ("smb.signing", self.smb_signing.clone()),
            ("api.listen", listed(&self.api)),
            ("api.tls", self.api_tls.clone()),
            ("api.tls_cert", self.api_tls_cert.clone()),
            ("api.tls_key", self.api_tls_key.clone()),
            ("admission.policy", self.admission_policy.clone()),
            ("admission.mix", self.admission_mix.clone()),
            ("admission.block_size", self.admission_block_size.clone()),
            ("admission.iops_block_size", self.admission_iops_block_size.clone()),
            ("admission.overcommit_percent", self.admission_overcommit_percent.clone()),
            ("log.format", self.log_format.clone()),
            ("log.level", self.log_level.clone()),
            ("metrics.histograms", listed(&self.metrics_histograms)),
        ];
        let overrides: Vec<Override> =
            given.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
        Ok(ServerConfig::load(self.config.as_deref(), &overrides)?)
    }
}

/// Runs the server until a signal stops it.
pub(crate) fn run(global: &Global, args: &ServeArgs) -> Result<()> {
    let config = args.config.load(global)?;
    logging::start(&config)?;
    let served = serve(&config);
    weir_control::log::flush();
    served
}

/// Serves alone, or as the gateway that the data directory is of.
fn serve(config: &ServerConfig) -> Result<()> {
    match GatewayConfig::read(&config.data)? {
        None => Ok(weir_server::serve(config)?),
        #[cfg(feature = "cluster")]
        Some(gateway) => crate::gateway::serve(config, &gateway),
        #[cfg(not(feature = "cluster"))]
        Some(gateway) => anyhow::bail!(
            "{} is the data directory of gateway {}, but this program was built without gateways: build it with `--features cluster`",
            config.data.display(),
            gateway.gateway
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::{CommandFactory, Parser};
    use weir_control::config::{KEYS, SmbSigning};

    #[test]
    fn every_key_of_the_file_has_its_option() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let options: Vec<_> = serve.get_arguments().filter_map(|arg| arg.get_long()).collect();
        for key in KEYS.iter().filter(|key| key.name != "data") {
            let option = key.name.trim_end_matches(".listen").replace(['.', '_'], "-");
            assert!(options.contains(&option.as_str()), "{} has no --{option}", key.name);
        }
    }

    #[test]
    fn options_reach_the_configuration() {
        let line = "weir serve --data /d --nfs 127.0.0.1:1 --nfs [::1]:2,127.0.0.1:3 --api none \
                    --workers 3 --smb 127.0.0.1:445 --smb-signing offered --metadata-cache false --log-level debug --pool-size-min 2GiB";
        let cli = Cli::parse_from(line.split_whitespace());
        let Command::Serve(args) = &cli.command else { panic!("not serve") };
        let config = args.config.load(&cli.global).unwrap();
        assert_eq!((config.nfs.len(), config.smb.len()), (3, 1));
        assert_eq!(config.smb_signing, SmbSigning::Offered);
        assert!(config.api.is_empty() && !config.metadata_cache);
        assert_eq!((config.workers, config.pool_size_min), (3, 2 << 30));
    }
}
