//! The report for people: lines while it runs, a page when it is done.

use super::{Event, Part, Report};
use std::fmt::Write as _;
use weir_bench::results::median;

/// A line for the phase, and all that was found in it.
pub(super) fn tell(part: &Part, seed: u64) {
    let passed = part.outcome.findings.is_empty();
    weir_report::outln!("{} - {}", if passed { "ok" } else { "not ok" }, line(part));
    for finding in &part.outcome.findings {
        weir_report::outln!("# {}, after {} events:", finding.by, finding.after);
        for what in &finding.what {
            weir_report::outln!("#   {what}");
        }
        for step in &finding.history {
            weir_report::outln!("#     {step}");
        }
    }
    if !passed {
        weir_report::outln!("# the same load again: --seed {seed}");
    }
}

fn line(part: &Part) -> String {
    let outcome = &part.outcome;
    let operations: u64 = outcome.operations.values().sum();
    format!(
        "{} {}, names durable against {}, on {}: {operations} operations, {} in doubt, {} audits of \
         {} names and {} blocks, {} of usage; {} answered calls sent again; serving again after {:.0} ms",
        outcome.events,
        event(part.event),
        loss(part.durability),
        part.filesystem,
        outcome.in_doubt,
        outcome.audits,
        outcome.compared.names,
        outcome.compared.blocks,
        outcome.usages,
        outcome.asked_again,
        median(outcome.serving_ms.clone()),
    )
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
pub(super) fn page(report: &Report) -> String {
    let mut out = format!(
        "# Killed and cut off\n\nWhat `make crash` found. {}\n\nWeir {}, {}. {} clients, seed {}. \
         The same as data: [crash.json](crash.json). How to read it: \
         [crash tests](README.md).\n\n## Kills and power cuts\n\n",
        if report.passed {
            "**Nothing that was acknowledged was lost.**"
        } else {
            "**Something that was acknowledged was lost, or something else was wrong.**"
        },
        report.weir,
        report.machine,
        report.clients,
        report.seed,
    );
    out.push_str(
        "| event | `namespace_durability` | file system | events | in the start | operations | in doubt | \
         done before | answered and sent again | blocks sent again | audits | names | blocks | usage | catalogue | findings |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for part in &report.phases {
        let outcome = &part.outcome;
        let operations: u64 = outcome.operations.values().sum();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {operations} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            event(part.event),
            part.durability,
            part.filesystem,
            outcome.events,
            outcome.during_start,
            outcome.in_doubt,
            outcome.were_done,
            outcome.asked_again,
            outcome.rewritten_blocks,
            outcome.audits,
            outcome.compared.names,
            outcome.compared.blocks,
            outcome.usages,
            outcome.catalogue_changes,
            outcome.findings.len(),
        );
    }
    out.push_str(
        "\n## Operations\n\nSuccessful ones, all phases together.\n\n| operation | number |\n|---|--:|\n",
    );
    let mut operations = std::collections::BTreeMap::<&str, u64>::new();
    for part in &report.phases {
        for (word, count) in &part.outcome.operations {
            *operations.entry(word).or_default() += count;
        }
    }
    for (word, count) in operations {
        let _ = writeln!(out, "| {word} | {count} |");
    }
    if !report.recovery.is_empty() {
        out.push_str(
            "\n## Time to serve again\n\nAfter a kill, median of five: from the start of the process to its \
             first answer, and to the end of the recount of usage that then runs beside the load. \
             What the kernel had cached stays cached.\n\n| files | serves after | usage counted after \
             |\n|--:|--:|--:|\n",
        );
    }
    for row in &report.recovery {
        let (serving, counted) = (row.serving_ms, row.counted_ms);
        let _ = writeln!(out, "| {} | {serving:.0} ms | {counted:.0} ms |", row.files);
    }
    out
}
