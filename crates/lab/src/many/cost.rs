//! Whether an operation costs among ten thousand volumes what it costs alone: the same load on one
//! volume of either server, in turns.

use super::Options;
use super::house::{ALONE, House, Hut};
use crate::demo::Stop;
use crate::peers::cpu::Reading;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use weir_bench::results::median;
use weir_load::workload::{Layout, Length, Operation, Pattern, Workload};
use weir_load::{Control, NfsTarget, Target, prepare};

const CONNECTIONS: u32 = 4;
const DEPTH: u32 = 16;
const BLOCK_BYTES: u32 = 4096;
const FILE_BYTES: u64 = 8 << 20;
const OPERATIONS: u64 = 400_000;

const TRIALS: [(&str, Operation); 3] = [
    ("GETATTR", Operation::Getattr),
    ("READ of 4 KiB", Operation::Data { pattern: Pattern::Random, read_percent: 100 }),
    ("WRITE of 4 KiB", Operation::Data { pattern: Pattern::Random, read_percent: 0 }),
];

/// An operation on both servers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) operation: &'static str,
    /// Processor time of the server in microseconds, median of all turns, with one volume.
    pub(super) alone_us: f64,
    /// The cost with all volumes (µs).
    pub(super) among_us: f64,
    /// The median of the rounds' ratios.
    pub(super) ratio: f64,
}

/// Each operation in turns on both.
pub(super) fn compare(
    house: &mut House,
    options: &Options,
    work: &Path,
    stop: &Stop,
) -> Result<Vec<Row>> {
    let hut = Hut::make(options, work)?;
    let sides = [(hut.address(), hut.pid()?), (house.address(), house.pid()?)];
    let mut rows = Vec::new();
    for (name, operation) in TRIALS {
        weir_report::outln!("# {name}, {} rounds on both servers", options.rounds);
        let mut rounds = Vec::new();
        for round in 0..options.rounds {
            if stop.asked() {
                bail!("interrupted");
            }
            let mut costs = [0.0; 2];
            // Whoever goes second may find the machine warmer.
            let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for side in order {
                costs[side] = measure(sides[side], operation, round)
                    .with_context(|| format!("measuring {name}"))?;
            }
            rounds.push(costs);
        }
        let of = |part: fn(&[f64; 2]) -> f64| median(rounds.iter().map(part));
        rows.push(Row {
            operation: name,
            alone_us: of(|costs| costs[0]),
            among_us: of(|costs| costs[1]),
            ratio: of(|costs| costs[1] / costs[0]),
        });
    }
    hut.end()?;
    Ok(rows)
}

/// Processor time of the server for an operation, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "operations of seconds")]
fn measure((address, pid): (SocketAddr, u32), operation: Operation, round: u32) -> Result<f64> {
    let target = Target::Nfs(NfsTarget::new(address, format!("/{ALONE}")));
    let prepared = prepare(&target, &workload(operation, round))?;
    let before = Reading::take(pid)?;
    let result = prepared.run(&Control::new(), |_| {})?;
    let used = Reading::take(pid)?.since(&before);
    ensure!(result.is_clean(), "{:?}", result.errors);
    Ok(used.process_s * 1e6 / OPERATIONS as f64)
}

fn workload(operation: Operation, round: u32) -> Workload {
    Workload {
        name: "one of many".to_owned(),
        operation,
        block_bytes: BLOCK_BYTES,
        depth: DEPTH,
        jobs: CONNECTIONS,
        connections: CONNECTIONS,
        files: CONNECTIONS,
        file_bytes: FILE_BYTES,
        length: Length::Operations(OPERATIONS),
        layout: Layout::Written { block_bytes: BLOCK_BYTES },
        directory: "cost".to_owned(),
        seed: 1 + u64::from(round),
        ..Workload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_sound() {
        for (_, operation) in TRIALS {
            workload(operation, 3).check().unwrap();
        }
    }
}
