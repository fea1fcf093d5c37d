//! The rate that was published for a step, or that its loads are to have, as operations and as
//! MiB/s.

use weir_load::workload::{Rate, Workload};
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
}

impl<'a> Wanted<'a> {
    /// The rate of `step`; `None` if none was published.
    pub(super) fn of(step: &'a Step) -> Option<Self> {
        let published = step.published.as_ref()?;
        let load = step.loads.first()?;
        let (iops, mibps) = (iops(published), mibps(published));
        let mib = if load.moves_data() { mib_of(load) } else { 0.0 };
        let of_mibps = |mibps: f64| if mib > 0.0 { mibps / mib } else { 0.0 };
        Some(Self {
            name: &step.name,
            iops: iops.or(mibps.map(of_mibps))?,
            mibps: mibps.or(iops.map(|iops| iops * mib))?,
        })
    }

    /// The rate to which the loads of `step` are limited, together; `None` if one has no limit.
    pub(super) fn asked(step: &'a Step) -> Option<Self> {
        let mut all = Self { name: &step.name, iops: 0.0, mibps: 0.0 };
        for load in &step.loads {
            let mib = mib_of(load);
            let (iops, mibps) = match load.rate {
                Rate::Operations(iops) => (iops, iops * mib),
                Rate::Bytes(bytes) => (bytes / (mib * 1_048_576.0), bytes / 1_048_576.0),
                Rate::Unlimited | Rate::Share { .. } => return None,
            };
            all.iops += iops;
            all.mibps += if load.moves_data() { mibps } else { 0.0 };
        }
        (!step.loads.is_empty()).then_some(all)
    }
}

fn mib_of(load: &Workload) -> f64 {
    f64::from(load.block_bytes) / 1_048_576.0
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
