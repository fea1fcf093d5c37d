//! Counters of one volume: a block a worker, so that counting costs no shared cache line.

use crate::plane::VolumeLive;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;
use weir_nfs::v3::Class;

/// One worker's counters. Only that worker writes them; anyone reads.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Block {
    read_ops: AtomicU64,
    read_bytes: AtomicU64,
    write_ops: AtomicU64,
    write_bytes: AtomicU64,
    other_ops: AtomicU64,
    failed_ops: AtomicU64,
    delayed_ops: AtomicU64,
    wait_nanos: AtomicU64,
    latency_nanos: AtomicU64,
}

/// The counters of one volume.
pub(crate) struct Stats {
    blocks: Box<[Block]>,
}

impl Stats {
    /// All zero, for `workers` workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self { blocks: (0..workers).map(|_| Block::default()).collect() }
    }

    /// Counts an answered operation.
    pub(crate) fn done(&self, worker: usize, class: Class, moved: u64, ok: bool, took: Duration) {
        let Some(block) = self.blocks.get(worker) else { return };
        match class {
            Class::Read => {
                bump(&block.read_ops, 1);
                bump(&block.read_bytes, moved);
            }
            Class::Write => {
                bump(&block.write_ops, 1);
                bump(&block.write_bytes, moved);
            }
            Class::Null | Class::Metadata | Class::Commit => bump(&block.other_ops, 1),
        }
        if !ok {
            bump(&block.failed_ops, 1);
        }
        bump(&block.latency_nanos, nanos(took));
    }

    /// Counts a request that waited at the gate for so long.
    pub(crate) fn delayed(&self, worker: usize, waited: Duration) {
        let Some(block) = self.blocks.get(worker) else { return };
        bump(&block.delayed_ops, 1);
        bump(&block.wait_nanos, nanos(waited));
    }

    /// The sums over all workers; the gauges are the caller's to fill.
    pub(crate) fn sum(&self) -> VolumeLive {
        let mut live = VolumeLive::default();
        for block in &self.blocks {
            let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
            live.read_ops += get(&block.read_ops);
            live.read_bytes += get(&block.read_bytes);
            live.write_ops += get(&block.write_ops);
            live.write_bytes += get(&block.write_bytes);
            live.other_ops += get(&block.other_ops);
            live.failed_ops += get(&block.failed_ops);
            live.delayed_ops += get(&block.delayed_ops);
            live.wait_nanos += get(&block.wait_nanos);
            live.latency_nanos += get(&block.latency_nanos);
        }
        live
    }
}

/// Adds without a locked instruction: a block has one writer.
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up() {
        let stats = Stats::new(2);
        stats.done(0, Class::Read, 4096, true, Duration::from_nanos(5));
        stats.done(1, Class::Read, 100, false, Duration::from_nanos(7));
        stats.done(1, Class::Metadata, 0, true, Duration::ZERO);
        stats.delayed(1, Duration::from_nanos(3));
        let live = stats.sum();
        assert_eq!((live.read_ops, live.read_bytes, live.other_ops), (2, 4196, 1));
        assert_eq!((live.failed_ops, live.latency_nanos), (1, 12));
        assert_eq!((live.delayed_ops, live.wait_nanos), (1, 3));
    }
}
