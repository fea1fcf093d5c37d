//! Information about the server, and about the effect of a change.

use crate::gateway::GatewayHealth;
use serde::{Deserialize, Serialize};

/// Information about a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerInfo {
    /// Version.
    pub version: String,
    /// Process ID.
    pub pid: u32,
    /// Listen addresses for NFS and MOUNT: `ADDRESS:PORT` each.
    pub nfs: Vec<String>,
    /// Listen addresses for SMB: `ADDRESS:PORT` each.
    #[serde(default)]
    pub smb: Vec<String>,
    /// Whether a lock manager is available to clients.
    #[serde(default)]
    pub locks: bool,
    /// Generation of the catalogue; it increases with every change.
    pub generation: u64,
    /// Memory of the machine, bytes, or the limit of the server's control group (container) if that
    /// is lower: the most that can be cached. Absent if it is not known.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Public key for signed reports, 64 hexadecimal digits.
    #[serde(default)]
    pub report_key: String,
    /// Fingerprint of the API's certificate: SHA-256 of the DER encoding. Absent if no listener
    /// uses TLS.
    #[serde(default)]
    pub tls_fingerprint: Option<String>,
}

/// State of the server, or of all gateways of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// Whether all volumes are served that have this server as their home. Of a cluster: whether
    /// all volumes are served, and no gateway has a fault.
    pub ready: bool,
    /// Number of volumes that this server serves, or all gateways together.
    pub volumes_served: usize,
    /// Volumes that have this server as their home and are not served. Of a cluster: volumes that
    /// their home does not serve, or that have none. Those of a gateway that does not answer, or
    /// may not reply to clients, are not among them.
    pub unserved: Vec<UnservedVolume>,
    /// The gateways of the cluster; absent if this is the state of one server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayHealth>,
}

/// A volume of the catalogue that is not served. The server's log contains the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnservedVolume {
    /// Name.
    pub name: String,
    /// The gateway that is its home, in an answer for all gateways; absent if it has none at
    /// present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Changed{T}"))]
pub struct Changed<T> {
    /// Whether this was a dry run. If so, no change was made.
    pub dry_run: bool,
    /// Generation of the catalogue after the change.
    pub generation: u64,
    /// Volumes with a changed limit; for a change of a pool or a level, all its volumes, including
    /// those whose limit is unchanged.
    pub changes: Vec<LimitChange>,
    /// The changed object after the change; absent after a delete. The dry run of a delete shows
    /// the object that would be deleted.
    pub item: Option<T>,
    /// Warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// A warning about a change that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// Error code with which the change would be refused for the same reason; `not_followed` if
    /// some gateways of a cluster do not follow the change yet.
    pub code: String,
    /// Message for people.
    pub message: String,
}

/// The effect of a change on one volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitChange {
    /// Name of the volume.
    pub volume: String,
    /// Limit before the change.
    pub before_bytes_per_second: u64,
    /// Limit after the change.
    pub after_bytes_per_second: u64,
    /// Limit before the change, MiB/s.
    pub before_mibps: f64,
    /// Limit after the change, MiB/s.
    pub after_mibps: f64,
    /// IOPS limit before the change; absent if IOPS were not limited.
    #[serde(default)]
    pub before_iops: Option<u64>,
    /// IOPS limit after the change; absent if IOPS are not limited.
    #[serde(default)]
    pub after_iops: Option<u64>,
    /// IOPS without burst credits before the change, if there were bursts.
    #[serde(default)]
    pub before_base_iops: Option<u64>,
    /// IOPS without burst credits after the change, if there are bursts.
    #[serde(default)]
    pub after_base_iops: Option<u64>,
}
