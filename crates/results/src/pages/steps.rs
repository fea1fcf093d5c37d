//! The steps of a test as a table: measured, published beside it, spread, and marks.

use super::words::{bytes, count, load, spread, step_name};
use crate::{Environment, StepResult, StepRun, Summary, TestResult, counted};
use std::collections::BTreeSet;
use weir_core::units::latency;
use weir_report::{Cell, Column, Table, Tone, figure};
use weir_scenario::scenario::{Cache, Published};

/// Steps that are figures of the test.
pub(super) fn shown(test: &TestResult) -> impl Iterator<Item = &StepResult> {
    test.steps.iter().filter(|step| !step.preparation)
}

/// Steps that were measured, with their figures.
pub(super) fn measured(test: &TestResult) -> impl Iterator<Item = (&StepResult, &Summary)> {
    shown(test).filter_map(|step| step.summary.as_ref().map(|summary| (step, summary)))
}

/// Does the test have several groups of steps?
pub(super) fn grouped(test: &TestResult) -> bool {
    shown(test).map(|step| step.group.as_str()).collect::<BTreeSet<_>>().len() > 1
}

/// Is the test about MiB/s rather than operations? It is if its blocks are of 32 KiB or more.
pub(super) fn about_bytes(test: &TestResult) -> bool {
    let first = measured(test).next();
    first.is_some_and(|(_, summary)| {
        summary.iops.median > 0.0 && summary.mibps.median / summary.iops.median >= 1.0 / 33.0
    })
}

/// The published figure of a step, in the unit that it was published in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Whole {
    /// Reads; all kinds where they were not told apart.
    pub(super) read: f64,
    /// Writes.
    pub(super) write: f64,
    /// The figure is of all kinds together.
    pub(super) together: bool,
    /// MiB/s, not operations a second.
    pub(super) bytes: bool,
}

impl Whole {
    /// Every figure of a step, the first being the one that charts show: operations before MiB/s.
    pub(super) fn all(published: &Published) -> Vec<Self> {
        let pair = |read: Option<f64>, write: Option<f64>, bytes| {
            (read.is_some() || write.is_some()).then(|| Self {
                read: read.unwrap_or(0.0),
                write: write.unwrap_or(0.0),
                together: false,
                bytes,
            })
        };
        let one = |all: Option<f64>, bytes| {
            all.map(|read| Self { read, write: 0.0, together: true, bytes })
        };
        let found = [
            pair(published.read_iops, published.write_iops, false),
            pair(published.read_mibps, published.write_mibps, true),
            one(published.iops, false),
            one(published.mibps, true),
        ];
        found.into_iter().flatten().collect()
    }

    /// The figure that charts show.
    pub(super) fn first(published: &Published) -> Option<Self> {
        Self::all(published).into_iter().next()
    }

    pub(super) fn sum(&self) -> f64 {
        self.read + self.write
    }

    pub(super) const fn unit(&self) -> &'static str {
        if self.bytes { "MiB/s" } else { "op/s" }
    }

    /// The measured figure, in the same unit.
    pub(super) const fn measured(&self, summary: &Summary) -> f64 {
        if self.bytes { summary.mibps.median } else { summary.iops.median }
    }

    fn text(&self) -> String {
        let figures = match (self.read > 0.0, self.write > 0.0) {
            (true, true) => format!("{} + {}", figure(self.read), figure(self.write)),
            (false, true) => figure(self.write),
            _ => figure(self.read),
        };
        format!("{figures} {}", self.unit())
    }
}

/// The columns that a test needs.
#[derive(Clone, Copy)]
struct Needs {
    groups: bool,
    in_flight: bool,
    reads: bool,
    writes: bool,
    others: bool,
    published: bool,
    repeats: bool,
    marks: bool,
    narrow: bool,
}

impl Needs {
    fn of(test: &TestResult, narrow: bool) -> Self {
        let any =
            |want: &dyn Fn(&Summary) -> bool| measured(test).any(|(_, summary)| want(summary));
        let reads = any(&|one| one.read_iops.median > 0.0);
        let writes = any(&|one| one.write_iops.median > 0.0);
        let others = any(&|one| {
            let data = one.read_iops.median + one.write_iops.median;
            one.iops.median - data > one.iops.median * 0.02
        });
        Self {
            groups: grouped(test),
            in_flight: shown(test).any(|step| step.written_in_flight.is_some()),
            reads,
            writes,
            others: others || !(reads || writes),
            published: shown(test).any(|step| step.published.is_some()),
            repeats: any(&|one| one.repeats > 1),
            marks: shown(test).any(|step| !marks(step).is_empty()),
            narrow,
        }
    }

    /// Are MiB/s told in one column, reads and writes together?
    const fn together(self) -> bool {
        self.narrow || !(self.reads && self.writes)
    }
}

/// The table of a test; `narrow` leaves out what a terminal has no room for.
pub(super) fn table(test: &TestResult, narrow: bool) -> Table {
    let needs = Needs::of(test, narrow);
    let mut columns = vec![Column::words("step")];
    let heads = [
        (needs.in_flight, Column::figures("in flight").spare()),
        (needs.others, Column::figures("op/s")),
        (needs.reads, Column::figures("reads/s")),
        (needs.writes, Column::figures("writes/s")),
        (needs.together(), Column::figures("MiB/s")),
        (needs.reads && !needs.together(), Column::figures("MiB/s read")),
        (needs.writes && !needs.together(), Column::figures("MiB/s written")),
        (true, Column::figures("mean")),
        (true, Column::figures("p99")),
        (true, Column::figures("max").spare()),
        (needs.published, Column::mixed("published").spare()),
        (needs.published, Column::figures("of it")),
        (needs.repeats, Column::figures("repeats").spare()),
        (needs.repeats, Column::figures("spread").spare()),
        (needs.marks, Column::prose("marks")),
    ];
    columns.extend(heads.into_iter().filter(|(wanted, _)| *wanted).map(|(_, column)| column));
    Table { columns, rows: shown(test).map(|step| row(step, needs)).collect() }
}

fn row(step: &StepResult, needs: Needs) -> Vec<Cell> {
    let name = step_name(step, needs.groups);
    let summary = step.summary.as_ref();
    let dash = || Cell::new("–", Tone::Muted);
    let with = |text: &dyn Fn(&Summary) -> String| {
        summary.map_or_else(dash, |summary| Cell::from(text(summary)))
    };
    let rate = |value: f64| if value > 0.0 { figure(value) } else { "–".to_owned() };
    let mut cells = vec![name.into()];
    if needs.in_flight {
        cells.push(in_flight(step));
    }
    if needs.others {
        cells.push(with(&|one| rate(one.iops.median)));
    }
    let apart = !needs.together();
    let rates = [
        (needs.reads, summary.map(|one| one.read_iops)),
        (needs.writes, summary.map(|one| one.write_iops)),
        (needs.together(), summary.map(|one| one.mibps)),
        (needs.reads && apart, summary.map(|one| one.read_mibps)),
        (needs.writes && apart, summary.map(|one| one.write_mibps)),
    ];
    for (_, value) in rates.into_iter().filter(|(wanted, _)| *wanted) {
        cells.push(value.map_or_else(dash, |value| Cell::from(rate(value.median))));
    }
    cells.push(with(&|one| latency(one.mean_ms.median)));
    cells.push(with(&|one| latency(one.p99_ms.median)));
    cells.push(with(&|_| latency(longest_ms(step))));
    if needs.published {
        cells.extend(published(step));
    }
    if needs.repeats {
        cells.push(with(&|one| one.repeats.to_string()));
        cells.push(with(&|one| spread(&one.iops, one.repeats)));
    }
    if needs.marks {
        cells.push(marks_cell(step));
    }
    cells
}

/// The requests in flight, and the number in the published or written test where scaling made it
/// less: `256 of 1 024`.
fn in_flight(step: &StepResult) -> Cell {
    let Some(run) = step.runs.first() else { return Cell::new("–", Tone::Muted) };
    let now = run.in_flight();
    match step.written_in_flight {
        Some(before) => format!("{} of {}", count(now), count(before)).into(),
        None => count(now).into(),
    }
}

/// The longest latency in the repeats that count, in milliseconds.
fn longest_ms(step: &StepResult) -> f64 {
    counted(&step.runs).iter().map(|run| run.total.total.latency_ms.max).fold(0.0, f64::max)
}

/// The published figures, and the part of each that was measured.
fn published(step: &StepResult) -> [Cell; 2] {
    let dash = || Cell::new("–", Tone::Muted);
    let Some(published) = &step.published else { return [dash(), dash()] };
    let all = Whole::all(published);
    let told = all.iter().filter(|whole| whole.sum() > 0.0);
    let parts: Vec<String> = match &step.summary {
        Some(summary) => told.map(|whole| part_of(whole.measured(summary), whole.sum())).collect(),
        None => Vec::new(),
    };
    let parts = if parts.is_empty() { dash() } else { Cell::from(parts.join(", ")) };
    [in_words(published, &all).into(), parts]
}

/// Published figures with the words of their source: `up to 1 350 000 op/s, 22 016 MiB/s`.
fn in_words(published: &Published, all: &[Whole]) -> String {
    let about = if published.about { "about " } else { "" };
    let figures: Vec<String> = all.iter().map(Whole::text).collect();
    let latency = published.latency_ms.map(|ms| format!("at {}", latency(ms)));
    let words = (!figures.is_empty())
        .then(|| format!("{}{about}{}", published.bound.words(), figures.join(", ")));
    words.into_iter().chain(latency).collect::<Vec<_>>().join(" ")
}

/// `measured` over `published`: in percent, or as a factor where it is twice or more.
fn part_of(measured: f64, published: f64) -> String {
    let ratio = measured / published;
    if ratio >= 2.0 {
        return format!("{} ×", figure(ratio));
    }
    format!("{} %", figure(ratio * 100.0))
}

fn marks_cell(step: &StepResult) -> Cell {
    let marks = marks(step);
    let bad = marks.iter().any(|mark| mark.bad);
    let words: Vec<&str> = marks.iter().map(|mark| mark.word).collect();
    Cell::new(words.join(", "), if bad { Tone::Bad } else { Tone::Muted })
}

/// A word about a step's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) word: &'static str,
    /// The figures are not to be relied on.
    pub(super) bad: bool,
}

/// The marks beside the figures of a step.
pub(super) fn marks(step: &StepResult) -> Vec<Mark> {
    let any = |what: fn(&StepRun) -> bool| step.runs.iter().any(what);
    let mismatch =
        |run: &StepRun| run.total.verify.as_ref().is_some_and(|verify| verify.mismatches > 0);
    let all = [
        (any(mismatch), "MISMATCH", true),
        (any(|run| run.total.error_count() > 0), "errors", true),
        (any(|run| run.total.connections.lost > 0), "lost connection", true),
        (any(lost_worker), "lost worker", true),
        (any(|run| run.total.interrupted), "interrupted", true),
        (any(|run| run.total.generator.saturated), "generator limit", true),
        (any(|run| run.machine_busy().is_some()), "machine busy", true),
        (any(|run| run.stall.is_some()), "stalled", true),
        (any(|run| run.steady.is_some_and(|steady| !steady.steady)), "not steady", true),
        (step.cache.wanted == Cache::Excluded && !step.cache.open.is_empty(), "caches open", false),
        (step.skipped.is_some() && step.runs.is_empty(), "skipped", false),
        (step.skipped.is_some() && !step.runs.is_empty(), "ended early", false),
        (!step.notes.is_empty(), "see notes", false),
    ];
    let found = all.into_iter().filter(|(there, _, _)| *there);
    let mut marks: Vec<Mark> = found.map(|(_, word, bad)| Mark { word, bad }).collect();
    // A note usually says what a mark is about.
    if marks.len() > 1 {
        marks.retain(|mark| mark.word != "see notes");
    }
    marks
}

/// Did a worker get lost?
pub(super) fn lost_worker(run: &StepRun) -> bool {
    run.workers.iter().any(|worker| worker.lost.is_some())
}

/// The load of each step, in words.
pub(super) fn loads(test: &TestResult) -> Table {
    let groups = grouped(test);
    let columns = vec![Column::words("step"), Column::prose("load"), Column::figures("data set")];
    let mut rows = Vec::new();
    for step in &test.steps {
        let Some(run) = step.runs.first() else { continue };
        let mut name = step_name(step, groups);
        if step.preparation {
            name.push_str(" (preparation)");
        }
        let data = step.cache.data_bytes;
        for one in run.workloads() {
            let text = load(one);
            let data = if data > 0 { bytes(data) } else { String::new() };
            rows.push(vec![name.as_str().into(), text.into(), data.into()]);
        }
    }
    Table { columns, rows }
}

/// The notes of steps, each once, with the steps it is about.
pub(super) fn notes(test: &TestResult) -> Vec<String> {
    each_once(test, |step| step.notes.iter().chain(&step.skipped).cloned().collect())
}

/// The limit of each measured step, as far as it is known, each once with its steps.
pub(super) fn limits(test: &TestResult, environment: &Environment) -> Vec<String> {
    let limit = |step: &StepResult| step.limit(environment).map(|limit| format!("limit: {limit}"));
    each_once(test, |step| limit(step).into_iter().collect())
}

/// The sentences of all steps, each once, with the steps it is about.
fn each_once(test: &TestResult, sentences: impl Fn(&StepResult) -> Vec<String>) -> Vec<String> {
    let groups = grouped(test);
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for step in &test.steps {
        let name = step_name(step, groups);
        for sentence in sentences(step) {
            match all.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, steps)) => steps.push(name.clone()),
                None => all.push((sentence, vec![name.clone()])),
            }
        }
    }
    let told = all.into_iter().map(|(sentence, steps)| match steps.as_slice() {
        all if all.len() == test.steps.len() && all.len() > 1 => format!("All steps: {sentence}"),
        [first, .., last] if steps.len() > 4 => {
            format!("{} steps, {first} to {last}: {sentence}", steps.len())
        }
        few => format!("{}: {sentence}", few.join(", ")),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_result;
    use crate::{Spread, Stall, Steady, WorkerResult};
    use weir_load::stats::result::VerifyResult;
    use weir_scenario::scenario::Bound;

    #[test]
    fn published_figures_keep_their_unit_and_their_parts() {
        let pair =
            Published { read_iops: Some(3.0), write_iops: Some(1.0), ..Published::default() };
        let whole = Whole::first(&pair).unwrap();
        assert_eq!((whole.sum(), whole.unit(), whole.together), (4.0, "op/s", false));
        let about = Published { about: true, ..pair };
        assert_eq!(in_words(&about, &Whole::all(&about)), "about 3.00 + 1.00 op/s");
        let one = Published { mibps: Some(4500.0), ..Published::default() };
        let whole = Whole::first(&one).unwrap();
        assert!(whole.together && whole.text().ends_with("500 MiB/s"));
        assert_eq!(Whole::first(&Published::default()), None);
    }

    #[test]
    fn every_published_figure_of_a_step_is_told_with_its_bound() {
        let both = Published {
            iops: Some(200.0),
            mibps: Some(50.0),
            latency_ms: Some(3.0),
            bound: Bound::UpTo,
            ..Published::default()
        };
        let summary = Summary {
            iops: Spread { min: 100.0, median: 100.0, max: 100.0 },
            mibps: Spread { min: 5.0, median: 5.0, max: 5.0 },
            ..Summary::default()
        };
        let step =
            StepResult { published: Some(both), summary: Some(summary), ..StepResult::default() };
        let [words, parts] = published(&step);
        assert_eq!(words.text, "up to 200 op/s, 50.0 MiB/s at 3.00 ms");
        assert_eq!(parts.text, "50.0 %, 10.0 %");
    }

    #[test]
    fn every_mark_is_explained() {
        let explained = include_str!("../../../../docs/bench.md");
        let explained: Vec<&str> = explained
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let noted = StepResult { notes: vec!["a note".to_owned()], ..StepResult::default() };
        let mut broken = step_result(1.0, 1.0);
        broken.cache.wanted = Cache::Excluded;
        broken.cache.open.push("something".to_owned());
        broken.skipped = Some("why".to_owned());
        let run = &mut broken.runs[0];
        run.total.verify = Some(VerifyResult { mismatches: 1, ..VerifyResult::default() });
        run.total.errors.insert("NFS3ERR_IO".to_owned(), 1);
        run.total.connections.lost = 1;
        run.total.interrupted = true;
        run.total.generator.saturated = true;
        run.steady = Some(Steady::default());
        let lost = Some("why".to_owned());
        run.workers = vec![WorkerResult { lost, ..WorkerResult::default() }];
        run.stall = Some(Stall { from_s: 1.0, seconds: 1.0 });
        let skipped = StepResult { skipped: Some("why".to_owned()), ..StepResult::default() };
        let mut busy = step_result(1.0, 1.0);
        busy.runs[0].total.generator.machine_busy_percent = 99.0;
        let all: Vec<&str> = [&noted, &broken, &skipped, &busy]
            .iter()
            .flat_map(|step| marks(step))
            .map(|m| m.word)
            .collect();
        assert!(all.len() >= 13, "{all:?}");
        let missing: Vec<_> = all.iter().filter(|word| !explained.contains(word)).collect();
        assert!(missing.is_empty(), "docs/bench.md does not explain {missing:?}");
    }

    #[test]
    fn requests_in_flight_are_told_beside_those_before_scaling() {
        let mut step = step_result(1.0, 1.0);
        let test = |step: &StepResult| {
            let results = crate::read::single_run(step.runs[0].total.clone());
            TestResult { steps: vec![step.clone()], ..results.tests[0].clone() }
        };
        let heads = |step: &StepResult| -> Vec<String> {
            table(&test(step), true).columns.into_iter().map(|column| column.text).collect()
        };
        assert!(!heads(&step).contains(&"in flight".to_owned()), "nothing was scaled");
        step.written_in_flight = Some(1024);
        assert_eq!(heads(&step)[1], "in flight");
        let cells = |step: &StepResult| table(&test(step), true).rows[0][1].text.clone();
        assert_eq!(cells(&step), "16 of 1\u{2009}024");
        step.runs[0].loads = vec![step.runs[0].total.clone(), step.runs[0].total.clone()];
        assert_eq!(cells(&step), "32 of 1\u{2009}024", "of all loads together");
    }

    #[test]
    fn parts_of_what_was_published_are_percents_or_factors() {
        assert_eq!(part_of(2.1, 100.0), "2.10 %");
        assert_eq!(part_of(150.0, 100.0), "150 %");
        assert_eq!(part_of(250.0, 100.0), "2.50 ×");
    }
}
