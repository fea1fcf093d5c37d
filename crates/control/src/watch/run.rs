//! The watch at work: a look each second, a write each minute, on the control plane's runtime.

use super::volume::Period;
use super::{Watch, time_of_day};
use crate::plane::Plane;
use crate::sync::{Arc, watch};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use weir_core::VolumeId;

/// Between two looks at the counters.
const LOOK: Duration = Duration::from_secs(1);

type Rows = Vec<(VolumeId, Period)>;

/// Watches all volumes of `plane` until `stopping` says so, and writes what is left then.
pub(crate) async fn run(
    watch: Arc<Watch>,
    plane: Arc<dyn Plane>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pending = Vec::new();
    // Other gateways may ask at once for what a volume that has left leaves.
    let mut is_new = false;
    let mut writing: Option<JoinHandle<Rows>> = None;
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            _ = stopping.wait_for(|stop| *stop) => break,
        }
        let mut ended = watch.look(&*plane, time_of_day());
        is_new |= !ended.is_empty();
        pending.append(&mut ended);
        if writing.as_ref().is_some_and(JoinHandle::is_finished) {
            pending = joined(writing.take(), pending).await;
        }
        // One at a time: a disk that is slow now is not made slower.
        let is_due = !pending.is_empty() && (is_new || time_of_day() % 60 < 10);
        if writing.is_none() && is_due {
            is_new = false;
            writing = Some(write(&watch, std::mem::take(&mut pending)));
        }
    }
    pending = joined(writing, pending).await;
    let now = time_of_day();
    pending.append(&mut watch.look(&*plane, now));
    pending.append(&mut watch.unfinished(now));
    let lost = joined(Some(write(&watch, pending)), Vec::new()).await.len();
    if lost > 0 {
        tracing::warn!(
            lost,
            "minutes of the contract history could not be written before shutdown"
        );
    }
}

fn write(watch: &Arc<Watch>, rows: Rows) -> JoinHandle<Rows> {
    let recorder = Arc::clone(&watch.recorder);
    tokio::task::spawn_blocking(move || recorder.write(rows, time_of_day()))
}

/// The rows that a write gives back, and those that have come since.
async fn joined(writing: Option<JoinHandle<Rows>>, mut since: Rows) -> Rows {
    let mut rows = match writing {
        Some(writing) => writing.await.unwrap_or_default(),
        None => Vec::new(),
    };
    rows.append(&mut since);
    rows
}
