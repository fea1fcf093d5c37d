//! Idle volumes release their descriptors, and the memory for objects and names. A later request
//! opens its objects again, as it does where a bound was reached.

use super::{Engine, ServedVolume};
use crate::sync::{Arc, Ordering};
use std::time::Duration;
use weir_store::StoreControl;

/// Time between two examinations. A volume releases its descriptors and memory after one to two of
/// these without requests: long enough for clients that ask for the volume's space every few
/// minutes, as clients with a mount do.
const INTERVAL: Duration = Duration::from_secs(300);

impl Engine {
    /// Releases the resources of each volume without requests since the last examination. Blocks.
    pub(crate) fn release_idle(&self) {
        for served in self.served.load_full().all() {
            served.volume.release_if_idle();
        }
    }
}

impl ServedVolume {
    fn release_if_idle(&self) {
        let operations = self.stats.operations();
        // A volume that was never used holds nothing.
        if operations == self.operations_seen.swap(operations, Ordering::Relaxed) && operations > 0
        {
            self.store.release_idle();
        }
    }
}

/// Releases the resources of idle volumes until it is aborted.
pub(crate) async fn release_idle_volumes(engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let engine = Arc::clone(&engine);
        // A panic in one examination does not concern the next.
        let _examined = tokio::task::spawn_blocking(move || engine.release_idle()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stats::{Done, Stages};
    use super::super::testing::served;
    use super::*;
    use crate::op_name::OpName;
    use weir_core::store::CreateHow;
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Mono, Name, OpClass, SetAttr, Store, VolumeId};
    use weir_gate::{ConnId, Gate, ParkedTotal};
    use weir_qos::{BytesPerSecond, Cost, Limits};

    #[test]
    fn a_volume_without_requests_between_two_examinations_is_released() {
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits::of(BytesPerSecond(1));
        let gate = Gate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(0)));
        let volume = served(&directory.path().join("volume"), gate);
        let store = &volume.store;
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        let create = |name| {
            let name = Name::new(name).unwrap();
            let made = block_on(store.create(&store.root(), name, &how, &Credentials::ROOT));
            drop(made.unwrap());
        };
        let answer = || {
            let stages = Stages { arrived: Mono(0), started: Mono(0), woken: None };
            let (op, class, cost) = (OpName::nfs3(1).unwrap(), OpClass::Metadata, Cost::ZERO);
            let connection = ConnId { worker: 0, token: 1 };
            let (moved, file) = (0, None);
            let (ok, replied, inside) = (true, true, true);
            let done =
                Done { connection, op, class, cost, moved, file, ok, replied, inside, stages };
            volume.stats.done(&done, Mono(1));
        };
        create(b"a");
        answer();
        volume.release_if_idle();
        assert_eq!(store.objects_open(), 1, "a request came since the start");
        answer();
        volume.release_if_idle();
        assert_eq!(store.objects_open(), 1, "and another");
        volume.release_if_idle();
        assert_eq!(store.objects_open(), 0);
        let name = Name::new(b"a").unwrap();
        drop(block_on(store.lookup(&store.root(), name)).unwrap());
        assert_eq!(store.objects_open(), 1, "a request opens its object again");
        answer();
        volume.release_if_idle();
        assert_eq!(store.objects_open(), 1);
    }
}
