//! Pairs of steps whose *ratio* was published: with caches and without, with one connection and
//! with several, with the server's metadata cache off and on.
//!
//! A pair is data. Ratios of measured figures, and the verdict on them, are the suite's work.

use serde::{Deserialize, Serialize};

/// Two steps whose ratio is of interest.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Unique: `anf-4k-reads-uncached`.
    pub name: String,
    /// For people: "4 KiB reads, cache excluded against included".
    pub title: String,
    /// The side that the ratio divides by.
    pub base: Side,
    /// The side that is divided.
    pub other: Side,
    /// The figure that is compared.
    pub figure: Compared,
    /// The published ratio of the other side's figure to that of the base.
    pub published: PublishedRatio,
}

/// One side of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The side, in words: "cache included".
    pub label: String,
    /// The test's name.
    pub test: String,
    /// The step.
    pub pick: Pick,
    /// The setting of the server with which it was measured, as name and value, where the pair is
    /// about one. Results record it.
    pub setting: Option<(String, String)>,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The step of this name.
    Step(String),
    /// The step of this group with the highest compared figure.
    Best(String),
}

/// The compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// Operations a second.
    Operations,
    /// MiB/s.
    Throughput,
    /// Mean latency.
    Mean,
}

/// A published ratio.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishedRatio {
    /// The owner and the system.
    pub who: String,
    /// The source's words: "about -17 %".
    pub words: String,
    /// The least ratio that the words allow; no bound without. "About" allows three percent of the
    /// base more and less.
    pub low: Option<f64>,
    /// The greatest.
    pub high: Option<f64>,
    /// It was published for another protocol than that of the two steps: it is shown for
    /// orientation, and there is no verdict.
    pub orientation: bool,
}

/// The tolerance of an "about", as part of the base.
const ABOUT: f64 = 0.03;

const ANF: &str = "ANF Ultra, 100 TiB, six D32s_v5";
const ANF_ONE: &str = "ANF, one D32s_v4";
const AZURE: &str = "Azure Files premium over SMB, one D32s_v3";

/// All pairs, in the order of the catalogue's tests.
#[must_use]
pub fn pairs() -> Vec<Pair> {
    let mut all = caches();
    all.extend(mixes_and_sizes());
    all.extend(nconnect());
    for suffix in ["", NFS] {
        all.extend(channels(suffix));
        all.extend(metadata(suffix));
    }
    all
}

/// The end of the names of tests that are over NFS in place of SMB.
const NFS: &str = "-nfs";

/// A ratio that was published for SMB, for the tests with this end of their names.
fn published_for_smb(suffix: &str, words: &str, range: Range) -> PublishedRatio {
    if suffix != NFS {
        return published(AZURE, words, range);
    }
    let words = format!("of SMB, for orientation: {words}");
    PublishedRatio { orientation: true, ..published(AZURE, &words, range) }
}

/// The least and the greatest ratio.
type Range = (Option<f64>, Option<f64>);

const fn about(ratio: f64) -> Range {
    (Some(ratio - ABOUT), Some(ratio + ABOUT))
}

const fn between(low: f64, high: f64) -> Range {
    (Some(low), Some(high))
}

const fn over(low: f64) -> Range {
    (Some(low), None)
}

const fn under(high: f64) -> Range {
    (None, Some(high))
}

fn published(who: &str, words: &str, (low, high): Range) -> PublishedRatio {
    let (who, words) = (who.to_owned(), words.to_owned());
    PublishedRatio { who, words, low, high, orientation: false }
}

fn step(label: &str, test: &str, step: &str) -> Side {
    Side {
        label: label.to_owned(),
        test: test.to_owned(),
        pick: Pick::Step(step.to_owned()),
        setting: None,
    }
}

fn best(label: &str, test: &str, group: &str) -> Side {
    Side { pick: Pick::Best(group.to_owned()), ..step(label, test, "") }
}

fn pair(
    (name, title): (&str, &str),
    (base, other): (Side, Side),
    figure: Compared,
    published: PublishedRatio,
) -> Pair {
    let (name, title) = (name.to_owned(), title.to_owned());
    Pair { name, title, base, other, figure, published }
}

/// Caches included and excluded.
fn caches() -> Vec<Pair> {
    use Compared::{Operations, Throughput};
    let rows = [
        ("4k-random", "reads-100", "4k-reads", "4 KiB reads", Operations, "about -17 %", 0.83),
        ("4k-random", "reads-0", "4k-writes", "4 KiB writes", Operations, "about -8 %", 0.92),
        (
            "64k-sequential",
            "reads-100",
            "64k-reads",
            "64 KiB reads",
            Throughput,
            "about 3,600 against about 4,500 MiB/s",
            3600.0 / 4500.0,
        ),
        (
            "64k-sequential",
            "reads-0",
            "64k-writes",
            "64 KiB writes",
            Throughput,
            "about 2,400 against about 1,600 MiB/s",
            2400.0 / 1600.0,
        ),
    ];
    let each = |(test, at, name, what, figure, words, ratio)| {
        let test = format!("anf-linux-{test}");
        let sides = (
            step("cache included", &test, at),
            step("cache excluded", &format!("{test}-uncached"), at),
        );
        let title = format!("{what}: cache excluded against included");
        let name = format!("anf-uncached-{name}");
        pair((&name, &title), sides, figure, published(ANF, words, about(ratio)))
    };
    rows.map(each).into()
}

/// Halves of reads and writes against reads alone and writes alone, and 256 KiB against 64 KiB.
fn mixes_and_sizes() -> Vec<Pair> {
    let (small, large) =
        ("anf-linux-64k-sequential-uncached", "anf-linux-256k-sequential-uncached");
    let half = |kib: u32, test: &str, words: &str, range: Range| {
        let sides = (step("reads", test, "reads-100"), step("half of each", test, "reads-50"));
        let name = format!("anf-half-writes-{kib}k");
        let title = format!("{kib} KiB: half reads and half writes against reads");
        pair((&name, &title), sides, Compared::Throughput, published(ANF, words, range))
    };
    let size = |at: &str, what: &str, words: &str, range: Range| {
        let sides = (step("64 KiB", small, at), step("256 KiB", large, at));
        let name = format!("anf-256k-{at}");
        let title = format!("256 KiB against 64 KiB: {what}");
        pair((&name, &title), sides, Compared::Throughput, published(ANF, words, range))
    };
    let writes = |kib: u32, test: &str| {
        let sides = (step("half of each", test, "reads-50"), step("writes", test, "reads-0"));
        let name = format!("anf-writes-{kib}k");
        let title = format!("{kib} KiB: writes against half reads and half writes");
        pair((&name, &title), sides, Compared::Throughput, published(ANF, "less", under(1.0)))
    };
    vec![
        half(64, small, "as much", about(1.0)),
        half(256, large, "more", over(1.0)),
        writes(64, small),
        writes(256, large),
        size("reads-100", "reads", "less", under(1.0)),
        size("reads-75", "75 % reads", "more", over(1.0)),
        size("reads-50", "50 % reads", "more", over(1.0)),
        size("reads-25", "25 % reads", "more", over(1.0)),
        size("reads-0", "writes", "more", over(1.0)),
    ]
}

/// One connection and eight.
fn nconnect() -> Vec<Pair> {
    use Compared::{Mean, Operations, Throughput};
    let older = ("2.3 to 3 times (an older edition)", between(2.3, 3.0));
    let rows = [
        ("4k-random", "4 KiB reads", Operations, older),
        ("4k-random-writes", "4 KiB writes", Operations, ("more", over(1.0))),
        ("64k-sequential", "64 KiB reads", Throughput, older),
        ("64k-sequential-writes", "64 KiB writes", Throughput, ("more", over(1.0))),
    ];
    let each = |(kind, what, figure, (words, range)): (&str, &str, Compared, (&str, Range))| {
        let test = format!("anf-nconnect-{kind}");
        let (one, eight) = ("nconnect=1", "nconnect=8");
        let rate = pair(
            (&format!("{test}-rate"), &format!("{what}, highest rate: nconnect=8 against 1")),
            (best(one, &test, one), best(eight, &test, eight)),
            figure,
            published(ANF_ONE, words, range),
        );
        let at = |group: &str| step(group, &test, &format!("{group}-128"));
        let latency = pair(
            (
                &format!("{test}-latency"),
                &format!("{what}, latency of 16 in flight of each job: nconnect=8 against 1"),
            ),
            (at(one), at(eight)),
            Mean,
            published(ANF_ONE, "less", under(1.0)),
        );
        [rate, latency]
    };
    rows.into_iter().flat_map(each).collect()
}

/// One channel, or connection, and four: the highest throughput of many files, and single steps.
fn channels(suffix: &str) -> Vec<Pair> {
    let (one, four) = ("1 connection", "4 connections");
    let row = |name: &str, title: &str, sides: (Side, Side), words: &str, range: Range| {
        let name = format!("azure-channels-{name}{suffix}");
        let title = format!("{title}: four connections against one");
        pair((&name, &title), sides, Compared::Throughput, published_for_smb(suffix, words, range))
    };
    let highest = |what: &str, words: &str, range: Range| {
        let test = format!("azure-multichannel-many-files{suffix}");
        let side = |label: &str| best(label, &test, &format!("{what}, {label}"));
        let title = format!("Highest {what} of many files");
        row(what, &title, (side(one), side(four)), words, range)
    };
    let at = |kind: &str, what: &str, kib: u32| {
        let test = format!("azure-multichannel-{kind}{suffix}");
        let side = |label: &str, count: u32| step(label, &test, &format!("{what}-{count}-{kib}k"));
        (side(one, 1), side(four, 4))
    };
    let file = |what: &str, kib: u32, (words, range): (&str, Range)| {
        let (name, title) =
            (format!("file-{what}-{kib}k"), format!("{kib} KiB {what} of one file"));
        row(&name, &title, at("one-file", what, kib), words, range)
    };
    let thread = |what: &str, (words, range): (&str, Range)| {
        let title = format!("64 KiB reads of {} by one thread", what.replace('-', " "));
        row(&format!("thread-{what}"), &title, at("one-thread", what, 64), words, range)
    };
    let (gain, loss) = (("a gain", over(1.0)), ("about -10 %", about(0.9)));
    vec![
        highest("reads", "2 to 3 times", between(2.0, 3.0)),
        highest("writes", "3 to 4 times", between(3.0, 4.0)),
        file("reads", 4, loss),
        file("reads", 64, gain),
        file("writes", 4, loss),
        file("writes", 64, gain),
        thread("one-file", loss),
        thread("ten-files", ("a small gain", over(1.0))),
    ]
}

/// The server's metadata cache off and on: the same step of two results.
fn metadata(suffix: &str) -> Vec<Pair> {
    let side = |value: &str, at: &str| {
        let label = format!("metadata cache {value}");
        let setting = Some(("metadata-cache".to_owned(), value.to_owned()));
        Side { setting, ..step(&label, &format!("azure-metadata-cache{suffix}"), at) }
    };
    let row = |at: &str, what: &str, figure: Compared| {
        let (kind, word, words, range) = match figure {
            Compared::Mean => ("latency", "latency", "-30 % or more", under(0.7)),
            Compared::Operations => ("iops", "IOPS", "+60 % or more", over(1.6)),
            Compared::Throughput => ("throughput", "throughput", "+60 % or more", over(1.6)),
        };
        let name = format!("azure-metadata-{at}-{kind}{suffix}");
        let title = format!("{what}, {word}: metadata cache on against off");
        let sides = (side("off", at), side("on", at));
        pair((&name, &title), sides, figure, published_for_smb(suffix, words, range))
    };
    let work = [
        ("create-open-delete", "Create, open, close, delete"),
        ("create-delete", "Create, delete"),
        ("open", "Open"),
    ];
    let mut all: Vec<Pair> = work
        .into_iter()
        .flat_map(|(at, what)| {
            [Compared::Mean, Compared::Operations].map(|figure| row(at, what, figure))
        })
        .collect();
    all.push(row("mostly-metadata", "Mostly metadata", Compared::Throughput));
    all
}
