//! `weir serve`, and the options that configure it.

use super::{Global, logging};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use weir_server::ServerConfig;
use weir_server::config::Override;

/// Run the server in the foreground, until SIGTERM or SIGINT.
///
/// It serves NFSv3 and MOUNT version 3 over TCP on the same port. Without --rpcbind clients find
/// neither the port nor the lock manager, so mounts name the one and do without the other:
///
///   mount -t nfs -o vers=3,proto=tcp,port=2049,mountport=2049,nolock HOST:/VOLUME /mnt
///
/// With --rpcbind register or serve locks hold between clients:
///
///   mount -t nfs -o vers=3,proto=tcp HOST:/VOLUME /mnt
///
/// Every option can also be set in the environment (the name in brackets) and in a TOML file; the
/// command line goes before the environment, the environment before the file. `weir config keys`
/// lists the keys of the file.
///
/// On SIGHUP it reads the API's certificate again. On SIGTERM it stops accepting, answers what is
/// in flight, syncs every volume and leaves.
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

/// The options that make a configuration.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// TOML file to read
    #[arg(long, env = "WEIR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to serve NFS and MOUNT; may be given several times [default: 127.0.0.1:2049]
    #[arg(long, env = "WEIR_NFS", value_name = "ADDR:PORT", value_delimiter = ',')]
    nfs: Vec<String>,
    /// Where to serve the API over TCP, or `none`; may be given several times [default:
    /// 127.0.0.1:7437]
    #[arg(long, env = "WEIR_API", value_name = "ADDR:PORT", value_delimiter = ',')]
    api: Vec<String>,
    /// Where the API over TCP speaks TLS: auto, at all addresses but loopback; on; or off [default:
    /// auto]
    #[arg(long, env = "WEIR_API_TLS", value_name = "WHERE")]
    api_tls: Option<String>,
    /// The API's certificate, PEM, read again on SIGHUP [default: one made in the data directory]
    #[arg(long, env = "WEIR_API_TLS_CERT", value_name = "FILE")]
    api_tls_cert: Option<String>,
    /// The key of --api-tls-cert, PEM
    #[arg(long, env = "WEIR_API_TLS_KEY", value_name = "FILE")]
    api_tls_key: Option<String>,
    /// Threads that serve connections; 0 for one per core [default: 0]
    #[arg(long, env = "WEIR_WORKERS", value_name = "COUNT")]
    workers: Option<String>,
    /// What an answered create, remove or rename survives: power or process [default: power]
    #[arg(long, env = "WEIR_NAMESPACE_DURABILITY", value_name = "WHAT")]
    namespace_durability: Option<String>,
    /// Keep descriptors and attributes in memory: true or false [default: true]
    #[arg(long, env = "WEIR_METADATA_CACHE", value_name = "BOOL")]
    metadata_cache: Option<String>,
    /// Most objects of one volume kept so [default: 65536]
    #[arg(long, env = "WEIR_CACHED_OBJECTS_MAX", value_name = "COUNT")]
    cached_objects_max: Option<String>,
    /// Threads for system calls that may wait for the disk [default: 16]
    #[arg(long, env = "WEIR_BLOCKING_THREADS", value_name = "COUNT")]
    blocking_threads: Option<String>,
    /// Look up the groups of callers on this machine, of whom AUTH_SYS carries only 16: true or
    /// false [default: false]
    #[arg(long, env = "WEIR_MANAGE_GIDS", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    manage_gids: Option<String>,
    /// MiB of memory that requests waiting for their contract may pin in all [default: 1024]
    #[arg(long, env = "WEIR_PARKED_TOTAL_MIB", value_name = "MIB")]
    parked_total_mib: Option<String>,
    /// Most open connections [default: 16384]
    #[arg(long, env = "WEIR_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: Option<String>,
    /// Most open connections of one IPv4 address or IPv6 /64 [default: 1024]
    #[arg(long, env = "WEIR_CONNECTIONS_PER_CLIENT_MAX", value_name = "COUNT")]
    connections_per_client_max: Option<String>,
    /// Seconds of silence after which a peer is asked whether it is still there [default: 60]
    #[arg(long, env = "WEIR_KEEPALIVE_SECS", value_name = "SECONDS")]
    keepalive_secs: Option<String>,
    /// Smallest pool [default: 1MiB]
    #[arg(long, env = "WEIR_POOL_SIZE_MIN", value_name = "SIZE")]
    pool_size_min: Option<String>,
    /// Smallest volume [default: 1MiB]
    #[arg(long, env = "WEIR_VOLUME_QUOTA_MIN", value_name = "SIZE")]
    volume_quota_min: Option<String>,
    /// Least throughput that a pool of the model custom buys [default: 64MiB/s]
    #[arg(long, env = "WEIR_CUSTOM_THROUGHPUT_MIN", value_name = "RATE")]
    custom_throughput_min: Option<String>,
    /// Least IOPS that a pool of the model custom buys [default: 1024]
    #[arg(long, env = "WEIR_CUSTOM_IOPS_MIN", value_name = "COUNT")]
    custom_iops_min: Option<String>,
    /// What is done about a change that commits disks to more than `weir calibrate` found that they
    /// hold: refuse, warn or off [default: refuse]
    #[arg(long, env = "WEIR_ADMISSION_POLICY", value_name = "WHAT")]
    admission_policy: Option<String>,
    /// The mix by which that is judged: worst, or the percentage of reads [default: worst]
    #[arg(long, env = "WEIR_ADMISSION_MIX", value_name = "MIX")]
    admission_mix: Option<String>,
    /// The block size by which throughput is judged [default: 64KiB]
    #[arg(long, env = "WEIR_ADMISSION_BLOCK_SIZE", value_name = "SIZE")]
    admission_block_size: Option<String>,
    /// The block size by which IOPS are judged [default: 8KiB]
    #[arg(long, env = "WEIR_ADMISSION_IOPS_BLOCK_SIZE", value_name = "SIZE")]
    admission_iops_block_size: Option<String>,
    /// How much of what disks hold may be committed, in percent [default: 100]
    #[arg(long, env = "WEIR_ADMISSION_OVERCOMMIT_PERCENT", value_name = "PERCENT")]
    admission_overcommit_percent: Option<String>,
    /// How clients find the lock manager: register, serve or off [default: off]
    #[arg(long, env = "WEIR_RPCBIND", value_name = "HOW")]
    rpcbind: Option<String>,
    /// Seconds after a restart in which only locks from before it are given [default: 90]
    #[arg(long, env = "WEIR_GRACE_PERIOD_SECS", value_name = "SECONDS")]
    grace_period_secs: Option<String>,
    /// Filter of the server's own system calls: on, log or off [default: on]
    #[arg(long, env = "WEIR_SECCOMP", value_name = "HOW")]
    seccomp: Option<String>,
    /// Seconds to wait at shutdown for requests in flight [default: 30]
    #[arg(long, env = "WEIR_SHUTDOWN_GRACE_SECS", value_name = "SECONDS")]
    shutdown_grace_secs: Option<String>,
    /// Log lines on standard error: text or json [default: text]
    #[arg(long, env = "WEIR_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,
    /// off, error, warn, info, debug, trace, or a filter such as info,weir_store=debug [default:
    /// info]
    #[arg(long, env = "WEIR_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,
    /// Names of volumes that have histograms of latency in the metrics, or `none` [default: none]
    #[arg(long, env = "WEIR_METRICS_HISTOGRAMS", value_name = "VOLUME", value_delimiter = ',')]
    metrics_histograms: Vec<String>,
}

impl ConfigArgs {
    /// The configuration that defaults, file, environment and command line come to.
    ///
    /// # Errors
    /// What [`ServerConfig::load`] refuses.
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

/// Serves until told to stop.
pub(crate) fn run(global: &Global, args: &ServeArgs) -> Result<()> {
    let config = args.config.load(global)?;
    logging::start(&config)?;
    let served = weir_server::serve(&config);
    weir_server::log::flush();
    Ok(served?)
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::{CommandFactory, Parser};
    use weir_server::config::KEYS;

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
                    --workers 3 --metadata-cache false --log-level debug --pool-size-min 2GiB";
        let cli = Cli::parse_from(line.split_whitespace());
        let Command::Serve(args) = &cli.command else { panic!("not serve") };
        let config = args.config.load(&cli.global).unwrap();
        assert_eq!(config.nfs.len(), 3);
        assert!(config.api.is_empty() && !config.metadata_cache);
        assert_eq!((config.workers, config.pool_size_min), (3, 2 << 30));
    }
}
