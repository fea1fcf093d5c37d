//! Bounds on what one side accepts from the other.

use std::time::Duration;

/// Largest request body, in bytes: 256 export rules are under 64 KiB.
pub const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Largest answer a client reads, in bytes: a page of volumes with all the rules there may be, or a
/// backup.
pub const ANSWER_BYTES_MAX: usize = 128 << 20;
/// Longest time that a report covers, in seconds: 14 days.
pub const REPORT_SECONDS_MAX: u64 = 14 * 24 * 3600;
/// Most things on one page of a list, and as many as there are if nobody says how many.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Longest a client waits for an answer.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest a client waits for a connection.
pub const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
