//! The cost of an operation among ten thousand volumes and alone: the same load on one volume of
//! either server, in turns.

use super::servers::{ALONE, ManyVolumes, baseline};
use crate::peers::cpu::Reading;
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use weir_load::workload::{Layout, Length, Operation, Pattern, Workload};
use weir_load::{Control, NfsTarget, Target, prepare};
use weir_results::median;

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
pub(super) struct OperationCost {
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
    many: &ManyVolumes,
    weir: &Path,
    work: &Path,
    rounds: u32,
    stop: &Stop,
) -> Result<Vec<OperationCost>> {
    let one = baseline(weir, work)?;
    let sides = [(one.address(), one.pid()?), (many.address(), many.pid()?)];
    let mut costs = Vec::new();
    for (name, operation) in TRIALS {
        weir_report::outln!("# {name}, {rounds} rounds on both servers");
        let mut measured = Vec::new();
        for round in 0..rounds {
            stop.check()?;
            let mut pair = [0.0; 2];
            // The second server may find the machine warmer.
            let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for side in order {
                pair[side] = measure(sides[side], operation, round)
                    .with_context(|| format!("measuring {name}"))?;
            }
            measured.push(pair);
        }
        let of = |part: fn(&[f64; 2]) -> f64| median(measured.iter().map(part));
        costs.push(OperationCost {
            operation: name,
            alone_us: of(|pair| pair[0]),
            among_us: of(|pair| pair[1]),
            ratio: of(|pair| pair[1] / pair[0]),
        });
    }
    Ok(costs)
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
