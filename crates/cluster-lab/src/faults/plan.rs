//! How many of everything, and for how long.

use crate::load::Work;
use crate::stage::Plan;
use std::time::Duration;

/// The cluster: as small as one in which a gateway's addresses can go to two others.
pub(super) const PLAN: Plan = Plan {
    gateways: 3,
    volumes: 3,
    pools: &[("pool", "/weir/pool")],
    mibps: 1,
    own_clocks: true,
    ..Plan::EMPTY
};

/// Bytes of each write, blocks of each file, and writes of each client under way: so that a file is
/// written, and read back, in about a second, and that the processors are for the most part free
/// for the work that a fault causes.
const BLOCK_BYTES: u32 = 64 << 10;
const BLOCKS: u32 = 12;
pub(super) const DEPTH: u8 = 4;

/// Time for which the loads run before the fault.
pub(super) const BEFORE: Duration = Duration::from_millis(1500);
/// Time for which they run once the cluster is whole again.
pub(super) const AFTER: Duration = Duration::from_millis(500);
/// Longest time until a fault shows what it has to show, and until the cluster is whole again.
pub(crate) const BACK: Duration = Duration::from_secs(30);
/// Longest time that the campaign waits for a whole cluster before it gives up.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(180);
/// Time between two looks at the cluster.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Longest time without an answer that is no pause.
pub(super) const NO_PAUSE_S: f64 = 0.5;

/// The work of a client in the round with this number, during the fault at this place in the list.
/// Each fault has a file of its own, so that what was acknowledged during each is there at the end.
pub(super) fn work(place: usize, round: u32) -> Work {
    Work {
        file: format!("data-{place}"),
        block_bytes: BLOCK_BYTES,
        blocks: BLOCKS,
        depth: DEPTH.into(),
        run: round,
    }
}
