//! Catalogues that gateways share, over a store in memory: following, conflicts, lost answers,
//! damaged rows, large changes, imports and exports; and a model that draws histories of all of it.
//! The same tests run over etcd (`crates/etcd/tests/catalog`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod backups;
mod faults;
mod following;
mod gateways;
mod large;
mod memory;
mod model;
mod sharing;
mod transfer;
mod versions;
mod world;

use faults::Shared;
use memory::Memory;

/// The store for the cluster with this name.
fn shared(_cluster: &str) -> Box<dyn Shared> {
    Box::new(Memory::default())
}
