//! Times that operations of a volume took, by bounds: for volumes whose operator asked for it
//! (`metrics.histograms`). Like the counters they lie beside, cells of one worker have one writer.
//! Not here: how they are published.

use weir_core::OpClass;

use super::stats::bump;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;
use weir_control::plane::{DURATION_BOUNDS, Durations, VolumeHistograms};

/// One worker's histograms of a volume.
#[derive(Default)]
pub(super) struct Histograms {
    read: Cells,
    write: Cells,
    other: Cells,
    wait: Cells,
}

#[derive(Default)]
struct Cells {
    counts: [AtomicU64; DURATION_BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histograms {
    /// So many operations each took so long from their arrival to their reply.
    pub(super) fn took(&self, class: OpClass, operations: u64, each: Duration) {
        let cells = match class {
            OpClass::Read => &self.read,
            OpClass::Write => &self.write,
            OpClass::Null | OpClass::Metadata | OpClass::Commit => &self.other,
        };
        cells.add(operations, each);
    }

    /// A request waited so long for its contract.
    pub(super) fn waited(&self, time: Duration) {
        self.wait.add(1, time);
    }

    /// Adds what was counted to `sum`.
    pub(super) fn add_to(&self, sum: &mut VolumeHistograms) {
        self.read.add_to(&mut sum.read);
        self.write.add_to(&mut sum.write);
        self.other.add_to(&mut sum.other);
        self.wait.add_to(&mut sum.wait);
    }
}

impl Cells {
    /// Adds without a locked instruction: there is one writer.
    fn add(&self, times: u64, each: Duration) {
        let nanos = u64::try_from(each.as_nanos()).unwrap_or(u64::MAX);
        let place = DURATION_BOUNDS.partition_point(|bound| *bound < each);
        if let Some(count) = self.counts.get(place) {
            bump(count, times);
        }
        bump(&self.nanos, times.saturating_mul(nanos));
    }

    fn add_to(&self, sum: &mut Durations) {
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        }
        sum.nanos = sum.nanos.wrapping_add(self.nanos.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_under_the_least_bound_that_holds_it() {
        let histograms = Histograms::default();
        for nanos in [0, 50_000, 50_001, 10_000_000_000, 10_000_000_001] {
            histograms.took(OpClass::Read, 1, Duration::from_nanos(nanos));
        }
        histograms.took(OpClass::Commit, 1, Duration::from_millis(3));
        histograms.waited(Duration::MAX);
        let mut sum = VolumeHistograms::default();
        histograms.add_to(&mut sum);
        histograms.add_to(&mut sum);
        let last = DURATION_BOUNDS.len();
        let counts = sum.read.counts;
        assert_eq!((counts[0], counts[1], counts[last - 1], counts[last]), (4, 2, 2, 2));
        assert_eq!(sum.read.count(), 10);
        assert_eq!(sum.read.nanos, 2 * 20_000_100_002);
        assert_eq!((sum.other.count(), sum.other.nanos), (2, 6_000_000));
        assert_eq!((sum.wait.counts[last], sum.write.count()), (2, 0));
    }
}
