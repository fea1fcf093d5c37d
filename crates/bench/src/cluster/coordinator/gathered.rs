//! One result of what the workers of a step brought: records of a load added up, and what the
//! reader has to know about those that are missing. Percentiles are taken later, from the sum.

use super::seat::{Progress, Seat};
use crate::cluster::clock::{Reading, best};
use crate::suite::Applied;
use weir_load::control::Control;
use weir_load::engine::{Record, StepRecord};
use weir_load::error::BenchError;
use weir_load::workload::Workload;

/// Clocks that moved by more than so many milliseconds against each other are worth a sentence, and
/// so is an offset that is not known better.
const CLOCKS_MS: f64 = 10.0;

/// Makes one result of the `seats`' parts of `loads`, which are as they were applied.
///
/// # Errors
/// [`BenchError::Peer`] if no record came at all.
pub(crate) fn gather(
    seats: Vec<Seat>,
    loads: &[Workload],
    started_unix_s: f64,
    control: &Control,
    mut notes: Vec<String>,
) -> Result<Applied, BenchError> {
    let readings: Vec<Option<Reading>> = seats.iter().map(|seat| best(&seat.readings)).collect();
    let workers = seats.iter().zip(&readings).map(|(seat, reading)| seat.result(*reading));
    let workers = workers.collect();
    notes.extend(seats.iter().flat_map(|seat| losses(seat, loads)));
    notes.extend(seats.iter().zip(&readings).flat_map(|(seat, reading)| clocks(seat, *reading)));
    let missing: Vec<String> = seats
        .iter()
        .filter(|seat| seat.is_short())
        .map(|seat| format!("worker {}: {}", seat.name, seat.story()))
        .collect();
    let short: Vec<(String, Vec<u32>)> = seats
        .iter()
        .filter(|seat| seat.is_short())
        .map(|seat| {
            let numbers = seat.loads.iter().map(|assigned| assigned.load).collect();
            (format!("worker {} was lost {}", seat.name, seat.story()), numbers)
        })
        .collect();
    let mut merged: Vec<Option<Record>> = loads.iter().map(|_| None).collect();
    for seat in seats {
        merge(&mut merged, seat);
    }
    for (what, numbers) in short {
        for load in numbers {
            if let Some(record) = at(&mut merged, load) {
                record.lose(what.clone());
            }
        }
    }
    for (load, record) in loads.iter().zip(&mut merged) {
        match record {
            // A worker may report another load than the one it was given; the ordered one counts.
            Some(record) => record.workload.clone_from(load),
            None => notes.push(format!(
                "no worker of the load {:?} completed: there are no results",
                load.name
            )),
        }
    }
    let mut records: Vec<Record> = merged.into_iter().flatten().collect();
    if records.is_empty() {
        return Err(BenchError::Peer(format!("all workers were lost: {}", missing.join("; "))));
    }
    let mut marks = control.take_marks();
    for record in &mut records {
        record.settle(started_unix_s, std::mem::take(&mut marks));
    }
    Ok(Applied { record: StepRecord { loads: records }, workers, notes })
}

fn at(merged: &mut [Option<Record>], load: u32) -> Option<&mut Record> {
    merged.get_mut(usize::try_from(load).ok()?)?.as_mut()
}

/// Adds what a worker reported, if it reported all.
fn merge(merged: &mut [Option<Record>], seat: Seat) {
    if seat.progress < Progress::Ended {
        return;
    }
    for (load, record) in seat.records {
        let Some(slot) = usize::try_from(load).ok().and_then(|load| merged.get_mut(load)) else {
            continue;
        };
        match slot {
            Some(sum) => sum.merge(record),
            None => *slot = Some(record),
        }
    }
    for (load, what) in seat.failures {
        if let Some(record) = at(merged, load) {
            record.fail(what);
        }
    }
}

/// The losses of a worker that was lost.
fn losses(seat: &Seat, loads: &[Workload]) -> Vec<String> {
    if !seat.is_short() {
        return Vec::new();
    }
    let ended = seat.progress >= Progress::Ended;
    let (operations, bytes) = seat.seen;
    let figures = if ended {
        "its operations until then are included in the results".to_owned()
    } else {
        format!(
            "its operations until its last message ({operations} operations, {bytes} bytes in the \
             measured interval) are not included in the results"
        )
    };
    let part = |load: &u32| {
        let name = usize::try_from(*load).ok().and_then(|index| loads.get(index));
        let name = name.map_or("", |load| load.name.as_str());
        format!("{:.1} % of the load {name:?}", seat.share(*load) * 100.0)
    };
    let numbers: Vec<u32> = seat.loads.iter().map(|assigned| assigned.load).collect();
    let parts: Vec<String> = numbers.iter().map(part).collect();
    let mut notes = vec![format!(
        "worker {} was lost {}; {} was missing from then on, and {figures}",
        seat.name,
        seat.story(),
        parts.join(" and ")
    )];
    let mut left: Vec<&str> = seat
        .loads
        .iter()
        .filter(|assigned| !ended && !assigned.workload.keep)
        .map(|assigned| assigned.workload.directory.as_str())
        .collect();
    left.dedup();
    if !left.is_empty() {
        let left = left.join(", ");
        notes.push(format!("files of worker {} may remain on the target, in {left}", seat.name));
    }
    notes
}

/// The oddities of a worker's clock.
fn clocks(seat: &Seat, before: Option<Reading>) -> Vec<String> {
    let mut notes = Vec::new();
    if seat.late_ms > 0 {
        notes.push(format!(
            "worker {} began {} ms after the common start, from which its figures count all the \
             same",
            seat.name, seat.late_ms
        ));
    }
    let unsure_ms = before.map(|reading| reading.uncertainty_ms());
    if let Some(unsure_ms) = unsure_ms.filter(|unsure_ms| *unsure_ms > CLOCKS_MS) {
        notes.push(format!(
            "the clock of worker {} is known to ±{unsure_ms:.0} ms, half the round trip to it; its \
             load may have begun as much before or after the common start",
            seat.name
        ));
    }
    let drift_ms = before.zip(best(&seat.readings_after)).map(|(old, new)| new.drift_ms(&old));
    if let Some(drift_ms) = drift_ms.filter(|drift_ms| *drift_ms > CLOCKS_MS) {
        notes.push(format!(
            "the clock of worker {} moved {drift_ms:.0} ms against the coordinator's during the \
             load; its times are off by up to as much",
            seat.name
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::seat::Loss;
    use super::*;
    use crate::cluster::wire::Assigned;
    use weir_core::rng::Rng;
    use weir_load::stats::{OpKind, Recorder, Span};
    use weir_load::workload::Part;

    const JOBS: u32 = 16;

    fn load() -> Workload {
        Workload { name: "x".to_owned(), jobs: JOBS, warmup_s: 0.0, ..Workload::default() }
    }

    /// The record of the parts `which` of `of` of the same 20,000 operations.
    fn record(which: impl Fn(u32) -> bool, of: u32) -> Record {
        let mut recorder = Recorder::new(JOBS as usize, 0, u64::MAX, std::sync::mpsc::channel().0);
        let mut rng = Rng::new(3);
        for number in 0..20_000_u64 {
            let job = u32::try_from(number % u64::from(JOBS)).unwrap();
            let digits = 4 + u32::try_from(number % 6).unwrap();
            let queued_ns = number * 1_000_000;
            // From microseconds to seconds, with a long tail.
            let latency_ns = 1_000 + rng.below(10_u64.pow(digits));
            let span = Span { queued_ns, done_ns: queued_ns + latency_ns };
            let kind = if number % 3 == 0 { OpKind::Write } else { OpKind::Read };
            if which(job % of) {
                recorder.complete(kind, job as usize, span, 4096);
            }
        }
        let workload = load();
        serde_json::from_value(serde_json::json!({
            "target": "nfs://server/vol", "workload": workload, "clients": [],
            "started_unix_s": 1e9, "measure_ns": 0, "planned_ns": 30_000_000_000_u64,
            "ended_ns": 30_000_000_000_u64, "notes": recorder.finish(),
            "connections": {"opened": 1, "lost": 0, "unanswered": 0},
            "generator": {"cpu_s": 0.5, "cpu_us_per_op": 0.0, "busiest_thread_percent": 9.0,
                          "saturated": false},
            "faults": {}, "broken": false, "marks": [], "verify": null
        }))
        .unwrap()
    }

    fn seat(index: u32, of: u32) -> Seat {
        let part = Some(Part { index, of });
        let workload = Workload { part, ..load() };
        // Across the wire and back, as it comes from another process.
        let crossed = serde_json::to_vec(&record(|part| part == index, of)).unwrap();
        let record = serde_json::from_slice(&crossed).unwrap();
        Seat {
            name: format!("w{index}"),
            loads: vec![Assigned { load: 0, workload }],
            progress: Progress::Finished,
            records: [(0, record)].into(),
            ..Seat::default()
        }
    }

    fn gathered(seats: Vec<Seat>) -> Result<Applied, BenchError> {
        gather(seats, &[load()], 77.0, &Control::new(), Vec::new())
    }

    #[test]
    fn eight_parts_together_are_what_one_process_would_have_seen_to_the_last_digit() {
        let whole = record(|_| true, 8).result();
        let applied = gathered((0..8).map(|index| seat(index, 8)).collect()).unwrap();
        let (operations, bytes) = applied.record.measured();
        let of_workers = applied.workers.iter().map(|worker| worker.operations).sum::<u64>();
        assert_eq!((operations, of_workers, bytes), (20_000, 20_000, 20_000 * 4096));
        let (merged, _) = applied.record.results("x").unwrap();
        assert_eq!(merged.total, whole.total);
        assert_eq!(merged.by_operation, whole.by_operation);
        assert_eq!(merged.jobs, whole.jobs);
        assert_eq!(merged.series_10ms, whole.series_10ms);
        assert_eq!(merged.connections.opened, 8);
        assert!((merged.generator.cpu_s - 4.0).abs() < 1e-9);
        assert!((merged.started_unix_s - 77.0).abs() < 1e-9, "by the coordinator's clock");
        assert!(!merged.interrupted && merged.is_clean());
    }

    #[test]
    fn the_load_of_a_result_is_the_one_that_was_ordered() {
        for odd in 0..2 {
            let mut seats: Vec<Seat> = (0..2).map(|index| seat(index, 2)).collect();
            let record = seats[odd].records.get_mut(&0).unwrap();
            record.workload = Workload { depth: 999, name: "y".to_owned(), ..load() };
            let applied = gathered(seats).unwrap();
            let (merged, _) = applied.record.results("x").unwrap();
            assert_eq!(merged.workload, load(), "worker {odd} tells otherwise");
        }
    }

    #[test]
    fn an_average_of_percentiles_would_not_do() {
        let parts: Vec<f64> = (0..8)
            .map(|index| record(|part| part == index, 8).result().total.latency_ms.p99)
            .collect();
        let average = parts.iter().sum::<f64>() / 8.0;
        let whole = record(|_| true, 8).result().total.latency_ms.p99;
        assert!((average - whole).abs() > whole * 0.005, "{average} {whole}");
    }

    #[test]
    fn without_a_lost_worker_the_others_stand_and_all_is_marked() {
        let mut seats: Vec<Seat> = (0..4).map(|index| seat(index, 4)).collect();
        seats[1].progress = Progress::Attached;
        seats[1].records.clear();
        seats[1].seen = (123, 456);
        seats[1].lose("the connection was closed".to_owned(), Some(12.34));
        let applied = gathered(seats).unwrap();
        assert_eq!(applied.record.measured().0, 15_000);
        assert_eq!(applied.workers[1].operations, 123);
        let lost = applied.workers[1].lost.clone().unwrap();
        assert_eq!(lost, "12.3 s after the start: the connection was closed");
        assert!(applied.notes[0].contains("25.0 % of the load \"x\" was missing from then on"));
        assert!(applied.notes[0].contains("(123 operations"), "{:?}", applied.notes);
        assert!(applied.notes[1].contains("remain on the target, in weir-bench"));
        let (merged, _) = applied.record.results("x").unwrap();
        assert!(merged.interrupted && !merged.is_clean());
        assert_eq!(merged.errors.len(), 1, "{:?}", merged.errors);
    }

    #[test]
    fn who_was_told_to_end_gave_what_it_had() {
        let mut seats: Vec<Seat> = (0..4).map(|index| seat(index, 4)).collect();
        seats[3].leaving = Some(Loss { why: "it was told to end".to_owned(), at_s: Some(2.0) });
        let applied = gathered(seats).unwrap();
        assert_eq!(applied.record.measured().0, 20_000);
        assert!(
            applied.notes[0].contains("until then are included in the results"),
            "{:?}",
            applied.notes
        );
        assert_eq!(applied.notes.len(), 1);
        assert!(applied.record.results("x").unwrap().0.interrupted);
    }

    /// The seat after a report of load 0 whose record was changed at these places.
    fn reported(changes: &[(&str, serde_json::Value)]) -> Result<Seat, String> {
        let mut value = serde_json::to_value(record(|_| true, 1)).unwrap();
        for (place, new) in changes {
            *value.pointer_mut(place).unwrap() = new.clone();
        }
        let record: Record = serde_json::from_value(value).unwrap();
        let report =
            crate::cluster::wire::Report::Record { step: 1, load: 0, record: record.into() };
        let bytes = crate::cluster::encode(&report).unwrap();
        let kinds = [crate::cluster::Kind::Record];
        let report = crate::cluster::receive(&mut &*bytes, &kinds).unwrap();
        let mut seat = Seat { records: [].into(), ..seat(0, 1) };
        seat.take(0, None, report).map(|_| seat)
    }

    #[test]
    fn records_that_nothing_can_have_are_refused_before_they_are_added() {
        use serde_json::json;
        reported(&[]).unwrap();
        for (place, value) in [
            ("/notes/jobs", json!(vec![json!({"operations": 0, "bytes": 0}); 17])),
            ("/notes/jobs/3/operations", json!(u64::MAX)),
            ("/notes/series/fine/0/bytes", json!(u64::MAX)),
            ("/notes/series/coarse/1/operations", json!(1_u64 << 60)),
            ("/notes/kinds/0/bytes", json!(u64::MAX)),
            ("/notes/errors", json!({"a": u64::MAX, "b": 1})),
            ("/faults", json!({"a": u64::MAX})),
            ("/addresses", json!({"a": u64::MAX})),
            ("/connections/lost", json!(u64::MAX)),
            ("/generator/cpu_s", json!(1e308)),
            ("/generator/busiest_thread_percent", json!(-1.0)),
            (
                "/verify",
                json!({"checked": 1, "uncertain": u64::MAX, "mismatches": 1, "details": []}),
            ),
        ] {
            let why = reported(&[(place, value)]).err().unwrap_or_else(|| panic!("{place}"));
            assert!(why.contains("jobs of a load") || why.contains("nothing can have"), "{why}");
        }
    }

    #[test]
    fn texts_of_records_command_no_terminal() {
        use serde_json::json;
        let evil = "\u{1b}[2J\u{202e}x";
        let places = [
            ("/target", json!(evil)),
            ("/clients", json!([evil])),
            ("/faults", json!({evil: 1, "\u{1b}\u{1b}": 2})),
            ("/notes/errors", json!({evil: 3})),
            ("/addresses", json!({evil: 1})),
            ("/marks", json!([{"at_s": 1.0, "label": evil}])),
            ("/verify", json!({"checked": 1, "uncertain": 0, "mismatches": 1, "details": [evil]})),
        ];
        let applied = gathered(vec![reported(&places).unwrap()]).unwrap();
        let (run, _) = applied.record.results("x").unwrap();
        assert_eq!(run.error_count(), 6);
        let text = serde_json::to_string(&run).unwrap();
        assert!(!text.contains("\\u001b") && !text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn of_nobody_there_is_no_result() {
        let mut only = seat(0, 1);
        only.progress = Progress::Attached;
        only.lose("nothing was heard for 15.0 s".to_owned(), None);
        let error = gathered(vec![only]).err().unwrap().to_string();
        assert!(error.contains("all workers were lost: worker w0: nothing was heard"), "{error}");
    }
}
