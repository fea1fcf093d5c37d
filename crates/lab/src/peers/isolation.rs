//! A volume on a slow disk, written flat out with COMMITs, and its neighbour on a fast one.

use super::judge::{Isolation, Neighbour};
use super::measure::{Times, measure};
use crate::disk::{self, Disk, Filesystem};
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;
use weir_load::engine::prepare;
use weir_load::workload::{Layout, Length, Operation, Pattern, Stability, Workload};
use weir_load::{Control, NfsTarget, Target, mibps};
use weir_results::median;

/// Speed of the slow disk, in bytes per second.
const SLOW_BYTES_PER_SECOND: u64 = 20 << 20;
const SLOW_DISK_BYTES: u64 = 3 << 30;
const FAST_DISK_BYTES: u64 = 1 << 30;
/// Load on the slow volume before its neighbour is looked at.
const HEAD_START: Duration = Duration::from_secs(3);

/// Measures the neighbour alone and beside the slow volume, in turns.
pub(super) fn run(exe: &Path, work: &Path, times: &Times, stop: &Stop) -> Result<Isolation> {
    ensure!(disk::can_throttle(), "block devices can't be throttled here (no blkio control group)");
    let mut slow = Disk::make(work, "slow", Filesystem::Ext4, SLOW_DISK_BYTES)?;
    let fast = Disk::make(work, "fast", Filesystem::Ext4, FAST_DISK_BYTES)?;
    let (data, log) = (fast.path().join("weir"), work.join("isolation.log"));
    let (server, operator) = TestServer::start_new(Settings::temporary(exe, data, log)?)?;
    operator.make_pool("slow", 256, Some(&slow.path().join("pool")))?;
    operator.make_pool("fast", 256, None)?;
    operator.make_volume("slow", "slow", 64 * 1024)?;
    operator.make_volume("fast", "fast", 64 * 1024)?;
    let volume = |name: &str| Target::Nfs(NfsTarget::new(server.address(), format!("/{name}")));
    let prepared = prepare(&volume("fast"), &neighbour(Operation::Getattr, times, LAID_OUT))?;
    let laid_out = prepared.run(&Control::new(), |_| {})?;
    ensure!(laid_out.is_clean(), "laying out the neighbour's file failed: {:?}", laid_out.errors);
    slow.throttle(SLOW_BYTES_PER_SECOND)?;
    let operations = [
        ("READ, 8 KiB, cached", Operation::Data { pattern: Pattern::Random, read_percent: 100 }),
        ("GETATTR", Operation::Getattr),
    ];
    let mut alone = [Vec::new(), Vec::new()];
    let mut beside = [Vec::new(), Vec::new()];
    let mut written = Vec::new();
    for _ in 0..times.rounds {
        let look = |into: &mut [Vec<f64>; 2]| -> Result<()> {
            for (p99, (_, operation)) in into.iter_mut().zip(operations) {
                let load = neighbour(operation, times, Layout::Existing);
                let sample = measure(&volume("fast"), server.pid()?, &load, &Control::new())?;
                p99.push(sample.p99_ms);
                stop.check()?;
            }
            Ok(())
        };
        look(&mut alone)?;
        let flood = prepare(&volume("slow"), &flood())?.spawn(Control::new(), |_| {})?;
        std::thread::sleep(HEAD_START);
        ensure!(!flood.is_finished(), "the load on the slow volume ended at once");
        let looked = look(&mut beside);
        flood.control().stop();
        let result = flood.wait().context("loading the slow volume")?;
        looked?;
        let bytes: u64 = result.series_1s.iter().map(|point| point.bytes).sum();
        let seconds = result.series_1s.last().map_or(0.0, |point| point.at_s + 1.0);
        written.push(mibps(bytes, seconds));
    }
    let neighbours = operations
        .iter()
        .zip(alone.into_iter().zip(beside))
        .map(|((name, _), (alone, beside))| Neighbour::new(name, median(alone), median(beside)))
        .collect();
    Ok(Isolation { slow_mibps: median(written), neighbours })
}

const LAID_OUT: Layout = Layout::Written { block_bytes: 1 << 20 };

/// A light load on the neighbour: four clients that wait for each reply.
fn neighbour(operation: Operation, times: &Times, layout: Layout) -> Workload {
    Workload {
        name: "neighbour".to_owned(),
        // All operations share the files, so the size is always that of the reads.
        operation: if layout == LAID_OUT {
            Operation::Data { pattern: Pattern::Random, read_percent: 100 }
        } else {
            operation
        },
        block_bytes: 8192,
        depth: 1,
        jobs: 4,
        clients: 1,
        connections: 4,
        files: 4,
        file_bytes: 32 << 20,
        length: Length::Seconds(times.measured_s),
        warmup_s: times.warmup_s,
        layout,
        keep: true,
        directory: "neighbour".to_owned(),
        ..Workload::default()
    }
}

/// Everything the slow volume can take and more.
fn flood() -> Workload {
    Workload {
        name: "flood".to_owned(),
        operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 0 },
        block_bytes: 256 << 10,
        depth: 16,
        jobs: 4,
        clients: 1,
        connections: 4,
        files: 4,
        file_bytes: 256 << 20,
        stability: Stability::Unstable,
        commit_every: Some(32),
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        drain_s: 120.0,
        layout: Layout::Sparse,
        keep: true,
        directory: "flood".to_owned(),
        ..Workload::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_sound() {
        let times = Times { warmup_s: 1.0, measured_s: 2.0, rounds: 1, generator_threads: 1 };
        flood().check().unwrap();
        neighbour(Operation::Getattr, &times, LAID_OUT).check().unwrap();
        neighbour(Operation::Getattr, &times, Layout::Existing).check().unwrap();
    }
}
