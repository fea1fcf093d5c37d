//! The options by which a machine becomes a gateway, which `weir gateway init` and `join` share;
//! the checks of this machine before anything is made; and the gateway's row in the catalogue. Not
//! here: the cluster itself.

use crate::cli::{Global, Output, print};
use crate::cluster;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::json;
use std::fs::{self, DirBuilder, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf, absolute};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use weir_catalog::{
    Catalog, CatalogError, ClusterError, ClusterPlace, Gateway, Minimums, Mode, NewGateway,
    cluster_exists,
};
use weir_cluster::GatewayId;
use weir_control::config::{
    AddressesConfig, CephConfig, EtcdConfig, GatewayConfig, GatewayConfigError, HelperConfig,
};
use weir_etcd::{Connection, EtcdStore};
use weir_gateway::LocalState;
use weir_links::KeyFile;

/// The file of the key in a data directory.
const KEY: &str = "cluster.key";
/// The catalogue of a server that is alone.
const ALONE: &str = "weir.db";
/// The network interfaces of this machine.
const INTERFACES: &str = "/proc/self/net/dev";

/// The place of a gateway: in its cluster, and on its machine.
#[derive(Args)]
pub(crate) struct MemberArgs {
    /// Name of the cluster: up to 63 lower-case letters, digits and hyphens
    #[arg(long, value_name = "NAME")]
    cluster: String,
    /// Name of this gateway, unique in the cluster
    #[arg(long, value_name = "NAME")]
    gateway: String,
    /// Address of this machine at which other gateways reach this one
    #[arg(long, value_name = "ADDR:PORT")]
    links: SocketAddr,
    /// Address of this machine at which other gateways reach its helper
    #[arg(long, value_name = "ADDR:PORT")]
    helper_links: SocketAddr,
    /// URL of a member of etcd, http://HOST:PORT or https://HOST:PORT; repeatable
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true)]
    etcd: Vec<String>,
    /// PEM file with the certificates that verify etcd; https:// requires it
    #[arg(long, value_name = "FILE")]
    etcd_ca: Option<PathBuf>,
    /// PEM file with the certificate of this gateway for etcd
    #[arg(long, value_name = "FILE", requires = "etcd_cert_key")]
    etcd_cert: Option<PathBuf>,
    /// PEM file with the private key of --etcd-cert
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    etcd_cert_key: Option<PathBuf>,
    /// Network interface that gets the addresses of the cluster
    #[arg(long, value_name = "INTERFACE")]
    interface: String,
    /// Configuration file of Ceph
    #[arg(long, value_name = "FILE")]
    ceph_conf: PathBuf,
    /// User of Ceph, without the prefix "client."
    #[arg(long, value_name = "USER", default_value = weir_catalog::Ceph::USER)]
    ceph_user: String,
    /// Unix socket of the helper on this machine
    #[arg(long, value_name = "PATH", default_value = "/run/weir/helper.sock")]
    helper_socket: PathBuf,
    /// Key file of the cluster [default: cluster.key in the data directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// A machine that can become a gateway: nothing is made yet.
pub(crate) struct Candidate {
    pub(crate) directory: PathBuf,
    /// Complete but for the number, which the catalogue gives.
    pub(crate) config: GatewayConfig,
    connection: Connection,
}

impl Candidate {
    /// Checks the options and this machine.
    ///
    /// # Errors
    /// A usage error; something of this machine is not as the options say, or the data directory is
    /// that of another server.
    pub(crate) fn checked(global: &Global, args: &MemberArgs) -> Result<Self> {
        let directory = data(global)?;
        let config = args.config(&directory)?;
        config.validate().map_err(|error| print::usage(&error.to_string()))?;
        cluster::keys(&config).map_err(|error| print::usage(&print::in_full(&error)))?;
        check_directory(&directory)?;
        check_interface(&config.addresses.interface)?;
        check_local("--links", config.links)?;
        check_local("--helper-links", config.helper.links)?;
        let conf = &config.ceph.conf;
        File::open(conf).with_context(|| format!("--ceph-conf {}", conf.display()))?;
        let connection = cluster::connection(&config)?;
        Ok(Self { directory, config, connection })
    }

    /// Runs `act`, which calls etcd by way of the runtime that it is given.
    ///
    /// # Errors
    /// The errors of `act`; the system has no thread.
    pub(crate) fn with_etcd<T>(&self, act: impl FnOnce(Handle) -> Result<T>) -> Result<T> {
        with_etcd(&self.config.etcd.endpoints, act)
    }

    /// Does the cluster exist?
    ///
    /// # Errors
    /// The errors of [`cluster_exists`].
    pub(crate) fn has_cluster(&self, runtime: Handle) -> Result<bool> {
        let name = &self.config.cluster;
        let store = EtcdStore::new(runtime, self.connection.clone(), name);
        Ok(cluster_exists(&store, name)?)
    }

    /// The place in the cluster of whoever has this key.
    pub(crate) fn place(&self, runtime: Handle, key: &KeyFile) -> ClusterPlace {
        cluster::place(&self.config, runtime, self.connection.clone(), key)
    }

    /// The catalogue of the cluster.
    ///
    /// # Errors
    /// The errors of [`Catalog::open_in_cluster`].
    pub(crate) fn catalog(&self, place: &ClusterPlace) -> Result<Catalog> {
        let opened = Catalog::open_in_cluster(&self.directory, Minimums::default(), place.clone());
        Ok(opened?)
    }

    /// Is this the row of this gateway, as an earlier run of the command added it?
    pub(crate) fn is_own(&self, row: &Gateway) -> bool {
        let Self { config, .. } = self;
        (&row.name, row.links, row.helper) == (&config.gateway, config.links, config.helper.links)
    }

    /// Adds this gateway to the catalogue, unless an earlier run of the command has; then writes
    /// `gateway.toml`, with which the machine is a gateway.
    ///
    /// # Errors
    /// The errors of [`Catalog::add_gateway`]; the file cannot be written.
    pub(crate) fn add(&self, catalog: &Catalog) -> Result<GatewayConfig> {
        let name = &self.config.gateway;
        if !catalog.snapshot().gateways().any(|row| self.is_own(row)) {
            let (links, helper) = (self.config.links, self.config.helper.links);
            let new = NewGateway { name: name.clone(), links, helper };
            catalog.add_gateway(&new, Mode::Commit)?;
        }
        let snapshot = catalog.snapshot();
        let row = snapshot.gateway_named(name);
        let lost = || anyhow!("gateway {name} was removed from the cluster at the same time");
        let number = row.ok_or_else(lost)?.id.0;
        let config = GatewayConfig { number, ..self.config.clone() };
        // The directory may have the local state of a gateway that was removed, or that the
        // catalogue has forgotten.
        LocalState::renew(&self.directory, GatewayId(number))?;
        config.write(&self.directory)?;
        Ok(config)
    }
}

impl MemberArgs {
    fn config(&self, directory: &Path) -> Result<GatewayConfig> {
        let whole = |path: &PathBuf| {
            absolute(path).with_context(|| format!("the path {:?}", path.display().to_string()))
        };
        let optional = |path: &Option<PathBuf>| path.as_ref().map(whole).transpose();
        Ok(GatewayConfig {
            cluster: self.cluster.clone(),
            gateway: self.gateway.clone(),
            // The catalogue gives another.
            number: 1,
            key: self.key.as_ref().map_or_else(|| Ok(directory.join(KEY)), whole)?,
            links: self.links,
            etcd: EtcdConfig {
                endpoints: self.etcd.clone(),
                ca: optional(&self.etcd_ca)?,
                cert: optional(&self.etcd_cert)?,
                cert_key: optional(&self.etcd_cert_key)?,
            },
            helper: HelperConfig { socket: whole(&self.helper_socket)?, links: self.helper_links },
            addresses: AddressesConfig { interface: self.interface.clone() },
            ceph: CephConfig { conf: whole(&self.ceph_conf)?, user: self.ceph_user.clone() },
        })
    }
}

/// The data directory that the options name, as an absolute path.
///
/// # Errors
/// A usage error.
pub(crate) fn data(global: &Global) -> Result<PathBuf> {
    let none = || {
        print::usage(
            "no data directory given: use --data DIR, or set WEIR_DATA; this command works on the machine where it runs",
        )
    };
    let data = global.data.as_deref().filter(|_| global.server.is_none()).ok_or_else(none)?;
    absolute(data).context("--data")
}

/// Makes the data directory, if it is not there. Only its owner may look inside.
///
/// # Errors
/// The error of the file system.
pub(crate) fn make_directory(directory: &Path) -> Result<()> {
    let named = || format!("the data directory {}", directory.display());
    DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(named)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).with_context(named)
}

/// Passes if the data directory is not there, is empty, or is one that a gateway can have.
fn check_directory(directory: &Path) -> Result<()> {
    if GatewayConfig::read(directory)?.is_some() {
        return Err(GatewayConfigError::Exists(directory.join("gateway.toml")).into());
    }
    let shown = directory.display();
    if directory.join(ALONE).exists() {
        bail!(
            "{shown} is the data directory of a server that is alone: use a new or empty directory for the gateway"
        );
    }
    let Ok(mut entries) = fs::read_dir(directory) else { return Ok(()) };
    let mode = directory.metadata().with_context(|| shown.to_string())?.permissions().mode();
    if mode & 0o077 != 0 && entries.next().is_some() {
        let directory = directory.to_owned();
        return Err(CatalogError::NotDataDirectory { directory }.into());
    }
    Ok(())
}

fn check_interface(interface: &str) -> Result<()> {
    let table = fs::read_to_string(INTERFACES).with_context(|| INTERFACES.to_owned())?;
    let rows = table.lines().filter_map(|line| line.split_once(':'));
    let mut names: Vec<_> = rows.map(|(name, _)| name.trim()).collect();
    if names.contains(&interface) {
        return Ok(());
    }
    names.sort_unstable();
    bail!(
        "--interface: this machine has no network interface {interface:?}; it has {}",
        names.join(", ")
    )
}

/// Passes if this machine has the address. Only its own addresses can be listened at.
fn check_local(option: &str, address: SocketAddr) -> Result<()> {
    let listening = TcpListener::bind((address.ip(), 0));
    let foreign = || format!("{option}: this machine cannot listen at {}", address.ip());
    listening.map(drop).with_context(foreign)
}

/// Runs `act`, which calls the etcd at `endpoints` by way of the runtime that it is given.
///
/// # Errors
/// The errors of `act`; the system has no thread.
pub(crate) fn with_etcd<T>(
    endpoints: &[String],
    act: impl FnOnce(Handle) -> Result<T>,
) -> Result<T> {
    beside_runtime(act)?.map_err(|error| match error.downcast_ref() {
        Some(CatalogError::Cluster(ClusterError::Unreachable { what })) => anyhow!(
            "etcd at {} does not answer ({what}): check that this is its address and that it runs; then run the same command again",
            endpoints.join(", ")
        ),
        _ => error,
    })
}

/// Runs `act` while a thread of its own drives a runtime: calls of the catalogue block.
fn beside_runtime<T>(act: impl FnOnce(Handle) -> Result<T>) -> Result<Result<T>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, move || runtime.block_on(ended))?;
        let done = act(handle);
        drop(end);
        Ok(done)
    })
}

/// Prints what was made, and the commands that come next; `further` are those of one command alone.
pub(crate) fn print_made(
    output: Output,
    directory: &Path,
    config: &GatewayConfig,
    further: &[String],
) -> Result<()> {
    let GatewayConfig { cluster, gateway, number, key, .. } = config;
    if output == Output::Json {
        return print::json(&json!({
            "cluster": cluster,
            "gateway": gateway,
            "number": number,
            "data": directory,
            "key": key,
        }));
    }
    let data = directory.display();
    let first = [
        format!("this machine is gateway {gateway}, number {number}, of cluster {cluster}"),
        format!("data directory: {data}"),
        format!("key file: {}", key.display()),
        String::new(),
        "Start the helper of this machine, then the server:".to_owned(),
        format!("  weir gateway helper --data {data}"),
        format!("  weir serve --data {data} --nfs 0.0.0.0:2049"),
    ];
    print::lines(first.iter().chain(further))
}
