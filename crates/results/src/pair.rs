//! A pair of steps, and what its ratio shows.

use super::Spread;
use serde::{Deserialize, Serialize};
use weir_scenario::catalogue::pairs::{Compared, PublishedRatio};

/// A pair of the catalogue whose both sides were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairResult {
    /// The pair's name in the catalogue.
    pub name: String,
    /// For people.
    pub title: String,
    /// The compared figure.
    pub figure: Compared,
    /// The side that the ratio divides by.
    pub base: PairSide,
    /// The side that is divided.
    pub other: PairSide,
    /// Median of the other side over that of the base.
    pub ratio: f64,
    /// Least ratio that the repeats allow.
    pub low: f64,
    /// Greatest that they allow.
    pub high: f64,
    /// With what confidence the true ratio lies between, 0 to 1, at least; 0 says nothing.
    pub confidence: f64,
    /// The published ratio.
    pub published_ratio: PublishedRatio,
    /// The verdict on the measured ratio against the published one.
    pub verdict: PairVerdict,
    /// Differences of the loads beside the figure, a sentence each: what the pair is about, and
    /// what else was not the same.
    pub differences: Vec<String>,
    /// Doubts about either side, a sentence each.
    pub remarks: Vec<String>,
}

/// One measured side of a pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairSide {
    /// The side, in words: "cache included".
    pub label: String,
    /// Label of the results that have it.
    pub result: String,
    /// The test.
    pub test: String,
    /// The step.
    pub step: String,
    /// The figure's spread over the repeats.
    pub value: Spread,
    /// The number of repeats that count.
    pub repeats: u32,
}

/// The verdict on a measured ratio against a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairVerdict {
    /// The interval reaches into the published range, and does not contain 1 (no effect) unless
    /// that range does.
    AsPublished,
    /// The same way, but more than published.
    Stronger,
    /// The same way, but less than published.
    Weaker,
    /// The interval contains 1, and nothing of the published range.
    NotShown,
    /// The other way.
    Opposite,
    /// The interval contains both 1 and something of the published range.
    Undecided,
    /// None: the ratio was published for another protocol.
    Orientation,
    /// Too few repeats for any confidence.
    FewRuns,
    /// None: both sides had the same load, so that their ratio shows nothing of the pair.
    SameLoad,
    /// None: a contract or the load generator was the limit of both sides, not the server.
    Limited,
}

impl PairVerdict {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AsPublished => "as published",
            Self::Stronger => "stronger than published",
            Self::Weaker => "weaker than published",
            Self::NotShown => "no such effect shown",
            Self::Opposite => "the opposite of the published",
            Self::Undecided => "undecided",
            Self::Orientation => "none: published for another protocol",
            Self::FewRuns => "too few repeats: no confidence",
            Self::SameLoad => "none: both sides had the same load",
            Self::Limited => "none: the server was not the limit",
        }
    }
}
