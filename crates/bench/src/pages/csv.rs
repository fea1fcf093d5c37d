//! Comma-separated values (RFC 4180): a row for each repeat of each step, and one for each step
//! that was left out. Columns keep their names and their order; new ones come at the end.
//!
//! Texts that a spreadsheet would take for a formula get an apostrophe in front.

use crate::results::{Results, StepResult, StepRun, TestResult};
use std::fmt::Write as _;
use weir_load::stats::result::{Latency, OpResult};
use weir_scenario::scenario::{Bound, Published};

/// The subject of a row.
struct Row<'a> {
    results: &'a Results,
    test: &'a TestResult,
    step: &'a StepResult,
    /// The run and its number from 1; absent if the step was left out.
    run: Option<(usize, &'a StepRun)>,
}

enum Value {
    Text(String),
    Number(f64),
    Count(u64),
    Flag(bool),
    Nothing,
}

type Column = (&'static str, fn(&Row<'_>) -> Value);

const COLUMNS: [Column; 64] = [
    ("label", |row| text(&row.results.label)),
    ("target", |row| text(&row.results.target)),
    ("started_unix_s", |row| {
        row.run.map_or(Value::Nothing, |(_, run)| Value::Number(run.total.started_unix_s))
    }),
    ("test", |row| text(&row.test.name)),
    ("step", |row| text(&row.step.name)),
    ("group", |row| text(&row.step.group)),
    ("axis", |row| row.step.axis.as_ref().map_or(Value::Nothing, |axis| text(&axis.label))),
    ("axis_value", |row| number(row.step.axis.as_ref().map(|axis| axis.value))),
    ("preparation", |row| Value::Flag(row.step.preparation)),
    ("repeat", |row| row.run.map_or(Value::Nothing, |(repeat, _)| count(repeat))),
    ("repeats", |row| count(row.step.runs.len())),
    ("skipped", |row| row.step.skipped.as_deref().map_or(Value::Nothing, text)),
    ("measured_s", |row| of(row, |run| run.total.measured.seconds())),
    ("operations", |row| counted(row, |run| run.total.total.operations)),
    ("bytes", |row| counted(row, |run| run.total.total.bytes)),
    ("iops", |row| of(row, |run| run.total.total.iops)),
    ("mibps", |row| of(row, |run| run.total.total.mibps)),
    ("read_iops", |row| kind(row, "read", |read| read.iops)),
    ("write_iops", |row| kind(row, "write", |write| write.iops)),
    ("read_mibps", |row| kind(row, "read", |read| read.mibps)),
    ("write_mibps", |row| kind(row, "write", |write| write.mibps)),
    ("min_ms", |row| time(row, |all| all.min)),
    ("mean_ms", |row| time(row, |all| all.mean)),
    ("p50_ms", |row| time(row, |all| all.p50)),
    ("p95_ms", |row| time(row, |all| all.p95)),
    ("p99_ms", |row| time(row, |all| all.p99)),
    ("p99_9_ms", |row| time(row, |all| all.p99_9)),
    ("p99_99_ms", |row| time(row, |all| all.p99_99)),
    ("max_ms", |row| time(row, |all| all.max)),
    ("read_mean_ms", |row| kind(row, "read", |read| read.latency_ms.mean)),
    ("read_p99_ms", |row| kind(row, "read", |read| read.latency_ms.p99)),
    ("write_mean_ms", |row| kind(row, "write", |write| write.latency_ms.mean)),
    ("write_p99_ms", |row| kind(row, "write", |write| write.latency_ms.p99)),
    ("errors", |row| counted(row, |run| run.total.error_count())),
    ("connections_lost", |row| counted(row, |run| run.total.connections.lost)),
    ("verify_checked", |row| verified(row, |verify| verify.checked)),
    ("verify_mismatches", |row| verified(row, |verify| verify.mismatches)),
    ("verify_unread", |row| verified(row, |verify| verify.unread)),
    ("steady", |row| flag(row, |run| run.steady.map(|steady| steady.steady))),
    ("drift_percent", |row| maybe(row, |run| run.steady.map(|steady| steady.drift_percent))),
    ("excursion_percent", |row| {
        maybe(row, |run| run.steady.map(|steady| steady.excursion_percent))
    }),
    ("client_us_per_op", |row| of(row, |run| run.total.generator.cpu_us_per_op)),
    ("busiest_thread_percent", |row| of(row, |run| run.total.generator.busiest_thread_percent)),
    ("generator_saturated", |row| flag(row, |run| Some(run.total.generator.saturated))),
    ("client_processors", |row| maybe(row, |run| run.client_processors)),
    ("server_us_per_op", |row| maybe(row, |run| run.total.server.map(|one| one.cpu_us_per_op))),
    ("server_processors", |row| maybe(row, |run| run.total.server.map(|one| one.processors))),
    ("network_received_bytes", |row| {
        row.run
            .and_then(|(_, run)| run.network)
            .map_or(Value::Nothing, |network| Value::Count(network.received_bytes))
    }),
    ("network_sent_bytes", |row| {
        row.run
            .and_then(|(_, run)| run.network)
            .map_or(Value::Nothing, |network| Value::Count(network.sent_bytes))
    }),
    ("workers", |row| row.run.map_or(Value::Nothing, |(_, run)| count(run.workers.len()))),
    ("workers_lost", |row| {
        let lost = |run: &StepRun| run.workers.iter().filter(|one| one.lost.is_some()).count();
        row.run.map_or(Value::Nothing, |(_, run)| count(lost(run)))
    }),
    ("interrupted", |row| flag(row, |run| Some(run.total.interrupted))),
    ("cache_wanted", |row| match serde_json::to_value(row.step.cache.wanted) {
        Ok(serde_json::Value::String(word)) => Value::Text(word),
        _ => Value::Nothing,
    }),
    ("published_by", |row| {
        row.step.published.as_ref().map_or(Value::Nothing, |published| text(&published.who))
    }),
    ("published_read_iops", |row| published(row, |figures| figures.read_iops)),
    ("published_write_iops", |row| published(row, |figures| figures.write_iops)),
    ("published_iops", |row| published(row, |figures| figures.iops)),
    ("published_read_mibps", |row| published(row, |figures| figures.read_mibps)),
    ("published_write_mibps", |row| published(row, |figures| figures.write_mibps)),
    ("published_mibps", |row| published(row, |figures| figures.mibps)),
    ("published_latency_ms", |row| published(row, |figures| figures.latency_ms)),
    ("published_about", |row| {
        row.step.published.as_ref().map_or(Value::Nothing, |figures| Value::Flag(figures.about))
    }),
    ("notes", |row| text(&row.step.notes.join(" "))),
    ("published_bound", |row| match row.step.published.as_ref().map(|figures| figures.bound) {
        None | Some(Bound::None) => Value::Nothing,
        Some(Bound::UpTo) => text("up-to"),
        Some(Bound::MoreThan) => text("more-than"),
    }),
];

/// Names of the columns, in order.
#[must_use]
pub fn csv_columns() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

/// The results as comma-separated values, lines ended as RFC 4180 wants it.
#[must_use]
pub fn csv(results: &Results) -> String {
    let mut out = csv_columns().join(",");
    out.push_str("\r\n");
    for test in &results.tests {
        for step in &test.steps {
            let runs: Vec<Option<(usize, &StepRun)>> = if step.runs.is_empty() {
                vec![None]
            } else {
                (1..).zip(&step.runs).map(Some).collect()
            };
            for run in runs {
                line(&mut out, &Row { results, test, step, run });
            }
        }
    }
    out
}

fn line(out: &mut String, row: &Row<'_>) {
    for (place, (_, value)) in COLUMNS.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        // Writing to a string can't fail.
        let _ = match value(row) {
            Value::Text(text) => {
                out.push_str(&quoted(&text));
                Ok(())
            }
            Value::Number(number) if number.is_finite() => write!(out, "{number}"),
            Value::Count(number) => write!(out, "{number}"),
            Value::Flag(flag) => write!(out, "{flag}"),
            Value::Number(_) | Value::Nothing => Ok(()),
        };
    }
    out.push_str("\r\n");
}

/// Quoted where it has to be, and never the beginning of a formula.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let safe = if formula { format!("'{text}") } else { text.to_owned() };
    if safe.contains([',', '"', '\r', '\n', ';', '\t']) || safe != safe.trim() {
        return format!("\"{}\"", safe.replace('"', "\"\""));
    }
    safe
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn number(value: Option<f64>) -> Value {
    value.map_or(Value::Nothing, Value::Number)
}

fn count(value: usize) -> Value {
    u64::try_from(value).map_or(Value::Nothing, Value::Count)
}

fn of(row: &Row<'_>, figure: fn(&StepRun) -> f64) -> Value {
    number(row.run.map(|(_, run)| figure(run)))
}

fn maybe(row: &Row<'_>, figure: fn(&StepRun) -> Option<f64>) -> Value {
    number(row.run.and_then(|(_, run)| figure(run)))
}

fn counted(row: &Row<'_>, figure: fn(&StepRun) -> u64) -> Value {
    row.run.map_or(Value::Nothing, |(_, run)| Value::Count(figure(run)))
}

fn flag(row: &Row<'_>, flag: fn(&StepRun) -> Option<bool>) -> Value {
    row.run.and_then(|(_, run)| flag(run)).map_or(Value::Nothing, Value::Flag)
}

fn time(row: &Row<'_>, figure: fn(&Latency) -> f64) -> Value {
    number(row.run.map(|(_, run)| figure(&run.total.total.latency_ms)))
}

fn kind(row: &Row<'_>, name: &str, figure: fn(&OpResult) -> f64) -> Value {
    number(row.run.and_then(|(_, run)| run.total.by_operation.get(name)).map(figure))
}

fn verified(row: &Row<'_>, figure: fn(&weir_load::stats::result::VerifyResult) -> u64) -> Value {
    let verify = row.run.and_then(|(_, run)| run.total.verify.as_ref());
    verify.map_or(Value::Nothing, |verify| Value::Count(figure(verify)))
}

fn published(row: &Row<'_>, figure: fn(&Published) -> Option<f64>) -> Value {
    number(row.step.published.as_ref().and_then(figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_defused_and_separators_quoted() {
        for (text, safe) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-2+3", "'-2+3"),
            ("a, b", "\"a, b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=\"a\",b", "\"'=\"\"a\"\",b\""),
            ("two\nlines", "\"two\nlines\""),
            ("\t=1", "\"'\t=1\""),
        ] {
            assert_eq!(quoted(text), safe, "{text:?}");
        }
    }

    #[test]
    fn names_of_columns_are_unique() {
        let names = csv_columns();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
