//! `weir gateway helper`.

use super::member::data;
use crate::cli::{Global, logging};
use crate::cluster;
use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;
use weir_catalog::GatewayId;
use weir_control::ServerConfig;
use weir_control::config::{GatewayConfig, Override};
use weir_helper::{Hook, Options, SocketMode};

/// The capabilities without which a helper can do nothing.
const NEEDS: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);
/// The longest that the hook may run for one address.
const HOOK_PATIENCE: Duration = Duration::from_secs(10);

/// Run the helper of this machine in the foreground, until SIGTERM or SIGINT
///
/// A gateway's machine runs one helper and one server. The helper adds the addresses of the cluster
/// to the network interface and removes them, which the server has no privilege for; and it tells
/// the other gateways when the server's process has ended, so that they take over at once. Start it
/// before the server, and stop it after the server. Without it the server serves no address.
///
/// The helper reads gateway.toml and the key file in the data directory (--data). It needs the
/// capabilities CAP_NET_ADMIN and CAP_NET_RAW, and gives up all others. At its end it removes all
/// addresses of the cluster from this machine. The Debian package has the unit weir-helper.service
/// for it.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir gateway helper --data /var/lib/weir
  weir gateway helper --data /var/lib/weir --hook /usr/local/sbin/move-address
  systemctl enable --now weir-helper")]
pub(crate) struct HelperArgs {
    /// Program that is run as PROGRAM add|remove ADDRESS INTERFACE when an address comes or goes,
    /// for networks that do not learn it by ARP; it is ended after 10 seconds
    #[arg(long, value_name = "PROGRAM")]
    hook: Option<PathBuf>,
    /// User ID of the server, the only user that the helper serves. If it is another than the
    /// helper's, the server needs the helper's group [default: the owner of the data directory]
    #[arg(long, value_name = "UID")]
    server_uid: Option<u32>,
    /// Format of log lines on standard error: text or json [default: text]
    #[arg(long, env = "WEIR_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,
    /// Log level: off, error, warn, info, debug, trace, or a filter such as info,weir_helper=debug
    /// [default: info]
    #[arg(long, env = "WEIR_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,
}

/// Runs the helper until a signal stops it.
///
/// # Errors
/// The machine is no gateway, the key file cannot be read, a capability is missing, or the helper
/// cannot listen.
pub(crate) fn run(global: &Global, args: &HelperArgs) -> Result<()> {
    let directory = data(global)?;
    let Some(config) = GatewayConfig::read(&directory)? else {
        bail!(
            "{} has no gateway.toml, so this machine is no gateway: `weir gateway init` creates a cluster, `weir gateway join` adds a machine to one",
            directory.display()
        );
    };
    let options = args.options(&directory, &config)?;
    if !capabilities(None).context("capabilities")?.permitted.contains(NEEDS) {
        bail!(
            "the helper needs the capabilities CAP_NET_ADMIN and CAP_NET_RAW: run it as root, or as the unit weir-helper"
        );
    }
    make_parent(&options.socket)?;
    // The log has no thread: one that begins before the helper gives up its privileges keeps them.
    logging::start(&args.logging(&directory)?)?;
    let served = weir_helper::serve(options);
    weir_control::log::flush();
    Ok(served?)
}

impl HelperArgs {
    fn options(&self, directory: &Path, config: &GatewayConfig) -> Result<Options> {
        let server_uid = match self.server_uid {
            Some(uid) => uid,
            None => directory.metadata().context("the data directory")?.uid(),
        };
        let own = server_uid == geteuid().as_raw();
        Ok(Options {
            gateway: GatewayId(config.number),
            key: cluster::key_file(config)?,
            listen: config.helper.links,
            socket: config.helper.socket.clone(),
            socket_mode: if own { SocketMode::Owner } else { SocketMode::Group },
            server_uid,
            hook: self.hook.as_deref().map(hook).transpose()?,
        })
    }

    /// The part of a server's configuration that is the helper's, too.
    fn logging(&self, directory: &Path) -> Result<ServerConfig> {
        let data = directory.to_string_lossy().into_owned();
        let given = [
            ("data", Some(data)),
            ("log.format", self.log_format.clone()),
            ("log.level", self.log_level.clone()),
        ];
        let given: Vec<Override> =
            given.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
        Ok(ServerConfig::load(None, &given)?)
    }
}

fn hook(program: &Path) -> Result<Hook> {
    let named = || format!("--hook {}", program.display());
    let metadata = program.metadata().with_context(named)?;
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        bail!("{}: not a program that can be run", named());
    }
    Ok(Hook { program: absolute(program).with_context(named)?, patience: HOOK_PATIENCE })
}

/// Makes the directory of the socket, as /run loses it whenever the machine starts.
fn make_parent(socket: &Path) -> Result<()> {
    let Some(parent) = socket.parent() else { return Ok(()) };
    match DirBuilder::new().mode(0o755).create(parent) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("the socket {}", socket.display()))
        }
        _ => Ok(()),
    }
}
