//! Service levels.

use crate::terms::present;
use serde::{Deserialize, Serialize};

/// A service level: the throughput that each TiB of a pool provides, and the most that a volume
/// has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Level {
    /// Name.
    pub name: String,
    /// Throughput per TiB, bytes per second.
    pub bytes_per_second_per_tib: u64,
    /// Throughput per TiB, MiB/s.
    pub mibps_per_tib: f64,
    /// Throughput ceiling of each volume in auto, manual and shared pools: beyond it, more quota
    /// gives no more. Absent if there is none.
    #[serde(default)]
    pub volume_ceiling_bytes_per_second: Option<u64>,
    /// Whether the level is built in and cannot be changed; false for custom levels.
    pub published: bool,
    /// Number of pools that use the level.
    pub pools: usize,
    /// Etag of the level, for `If-Match` (in quotes there). It changes with every field above.
    #[serde(default)]
    pub etag: String,
}

/// A level to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewLevel {
    /// Name.
    pub name: String,
    /// Throughput per TiB, bytes per second.
    pub bytes_per_second_per_tib: u64,
    /// Throughput ceiling of each volume; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_ceiling_bytes_per_second: Option<u64>,
}

/// A change of a custom level; absent fields are not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelChange {
    /// Throughput per TiB, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second_per_tib: Option<u64>,
    /// Throughput ceiling of each volume; `null` for none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub volume_ceiling_bytes_per_second: Option<Option<u64>>,
}
