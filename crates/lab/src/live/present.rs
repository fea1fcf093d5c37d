//! Tables for the terminal, and the pages.

use super::Report;
use super::part::{Course, Figure, Part};
use std::fmt::Write as _;
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
pub(super) fn summary(report: &Report) -> Table {
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
    Table { columns, rows: report.parts.iter().map(row).collect() }
}

fn rules(part: &Part) -> Table {
    let columns = vec![Column::words("rule"), Column::figures("worst met")];
    let row = |check: &crate::demo::judge::Check| {
        vec![check.rule.as_str().into(), Cell::judged(check.worst.clone(), check.passed)]
    };
    Table { columns, rows: part.checks.iter().map(row).collect() }
}

fn verdict(report: &Report) -> &'static str {
    if report.passed { "Every rule was kept." } else { "A rule was missed." }
}

const LEAD: &str = "Volumes of a shared pool of which one becomes idle and comes back, and buckets of credits for bursts that are \
                    drained, empty and earned again: what clients of a real server saw, and what its API said meanwhile.";

/// The short page, for the repository.
pub(super) fn markdown(report: &Report) -> String {
    let mut out = format!(
        "# Contracts that have a course\n\nWhat `make live` found. {LEAD}\n\n{}{} Weir {}, {}; {:.0} s. The same as data: \
         [live.json](live.json); with charts: [live.html](live.html).\n",
        if report.passed { "" } else { "**Miss.** " },
        verdict(report),
        report.weir,
        report.machine,
        report.took_s,
    );
    for part in &report.parts {
        let _ =
            write!(out, "\n## {}\n\n{} Machine: {}.\n\n", part.name, part.how, part.conditions());
        out.push_str("| | unit | due | found |\n|---|---|---|---|\n");
        for one in &part.figures {
            let (due, found) = (decimals(one.due), decimals(one.found));
            let _ = writeln!(out, "| {} | {} | {due} | {found} |", one.what, one.unit);
        }
        out.push_str("\n| rule | worst met | |\n|---|---|---|\n");
        for check in &part.checks {
            let word = if check.passed { "kept" } else { "**missed**" };
            let _ = writeln!(out, "| {} | {} | {word} |", check.rule, check.worst);
        }
        if !part.said.is_empty() {
            out.push_str("\nSeconds in which the server found a contract broken itself:\n\n");
        }
        for said in &part.said {
            let _ = writeln!(out, "- {said}");
        }
    }
    out
}

/// The page with charts.
pub(super) fn page(report: &Report) -> String {
    let mut page = Page::new("Contracts that have a course", LEAD);
    page.verdict(report.passed, verdict(report));
    let rules_all: usize = report.parts.iter().map(|part| part.checks.len()).sum();
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    page.facts(&[
        fact(rules_all.to_string(), "rules judged"),
        fact(format!("{:.0} s", report.took_s), "all together"),
    ]);
    for part in &report.parts {
        page.section(part.name);
        page.paragraph(&part.how);
        page.paragraph(&format!("Machine: {}.", part.conditions()));
        page.table(&figures(part));
        page.grid(part.courses.iter().map(|course| timeline(course).to_svg()));
        let rules = rules(part);
        if !part.said.is_empty() {
            page.paragraph("Seconds in which the server found a contract broken itself:");
            page.list(part.said.iter().cloned());
        }
        page.details(&format!("{} rules and the worst that was met", rules.rows.len()), &rules);
    }
    page.paragraph("Dashed lines are what was due, bands ±5 %. Each point is 100 ms, in loads of over two minutes the mean of several.");
    page.finish(&format!("Weir {}. {}", report.weir, report.machine))
}

fn timeline(course: &Course) -> Timeline {
    let end = course.due.last().map_or(0.0, |due| due.1);
    let most = course.due.iter().map(|due| due.2).fold(0.0, f64::max);
    Timeline {
        title: course.name.clone(),
        subtitle: "completions, as the clients saw them".to_owned(),
        unit: course.unit.to_owned(),
        time: "seconds".to_owned(),
        span_s: (0.0, end),
        range: (0.0, most * 1.25),
        lines: vec![Line { series: Series::Weir, points: course.points.clone() }],
        due: course
            .due
            .iter()
            .map(|&(from_s, to_s, value)| Stretch { from_s, to_s, value })
            .collect(),
        band: 0.05,
        judged_from_s: 0.0,
        marks: course.marks.clone(),
        wide: false,
    }
}
