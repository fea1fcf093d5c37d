//! The targets of a test whose loads were on several at the same time: a chart and a table of each
//! target in each step. The charts and the table of the test itself show all targets together.

use super::charts::{self, ends, unit};
use super::steps::{about_bytes, grouped, measured};
use super::words::{spread, step_name};
use crate::{StepResult, Summary, TargetSummary, TestResult};
use weir_core::units::latency;
use weir_report::{
    Cell, Column, SegmentBar, SegmentChart, SegmentRow, Series, Table, Tone, figure,
};

/// Beside the chart.
pub(super) const CAPTION: &str = "Each target by itself; the loads of a step are on all its targets at the same time. Whiskers, if \
     present, extend from the minimum to the maximum of the repeats.";

/// A step on several targets.
struct Several<'a> {
    step: &'a StepResult,
    /// The figures of all targets together.
    whole: &'a Summary,
    targets: Vec<TargetSummary>,
}

/// The measured steps that were on several targets.
fn several(test: &TestResult) -> Vec<Several<'_>> {
    measured(test)
        .map(|(step, whole)| Several { step, whole, targets: step.targets() })
        .filter(|several| !several.targets.is_empty())
        .collect()
}

/// A row for each target of each step, and below them one for all together; nothing where no step
/// was on several.
pub(super) fn table(test: &TestResult) -> Option<Table> {
    let steps = several(test);
    let repeats = steps.iter().any(|several| several.whole.repeats > 1);
    let (bytes, groups) = (about_bytes(test), grouped(test));
    let mut columns = vec![Column::words("step"), Column::words("target")];
    columns.extend(["op/s", "MiB/s", "part", "mean", "p99"].map(Column::figures));
    if repeats {
        columns.push(Column::figures("spread").spare());
    }
    let mut rows = Vec::new();
    for several in &steps {
        let name = step_name(several.step, groups);
        let all = several.targets.iter().map(|target| rate(&target.summary, bytes)).sum();
        for target in &several.targets {
            let shown = Cell::from(target.name.as_str());
            rows.push(row(&name, shown, &target.summary, Part { bytes, all, repeats }));
        }
        let shown = Cell::new("all together", Tone::Muted);
        let all = rate(several.whole, bytes);
        rows.push(row(&name, shown, several.whole, Part { bytes, all, repeats }));
    }
    (!rows.is_empty()).then_some(Table { columns, rows })
}

/// The whole that a row is a part of, and the cells it has.
#[derive(Clone, Copy)]
struct Part {
    /// Parts are those of the bytes, not of the operations.
    bytes: bool,
    /// The rate of all parts together.
    all: f64,
    /// The row tells the spread of the repeats.
    repeats: bool,
}

fn row(step: &str, target: Cell, summary: &Summary, part: Part) -> Vec<Cell> {
    let own = rate(summary, part.bytes);
    let percent = if part.all > 0.0 { own / part.all * 100.0 } else { 0.0 };
    let mut cells = vec![
        step.into(),
        target,
        figure(summary.iops.median).into(),
        figure(summary.mibps.median).into(),
        format!("{percent:.1} %").into(),
        latency(summary.mean_ms.median).into(),
        latency(summary.p99_ms.median).into(),
    ];
    if part.repeats {
        cells.push(spread(&summary.iops, summary.repeats).into());
    }
    cells
}

/// The rate of each target in each step; nothing where no step was on several.
pub(super) fn chart(test: &TestResult) -> Option<String> {
    let steps = several(test);
    let (bytes, groups) = (about_bytes(test), grouped(test));
    let mut names: Vec<&str> = Vec::new();
    for target in steps.iter().flat_map(|several| &several.targets) {
        if !names.contains(&target.name.as_str()) {
            names.push(&target.name);
        }
    }
    let series =
        |name: &str| Series::Nth(names.iter().position(|known| *known == name).unwrap_or_default());
    let bar = |target: &TargetSummary| {
        let (_, _, whole) = charts::parts(&target.summary, bytes);
        SegmentBar {
            segments: vec![(series(&target.name), whole.median)],
            spread: ends(&whole, &target.summary),
            note: figure(whole.median),
            hint: format!("{}, {}", unit(bytes), target.name),
        }
    };
    let rows = steps.iter().map(|several| SegmentRow {
        label: step_name(several.step, groups),
        bars: several.targets.iter().map(bar).collect(),
    });
    let chart = SegmentChart {
        title: format!("Measured {} of each target", unit(bytes)),
        subtitle: "medians of the repeats of each step".to_owned(),
        unit: unit(bytes).to_owned(),
        legend: names.iter().map(|name| (series(name), (*name).to_owned())).collect(),
        rows: rows.collect(),
    };
    (!steps.is_empty()).then(|| chart.to_svg())
}

const fn rate(summary: &Summary, bytes: bool) -> f64 {
    charts::parts(summary, bytes).2.median
}
