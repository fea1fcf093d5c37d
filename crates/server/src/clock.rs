//! The only place of the data plane that reads a clock.

use std::time::{SystemTime, UNIX_EPOCH};
pub(crate) use weir_control::SystemClock;

/// Seconds since 1970, for replies that carry the time of day.
pub(crate) fn seconds_since_1970() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
