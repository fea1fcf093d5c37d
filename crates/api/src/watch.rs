//! Whether contracts are kept: stretches of time with their verdicts, reports, and what goes on
//! now. The conditions of a verdict are in `docs/semantics.md`, and with every report.

use crate::words::{Cause, Verdict};
use serde::{Deserialize, Serialize};

/// The version of [`Report`]; it grows when a program that reads reports would misread one.
pub const REPORT_VERSION: u32 = 1;

/// What became of a volume's contract over a stretch of time. Rates are means over it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Window {
    /// Its beginning, in seconds since 1970.
    pub start: u64,
    /// Its length.
    pub seconds: f64,
    /// The verdict; over more than 10 s broken if it was in any of the 10 s that were judged.
    pub verdict: Verdict,
    /// What it was broken by, most often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The condition that led to the verdict, in a sentence; only where one stretch was judged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How far what was delivered was off the contract while that was demanded, as a part of it:
    /// −0.02 is 2 % too little. Nothing if it never was demanded.
    #[serde(default)]
    pub error: Option<f64>,
    /// Stretches of 10 s in which the contract was kept; of 1 s in a report by seconds.
    pub kept: u64,
    /// In which it was not demanded. Times in which nothing at all came are not counted.
    pub not_demanded: u64,
    /// In which it was broken.
    pub broken: u64,
    /// The limit.
    pub limit_bytes_per_second: u64,
    /// The limit of READs and WRITEs a second; nothing where they were not counted.
    #[serde(default)]
    pub limit_iops: Option<u64>,
    /// What READs and WRITEs asked to move when they came.
    pub offered_bytes_per_second: u64,
    /// READs and WRITEs that came, a second.
    pub offered_iops: f64,
    /// What was moved.
    pub delivered_bytes_per_second: u64,
    /// READs and WRITEs carried out, a second.
    pub delivered_iops: f64,
    /// The part of the time in which somebody waited for the contract.
    pub waited: f64,
    /// Where requests spent their time.
    pub split: Split,
}

/// Where READs, WRITEs and COMMITs spent their time, summed over them, also over those that are not
/// answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Split {
    /// Requests that were answered.
    pub requests: u64,
    /// Nanoseconds of waiting for the contract.
    pub wait_nanos: u64,
    /// Nanoseconds in the store.
    pub store_nanos: u64,
    /// Nanoseconds until the client's socket took the reply.
    pub network_nanos: u64,
    /// Nanoseconds in which the server was busy with other requests.
    pub processing_nanos: u64,
}

impl Split {
    /// All of them together.
    #[must_use]
    pub const fn total_nanos(&self) -> u64 {
        self.wait_nanos
            .saturating_add(self.store_nanos)
            .saturating_add(self.network_nanos)
            .saturating_add(self.processing_nanos)
    }

    /// What a request took on average, in nanoseconds; nothing if none was answered.
    #[must_use]
    pub const fn mean_nanos(&self) -> Option<u64> {
        self.total_nanos().checked_div(self.requests)
    }

    /// The part of all that `nanos` is, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a part is read to a few digits")]
    pub fn part(&self, nanos: u64) -> f64 {
        match self.total_nanos() {
            0 => 0.0,
            total => nanos as f64 / total as f64,
        }
    }
}

/// What became of a volume's contract, with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The volume.
    pub volume: String,
    /// Its number.
    pub volume_id: u32,
    /// Its pool.
    pub pool: String,
    /// The version of the server.
    pub server: String,
    /// When the report was made, in seconds since 1970.
    pub made_at: u64,
    /// How long each of the periods is, in seconds: 1, 60 or 900.
    pub resolution_seconds: u64,
    /// The whole time that was asked for.
    pub whole: Window,
    /// The last 10 s, minute and hour.
    pub recent: Vec<Window>,
    /// The periods of the whole time in which anything came, oldest first.
    pub periods: Vec<Window>,
    /// By which conditions verdicts are found.
    pub conditions: Vec<String>,
}

/// Why a volume is as quick or slow as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Why {
    /// The volume.
    pub volume: String,
    /// Its pool.
    pub pool: String,
    /// The last 10 s, or less if nothing came before.
    pub window: Window,
    /// The last minute.
    pub minute: Window,
    /// The last hour.
    pub hour: Window,
    /// Requests that wait for the contract now.
    pub waiting: u64,
    /// What is to be said about it, most important first.
    pub findings: Vec<String>,
    /// What can be done.
    pub advice: Vec<String>,
}

/// What goes on in all volumes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Activity {
    /// When, in seconds since 1970.
    pub at: u64,
    /// How many volumes are served.
    pub served: u64,
    /// Those that something came to in the last minute.
    pub volumes: Vec<Active>,
}

/// What goes on in a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Active {
    /// The volume.
    pub volume: String,
    /// Its pool.
    pub pool: String,
    /// The last second.
    pub second: Window,
    /// The last 10 s.
    pub window: Window,
    /// Requests that wait for the contract now.
    pub waiting: u64,
}
