//! Comma-separated values (RFC 4180): a row for each repeat of each step, below it one for each of
//! its targets where there are several, and one for each step that was left out. Columns keep their
//! names and their order; new ones come at the end.
//!
//! Texts that a spreadsheet would take for a formula get an apostrophe in front.

use crate::{Results, StepResult, StepRun, TestResult, target_name};
use std::fmt::Write as _;
use weir_load::stats::result::{Latency, OpResult, RunResult, VerifyResult};
use weir_scenario::scenario::{Bound, Published};

/// The subject of a row.
struct Row<'a> {
    results: &'a Results,
    test: &'a TestResult,
    step: &'a StepResult,
    /// The run and its number from 1; absent if the step was left out.
    run: Option<(usize, &'a StepRun)>,
    /// The target whose figures the row has; absent in a row of all together.
    part: Option<&'a RunResult>,
}

impl<'a> Row<'a> {
    /// The figures of the row.
    fn figures(&self) -> Option<&'a RunResult> {
        self.part.or_else(|| self.run.map(|(_, run)| &run.total))
    }

    /// The run, in a row of all targets together: some figures are known of the whole alone.
    fn whole(&self) -> Option<&'a StepRun> {
        self.run.filter(|_| self.part.is_none()).map(|(_, run)| run)
    }

    /// The published figures, which are those of all targets together.
    fn published(&self) -> Option<&'a Published> {
        self.step.published.as_ref().filter(|_| self.part.is_none())
    }
}

enum Value {
    Text(String),
    Number(f64),
    Count(u64),
    Flag(bool),
    Nothing,
}

type Column = (&'static str, fn(&Row<'_>) -> Value);

const COLUMNS: [Column; 65] = [
    ("label", |row| text(&row.results.label)),
    ("target", |row| text(&row.results.target)),
    ("started_unix_s", |row| {
        row.figures().map_or(Value::Nothing, |figures| Value::Number(figures.started_unix_s))
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
    ("measured_s", |row| of(row, |one| one.measured.seconds())),
    ("operations", |row| counted(row, |one| one.total.operations)),
    ("bytes", |row| counted(row, |one| one.total.bytes)),
    ("iops", |row| of(row, |one| one.total.iops)),
    ("mibps", |row| of(row, |one| one.total.mibps)),
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
    ("errors", |row| counted(row, RunResult::error_count)),
    ("connections_lost", |row| counted(row, |one| one.connections.lost)),
    ("verify_checked", |row| verified(row, |verify| verify.checked)),
    ("verify_mismatches", |row| verified(row, |verify| verify.mismatches)),
    ("verify_unread", |row| verified(row, |verify| verify.unread)),
    ("steady", |row| {
        row.whole()
            .and_then(|run| run.steady)
            .map_or(Value::Nothing, |found| Value::Flag(found.steady))
    }),
    ("drift_percent", |row| maybe(row, |run| run.steady.map(|steady| steady.drift_percent))),
    ("excursion_percent", |row| {
        maybe(row, |run| run.steady.map(|steady| steady.excursion_percent))
    }),
    ("client_us_per_op", |row| of(row, |one| one.generator.cpu_us_per_op)),
    ("busiest_thread_percent", |row| of(row, |one| one.generator.busiest_thread_percent)),
    ("generator_saturated", |row| flag(row, |one| one.generator.saturated)),
    ("client_processors", |row| maybe(row, |run| run.client_processors)),
    ("server_us_per_op", |row| maybe(row, |run| run.total.server.map(|one| one.cpu_us_per_op))),
    ("server_processors", |row| maybe(row, |run| run.total.server.map(|one| one.processors))),
    ("network_received_bytes", |row| {
        row.whole()
            .and_then(|run| run.network)
            .map_or(Value::Nothing, |network| Value::Count(network.received_bytes))
    }),
    ("network_sent_bytes", |row| {
        row.whole()
            .and_then(|run| run.network)
            .map_or(Value::Nothing, |network| Value::Count(network.sent_bytes))
    }),
    ("workers", |row| row.whole().map_or(Value::Nothing, |run| count(run.workers.len()))),
    ("workers_lost", |row| {
        let lost = |run: &StepRun| run.workers.iter().filter(|one| one.lost.is_some()).count();
        row.whole().map_or(Value::Nothing, |run| count(lost(run)))
    }),
    ("interrupted", |row| flag(row, |one| one.interrupted)),
    ("cache_wanted", |row| match serde_json::to_value(row.step.cache.wanted) {
        Ok(serde_json::Value::String(word)) => Value::Text(word),
        _ => Value::Nothing,
    }),
    ("published_by", |row| {
        row.published().map_or(Value::Nothing, |published| text(&published.who))
    }),
    ("published_read_iops", |row| published(row, |figures| figures.read_iops)),
    ("published_write_iops", |row| published(row, |figures| figures.write_iops)),
    ("published_iops", |row| published(row, |figures| figures.iops)),
    ("published_read_mibps", |row| published(row, |figures| figures.read_mibps)),
    ("published_write_mibps", |row| published(row, |figures| figures.write_mibps)),
    ("published_mibps", |row| published(row, |figures| figures.mibps)),
    ("published_latency_ms", |row| published(row, |figures| figures.latency_ms)),
    ("published_about", |row| {
        row.published().map_or(Value::Nothing, |figures| Value::Flag(figures.about))
    }),
    ("notes", |row| text(&row.step.notes.join(" "))),
    ("published_bound", |row| match row.published().map(|figures| figures.bound) {
        None | Some(Bound::None) => Value::Nothing,
        Some(Bound::UpTo) => text("up-to"),
        Some(Bound::MoreThan) => text("more-than"),
    }),
    ("target_name", |row| row.part.map_or(Value::Nothing, |part| text(target_name(part)))),
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
            if step.runs.is_empty() {
                line(&mut out, &Row { results, test, step, run: None, part: None });
            }
            for run in (1..).zip(&step.runs) {
                let parts = run.1.targets.iter().map(Some);
                for part in std::iter::once(None).chain(parts) {
                    line(&mut out, &Row { results, test, step, run: Some(run), part });
                }
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

fn of(row: &Row<'_>, figure: fn(&RunResult) -> f64) -> Value {
    number(row.figures().map(figure))
}

fn maybe(row: &Row<'_>, figure: fn(&StepRun) -> Option<f64>) -> Value {
    number(row.whole().and_then(figure))
}

fn counted(row: &Row<'_>, figure: fn(&RunResult) -> u64) -> Value {
    row.figures().map_or(Value::Nothing, |one| Value::Count(figure(one)))
}

fn flag(row: &Row<'_>, flag: fn(&RunResult) -> bool) -> Value {
    row.figures().map_or(Value::Nothing, |one| Value::Flag(flag(one)))
}

fn time(row: &Row<'_>, figure: fn(&Latency) -> f64) -> Value {
    number(row.figures().map(|one| figure(&one.total.latency_ms)))
}

fn kind(row: &Row<'_>, name: &str, figure: fn(&OpResult) -> f64) -> Value {
    number(row.figures().and_then(|one| one.by_operation.get(name)).map(figure))
}

fn verified(row: &Row<'_>, figure: fn(&VerifyResult) -> u64) -> Value {
    let verify = row.figures().and_then(|one| one.verify.as_ref());
    verify.map_or(Value::Nothing, |verify| Value::Count(figure(verify)))
}

fn published(row: &Row<'_>, figure: fn(&Published) -> Option<f64>) -> Value {
    number(row.published().and_then(figure))
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
