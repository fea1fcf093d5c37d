//! A server's information about itself, and about a change it made.

use serde::{Deserialize, Serialize};

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Where it serves NFS and MOUNT: `ADDRESS:PORT` each.
    pub nfs: Vec<String>,
    /// Does it have a lock manager that clients find?
    #[serde(default)]
    pub locks: bool,
    /// The generation of its catalogue, which grows with every change.
    pub generation: u64,
    /// The public key of its signed reports, 64 hexadecimal digits.
    #[serde(default)]
    pub report_key: String,
    /// The fingerprint of the API's certificate, the SHA-256 of its DER; nothing where no listener
    /// speaks TLS.
    #[serde(default)]
    pub tls_fingerprint: Option<String>,
}

/// Is everything being served?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// All volumes of the catalogue are being served.
    pub ready: bool,
    /// How many are.
    pub volumes_served: usize,
    /// Those that are not.
    pub unserved: Vec<UnservedVolume>,
}

/// A volume of the catalogue that is not being served. The server's log says why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnservedVolume {
    /// Its name.
    pub name: String,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Changed{T}"))]
pub struct Changed<T> {
    /// Was it only shown? Then nothing below is in force.
    pub dry_run: bool,
    /// The generation of the catalogue after it.
    pub generation: u64,
    /// The volumes whose limits it changes; for a change of a pool or a level all its volumes,
    /// also those whose limits stay.
    pub changes: Vec<LimitChange>,
    /// What was changed, as it is after it; nothing after a delete, whose dry run shows what
    /// would go.
    pub item: Option<T>,
    /// What to mind about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Something to mind about a change that is made all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    /// The code that a refusal for the same reason has.
    pub code: String,
    /// For people.
    pub message: String,
}

/// What a change does to one volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitChange {
    /// The volume.
    pub volume: String,
    /// Its limit before.
    pub before_bytes_per_second: u64,
    /// Its limit after.
    pub after_bytes_per_second: u64,
    /// Its limit before, MiB/s.
    pub before_mibps: f64,
    /// Its limit after, MiB/s.
    pub after_mibps: f64,
    /// Its limit before in READs and WRITEs a second; nothing where they were not counted.
    #[serde(default)]
    pub before_iops: Option<u64>,
    /// Its limit after in READs and WRITEs a second; nothing where they are not counted.
    #[serde(default)]
    pub after_iops: Option<u64>,
    /// What it could do without credits before, where there were bursts.
    #[serde(default)]
    pub before_base_iops: Option<u64>,
    /// What it can do without credits after, where there are bursts.
    #[serde(default)]
    pub after_base_iops: Option<u64>,
}
