//! Capacity pools.

use crate::words::Qos;
use serde::{Deserialize, Serialize};

/// A capacity pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The throughput that it buys apart from its size, in models that do.
    #[serde(default)]
    pub throughput_bytes_per_second: Option<u64>,
    /// The READs and WRITEs a second that it buys, in models that do.
    #[serde(default)]
    pub iops: Option<u64>,
    /// What all its volumes together may be given: what it buys, or size × level rate; where they
    /// provision for themselves, what they have.
    pub budget_bytes_per_second: u64,
    /// The same in MiB/s.
    pub budget_mibps: f64,
    /// The sum of what its volumes are given, whatever their ceilings.
    pub given_bytes_per_second: u64,
    /// The same in MiB/s.
    pub given_mibps: f64,
    /// The sum of what its volumes are given in READs and WRITEs a second, of those that count
    /// them.
    #[serde(default)]
    pub given_iops: u64,
    /// How many volumes it has.
    pub volumes: usize,
    /// Where its volumes lie, on the server.
    pub directory: String,
    /// Stands for all of the above, and changes with it: what `If-Match` takes, in quotes.
    #[serde(default)]
    pub etag: String,
}

/// A pool to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// Its name.
    pub name: String,
    /// The name of its service level, which models that buy throughput apart from size take no
    /// notice of; standard if not said.
    #[serde(default = "standard")]
    pub level: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its contract model; auto if not said.
    #[serde(default)]
    pub qos: Qos,
    /// The throughput that it buys apart from its size: flexible, 128 MiB/s to 640 MiB/s for each
    /// TiB; custom, 64 to 5,120 MiB/s unless the server is configured otherwise. The least if not
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// The READs and WRITEs a second that it buys: custom, 1,024 to 160,000 unless the server is
    /// configured otherwise; 16 for each MiB/s if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// An absolute path on the server; a place under the data directory if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

fn standard() -> String {
    "standard".to_owned()
}

/// What is to change about a pool; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// The name of the service level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The contract model. Going to one that gives each volume its own, each keeps the throughput
    /// it has; going auto, each gets what its quota buys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// The throughput that it buys apart from its size, in models that do. IOPS that were 16 for
    /// each MiB/s of it follow, unless others are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// The READs and WRITEs a second that it buys, in models that do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
}
