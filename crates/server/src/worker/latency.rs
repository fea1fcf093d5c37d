//! The latencies and the connections of operations by which no contract is judged (GETATTR, LOOKUP
//! and most others), counted together: the clock is read once for those that are answered by one
//! send, not for each, and a connection is looked for once for those that follow each other.
//!
//! A worker never sleeps with operations that are not counted: each of them marks its connection as
//! dirty, and a worker with dirty connections does not sleep. Operations without a connection are
//! counted in the round in which they end.
//!
//! Not here: operations that are judged, whose times are taken one by one.

use crate::engine::ServedVolume;
use crate::sync::Arc;
use weir_core::Mono;
use weir_gate::ConnId;

/// Operations on one volume that arrived together, and that are not counted yet.
#[derive(Default)]
pub(super) struct Uncounted {
    batch: Option<Batch>,
}

struct Batch {
    volume: Arc<ServedVolume>,
    arrived: Mono,
    operations: u64,
    /// The connection of the last of them.
    connection: ConnId,
    /// The last ones, all on `connection`, that are not counted for it yet.
    on_connection: u64,
}

impl Batch {
    fn add(&mut self, connection: ConnId) {
        if self.connection != connection {
            self.count_connection();
            self.connection = connection;
        }
        self.operations += 1;
        self.on_connection += 1;
    }

    fn count_connection(&mut self) {
        let operations = std::mem::take(&mut self.on_connection);
        self.volume.stats.used(self.connection, operations, self.arrived);
    }
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

    /// Adds an operation on `connection` that fits.
    pub(super) fn add(&mut self, volume: &Arc<ServedVolume>, connection: ConnId, arrived: Mono) {
        let batch = self.batch.get_or_insert_with(|| {
            let volume = Arc::clone(volume);
            Batch { volume, arrived, operations: 0, connection, on_connection: 0 }
        });
        batch.add(connection);
    }

    /// Counts all, which are answered by `worker` at `now`.
    pub(super) fn count(&mut self, worker: usize, now: Mono) {
        if let Some(mut batch) = self.batch.take() {
            batch.count_connection();
            let Batch { volume, arrived, operations, .. } = batch;
            volume.stats.took_others(worker, operations, now.since(arrived));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::served;
    use crate::worker::VolumeGate;
    use std::collections::BTreeMap;
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
        let [one, two] = [1, 2].map(|token| ConnId { worker: 0, token });
        for connection in [one, two, two] {
            assert!(uncounted.fits(&volume, then));
            uncounted.add(&volume, connection, then);
        }
        assert!(!uncounted.fits(&volume, later) && !uncounted.fits(&other, then));
        uncounted.count(0, Mono(1_500));
        assert!(uncounted.is_empty());
        let counts = || {
            let uses = volume.stats.uses().map(|one| (one.token, one.operations));
            (volume.stats.sum().latency_nanos, BTreeMap::from_iter(uses))
        };
        let expected = (3 * 500, BTreeMap::from([(1, 1), (2, 2)]));
        assert_eq!(counts(), expected);
        uncounted.count(0, Mono(9_000));
        assert_eq!(counts(), expected, "nothing is counted twice");
    }
}
