//! The catalogue of a cluster over a real etcd of three members: all tests that run over a store in
//! memory, and the faults that only a real one has.
#![cfg(test)]

#[path = "../../../catalog/tests/cluster/faults.rs"]
mod faults;
#[path = "../../../catalog/tests/cluster/following.rs"]
mod following;
#[path = "../../../catalog/tests/cluster/gateways.rs"]
mod gateways;
#[path = "../../../catalog/tests/cluster/large.rs"]
mod large;
mod lives;
mod members;
#[path = "../../../catalog/tests/cluster/model.rs"]
mod model;
mod outages;
#[path = "../../../catalog/tests/cluster/sharing.rs"]
mod sharing;
mod store;
#[path = "../../../catalog/tests/cluster/transfer.rs"]
mod transfer;
#[path = "../../../catalog/tests/cluster/world.rs"]
mod world;

use faults::Shared;
use members::Etcd;
use std::sync::LazyLock;

/// The etcd of the tests that stop no member of it.
static ETCD: LazyLock<Etcd> = LazyLock::new(Etcd::start);

/// The store for the cluster with this name.
fn shared(cluster: &str) -> Box<dyn Shared> {
    Box::new(ETCD.store(cluster))
}
