//! Volumes, their export rules and their live counters.

use crate::share::{ShareRule, Sharing, SharingChange};
use crate::terms::{Terms, TermsChange, flat};
use crate::top::{Top, TopChange};
use crate::words::{Access, Squash};
use serde::{Deserialize, Serialize};

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Volume {
    /// ID, never reused after a delete.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Name of the pool.
    pub pool: String,
    /// Path for mounting: `/NAME`.
    pub export_path: String,
    /// Address at which clients reach it, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Quota, bytes.
    pub quota_bytes: u64,
    /// Its terms, flat.
    #[serde(flatten)]
    pub terms: Terms,
    /// Throughput limit for reads and writes together: the limit of the contract, reduced to the
    /// ceiling.
    pub limit_bytes_per_second: u64,
    /// Throughput limit in MiB/s.
    pub limit_mibps: f64,
    /// Volume ceiling of the pool's service level; absent if there is none, or the model does not
    /// use the level.
    #[serde(default)]
    pub level_ceiling_bytes_per_second: Option<u64>,
    /// IOPS limit, including bursts; absent if IOPS are not limited.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// IOPS available without burst credits. While the volume uses fewer, it earns credits at this
    /// rate.
    #[serde(default)]
    pub base_iops: Option<u64>,
    /// Maximum number of burst credits; one credit allows one READ or WRITE above the base IOPS.
    #[serde(default)]
    pub credits_max: Option<u64>,
    /// Export rules, most specific network first; the first match applies.
    pub exports: Vec<ExportRule>,
    /// Its protocols and its share, flat.
    #[serde(flatten)]
    pub sharing: Sharing,
    /// Share rules, in the order in which they are evaluated.
    #[serde(default)]
    pub share_rules: Vec<ShareRule>,
    /// Its top directory, as it is in the file system; absent if the volume is not served.
    #[serde(default)]
    pub top: Option<Top>,
    /// Etag of the volume, for `If-Match` (in quotes there). It changes with every field above.
    #[serde(default)]
    pub etag: String,
    /// Live counters; absent if the volume is not served (the server's log contains the reason).
    pub live: Option<VolumeLive>,
    /// Name of the gateway that serves it, in a cluster; absent if none does at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Why that gateway does not answer; `live` and `top` are not known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_answer: Option<String>,
}

/// Counters of a volume since the server started, and gauges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VolumeLive {
    /// Space used by files, bytes.
    pub used_bytes: u64,
    /// Whether `used_bytes` is exact. It is not between an unclean shutdown and the end of the
    /// recount.
    #[serde(default)]
    pub used_exact: bool,
    /// Progress of a running recount.
    #[serde(default)]
    pub counting: Option<Counting>,
    /// Result of the last recount since the volume was opened.
    #[serde(default)]
    pub counted: Option<Counted>,
    /// Throughput limit in force.
    pub limit_bytes_per_second: u64,
    /// IOPS limit in force; absent if IOPS are not limited.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// Remaining burst credits; absent if there are no bursts.
    #[serde(default)]
    pub credits: Option<u64>,
    /// Number of READs.
    pub read_ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Number of WRITEs.
    pub write_ops: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of other operations.
    pub other_ops: u64,
    /// Operations by protocol and name. Operations that no client has requested are absent.
    #[serde(default)]
    pub operations: Vec<OperationCount>,
    /// Number of operations with an error status.
    pub failed_ops: u64,
    /// Number of requests that were throttled by the contract.
    pub delayed_ops: u64,
    /// Total throttling delay, nanoseconds.
    pub wait_nanos: u64,
    /// Total latency of all operations from arrival to reply, nanoseconds.
    pub latency_nanos: u64,
    /// Total time of READs, WRITEs and COMMITs in the store, nanoseconds.
    #[serde(default)]
    pub store_nanos: u64,
    /// Total time until the client's socket accepted the replies, nanoseconds.
    #[serde(default)]
    pub network_nanos: u64,
    /// Total time in which requests waited for the server to process other requests, nanoseconds.
    #[serde(default)]
    pub processing_nanos: u64,
    /// Bytes requested by READs and WRITEs on arrival.
    #[serde(default)]
    pub offered_bytes: u64,
    /// Number of requests waiting for the contract at present.
    pub waiting: u64,
    /// Memory held by waiting requests, bytes.
    pub parked_bytes: u64,
}

/// Number of requests of one operation since the server started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OperationCount {
    /// Protocol: `nfs3`, `nfsacl` or `smb`.
    pub protocol: String,
    /// Name in the protocol's standard, such as `GETATTR`.
    pub operation: String,
    /// Number of requests answered, including those with an error status.
    pub answered: u64,
    /// Number of requests answered with an error status.
    pub failed: u64,
}

/// Progress of a recount of a volume's usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counting {
    /// Number of files with data counted so far.
    pub files: u64,
    /// Size of their data, bytes.
    pub bytes: u64,
}

/// Result of a recount of a volume's usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// Usage recorded up to the end of the recount, bytes.
    pub before_bytes: u64,
    /// Usage found by the recount, valid from then on, bytes.
    pub after_bytes: u64,
    /// Number of files with data.
    pub files: u64,
    /// Number of directories and files that could not be read and were skipped.
    pub left_out: u64,
    /// Number of recounts completed since the volume was opened, including this one.
    pub number: u64,
}

/// A volume to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    /// Name.
    pub name: String,
    /// Name of the pool.
    pub pool: String,
    /// Quota, bytes.
    pub quota_bytes: u64,
    /// Address at which clients reach it, in a cluster. Default: the address with the least weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its top directory. By default, it belongs to root and has mode 0755.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<TopChange>,
    /// Its terms, flat.
    #[serde(flatten, deserialize_with = "flat")]
    pub terms: TermsChange,
    /// Its protocols and its share, flat.
    #[serde(flatten, deserialize_with = "flat")]
    pub sharing: SharingChange,
}

/// A change of a volume; absent fields are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// Name of the pool to move to, with all files; both pools must be on the same file system. In
    /// an auto pool the limit follows from the quota. In a pool with an individual throughput per
    /// volume, the volume keeps its throughput, and between custom pools its IOPS, unless new
    /// values are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Quota, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Address at which clients reach it, in a cluster, for a volume that was imported and has
    /// none. A volume keeps its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The owner, the group and the permissions of its top directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<TopChange>,
    /// The terms to change, flat.
    #[serde(flatten, deserialize_with = "flat")]
    pub terms: TermsChange,
    /// The protocols and the settings of the share to change, flat.
    #[serde(flatten, deserialize_with = "flat")]
    pub sharing: SharingChange,
}

/// An export rule: the access of the clients of one network to a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExportRule {
    /// Client network such as `10.0.0.0/8` or `fd00::/8`, or a single address.
    pub network: String,
    /// Access.
    pub access: Access,
    /// Users mapped to the anonymous user. Default: none.
    #[serde(default = "none")]
    pub squash: Squash,
    /// User ID of the anonymous user. Default: 65534.
    #[serde(default = "nobody")]
    pub anon_uid: u32,
    /// Group ID of the anonymous user. Default: 65534.
    #[serde(default = "nobody")]
    pub anon_gid: u32,
}

const fn none() -> Squash {
    Squash::None
}

const fn nobody() -> u32 {
    65534
}
