//! Pairs as a table, a chart, and in a terminal.

use super::Judged;
use crate::{PairResult, PairVerdict};
use weir_core::units::latency;
use weir_report::terminal::Text;
use weir_report::{Cell, Column, Dot, RangeChart, RangeRow, Series, Span, Table, Tone, figure};
use weir_scenario::catalogue::pairs::{Compared, PublishedRatio};

/// The reading of pairs, for people.
pub(crate) const RULE: [&str; 4] = [
    "A ratio is that of the medians of the repeats; the interval extends from the minimum ratio that \
     the repeats permit to the maximum, with the confidence shown.",
    "“As published”: the interval reaches into the published range and does not contain 1, which \
     would be no effect. “Weaker” and “stronger”: an effect in the published direction, outside the \
     published range. “Undecided”: the interval contains both the published range and 1.",
    "“None”: both sides had the same load, or a contract or the load generator was the limit of \
     both, so that the ratio is not the server's.",
    "The published ratios come from other machines, and often from other sizes: the differences of \
     the two sides are listed.",
];

/// Ratios beyond this are drawn at the edge of the chart.
const RATIO_MAX: f64 = 6.0;

/// The table of pairs; `narrow` leaves out what a terminal has no room for.
pub(crate) fn table(pairs: &[PairResult], narrow: bool) -> Table {
    let mut columns = vec![Column::words("pair")];
    columns.extend([Column::figures("ratio"), Column::figures("interval").spare()]);
    columns.extend(["published", "verdict"].map(Column::words));
    if !narrow {
        columns.push(Column::figures("confidence"));
        columns.extend(["base", "other"].map(Column::mixed));
    }
    Table { columns, rows: pairs.iter().map(|pair| row(pair, pairs, narrow)).collect() }
}

/// The title of a pair, with the results that it is of where others have the same title.
fn name(pair: &PairResult, all: &[PairResult]) -> String {
    let PairResult { title, base, other, .. } = pair;
    if all.iter().filter(|one| one.title == *title).count() < 2 {
        return title.clone();
    }
    let same = |one: &&PairResult| one.title == *title && one.other.result == other.result;
    if base.result == other.result || all.iter().filter(same).count() < 2 {
        format!("{title} ({})", other.result)
    } else {
        format!("{title} ({} over {})", other.result, base.result)
    }
}

fn row(pair: &PairResult, all: &[PairResult], narrow: bool) -> Vec<Cell> {
    let sure = |text: String| {
        if pair.confidence > 0.0 { Cell::from(text) } else { Cell::new("–", Tone::Muted) }
    };
    let tone = match pair.verdict {
        PairVerdict::AsPublished => Tone::Good,
        PairVerdict::Opposite => Tone::Bad,
        _ => Tone::Muted,
    };
    let mut cells = vec![
        Cell::from(name(pair, all)),
        format!("{} ×", factor(pair.ratio)).into(),
        sure(interval(pair)),
        pair.published_ratio.words.as_str().into(),
        Cell::new(pair.verdict.words(), tone),
    ];
    if !narrow {
        cells.push(sure(format!("{:.0} %", (pair.confidence * 100.0).floor())));
        cells.extend([&pair.base, &pair.other].map(|side| {
            Cell::from(format!("{}: {}", side.label, shown(pair.figure, side.value.median)))
        }));
    }
    cells
}

fn interval(pair: &PairResult) -> String {
    format!("{} to {}", factor(pair.low), factor(pair.high))
}

fn factor(ratio: f64) -> String {
    if ratio >= 9999.5 { "over 9\u{2009}999".to_owned() } else { format!("{ratio:.2}") }
}

fn shown(what: Compared, value: f64) -> String {
    match what {
        Compared::Operations => format!("{} op/s", figure(value)),
        Compared::Throughput => format!("{} MiB/s", figure(value)),
        Compared::Mean => latency(value),
    }
}

/// Measured intervals and published ranges on one axis; nothing without pairs.
pub(crate) fn chart(pairs: &[PairResult]) -> Option<String> {
    let ends = pairs.iter().flat_map(|pair| {
        let PublishedRatio { low, high, .. } = &pair.published_ratio;
        [Some(pair.ratio), Some(pair.high), *low, *high]
    });
    let most = ends.flatten().fold(1.0, f64::max).min(RATIO_MAX);
    let range = (0.0, (most * 1.1).max(1.5));
    let row = |pair: &PairResult| {
        let PublishedRatio { low, high, words, .. } = &pair.published_ratio;
        let published = (low.unwrap_or(0.0), high.unwrap_or(range.1));
        let mut spans = vec![Span { series: Series::Published, ends: published }];
        if pair.confidence > 0.0 {
            spans.push(Span { series: Series::Weir, ends: (pair.low, pair.high) });
        }
        let hint = format!("{} × measured; published: {words}", factor(pair.ratio));
        RangeRow {
            label: name(pair, pairs),
            note: format!("{} ×", factor(pair.ratio)),
            spans,
            dots: vec![Dot { series: Series::Weir, value: pair.ratio, hint }],
        }
    };
    let chart = RangeChart {
        label: "Measured ratios of pairs, and the published ones".to_owned(),
        unit: "ratio; 1 is no effect".to_owned(),
        range,
        band: (1.0, 1.0),
        exact: 1.0,
        legend: vec![
            (Series::Weir, "measured, with its interval".to_owned()),
            (Series::Published, "published".to_owned()),
        ],
        rows: pairs.iter().map(row).collect(),
    };
    (!pairs.is_empty()).then(|| chart.to_svg())
}

/// Sentences about pairs that can't be judged.
pub(crate) fn open(judged: &Judged) -> Vec<String> {
    let told = judged.open_pairs.iter().map(|open| match open.titles.as_slice() {
        [one] => format!("{one}: {}.", open.why),
        several => format!("{} pairs: {} ({}).", several.len(), open.why, several.join("; ")),
    });
    told.collect()
}

/// The differences of the sides of each pair, and the doubts about them, each once with its pairs.
pub(crate) fn remarks(pairs: &[PairResult]) -> Vec<String> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for pair in pairs {
        let differences = (!pair.differences.is_empty()).then(|| pair.differences.join(", "));
        for sentence in differences.into_iter().chain(pair.remarks.iter().cloned()) {
            match all.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, names)) => names.push(name(pair, pairs)),
                None => all.push((sentence, vec![name(pair, pairs)])),
            }
        }
    }
    let told = all.into_iter().map(|(sentence, names)| {
        if names.len() == pairs.len() && names.len() > 1 {
            format!("All pairs: {sentence}.")
        } else {
            format!("{}: {sentence}.", names.join("; "))
        }
    });
    told.collect()
}

/// Writes the pairs below the tests of a terminal.
pub(crate) fn write(out: &mut Text, judged: &Judged, width: Option<u16>, colour: bool) {
    if judged.is_empty() {
        return;
    }
    out.blank();
    out.line("Pairs, against their published ratios");
    if !judged.pairs.is_empty() {
        out.append(&table(&judged.pairs, true).to_terminal_dense(colour, width));
    }
    for sentence in remarks(&judged.pairs) {
        out.line(format_args!("  note: {sentence}"));
    }
    for sentence in open(judged) {
        out.line(format_args!("  not judged: {sentence}"));
    }
}
