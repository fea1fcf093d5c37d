//! The plan of the demonstration: how many of everything, how long each part takes, and the bars.

use crate::load::Work;
use crate::stage::Plan;

/// Gateways.
const GATEWAYS: u8 = 3;
/// Volumes, each with an address of its own.
const VOLUMES: u8 = 6;
/// The pools: their names and directories in CephFS. Volumes are dealt to them in turn.
const POOLS: [(&str, &str); 2] = [("first", "/weir/first"), ("second", "/weir/second")];

/// Bytes of each write.
pub(super) const BLOCK_BYTES: u32 = 64 << 10;
/// Blocks of each file.
const BLOCKS: u32 = 128;
/// Writes of each client under way.
const DEPTH: usize = 16;

/// The work of each client.
pub(super) fn work() -> Work {
    Work {
        file: "data".to_owned(),
        block_bytes: BLOCK_BYTES,
        blocks: BLOCKS,
        depth: DEPTH,
        run: std::process::id(),
    }
}

/// The cluster, with volumes of `mibps` each.
pub(super) fn plan(mibps: u64) -> Plan {
    Plan { gateways: GATEWAYS, volumes: VOLUMES, pools: &POOLS, mibps, ..Plan::EMPTY }
}

/// Seconds before anything is judged: each client writes its file for the first time.
pub(super) const WARMUP_S: u64 = 8;
/// Seconds in which nothing happens.
pub(super) const STEADY_S: u64 = 30;
/// Seconds from the death of a gateway to the next event.
pub(super) const DEATH_S: u64 = 25;
/// Seconds without etcd.
pub(super) const OUTAGE_S: u64 = 20;
/// Seconds from the return of etcd to the next event.
pub(super) const RETURN_S: u64 = 12;
/// Seconds from the restart of a gateway to the drain of another.
pub(super) const RESTART_S: u64 = 5;
/// Seconds from the beginning of the drain to the end of the loads, if it takes no longer.
pub(super) const DRAIN_S: u64 = 15;
/// Longest time in which addresses must have moved, in seconds.
pub(super) const MOVE_S: u64 = 30;

/// Longest pause when a gateway dies.
pub(super) const DEATH_PAUSE_S: f64 = 2.0;
/// Longest pause when a gateway is drained.
pub(super) const DRAIN_PAUSE_S: f64 = 1.0;
/// Longest time without an answer that is no pause: the rule for each second bounds what it may
/// cost.
pub(super) const NO_PAUSE_S: f64 = 0.5;

/// Why addresses move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Disturbance {
    /// A gateway was killed.
    Death,
    /// A gateway was drained.
    Drain,
}

impl Disturbance {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Death, Self::Drain];

    /// The longest pause that it may cause.
    pub(super) const fn bar_s(self) -> f64 {
        match self {
            Self::Death => DEATH_PAUSE_S,
            Self::Drain => DRAIN_PAUSE_S,
        }
    }

    /// In words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Death => "gateway killed",
            Self::Drain => "gateway drained",
        }
    }
}
