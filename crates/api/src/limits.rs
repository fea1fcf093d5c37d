//! Limits on the data that one side accepts from the other.

use std::time::Duration;

/// Largest request body, in bytes: 256 export rules are under 64 KiB.
pub const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Largest response that a client reads, in bytes: a page of volumes with the maximum number of
/// rules, or a backup.
pub const ANSWER_BYTES_MAX: usize = 128 << 20;
/// Longest period of a report, in seconds: 14 days.
pub const REPORT_SECONDS_MAX: u64 = 14 * 24 * 3600;
/// Maximum number of items on a page of a list, and the default.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Longest password of a user, in characters: that of Windows.
pub const PASSWORD_CHARS_MAX: usize = 256;
/// Longest time that a client waits for a response.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest a client waits for a connection.
pub const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
