//! The demo's table and page.

use super::outcome::{CaseOutcome, DemoOutcome, LoadOutcome};
use super::processors;
use crate::judge::Check;
use weir_report::{
    Cell, Column, Dot, Fact, Line, Page, RangeChart, RangeRow, Series, Span, Stretch, Table,
    Timeline, Tone, figure, percent,
};

/// The table at the end of the demo: contract, measured, error, latency, the published row beside.
pub(super) fn table(outcome: &DemoOutcome) -> Table {
    let columns = vec![
        Column::words("case"),
        Column::figures("contract MiB/s"),
        Column::figures("measured MiB/s"),
        Column::figures("error"),
        Column::figures("worst 10 s"),
        Column::figures("worst 1 s"),
        Column::figures("IOPS"),
        Column::figures("latency ms, mean (p5 – p95)"),
        Column::figures("off an equal share"),
        Column::figures("published: MiB/s IOPS error mean ms"),
    ];
    Table { columns, rows: outcome.cases.iter().flat_map(rows).collect() }
}

/// The row of a case, and below it those of its loads if there are several.
fn rows(case: &CaseOutcome) -> Vec<Vec<Cell>> {
    let loads = case.loads.iter().filter(|_| case.loads.len() > 1);
    std::iter::once(row(case)).chain(loads.map(|load| load_row(case, load))).collect()
}

fn row(case: &CaseOutcome) -> Vec<Cell> {
    let published = case.published.map_or_else(none, |row| {
        let text = format!(
            "{} {} {} {}",
            row.mibps,
            row.iops,
            percent(row.error_percent, 2),
            figure(row.mean_ms)
        );
        Cell::new(text, Tone::Muted)
    });
    let (latency, share) = match case.loads.as_slice() {
        [load] => (latency(case, load), worst(case.check("every job"))),
        _ => (none(), worst(case.check("every client"))),
    };
    let error = percent(case.error_percent, 2);
    vec![
        case.name.as_str().into(),
        number(case.contract_mibps).into(),
        megabytes(case.measured_mibps).into(),
        judged(case.check("every 10 s"), error),
        worst(case.check("every 10 s")),
        worst(case.check("every 1 s")),
        figure(case.iops).into(),
        latency,
        share,
        published,
    ]
}

/// The row of one of several loads. The contract is that of their case.
fn load_row(case: &CaseOutcome, load: &LoadOutcome) -> Vec<Cell> {
    vec![
        format!("– {}", load.name).into(),
        none(),
        megabytes(load.measured_mibps).into(),
        none(),
        none(),
        none(),
        figure(load.iops).into(),
        latency(case, load),
        worst(case.check_of(load, "every job")),
        none(),
    ]
}

fn none() -> Cell {
    Cell::new("–", Tone::Muted)
}

fn judged(check: Option<&Check>, text: String) -> Cell {
    Cell::judged(text, check.is_some_and(|check| check.passed))
}

/// The worst value met, without its time.
fn worst(check: Option<&Check>) -> Cell {
    let text = check.map_or("–", |check| &check.worst);
    judged(check, text.split(" at ").next().unwrap_or(text).to_owned())
}

fn latency(case: &CaseOutcome, load: &LoadOutcome) -> Cell {
    let of = load.latency_ms;
    let text = format!("{} ({} – {})", figure(of.mean), figure(of.p5), figure(of.p95));
    judged(case.check_of(load, "p5 to p95"), text)
}

fn number(value: f64) -> String {
    format!("{value}")
}

/// A rate in MiB/s with the decimals that show an error of a hundredth of a percent.
fn megabytes(mibps: f64) -> String {
    if mibps < 10.0 { format!("{mibps:.4}") } else { format!("{mibps:.3}") }
}

/// The changes of contract under load, rule by rule.
pub(super) fn changes(outcome: &DemoOutcome) -> Table {
    let columns = vec![
        Column::words("changed under load"),
        Column::figures("in force"),
        Column::figures("API answered"),
        Column::figures("the second after 100 ms"),
    ];
    let rows = outcome.cases.iter().flat_map(|case| {
        case.changes.iter().map(|change| {
            let words = format!("{} → {} MiB/s", change.from_mibps, change.to_mibps);
            let mut found = case.checks.iter().filter(|check| check.rule.starts_with(&words));
            let mut cell = || {
                found.next().map_or_else(Cell::default, |check| {
                    Cell::judged(check.worst.clone(), check.passed)
                })
            };
            let (delay, second) = (cell(), cell());
            let answered = format!("{:.1} ms", change.answered_after_s * 1000.0);
            vec![format!("{words} at {:.1} s", change.at_s).into(), delay, answered.into(), second]
        })
    });
    Table { columns, rows: rows.collect() }
}

/// The report.
pub(super) fn page(outcome: &DemoOutcome) -> Page {
    let mut page = Page::new(
        "Contracts of every model, under load",
        "Seven volumes of a published measurement, four cases of our own and one for each other \
         contract model. All load is random writes, with 32 requests of each job in flight: 40 jobs \
         with requests of 8 KiB over NFSv3, or, on two volumes, eight over NFSv3 and eight over SMB \
         3.1.1. The server delays requests to keep each volume at its contract, and never refuses one.",
    );
    let sentence = match outcome.misses.as_slice() {
        [] => "Every rule was kept in every case.".to_owned(),
        [miss] => miss.clone(),
        [first, rest @ ..] => format!("{first}; and {} more, listed below.", rest.len()),
    };
    page.verdict(outcome.passed, &sentence);
    page.facts(&facts(outcome));
    page.section("Contract and measurement");
    page.table(&table(outcome));
    page.paragraph(
        "Error: completed bytes as the clients saw them against the contract. Worst 10 s and 1 s: \
         over every such window of the measured part, one beginning each 100 ms. Off an equal \
         share: the poorest and the richest of the jobs, or of the clients of all loads. The published \
         row is Azure NetApp Files (ANF), Standard level, measured in the same way over 180 s.",
    );
    page.section("Error of each contract");
    page.figure(
        &errors(outcome),
        "Bars span the worst 10 s windows, dots show the whole measured part; the tolerance of ±1 % is shaded.",
    );
    page.section("Throughput over time");
    page.paragraph(
        "Each point is one second. The dashed line is the contract, the shaded band ±5 %, the grey \
         part on the left the warm-up. The axes do not begin at zero.",
    );
    let steady = outcome.cases.iter().filter(|case| case.changes.is_empty());
    let alone = steady.filter(|case| case.loads.len() == 1);
    page.grid(alone.map(|case| timeline(case).to_svg()));
    protocols_section(&mut page, outcome);
    quota_section(&mut page, outcome);
    page.section("Latency distribution");
    page.figure(
        &latencies(outcome),
        "p5 to p95, the median as a dot, against the case's own mean. Latency follows from the \
         contract: requests in flight ÷ IOPS.",
    );
    page.section("The machine meanwhile");
    page.paragraph(
        "What was seen of the machine in the measured part of each load. The host is what runs this \
         machine, if it is a virtual one. A watchdog is a thread that sleeps 5 ms at a time; where \
         the processors are busy, other threads make it late, and where they are not, the host or \
         the kernel does. Less than 10 ms is not listed. A missed rule stays missed, whatever was \
         seen.",
    );
    page.table(&machine_meanwhile(outcome));
    let rules = rules(outcome);
    page.section("Every rule");
    page.details(&format!("{} rules and the worst that was met", rules.rows.len()), &rules);
    page
}

fn protocols_section(page: &mut Page, outcome: &DemoOutcome) {
    page.section("One contract over two protocols");
    page.paragraph(
        "A client over NFSv3 and a client over SMB 3.1.1 (signed messages) write to files of the same \
         volume, with requests of different sizes. Both always have requests waiting. They get the \
         contract together, and half of its bytes each. Each point is one second.",
    );
    for case in outcome.cases.iter().filter(|case| case.loads.len() > 1) {
        page.figure(
            &shared_timeline(case).to_svg(),
            "The upper line is both together, the lower ones are the client over NFS (solid) and the \
             client over SMB (dashed). The fine dashed lines are the contract and half of it, the \
             bands ±5 %.",
        );
    }
}

fn quota_section(page: &mut Page, outcome: &DemoOutcome) {
    page.section("A quota changed under load");
    page.paragraph(
        "The volume's quota goes from 1 to 2 TiB, back, and up again while 40 clients write to it. \
         No connection is lost and no request fails. Each point is 100 ms.",
    );
    for case in outcome.cases.iter().filter(|case| !case.changes.is_empty()) {
        page.figure(
            &resize_timeline(case).to_svg(),
            "The dashed line is the contract in force, the band ±5 %.",
        );
    }
    page.table(&changes(outcome));
}

fn facts(outcome: &DemoOutcome) -> [Fact; 4] {
    let worst = outcome
        .cases
        .iter()
        .flat_map(|case| [case.error_percent_10s.0, case.error_percent_10s.1])
        .fold(0.0, |worst, error| f64::max(worst, error.abs()));
    let errors: u64 = outcome.cases.iter().map(|case| case.client_errors).sum();
    let loads = outcome.cases.iter().flat_map(|case| &case.loads);
    let verified: u64 = loads.filter_map(|load| load.verified).map(|verified| verified.0).sum();
    let slowest = outcome
        .cases
        .iter()
        .flat_map(|case| &case.checks)
        .filter(|check| check.rule.ends_with("in force within 100 ms"))
        .filter_map(|check| check.worst.split(' ').next()?.parse::<f64>().ok())
        .fold(0.0, f64::max);
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    [
        fact(format!("{worst:.2} %"), "largest error of a contract over any 10 s"),
        fact(format!("{slowest:.0} ms"), "until a changed quota was in force"),
        fact(errors.to_string(), "client errors"),
        fact(verified.to_string(), "blocks read back and compared"),
    ]
}

fn errors(outcome: &DemoOutcome) -> String {
    let rows = outcome.cases.iter().map(|case| {
        let mut dots = vec![Dot {
            series: Series::Weir,
            value: case.error_percent,
            hint: format!("Weir: {:+.2} %", case.error_percent),
        }];
        if let Some(row) = case.published {
            dots.insert(
                0,
                Dot {
                    series: Series::Published,
                    value: row.error_percent,
                    hint: format!("published: {:+.2} %", row.error_percent),
                },
            );
        }
        RangeRow {
            label: case.name.clone(),
            note: {
                let (low, high) = case.error_percent_10s;
                format!("{} … {}", percent(low, 2), percent(high, 2))
            },
            spans: vec![Span { series: Series::Weir, ends: case.error_percent_10s }],
            dots,
        }
    });
    RangeChart {
        label: "Error of each contract in percent".to_owned(),
        unit: "error in percent of the contract".to_owned(),
        range: (-2.0, 4.0),
        band: (-1.0, 1.0),
        exact: 0.0,
        legend: vec![
            (Series::Weir, "Weir".to_owned()),
            (Series::Published, "ANF, published".to_owned()),
        ],
        rows: rows.collect(),
    }
    .to_svg()
}

fn latencies(outcome: &DemoOutcome) -> String {
    let loads = |case: &CaseOutcome| {
        let of = |load: &LoadOutcome| latency_row(case, load);
        case.loads.iter().map(of).collect::<Vec<_>>()
    };
    let rows = outcome.cases.iter().flat_map(loads);
    RangeChart {
        label: "Latency p5 to p95 against the mean".to_owned(),
        unit: "percent off the mean latency".to_owned(),
        range: (-20.0, 20.0),
        band: (-15.0, 15.0),
        exact: 0.0,
        legend: vec![
            (Series::Weir, "Weir".to_owned()),
            (Series::Published, "ANF, published".to_owned()),
        ],
        rows: rows.collect(),
    }
    .to_svg()
}

fn latency_row(case: &CaseOutcome, load: &LoadOutcome) -> RangeRow {
    let latency = load.latency_ms;
    let percent = |value: f64, mean: f64| (value / mean.max(1e-9) - 1.0) * 100.0;
    let own = (percent(latency.p5, latency.mean), percent(latency.p95, latency.mean));
    let mut spans = vec![Span { series: Series::Weir, ends: own }];
    if let Some(row) = case.published {
        let ends = (percent(row.p5_ms, row.mean_ms), percent(row.p95_ms, row.mean_ms));
        spans.insert(0, Span { series: Series::Published, ends });
    }
    RangeRow {
        label: load.label.clone(),
        note: format!("mean {} ms", figure(latency.mean)),
        spans,
        dots: vec![Dot {
            series: Series::Weir,
            value: percent(latency.p50, latency.mean),
            hint: format!("median {} ms, p99 {} ms", figure(latency.p50), figure(latency.p99)),
        }],
    }
}

fn timeline(case: &CaseOutcome) -> Timeline {
    let contract = case.contract_mibps;
    Timeline {
        title: case.name.clone(),
        subtitle: format!(
            "contract {contract} MiB/s, measured {} ({})",
            megabytes(case.measured_mibps),
            percent(case.error_percent, 2)
        ),
        unit: "MiB/s".to_owned(),
        time: "seconds".to_owned(),
        span_s: (0.0, case.measured.to_s),
        range: (contract * 0.9, contract * 1.1),
        lines: vec![Line { series: Series::Weir, points: case.course.seconds.clone() }],
        due: vec![Stretch { from_s: 0.0, to_s: case.measured.to_s, value: contract }],
        band: 0.05,
        judged_from_s: case.measured.from_s,
        marks: Vec::new(),
        wide: false,
    }
}

/// The chart of a case with several loads: their sum, and each of them.
fn shared_timeline(case: &CaseOutcome) -> Timeline {
    let due = |value| Stretch { from_s: 0.0, to_s: case.measured.to_s, value };
    let line = |(number, load): (usize, &LoadOutcome)| Line {
        series: Series::Nth(number),
        points: load.seconds.clone(),
    };
    let all = Line { series: Series::Weir, points: case.course.seconds.clone() };
    let rates = case
        .loads
        .iter()
        .map(|load| format!("{} {} MiB/s", load.name, megabytes(load.measured_mibps)));
    Timeline {
        subtitle: format!(
            "contract {} MiB/s, measured {}: {}",
            case.contract_mibps,
            megabytes(case.measured_mibps),
            rates.collect::<Vec<_>>().join(", ")
        ),
        range: (0.0, case.contract_mibps * 1.1),
        lines: std::iter::once(all).chain(case.loads.iter().enumerate().map(line)).collect(),
        due: std::iter::once(case.contract_mibps)
            .chain(case.loads.iter().map(|load| load.due_mibps))
            .map(due)
            .collect(),
        wide: true,
        ..timeline(case)
    }
}

fn resize_timeline(case: &CaseOutcome) -> Timeline {
    let end = case.measured.from_s + 4.0;
    let first = case.changes.first().map_or(case.contract_mibps, |change| change.from_mibps);
    let mut due = vec![Stretch { from_s: 0.0, to_s: end, value: first }];
    for change in &case.changes {
        if let Some(last) = due.last_mut() {
            last.to_s = change.at_s;
        }
        due.push(Stretch { from_s: change.at_s, to_s: end, value: change.to_mibps });
    }
    let highest = due.iter().map(|stretch| stretch.value).fold(0.0, f64::max);
    Timeline {
        title: case.name.clone(),
        subtitle: "completed writes against the contract in force".to_owned(),
        unit: "MiB/s".to_owned(),
        time: "seconds".to_owned(),
        span_s: (0.0, end),
        range: (0.0, highest * 1.2),
        lines: vec![Line { series: Series::Weir, points: case.course.tenths.clone() }],
        due,
        band: 0.05,
        judged_from_s: 0.0,
        marks: case
            .changes
            .iter()
            .map(|change| (change.at_s, format!("quota set to {} TiB", change.to_mibps / 16.0)))
            .collect(),
        wide: true,
    }
}

/// The machine's state in each load: the mean and the worst second, and the longest stalls.
fn machine_meanwhile(outcome: &DemoOutcome) -> Table {
    let columns = vec![
        Column::words("load"),
        Column::figures("processors busy, mean (worst second)"),
        Column::figures("taken by the host, worst second"),
        Column::figures("watchdogs of all processors late at once"),
        Column::figures("watchdog of one processor late"),
        Column::figures("ready worker without a processor"),
        Column::figures("worker blocked in the kernel"),
    ];
    let rows = (1..).zip(&outcome.processors).map(|(load, seconds): (u32, _)| {
        let mut row = vec![Cell::from(format!("{load}"))];
        row.extend(processors::figures(seconds).map(Cell::from));
        row
    });
    Table { columns, rows: rows.collect() }
}

fn rules(outcome: &DemoOutcome) -> Table {
    let columns = vec![
        Column::words("case"),
        Column::words("rule"),
        Column::figures("worst met"),
        Column::words("the machine, if missed"),
    ];
    let rows = outcome.cases.iter().flat_map(|case| {
        case.checks.iter().map(|check| {
            let worst = Cell::judged(check.worst.clone(), check.passed);
            let meanwhile = check.meanwhile.as_deref().unwrap_or("");
            vec![case.name.as_str().into(), check.rule.as_str().into(), worst, meanwhile.into()]
        })
    });
    Table { columns, rows: rows.collect() }
}
