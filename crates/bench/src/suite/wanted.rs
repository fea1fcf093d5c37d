//! The rate that was published for a step, or that its loads are to have, as operations and as
//! MiB/s.

use weir_load::workload::{MixOp, Operation, Rate, Workload};
use weir_scenario::scenario::{Published, Step};

/// The wanted rate of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted<'a> {
    /// Name of the step.
    pub(super) name: &'a str,
    /// Operations a second.
    pub(super) iops: f64,
    /// MiB/s; zero of loads that move no data.
    pub(super) mibps: f64,
    /// MiB/s of reads or of writes, whichever are more: a link carries so many each way.
    pub(super) one_way_mibps: f64,
}

impl<'a> Wanted<'a> {
    /// The rate of `step`; `None` if none was published.
    pub(super) fn of(step: &'a Step) -> Option<Self> {
        let published = step.published.as_ref()?;
        let load = step.loads.first()?;
        let (iops, mibps) = (iops(published), mibps(published));
        let mib = if load.moves_data() { mib_of(load) } else { 0.0 };
        let of_mibps = |mibps: f64| if mib > 0.0 { mibps / mib } else { 0.0 };
        let all_mibps = mibps.or(iops.map(|iops| iops * mib))?;
        Some(Self {
            name: &step.name,
            iops: iops.or(mibps.map(of_mibps))?,
            mibps: all_mibps,
            one_way_mibps: all_mibps * one_way(step, published),
        })
    }

    /// The rate to which the loads of `step` are limited, together; `None` if one has no limit.
    pub(super) fn asked(step: &'a Step) -> Option<Self> {
        let mut all = Self { name: &step.name, iops: 0.0, mibps: 0.0, one_way_mibps: 0.0 };
        let (mut reads, mut writes) = (0.0, 0.0);
        for load in &step.loads {
            let mib = mib_of(load);
            let (iops, mibps) = match load.rate {
                Rate::Operations(iops) => (iops, iops * mib),
                Rate::Bytes(bytes) => (bytes / (mib * 1_048_576.0), bytes / 1_048_576.0),
                Rate::Unlimited | Rate::Share { .. } => return None,
            };
            all.iops += iops;
            let mibps = if load.moves_data() { mibps } else { 0.0 };
            all.mibps += mibps;
            reads += mibps * reads_of(load);
            writes += mibps * (1.0 - reads_of(load));
        }
        all.one_way_mibps = f64::max(reads, writes);
        (!step.loads.is_empty()).then_some(all)
    }
}

fn mib_of(load: &Workload) -> f64 {
    f64::from(load.block_bytes) / 1_048_576.0
}

/// The part of a published rate that goes the way with more: by the published rates of reads and
/// writes or, without, by what the loads ask for.
fn one_way(step: &Step, published: &Published) -> f64 {
    let Published { read_iops, write_iops, read_mibps, write_mibps, .. } = published;
    let told = [(read_mibps, write_mibps), (read_iops, write_iops)];
    let told = told.map(|(reads, writes)| (reads.unwrap_or(0.0), writes.unwrap_or(0.0)));
    let reads = match told.into_iter().find(|(reads, writes)| reads + writes > 0.0) {
        Some((reads, writes)) => reads / (reads + writes),
        None => {
            let loads = step.loads.iter().map(|load| (1.0, reads_of(load)));
            let (count, reads) = loads.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            if count > 0.0 { reads / count } else { 1.0 }
        }
    };
    f64::max(reads, 1.0 - reads)
}

/// The part of the data of `load` that is read.
fn reads_of(load: &Workload) -> f64 {
    if let Operation::Data { read_percent, .. } = load.operation {
        return f64::from(read_percent) / 100.0;
    }
    let sum = |is: fn(MixOp) -> bool| -> f64 {
        let kinds = load.mix.iter().filter(|share| is(share.op));
        kinds.map(|share| f64::from(share.percent)).sum()
    };
    let (reads, writes) = (sum(MixOp::reads), sum(MixOp::writes));
    if reads + writes > 0.0 { reads / (reads + writes) } else { 1.0 }
}

fn iops(published: &Published) -> Option<f64> {
    published.iops.or(sum(published.read_iops, published.write_iops))
}

fn mibps(published: &Published) -> Option<f64> {
    published.mibps.or(sum(published.read_mibps, published.write_mibps))
}

fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}
