//! The clock of the rules.

use rustix::time::{ClockId, clock_gettime};
use weir_core::Mono;

/// The present moment on the clock of rights to reply: time since the machine started, with the
/// time for which it was suspended. All processes of a machine have it in common.
#[must_use]
pub fn now() -> Mono {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Mono(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
