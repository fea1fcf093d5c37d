//! The results in a terminal: a table for each test, and below it what has to be said.

use super::steps::{notes, table};
use super::verdict;
use super::words::when;
use crate::report::figure;
use crate::results::{Finding, Results, TestResult};
use crate::stats::result::VerifyResult;
use crate::text::plain;
use std::io::IsTerminal as _;

/// For the terminal that standard output is, if it is one: coloured, and as wide as it.
#[must_use]
pub fn terminal(results: &Results) -> String {
    render(results, None, std::io::stdout().is_terminal())
}

/// Without colours, and never wider than `width` characters.
#[must_use]
pub fn terminal_within(results: &Results, width: u16) -> String {
    render(results, Some(width), false)
}

fn render(results: &Results, width: Option<u16>, colour: bool) -> String {
    let mut out = String::new();
    let name = if results.label == results.target { "" } else { results.label.as_str() };
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    line(&mut out, &format!("{name}{}, {}", results.target, when(results.started_unix_s)));
    for test in &results.tests {
        out.push('\n');
        line(&mut out, &test.title);
        render_test(&mut out, test, width, colour);
    }
    let (_, word, sentence) = verdict::of(results);
    out.push('\n');
    line(&mut out, &format!("{word}: {sentence}"));
    for warning in &results.warnings {
        line(&mut out, &format!("WARNING: {warning}"));
    }
    out
}

/// A line of text that others may have written.
fn line(out: &mut String, text: &str) {
    out.push_str(&plain(text));
    out.push('\n');
}

fn render_test(out: &mut String, test: &TestResult, width: Option<u16>, colour: bool) {
    if let Some(waiting) = &test.waiting {
        return line(out, &format!("  not run: {waiting}"));
    }
    // Coloured, and plain in itself.
    out.push_str(&table(test, true).to_terminal_dense(colour, width));
    out.push('\n');
    let who: Vec<&str> = published_by(test);
    if !who.is_empty() {
        line(out, &format!("  published: {}", who.join("; ")));
    }
    for change in &test.changes {
        line(out, &format!("  changed: {change}"));
    }
    for note in notes(test) {
        line(out, &format!("  note: {note}"));
    }
    for step in &test.steps {
        for run in &step.runs {
            for (what, count) in &run.total.errors {
                line(out, &format!("  FAILED: {}: {count} × {what}", step.name));
            }
            for detail in run.total.verify.iter().flat_map(VerifyResult::told) {
                line(out, &format!("  MISMATCH: {}: {detail}", step.name));
            }
        }
    }
    for finding in &test.findings {
        line(out, &format!("  found: {}", in_words(finding)));
    }
}

/// Whose figures stand beside the measured ones.
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
