//! Bounds of the driver.

use std::time::Duration;

/// Events that the rules have not taken yet. Beyond: who reports one waits.
pub(crate) const EVENTS_MAX: usize = 256;
/// Words of others that the rules have not taken yet. Beyond: further ones are dropped, as the
/// network may drop them.
pub(crate) const WORDS_MAX: usize = 256;
/// Commands of operators that wait. Beyond: who gives one waits.
pub(crate) const COMMANDS_MAX: usize = 16;
/// Time before a step of a group, or a request to the helper, that failed is tried again.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);
