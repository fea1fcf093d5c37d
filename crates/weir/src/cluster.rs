//! The ways of a gateway to its cluster, as its `gateway.toml` names them: etcd, the key file, the
//! place in the shared catalogue.
//!
//! Not here: who is a member and serves what (`weir-gateway`), and the commands (`cli/gateway`).

use anyhow::{Context, Result};
use std::sync::Arc;
use tokio::runtime::Handle;
use weir_catalog::{ClusterKey, ClusterPlace, Guard, LifeGuard};
use weir_cluster::Life;
use weir_control::config::{EtcdConfig, GatewayConfig};
use weir_etcd::{Connection, EtcdStore, Keys, Settings, Tls};
use weir_links::KeyFile;

/// A connection to the etcd of the cluster. Reads the files that `config` names; connects with the
/// first call.
///
/// # Errors
/// A file cannot be read, or an endpoint is none.
pub(crate) fn connection(config: &GatewayConfig) -> Result<Connection> {
    let EtcdConfig { endpoints, ca, cert, cert_key } = config.etcd.clone();
    let identity = cert.zip(cert_key);
    let tls = ca.map(|authority| Tls { authority, identity });
    Connection::new(&Settings { endpoints, tls, login: None }).context("etcd")
}

/// The keys of the cluster's records.
///
/// # Errors
/// The name of the cluster is none.
pub(crate) fn keys(config: &GatewayConfig) -> Result<Keys> {
    Keys::new(&config.cluster).with_context(|| format!("{:?}", config.cluster))
}

/// The key file of the cluster.
///
/// # Errors
/// It cannot be read, may be read by others, or is no key file.
pub(crate) fn key_file(config: &GatewayConfig) -> Result<KeyFile> {
    Ok(KeyFile::read(&config.key)?)
}

/// The place of this gateway in the cluster's catalogue, over a connection that is used within
/// `runtime`. Its changes are guarded by no life; a gateway that serves sets its own
/// ([`life_guard`]).
///
/// Calls of the catalogue block: none may come from a thread of `runtime`.
pub(crate) fn place(
    config: &GatewayConfig,
    runtime: Handle,
    connection: Connection,
    key: &KeyFile,
) -> ClusterPlace {
    ClusterPlace {
        store: Arc::new(EtcdStore::new(runtime, connection, &config.cluster)),
        cluster: config.cluster.clone(),
        gateway: config.gateway.clone(),
        life: LifeGuard::default(),
        key: ClusterKey::new(key.for_secrets()),
    }
}

/// The guard of what `life` writes in the catalogue: the row that etcd has as long as it is a
/// member with a lease.
pub(crate) fn life_guard(keys: &Keys, life: Life) -> Guard {
    let (key, value) = keys.life_row(life);
    Guard::Is { key, value: value.into_bytes() }
}
