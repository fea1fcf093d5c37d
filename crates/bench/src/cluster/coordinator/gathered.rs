//! One result of what the workers of a step brought: records of a load added up, and what the
//! reader has to know about those that are missing. Percentiles are taken later, from the sum.

use super::seat::{Progress, Seat};
use crate::cluster::clock::{Reading, best};
use crate::control::Control;
use crate::engine::{Record, StepRecord};
use crate::error::BenchError;
use crate::suite::Applied;
use crate::workload::Workload;

/// Clocks that moved by more than so many milliseconds against each other are worth a sentence.
const DRIFT_MS: f64 = 10.0;

/// Makes one result of the `seats`' parts of `loads`.
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
    for (load, record) in loads.iter().zip(&merged) {
        if record.is_none() {
            let name = &load.name;
            notes
                .push(format!("no worker of the load {name:?} came to its end: it has no figures"));
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

/// What was missing because a worker was lost.
fn losses(seat: &Seat, loads: &[Workload]) -> Vec<String> {
    if !seat.is_short() {
        return Vec::new();
    }
    let ended = seat.progress >= Progress::Ended;
    let (operations, bytes) = seat.seen;
    let figures = if ended {
        "what it did until then is in the figures".to_owned()
    } else {
        format!(
            "what it did until its last sign of life ({operations} operations, {bytes} bytes in \
             the measured interval) is not in the figures"
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
        .filter(|_| !ended)
        .map(|assigned| assigned.workload.directory.as_str())
        .collect();
    left.dedup();
    if !left.is_empty() {
        let left = left.join(", ");
        notes.push(format!("files of worker {} may be left at the target, in {left}", seat.name));
    }
    notes
}

/// What was odd about a worker's clock.
fn clocks(seat: &Seat, before: Option<Reading>) -> Vec<String> {
    let mut notes = Vec::new();
    if seat.late_ms > 0 {
        notes.push(format!(
            "worker {} began {} ms after the common start, from which its figures count all the \
             same",
            seat.name, seat.late_ms
        ));
    }
    let drift_ms = before.zip(best(&seat.readings_after)).map(|(old, new)| new.drift_ms(&old));
    if let Some(drift_ms) = drift_ms.filter(|drift_ms| *drift_ms > DRIFT_MS) {
        notes.push(format!(
            "the clock of worker {} moved {drift_ms:.0} ms against the coordinator's during the \
             load; its times are off by up to as much",
            seat.name
        ));
    }
    notes
}
