//! The result of a run for people.

use weir_core::units::{latency, three_digits};
use weir_load::stats::result::{OpResult, RunResult};
use weir_report::terminal::{Grid, Text};
use weir_results::MachineBusy;

const COLUMNS: [&str; 10] =
    ["", "op/s", "MiB/s", "mean", "p5", "p50", "p95", "p99", "p99.9", "max"];

/// The table, followed by remarks. `shared`: the server is on this machine.
pub(super) fn render(result: &RunResult, shared: bool) -> Text {
    let mut grid = Grid::ruled();
    grid.head(COLUMNS);
    if result.by_operation.len() > 1 {
        for (kind, operations) in &result.by_operation {
            grid.row(row(kind, operations));
        }
    }
    grid.row(row("all", &result.total));
    grid.align_right(1..COLUMNS.len());
    let mut text = grid.text();
    notes(result, shared).into_iter().for_each(|line| text.line(line));
    text
}

fn row(kind: &str, operations: &OpResult) -> Vec<String> {
    let times = &operations.latency_ms;
    let mut cells =
        vec![kind.to_owned(), format!("{:.0}", operations.iops), three_digits(operations.mibps)];
    let shown = [times.mean, times.p5, times.p50, times.p95, times.p99, times.p99_9, times.max];
    cells.extend(shown.into_iter().map(latency));
    cells
}

fn notes(result: &RunResult, shared: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "{}: {} operations in {:.2} s",
        result.target,
        result.total.operations,
        result.measured.seconds()
    )];
    notes.extend(shares(result));
    let generator = &result.generator;
    notes.push(format!(
        "generator: {} µs of processor time per operation, busiest thread {:.0} % busy",
        three_digits(generator.cpu_us_per_op),
        generator.busiest_thread_percent
    ));
    if let Some(server) = &result.server {
        notes.push(format!(
            "server: {} µs of processor time per operation, {:.2} processors busy",
            three_digits(server.cpu_us_per_op),
            server.processors
        ));
    }
    if generator.saturated {
        notes.push(
            "WARNING: the generator was the limit; the target can do more. Use more --threads."
                .to_owned(),
        );
    }
    if let Some(busy) = MachineBusy::of(result) {
        notes.push(format!("WARNING: {}.", busy.words(shared)));
    }
    notes.extend(failures(result));
    notes
}

fn shares(result: &RunResult) -> Option<String> {
    if result.jobs.len() < 2 {
        return None;
    }
    let shares = || result.jobs.iter().map(|job| job.share * 100.0);
    let (least, most) = (shares().fold(100.0, f64::min), shares().fold(0.0, f64::max));
    Some(format!("jobs: {}, each with {least:.2} to {most:.2} % of all", result.jobs.len()))
}

fn failures(result: &RunResult) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(verify) = &result.verify {
        let verdict = match (verify.checked + verify.in_passing, verify.mismatches) {
            (0, _) => "nothing compared".to_owned(),
            (_, 0) => "all as written".to_owned(),
            (_, mismatches) => format!("{mismatches} MISMATCHES"),
        };
        let open = match verify.uncertain {
            0 => String::new(),
            count => format!(", {count} undecided because of concurrent writes"),
        };
        let unread = match verify.unread {
            0 => String::new(),
            count => format!(", {count} NOT READ BACK"),
        };
        let passing = match verify.in_passing {
            0 => String::new(),
            count => format!(" and {count} in passing"),
        };
        lines
            .push(format!("verified: {} blocks{passing}, {verdict}{open}{unread}", verify.checked));
        lines.extend(verify.told().iter().map(|detail| format!("  {detail}")));
    }
    for (status, count) in &result.errors {
        lines.push(format!("FAILED: {count} × {status}"));
    }
    if result.connections.lost > 0 {
        lines.push(format!("FAILED: {} connections lost", result.connections.lost));
    }
    if result.connections.unanswered > 0 {
        lines.push(format!(
            "{} requests had no answer when the drain time was over",
            result.connections.unanswered
        ));
    }
    if result.interrupted {
        lines.push("stopped early; the results cover the time until then".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::stats::result::VerifyResult;
    use weir_load::workload::Workload;

    fn result() -> RunResult {
        let json = serde_json::json!({
            "version": 1, "name": "run", "target": "nfs://127.0.0.1:2049/vol",
            "workload": Workload::default(), "started_unix_s": 0.0,
            "measured": {"from_s": 2.0, "to_s": 4.0},
            "total": OpResult { operations: 2000, iops: 1000.0, ..OpResult::default() },
            "by_operation": {"read": OpResult::default(), "write": OpResult::default()},
            "jobs": [], "errors": {}, "connections": {"opened": 1, "lost": 0, "unanswered": 0},
            "series_1s": [], "series_100ms": [], "series_10ms": [], "marks": [],
            "generator": {"cpu_s": 1.0, "cpu_us_per_op": 0.5, "busiest_thread_percent": 50.0,
                          "saturated": false},
            "verify": null, "interrupted": false
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_good_result_shows_every_kind_and_no_warning() {
        let text = render(&result(), false).to_string();
        for part in ["read", "write", "all", "1000", "2000 operations in 2.00 s", "0.50 µs"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("WARNING") && !text.contains("FAILED"), "{text}");
    }

    #[test]
    fn everything_that_went_wrong_is_said() {
        let mut result = result();
        result.generator.saturated = true;
        result.errors.insert("NFS3ERR_IO".into(), 3);
        result.connections.lost = 1;
        result.interrupted = true;
        result.verify = Some(VerifyResult {
            checked: 9,
            uncertain: 1,
            unread: 7,
            mismatches: 1,
            details: vec!["file.00000 at 0: lost write".into()],
            ..VerifyResult::default()
        });
        let text = render(&result, true).to_string();
        for part in [
            "generator was the limit",
            "3 × NFS3ERR_IO",
            "1 connections lost",
            "1 MISMATCHES",
            "file.00000 at 0",
            "undecided",
            "7 NOT READ BACK",
            "stopped early",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
