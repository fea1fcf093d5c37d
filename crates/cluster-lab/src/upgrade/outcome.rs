//! The outcome of the campaign, in the shape of its JSON.

use super::course::Formats;
use crate::faults::outcome::Findings;
use serde::Serialize;

/// A program of the campaign.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Program {
    /// Its place: `before`, `this`, `next`.
    pub(super) role: &'static str,
    /// Its commit.
    pub(super) commit: Option<String>,
    /// The newest version of the cluster's records that it knows.
    pub(super) version: Option<u32>,
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub(super) struct UpgradeOutcome {
    /// The programs.
    pub(super) programs: Vec<Program>,
    /// The versions in etcd after each step.
    pub(super) formats: Vec<Formats>,
    /// The steps, and what was found in each.
    #[serde(flatten)]
    pub(super) findings: Findings,
}
