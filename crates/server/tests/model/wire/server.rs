//! The server under test and its volume.

use super::connection::Connection;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Mode, NewPool, NewVolume, Terms};
use weir_control::ServerConfig;
use weir_control::config::NamespaceDurability;
use weir_qos::{BytesPerSecond, Qos};
use weir_server::Server;

/// The path that the volume is mounted from.
pub(crate) const EXPORT: &str = "/volume";

/// A server that can be started again.
pub(crate) struct Host {
    config: ServerConfig,
    server: Option<Server>,
}

impl Host {
    /// Serves a new volume of this quota from below `directory`, with a contract that never makes
    /// anything wait.
    pub(crate) fn start(directory: &Path, quota_bytes: u64, settings: &ServerConfig) -> Self {
        let config = ServerConfig {
            data: directory.to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            workers: 1,
            blocking_threads: 2,
            namespace_durability: NamespaceDurability::Process,
            ..settings.clone()
        };
        let catalog = Catalog::open_with(directory, config.minimums()).unwrap();
        let (pool, level) = ("pool".to_owned(), "ultra".to_owned());
        let size_bytes = 1000 << 40;
        let new = NewPool {
            name: pool.clone(),
            level,
            size_bytes,
            qos: Qos::Manual,
            ..NewPool::default()
        };
        catalog.create_pool(&new, Mode::Commit).unwrap();
        let (name, throughput) = (EXPORT[1..].to_owned(), Some(BytesPerSecond::from_mib(10_000)));
        let terms = Terms { throughput, ..Terms::default() };
        let volume = NewVolume { name, pool, quota_bytes, terms, ..NewVolume::default() };
        catalog.create_volume(&volume, Mode::Commit).unwrap();
        drop(catalog);
        let server = Some(Server::start(&config).unwrap());
        Self { config, server }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.server.as_ref().unwrap().addresses()[0])
    }

    pub(crate) fn restart(&mut self) {
        self.server = Some(Server::start(&self.config).unwrap());
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().unwrap();
        }
    }

    /// The directory of clients' objects on disk.
    pub(crate) fn volume_root(&self) -> PathBuf {
        let catalog = self.server.as_ref().unwrap().catalog();
        catalog.snapshot().volume_named(&EXPORT[1..]).unwrap().directory.join("root")
    }
}
