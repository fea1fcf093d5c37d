//! The table and the page of the campaign.

use super::course::Formats;
use super::outcome::{Program, UpgradeOutcome};
use crate::faults::fault::Moves;
use crate::faults::outcome::Findings;
use weir_report::{Cell, Column, Page, Table};

/// The steps with their pauses, and the versions after each.
pub(super) fn table(outcome: &UpgradeOutcome) -> Table {
    let findings = &outcome.findings;
    let mut columns = vec![Column::words("step")];
    let figures = ["pause", "bar", "volumes that stayed", "gateways know", "records", "catalogue"];
    columns.extend(figures.map(Column::figures));
    columns.push(Column::figures("missed"));
    let rows = findings.faults.iter().zip(outcome.formats.iter().skip(1)).map(|(step, after)| {
        let is_within = step.bar_s.is_none_or(|bar_s| !findings.bars || step.worst_s <= bar_s);
        vec![
            step.name.into(),
            Cell::judged(seconds(step.worst_s), is_within),
            step.bar_s.map_or_else(|| "–".to_owned(), |bar_s| format!("{bar_s} s")).into(),
            match step.moves {
                Moves::OfOne => seconds(step.others_s).into(),
                Moves::None => "–".into(),
            },
            knows(after).into(),
            after.records.to_string().into(),
            after.catalogue.to_string().into(),
            Cell::judged(step.missed.to_string(), step.missed == 0),
        ]
    });
    Table { columns, rows: rows.collect() }
}

fn seconds(value: f64) -> String {
    format!("{value:.2} s")
}

fn knows(formats: &Formats) -> String {
    formats.knows.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The report.
pub(super) fn page(outcome: &UpgradeOutcome) -> Page {
    let findings = &outcome.findings;
    let mut page = Page::new(
        "A cluster that is upgraded under load",
        "Three gateways over CephFS and etcd, all on one machine, in network namespaces on a bridge. \
         Each of six volumes is written by a client in stable blocks of 64 KiB, at a contract of 1 \
         MiB/s, and another client makes, renames and removes names. One gateway after the other is \
         drained, stopped, and started with another version, by make cluster-upgrade.",
    );
    let sentence = if findings.passed {
        "Nothing that was acknowledged was lost, and every rule was kept."
    } else {
        "Something was not as it has to be; see below."
    };
    page.verdict(findings.passed, sentence);
    page.section("Versions");
    page.list(outcome.programs.iter().map(in_words));
    page.section("Steps");
    page.table(&table(outcome));
    page.paragraph(
        "A pause is the longest time without an answer that a client of a volume that moved, of \
         blocks or of names, saw in the step: away from the gateway, and back. In each step no block \
         and no name that was acknowledged may be lost, no reply may come from a gateway after its \
         address moved, no request may be refused, and exactly the addresses of the gateway \
         concerned may move. The last columns have the newest version that each gateway knows, the \
         version of the cluster's records, and the format of the catalogue after the step.",
    );
    page.section("What is done, and what is expected");
    page.table(&expectations(findings));
    page.section("Counts");
    page.list(counts(findings));
    let misses = misses(findings);
    if !misses.is_empty() {
        page.section("Misses");
        page.list(misses);
    }
    page
}

fn in_words(program: &Program) -> String {
    let name = match program.role {
        "before" => "the version before",
        "this" => "this version",
        _ => "the next version, which is this one with higher numbers",
    };
    let version = program.version.map_or_else(|| "?".to_owned(), |version| version.to_string());
    let commit = program.commit.as_deref().unwrap_or("unknown");
    format!("{name}: commit {commit}, knows records up to version {version}")
}

fn expectations(findings: &Findings) -> Table {
    let columns = vec![Column::words("step"), Column::words("event and expectation")];
    let rows = findings.faults.iter().map(|step| vec![step.name.into(), step.what.into()]);
    Table { columns, rows: rows.collect() }
}

fn counts(findings: &Findings) -> Vec<String> {
    let rounds = &findings.rounds;
    let writes: usize = rounds.iter().map(|round| round.writes).sum();
    let names: u64 = rounds.iter().map(|round| round.names).sum();
    let looked_at: u64 = rounds.iter().map(|round| round.looked_at).sum();
    vec![
        format!("{} steps", rounds.len()),
        format!("{writes} writes and {names} changes of names were acknowledged"),
        format!("{looked_at} blocks and names were looked at from fresh mounts after the steps"),
        format!("{} once more in the end", findings.looked_at_in_the_end),
    ]
}

fn misses(findings: &Findings) -> Vec<String> {
    let of_steps = findings
        .rounds
        .iter()
        .flat_map(|round| round.misses.iter().map(move |miss| format!("{}: {miss}", round.fault)));
    let missed = findings.checks.iter().filter(|check| !check.passed);
    let rules = missed.map(|check| format!("{}: {}", check.rule, check.worst));
    let end = findings.end_misses.iter().map(|miss| format!("in the end: {miss}"));
    of_steps.chain(rules).chain(end).collect()
}
