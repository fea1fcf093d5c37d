//! Tables beside the figures of a test: percentiles, processor time, every repeat, workers,
//! failures, caches.

use super::charts::middle;
use super::steps::{grouped, measured};
use super::words::{bytes, step_name};
use crate::{CacheProof, StepResult, StepRun, TestResult};
use weir_core::units::latency;
use weir_load::stats::result::mibps;
use weir_report::{Cell, Column, Table, Tone, figure, percent};
use weir_scenario::scenario::Cache;

fn dash() -> Cell {
    Cell::new("–", Tone::Muted)
}

/// Latencies of the repeat in the middle.
pub(super) fn percentiles(test: &TestResult) -> Table {
    let groups = grouped(test);
    let mut columns = vec![Column::words("step"), Column::words("kind")];
    let heads = ["least", "mean", "p5", "p50", "p95", "p99", "p99.9", "p99.99", "greatest"];
    columns.extend(heads.map(Column::figures));
    let mut rows = Vec::new();
    for (step, _) in measured(test) {
        let Some(run) = middle(step) else { continue };
        let run = &run.total;
        let mut kinds: Vec<_> =
            run.by_operation.iter().map(|(name, one)| (name.as_str(), one)).collect();
        if kinds.len() != 1 {
            kinds.push(("all", &run.total));
        }
        for (kind, operations) in kinds {
            let times = &operations.latency_ms;
            let shown = [
                times.min,
                times.mean,
                times.p5,
                times.p50,
                times.p95,
                times.p99,
                times.p99_9,
                times.p99_99,
                times.max,
            ];
            let mut cells: Vec<Cell> = vec![step_name(step, groups).into(), kind.into()];
            cells.extend(shown.map(|ms| if ms > 0.0 { latency(ms).into() } else { dash() }));
            rows.push(cells);
        }
    }
    Table { columns, rows }
}

/// The processor time of clients and server.
pub(super) fn processors(test: &TestResult) -> Table {
    let groups = grouped(test);
    let mut columns = vec![Column::words("step")];
    let heads = [
        "generator, µs per op",
        "busiest thread",
        "client's processors busy",
        "server, µs per op",
        "server's processors busy",
        "network received",
        "network sent",
    ];
    columns.extend(heads.map(Column::figures));
    let rows = measured(test).filter_map(|(step, _)| {
        let run = middle(step)?;
        let (generator, server) = (&run.total.generator, run.total.server);
        let busy = format!("{:.0} %", generator.busiest_thread_percent);
        let busy = if generator.saturated { Cell::new(busy, Tone::Bad) } else { busy.into() };
        let rate =
            |bytes: u64| format!("{} MiB/s", figure(mibps(bytes, run.total.measured.seconds())));
        let network = |bytes: fn(&crate::Network) -> u64| {
            run.network.as_ref().map_or_else(dash, |network| Cell::from(rate(bytes(network))))
        };
        Some(vec![
            step_name(step, groups).into(),
            figure(generator.cpu_us_per_op).into(),
            busy,
            run.client_processors.map_or_else(dash, |count| busy_of(count, run)),
            server.map_or_else(dash, |server| Cell::from(figure(server.cpu_us_per_op))),
            server.map_or_else(dash, |server| Cell::from(figure(server.processors))),
            network(|network| network.received_bytes),
            network(|network| network.sent_bytes),
        ])
    });
    Table { columns, rows: rows.collect() }
}

/// The processors of the client's machine that were busy, of how many if that is known: several
/// workers may be on several machines.
fn busy_of(count: f64, run: &StepRun) -> Cell {
    let text = match run.total.generator.machine_processors {
        all @ 1.. if run.workers.is_empty() => format!("{} of {all}", figure(count)),
        _ => figure(count),
    };
    if run.machine_busy().is_some() { Cell::new(text, Tone::Bad) } else { text.into() }
}

/// Every repeat of every step.
pub(super) fn repeats(test: &TestResult) -> Table {
    let groups = grouped(test);
    let mut columns = vec![Column::words("step")];
    let heads = [
        "repeat",
        "seconds",
        "op/s",
        "MiB/s",
        "mean",
        "p99",
        "greatest",
        "drift",
        "excursions",
        "failed",
    ];
    columns.extend(heads.map(Column::figures));
    let row = |step: &StepResult, number: usize, run: &StepRun| {
        let total = &run.total.total;
        let steady = |value: fn(&crate::Steady) -> String| {
            run.steady.as_ref().map_or_else(dash, |steady| Cell::from(value(steady)))
        };
        let errors = run.total.error_count();
        let failed =
            Cell::new(errors.to_string(), if errors > 0 { Tone::Bad } else { Tone::Plain });
        vec![
            step_name(step, groups).into(),
            number.to_string().into(),
            format!("{:.1}", run.total.measured.seconds()).into(),
            figure(total.iops).into(),
            figure(total.mibps).into(),
            latency(total.latency_ms.mean).into(),
            latency(total.latency_ms.p99).into(),
            latency(total.latency_ms.max).into(),
            steady(|steady| percent(steady.drift_percent, 1)),
            steady(|steady| format!("{:.1} %", steady.excursion_percent)),
            failed,
        ]
    };
    let steps = test.steps.iter().filter(|step| !step.preparation);
    let rows = steps
        .flat_map(|step| (1..).zip(&step.runs).map(move |(number, run)| row(step, number, run)));
    Table { columns, rows: rows.collect() }
}

/// Each worker's part, where there are several.
pub(super) fn workers(test: &TestResult) -> Option<Table> {
    let groups = grouped(test);
    let heads = ["repeat", "op/s", "part", "processor time", "clock off by"];
    let mut columns = vec![Column::words("step"), Column::words("worker")];
    columns.extend(heads.map(Column::figures));
    columns.push(Column::prose("lost"));
    let mut rows = Vec::new();
    for step in &test.steps {
        for (number, run) in (1..).zip(&step.runs) {
            rows.extend(worker_rows(&step_name(step, groups), number, run));
        }
    }
    (!rows.is_empty()).then_some(Table { columns, rows })
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn worker_rows(step: &str, number: usize, run: &StepRun) -> Vec<Vec<Cell>> {
    let all = run.workers.iter().map(|worker| worker.operations).fold(0, u64::saturating_add);
    let seconds = run.total.measured.seconds();
    let row = |worker: &crate::WorkerResult| {
        let operations = worker.operations as f64;
        let lost =
            worker.lost.as_deref().map_or_else(Cell::default, |why| Cell::new(why, Tone::Bad));
        vec![
            step.into(),
            worker.name.as_str().into(),
            number.to_string().into(),
            figure(if seconds > 0.0 { operations / seconds } else { 0.0 }).into(),
            format!("{:.2} %", operations / (all.max(1) as f64) * 100.0).into(),
            format!("{} s", figure(worker.cpu_s)).into(),
            format!("{:+.2} ± {:.2} ms", worker.clock_offset_ms, worker.clock_uncertainty_ms)
                .into(),
            lost,
        ]
    };
    run.workers.iter().map(row).collect()
}

/// The failures, and the result of reading back.
pub(super) fn failures(test: &TestResult) -> Option<Table> {
    let groups = grouped(test);
    let columns = vec![
        Column::words("step"),
        Column::figures("repeat"),
        Column::prose("what"),
        Column::figures("count"),
    ];
    let mut rows = Vec::new();
    for step in &test.steps {
        for (number, run) in (1..).zip(&step.runs) {
            let name = step_name(step, groups);
            let mut add = |what: String, count: u64| {
                let count = Cell::new(count.to_string(), Tone::Bad);
                rows.push(vec![name.clone().into(), number.to_string().into(), what.into(), count]);
            };
            for (status, &count) in &run.total.errors {
                add(status.clone(), count);
            }
            let connections = &run.total.connections;
            if connections.lost > 0 {
                add("connections lost".to_owned(), connections.lost);
            }
            if connections.unanswered > 0 {
                add("requests without an answer".to_owned(), connections.unanswered);
            }
            if let Some(verify) = run.total.verify.as_ref() {
                if verify.mismatches > 0 {
                    let details = verify.told().join("; ");
                    add(format!("blocks that differ: {details}"), verify.mismatches);
                }
                if verify.unread > 0 {
                    add("blocks not read back".to_owned(), verify.unread);
                }
            }
        }
    }
    (!rows.is_empty()).then_some(Table { columns, rows })
}

/// Wishes about caches that differ, each with the steps that have it.
pub(super) fn caches(test: &TestResult) -> Vec<(Vec<String>, &CacheProof)> {
    let groups = grouped(test);
    let mut proofs: Vec<(Vec<String>, &CacheProof)> = Vec::new();
    for step in test.steps.iter().filter(|step| step.cache.wanted != Cache::Any) {
        let name = step_name(step, groups);
        match proofs.iter_mut().find(|(_, proof)| **proof == step.cache) {
            Some((names, _)) => names.push(name),
            None => proofs.push((vec![name], &step.cache)),
        }
    }
    proofs
}

/// The state of caches that was wanted, the actions taken, and the open questions, in sentences.
pub(super) fn cache_sentences(proof: &CacheProof) -> Vec<String> {
    let memory = |bytes_of: u64| if bytes_of == 0 { "unknown".to_owned() } else { bytes(bytes_of) };
    let wanted = match proof.wanted {
        Cache::Excluded => "Caches excluded",
        Cache::Included => "Caches included",
        Cache::Any => "Caches as they are",
    };
    let mut sentences = vec![format!(
        "{wanted}: data set {}, memory of the clients {}, memory of the server {}.",
        bytes(proof.data_bytes),
        memory(proof.client_memory_bytes),
        memory(proof.server_memory_bytes.unwrap_or(0))
    )];
    sentences.extend(proof.done.iter().map(|done| format!("Done: {done}")));
    sentences.extend(proof.open.iter().map(|open| format!("Open: {open}")));
    sentences
}
