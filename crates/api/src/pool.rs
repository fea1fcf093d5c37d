//! Capacity pools.

use crate::words::Qos;
use serde::{Deserialize, Serialize};

/// A capacity pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pool {
    /// ID, never reused after a delete.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Name of the service level.
    pub level: String,
    /// Contract model.
    pub qos: Qos,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Sum of the volumes' quotas, bytes.
    pub allocated_bytes: u64,
    /// Throughput purchased separately from the size (flexible and custom pools).
    #[serde(default)]
    pub throughput_bytes_per_second: Option<u64>,
    /// IOPS purchased (custom pools).
    #[serde(default)]
    pub iops: Option<u64>,
    /// Throughput available to all volumes together: the purchased throughput, or size × level
    /// rate. In provisioned pools: the sum of the volumes' throughputs.
    pub budget_bytes_per_second: u64,
    /// Budget in MiB/s.
    pub budget_mibps: f64,
    /// Sum of the volumes' assigned throughputs, without regard to their ceilings.
    pub given_bytes_per_second: u64,
    /// Sum of the assigned throughputs in MiB/s.
    pub given_mibps: f64,
    /// Sum of the assigned IOPS of the volumes with an IOPS limit.
    #[serde(default)]
    pub given_iops: u64,
    /// Number of volumes.
    pub volumes: usize,
    /// Directory of the volumes on the server, or in CephFS.
    pub directory: String,
    /// CephFS that the directory is in; absent if it is on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephFs>,
    /// Etag of the pool, for `If-Match` (in quotes there). It changes with every field above.
    #[serde(default)]
    pub etag: String,
}

/// A pool to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// Name.
    pub name: String,
    /// Name of the service level; ignored by models that purchase throughput separately from the
    /// size. Default: standard.
    #[serde(default = "standard")]
    pub level: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Contract model. Default: auto.
    #[serde(default)]
    pub qos: Qos,
    /// Throughput purchased separately from the size. Flexible: 128 MiB/s to 640 MiB/s per TiB;
    /// custom: 64 to 5,120 MiB/s, unless the server's configuration has another minimum. Default:
    /// the minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// IOPS purchased (custom pools): 1,024 to 160,000, unless the server's configuration has
    /// another minimum. Default: 16 per MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Absolute path of a directory on the server, or in CephFS. Default: a directory in the data
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// CephFS that the directory is in. Required on a gateway of a cluster, refused elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceph: Option<CephFs>,
}

/// The CephFS that a pool is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CephFs {
    /// Absolute path of Ceph's configuration file, the same on all gateways.
    pub conf: String,
    /// User of Ceph, without the prefix `client.`. Default: admin.
    #[serde(default = "admin")]
    pub user: String,
}

fn admin() -> String {
    "admin".to_owned()
}

fn standard() -> String {
    "standard".to_owned()
}

/// A change of a pool; absent fields are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// Name of the service level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Contract model. On a change to a model with an individual throughput per volume, each volume
    /// keeps its throughput; on a change to auto, each volume's throughput follows from its quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<Qos>,
    /// Throughput purchased separately from the size (flexible and custom pools). IOPS that were 16
    /// per MiB/s are adjusted with it, unless `iops` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// IOPS purchased (custom pools).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
}
