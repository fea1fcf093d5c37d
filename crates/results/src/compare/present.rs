//! A comparison as tables, in a terminal, and as JSON.

use super::{
    Against, Comparison, Difference, Figure, StepComparison, TestComparison, Verdict, pairs,
};
use crate::Spread;
use crate::compare::Ratio;
use std::collections::BTreeSet;
use weir_core::units::latency;
use weir_report::terminal::{Text, shows_output};
use weir_report::{Cell, Column, Table, Tone, figure};

/// The reading of a comparison, in words.
pub mod rule {
    use super::super::{Comparison, Verdict};
    use std::collections::BTreeSet;

    /// The rules of [`crate::compare::ratio`] for readers of reports.
    pub const RULE: [&str; 5] = [
        "A ratio is that of the medians of the repeats: the other side's over the first's.",
        "The interval extends from the minimum ratio that the repeats permit (minimum over \
         maximum) to the maximum (maximum over minimum). It contains the true ratio with a \
         confidence of at least 1 − 2¹⁻ⁿ − 2¹⁻ᵐ for n and m repeats: 50 % with three of each, 87 % \
         with five, 98 % with eight.",
        "“Faster” and “slower” are reported only if the repeats of the two sides do not overlap, \
         and such a separation has a probability of at most 10 % by chance: at least three repeats \
         of each. Otherwise no difference is shown, which does not mean that there is none.",
        "A step is judged by its operations a second; a step at a limited rate by its mean latency.",
        "With a single run per side there is no confidence: other runs may give any other ratio.",
    ];

    /// Everything in a sentence.
    #[must_use]
    pub fn headline(comparison: &Comparison) -> String {
        let label = |side: usize| comparison.sides.get(side).map_or("?", |one| &one.label);
        let all: Vec<(Verdict, String)> = comparison
            .tests
            .iter()
            .flat_map(|test| &test.steps)
            .flat_map(|step| &step.against)
            .map(|against| (against.verdict, against.verdict.words_of(label(against.side))))
            .collect();
        if all.is_empty() {
            return "The results have no step in common.".to_owned();
        }
        // In the order of the verdicts, best first.
        let words: BTreeSet<&(Verdict, String)> = all.iter().collect();
        let counted = words.into_iter().map(|one| {
            let count = all.iter().filter(|other| *other == one).count();
            format!("{count} {}", one.1)
        });
        let counted = counted.collect::<Vec<_>>().join("; ");
        let steps = if all.len() == 1 { "comparison of a step" } else { "comparisons of steps" };
        format!("Of {} {steps}: {counted}.", all.len())
    }

    /// The parts that not all sides have measured, in sentences.
    #[must_use]
    pub fn partial(comparison: &Comparison) -> Vec<String> {
        let label = |side: &usize| comparison.sides.get(*side).map_or("?", |one| &one.label);
        let told = comparison.partial.iter().map(|one| {
            let only = one.sides.iter().map(label).collect::<Vec<_>>().join(", ");
            match &one.step {
                Some(step) => format!("{}, step {step}: only {only}.", one.test),
                None => format!("{}: only {only}.", one.test),
            }
        });
        told.collect()
    }
}

/// The detail of a table of ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RatioRow {
    /// For a terminal.
    Narrow,
    /// For a page.
    Wide,
}

/// The comparison as JSON, with a line's end.
///
/// # Errors
/// None that can happen: the type has only what JSON can hold.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(comparison).map(|text| text + "\n")
}

/// The comparison for a terminal; `width` bounds it, otherwise the terminal that standard output
/// is.
#[must_use]
pub fn terminal(comparison: &Comparison, width: Option<u16>) -> Text {
    let colour = width.is_none() && shows_output();
    let mut out = Text::new();
    for (number, side) in comparison.sides.iter().enumerate() {
        let role = if number == 0 { "the first" } else { "against it" };
        if side.label == side.target {
            out.line(format_args!("{role}: {}", side.target));
        } else {
            out.line(format_args!("{role}: {} ({})", side.label, side.target));
        }
    }
    for test in &comparison.tests {
        let table = rows(comparison, test, RatioRow::Narrow);
        let table = table.to_terminal_dense(colour, width);
        out.blank();
        out.line(&test.title);
        out.append(&table);
        for sentence in differences(comparison, test) {
            out.line(format_args!("  note: {sentence}"));
        }
    }
    let partial = rule::partial(comparison);
    if !partial.is_empty() {
        out.blank();
        out.line("Not measured on all sides:");
    }
    for sentence in partial {
        out.line(format_args!("  {sentence}"));
    }
    pairs::write(&mut out, &comparison.judged, width, colour);
    out.blank();
    out.line(rule::headline(comparison));
    out
}

/// The ratios of a test: a row for each step and side.
pub(crate) fn rows(comparison: &Comparison, test: &TestComparison, form: RatioRow) -> Table {
    let several = comparison.sides.len() > 2;
    let mut columns = vec![Column::words("step")];
    if several {
        columns.push(Column::words("against"));
    }
    let labels = match comparison.sides.as_slice() {
        [first, second] => [first.label.as_str(), second.label.as_str()],
        _ => ["first", "other"],
    };
    columns.extend(labels.map(Column::figures));
    columns.push(Column::figures("ratio"));
    columns.push(Column::figures("interval").spare());
    columns.push(Column::words("verdict"));
    let others = others(test, form);
    columns.extend(others.iter().map(|one| Column::figures(one.label()).spare()));
    if form == RatioRow::Wide {
        columns.push(Column::words("confidence"));
    }
    let mut rows = Vec::new();
    for step in &test.steps {
        for against in &step.against {
            rows.push(row(comparison, step, against, (several, form), &others));
        }
    }
    Table { columns, rows }
}

/// Figures whose ratio stands beside the deciding one.
fn others(test: &TestComparison, form: RatioRow) -> Vec<Figure> {
    let wanted: &[Figure] = match form {
        RatioRow::Narrow => &[Figure::Mean],
        RatioRow::Wide => {
            &[Figure::Throughput, Figure::Mean, Figure::P99, Figure::ClientCpu, Figure::ServerCpu]
        }
    };
    let there = |figure: Figure| {
        let mut all = test.steps.iter().flat_map(|step| &step.against);
        all.any(|against| against.ratio(figure).is_some())
    };
    wanted.iter().copied().filter(|figure| there(*figure)).collect()
}

fn row(
    comparison: &Comparison,
    step: &StepComparison,
    against: &Against,
    (several, form): (bool, RatioRow),
    others: &[Figure],
) -> Vec<Cell> {
    let dash = || Cell::new("–", Tone::Muted);
    let label = |side: usize| comparison.sides.get(side).map_or("?", |side| side.label.as_str());
    let compared = against.verdict != Verdict::DifferentWork;
    let deciding = against.ratio(step.judged_by);
    let side = |spread: fn(&Ratio) -> Spread| {
        deciding.map_or_else(dash, |ratio| Cell::from(shown(ratio.figure, spread(ratio).median)))
    };
    let mut cells: Vec<Cell> = vec![step_name(step).into()];
    if several {
        let base = label(step.base);
        cells.push(format!("{} to {base}", label(against.side)).into());
    }
    cells.extend([side(|ratio| ratio.base), side(|ratio| ratio.other)]);
    let only = deciding.filter(|_| compared);
    cells.push(only.map_or_else(dash, |ratio| times(ratio.ratio).into()));
    let many = only.filter(|ratio| ratio.confidence > 0.0 || ratio.chance.is_some());
    cells.push(many.map_or_else(dash, |ratio| {
        Cell::from(format!("{} to {}", factor(ratio.low), factor(ratio.high)))
    }));
    let tone = match against.verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        _ => Tone::Muted,
    };
    cells.push(Cell::new(against.verdict.words_of(label(against.side)), tone));
    cells.extend(others.iter().map(|figure| {
        let ratio = against.ratio(*figure).filter(|_| compared);
        ratio.map_or_else(dash, |ratio| Cell::from(times(ratio.ratio)))
    }));
    if form == RatioRow::Wide {
        cells.push(confidence(only));
    }
    cells
}

/// With what confidence the interval holds, and how likely the distance is by chance.
fn confidence(ratio: Option<&Ratio>) -> Cell {
    let Some(ratio) = ratio else { return Cell::default() };
    if ratio.confidence <= 0.0 {
        return Cell::new("none", Tone::Muted);
    }
    let interval = format!("interval {:.0} %", (ratio.confidence * 100.0).floor());
    match ratio.chance {
        Some(chance) => format!("{interval}, by chance {} %", figure(chance * 100.0)).into(),
        None => interval.into(),
    }
}

fn step_name(step: &StepComparison) -> String {
    if step.group.is_empty() || step.name.contains(&step.group) {
        step.name.clone()
    } else {
        format!("{}: {}", step.group, step.name)
    }
}

fn shown(what: Figure, value: f64) -> String {
    match what {
        Figure::Mean | Figure::P99 => latency(value),
        _ => figure(value),
    }
}

fn times(ratio: f64) -> String {
    format!("{} ×", factor(ratio))
}

fn factor(ratio: f64) -> String {
    if ratio >= 9999.5 { "over 9\u{2009}999".to_owned() } else { format!("{ratio:.2}") }
}

/// Differences and remarks, each sentence once with its steps.
pub(crate) fn differences(comparison: &Comparison, test: &TestComparison) -> Vec<String> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |sentence: String, step: &StepComparison| {
        let name = step_name(step);
        match all.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, steps)) if steps.contains(&name) => {}
            Some((_, steps)) => steps.push(name),
            None => all.push((sentence, vec![name])),
        }
    };
    for step in &test.steps {
        for against in &step.against {
            let other = comparison.sides.get(against.side).map_or("?", |side| &side.label);
            for difference in &against.different {
                add(different(test, against.side, difference, other), step);
            }
            for remark in &against.remarks {
                add(remark.clone(), step);
            }
        }
    }
    let told = all.into_iter().map(|(sentence, steps)| match steps.as_slice() {
        [first, .., last] if steps.len() > 4 => {
            format!("{} steps, {first} to {last}: {sentence}.", steps.len())
        }
        few => format!("{}: {sentence}.", few.join(", ")),
    });
    told.collect()
}

/// A difference in words. One that many steps have, each with values of its own, is told without
/// them; the JSON has them all.
fn different(test: &TestComparison, side: usize, one: &Difference, label: &str) -> String {
    let same = |other: &&Difference| other.setting == one.setting;
    let against = test.steps.iter().flat_map(|step| &step.against);
    let values: BTreeSet<(&str, &str)> = against
        .filter(|against| against.side == side)
        .flat_map(|against| against.different.iter().filter(same))
        .map(|one| (one.base.as_str(), one.other.as_str()))
        .collect();
    let Difference { setting, base, other } = one;
    if values.len() > 3 {
        return format!("different work in {label}: another {setting} in each step");
    }
    format!("different work in {label}: {setting} {other}, not {base}")
}
