//! The demo's table and page.

use super::outcome::{CaseOutcome, DemoOutcome};
use super::processors;
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
        Column::figures("job share"),
        Column::figures("published: MiB/s error mean ms"),
    ];
    Table { columns, rows: outcome.cases.iter().map(row).collect() }
}

fn row(case: &CaseOutcome) -> Vec<Cell> {
    let judged = |rule: &str, text: String| {
        Cell::judged(text, case.check(rule).is_some_and(|check| check.passed))
    };
    let worst = |rule: &str| {
        let text = case.check(rule).map_or("–", |check| &check.worst);
        judged(rule, text.split(" at ").next().unwrap_or(text).to_owned())
    };
    let latency = case.latency_ms;
    let published = case.published.map_or_else(
        || Cell::new("–", Tone::Muted),
        |row| {
            let text =
                format!("{} {} {}", row.mibps, percent(row.error_percent, 2), figure(row.mean_ms));
            Cell::new(text, Tone::Muted)
        },
    );
    vec![
        case.name.as_str().into(),
        number(case.contract_mibps).into(),
        megabytes(case.measured_mibps).into(),
        judged("every 10 s", percent(case.error_percent, 2)),
        worst("every 10 s"),
        worst("every 1 s"),
        figure(case.iops).into(),
        judged(
            "p5 to p95",
            format!("{} ({} – {})", figure(latency.mean), figure(latency.p5), figure(latency.p95)),
        ),
        judged("every job", format!("±{:.1} %", share_off(case) * 100.0)),
        published,
    ]
}

/// The largest distance of a job's share from an equal share, as a part of it.
fn share_off(case: &CaseOutcome) -> f64 {
    let equal = 1.0 / f64::from(case.load.jobs.max(1));
    (1.0 - case.job_share.min / equal).max(case.job_share.max / equal - 1.0)
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
        "Seven volumes of a published measurement, two cases of our own and one for each other \
         contract model, each loaded by 40 jobs with 32 requests of 8 KiB in flight, all random writes over NFSv3. The server delays \
         requests to keep each volume at its contract, and never refuses one.",
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
         over every such window of the measured part, one beginning each 100 ms. Job share: how \
         far the poorest or the richest of the 40 jobs is off an equal share. The published row is Azure \
         NetApp Files (ANF), Standard level, measured in the same way over 180 s.",
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
    page.grid(steady.map(|case| timeline(case).to_svg()));
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
    let verified: u64 = outcome.cases.iter().filter_map(|case| case.verified).map(|v| v.0).sum();
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
    let rows = outcome.cases.iter().map(|case| {
        let latency = case.latency_ms;
        let percent = |value: f64, mean: f64| (value / mean.max(1e-9) - 1.0) * 100.0;
        let own = (percent(latency.p5, latency.mean), percent(latency.p95, latency.mean));
        let mut spans = vec![Span { series: Series::Weir, ends: own }];
        if let Some(row) = case.published {
            let ends = (percent(row.p5_ms, row.mean_ms), percent(row.p95_ms, row.mean_ms));
            spans.insert(0, Span { series: Series::Published, ends });
        }
        RangeRow {
            label: case.name.clone(),
            note: format!("mean {} ms", figure(latency.mean)),
            spans,
            dots: vec![Dot {
                series: Series::Weir,
                value: percent(latency.p50, latency.mean),
                hint: format!("median {} ms, p99 {} ms", figure(latency.p50), figure(latency.p99)),
            }],
        }
    });
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
