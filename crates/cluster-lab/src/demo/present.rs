//! The table and the page of the demonstration.

use super::outcome::{DemoOutcome, VolumeOutcome};
use super::plan::Disturbance;
use crate::load::Break;
use weir_lab::judge::{self, Check};
use weir_report::{Cell, Column, Fact, Line, Page, Series, Stretch, Table, Timeline, Tone, figure};

/// The volumes: contract, pauses, data.
pub(super) fn table(outcome: &DemoOutcome) -> Table {
    let columns = vec![
        Column::words("volume"),
        Column::words("gateways"),
        Column::figures("contract MiB/s"),
        Column::figures("steady: worst 10 s"),
        Column::figures("worst 1 s"),
        Column::figures("then: worst 10 s"),
        Column::figures("worst 1 s"),
        Column::figures("gateway killed: pause"),
        Column::figures("etcd away: longest gap"),
        Column::figures("drained: pause"),
        Column::figures("blocks read back"),
    ];
    let row = |volume: &VolumeOutcome| {
        let pause = |why: Disturbance| worst(volume.check(|rule| rule.ends_with(why.words())));
        vec![
            volume.name.as_str().into(),
            volume.gateways.join(" → ").into(),
            figure(outcome.contract_mibps).into(),
            worst(volume.check(|rule| rule.starts_with("every 10 s") && rule.ends_with("steady"))),
            worst(volume.check(|rule| rule.starts_with("every 1 s") && rule.ends_with("steady"))),
            volume.later("every 10 s"),
            volume.later("every 1 s"),
            pause(Disturbance::Death),
            worst(volume.check(|rule| rule.ends_with("etcd away"))),
            pause(Disturbance::Drain),
            worst(volume.check(|rule| rule.starts_with("no acknowledged data"))),
        ]
    };
    Table { columns, rows: outcome.volumes.iter().map(row).collect() }
}

impl VolumeOutcome {
    fn check(&self, is_it: impl Fn(&str) -> bool) -> Option<&Check> {
        self.checks.iter().find(|check| is_it(&check.rule))
    }

    /// The rule of a contract in all parts but the steady one: the first that was missed, or the
    /// number of those that were kept.
    fn later(&self, rule: &str) -> Cell {
        let is_later =
            |check: &&Check| check.rule.starts_with(rule) && !check.rule.ends_with("steady");
        let mut later = self.checks.iter().filter(is_later);
        match later.clone().find(|check| !check.passed) {
            Some(missed) => worst(Some(missed)),
            None => Cell::judged("kept", later.next().is_some()),
        }
    }
}

/// The worst value met, without time and cause.
fn worst(check: Option<&Check>) -> Cell {
    let Some(check) = check else { return Cell::new("–", Tone::Muted) };
    let text = check.worst.split([':', ';']).next().unwrap_or_default();
    Cell::judged(text.split(" at ").next().unwrap_or_default().to_owned(), check.passed)
}

/// The rules about the cluster.
pub(super) fn course(outcome: &DemoOutcome) -> Table {
    judge::table(&outcome.cluster)
}

/// The report.
pub(super) fn page(outcome: &DemoOutcome) -> Page {
    let mut page = Page::new(
        "A cluster under load while parts of it die",
        "Three gateways over CephFS and etcd, all on one machine, in network namespaces on a bridge. \
         Six volumes, each with an address of its own, under contract. A client of each writes \
         stable blocks of 64 KiB without rest, 16 at a time.",
    );
    let sentence = match outcome.misses.as_slice() {
        [] => "Every rule was kept.".to_owned(),
        [miss] => miss.clone(),
        [first, rest @ ..] => format!("{first}; and {} more, listed below.", rest.len()),
    };
    page.verdict(outcome.passed, &sentence);
    page.facts(&facts(outcome));
    page.section("Volumes");
    page.table(&table(outcome));
    page.paragraph(
        "Worst 10 s and 1 s: the greatest error of the contract over every such window outside \
         pauses, one beginning each 100 ms. A pause is the longest time without any answer while \
         the volume's address moved. All blocks are read back at the end, over a new connection, \
         and compared with what was acknowledged.",
    );
    page.section("What happened");
    page.list(outcome.events.iter().map(|event| format!("{:.1} s: {}", event.at_s, event.what)));
    page.table(&course(outcome));
    page.section("Throughput over time");
    page.paragraph(
        "Each point is one second. The dashed line is the contract, the shaded band ±5 %, the grey \
         part on the left the first write of the files.",
    );
    page.grid(outcome.volumes.iter().map(|volume| timeline(outcome, volume).to_svg()));
    let connections = connections(outcome);
    if !connections.is_empty() {
        page.section("Connections that broke");
        page.list(connections);
    }
    if !outcome.misses.is_empty() {
        page.section("Rules that were missed");
        page.list(outcome.misses.iter().cloned());
    }
    let checks = outcome.checks();
    page.section("Every rule");
    page.details(
        &format!("{} rules and the worst that was met", checks.len()),
        &judge::table(&checks),
    );
    page
}

fn facts(outcome: &DemoOutcome) -> Vec<Fact> {
    let longest = |why| {
        let all = outcome.volumes.iter().flat_map(|volume| &volume.pauses);
        let of = all.filter(|pause| pause.why == why).map(|pause| pause.span.length_s());
        of.fold(0.0, f64::max)
    };
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    let pauses = Disturbance::ALL.map(|why| {
        let value = format!("{:.0} ms", longest(why) * 1000.0);
        fact(value, &format!("longest pause: {}", why.words()))
    });
    let acknowledged: usize = outcome.volumes.iter().map(|volume| volume.acknowledged).sum();
    let breaks: usize = outcome.volumes.iter().map(|volume| volume.breaks.len()).sum();
    pauses
        .into_iter()
        .chain([
            fact(acknowledged.to_string(), "writes acknowledged"),
            fact(breaks.to_string(), "connections that broke"),
        ])
        .collect()
}

/// The connections that broke, in words.
fn connections(outcome: &DemoOutcome) -> Vec<String> {
    let all = outcome.volumes.iter().flat_map(|volume| {
        let of = |one: &Break| format!("{}: {}", volume.name, one.in_words());
        volume.breaks.iter().map(of).collect::<Vec<_>>()
    });
    all.collect()
}

fn timeline(outcome: &DemoOutcome, volume: &VolumeOutcome) -> Timeline {
    let contract = outcome.contract_mibps;
    let middle = |(second, mibps): (u32, &f64)| (f64::from(second) + 0.5, *mibps);
    Timeline {
        title: volume.name.clone(),
        subtitle: volume.gateways.join(", then "),
        unit: "MiB/s".to_owned(),
        time: "seconds".to_owned(),
        span_s: (0.0, outcome.judged.to_s),
        range: (0.0, contract * 1.5),
        lines: vec![Line {
            series: Series::Weir,
            points: (0..).zip(&volume.seconds).map(middle).collect(),
        }],
        due: vec![Stretch { from_s: 0.0, to_s: outcome.judged.to_s, value: contract }],
        band: 0.05,
        judged_from_s: outcome.judged.from_s,
        marks: Vec::new(),
        wide: false,
    }
}
