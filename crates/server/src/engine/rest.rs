//! Volumes that nobody uses any more let go of what they hold: descriptors, and the memory for
//! objects and names. What their clients ask for afterwards is opened again, as it is where a bound
//! was reached.

use super::{Engine, ServedVolume};
use crate::sync::{Arc, Ordering};
use std::time::Duration;

/// Time between two looks. A volume releases its descriptors and memory after one to two of these
/// without requests: long enough for clients that come every few minutes, as those with a mount do
/// who ask for its space.
const LOOK: Duration = Duration::from_secs(300);

impl Engine {
    /// Has each volume let go that nothing was asked of since the last look. Blocks.
    pub(crate) fn rest(&self) {
        for mounted in self.served.load_full().all() {
            mounted.volume.rest_if_idle();
        }
    }
}

impl ServedVolume {
    fn rest_if_idle(&self) {
        let operations = self.stats.operations();
        // A volume that was never used holds nothing.
        if operations == self.at_rest.swap(operations, Ordering::Relaxed) && operations > 0 {
            self.nfs.store.rest();
        }
    }
}

/// Looks until it is aborted.
pub(crate) async fn rest_on(engine: Arc<Engine>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let engine = Arc::clone(&engine);
        // A panic in one look does not concern the next.
        let _looked = tokio::task::spawn_blocking(move || engine.rest()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stats::{Done, Stages};
    use super::super::testing::served;
    use super::*;
    use crate::gate::{Gate, ParkedTotal};
    use weir_core::store::CreateHow;
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Mono, Name, OpClass, SetAttr, Store, VolumeId};
    use weir_qos::{BytesPerSecond, Cost, Limits};

    #[test]
    fn a_volume_lets_go_when_nothing_was_asked_of_it_between_two_looks() {
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits::of(BytesPerSecond(1));
        let gate = Gate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(0)));
        let volume = served(&directory.path().join("volume"), gate);
        let store = &volume.nfs.store;
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        let create = |name| {
            let name = Name::new(name).unwrap();
            let made = block_on(store.create(&store.root(), name, &how, &Credentials::ROOT));
            drop(made.unwrap());
        };
        let answer = || {
            let stages = Stages { arrived: Mono(0), started: Mono(0), woken: None };
            let (class, cost) = (OpClass::Metadata, Cost::ZERO);
            volume.stats.done(
                0,
                &Done { class, cost, moved: 0, ok: true, replied: true, stages },
                Mono(1),
            );
        };
        create(b"a");
        answer();
        volume.rest_if_idle();
        assert_eq!(store.objects_open(), 1, "something was asked since the start");
        answer();
        volume.rest_if_idle();
        assert_eq!(store.objects_open(), 1, "and again");
        volume.rest_if_idle();
        assert_eq!(store.objects_open(), 0);
        let name = Name::new(b"a").unwrap();
        drop(block_on(store.lookup(&store.root(), name)).unwrap());
        assert_eq!(store.objects_open(), 1, "what is asked for is opened again");
        answer();
        volume.rest_if_idle();
        assert_eq!(store.objects_open(), 1);
    }
}
