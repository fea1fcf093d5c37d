//! Measurements, in steps: the one form that every language and the catalogue end in, and that the
//! suite runs.
//!
//! A scenario is data. Reading it from a text is the languages' work, making it fit a machine is
//! the scaling's, applying it the suite's.

pub mod scale;
mod select;

pub use select::only;

use serde::{Deserialize, Serialize};
use weir_load::workload::Workload;

/// In which language a scenario was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Weir's own, in TOML.
    Native,
    /// A fio job file or command line.
    Fio,
    /// A Vdbench parameter file.
    Vdbench,
    /// A diskspd command line.
    Diskspd,
    /// The catalogue of published tests.
    Catalogue,
}

/// Steps that belong together: one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Short, for command lines and file names: `anf-linux-4k-random`.
    pub name: String,
    /// For headings: "ANF, Linux scale-out: 4 KiB random, cache excluded".
    pub title: String,
    /// The purpose, in a sentence or two.
    pub about: String,
    /// The source of the published figures, if there are any.
    pub source: Option<String>,
    /// The language in which it was written.
    pub language: Language,
    /// The chart of its figures.
    pub chart: Chart,
    /// One after the other. Names are unique.
    pub steps: Vec<Step>,
    /// Differences from the written or published test, a sentence each: sizes that were scaled,
    /// options that mean nothing here.
    pub changes: Vec<String>,
    /// Why it can't be run yet ("SMB …"); it is listed all the same.
    pub waiting: Option<String>,
    /// Addresses of the server in the published test, where it has several for one volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<u32>,
    /// The target that the text names (`nfs_url` of fio), for runs without another.
    #[serde(default)]
    pub target: Option<String>,
    /// The text it was read from, for engines that read the language themselves.
    pub text: Option<String>,
    /// The hosts that loads name, as far as the text says where they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
}

/// A host of a text: where a worker is to be started, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The name by which loads name it.
    pub name: String,
    /// Its network name or address.
    pub system: Option<String>,
    /// The user there.
    pub user: Option<String>,
    /// The program that starts something there, in the text's own word.
    pub shell: Option<String>,
}

impl Host {
    /// Is `text` a network name or an address? The text may be of a file that somebody else wrote.
    /// ssh hands hosts and users to the commands of its configuration (`ProxyCommand`, `Match
    /// exec`), and a command in place of ssh (`--ssh`) may be a script that does so: nothing is
    /// permitted that a shell would read otherwise, or ssh as an option.
    #[must_use]
    pub fn is_system(text: &str) -> bool {
        is_plain(text, "._-:[]%")
    }

    /// Is `text` the name of a user: the same rule as for systems, with a realm behind an `@`, and
    /// a `$` at the end of the accounts of machines.
    #[must_use]
    pub fn is_user(text: &str) -> bool {
        is_plain(text.strip_suffix('$').unwrap_or(text), "._-+@")
    }
}

/// Are there only letters and digits of ASCII and `others`, and no hyphen in front, which would
/// make an option of it?
fn is_plain(text: &str, others: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

/// The best chart for the figures of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// Bars of reads and writes, a bar for each step.
    #[default]
    Bars,
    /// Latency over operations per second, a line for each group of steps.
    LatencyCurve,
    /// Operations per second, and latency, over the axis, a line for each group of steps.
    Lines,
}

/// Loads applied at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Unique within the scenario.
    pub name: String,
    /// Steps of one group are one line of a chart; empty: the scenario's only group.
    pub group: String,
    /// The axis that the step varies, where the test is a sweep.
    pub axis: Option<Axis>,
    /// The loads; they start together and the step ends with the last.
    pub loads: Vec<Workload>,
    /// A fill or warm-up: applied, but no figure of the test.
    pub preparation: bool,
    /// The figures published for it.
    pub published: Option<Published>,
    /// Leave the rest of the group out once the mean latency of a step of it exceeds this many
    /// milliseconds (Vdbench's `stopcurve`).
    pub stop_over_ms: Option<f64>,
    /// The state of caches before it starts.
    pub cache: Cache,
    /// Files that steps after this one use again: they are not laid out anew nor removed between.
    pub shares_files: bool,
    /// Requests in flight before scaling made them fewer; absent where they are as many as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_in_flight: Option<u64>,
}

impl Step {
    /// Requests that all its loads keep in flight together.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.loads.iter().map(Workload::in_flight).sum()
    }
}

/// The quantity that a sweep varies, and its value in this step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity, with its unit: "reads %", "requests in flight", "connections", "threads".
    pub label: String,
    /// The value.
    pub value: f64,
}

/// The state of caches that a step wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Nothing.
    #[default]
    Any,
    /// The caches are filled before the figures count ("cache included").
    Included,
    /// The caches are emptied before, and can't hold the data set ("cache excluded").
    Excluded,
}

/// Figures somebody published for a step. What was not published is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Published {
    /// The owner and the system: "ANF Ultra, 100 TiB, six D32s_v5".
    pub who: String,
    /// Reads a second.
    pub read_iops: Option<f64>,
    /// Writes a second.
    pub write_iops: Option<f64>,
    /// MiB/s read.
    pub read_mibps: Option<f64>,
    /// MiB/s written.
    pub write_mibps: Option<f64>,
    /// Operations of all kinds a second.
    pub iops: Option<f64>,
    /// MiB/s of all kinds.
    pub mibps: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// The figures are read off a text that says "about".
    pub about: bool,
    /// The way in which the source bounds the figures.
    pub bound: Bound,
}

/// The way in which a source bounds its figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Not at all: the figures were measured.
    #[default]
    None,
    /// "Up to": the greatest that was seen.
    UpTo,
    /// "More than": the least that was seen.
    MoreThan,
}

impl Bound {
    /// The source's words in front of a figure, with a space behind; empty for a measured one.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::UpTo => "up to ",
            Self::MoreThan => "more than ",
        }
    }
}
