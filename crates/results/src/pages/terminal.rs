//! The results in a terminal: a table for each test, and below it what has to be said.

use super::steps::{limits, notes, table};
use super::words::when;
use super::{targets, verdict};
use crate::compare::pairs;
use crate::{Environment, Finding, Results, TestResult};
use weir_load::stats::result::VerifyResult;
use weir_report::figure;
use weir_report::terminal::{Text, shows_output};

/// For the terminal that standard output is, if it is one: coloured, and as wide as it.
#[must_use]
pub fn terminal(results: &Results) -> Text {
    render(results, None, shows_output())
}

/// Without colours, and never wider than `width` characters.
#[must_use]
pub fn terminal_within(results: &Results, width: u16) -> Text {
    render(results, Some(width), false)
}

fn render(results: &Results, width: Option<u16>, colour: bool) -> Text {
    let mut out = Text::new();
    let name = if results.label == results.target { "" } else { results.label.as_str() };
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    out.line(format_args!("{name}{}, {}", results.target, when(results.started_unix_s)));
    for test in &results.tests {
        out.blank();
        out.line(&test.title);
        render_test(&mut out, (test, &results.environment), width, colour);
    }
    pairs::write(&mut out, &pairs::judge(&[results]), width, colour);
    let (_, word, sentence) = verdict::of(results);
    out.blank();
    out.line(format_args!("{word}: {sentence}"));
    for warning in &results.warnings {
        out.line(format_args!("WARNING: {warning}"));
    }
    out
}

fn render_test(
    out: &mut Text,
    (test, environment): (&TestResult, &Environment),
    width: Option<u16>,
    colour: bool,
) {
    if let Some(waiting) = &test.waiting {
        return out.line(format_args!("  not run: {waiting}"));
    }
    out.append(&table(test, true).to_terminal_dense(colour, width));
    if let Some(targets) = targets::table(test) {
        out.line("  Each target by itself:");
        out.append(&targets.to_terminal_dense(colour, width));
    }
    let who: Vec<&str> = published_by(test);
    if !who.is_empty() {
        out.line(format_args!("  published: {}", who.join("; ")));
    }
    for change in &test.changes {
        out.line(format_args!("  changed: {change}"));
    }
    for limit in limits(test, environment) {
        out.line(format_args!("  {limit}"));
    }
    for note in notes(test) {
        out.line(format_args!("  note: {note}"));
    }
    for step in &test.steps {
        for run in &step.runs {
            for (what, count) in &run.total.errors {
                out.line(format_args!("  FAILED: {}: {count} × {what}", step.name));
            }
            for detail in run.total.verify.iter().flat_map(VerifyResult::told) {
                out.line(format_args!("  MISMATCH: {}: {detail}", step.name));
            }
        }
    }
    for finding in &test.findings {
        out.line(format_args!("  found: {}", in_words(finding)));
    }
}

/// The owners of the published figures beside the measured ones.
pub(super) fn published_by(test: &TestResult) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for published in test.steps.iter().filter_map(|step| step.published.as_ref()) {
        if !published.who.is_empty() && !all.contains(&published.who.as_str()) {
            all.push(&published.who);
        }
    }
    all
}

/// A finding in a sentence.
pub(super) fn in_words(finding: &Finding) -> String {
    let answer = if finding.answer.is_empty() {
        format!("{} {}", figure(finding.value), finding.unit)
    } else {
        finding.answer.clone()
    };
    format!("{}: {answer}", finding.question)
}
