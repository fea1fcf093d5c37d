//! The latencies of operations by which no contract is judged (GETATTR, LOOKUP and most others),
//! counted together: the clock is read once for those that are answered by one send, not for each.
//!
//! A worker never sleeps with operations that are not counted: each of them marks its connection as
//! dirty, and a worker with dirty connections does not sleep. Operations without a connection are
//! counted in the round in which they end.
//!
//! Not here: operations that are judged, whose times are taken one by one.

use crate::engine::ServedVolume;
use crate::sync::Arc;
use weir_core::Mono;

/// Operations on one volume that arrived together, and whose latencies are not counted yet.
#[derive(Default)]
pub(super) struct Uncounted {
    batch: Option<Batch>,
}

struct Batch {
    volume: Arc<ServedVolume>,
    arrived: Mono,
    operations: u64,
}

impl Uncounted {
    /// Are there any?
    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_none()
    }

    /// Can an operation on `volume` that `arrived` be added to those here?
    pub(super) fn fits(&self, volume: &Arc<ServedVolume>, arrived: Mono) -> bool {
        let same = |batch: &Batch| batch.arrived == arrived && Arc::ptr_eq(&batch.volume, volume);
        self.batch.as_ref().is_none_or(same)
    }

    /// Adds an operation that fits.
    pub(super) fn add(&mut self, volume: &Arc<ServedVolume>, arrived: Mono) {
        match &mut self.batch {
            Some(batch) => batch.operations += 1,
            none => *none = Some(Batch { volume: Arc::clone(volume), arrived, operations: 1 }),
        }
    }

    /// Counts the latencies of all, which are answered by `worker` at `now`.
    pub(super) fn count(&mut self, worker: usize, now: Mono) {
        if let Some(Batch { volume, arrived, operations }) = self.batch.take() {
            volume.stats.took_others(worker, operations, now.since(arrived));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::served;
    use crate::worker::VolumeGate;
    use weir_core::VolumeId;
    use weir_gate::ParkedTotal;
    use weir_qos::{BytesPerSecond, Limits};

    #[test]
    fn operations_that_arrived_together_count_together_and_others_do_not_join() {
        let directory = tempfile::tempdir().unwrap();
        let [volume, other] = [1, 2].map(|id| {
            let limits = Limits::of(BytesPerSecond(1 << 30));
            let gate = VolumeGate::new(VolumeId(id), limits, Arc::new(ParkedTotal::new(0)));
            Arc::new(served(&directory.path().join(id.to_string()), gate))
        });
        let (then, later) = (Mono(1_000), Mono(2_000));
        let mut uncounted = Uncounted::default();
        assert!(uncounted.is_empty() && uncounted.fits(&volume, then));
        uncounted.add(&volume, then);
        assert!(uncounted.fits(&volume, then));
        uncounted.add(&volume, then);
        assert!(!uncounted.fits(&volume, later) && !uncounted.fits(&other, then));
        uncounted.count(0, Mono(1_500));
        assert!(uncounted.is_empty());
        assert_eq!(volume.stats.sum().latency_nanos, 2 * 500);
        uncounted.count(0, Mono(9_000));
        assert_eq!(volume.stats.sum().latency_nanos, 2 * 500, "nothing is counted twice");
    }
}
