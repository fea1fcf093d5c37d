//! Volumes, their export rules and their live counters.

use crate::words::{Access, Squash};
use serde::{Deserialize, Deserializer, Serialize};

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Volume {
    /// Never used again after a delete.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    /// What clients mount: `/NAME`.
    pub export_path: String,
    /// Its provisioned size, bytes.
    pub quota_bytes: u64,
    /// The throughput it was given; in pools that give each volume its own. In a shared pool what
    /// it has for certain.
    pub throughput_bytes_per_second: Option<u64>,
    /// What it weighs beside the others; in a shared pool.
    #[serde(default)]
    pub weight: Option<u32>,
    /// The READs and WRITEs a second it was given, in a custom pool; without, it has the part of
    /// the pool's that its throughput is of the pool's.
    #[serde(default)]
    pub iops: Option<u64>,
    /// What it may use at most, whatever its contract comes to; nothing where there is no such
    /// ceiling.
    #[serde(default)]
    pub max_throughput_bytes_per_second: Option<u64>,
    /// READs and WRITEs a second that it may use at most.
    #[serde(default)]
    pub max_iops: Option<u64>,
    /// What each of its files may use at most; nothing where there is no such ceiling.
    #[serde(default)]
    pub max_file_throughput_bytes_per_second: Option<u64>,
    /// READs and WRITEs a second that each of its files may use at most.
    #[serde(default)]
    pub max_file_iops: Option<u64>,
    /// The limit that its contract comes to under its ceiling, reads and writes together.
    pub limit_bytes_per_second: u64,
    /// The same in MiB/s.
    pub limit_mibps: f64,
    /// The limit in READs and WRITEs a second, that of bursts where there are such; nothing where
    /// they are not counted.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// Where there are bursts, the READs and WRITEs a second that it may do without credits, and at
    /// which it earns credits while it does fewer.
    #[serde(default)]
    pub base_iops: Option<u64>,
    /// The most credits that it keeps; one is a READ or WRITE beyond the base.
    #[serde(default)]
    pub credits_max: Option<u64>,
    /// Who may mount it, most specific network first: the first match decides.
    pub exports: Vec<ExportRule>,
    /// Stands for all of the above, and changes with it: what `If-Match` takes, in quotes.
    #[serde(default)]
    pub etag: String,
    /// What it does at present; nothing if it isn't being served (the server's log says why).
    pub live: Option<VolumeLive>,
}

/// Counters of a volume since the server started, and gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VolumeLive {
    /// Bytes that its files hold.
    pub used_bytes: u64,
    /// Are they exact? Not between an unclean stop and the end of the recount that follows.
    #[serde(default)]
    pub used_exact: bool,
    /// How far the recount has come that is under way.
    #[serde(default)]
    pub counting: Option<Counting>,
    /// What the last recount found since the volume was opened.
    #[serde(default)]
    pub counted: Option<Counted>,
    /// The limit in force.
    pub limit_bytes_per_second: u64,
    /// The limit in force in READs and WRITEs a second; nothing where they are not counted.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// The credits for bursts that are left; nothing where there are no bursts.
    #[serde(default)]
    pub credits: Option<u64>,
    /// READ operations.
    pub read_ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// WRITE operations.
    pub write_ops: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// All other operations.
    pub other_ops: u64,
    /// Operations answered with an error status.
    pub failed_ops: u64,
    /// Requests that had to wait for the contract.
    pub delayed_ops: u64,
    /// Nanoseconds they waited, in all.
    pub wait_nanos: u64,
    /// Nanoseconds from arrival to reply, all operations.
    pub latency_nanos: u64,
    /// Of READs, WRITEs and COMMITs, nanoseconds in the store, in all.
    #[serde(default)]
    pub store_nanos: u64,
    /// Nanoseconds until the client's socket took the reply.
    #[serde(default)]
    pub network_nanos: u64,
    /// Nanoseconds in which the server was busy with other requests.
    #[serde(default)]
    pub processing_nanos: u64,
    /// Bytes that READs and WRITEs asked to move when they came.
    #[serde(default)]
    pub offered_bytes: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Bytes of memory that they pin.
    pub parked_bytes: u64,
}

/// How far a recount of a volume's usage has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counting {
    /// Files with data counted so far.
    pub files: u64,
    /// Their data, bytes.
    pub bytes: u64,
}

/// What a recount of a volume's usage has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// The usage as it was kept up to the end of the recount, bytes.
    pub before_bytes: u64,
    /// The usage as it was counted, which holds from then on, bytes.
    pub after_bytes: u64,
    /// Files with data.
    pub files: u64,
    /// Directories and files that could not be read, and were left out.
    pub left_out: u64,
    /// How many recounts were completed since the volume was opened, with this one.
    pub number: u64,
}

/// A volume to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// The name of its pool.
    pub pool: String,
    /// Its provisioned size, bytes.
    pub quota_bytes: u64,
    /// Its throughput; in pools that give each volume its own, and only there. In a shared pool
    /// what it has for certain; nothing if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// Its READs and WRITEs a second, in a custom pool; if not said it has the part of the pool's
    /// that its throughput is of the pool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// What it may use at most, whatever its contract comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_throughput_bytes_per_second: Option<u64>,
    /// READs and WRITEs a second that it may use at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<u64>,
    /// What each of its files may use at most; 1 MiB/s at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_throughput_bytes_per_second: Option<u64>,
    /// READs and WRITEs a second that each of its files may use at most; 10 at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_iops: Option<u64>,
    /// What it weighs beside the others, 1 to 1,000; in a shared pool, and 100 if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// What is to change about a volume; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// The name of the pool to move to, with its files, which must lie on the same file system. In
    /// an auto pool its limit is what its quota buys there; in one that gives each volume its own
    /// it keeps the throughput that it has, and between custom pools its IOPS, unless it is given
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The provisioned size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// The throughput; in pools that give each volume its own. In a shared pool what it has for
    /// certain, or zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// The READs and WRITEs a second; in a custom pool. `null` takes them away again, so that it
    /// has the part of the pool's that its throughput is of the pool's.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub iops: Option<Option<u64>>,
    /// What it may use at most, whatever its contract comes to; `null` takes the ceiling away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max_throughput_bytes_per_second: Option<Option<u64>>,
    /// READs and WRITEs a second that it may use at most; `null` takes the ceiling away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<Option<u64>>,
    /// What each of its files may use at most; `null` takes the ceiling away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max_file_throughput_bytes_per_second: Option<Option<u64>>,
    /// READs and WRITEs a second that each of its files may use at most; `null` takes the ceiling
    /// away.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max_file_iops: Option<Option<u64>>,
    /// What it weighs beside the others, 1 to 1,000; in a shared pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Tells `null` from what is not said at all.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// What clients of one network may do with a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExportRule {
    /// The clients: `10.0.0.0/8`, `fd00::/8`, or one address.
    pub network: String,
    /// May they write?
    pub access: Access,
    /// Whose identity is replaced; nobody's if not said.
    #[serde(default = "none")]
    pub squash: Squash,
    /// The anonymous user; 65534 if not said.
    #[serde(default = "nobody")]
    pub anon_uid: u32,
    /// The anonymous group; 65534 if not said.
    #[serde(default = "nobody")]
    pub anon_gid: u32,
}

const fn none() -> Squash {
    Squash::None
}

const fn nobody() -> u32 {
    65534
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ceiling_is_not_the_same_as_nothing_said() {
        let read = |text: &str| serde_json::from_str::<VolumeChange>(text).unwrap();
        assert_eq!(read("{}").max_iops, None);
        assert_eq!(read("{\"max_iops\":null}").max_iops, Some(None));
        assert_eq!(read("{\"max_iops\":7}").max_iops, Some(Some(7)));
        let taken_away = VolumeChange { max_iops: Some(None), ..VolumeChange::default() };
        assert_eq!(serde_json::to_string(&taken_away).unwrap(), "{\"max_iops\":null}");
    }
}
