//! The catalogue of a cluster from the machine of one of its gateways, by way of etcd and not of
//! the gateway, which may run or not. For commands about the catalogue as a whole.

use super::member::with_etcd;
use crate::cluster;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Handle;
use weir_catalog::{ClusterPlace, Gateway, Lock, cluster_gateways};
use weir_control::config::GatewayConfig;
use weir_etcd::{Connection, RecordsClient};
use weir_links::KeyFile;

/// Time for a gateway's machine to accept a connection. One that is down does not refuse it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The machine of a gateway.
pub(crate) struct Machine {
    pub(crate) directory: PathBuf,
    pub(crate) config: GatewayConfig,
    connection: Connection,
    key: KeyFile,
}

impl Machine {
    /// The machine of the gateway with the data directory `directory`; `None` if that is one of a
    /// server that is alone, or of none.
    ///
    /// # Errors
    /// gateway.toml is wrong, or a file that it names cannot be read.
    pub(crate) fn of(directory: &Path) -> Result<Option<Self>> {
        let Some(config) = GatewayConfig::read(directory)? else { return Ok(None) };
        let (connection, key) = (cluster::connection(&config)?, cluster::key_file(&config)?);
        Ok(Some(Self { directory: directory.to_owned(), config, connection, key }))
    }

    /// The machine of a gateway, which it has to be.
    ///
    /// # Errors
    /// The errors of [`Self::of`]; the machine is no gateway.
    pub(crate) fn needed(directory: &Path) -> Result<Self> {
        let Some(machine) = Self::of(directory)? else {
            bail!(
                "{} has no gateway.toml, so this machine is no gateway: `weir gateway init` creates a cluster, `weir gateway join` adds a machine to one",
                directory.display()
            );
        };
        Ok(machine)
    }

    /// Runs `act` on the catalogue in etcd.
    ///
    /// # Errors
    /// The errors of `act`; the system has no thread.
    pub(crate) fn with_shared<T>(&self, act: impl FnOnce(&Shared<'_>) -> Result<T>) -> Result<T> {
        with_etcd(&self.config.etcd.endpoints, |runtime| {
            let (connection, key) = (self.connection.clone(), &self.key);
            let place = cluster::place(&self.config, runtime.clone(), connection, key);
            act(&Shared { machine: self, place, runtime })
        })
    }
}

/// The catalogue in etcd.
pub(crate) struct Shared<'a> {
    machine: &'a Machine,
    pub(crate) place: ClusterPlace,
    runtime: Handle,
}

impl Shared<'_> {
    /// Passes if no gateway of the cluster runs, as far as can be seen from here: none has a lease
    /// in etcd, and none accepts links, which one that is cut from etcd still does. `known` are
    /// gateways that the catalogue in etcd may have forgotten. The gateway of this machine does not
    /// start as long as the result is there.
    ///
    /// # Errors
    /// Gateways run, by name; etcd does not answer, or its rows are refused.
    pub(crate) fn hold(&self, known: impl Iterator<Item = Gateway>) -> Result<Lock> {
        let lock = Lock::take(&self.machine.directory)?;
        let keys = cluster::keys(&self.machine.config)?;
        let records = RecordsClient::new(self.machine.connection.clone(), keys);
        let view = self.runtime.block_on(records.view()).context("the gateways that run")?;
        let found = cluster_gateways(&self.place)?;
        let gateways: BTreeMap<_, _> = known.chain(found).map(|one| (one.id, one)).collect();
        let named = |id| match gateways.get(id) {
            Some(gateway) => gateway.name.clone(),
            None => format!("number {}", id.0),
        };
        let mut running: Vec<_> = view.attached.keys().map(named).collect();
        running.extend(answering(gateways.values()));
        running.sort();
        running.dedup();
        if running.is_empty() {
            return Ok(lock);
        }
        bail!(
            "the catalogue is not replaced while gateways run: stop the server on the machine of each gateway, and run the command again (one that has just ended has a lease for 3 seconds). Running: {}",
            running.join(", ")
        )
    }
}

/// The names of the gateways that accept a connection at the address of their links.
fn answering<'a>(gateways: impl Iterator<Item = &'a Gateway>) -> Vec<String> {
    let answers =
        |gateway: &&Gateway| TcpStream::connect_timeout(&gateway.links, ANSWERS_WITHIN).is_ok();
    std::thread::scope(|scope| {
        let asking: Vec<_> =
            gateways.map(|gateway| (gateway, scope.spawn(move || answers(&gateway)))).collect();
        let found = asking.into_iter().filter_map(|(gateway, asked)| {
            // A question that was not asked to its end is no answer that the gateway has ended.
            asked.join().unwrap_or(true).then(|| gateway.name.clone())
        });
        found.collect()
    })
}
