//! Service levels.

use serde::{Deserialize, Serialize};

/// A service level: what each provisioned TiB of a pool buys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Level {
    /// Its name.
    pub name: String,
    /// What each TiB buys.
    pub bytes_per_second_per_tib: u64,
    /// The same in MiB/s.
    pub mibps_per_tib: f64,
    /// One of those that every server has and nobody changes, or the operator's own?
    pub published: bool,
    /// How many pools have it.
    pub pools: usize,
    /// Stands for all of the above, and changes with it: what `If-Match` takes, in quotes.
    #[serde(default)]
    pub etag: String,
}

/// A level to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewLevel {
    /// Its name.
    pub name: String,
    /// What each TiB buys.
    pub bytes_per_second_per_tib: u64,
}

/// What is to change about a level of the operator's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelChange {
    /// What each TiB buys.
    pub bytes_per_second_per_tib: u64,
}
