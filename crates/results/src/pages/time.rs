//! Rates over time: a small chart for each step, and the same as a table.

use super::charts::unit;
use super::steps::{about_bytes, grouped, measured};
use super::words::step_name;
use crate::{StepResult, TestResult};
use weir_load::stats::result::{Point, RunResult};
use weir_report::{Cell, Column, Series, Table, XyAxis, XyChart, XyLine, XyPoint, figure};

/// Most points of a line and rows of the table: longer runs are shown as means of several seconds.
const POINTS_MAX: usize = 120;
/// Most steps beside each other in a table.
const STEPS_MAX: usize = 6;
/// Most repeats drawn in one chart.
const REPEATS_MAX: usize = 8;

/// A chart for each step that was measured.
pub(super) fn charts(test: &TestResult) -> Vec<String> {
    let (bytes, groups) = (about_bytes(test), grouped(test));
    measured(test).map(|(step, _)| chart(step, &step_name(step, groups), bytes)).collect()
}

fn chart(step: &StepResult, name: &str, bytes: bool) -> String {
    let runs: Vec<&RunResult> = step.runs.iter().take(REPEATS_MAX).map(|run| &run.total).collect();
    let end = runs.iter().map(|run| span(run).1).fold(1.0, f64::max);
    let lines = runs.iter().enumerate().map(|(number, run)| XyLine {
        series: Series::Nth(number),
        label: if runs.len() > 1 { format!("repeat {}", number + 1) } else { String::new() },
        points: rates(run, bytes)
            .into_iter()
            .map(|(at, rate)| XyPoint { x: at, y: rate, ..XyPoint::default() })
            .collect(),
        dots: false,
        joined: true,
    });
    let mut shades = Vec::new();
    if let Some(run) = runs.first() {
        let interval = run.measured;
        if interval.from_s > 0.0 {
            shades.push((0.0, interval.from_s, "warm-up".to_owned()));
        }
        if end - interval.to_s > 0.5 {
            shades.push((interval.to_s, end, "after".to_owned()));
        }
    }
    let marks = runs.iter().flat_map(|run| &run.marks);
    let steady = step.runs.first().and_then(|run| run.steady);
    XyChart {
        title: name.to_owned(),
        subtitle: steady.map_or_else(String::new, |steady| {
            format!(
                "{}: drift {}, excursions up to {:.1} %",
                if steady.steady { "steady" } else { "not steady" },
                weir_report::percent(steady.drift_percent, 1),
                steady.excursion_percent
            )
        }),
        x: XyAxis {
            label: "seconds since the load started".to_owned(),
            ends: Some((0.0, end)),
            ..XyAxis::default()
        },
        y: XyAxis { label: unit(bytes).to_owned(), ..XyAxis::default() },
        lines: lines.collect(),
        shades,
        marks: marks.map(|mark| (mark.at_s, mark.label.clone())).collect(),
        wide: false,
    }
    .to_svg()
}

/// The time a run's series covers.
fn span(run: &RunResult) -> (f64, f64) {
    let last = run.series_1s.last().map_or(0.0, |point| point.at_s);
    (0.0, last.max(run.measured.to_s))
}

/// Middles of stretches and the rates in them. The last second is left out: it is seldom whole.
fn rates(run: &RunResult, bytes: bool) -> Vec<(f64, f64)> {
    let whole = run.series_1s.len().saturating_sub(1);
    let seconds: &[Point] = run.series_1s.get(..whole).unwrap_or_default();
    let each = seconds.len().div_ceil(POINTS_MAX).max(1);
    seconds
        .chunks(each)
        .filter_map(|chunk| {
            let (first, last) = (chunk.first()?, chunk.last()?);
            let length = last.at_s + 1.0 - first.at_s;
            Some((first.at_s + length / 2.0, rate(chunk, length, bytes)))
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "drawn with three digits")]
fn rate(chunk: &[Point], seconds: f64, bytes: bool) -> f64 {
    let sum = |figure: fn(&Point) -> u64| chunk.iter().map(figure).fold(0, u64::saturating_add);
    if bytes {
        weir_load::stats::result::mibps(sum(|point| point.bytes), seconds)
    } else if seconds > 0.0 {
        sum(|point| point.operations) as f64 / seconds
    } else {
        0.0
    }
}

/// The first repeat of every step, a row for each stretch of time, in tables that fit on paper.
pub(super) fn tables(test: &TestResult) -> Vec<Table> {
    let (bytes, groups) = (about_bytes(test), grouped(test));
    let steps: Vec<(String, &RunResult)> = measured(test)
        .filter_map(|(step, _)| Some((step_name(step, groups), &step.runs.first()?.total)))
        .collect();
    steps.chunks(STEPS_MAX).map(|steps| table(steps, bytes)).collect()
}

fn table(steps: &[(String, &RunResult)], bytes: bool) -> Table {
    let mut columns = vec![Column::figures("second")];
    columns.extend(steps.iter().map(|(name, _)| Column::figures(name)));
    let lists: Vec<_> = steps.iter().map(|(_, run)| rates(run, bytes)).collect();
    let length = lists.iter().map(Vec::len).max().unwrap_or(0);
    let rows = (0..length).map(|row| {
        let at = lists.iter().find_map(|list| list.get(row)).map_or(0.0, |point| point.0);
        let mut cells = vec![Cell::from(format!("{at:.1}"))];
        let rates = lists.iter().map(|list| {
            list.get(row).map_or_else(Cell::default, |(_, rate)| Cell::from(figure(*rate)))
        });
        cells.extend(rates);
        cells
    });
    Table { columns, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_drawn_as_means_and_the_last_second_is_left_out() {
        let point = |at: u32| Point { at_s: f64::from(at), operations: 10, bytes: 1 << 20 };
        let mut run = run();
        run.series_1s = (0..=240).map(point).collect();
        let rates = rates(&run, true);
        assert_eq!(rates.len(), 120);
        assert_eq!(rates[0], (1.0, 1.0));
        assert!((super::rates(&run, false)[119].1 - 10.0).abs() < 1e-9);
        run.series_1s.clear();
        assert!(super::rates(&run, false).is_empty());
    }

    fn run() -> RunResult {
        serde_json::from_value(serde_json::json!({
            "version": 1, "name": "a", "target": "t",
            "workload": weir_load::workload::Workload::default(), "started_unix_s": 0.0,
            "measured": {"from_s": 0.0, "to_s": 1.0},
            "total": weir_load::stats::result::OpResult::default(), "by_operation": {}, "jobs": [],
            "errors": {}, "connections": {"opened": 0, "lost": 0, "unanswered": 0},
            "series_1s": [], "series_100ms": [], "series_10ms": [], "marks": [],
            "generator": weir_load::stats::result::Generator::default(), "verify": null,
            "interrupted": false
        }))
        .unwrap()
    }
}
