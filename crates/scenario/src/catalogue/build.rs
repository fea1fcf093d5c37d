//! Parts that the tests have in common: loads and sweeps.

use crate::scenario::{Axis, Cache, Published, Step};
use weir_load::workload::{Layout, MixOp, OpShare, Operation, Pattern, Stability, Workload};

/// Bytes in a KiB.
pub(super) const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub(super) const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub(super) const GIB: u64 = 1 << 30;
/// The label of an axis of reads among a hundred requests.
pub(super) const READS: &str = "reads %";
/// The label of an axis of requests in flight, all jobs together. [`crate::scenario::scale`] keeps
/// its values true.
pub(super) const IN_FLIGHT: &str = "requests in flight";

/// Blocks of `kib` KiB: `depth` of each job, all clients' processes on files of their own.
///
/// Clients used direct I/O, so that a write counts once it is on stable storage: that is what a
/// Linux client asks for (`FILE_SYNC`) for a direct write that fits one request.
pub(super) fn blocks(kib: u32, depth: u32) -> Workload {
    Workload {
        block_bytes: kib << 10,
        depth,
        stability: Stability::FileSync,
        direct: true,
        threads: 8,
        ..Workload::default()
    }
}

/// `base` with this percentage of reads.
pub(super) fn data(base: &Workload, pattern: Pattern, read_percent: u8) -> Workload {
    Workload { operation: Operation::Data { pattern, read_percent }, ..base.clone() }
}

/// `base` as fio applies it, with this percentage of reads: a sequential mix (`rw=rw`) has a
/// position of the reads and one of the writes in each file.
pub(super) fn by_fio(base: &Workload, pattern: Pattern, read_percent: u8) -> Workload {
    if pattern != Pattern::Sequential || !(1..100).contains(&read_percent) {
        return data(base, pattern, read_percent);
    }
    let share = |op, percent| OpShare { op, percent };
    let mix = vec![
        share(MixOp::ReadSequential, read_percent),
        share(MixOp::WriteSequential, 100 - read_percent),
    ];
    Workload { operation: Operation::Mix, mix, ..base.clone() }
}

/// A step with one load, which gets its name.
pub(super) fn step(name: &str, load: Workload) -> Step {
    let load = Workload { name: name.to_owned(), ..load };
    Step { name: name.to_owned(), loads: vec![load], ..Step::default() }
}

/// The axis that a step varies.
pub(super) fn axis(label: &str, value: impl Into<f64>) -> Option<Axis> {
    Some(Axis { label: label.to_owned(), value: value.into() })
}

/// A step by fio for each of `percents` reads.
pub(super) fn sweep(
    base: &Workload,
    pattern: Pattern,
    cache: Cache,
    percents: impl IntoIterator<Item = u8>,
    published: impl Fn(u8) -> Option<Published>,
) -> Vec<Step> {
    let each = |percent: u8| Step {
        axis: axis(READS, percent),
        cache,
        published: published(percent),
        ..step(&format!("reads-{percent}"), by_fio(base, pattern, percent))
    };
    percents.into_iter().map(each).collect()
}

/// Every step but the last leaves its files to the next.
pub(super) fn sharing_files(mut steps: Vec<Step>) -> Vec<Step> {
    let last = steps.len().saturating_sub(1);
    for (number, step) in steps.iter_mut().enumerate() {
        step.shares_files = number < last;
    }
    steps
}

/// Files written with `kib` KiB at a time, as the clients' mounts sent them.
pub(super) const fn laid_out(kib: u32) -> Layout {
    Layout::Written { block_bytes: kib << 10 }
}
