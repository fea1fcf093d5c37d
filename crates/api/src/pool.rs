//! Capacity pools.

use crate::words::Qos;
use serde::{Deserialize, Serialize};

/// A capacity pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Never used again after a delete.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The name of its service level.
    pub level: String,
    /// Its contract model.
    pub qos: Qos,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// The sum of its volumes' quotas, bytes.
    pub allocated_bytes: u64,
    /// What all its volumes together may be given: size × level rate.
    pub budget_bytes_per_second: u64,
    /// The same in MiB/s.
    pub budget_mibps: f64,
    /// The sum of its volumes' limits.
    pub given_bytes_per_second: u64,
    /// The same in MiB/s.
    pub given_mibps: f64,
    /// How many volumes it has.
    pub volumes: usize,
    /// Where its volumes lie, on the server.
    pub directory: String,
}

/// A pool to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// Its name.
    pub name: String,
    /// The name of its service level.
    pub level: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its contract model; auto if not said.
    #[serde(default = "auto")]
    pub qos: Qos,
    /// An absolute path on the server; a place under the data directory if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

const fn auto() -> Qos {
    Qos::Auto
}

/// What is to change about a pool; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// The name of the service level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The contract model. Going manual, each volume keeps the limit it has; going auto, each
    /// gets what its quota buys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
}
