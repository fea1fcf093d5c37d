//! The measured capacity of file systems, and the contracts' commitment of it.

use crate::words::Policy;
use serde::{Deserialize, Serialize};

/// What the hardware holds, and what is promised of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Capacity {
    /// What is done about a change that commits hardware to more than may be.
    pub policy: Policy,
    /// By which mix promises are made: `worst`, or so many READs of a hundred requests.
    pub mix: String,
    /// The block size by which throughput is promised, bytes.
    pub block_bytes: u32,
    /// The block size by which READs and WRITEs a second are promised, bytes.
    pub iops_block_bytes: u32,
    /// How much of what hardware holds may be committed, in percent.
    pub overcommit_percent: u32,
    /// The file systems with pools on them, and those that were calibrated.
    pub filesystems: Vec<Filesystem>,
}

/// A file system with pools on it, or one that was calibrated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Filesystem {
    /// Where it was calibrated, or else the directory of its first pool.
    pub directory: String,
    /// The names of the pools there.
    pub pools: Vec<String>,
    /// What their contracts promise for good: shared pools their budget, the others what their
    /// volumes may use. Without the pool in which a calibration is measuring.
    pub committed_bytes_per_second: u64,
    /// The same in READs and WRITEs a second, of volumes that count them; of bursts their base.
    pub committed_iops: u64,
    /// What it holds; nothing where that was not measured, or at no block size by which it could be
    /// judged: then throughput is not limited there.
    #[serde(default)]
    pub holds_bytes_per_second: Option<u64>,
    /// The same in READs and WRITEs a second, apart from throughput.
    #[serde(default)]
    pub holds_iops: Option<u64>,
    /// What may be committed.
    #[serde(default)]
    pub allowed_bytes_per_second: Option<u64>,
    /// The same in READs and WRITEs a second.
    #[serde(default)]
    pub allowed_iops: Option<u64>,
    /// Is more committed than may be, of either?
    #[serde(default)]
    pub overcommitted: bool,
    /// When it was calibrated: RFC 3339, UTC.
    #[serde(default)]
    pub calibrated: Option<String>,
}

/// What was measured that a file system holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calibration {
    /// A directory on it, by which it is named.
    pub directory: String,
    /// When it was kept: RFC 3339, UTC.
    pub at: String,
    /// What was measured, one for each mix and block size.
    pub cells: Vec<CalibrationCell>,
    /// The load with which.
    pub load: CalibrationLoad,
    /// The machine on which.
    pub machine: Machine,
    /// Did all files together fit into memory? Then READs were measured in memory, not on disks.
    pub in_memory: bool,
    /// Stands for all of the above, and changes with it: what `If-Match` takes, in quotes.
    #[serde(default)]
    pub etag: String,
}

/// What is to be kept of a measurement; the server adds when, and on what machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCalibration {
    /// What was measured, one for each mix and block size.
    pub cells: Vec<CalibrationCell>,
    /// The load with which.
    pub load: CalibrationLoad,
}

/// What was measured with one mix and one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationCell {
    /// How many of a hundred requests were READs; the rest were WRITEs.
    pub read_percent: u8,
    /// Bytes of one request.
    pub block_bytes: u32,
    /// What was moved.
    pub bytes_per_second: u64,
    /// READs and WRITEs a second.
    pub iops: u64,
    /// Mean latency of a READ or WRITE, nanoseconds.
    pub mean_nanos: u64,
    /// The latency that one in a hundred went beyond, nanoseconds.
    pub p99_nanos: u64,
    /// What an operation took of the server's processors, nanoseconds, where that is known.
    #[serde(default)]
    pub server_cpu_nanos: Option<u64>,
    /// Was it what generates load that could do no more? Then the server may hold more.
    #[serde(default)]
    pub saturated: bool,
}

/// The load of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationLoad {
    /// Streams of requests.
    pub jobs: u32,
    /// Requests that each kept in flight.
    pub depth: u32,
    /// How long each mix and block size was measured, milliseconds.
    pub millis: u64,
    /// Size of all files together, bytes.
    pub data_bytes: u64,
    /// What other volumes moved meanwhile, at most.
    #[serde(default)]
    pub others_bytes_per_second: u64,
    /// Their READs and WRITEs a second.
    #[serde(default)]
    pub others_iops: u64,
}

/// The machine of a calibration; texts are empty and numbers 0 where something is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// The version of Weir.
    pub version: String,
    /// Its name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The model of its processors.
    pub processor: String,
    /// How many it has.
    pub processors: u32,
    /// Its memory, bytes.
    pub memory_bytes: u64,
    /// Kind and source of the file system.
    pub file_system: String,
    /// What answered changes of names survived: `power` or `process`.
    pub durability: String,
}
