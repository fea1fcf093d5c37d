//! Contract monitoring: verdicts for periods, reports, and current activity. The conditions of a
//! verdict are in `docs/semantics.md`, and in every report.

use crate::gateway::MissingGateway;
use crate::load::Load;
use crate::words::{Cause, LoadKind, Verdict};
use serde::{Deserialize, Serialize};

/// Version of [`Report`]; it increases when existing programs would misread a report.
pub const REPORT_VERSION: u32 = 1;

/// State of a volume's contract over a period. Rates are averages over the period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Window {
    /// Start, in seconds since 1970.
    pub start: u64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Verdict; for periods longer than 10 s, broken if it was broken in any 10-second interval.
    pub verdict: Verdict,
    /// Most frequent cause of a broken contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Condition that led to the verdict, in one sentence; only for a single interval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Deviation of the delivered rate from the contract while it was demanded, as a fraction:
    /// −0.02 is 2 % too little. Absent if it was never demanded.
    #[serde(default)]
    pub error: Option<f64>,
    /// Number of 10-second intervals in which the contract was kept; 1-second intervals in a report
    /// by seconds.
    pub kept: u64,
    /// Number of intervals in which the contract was not demanded. Intervals without any request
    /// are not counted.
    pub not_demanded: u64,
    /// Number of intervals in which the contract was broken.
    pub broken: u64,
    /// Throughput limit.
    pub limit_bytes_per_second: u64,
    /// IOPS limit; absent if IOPS were not limited.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// Throughput requested by READs and WRITEs on arrival.
    pub offered_bytes_per_second: u64,
    /// READs and WRITEs that arrived, per second.
    pub offered_iops: f64,
    /// Throughput delivered.
    pub delivered_bytes_per_second: u64,
    /// READs and WRITEs completed, per second.
    pub delivered_iops: f64,
    /// Fraction of time in which requests waited for the contract.
    pub waited: f64,
    /// Breakdown of the latency.
    pub split: Split,
}

/// Breakdown of the latency of READs, WRITEs and COMMITs, summed over requests, including those not
/// yet answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Split {
    /// Number of answered requests.
    pub requests: u64,
    /// Time waiting for the contract, nanoseconds.
    pub wait_nanos: u64,
    /// Time in the store, nanoseconds.
    pub store_nanos: u64,
    /// Time until the client's socket accepted the reply, nanoseconds.
    pub network_nanos: u64,
    /// Time in which the server was busy with other requests, nanoseconds.
    pub processing_nanos: u64,
}

impl Split {
    /// The sum of all parts.
    #[must_use]
    pub const fn total_nanos(&self) -> u64 {
        self.wait_nanos
            .saturating_add(self.store_nanos)
            .saturating_add(self.network_nanos)
            .saturating_add(self.processing_nanos)
    }

    /// The mean latency of a request, in nanoseconds; `None` if no request was answered.
    #[must_use]
    pub const fn mean_nanos(&self) -> Option<u64> {
        self.total_nanos().checked_div(self.requests)
    }

    /// The share of `nanos` in the total, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a part is read to a few digits")]
    pub fn part(&self, nanos: u64) -> f64 {
        match self.total_nanos() {
            0 => 0.0,
            total => nanos as f64 / total as f64,
        }
    }
}

/// Contract report of a volume, with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Version of the report format.
    pub version: u32,
    /// Name of the volume.
    pub volume: String,
    /// ID of the volume.
    pub volume_id: u32,
    /// Name of the pool.
    pub pool: String,
    /// Version of the server.
    pub server: String,
    /// Creation time of the report, in seconds since 1970.
    pub made_at: u64,
    /// Length of each period, in seconds: 1, 60 or 900.
    pub resolution_seconds: u64,
    /// The whole requested period.
    pub whole: Window,
    /// The last 10 s, minute and hour.
    pub recent: Vec<Window>,
    /// Periods with at least one request, oldest first.
    pub periods: Vec<Window>,
    /// Conditions that define the verdicts.
    pub conditions: Vec<String>,
    /// Gateways of the cluster that did not answer: periods that they recorded are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingGateway>,
}

/// Explanation of a volume's current performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Why {
    /// Name of the volume.
    pub volume: String,
    /// Name of the pool.
    pub pool: String,
    /// Name of the gateway that serves it, in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// The last 10 s; shorter if there were no requests before.
    pub window: Window,
    /// The last minute.
    pub minute: Window,
    /// The last hour.
    pub hour: Window,
    /// Number of requests waiting for the contract at present.
    pub waiting: u64,
    /// The load of the last seconds; absent without requests in the last minute.
    #[serde(default)]
    pub load: Option<Load>,
    /// Findings, most important first.
    pub findings: Vec<String>,
    /// Possible remedies.
    pub advice: Vec<String>,
}

/// Activity of all volumes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Activity {
    /// Time, in seconds since 1970.
    pub at: u64,
    /// Number of volumes that are served.
    pub served: u64,
    /// Volumes with at least one request in the last minute.
    pub volumes: Vec<Active>,
    /// Gateways of the cluster that did not answer: their volumes are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingGateway>,
}

/// Activity of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Active {
    /// Name of the volume.
    pub volume: String,
    /// Name of the pool.
    pub pool: String,
    /// The last second.
    pub second: Window,
    /// The last 10 s.
    pub window: Window,
    /// Number of requests waiting for the contract at present.
    pub waiting: u64,
    /// Number of clients with open connections that had operations in the last 10 to 15 s.
    #[serde(default)]
    pub clients: u64,
    /// Number of these connections.
    #[serde(default)]
    pub connections: u64,
    /// Operations of all kinds, per second, over the last 10 to 15 s.
    #[serde(default)]
    pub operations_per_second: f64,
    /// Kinds of the load.
    #[serde(default)]
    pub kinds: Vec<LoadKind>,
    /// Name of the gateway that serves it, in an answer for all gateways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}
