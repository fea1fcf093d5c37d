//! The report: lines while the campaign runs, and a page at its end.

use super::{Event, Findings, PhaseResult};
use crate::judge::Check;
use std::collections::BTreeMap;
use weir_report::{Cell, Column, Page, Table};
use weir_results::median;

/// A line for the phase, and everything that was found in it.
pub(super) fn print(phase: &PhaseResult, seed: u64) {
    let check = check(phase);
    check.print();
    for finding in &phase.outcome.findings {
        weir_report::outln!("# {}, after {} events:", finding.by, finding.after);
        for what in &finding.what {
            weir_report::outln!("#   {what}");
        }
        for step in &finding.history {
            weir_report::outln!("#     {step}");
        }
    }
    if !check.passed {
        weir_report::outln!("# to repeat the load: --seed {seed}");
    }
}

/// The rule that a phase has no findings.
pub(super) fn check(phase: &PhaseResult) -> Check {
    let outcome = &phase.outcome;
    let operations: u64 = outcome.operations.values().sum();
    let rule = format!(
        "{} {}, names durable against {}, on {}",
        outcome.events,
        event(phase.event),
        loss(phase.durability),
        phase.filesystem
    );
    let worst = format!(
        "{operations} operations, {} in doubt, {} audits of {} names and {} blocks, {} of usage; \
         {} answered calls sent again; serving again after {:.0} ms",
        outcome.in_doubt,
        outcome.audits,
        outcome.compared.names,
        outcome.compared.blocks,
        outcome.usages,
        outcome.asked_again,
        median(outcome.serving_ms.clone()),
    );
    Check::new(rule, worst, outcome.findings.is_empty())
}

const fn event(event: Event) -> &'static str {
    match event {
        Event::Kill => "kills",
        Event::PowerCut => "power cuts",
    }
}

fn loss(durability: &str) -> &str {
    if durability == "power" { "power cuts" } else { "the process's end" }
}

/// The page.
pub(super) fn page(findings: &Findings) -> Page {
    let lead = format!(
        "Kills and power failures at random moments under mixed load, by make crash with {} NFS \
         clients, {} SMB clients and seed {}.",
        findings.clients, findings.smb_clients, findings.seed
    );
    let mut page = Page::new("Kills and power failures", &lead);
    let sentence = if findings.passed {
        "Nothing that was acknowledged was lost."
    } else {
        "Something that was acknowledged was lost, or something else was wrong."
    };
    page.verdict(findings.passed, sentence);
    page.section("Kills and power cuts");
    page.table(&phases(&findings.phases));
    page.paragraph("The README beside this report explains the columns.");
    page.section("Operations");
    page.paragraph("Successful operations of all phases.");
    page.table(&operations(&findings.phases));
    if !findings.recovery.is_empty() {
        page.section("Time to serve again");
        page.paragraph(
            "After a kill, median of five: from the start of the process to its first answer, and \
             to the end of the recount of usage that then runs beside the load. The kernel's page \
             cache is kept.",
        );
        page.table(&recovery(findings));
    }
    page
}

fn phases(phases: &[PhaseResult]) -> Table {
    let mut columns = ["event", "namespace durability", "file system"].map(Column::words).to_vec();
    columns.extend(
        [
            "events",
            "in the start",
            "operations",
            "in doubt",
            "done before",
            "answered and sent again",
            "blocks sent again",
            "audits",
            "names",
            "blocks",
            "usage",
            "catalogue",
            "findings",
        ]
        .map(Column::figures),
    );
    let rows = phases.iter().map(|phase| {
        let outcome = &phase.outcome;
        let figures = [
            outcome.events,
            outcome.during_start,
            outcome.operations.values().sum(),
            outcome.in_doubt,
            outcome.were_done,
            outcome.asked_again,
            outcome.rewritten_blocks,
            outcome.audits,
            outcome.compared.names,
            outcome.compared.blocks,
            outcome.usages,
            outcome.catalogue_changes,
        ];
        let words = [event(phase.event), phase.durability, phase.filesystem];
        let mut row: Vec<Cell> = words.map(Cell::from).to_vec();
        row.extend(figures.map(|figure| Cell::from(figure.to_string())));
        let count = outcome.findings.len();
        row.push(Cell::judged(count.to_string(), count == 0));
        row
    });
    Table { columns, rows: rows.collect() }
}

fn operations(phases: &[PhaseResult]) -> Table {
    let mut sums = BTreeMap::<&str, u64>::new();
    for (word, count) in phases.iter().flat_map(|phase| &phase.outcome.operations) {
        *sums.entry(word).or_default() += count;
    }
    Table {
        columns: vec![Column::words("operation"), Column::figures("number")],
        rows: sums
            .into_iter()
            .map(|(word, sum)| vec![word.into(), sum.to_string().into()])
            .collect(),
    }
}

fn recovery(findings: &Findings) -> Table {
    let columns = ["files", "serves after", "usage counted after"].map(Column::figures).to_vec();
    let rows = findings.recovery.iter().map(|row| {
        let ms = |value: f64| Cell::from(format!("{value:.0} ms"));
        vec![row.files.to_string().into(), ms(row.serving_ms), ms(row.counted_ms)]
    });
    Table { columns, rows: rows.collect() }
}
