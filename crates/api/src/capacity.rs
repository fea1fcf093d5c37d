//! The measured capacity of file systems, and how much of it contracts commit.

use crate::words::Policy;
use serde::{Deserialize, Serialize};

/// Measured capacity of the hardware, and the capacity committed to contracts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Capacity {
    /// Action when a change would commit more than is allowed.
    pub policy: Policy,
    /// Read/write mix used for the capacity check: `worst`, or the percentage of READs.
    pub mix: String,
    /// Block size used for the capacity check of throughput, bytes.
    pub block_bytes: u32,
    /// Block size used for the capacity check of IOPS, bytes.
    pub iops_block_bytes: u32,
    /// Share of the measured capacity that may be committed, in percent.
    pub overcommit_percent: u32,
    /// File systems with pools, and file systems with a calibration.
    pub filesystems: Vec<Filesystem>,
}

/// A file system with pools, or with a calibration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Filesystem {
    /// Directory of the calibration, or else of the first pool.
    pub directory: String,
    /// Names of the pools on it.
    pub pools: Vec<String>,
    /// Throughput committed by contracts: the budget of shared pools, and the sum of the volumes'
    /// limits of other pools. The pool of a running calibration is not included.
    pub committed_bytes_per_second: u64,
    /// Committed IOPS, for volumes with an IOPS limit; for volumes with bursts, the base IOPS.
    pub committed_iops: u64,
    /// Measured throughput; absent if it was not measured, or not at a usable block size. In that
    /// case throughput is not limited by capacity.
    #[serde(default)]
    pub holds_bytes_per_second: Option<u64>,
    /// Measured IOPS, independent of throughput.
    #[serde(default)]
    pub holds_iops: Option<u64>,
    /// Throughput that may be committed.
    #[serde(default)]
    pub allowed_bytes_per_second: Option<u64>,
    /// IOPS that may be committed.
    #[serde(default)]
    pub allowed_iops: Option<u64>,
    /// Whether more throughput or IOPS are committed than allowed.
    #[serde(default)]
    pub overcommitted: bool,
    /// Time of the calibration: RFC 3339, UTC.
    #[serde(default)]
    pub calibrated: Option<String>,
}

/// A calibration: the measured capacity of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Directory on the file system, which identifies the calibration.
    pub directory: String,
    /// Time at which the calibration was stored: RFC 3339, UTC.
    pub at: String,
    /// Results, one for each mix and block size.
    pub cells: Vec<CalibrationCell>,
    /// Load of the measurement.
    pub load: CalibrationLoad,
    /// Machine of the measurement.
    pub machine: Machine,
    /// Whether all files together fitted into memory. If so, READs were served from memory, not
    /// from disk.
    pub in_memory: bool,
    /// Etag of the calibration, for `If-Match` (in quotes there). It changes with every field
    /// above.
    #[serde(default)]
    pub etag: String,
}

/// A calibration to store; the server adds the time and the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewCalibration {
    /// Results, one for each mix and block size.
    pub cells: Vec<CalibrationCell>,
    /// Load of the measurement.
    pub load: CalibrationLoad,
}

/// Result of one mix and one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationCell {
    /// Percentage of READs; the rest were WRITEs.
    pub read_percent: u8,
    /// Block size, bytes.
    pub block_bytes: u32,
    /// Throughput, bytes per second.
    pub bytes_per_second: u64,
    /// READs and WRITEs per second.
    pub iops: u64,
    /// Mean latency of READs and WRITEs, nanoseconds.
    pub mean_nanos: u64,
    /// 99th percentile of the latency, nanoseconds.
    pub p99_nanos: u64,
    /// CPU time of the server per operation, nanoseconds, if known.
    #[serde(default)]
    pub server_cpu_nanos: Option<u64>,
    /// Whether the load generator was the bottleneck. If so, the server's capacity may be higher.
    #[serde(default)]
    pub saturated: bool,
}

/// Load of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationLoad {
    /// Number of parallel request streams.
    pub jobs: u32,
    /// Number of requests in flight per stream.
    pub depth: u32,
    /// Duration of each measurement, milliseconds.
    pub millis: u64,
    /// Total size of the files, bytes.
    pub data_bytes: u64,
    /// Maximum throughput of other volumes during the measurement.
    #[serde(default)]
    pub others_bytes_per_second: u64,
    /// Maximum IOPS of other volumes during the measurement.
    #[serde(default)]
    pub others_iops: u64,
}

/// Machine of a calibration; unknown texts are empty and unknown numbers are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// Version of Weir.
    pub version: String,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model.
    pub processor: String,
    /// Number of processors.
    pub processors: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Type and source of the file system.
    pub file_system: String,
    /// Setting of `namespace_durability`: `power` or `process`.
    pub durability: String,
}
