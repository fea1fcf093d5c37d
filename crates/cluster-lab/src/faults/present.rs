//! The page of the campaign.

use super::fault::Moves;
use super::outcome::{FaultOutcome, Findings};
use weir_report::{Cell, Column, Page, Table};

/// The report.
pub(super) fn page(findings: &Findings) -> Page {
    let mut page = Page::new(
        "Parts of a cluster that fail",
        "Three gateways over CephFS and etcd, all on one machine, in network namespaces on a bridge. \
         Each of three volumes is written by a client in stable blocks of 64 KiB, at a contract of 1 \
         MiB/s, and another client makes, renames and removes names. One fault after the other, by \
         make cluster-crash.",
    );
    let sentence = if findings.passed {
        "Nothing that was acknowledged was lost, and every rule was kept."
    } else {
        "Something was not as it has to be; see below."
    };
    page.verdict(findings.passed, sentence);
    page.section("Faults");
    page.table(&faults(findings));
    page.paragraph(
        "A pause is the longest time without an answer that a client of a volume, of blocks or of \
         names, saw from the fault until the cluster was whole again: of the volumes that moved, or of all if none had to. \
         In each round no block and no name that was acknowledged may be lost, no reply may come \
         from a gateway after its address moved, every request has to be answered, and exactly the \
         addresses of the gateway concerned may move.",
    );
    page.section("What they do, and what is expected");
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

fn faults(findings: &Findings) -> Table {
    let mut columns = vec![Column::words("fault")];
    let figures =
        ["rounds", "pause: median", "worst", "bar", "worst of volumes that stayed", "missed"];
    columns.extend(figures.map(Column::figures));
    let seconds = |value: f64| format!("{value:.2} s");
    let row = |fault: &FaultOutcome| {
        let is_within = fault.bar_s.is_none_or(|bar_s| !findings.bars || fault.worst_s <= bar_s);
        vec![
            fault.name.into(),
            fault.rounds.to_string().into(),
            seconds(fault.median_s).into(),
            Cell::judged(seconds(fault.worst_s), is_within),
            fault.bar_s.map_or_else(|| "–".to_owned(), |bar_s| format!("{bar_s} s")).into(),
            match fault.moves {
                Moves::OfOne => seconds(fault.others_s).into(),
                Moves::None => "–".into(),
            },
            Cell::judged(fault.missed.to_string(), fault.missed == 0),
        ]
    };
    Table { columns, rows: findings.faults.iter().map(row).collect() }
}

fn expectations(findings: &Findings) -> Table {
    let columns = vec![Column::words("fault"), Column::words("event and expectation")];
    let rows = findings.faults.iter().map(|fault| vec![fault.name.into(), fault.what.into()]);
    Table { columns, rows: rows.collect() }
}

fn counts(findings: &Findings) -> Vec<String> {
    let rounds = &findings.rounds;
    let writes: usize = rounds.iter().map(|round| round.writes).sum();
    let names: u64 = rounds.iter().map(|round| round.names).sum();
    let looked_at: u64 = rounds.iter().map(|round| round.looked_at).sum();
    let moved: usize = rounds.iter().map(|round| round.moved).sum();
    let mut counts = vec![
        format!("{} rounds, {moved} moves of addresses", rounds.len()),
        format!("{writes} writes and {names} changes of names were acknowledged"),
        format!("{looked_at} blocks and names were looked at from fresh mounts after the rounds"),
        format!("{} once more in the end", findings.looked_at_in_the_end),
    ];
    counts.extend(findings.commit.iter().map(|commit| format!("commit {commit}")));
    counts
}

fn misses(findings: &Findings) -> Vec<String> {
    let of_rounds = (1..).zip(&findings.rounds).flat_map(|(number, round)| {
        round.misses.iter().map(move |miss| format!("round {number}, {}: {miss}", round.fault))
    });
    of_rounds.chain(findings.end_misses.iter().map(|miss| format!("in the end: {miss}"))).collect()
}
