//! Tables for the terminal, and the page.

use super::Findings;
use super::part::{Curve, Figure, Part};
use crate::judge::{self, Check};
use weir_report::terminal;
use weir_report::{
    Cell, Column, Fact, Line, Page, Series, Stretch, Table, Timeline, figure, percent,
};

/// The due and the measured figures of a part.
pub(super) fn figures(part: &Part) -> Table {
    let columns = vec![
        Column::words(part.name),
        Column::words("unit"),
        Column::figures("due"),
        Column::figures("found"),
        Column::figures("error"),
    ];
    let row = |one: &Figure| {
        vec![
            one.what.as_str().into(),
            one.unit.into(),
            decimals(one.due).into(),
            decimals(one.found).into(),
            percent((one.found / one.due - 1.0) * 100.0, 2).into(),
        ]
    };
    Table { columns, rows: part.figures.iter().map(row).collect() }
}

fn decimals(value: f64) -> String {
    if value < 1000.0 { format!("{value:.3}") } else { figure(value) }
}

/// Every part in a line.
pub(super) fn summary(findings: &Findings) -> Table {
    let columns =
        vec![Column::words("part"), Column::figures("rules kept"), Column::words("missed")];
    let row = |part: &Part| {
        let missed: Vec<String> = part
            .checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| format!("{}: {}", check.rule, check.worst))
            .collect();
        let kept = part.checks.len() - missed.len();
        let missed = if missed.is_empty() { "nothing".to_owned() } else { missed.join("; ") };
        vec![
            part.name.into(),
            Cell::judged(format!("{kept} of {}", part.checks.len()), part.passed()),
            missed.into(),
        ]
    };
    Table { columns, rows: findings.parts.iter().map(row).collect() }
}

/// The outcome in a sentence.
pub(super) const fn verdict(passed: bool) -> &'static str {
    if passed { "Every rule was kept." } else { "A rule was missed." }
}

/// Prints a part as soon as it is measured.
pub(super) fn print(part: &Part) {
    terminal::show(&figures(part).to_terminal(false));
    part.checks.iter().for_each(|check: &Check| check.clone().of(part.name).print());
    part.said.iter().for_each(|said| weir_report::outln!("# the server: {said}"));
    weir_report::outln!("# {}", part.conditions());
    weir_report::outln!("");
}

const LEAD: &str = "Volumes of a shared pool, one of which becomes idle and busy again, and buckets of \
                    burst credits that are drained, empty and earned again: the figures of clients \
                    of a real server and of its API, measured by make live.";

/// The page.
pub(super) fn page(findings: &Findings) -> Page {
    let mut page = Page::new("Contracts whose limits change over time", LEAD);
    page.verdict(findings.passed, verdict(findings.passed));
    let rules_all: usize = findings.parts.iter().map(|part| part.checks.len()).sum();
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    page.facts(&[
        fact(rules_all.to_string(), "rules judged"),
        fact(format!("{:.0} s", findings.took_s), "all together"),
    ]);
    for part in &findings.parts {
        page.section(part.name);
        page.paragraph(&part.how);
        page.paragraph(&format!("Machine: {}.", part.conditions()));
        page.table(&figures(part));
        page.grid(part.courses.iter().map(|curve| timeline(curve).to_svg()));
        let rules = judge::table(&part.checks);
        if !part.said.is_empty() {
            page.paragraph("Seconds in which the server found a contract broken itself:");
            page.list(part.said.iter().cloned());
        }
        page.details(&format!("{} rules and the worst that was met", rules.rows.len()), &rules);
    }
    page.paragraph("In the charts, dashed lines are the due rates, bands ±5 %. Each point is 100 ms, in loads of over \
         two minutes the mean of several.");
    page
}

fn timeline(curve: &Curve) -> Timeline {
    let end = curve.due.last().map_or(0.0, |due| due.1);
    let most = curve.due.iter().map(|due| due.2).fold(0.0, f64::max);
    Timeline {
        title: curve.name.clone(),
        subtitle: "completions measured by the clients".to_owned(),
        unit: curve.unit.to_owned(),
        time: "seconds".to_owned(),
        span_s: (0.0, end),
        range: (0.0, most * 1.25),
        lines: vec![Line { series: Series::Weir, points: curve.points.clone() }],
        due: curve
            .due
            .iter()
            .map(|&(from_s, to_s, value)| Stretch { from_s, to_s, value })
            .collect(),
        band: 0.05,
        judged_from_s: 0.0,
        marks: curve.marks.clone(),
        wide: false,
    }
}
